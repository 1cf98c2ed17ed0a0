#!/usr/bin/python3
"""Simulates the same all-reduces with SimGrid's SMPI and with gradsync, on this machine.

    cmake --build build --target simulator_speed && bench/smpi_compare.py build/bin/simulator_speed

SMPI replays a trace of MPI calls (no program runs), its all-reduce is its ring ("lr"), its network
CM02 without TCP's window, as gradsync's. Both simulate every message of the ring; a last column
has gradsync's flow fidelity. Prints a table in Markdown: the best of the rounds.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile
import time

_ELEMENTS = 6_250_000  # float32: 25 MB
_FLOAT = 5  # of SMPI's replay
_CASES = [(64, 14), (256, 1), (256, 14), (1024, 1)]  # ranks, all-reduces
_TIMEOUT_S = 900
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="r" suffix="" radical="0-{last}" speed="1Gf" bw="12.5GBps" lat="2us"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator_speed", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--largest", type=int, default=1024, help="leave out cases of more ranks")
    arguments = parser.parse_args()

    print("| ranks | all-reduces of 25 MB | SMPI, s | gradsync message, s | ratio | flow, s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for ranks, count in _CASES:
        if ranks > arguments.largest:
            continue
        best = {}
        for _ in range(arguments.rounds):
            for name, seconds in (
                ("smpi", _smpi(ranks, count)),
                ("message", _gradsync(arguments.simulator_speed, "message", ranks, count)),
                ("flow", _gradsync(arguments.simulator_speed, "flow", ranks, count)),
            ):
                best[name] = min(seconds, best.get(name, seconds))
        print(
            f"| {ranks:,} | {count} | {best['smpi']:.2f} | {best['message']:.2f} "
            f"| {best['smpi'] / best['message']:.1f} | {best['flow']:.3f} |",
            flush=True,
        )


def _smpi(ranks: int, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "platform.xml").write_text(_PLATFORM.format(last=ranks - 1))
        (place / "hosts").write_text("".join(f"r{rank}\n" for rank in range(ranks)))
        for rank in range(ranks):
            calls = f"{rank} allreduce {_ELEMENTS} 0 {_FLOAT}\n" * count
            (place / f"{rank}.trace").write_text(f"{rank} init\n{calls}{rank} finalize\n")
        (place / "traces").write_text("".join(f"{rank}.trace\n" for rank in range(ranks)))
        begin = time.monotonic()
        subprocess.run(
            ["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", "hosts",
             "-replay", "traces", "--cfg=smpi/allreduce:lr", "--cfg=network/model:CM02",
             "--cfg=network/TCP-gamma:0", "--log=root.thresh:error"],
            cwd=place, check=True, capture_output=True, timeout=_TIMEOUT_S,
        )
        return time.monotonic() - begin


def _gradsync(program: pathlib.Path, fidelity: str, ranks: int, count: int) -> float:
    output = subprocess.run(
        [program, fidelity, str(ranks), str(count), "1"],
        check=True, capture_output=True, text=True, timeout=_TIMEOUT_S,
    ).stdout
    return float(re.search(r"([0-9.]+) s,", output).group(1))


if __name__ == "__main__":
    main()
