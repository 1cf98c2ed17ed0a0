#!/usr/bin/env bash
# usage: compare.sh OWN_COMMAND SCENARIO FOLDER
# Runs the scenario on Gloo and in the simulator, and fails unless both end with the same parameters.
# Then makes a rank run out of data and diagnoses it, and misspells an option.
set -euo pipefail

command=$1 scenario=$2 folder=$3
rm -rf "$folder"

hash_on() {
  "$command" run "$scenario" --backend "$1" --json --out "$folder/$1" |
    sed -n 's/.*"parameter_hash": "\([0-9a-f]\{32\}\)".*/\1/p'
}
gloo=$(hash_on gloo)
simulated=$(hash_on sim)
echo "parameter hash: gloo $gloo, sim $simulated"
[ -n "$gloo" ] && [ "$gloo" = "$simulated" ]

# fails STATUS TEXT ARGUMENTS...: the command must end with this status and print this text.
fails() {
  local status=0 printed
  printed=$("$command" "${@:3}" 2>&1) || status=$?
  echo "$printed"
  [ "$status" = "$1" ] && grep -qF -- "$2" <<<"$printed"
}
for backend in gloo sim; do
  hang=$folder/hang-$backend
  fails 4 hang run "$scenario" --backend "$backend" --out "$hang" \
    --set timeout=3s --set train.epochs=1 --set sampler.shard_sizes='[200,56]'
  "$command" diagnose "$hang" | tee "$folder/diagnosis"
  grep -q "rank 1 ran out of data" "$folder/diagnosis"
done
fails 2 'did you mean "hidden"' run "$scenario" --set model.options.hiden=3 --out "$folder/wrong"
"$command" schema >"$folder/schema.json"
grep -q "\"mlp\"" "$folder/schema.json"
