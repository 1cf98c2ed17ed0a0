#!/usr/bin/env bash
# usage: own_command.sh OWN_COMMAND SCENARIO
# The command of examples/own_command runs its scenario on Gloo and simulated, with one parameter
# hash; checks it; and refuses an option that its model does not have, with status 2.
set -euo pipefail

command=$1 scenario=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

hash_on() {
  "$command" run "$scenario" --backend "$1" --json --out "$folder/$1" |
    sed -n 's/.*"parameter_hash": "\([0-9a-f]\{32\}\)".*/\1/p'
}
gloo=$(hash_on gloo)
simulated=$(hash_on sim)
echo "gloo $gloo, sim $simulated"
[ -n "$gloo" ] && [ "$gloo" = "$simulated" ]
"$command" check "$scenario" --backend sim --out "$folder/check"
"$command" schema | grep -q '"mlp"'

status=0
error=$("$command" run "$scenario" --set model.hiden=3 --out "$folder/wrong" 2>&1) || status=$?
echo "$error"
[ "$status" = 2 ] && grep -q 'did you mean "hidden"' <<<"$error"
