#!/usr/bin/env bash
# Formatting, clang-tidy and shell scripts. `tools/lint.sh` looks; `tools/lint.sh --fix` formats.
set -euo pipefail

fix=
case ${1:-} in
  '') ;;
  --fix) fix=1 ;;
  *)
    echo "usage: tools/lint.sh [--fix]" >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")/.."
. tools/setup.sh

# clang-format's output differs between its major versions; this one is the project's.
format=clang-format-14
for tool in "$format" run-clang-tidy-14 shellcheck; do
  command -v "$tool" >/dev/null || die "$tool is missing (Debian 12: clang-format-14 clang-tidy-14 shellcheck)"
done
mapfile -t sources < <(git ls-files '*.cpp' '*.hpp')

say "clang-format"
if [ -n "$fix" ]; then
  "$format" -i "${sources[@]}"
else
  "$format" --dry-run --Werror "${sources[@]}"
fi

say "shellcheck"
shellcheck -x tools/*.sh .ci/run

say "clang-tidy"
cmake --preset dev >/dev/null
run-clang-tidy-14 -quiet -p build-dev -j "$(build_jobs)" "$PWD/(engine|backends|simulator|tools|tests|bench)/.*"
