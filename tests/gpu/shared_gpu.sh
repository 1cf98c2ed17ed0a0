#!/bin/sh
# shared_gpu.sh GRADSYNC SCENARIO: two ranks on GPU 0, which NCCL supports as an experiment from
# 2.30.3 on; before, ranks that look like two machines to it. Ends with 77 where there is no GPU.
set -u
gradsync=$1
scenario=$2
if ! "$gradsync" backends | grep -q '^nccl *yes'; then
  echo "SKIPPED: needs 1 GPU(s), this machine shows 0"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT

# Few channels: the kernels of both ranks must be on the GPU at the same time.
export NCCL_MAX_CTAS=8
if NCCL_MULTI_RANK_GPU_ENABLE=1 "$gradsync" run "$scenario" --backend nccl --ranks 2 --timeout 60s \
  --set 'nccl.device_ids=[0,0]' --out "$out/shared"; then
  exit 0
fi
echo "not by NCCL_MULTI_RANK_GPU_ENABLE; as two machines:"
export NCCL_SOCKET_IFNAME=lo NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_MAX_NCHANNELS=1
# shellcheck disable=SC2016  # the inner shell expands RANK
"$gradsync" launch --standalone --nproc-per-node 2 -- sh -c \
  'NCCL_HOSTID=machine$RANK exec "$0" run "$1" --backend nccl --timeout 60s \
     --set "nccl.device_ids=[0,0]" --out "$2"' "$gradsync" "$scenario" "$out/two"
