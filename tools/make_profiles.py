#!/usr/bin/env python3
"""Writes the model profiles in scenarios/models/ (see docs/bring-your-model.md).

Parameter lists follow from the architectures; times are computed or measured as each profile's
"source" says. Run it from anywhere; it needs nothing but Python 3. `--check` writes nothing and
fails if a file differs from what would be written.
"""
import csv
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "scenarios" / "models"


def milliseconds(value):
    return f"{value:.4f}".rstrip("0").rstrip(".") + "ms"


def numel(shape):
    product = 1
    for size in shape:
        product *= size
    return product


def profile(name, source, confidence, forward, optimizer, parameters):
    """`parameters`: (name, shape, ready in ms) in registration order."""
    return {
        "name": name,
        "source": source,
        "confidence": confidence,
        "forward": milliseconds(forward),
        "optimizer": milliseconds(optimizer),
        "parameters": [
            {"name": n, "shape": list(shape), "ready": milliseconds(ready)}
            for n, shape, ready in parameters
        ],
    }


def bert_large():
    """BERT-large pre-training (masked words and next sentence; the decoder's weight is tied to the
    word embedding), 398 tensors, 336,226,108 parameters, A100, mixed precision."""
    hidden, inner, layers, vocabulary, positions = 1024, 4096, 24, 30522, 512
    batch, sequence, sequences_per_second = 64, 128, 580.0
    step = 1000 * batch / sequences_per_second
    # AdamW reads and writes four float32 values a parameter (28 bytes) at 1.5 TB/s.
    optimizer = 336226108 * 28 / 1.5e12 * 1000
    forward = (step - optimizer) / 3
    backward = 2 * forward

    def linear(name, outputs, inputs):
        return [(f"{name}.weight", (outputs, inputs)), (f"{name}.bias", (outputs,))]

    def norm(name):
        return [(f"{name}.weight", (hidden,)), (f"{name}.bias", (hidden,))]

    names = [
        ("embeddings.word", (vocabulary, hidden)),
        ("embeddings.position", (positions, hidden)),
        ("embeddings.token_type", (2, hidden)),
        *norm("embeddings.LayerNorm"),
    ]
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            names += linear(f"{prefix}.attention.self.{part}", hidden, hidden)
        names += linear(f"{prefix}.attention.output.dense", hidden, hidden)
        names += norm(f"{prefix}.attention.output.LayerNorm")
        names += linear(f"{prefix}.intermediate.dense", inner, hidden)
        names += linear(f"{prefix}.output.dense", hidden, inner)
        names += norm(f"{prefix}.output.LayerNorm")
    names += linear("pooler.dense", hidden, hidden)
    names += [("cls.predictions.bias", (vocabulary,))]
    names += linear("cls.predictions.transform.dense", hidden, hidden)
    names += norm("cls.predictions.transform.LayerNorm")
    names += linear("cls.seq_relationship", 2, hidden)
    assert len(names) == 398 and sum(numel(shape) for _, shape in names) == 336226108

    # Backward passes the parameters in reverse; the time between two gradients is in proportion to
    # the multiplications of the layer (a token's share: the size of its weight). The decoder, whose
    # weight is the word embedding's, comes first; the attention itself (two products of sequence
    # length by hidden a token) before its key, query and value.
    work = []
    for name, shape in reversed(names):
        cost = numel(shape) if len(shape) == 2 and not name.startswith("embeddings") else 0
        if name == "cls.predictions.bias":
            cost = vocabulary * hidden
        if name.endswith("attention.self.value.bias"):
            cost = 2 * sequence * hidden
        work.append(cost)
    total = sum(work)
    ready, done = {}, 0
    for (name, _), cost in zip(reversed(names), work):
        done += cost
        ready[name] = backward * done / total

    return profile(
        "bert-large-a100-amp-s128-b64",
        "architecture: Devlin et al. 2018, vocabulary 30522; step time: 580 sequences/s of length 128 on "
        "one A100 80GB with AMP (NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT), batch 64; "
        "forward : backward = 1 : 2; gradients spaced by the layers' multiplications",
        "scaled",
        forward,
        optimizer,
        [(name, shape, ready[name]) for name, shape in names],
    )


def resnet50():
    """ResNet-50 (torchvision's names), 161 tensors, 25,557,032 parameters, V100, float32, batch 32."""

    def norm(name, channels):
        return [(f"{name}.weight", (channels,)), (f"{name}.bias", (channels,))]

    names = [("conv1.weight", (64, 3, 7, 7)), *norm("bn1", 64)]
    inputs = 64
    for layer, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=1):
        for block in range(blocks):
            prefix = f"layer{layer}.{block}"
            names += [(f"{prefix}.conv1.weight", (width, inputs, 1, 1)), *norm(f"{prefix}.bn1", width)]
            names += [(f"{prefix}.conv2.weight", (width, width, 3, 3)), *norm(f"{prefix}.bn2", width)]
            names += [(f"{prefix}.conv3.weight", (4 * width, width, 1, 1))]
            names += norm(f"{prefix}.bn3", 4 * width)
            if block == 0:
                names += [(f"{prefix}.downsample.0.weight", (4 * width, inputs, 1, 1))]
                names += norm(f"{prefix}.downsample.1", 4 * width)
            inputs = 4 * width
    names += [("fc.weight", (1000, 2048)), ("fc.bias", (1000,))]
    assert len(names) == 161 and sum(numel(shape) for _, shape in names) == 25557032

    with open(ROOT / "tools" / "profiles" / "resnet50_v100_grad_ready.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    # Gradients arrived in exactly the reverse of the order of registration.
    parameters = []
    for (name, shape), row in zip(names, reversed(rows), strict=True):
        assert "x".join(map(str, shape)) == row["shape"], name
        parameters.append((name, shape, float(row["ready_ms_median"])))

    return profile(
        "resnet50-v100-fp32-b32",
        "measured: PyTorch DDP on one V100-SXM2-32GB, float32, batch 32 (HolisticTraceAnalysis, MIT "
        "License, tests/data/ns_resolution_trace)",
        "measured",
        30.5,
        1.11,
        parameters,
    )


def render(content):
    """JSON with one parameter a line."""
    head = {key: value for key, value in content.items() if key != "parameters"}
    text = json.dumps(head, indent=2)[:-2] + ',\n  "parameters": [\n'
    text += ",\n".join("    " + json.dumps(p) for p in content["parameters"])
    return text + "\n  ]\n}\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: make_profiles.py [--check]")
    MODELS.mkdir(parents=True, exist_ok=True)
    for name, content in (("bert-large-a100", bert_large()), ("resnet50-v100", resnet50())):
        path, text = MODELS / f"{name}.json", render(content)
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path} differs from what {sys.argv[0]} writes")
        else:
            path.write_text(text, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
