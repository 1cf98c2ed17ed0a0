#!/bin/sh
# hang_lab.sh GRADSYNC FOLDER OUT: every scenario of the hang lab on real GPUs, four ranks each. Ends
# with 77 where there are fewer.
set -u
wanted=4
there=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
if [ "$there" -lt "$wanted" ]; then
  echo "SKIPPED: needs $wanted GPU(s), this machine shows $there"
  exit 77
fi
exec "$1" check "$2" --backend nccl --out "$3"
