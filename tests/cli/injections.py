#!/usr/bin/env python3
"""Kills (SIGKILL) or stops (SIGSTOP) a random rank of a real Gloo job at a random moment, and holds the
job to its promise: it ends within its timeout and two seconds, with a status that says what happened,
no process survives, and every other rank has left a dump.

    injections.py GRADSYNC [--count 3] [--seed 1] [--ranks 4]
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 3
# What a loaded machine may add to start-up and to writing down the results.
SLACK_S = 2

SCENARIO = {
    "backend": "gloo",
    "timeout": f"{TIMEOUT_S}s",
    "model": {"kind": "transformer", "vocab_size": 64, "d_model": 16, "nhead": 2, "num_layers": 1,
              "dim_feedforward": 32},
    "data": {"kind": "synthetic_tokens", "samples": 4096, "seq_len": 8, "vocab_size": 64},
    "train": {"batch_size": 2, "epochs": 100000, "hash_every": 0},
}


def rank_processes(parent):
    """The workers of a run, by rank."""
    found = {}
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for pid in map(int, children):
        try:
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for entry in environment:
            if entry.startswith(b"RANK="):
                found[int(entry[5:])] = pid
    return found


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def inject(gradsync, folder, ranks, chance):
    scenario = folder / "scenario-in.json"
    scenario.write_text(json.dumps({**SCENARIO, "ranks": ranks}))
    out = folder / "run"
    run = subprocess.Popen([gradsync, "run", scenario, "--out", out, "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 60
    while len(rank_processes(run.pid)) < ranks or not (out / "ranks" / "store").exists():
        if time.monotonic() > deadline or run.poll() is not None:
            run.kill()
            return "the ranks did not start"
        time.sleep(0.02)
    time.sleep(chance.uniform(0.0, 1.0))
    processes = rank_processes(run.pid)
    victim = chance.randrange(ranks)
    stop = chance.random() < 0.5
    os.kill(processes[victim], signal.SIGSTOP if stop else signal.SIGKILL)
    begin = time.monotonic()
    try:
        output, _ = run.communicate(timeout=TIMEOUT_S + 30)
    except subprocess.TimeoutExpired:
        run.kill()
        return "the run did not end"
    took = time.monotonic() - begin
    what = f"{'stop' if stop else 'kill'} of rank {victim}: status {run.returncode} after {took:.2f} s"
    if took > (TIMEOUT_S if stop else 0) + 2 + SLACK_S:
        return what + ", too late"
    if run.returncode != (4 if stop else 6):
        return what + f", expected {4 if stop else 6}"
    survivors = [pid for pid in processes.values() if alive(pid)]
    if survivors:
        return what + f", survivors {survivors}"
    diagnosis = json.loads(output)["diagnosis"]
    if diagnosis["ranks"] != [victim]:
        return what + f", blamed {diagnosis['ranks']} ({diagnosis['kind']})"
    for rank in range(ranks):
        if rank != victim and not (out / "ranks" / f"rank-{rank}.json").exists():
            return what + f", no dump of rank {rank}"
    print(f"ok: {what}, {diagnosis['kind']}", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradsync")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    failures = []
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            problem = inject(options.gradsync, pathlib.Path(folder), options.ranks, chance)
        if problem:
            print(f"not ok: injection {number}: {problem}", flush=True)
            failures.append(problem)
    print(f"{options.count - len(failures)} of {options.count} injections ended as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
