"""Scenarios that are run in the simulator, and what is found wrong with them."""

import json
import pathlib
import subprocess

MODEL = {"kind": "transformer", "vocab_size": 64, "d_model": 16, "nhead": 2, "num_layers": 1,
         "dim_feedforward": 32}


def data(samples):
    return {"kind": "synthetic_tokens", "samples": samples, "seq_len": 4, "vocab_size": 64}


def run(gradsync, scenario, directory):
    """Runs a scenario into `directory`; gives result.json."""
    file = pathlib.Path(str(directory) + ".json")
    file.write_text(json.dumps({"backend": "sim", **scenario}))
    done = subprocess.run([gradsync, "run", str(file), "--backend", "sim", "--out", str(directory)],
                          capture_output=True, text=True, timeout=120)
    result = pathlib.Path(directory) / "result.json"
    if not result.exists():
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}\n{file.read_text()}")
    return json.loads(result.read_text())


def diagnose(gradsync, directory):
    """The diagnosis of what a run has written; None where there is none."""
    done = subprocess.run([gradsync, "diagnose", str(directory), "--json"], capture_output=True,
                          text=True, timeout=120)
    if done.returncode != 0:
        return {"kind": "no answer", "confidence": "", "ranks": [], "step": None, "verdict": "",
                "because": done.stderr.strip(), "notes": []}
    return json.loads(done.stdout)


def brief(diagnosis):
    if diagnosis is None:
        return "none"
    return (f"{diagnosis['verdict']}: {diagnosis['kind']} {diagnosis['ranks']} step {diagnosis['step']} "
            f"[{diagnosis['confidence']}]")
