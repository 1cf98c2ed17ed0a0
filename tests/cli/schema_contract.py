#!/usr/bin/env python3
"""The published schema agrees with the loader: it takes every shipped scenario, and refuses every
file of tests/data/invalid/ whose mistake a schema can express (tests/data/invalid.json says which).

usage: schema_contract.py REPOSITORY
"""
import json
import pathlib
import sys

import jsonschema

root = pathlib.Path(sys.argv[1])
schema = json.loads((root / "scenarios/schema/scenario.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
failures = 0


def check(condition, message):
    global failures
    if not condition:
        failures += 1
        print(message)


scenarios = sorted((root / "scenarios").glob("*.json"))
check(scenarios, "no scenario found")
for file in scenarios:
    for error in validator.iter_errors(json.loads(file.read_text())):
        check(False, f"{file.name}: refused: {error.json_path}: {error.message}")

table = json.loads((root / "tests/data/invalid.json").read_text())
for name, row in table.items():
    try:
        document = json.loads((root / "tests/data/invalid" / name).read_text(encoding="utf-8"))
    except ValueError:
        check(not row["schema"], f"{name}: not JSON, so no schema can see it")
        continue
    refused = not validator.is_valid(document)
    check(refused == row["schema"], f"{name}: refused by the schema: {refused}")

print(f"{len(scenarios)} scenarios, {len(table)} invalid files, {failures} failures")
sys.exit(1 if failures else 0)
