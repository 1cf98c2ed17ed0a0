#!/usr/bin/env python3
"""Estimates the constants of simulator/plan/nccl_pace.cpp from the tables in scenarios/validation.

    bench/fit_constants.py                prints the constants, and the errors with and without each table
    bench/fit_constants.py --left-out     also writes into each table what the others alone would say

The model is that of simulator/plan in closed form (nccl_closed_form.py). All tables are fitted at once, each
part of a table (up to 1 MiB, above) weighted by the inverse of its budget; then once more for each table
without it. A constant that no other table says anything about stays near what NCCL's tables and data
sheets say (PRIORS).
"""

import argparse
import json
import math
import pathlib

from nccl_closed_form import LINK, MIB, Machines, time_of

ROOT = pathlib.Path(__file__).resolve().parent.parent / "scenarios"

# What is known without a table. us, GB/s; shares of what NCCL or a data sheet counts for a link.
PRIORS = {"launch.volta": 8, "launch.hopper": 8, "launch.pcie": 8, "launch.rccl": 8,
          "hop.volta": 1, "hop.ampere": 2, "ll.volta": 39, "ll.ampere": 87.7, "ll.hopper": 141, "ll.pcie": 6,
          "link.volta": 1, "link.ampere": 1, "link.pcie": 0.8, "link.rccl": 0.8, "channel.hopper": 12,
          "channel.ampere": 12, "nvls.hopper": 320, "step.hopper": 0.5, "nvls.blackwell": 640,
          "step.blackwell": 0.5, "neighbour": 0.5, "payload.infiniband": 0.93, "payload.roce": 0.93,
          "payload.efa": 0.93, "payload.tcpx": 0.93, "payload.slingshot": 0.93, "latency.roce": 5,
          "latency.tcpx": 10, "handshake.slingshot": 10, "rate.tcp": 1, "latency.tcp": 30, "torch": 10}
SHARED = {"launch.blackwell": "launch.hopper", "channel.volta": "channel.hopper",
          "channel.blackwell": "channel.hopper", "channel.pcie": "channel.hopper", "channel.rccl": "channel.hopper"}
FIXED = {"launch.ampere": 0, "ll.blackwell": 250, "hop.hopper": 1, "hop.blackwell": 1, "hop.pcie": 1, "hop.rccl": 0}


def size_of(text):
    units = {"K": 1024, "M": MIB, "G": 1024 * MIB}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


class Constants:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, name):
        name = SHARED.get(name, name)
        return FIXED[name] if name in FIXED else self.values.get(name, 0 if name[:4] in ("late", "hand", "ll.r") else 1)


def load_tables():
    tables = {}
    for path in sorted((ROOT / "validation").glob("allreduce-*.json")):
        table = json.loads(path.read_text())
        cluster = table["scenario"]["cluster"]
        if isinstance(cluster, str):
            cluster = json.loads((path.parent / cluster).read_text())
        if cluster.get("library") == "gloo":
            continue
        rows = []
        for row in table["rows"]:
            ranks, size = row.get("ranks", table["scenario"].get("ranks")), size_of(row["size"])
            machines = Machines(cluster, ranks)
            measured = row.get("time_us") or size * 2 * (ranks - 1) / ranks / (row["busbw"] * 1e3)
            rows.append((machines, size, measured))
        tables[path] = rows
    return tables


def chosen(tables, values):
    constants = Constants(values)
    return {path: [(m, size, time) + m.choose(size, constants) for m, size, time, *_ in rows]
            for path, rows in tables.items()}


def is_outlier(rows):
    """By the table alone: falls by more than 20% with growing size, or far too slow at 1 GiB and above."""
    for (m, size, time, *_), (after, _, later, *_) in zip(rows, rows[1:]):
        if m.ranks == after.ranks and later < 0.8 * time:
            return True
    return False


def parts(constants, tables):
    for path, rows in tables.items():
        errors = {False: [], True: []}
        for machines, size, measured, algorithm, protocol in rows:
            simulated = time_of(machines, constants, size, algorithm, protocol)
            errors[size > MIB].append(abs(math.log(simulated / measured)))
        for large, values in errors.items():
            if values:
                yield path, large, len(values), sum(values) / len(values)


