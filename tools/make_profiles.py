#!/usr/bin/env python3
"""Writes the model profiles in scenarios/models/ (see docs/bring-your-model.md).

Parameter lists follow from the architectures and times are measured, or computed from a throughput
that somebody measured, as each profile's "source" says. Run it from anywhere; it needs nothing but
Python 3. `--check` writes nothing and fails if a file differs from what would be written.
"""
import csv
import json
import pathlib
import sys

from model_layers import Layers, numel

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "scenarios" / "models"

# AdamW reads and writes four float32 values a parameter: 28 bytes, at the memory rate of the GPU.
ADAMW_BYTES = 28
A100_80GB_BYTES_PER_MS = 1.5e9
# SGD with momentum reads weight, gradient and momentum and writes two of them.
SGD_BYTES = 20
V100_BYTES_PER_MS = 0.75e9


def milliseconds(value):
    return f"{value:.4f}".rstrip("0").rstrip(".") + "ms"


def profile(name, source, confidence, forward, optimizer, parameters, buffers=()):
    """`parameters`: (name, shape, ready in ms), `buffers`: (name, shape, dtype); as registered."""
    content = {
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
    if buffers:
        content["buffers"] = [
            {"name": n, "shape": list(shape), "dtype": dtype} for n, shape, dtype in buffers
        ]
    return content


def scaled(name, source, layers, step, optimizer):
    """A profile from a measured step time: forward : backward = 1 : 2, which is what the products
    cost, and what ResNet-50's trace shows (1 : 2.07)."""
    forward = (step - optimizer) / 3
    return profile(
        name,
        source + "; forward : backward = 1 : 2; gradients spaced by the layers' multiplications",
        "scaled",
        forward,
        optimizer,
        layers.spaced(2 * forward),
        layers.buffers,
    )


def bert_large():
    """BERT-large pre-training (masked words and next sentence; the decoder's weight is tied to the
    word embedding), 398 tensors, 336,226,108 parameters, A100, mixed precision."""
    hidden, inner, layer_count, vocabulary, positions = 1024, 4096, 24, 30522, 512
    batch, sequence, sequences_per_second = 64, 128, 580.0
    layers = Layers()
    for name, rows in (("word", vocabulary), ("position", positions), ("token_type", 2)):
        layers.add(f"embeddings.{name}", (rows, hidden))
    layers.norm("embeddings.LayerNorm", hidden)
    for layer in range(layer_count):
        prefix = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            layers.linear(f"{prefix}.attention.self.{part}", hidden, hidden)
        # The attention itself, two products of sequence length by hidden a token, is behind the value.
        name, shape, _ = layers.rows.pop()
        layers.add(name, shape, 2 * sequence * hidden)
        layers.linear(f"{prefix}.attention.output.dense", hidden, hidden)
        layers.norm(f"{prefix}.attention.output.LayerNorm", hidden)
        layers.linear(f"{prefix}.intermediate.dense", inner, hidden)
        layers.linear(f"{prefix}.output.dense", hidden, inner)
        layers.norm(f"{prefix}.output.LayerNorm", hidden)
    layers.linear("pooler.dense", hidden, hidden)
    layers.add("cls.predictions.bias", (vocabulary,), vocabulary * hidden)  # the tied decoder
    layers.linear("cls.predictions.transform.dense", hidden, hidden)
    layers.norm("cls.predictions.transform.LayerNorm", hidden)
    layers.linear("cls.seq_relationship", 2, hidden)
    return scaled(
        "bert-large-a100-amp-s128-b64",
        "architecture: Devlin et al. 2018, vocabulary 30522; step time: 580 sequences/s of length 128 on "
        "one A100 80GB with AMP (NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT), batch 64",
        layers,
        step=1000 * batch / sequences_per_second,
        optimizer=layers.count() * ADAMW_BYTES / A100_80GB_BYTES_PER_MS,
    )


def gpt2(size, width, depth, batch, tokens_per_second, rate_source):
    """GPT-2 (Hugging Face's names). The head's weight is the token embedding's: its gradient is begun
    first and complete last."""
    vocabulary, sequence = 50257, 1024
    layers = Layers()
    layers.add("transformer.wte.weight", (vocabulary, width))
    layers.add("transformer.wpe.weight", (sequence, width))
    for layer in range(depth):
        prefix = f"transformer.h.{layer}"
        layers.norm(f"{prefix}.ln_1", width)
        # Conv1D keeps its weight as (inputs, outputs).
        layers.add(f"{prefix}.attn.c_attn.weight", (width, 3 * width), 3 * width * width)
        layers.add(f"{prefix}.attn.c_attn.bias", (3 * width,), 2 * sequence * width)
        for name, inputs, outputs in (("attn.c_proj", 1, 1), ("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)):
            if name == "mlp.c_fc":
                layers.norm(f"{prefix}.ln_2", width)
            shape = (inputs * width, outputs * width)
            layers.add(f"{prefix}.{name}.weight", shape, numel(shape))
            layers.add(f"{prefix}.{name}.bias", (outputs * width,))
    layers.add("transformer.ln_f.weight", (width,))
    layers.add("transformer.ln_f.bias", (width,), vocabulary * width)  # the tied head
    return scaled(
        f"gpt2-{size}-a100-bf16-s1024-b{batch}",
        f"architecture: Radford et al. 2019, Hugging Face's GPT2LMHeadModel; step time: {rate_source} "
        f"(llm-foundry, scripts/train/benchmarking, FSDP on 8 A100 80GB), batch {batch} of {sequence} tokens",
        layers,
        step=1000 * batch * sequence / tokens_per_second,
        optimizer=layers.count() * ADAMW_BYTES / A100_80GB_BYTES_PER_MS,
    )


def resnet_layers(blocks, groups=1, width_per_group=64):
    """torchvision's ResNets and ResNeXts with bottlenecks, on 224 x 224 pixels."""
    layers = Layers()
    layers.conv("conv1", 64, 3, 7, 112)
    layers.batch_norm("bn1", 64)
    inputs = 64
    for stage, count in enumerate(blocks):
        planes, side = 64 << stage, 56 >> stage
        width = planes * width_per_group * groups // 64
        for block in range(count):
            prefix = f"layer{stage + 1}.{block}"
            # The stride is in the second convolution: the first still works on the larger picture.
            first_side = side * 2 if block == 0 and stage > 0 else side
            layers.conv(f"{prefix}.conv1", width, inputs, 1, first_side)
            layers.batch_norm(f"{prefix}.bn1", width)
            layers.conv(f"{prefix}.conv2", width, width // groups, 3, side)
            layers.batch_norm(f"{prefix}.bn2", width)
            layers.conv(f"{prefix}.conv3", 4 * planes, width, 1, side)
            layers.batch_norm(f"{prefix}.bn3", 4 * planes)
            if block == 0:
                layers.conv(f"{prefix}.downsample.0", 4 * planes, inputs, 1, side)
                layers.batch_norm(f"{prefix}.downsample.1", 4 * planes)
            inputs = 4 * planes
    layers.linear("fc", 1000, 2048)
    return layers


def resnet50():
    """ResNet-50 (torchvision's names), 161 tensors, 25,557,032 parameters, V100, float32, batch 32."""
    layers = resnet_layers((3, 4, 6, 3))
    # What PyTorch's DDP was seen to broadcast before each forward.
    assert sum(numel(shape) for _, shape, dtype in layers.buffers if dtype == "float32") == 53120
    assert len(layers.buffers) == 3 * 53
    with open(ROOT / "tools" / "profiles" / "resnet50_v100_grad_ready.csv", encoding="utf-8") as file:
        measured = list(csv.DictReader(line for line in file if not line.startswith("#")))
    # Gradients arrived in exactly the reverse of the order of registration.
    parameters = []
    for (name, shape, _), row in zip(layers.rows, reversed(measured), strict=True):
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
        layers.buffers,
    )


def resnet_like(name, title, step, layers):
    """A ResNet or ResNeXt of PyTorch's own DDP benchmark."""
    return scaled(
        f"{name}-v100-fp32-b32",
        f"architecture: torchvision's {title}; step time: {step} ms without DDP on a V100, batch 32 "
        "(PyTorch, benchmarks/distributed/ddp/README.md)",
        layers,
        step=step,
        optimizer=layers.count() * SGD_BYTES / V100_BYTES_PER_MS,
    )


def vgg16():
    """VGG-16: nearly all bytes are the first that backward is done with."""
    layers = Layers()
    inputs, side, index = 3, 224, 0
    for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.conv(f"features.{index}", outputs, inputs, 3, side, bias=True)
            inputs, index = outputs, index + 2
        side, index = side // 2, index + 1
    layers.linear("classifier.0", 4096, 512 * 7 * 7)
    layers.linear("classifier.3", 4096, 4096)
    layers.linear("classifier.6", 1000, 4096)
    optimizer = layers.count() * SGD_BYTES / V100_BYTES_PER_MS
    return profile(
        "vgg16-fp32-b32",
        "architecture: torchvision's vgg16; forward and backward: a quarter of 251.9 and 438.6 ms, the sums "
        "of PipeDream's profile at batch 128 (msr-fiddle/pipedream, MIT License; it does not name its GPU); "
        "gradients spaced by the layers' multiplications",
        "scaled",
        251.9 / 4,
        optimizer,
        layers.spaced(438.6 / 4),
    )


def vit_b16():
    """ViT-B/16 (torchvision's names), 152 tensors, 86,567,656 parameters."""
    width, inner, tokens, batch = 768, 3072, 197, 256
    layers = Layers()
    layers.add("class_token", (1, 1, width))
    layers.add("conv_proj.weight", (width, 3, 16, 16), width * 3 * 16 * 16)
    layers.add("conv_proj.bias", (width,))
    layers.add("encoder.pos_embedding", (1, tokens, width))
    for layer in range(12):
        prefix = f"encoder.layers.encoder_layer_{layer}"
        layers.norm(f"{prefix}.ln_1", width)
        layers.add(f"{prefix}.self_attention.in_proj_weight", (3 * width, width), 3 * width * width)
        layers.add(f"{prefix}.self_attention.in_proj_bias", (3 * width,), 2 * tokens * width)
        layers.linear(f"{prefix}.self_attention.out_proj", width, width)
        layers.norm(f"{prefix}.ln_2", width)
        layers.linear(f"{prefix}.mlp.0", inner, width)
        layers.linear(f"{prefix}.mlp.3", width, inner)
    layers.norm("encoder.ln", width)
    # One of the 197 tokens goes through the head.
    layers.linear("heads.head", 1000, width, work=1000 * width / tokens)
    return scaled(
        f"vit-b16-a100-fp16-b{batch}",
        "architecture: torchvision's vit_b_16; step time: 1030 images/s on one A100 in fp16 "
        f"(willgpaik, pytorch-ddp-bench, measured at batch 1024), batch {batch}",
        layers,
        step=1000 * batch / 1030,
        optimizer=layers.count() * ADAMW_BYTES / A100_80GB_BYTES_PER_MS,
    )


def llama2_7b_lora():
    """Llama-2-7B with LoRA of rank 8 on queries and values (PEFT's names): the 128 tensors that are
    trained, 16 MiB. Backward has no gradients of the large weights to compute, so it costs what
    forward costs."""
    width, rank, depth, sequence = 4096, 8, 32, 2048
    layers = Layers()
    for layer in range(depth):
        for projection in ("q_proj", "v_proj"):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{projection}"
            layers.add(f"{prefix}.lora_A.default.weight", (rank, width), 1)
            layers.add(f"{prefix}.lora_B.default.weight", (width, rank), 1)
    step = 1000 * sequence / 4641.0
    optimizer = layers.count() * ADAMW_BYTES / A100_80GB_BYTES_PER_MS
    return profile(
        "llama2-7b-lora-a100-bf16-s2048-b1",
        "architecture: Touvron et al. 2023, LoRA r=8 on q and v (Hu et al. 2021); forward: a third of the step "
        "of a 7B model trained whole at 4,641 tokens/s a GPU (llm-foundry, scripts/train/benchmarking, A100 "
        "80GB, sequence 2048), batch 1; backward as long as forward: no gradients of frozen weights; gradients "
        "evenly spaced",
        "scaled",
        step / 3,
        optimizer,
        layers.spaced(step / 3),
    )


def synthetic(name, what, tensors, forward=10.0, backward=20.0):
    """`tensors`: element counts in registration order; gradients come evenly spaced."""
    layers = Layers()
    for index, elements in enumerate(tensors):
        layers.add(f"tensor{index}", (elements,), 1)
    return profile(name, f"synthetic: {what}", "synthetic", forward, 0, layers.spaced(backward))


DDP_BENCHMARK = {
    "resnet101-v100": ("resnet101", 162, resnet_layers((3, 4, 23, 3))),
    "resnext50-32x4d-v100": ("resnext50_32x4d", 145, resnet_layers((3, 4, 6, 3), 32, 4)),
    "resnext101-32x8d-v100": ("resnext101_32x8d", 415, resnet_layers((3, 4, 23, 3), 32, 8)),
}


def profiles():
    """File name to content."""
    yield "bert-large-a100", bert_large()
    yield "resnet50-v100", resnet50()
    for file, (title, step, layers) in DDP_BENCHMARK.items():
        yield file, resnet_like(file.removesuffix("-v100"), title, step, layers)
    yield "gpt2-small-a100", gpt2("small", 768, 12, 16, 156468, "156,468 tokens/s a GPU of a GPT with 125M parameters")
    yield "gpt2-medium-a100", gpt2("medium", 1024, 24, 8, 64813, "64,813 tokens/s a GPU of a GPT with 350M parameters")
    yield "gpt2-large-a100", gpt2(
        "large", 1280, 36, 4, 32434, "32,434 tokens/s a GPU of a GPT with 760M parameters at sequence 2048"
    )
    yield "gpt2-xl-a100", gpt2(
        "xl",
        1600,
        48,
        4,
        20513 * 1.3e9 / 1557611200,
        "20,513 tokens/s a GPU of a GPT with 1.3B parameters at sequence 2048, in proportion to the parameters",
    )
    yield "vgg16", vgg16()
    yield "vit-b16-a100", vit_b16()
    yield "llama2-7b-lora-a100", llama2_7b_lora()
    mebi = 1 << 20
    yield "synthetic-uniform", synthetic("synthetic-uniform", "64 tensors of 4 MiB, evenly spaced", [mebi] * 64)
    yield "synthetic-one-giant-last", synthetic(
        "synthetic-one-giant-last",
        "a tensor of 256 MiB whose gradient is the last, and 32 of 4 MiB before it",
        [64 * mebi] + [mebi] * 32,
    )
    yield "synthetic-many-tiny", synthetic("synthetic-many-tiny", "1,000 tensors of 1 KiB, evenly spaced", [256] * 1000)


def render(content):
    """JSON with one parameter or buffer a line."""
    lists = [key for key in ("parameters", "buffers") if key in content]
    text = json.dumps({k: v for k, v in content.items() if k not in lists}, indent=2)[:-2]
    for key in lists:
        text += f',\n  "{key}": [\n'
        text += ",\n".join("    " + json.dumps(entry) for entry in content[key]) + "\n  ]"
    return text + "\n}\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: make_profiles.py [--check]")
    MODELS.mkdir(parents=True, exist_ok=True)
    for name, content in profiles():
        path, text = MODELS / f"{name}.json", render(content)
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path} differs from what {sys.argv[0]} writes")
        else:
            path.write_text(text, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
