#!/usr/bin/env bash
# usage: two_ranks.sh OWN_PROCESS_GROUP
# Trains with two processes that meet in a folder; fails unless both end with the same parameters.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/job"
"$1" "$folder/job" 1 2 >"$folder/rank-1" &
"$1" "$folder/job" 0 2 >"$folder/rank-0"
wait $!
cat "$folder"/rank-?
[ "$(sed 's/.*hash//' "$folder/rank-0")" = "$(sed 's/.*hash//' "$folder/rank-1")" ]