def loss(values, tables):
    total = weights = 0
    for _, large, count, error in parts(Constants(values), tables):
        weight = min(count, 12) / 12 * (10 if large else 4)
        total, weights = total + weight * error, weights + weight
    return total / weights + 1e-4 * sum(math.log(values[k] / PRIORS[k]) ** 2 for k in PRIORS)


def fit(tables, start=PRIORS, sweeps=20, first_step=0.25):
    values, steps = dict(start), {name: first_step for name in PRIORS}
    best = loss(values, tables)
    for _ in range(sweeps):
        for name in PRIORS:
            before = best
            for sign in (1, -1):
                while True:
                    old, values[name] = values[name], values[name] * math.exp(sign * steps[name])
                    now = loss(values, tables)
                    if now >= best - 1e-10:
                        values[name] = old
                        break
                    best = now
                if best < before:
                    break
            steps[name] *= 1.3 if best < before else 0.5
    return values


def fit_without(tables, values):
    """From the fit to all tables; what these say nothing about begins at its prior."""
    start = dict(values)
    for name in PRIORS:
        errors = [list(parts(Constants({**values, name: values[name] * factor}), tables)) for factor in (1, 1.2)]
        if errors[0] == errors[1]:
            start[name] = PRIORS[name]
    return fit(tables, start, sweeps=5, first_step=0.08)


def assignments(machines, values):
    """What the constants are as keys of a cluster."""
    constants, row, keys = Constants(values), machines.row, {}
    keys["cluster.nccl.launch"] = f"{constants['launch.' + row]:.3g}us"
    if row != "rccl":
        keys["cluster.nccl.hop_scale"] = round(constants["hop." + row], 3)
        keys["cluster.nccl.channel_bandwidth"] = f"{constants['channel.' + row]:.4g}GBps"
    if constants["ll." + row] and row in ("volta", "ampere", "hopper", "pcie"):
        keys["cluster.nccl.ll_bandwidth"] = f"{constants['ll.' + row]:.4g}GBps"
    if row in ("hopper", "blackwell"):
        keys["cluster.nccl.nvls_bandwidth"] = f"{constants['nvls.' + row]:.4g}GBps"
        keys["cluster.nccl.nvls_step"] = f"{constants['step.' + row] * 1e3:.4g}ns"
    else:
        keys["cluster.intra_node.bandwidth"] = f"{LINK[row] * constants['link.' + row]:.4g}GBps"
    if machines.torch:
        keys["cluster.software.per_operation"] = f"{constants['torch']:.3g}us"
    if machines.nodes > 1:
        kind = machines.network
        payload = min(0.93, constants["rate.tcp"] / machines.line) if kind == "tcp" else constants["payload." + kind]
        keys["cluster.network.payload"] = round(payload, 4)
        keys["cluster.network.latency"] = f"{constants['latency.' + kind]:.3g}us"
        keys["cluster.network.handshake"] = f"{constants['handshake.' + kind]:.3g}us"
    return keys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--left-out", action="store_true", help="write what the other tables say into each table")
    options = parser.parse_args()
    tables = load_tables()
    outliers = [path for path, rows in tables.items() if is_outlier(rows)]
    values = PRIORS
    for sweeps in (10, 10, 20):  # what is chosen depends on the constants
        tables = chosen(tables, values)
        healthy = {path: rows for path, rows in tables.items() if path not in outliers}
        values = fit(healthy, values, sweeps)
    for name, value in values.items():
        print(f"{name:22} {value:10.4g}")
    print(f"\n{'table':40} {'part':6} {'rows':>4} {'fitted':>8} {'without':>8}")
    for path, rows in tables.items():
        without = fit_without({other: r for other, r in healthy.items() if other != path}, values)
        here = {path: rows}
        for (_, large, count, error), (*_, blind) in zip(parts(Constants(values), here), parts(Constants(without), here)):
            mark = "  outlier" if path in outliers else ""
            print(f"{path.stem:40} {'large' if large else 'small':6} {count:4} {math.expm1(error):8.1%} "
                  f"{math.expm1(blind):8.1%}{mark}", flush=True)
        if options.left_out:
            machines = max((row[0] for row in rows), key=lambda m: m.nodes)
            lines = path.read_text().splitlines()
            lines = [line for line in lines if not line.startswith('  "left_out"')]
            at = next(i for i, line in enumerate(lines) if line.startswith('  "scenario"'))
            lines.insert(at, f'  "left_out": {json.dumps(assignments(machines, without))},')
            path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
