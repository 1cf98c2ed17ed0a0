#!/usr/bin/python3
"""Runs the same small trainings through PyTorch's DDP and through gradsync, and compares.

Both train on Gloo, one process a rank. Compared are, on every rank: the sampler's indices, the
sequence of collectives, the buckets, the gradients after the reduction, the clipped norm, the
parameters and buffers at the end, and the errors.

Where each side's own kernels compute the gradients, rounding differs, and an optimizer that divides
by a gradient's magnitude amplifies it from step to step. So gradsync trains such a case twice: for
itself (the parameters after 10 steps are compared), and on PyTorch's parameters, given to it at the
start of each step (the gradients, norms and losses of each step are compared).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import cases
import compare
import ranks
from results import Result

_TORCH_RUNNER = pathlib.Path(__file__).with_name("torch_runner.py")
_CASE_SECONDS = 120  # a hang of either side ends here
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "USE_LIBUV": "0",  # the Debian 13 build of PyTorch has no libuv, and asks for it all the same
    "PYTHONWARNINGS": "ignore",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TORCH_DISTRIBUTED_DEBUG": "INFO",  # PyTorch's errors then name parameters
}


def main() -> int:
    arguments = _parse_arguments()
    selected = [
        case
        for case in cases.draw(arguments.seed, arguments.cases)
        if arguments.world in (None, case["world"]) and arguments.only in case["name"]
    ]
    if not selected:
        sys.exit("no case fits --world and --only")
    if arguments.keep:
        return _run(selected, arguments.keep, arguments.runner)
    with tempfile.TemporaryDirectory(prefix="gradsync-torch-") as folder:
        return _run(selected, pathlib.Path(folder), arguments.runner)


def _run(selected: list, folder: pathlib.Path, runner: pathlib.Path) -> int:
    version = _torch_version()
    print(f"PyTorch {version[0]}.{version[1]}, {len(selected)} cases", flush=True)
    for case in selected:
        case["pytorch_version"] = version
        directory = folder / case["name"]
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "case.json").write_text(json.dumps(case, indent=1))
    for world in sorted({case["world"] for case in selected}):
        files = [folder / case["name"] / "case.json" for case in selected if case["world"] == world]
        failure = ranks.run(
            [sys.executable, _TORCH_RUNNER, *files], world, _CASE_SECONDS * len(files), _ENVIRONMENT
        )
        if failure:
            print(f"PyTorch, world {world}: {failure}", flush=True)
    different = 0
    for case in selected:
        difference = _run_gradsync(case, folder / case["name"], runner)
        print(f"{case['name']}: {difference or 'equal'}", flush=True)
        different += difference is not None
    print(f"{len(selected) - different} of {len(selected)} cases are equal")
    return 1 if different else 0


def _run_gradsync(case: dict, directory: pathlib.Path, runner: pathlib.Path) -> "str | None":
    sides = ["gradsync"]
    if case["model"]["kind"] != "fed":
        sides.append("gradsync-stepwise")
    for side in sides:
        command = [runner, directory / "case.json", *(["--stepwise"] if side != sides[0] else [])]
        failure = ranks.run(command, case["world"], _CASE_SECONDS, _ENVIRONMENT)
        if failure:
            return f"{side}: {failure}"
    missing = [rank for rank in range(case["world"]) if not (directory / f"torch-{rank}.json").exists()]
    if missing:
        return f"PyTorch left no result of rank {missing[0]}"
    for rank in range(case["world"]):
        theirs = Result(directory / f"torch-{rank}")
        for side in sides:
            ours = Result(directory / f"{side}-{rank}")
            difference = compare.first_difference(case, ours, theirs, stepwise=side != sides[0])
            if difference:
                return f"rank {rank}, {side}: {difference}"
    return None


def _torch_version() -> list:
    command = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [int(part) for part in text.split(".")[:2]]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", type=pathlib.Path, required=True,
                        help="the program torch_differential_runner of the build")
    parser.add_argument("--world", type=int, help="only cases of this world size")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--seed", type=int, default=1, help="of the generator of cases")
    parser.add_argument("--cases", type=int, default=84, help="how many are drawn, over all worlds")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="write cases and results to this folder and leave them there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
