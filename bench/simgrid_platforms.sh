#!/usr/bin/env bash
# Runs an all-reduce on every SimGrid platform in a folder and below: each either runs or is refused
# with a sentence (exit status 2), and none ends gradsync by an assertion.
#
#     bench/simgrid_platforms.sh GRADSYNC FOLDER        FOLDER: a checkout's examples/platforms, say
#
# One line a platform: what it took, or why it was refused. Ends with 1 if one did neither.
set -uo pipefail

[ $# -eq 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
gradsync=$1
folder=$2
ran=0 refused=0 broken=0
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

while IFS= read -r -d '' platform; do
  name=${platform#"$folder"/}
  time=$(timeout 120 "$gradsync" bench allreduce --backend sim --ranks 2 -b 4M -e 4M -c 0 \
    --timeout 24h --set "cluster.platform_file=$platform" --json 2>"$errors")
  status=$?
  case $status in
    0)
      ran=$((ran + 1))
      printf '%-50s %s us\n' "$name" "$(sed -n 's/.*"time": \([0-9.e+-]*\).*/\1/p' <<<"$time")"
      ;;
    2)
      refused=$((refused + 1))
      printf '%-50s refused: %s\n' "$name" "$(head -n 1 "$errors")"
      ;;
    *)
      broken=$((broken + 1))
      printf '%-50s ENDS WITH %s: %s\n' "$name" "$status" "$(head -n 1 "$errors")"
      ;;
  esac
done < <(find "$folder" -name '*.xml' -print0 | sort -z)

printf '%d ran, %d were refused, %d did neither\n' "$ran" "$refused" "$broken"
[ "$broken" -eq 0 ]
