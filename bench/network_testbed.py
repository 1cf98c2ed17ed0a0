#!/usr/bin/python3
"""Holds predictions against real Gloo on a network of known bandwidth, on this machine, as root.

    sudo bench/network_testbed.py build/bin/gradsync [--grid full|accuracy|smoke] [--out DIR]

Every rank gets a network namespace with one cable (veth) to a bridge; `tc tbf` limits each cable in
both directions. Three things then happen for each bandwidth:

1. Calibration, on 2 ranks: all-reduces of two sizes, of which latency and bandwidth are fitted. They
   are all that the simulation is told of the network. With --host-model a third one, on all ranks,
   tells it how many bytes a second the machine's processors can move for all of them together
   (`cluster.software.host_bandwidth`): above about 250 Mbit/s they, not the cables, set the pace.
2. Measurement: the cells of the grid (ranks x bucket cap x model x overlap), trained by real Gloo.
3. Prediction: the same scenarios in the simulator.

Models are replayed, so that compute takes equally long on both sides whatever two cores have to do;
"overlap off" is the same model with every gradient ready at the end of backward. Without root, or
where the kernel refuses one of these, it ends with 77: CTest counts that as skipped.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from namespace_network import Network, run
from testbed_tables import plot, print_tables, progress

_SKIPPED = 77
_TIMEOUT_S = 300
_WARMUP_STEPS = 2  # before the buckets are rebuilt, and one more
_GRIDS = {
    "smoke": {"mbit": [250], "ranks": [2], "caps_mb": [1], "models": ["handbook"], "steps": 4},
    "accuracy": {
        "mbit": [50, 100, 250],
        "ranks": [2, 3, 4],
        "caps_mb": [1, 5, 25],
        "models": ["handbook", "giant-last"],
        "steps": 4,
    },
    "fast-network": {
        "mbit": [500, 1000],
        "ranks": [2, 3, 4],
        "caps_mb": [1, 5, 25],
        "models": ["handbook", "giant-last"],
        "steps": 7,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradsync", type=pathlib.Path, help="the built command")
    parser.add_argument("--grid", choices=_GRIDS, default="accuracy")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each cell (default 2)")
    parser.add_argument("--host-model", action="store_true", help="fit the processors, too")
    parser.add_argument("--out", type=pathlib.Path, help="folder for results.json and accuracy.svg")
    arguments = parser.parse_args()
    reason = _why_not_here()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(_SKIPPED)

    grid = _GRIDS[arguments.grid]
    with tempfile.TemporaryDirectory(prefix="gradsync-testbed-") as folder:
        bench = Bench(arguments.gradsync.resolve(), pathlib.Path(folder), grid, arguments.repeat)
        bench.host_model = arguments.host_model
        cells = []
        for mbit in grid["mbit"]:
            with Network(max(grid["ranks"]), mbit) as network:
                cells += bench.measure(network)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "results.json").write_text(json.dumps(cells, indent=1) + "\n")
        (arguments.out / "accuracy.svg").write_text(plot(cells))
    print_tables(cells)


def _why_not_here() -> "str | None":
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool} is missing (package iproute2)"
    try:
        with Network(1, 100):
            pass
    except SystemExit as refused:
        return f"no network of namespaces: {refused}"
    if subprocess.run(["chrt", "--fifo", "1", "true"], capture_output=True).returncode != 0:
        return "ranks may not run before everything else (chrt --fifo)"
    return None


def handbook_profile(overlap: bool) -> dict:
    """The handbook's transformer: 27 tensors, 1,567,208 parameters, in the times of a CPU."""
    shapes = [("embed.weight", [1000, 256])]
    for i in range(2):
        shapes += [
            (f"layers.{i}.attn.in_proj_weight", [768, 256]),
            (f"layers.{i}.attn.in_proj_bias", [768]),
            (f"layers.{i}.attn.out_proj.weight", [256, 256]),
            (f"layers.{i}.attn.out_proj.bias", [256]),
            (f"layers.{i}.ff.0.weight", [512, 256]),
            (f"layers.{i}.ff.0.bias", [512]),
            (f"layers.{i}.ff.2.weight", [256, 512]),
            (f"layers.{i}.ff.2.bias", [256]),
        ]
        shapes += [(f"layers.{i}.{n}.{k}", [256]) for n in ("norm1", "norm2") for k in ("weight", "bias")]
    shapes += [("head.weight", [1000, 256]), ("head.bias", [1000])]
    return _profile("handbook", shapes, forward_ms=100, backward_ms=400, overlap=overlap)


