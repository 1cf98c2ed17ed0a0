#!/usr/bin/env bash
# Sets the machine up, builds, and runs the tests: what CI runs, from a clone on a bare machine.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tools/test.sh [--preset ci|dev|asan|tsan] [-L LABEL] [-R REGEX] [--repeat K] [--with-torch]

  --preset NAME   a preset of CMakePresets.json (default: ci, the release build in build/)
  -L LABEL        only the tests with this label: unit, parity, gloo, nccl, gpu, sim, cli,
                  docs, build
  -R REGEX        only the tests whose name matches
  --with-torch    also the tests beside PyTorch (label torch); installs python3-torch
  --repeat K      run everything up to K times, and stop at the first failure
TEXT
}

preset=ci
with_torch=OFF
ctest_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    -L) ctest_options+=(-L "^${2:?-L needs a label}\$"); shift 2 ;;
    -R) ctest_options+=(-R "${2:?-R needs a regular expression}"); shift 2 ;;
    --repeat) ctest_options+=(--repeat "until-fail:${2:?--repeat needs a number}"); shift 2 ;;
    --with-torch) with_torch=ON; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

cd "$(dirname "$0")/.."
. tools/setup.sh
# Said either way: a build folder remembers what it was told the last time.
gradsync_cmake_options=("-DGRADSYNC_WITH_TORCH_TESTS=$with_torch")
if [ "$with_torch" = ON ]; then gradsync_packages+=(python3-torch); fi
require_packages
build_gradsync "$preset"
say "running the tests"
ctest --preset "$preset" --parallel "$(nproc)" "${ctest_options[@]}"
