#!/usr/bin/python3
"""Times training steps of the handbook's model with PyTorch, on Gloo; one process a rank.

    RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=p bench/torch_step.py [--no-ddp]

Rank 0 prints {"step_seconds": [...]}: of every step after the warm-up, on the slowest rank. A step
is what `gradsync run scenarios/quickstart.json` does in one: draw a batch of 32 sequences of 32
tokens, zero_grad, forward, backward, clip to norm 1, AdamW.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "torch"))
from handbook_model import HandbookModel  # noqa: E402

_BATCH, _SEQ_LEN, _VOCABULARY, _SAMPLES = 32, 32, 1000, 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--no-ddp", action="store_true")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = HandbookModel()
    trained = model if arguments.no_ddp else DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(_VOCABULARY, (_SAMPLES, _SEQ_LEN + 1))
    sampler = DistributedSampler(range(_SAMPLES), seed=42)

    seconds = []
    epoch = 0
    while len(seconds) < arguments.warmup + arguments.steps:
        sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        for indices in order.split(_BATCH):
            start = time.perf_counter()
            batch = tokens[indices]
            optimizer.zero_grad(set_to_none=True)
            trained(batch[:, :-1], batch[:, 1:]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seconds.append(time.perf_counter() - start)
        epoch += 1
    slowest = torch.tensor(seconds[arguments.warmup :][: arguments.steps])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(json.dumps({"step_seconds": slowest.tolist()}))


if __name__ == "__main__":
    main()
