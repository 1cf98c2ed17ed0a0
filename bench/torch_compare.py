#!/usr/bin/python3
"""Compares whole training steps of gradsync and of PyTorch DDP, on Gloo, on this machine.

    cmake --build build --target torch_step && bench/torch_compare.py build/bin/torch_step

The two take turns, round by round, so that whatever else the machine does hits both. Each round
starts new processes (one a rank, one BLAS thread each) and gives the median step of its slowest
rank; a row of the table is the median over the rounds, with the smallest and largest beside it.
Rows "no DDP" train the bare model on one rank: what DDP itself costs is the ratio to the row below.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import pathlib

_HERE = pathlib.Path(__file__).resolve().parent
_TIMEOUT_S = 600
_CONFIGURATIONS = [(1, True), (1, False), (2, False), (4, False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("torch_step", type=pathlib.Path, help="the built gradsync side")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    sides = {
        "gradsync": [str(arguments.torch_step.resolve())],
        "PyTorch": ["/usr/bin/python3", str(_HERE / "torch_step.py")],
    }
    medians: dict[tuple, list[float]] = {}
    for turn in range(arguments.rounds):
        for world, bare in _CONFIGURATIONS:
            order = list(sides) if turn % 2 == 0 else list(reversed(sides))
            for side in order:
                options = ["--steps", str(arguments.steps), "--warmup", str(arguments.warmup)]
                seconds = _run(sides[side] + options + (["--no-ddp"] if bare else []), world)
                medians.setdefault((side, world, bare), []).append(statistics.median(seconds))
    _print_table(medians)


def _run(command: list[str], world: int) -> list[float]:
    """Starts one process a rank and returns rank 0's step times in seconds."""
    port = _free_port()
    processes = []
    try:
        for rank in range(world):
            environment = dict(
                os.environ,
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(world),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
                OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1",
                GLOO_SOCKET_IFNAME="lo",
            )
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
        outputs = [process.communicate(timeout=_TIMEOUT_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for rank, process in enumerate(processes):
        if process.returncode != 0:
            sys.exit(f"rank {rank} of {' '.join(command)} ended with {process.returncode}")
    return json.loads(outputs[0])["step_seconds"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _print_table(medians: dict[tuple, list[float]]) -> None:
    print("| ranks | gradsync, ms (min to max) | PyTorch, ms (min to max) | gradsync / PyTorch |")
    print("| --- | --- | --- | --- |")
    for world, bare in _CONFIGURATIONS:
        ours, theirs = (medians[side, world, bare] for side in ("gradsync", "PyTorch"))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        name = f"{world}, no DDP" if bare else str(world)
        print(f"| {name} | {_cell(ours)} | {_cell(theirs)} | {ratio:.2f} |")
    for side in ("gradsync", "PyTorch"):
        cost = statistics.median(
            a / b for a, b in zip(medians[side, 1, False], medians[side, 1, True])
        )
        print(f"\nDDP's own cost, one rank, with / without, {side}: {cost:.3f}")


def _cell(seconds: list[float]) -> str:
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    return f"{middle * 1e3:.1f} ({low * 1e3:.1f} to {high * 1e3:.1f})"


if __name__ == "__main__":
    main()
