#!/usr/bin/env python3
"""How far the diagnosis carries where evidence is missing.

Every entry of scenarios/hangs is run in the simulator. Its run directory is then diagnosed whole, and
again with a part of the evidence taken away: the files of each rank in turn, those of half of the ranks,
all but the flight files, all but the last 16 collectives of each ring, half of a file. A verdict is

  right  kind, ranks and step are those of the whole evidence,
  open   the diagnosis says that it does not know, names no rank that is not at fault, and says what
         is missing,
  wrong  anything else.

  tools/hidden_evidence.py GRADSYNC                  the table of docs/hangs.md
  tools/hidden_evidence.py GRADSYNC --every 9        every ninth entry; ends with 1 if one is wrong
  tools/hidden_evidence.py GRADSYNC --only k08 -v    entries whose name begins so, and each verdict
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

LAB = pathlib.Path(__file__).resolve().parent.parent / "scenarios" / "hangs"
RING = 16


def without_ranks(run, hidden):
    """What is left when the files of some ranks never came."""
    for rank in hidden:
        (run / "flight" / f"rank-{rank}.json").unlink(missing_ok=True)
    for name in ("ranks.jsonl", "steps.jsonl", "events.jsonl"):
        lines = (run / name).read_text().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line).get("rank") not in hidden]
        (run / name).write_text("".join(kept))


def flight_alone(run):
    for name in ("ranks.jsonl", "steps.jsonl", "events.jsonl", "result.json", "trace.json"):
        (run / name).unlink()


def flight_files(run):
    return sorted((run / "flight").glob("rank-*.json"))


def cut_rings(run):
    flight_alone(run)
    for file in flight_files(run):
        report = json.loads(file.read_text())
        report["flight"] = report["flight"][-RING:]
        file.write_text(json.dumps(report))


def cut_in_the_middle(file):
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def ways_to_hide(ranks):
    """Name of the row, and what is done to a run directory."""
    yield "everything is there", lambda run: None
    for rank in ranks:
        yield "the files of one rank are missing", lambda run, r=rank: without_ranks(run, {r})
    half = len(ranks) // 2
    yield "half of the ranks' files are missing", lambda run: without_ranks(run, set(ranks[half:]))
    yield "half of the ranks' files are missing", lambda run: without_ranks(run, set(ranks[:half]))
    yield "flight files alone", flight_alone
    yield f"flight files alone, rings of {RING}", cut_rings
    yield "a flight file is cut in the middle", lambda run: cut_in_the_middle(flight_files(run)[-1])
    yield "a flight file is cut in the middle", lambda run: cut_in_the_middle(flight_files(run)[0])
    for name in ("ranks.jsonl", "steps.jsonl", "events.jsonl"):
        yield f"{name} is cut in the middle", lambda run, n=name: cut_in_the_middle(run / n)


def diagnose(gradsync, run):
    done = subprocess.run([gradsync, "diagnose", str(run), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return {"kind": "no answer", "confidence": "", "ranks": [], "step": None,
                "because": done.stderr.strip(), "notes": []}
    return json.loads(done.stdout)


def judge(truth, found):
    if found is None:
        return "right" if truth is None else "wrong"
    same = truth is not None and all(found[key] == truth[key] for key in ("kind", "ranks", "step"))
    if same:
        return "right"
    names_others = not set(found["ranks"]) <= set(truth["ranks"] if truth else [])
    says_so = "missing" in " ".join([found["because"]] + found["notes"])
    return "open" if found["confidence"] == "open" and says_so and not names_others else "wrong"


def try_entry(gradsync, file):
    """(row, verdict, diagnosis) of one scenario, hidden in each way."""
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        whole = pathlib.Path(scratch) / "whole"
        subprocess.run([gradsync, "run", str(file), "--backend", "sim", "--out", str(whole)],
                       capture_output=True, text=True)
        truth = json.loads((whole / "result.json").read_text())["diagnosis"]
        wanted = json.loads(file.read_text())["expect"].get("diagnosis")
        if wanted:
            for key in ("kind", "ranks", "step"):
                if key in wanted and (truth or {}).get(key) != wanted[key]:
                    print(f"{file.name}: {key} is {(truth or {}).get(key)}, expected {wanted[key]}", file=sys.stderr)
        ranks = [json.loads(line)["rank"] for line in (whole / "ranks.jsonl").read_text().splitlines()]
        if len(ranks) > 16:
            ranks_to_hide = ranks[:8] + ranks[-8:]
        else:
            ranks_to_hide = ranks
        for number, (row, hide) in enumerate(ways_to_hide(ranks_to_hide)):
            run = pathlib.Path(scratch) / f"hidden-{number}"
            shutil.copytree(whole, run)
            hide(run)
            found = diagnose(gradsync, run)
            results.append((row, judge(truth, found), truth, found))
            shutil.rmtree(run)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradsync")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--known-wrong", type=int, default=0, metavar="N",
                        help="wrong verdicts that are known defects; more of them, or fewer, end with 1")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    files = [f for f in sorted(LAB.glob(f"{arguments.only}*.json")) if ".fixed." not in f.name]
    files = files[:: arguments.every]
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        tried = pool.map(lambda file: try_entry(arguments.gradsync, file), files)
        for file, results in zip(files, tried):
            for row, verdict, truth, found in results:
                counts.setdefault(row, {"right": 0, "open": 0, "wrong": 0})[verdict] += 1
                if verdict == "wrong" or arguments.verbose:
                    brief = lambda d: d and f"{d['kind']} {d['ranks']} {d['step']} [{d['confidence']}]"
                    print(f"{verdict:5}  {file.stem}, {row}: {brief(found)} for {brief(truth)}",
                          file=sys.stderr)
                    if arguments.verbose and found:
                        print(f"         {found['because']} {found['notes']}", file=sys.stderr)
    print("| evidence | right | open | wrong |")
    print("| --- | --- | --- | --- |")
    for row, count in counts.items():
        print(f"| {row} | {count['right']} | {count['open']} | {count['wrong']} |")
    wrong = sum(count["wrong"] for count in counts.values())
    if wrong != arguments.known_wrong:
        sys.exit(f"{wrong} verdicts are wrong instead of {arguments.known_wrong}")


if __name__ == "__main__":
    main()
