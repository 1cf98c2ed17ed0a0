#!/usr/bin/env bash
# usage: compare.sh GRADSYNC OWN_MODEL
# Trains on Gloo and in the simulator; fails unless both end with the same parameters.
set -euo pipefail

hash_of() {
  sed -n 's/.*parameter hash \([0-9a-f]\{32\}\).*/\1/p' <<<"$1"
}

gloo=$("$1" launch --nproc-per-node 2 -- "$2")
simulated=$("$2" --simulate 2)
printf '%s\n' "$gloo" "$simulated"
[ -n "$(hash_of "$gloo")" ] && [ "$(hash_of "$gloo")" = "$(hash_of "$simulated")" ]
