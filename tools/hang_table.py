#!/usr/bin/env python3
"""Two tables of docs/hangs.md: the catalog, from the scenarios in scenarios/hangs/, and the kinds of a
diagnosis, from their rows in testbed/diagnosis/kinds.cpp.

  tools/hang_table.py           writes them between the markers of the page
  tools/hang_table.py --check   ends with 1 if the page is not what it would write
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "hangs.md"
ROWS = ROOT / "testbed" / "diagnosis" / "kinds.cpp"
MARKERS = {name: (f"<!-- {name}: written by tools/hang_table.py -->\n", f"<!-- end of {name} -->\n")
           for name in ("catalog", "kinds")}

KINDS = {
    "K01": "uneven shards",
    "K02": "uneven streams",
    "K03": "unused parameters, branches",
    "K04": "order, shape or names of parameters",
    "K05": "a collective more, less, or another",
    "K06": "exception, exit, kill",
    "K07": "the decision to stop",
    "K08": "a skipped batch",
    "K09": "loss scale, clipping",
    "K10": "sampler: seed, epoch, sharding",
    "K11": "no_sync, accumulation",
    "K12": "static graph",
    "K13": "weights of uneven batches",
    "K14": "a slow section",
    "K15": "straggler",
    "K16": "network, device, library",
    "K17": "order of process groups",
    "K18": "creation of process groups",
    "K19": "data loader",
    "K20": "buffers",
    "K21": "devices",
    "K22": "rendezvous",
    "K23": "size, type, root",
    "K24": "parameters outside DDP",
    "K25": "resume, learning rate",
    "K26": "a hook that fires twice",
}


def entry_numbers(scenario):
    """The numbers of the reports, for the order; what was only measured comes last."""
    return [int(n) for n in re.findall(r"R(\d+)", scenario["// entry"])] or [10**6]


def rows():
    found = []
    for path in sorted((ROOT / "scenarios" / "hangs").glob("*.json")):
        if path.name.endswith(".fixed.json"):
            continue
        scenario = json.loads(path.read_text())
        found.append((path.name[:3].upper(), entry_numbers(scenario), path.stem, scenario))
    return sorted(found, key=lambda row: row[:3])


def diagnosis_kinds():
    """The table of the kinds: name, entry of the catalog, meaning, what to do."""
    literal = r'"(?:[^"\\]|\\.)*"'
    row = re.compile(rf"KindRow\{{(k\w+),((?:\s*(?:{literal}\s*)+,){{3}}\s*(?:{literal}\s*)+)\}}")
    lines = ["| kind | entry | what it means | what to do |", "| --- | --- | --- | --- |"]
    for match in row.finditer(ROWS.read_text()):
        # Adjacent literals are one; what is between two values is a comma.
        values = ["".join(text[1:-1] for text in re.findall(literal, value))
                  for value in re.findall(rf"(?:{literal}\s*)+", match.group(2))]
        name, catalog, meaning, fix = (value.replace("|", "\\|") for value in values)
        lines.append(f"| `{name}` | {catalog} | {meaning} | {fix} |")
    return "\n".join(lines) + "\n"


def catalog():
    lines = ["| kind | entry | scenario | public report | verdict |", "| --- | --- | --- | --- | --- |"]
    for kind, _, name, scenario in rows():
        diagnosis = scenario["expect"]["diagnosis"]
        verdict = f"{diagnosis['verdict']}: `{diagnosis['kind']}`"
        if diagnosis["catalog"] != kind:
            verdict += f" ({diagnosis['catalog']})"
        lines.append(
            f"| {kind} {KINDS[kind]} | {scenario['// entry']} | "
            f"[`{name}`](../scenarios/hangs/{name}.json) | {scenario['// report']} | {verdict} |")
    return "\n".join(lines) + "\n"


def fill(page, name, table):
    begin, end = MARKERS[name]
    before, rest = page.split(begin)
    return before + begin + table + end + rest.split(end)[1]


def main():
    page = PAGE.read_text()
    wanted = fill(fill(page, "catalog", catalog()), "kinds", diagnosis_kinds())
    if sys.argv[1:] == ["--check"]:
        if page != wanted:
            sys.exit("docs/hangs.md is not up to date: run tools/hang_table.py")
        return
    PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
