#!/usr/bin/env bash
# usage: pkg_config.sh COMPILER PREFIX SOURCE PROGRAM
# Compiles SOURCE with what pkg-config says about the install in PREFIX, and runs it.
set -euo pipefail

compiler=$1 prefix=$2 source=$3 program=$4
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gradsync.pc)")
export PKG_CONFIG_PATH
modules=(gradsync-gloo gradsync-simulator)
# shellcheck disable=SC2046  # many words
"$compiler" -std=c++20 "$source" $(pkg-config --cflags --libs "${modules[@]}") -o "$program"
libraries=$(pkg-config --variable=libdir "${modules[@]:0:1}")
LD_LIBRARY_PATH=$libraries "$program"  # shared ones, if they are
