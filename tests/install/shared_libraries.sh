#!/usr/bin/env bash
# usage: shared_libraries.sh SOURCE-FOLDER WORK-FOLDER [OPTIONS OF CMAKE...]
# Builds everything but the tests with shared libraries, installs and moves it, and runs the command and
# the programs of examples/ on it.
set -euo pipefail

source=$1 work=$2
shift 2
mkdir -p "$work"
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
  -DGRADSYNC_BUILD_TESTS=OFF "$@" >"$work/configure.log"
cmake --build "$work/build"
rm -rf "$work/installed" "$work/moved"
cmake --install "$work/build" --prefix "$work/installed" >/dev/null
mv "$work/installed" "$work/moved"

"$work/moved/bin/gradsync" run bert-large-1024 --ranks 8 --out "$work/run"
for example in "$source"/examples/*/CMakeLists.txt; do
  folder=$(dirname "$example")
  ctest --build-and-test "$folder" "$work/$(basename "$folder")" --build-generator Ninja \
    --build-options "-DCMAKE_PREFIX_PATH=$work/moved" -DCMAKE_BUILD_TYPE=None \
    --test-command ctest --output-on-failure --no-tests=error
done
