#!/usr/bin/env bash
# Sets the machine up, builds gradsync, and shows what it does: one training run in two worlds with
# the same result, and a job that hangs, with the reason.
set -euo pipefail

cd "$(dirname "$0")/.."
. tools/setup.sh
require_packages
build_gradsync release gradsync

gradsync=build/bin/gradsync
results=runs/demo

# Shows a command as a person would type it, runs it, and makes sure that it ends as it should.
show() {
  local expected=$1 status=0
  shift
  printf '\n$ %s\n' "$*"
  "$@" || status=$?
  [ "$status" -eq "$expected" ] || die "\"$*\" ended with status $status instead of $expected"
}

say "the same training, really distributed and simulated"
show 0 $gradsync run scenarios/quickstart.json --backend gloo --ranks 2 --out $results/gloo
show 0 $gradsync run scenarios/quickstart.json --backend sim --ranks 2 --out $results/sim
show 0 $gradsync compare $results/gloo $results/sim

printf '\n'
say "a job whose ranks have different numbers of batches (it hangs: status 4)"
show 4 $gradsync run scenarios/uneven-shards.json --backend sim --out $results/hang

printf '\n'
say "done. The command is $gradsync; the runs are in $results:"
for run in gloo sim hang; do echo "   $results/$run/result.json"; done
echo "   Each folder has a trace.json that opens in https://ui.perfetto.dev."
echo "   Next: $gradsync run scenarios/uneven-shards.json --backend gloo   (the same hang, for real)"
