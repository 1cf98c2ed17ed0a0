#!/usr/bin/env python3
"""Healthy jobs, drawn at random: none may be called faulty.

  healthy_jobs.py GRADSYNC                        100 jobs of seed 1
  healthy_jobs.py GRADSYNC --count 500 --seed 7   by hand
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import sys
import tempfile

import job


def shard_sizes(draw, world, batch):
    """Uneven shards, for a join: some ranks have batches more than others."""
    return [batch * draw.randint(1, 6) for _ in range(world)]


def sampler_and_data(draw, world, batch, accumulate, joins):
    """How the data are dealt, so that all samples count alike."""
    sampler = {"seed": draw.randint(0, 99)}
    if draw.random() < 0.2:
        sampler["shuffle"] = False
    if joins:
        sizes = shard_sizes(draw, world, batch * accumulate)
        sampler["shard_sizes"] = sizes
        return sampler, sum(sizes)
    per_rank = batch * accumulate * draw.randint(1, 4)
    samples = per_rank * world
    if draw.random() < 0.5:
        sampler["drop_last"] = True
        samples += draw.randint(0, world - 1)
    elif batch == 1 and accumulate == 1:
        samples -= draw.randint(0, world - 1)  # padded
    return sampler, max(samples, 1)


def ddp_options(draw, joins):
    ddp = {"bucket_cap_mb": draw.choice([0.001, 0.01, 0.1, 25])}
    for key, share in (("find_unused_parameters", 0.25), ("static_graph", 0.2),
                       ("gradient_as_bucket_view", 0.4)):
        if draw.random() < share:
            ddp[key] = True
    if ddp.get("static_graph"):
        ddp.pop("find_unused_parameters", None)
    if draw.random() < 0.3:
        ddp["broadcast_buffers"] = draw.random() < 0.5
    if joins:
        ddp["join"] = {"enable": True}
    return ddp


def faults(draw, world, epochs):
    """What healthy programs do beside the training, on every rank alike."""
    extra = []
    if world > 2 and draw.random() < 0.3:
        members = sorted(draw.sample(range(world), draw.randint(2, world)))
        extra.append({"kind": "group", "name": "side", "members": members})
        extra.append({"kind": "collective", "ranks": members, "group": "side", "at": "step_end",
                      "step": 0, "steps": 0, "op": "allreduce", "elements": 4, "name": "side metric",
                      "site": "side.py:3"})
    if draw.random() < 0.3:
        extra.append({"kind": "evaluate", "step": draw.randint(0, 1),
                      "through_ddp": draw.random() < 0.5})
    if draw.random() < 0.3:
        extra.append({"kind": "collective", "at": "checkpoint", "step": 0, "op": "barrier",
                      "name": "saved", "site": "save.py:9"})
    if epochs > 1 and draw.random() < 0.3:
        extra.append({"kind": "collective", "at": "epoch_end", "op": "allgather", "elements": 2,
                      "name": "epoch metric", "site": "train.py:70"})
    if draw.random() < 0.15:
        extra.append({"kind": "skip", "step": 1, "message": "an empty batch, on all ranks"})
    if draw.random() < 0.15:
        extra.append({"kind": "resume", "to_step": 1})
    return extra


def draw_job(seed):
    draw = random.Random(seed)
    world = draw.randint(1, 8)
    batch = draw.choice([1, 1, 2, 3])
    accumulate = draw.choice([1, 1, 1, 2, 3])
    epochs = draw.choice([1, 1, 2, 3])
    joins = world > 1 and draw.random() < 0.3
    sampler, samples = sampler_and_data(draw, world, batch, accumulate, joins)
    train = {"batch_size": batch, "accumulate_steps": accumulate, "epochs": epochs,
             "clip_grad_norm": draw.choice([None, 1.0, 0.1])}
    if accumulate > 1:
        train["no_sync"] = draw.random() < 0.7
    if not joins and draw.random() < 0.2:
        train["max_steps"] = draw.randint(1, 4)
    optimizer = {"kind": draw.choice(["sgd", "adamw"])}
    if draw.random() < 0.3:
        optimizer["param_groups"] = [{"params": ["*bias"], "weight_decay": 0}]
    scenario = {"name": f"healthy-{seed}", "ranks": world, "model": job.MODEL,
                "data": job.data(samples), "sampler": sampler, "train": train,
                "optimizer": optimizer, "ddp": ddp_options(draw, joins), "seed": draw.randint(0, 99),
                "detail": draw.random() < 0.5, "output": {}}
    if draw.random() < 0.3:
        scenario["output"]["flight_recorder_size"] = 16
    if not joins:
        scenario["faults"] = faults(draw, world, epochs)
    if draw.random() < 0.7:
        scenario["simulation"] = {"fidelity": draw.choice(["message", "flow", "analytic"])}
    return scenario


def is_healthy(found):
    return found is None or found["verdict"] == "clean"


def try_job(gradsync, seed):
    """What is wrong with what is said of one job; empty where nothing is."""
    scenario = draw_job(seed)
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch) / "run"
        result = job.run(gradsync, scenario, directory)
        again = job.diagnose(gradsync, directory)
        wrong = []
        if result["outcome"] != "completed" or not is_healthy(result["diagnosis"]):
            wrong.append(f"{result['outcome']}, {job.brief(result['diagnosis'])}: "
                         f"{(result['diagnosis'] or {}).get('because')}")
        if not is_healthy(again):
            wrong.append(f"read back: {job.brief(again)}: {again['because']}")
    return "\n".join(wrong + [json.dumps(scenario)]) if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradsync")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seeds = [arguments.seed * 1_000_000 + i for i in range(arguments.count)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(lambda s: try_job(arguments.gradsync, s), seeds) if text]
    for text in found:
        print(text, file=sys.stderr)
    print(f"{arguments.count - len(found)} of {arguments.count} healthy jobs are called so")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
