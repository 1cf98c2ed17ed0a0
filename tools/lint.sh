#!/usr/bin/env bash
# Checks formatting, shell scripts and clang-tidy. Formats with --fix; leaves clang-tidy (minutes) out with --quick.
set -euo pipefail

usage() {
  echo "usage: tools/lint.sh [--fix] [--quick]"
}

fix=
quick=
for option in "$@"; do
  case $option in
    --fix) fix=1 ;;
    --quick) quick=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

cd "$(dirname "$0")/.."
. tools/setup.sh

# clang-format's output differs between its major versions; this one is the project's.
format=clang-format-14
tidy=run-clang-tidy-14
require_tool() {
  command -v "$1" >/dev/null || die "$1 is missing (Debian 12: clang-format-14 clang-tidy-14 shellcheck)"
}

say "clang-format"
require_tool "$format"
mapfile -t sources < <(git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh')
if [ -n "$fix" ]; then
  "$format" -i "${sources[@]}"
else
  "$format" --dry-run --Werror "${sources[@]}"
fi

say "shellcheck"
require_tool shellcheck
mapfile -t scripts < <(git ls-files '*.sh')
shellcheck -x "${scripts[@]}" .ci/run

[ -z "$quick" ] || exit 0
say "clang-tidy"
require_tool "$tidy"
cmake --preset dev >/dev/null
"$tidy" -quiet -p build-dev -j "$(build_jobs)" \
  "$PWD/(engine|testbed|backends|simulator|predict|tools|tests|bench|examples)/.*\\.cpp"