def giant_last_profile(overlap: bool) -> dict:
    """Twelve tensors of 400 KB, and one of 4 MB whose gradient is ready last."""
    shapes = [("giant", [1000, 1024])] + [(f"block.{i}", [100, 1024]) for i in range(12)]
    return _profile("giant-last", shapes, forward_ms=50, backward_ms=300, overlap=overlap)


_PROFILES = {"handbook": handbook_profile, "giant-last": giant_last_profile}


def one_tensor_profile(elements: int) -> dict:
    return _profile("one-tensor", [("all", [elements])], forward_ms=20, backward_ms=20, overlap=False)


def _profile(name: str, shapes: list, forward_ms: int, backward_ms: int, overlap: bool) -> dict:
    """Gradients are ready in reverse order, evenly over backward, or all at its end."""
    count = len(shapes)
    parameters = []
    for position, (parameter, shape) in enumerate(shapes):
        done = (count - position) / count if overlap else 1
        parameters.append({"name": parameter, "shape": shape, "ready": f"{backward_ms * done:.6f}ms"})
    return {
        "name": name,
        "source": "bench/network_testbed.py",
        "confidence": "synthetic",
        "forward": f"{forward_ms}ms",
        "optimizer": "15ms",
        "parameters": parameters,
    }


class Bench:
    """Runs scenarios on a Network and in the simulator, and takes their steps apart."""

    def __init__(self, gradsync: pathlib.Path, folder: pathlib.Path, grid: dict, repeat: int):
        self._gradsync, self._folder, self._grid, self._repeat = gradsync, folder, grid, repeat
        self._runs = 0
        self.host_model = False

    def measure(self, network: Network) -> list:
        cluster = self._calibrate(network)
        cells = []
        for model in self._grid["models"]:
            for overlap in (True, False):
                for cap_mb in self._grid["caps_mb"]:
                    for ranks in self._grid["ranks"]:
                        profile = _PROFILES[model](overlap)
                        real = [
                            self._real(network, profile, ranks, cap_mb) for _ in range(self._repeat)
                        ]
                        cell = {
                            "mbit": network.mbit,
                            "model": model,
                            "overlap": overlap,
                            "bucket_cap_mb": cap_mb,
                            "ranks": ranks,
                            "cluster": cluster,
                            "measured": {key: _spread(real, key) for key in ("step", "exposed")},
                            "predicted": self._simulated(cluster, profile, ranks, cap_mb),
                        }
                        cells.append(cell)
                        print(progress(cell), file=sys.stderr, flush=True)
        return cells

    def _calibrate(self, network: Network) -> dict:
        """Latency and bandwidth of a cable, from all-reduces of two sizes on 2 ranks.

        Of S bytes on 2 ranks, in two rounds of S / 2 over a way of two cables: 2 a + S / b.
        """
        sizes = [64 * 1024, 4 * 1024 * 1024]
        times = [self._allreduce_seconds(network, size, 2) for size in sizes]
        bytes_per_second = (sizes[1] - sizes[0]) / (times[1] - times[0])
        way_latency = max(0.0, (times[0] - sizes[0] / bytes_per_second) / 2)
        cable = {
            "bandwidth": f"{bytes_per_second / 1e9:.9f}GBps",
            "latency": f"{way_latency / 2 * 1e6:.3f}us",
        }
        cluster = {"nodes": 1, "gpus_per_node": network.ranks, "intra_node": cable}
        if self.host_model:
            # All ranks together send 2 (n - 1) S bytes.
            moved = 2 * (network.ranks - 1) * sizes[1]
            seconds = self._allreduce_seconds(network, sizes[1], network.ranks)
            cluster["software"] = {"host_bandwidth": f"{moved / seconds / 1e9:.9f}GBps"}
        return cluster

    def _allreduce_seconds(self, network: Network, size: int, ranks: int) -> float:
        steps = []
        for _ in range(self._repeat):
            steps += self._real(network, one_tensor_profile(size // 4), ranks, 25)["exposed_all"]
        return statistics.median(steps)

    def _real(self, network: Network, profile: dict, ranks: int, cap_mb: int) -> dict:
        scenario = self._scenario(profile, ranks, cap_mb, {})
        out = scenario.parent / "out"
        port = 20000 + self._runs % 20000  # the namespaces are ours: nobody else has ports there
        processes = []
        try:
            for rank in range(ranks):
                environment = dict(
                    os.environ,
                    RANK=str(rank),
                    LOCAL_RANK="0",
                    WORLD_SIZE=str(ranks),
                    MASTER_ADDR=network.address(0),
                    MASTER_PORT=str(port),
                    GLOO_SOCKET_IFNAME="eth0",
                )
                # Before everything else on the machine, which would be measured with it.
                command = ["chrt", "--fifo", "1", "ip", "netns", "exec", network.namespace(rank)]
                command += [str(self._gradsync), "run"]
                command += [str(scenario), "--backend", "gloo", "--out", str(out)]
                processes.append(
                    subprocess.Popen(
                        command,
                        env=environment,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE,
                        text=True,
                    )
                )
            errors = [process.communicate(timeout=_TIMEOUT_S)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
        for rank, process in enumerate(processes):
            if process.returncode != 0:
                sys.exit(f"rank {rank} of {scenario} ended with {process.returncode}:\n{errors[rank]}")
        return _steps(out)

    def _simulated(self, cluster: dict, profile: dict, ranks: int, cap_mb: int) -> dict:
        scenario = self._scenario(profile, ranks, cap_mb, {"cluster": cluster})
        out = scenario.parent / "out"
        command = [str(self._gradsync), "run", str(scenario), "--backend", "sim", "--out", str(out)]
        run(command)
        steps = _steps(out)
        return {key: steps[key] for key in ("step", "exposed")}

    def _scenario(self, profile: dict, ranks: int, cap_mb: int, more: dict) -> pathlib.Path:
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        (folder / "profile.json").write_text(json.dumps(profile))
        steps = _WARMUP_STEPS + self._grid["steps"]
        scenario = {
            "name": profile["name"],
            "ranks": ranks,
            "timeout": "120s",
            "model": {"kind": "replay", "profile": "profile.json"},
            "data": {"kind": "indices", "samples": ranks * steps},
            "train": {"batch_size": 1, "max_steps": steps, "hash_every": 0, "clip_grad_norm": None},
            "ddp": {"bucket_cap_mb": cap_mb},
            **more,
        }
        path = folder / "scenario.json"
        path.write_text(json.dumps(scenario))
        return path


def _steps(out: pathlib.Path) -> dict:
    """Medians, in seconds, over the steps after the warm-up, of the slowest rank in each."""
    steps: dict = {}
    for line in (out / "steps.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["step"] >= _WARMUP_STEPS:
            steps.setdefault(record["step"], []).append(record)
    lengths = [max(r["end"] - r["begin"] for r in records) for records in steps.values()]
    exposed = [
        max(r["backward_end"] - r["backward_compute_end"] for r in records)
        for records in steps.values()
    ]
    return {
        "step": statistics.median(lengths),
        "exposed": statistics.median(exposed),
        "exposed_all": exposed,
    }


def _spread(runs: list, key: str) -> dict:
    values = [run[key] for run in runs]
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


if __name__ == "__main__":
    main()
