#!/usr/bin/env python3
"""What must not change the verdict on any entry of scenarios/hangs: collectives that every rank issues
beside the training, in a group of their own or as a checkpoint's barrier, an evaluation, and the
scenario's list of faults, of which the rules must not know.

  lab_properties.py GRADSYNC [--every N] [--only PREFIX]
"""

import argparse
import concurrent.futures
import json
import pathlib
import sys
import tempfile

import job

LAB = pathlib.Path(__file__).resolve().parents[3] / "scenarios" / "hangs"


def control(scenario, point, **more):
    ranks = list(range(scenario.get("ranks", 1)))
    return [{"kind": "group", "name": "control", "members": ranks},
            {"kind": "collective", "group": "control", "at": point, "name": "control point", **more}]


ADDITIONS = {
    "a second group at step_end": lambda s: control(s, "step_end", step=0, steps=0),
    "a second group at epoch_end": lambda s: control(s, "epoch_end"),
    "an evaluation": lambda s: [{"kind": "evaluate", "step": 0, "steps": 0, "through_ddp": False}],
    "a checkpoint's barrier": lambda s: [{"kind": "collective", "at": "checkpoint", "step": 0,
                                          "steps": 0, "op": "barrier", "name": "saved"}],
}

# Entries in which an addition is no bystander: it changes which mistake is made first.
EXCEPTIONS = set()


def verdict(diagnosis):
    return None if diagnosis is None else tuple(
        tuple(v) if isinstance(v, list) else v
        for v in (diagnosis["kind"], diagnosis["ranks"], diagnosis["step"]))


def try_entry(gradsync, file):
    scenario = json.loads(file.read_text())
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        def run(name, given):
            directory = pathlib.Path(scratch) / name
            return directory, job.run(gradsync, given, directory)["diagnosis"]
        plain = {key: value for key, value in scenario.items() if key not in ("$schema", "expect")}
        directory, truth = run("plain", plain)
        stored = json.loads((directory / "scenario.json").read_text())
        stored["faults"] = []
        (directory / "scenario.json").write_text(json.dumps(stored))
        found = job.diagnose(gradsync, directory)
        if verdict(found) != verdict(truth):
            wrong.append(f"{file.stem}, without its faults: {job.brief(found)} for {job.brief(truth)}")
        for number, (name, more) in enumerate(ADDITIONS.items()):
            if (file.stem, name) in EXCEPTIONS:
                continue
            try:
                _, found = run(f"more-{number}",
                               {**plain, "faults": plain.get("faults", []) + more(plain)})
            except RuntimeError as error:
                wrong.append(f"{file.stem}, with {name}: {error}")
                continue
            if verdict(found) != verdict(truth):
                wrong.append(f"{file.stem}, with {name}: {job.brief(found)} for {job.brief(truth)}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradsync")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    files = [f for f in sorted(LAB.glob(f"{arguments.only}*.json")) if ".fixed." not in f.name]
    files = files[:: arguments.every]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [line for lines in pool.map(lambda f: try_entry(arguments.gradsync, f), files)
                 for line in lines]
    print("\n".join(found + [f"{len(found)} of {len(files) * (1 + len(ADDITIONS))} verdicts changed"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
