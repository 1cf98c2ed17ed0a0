#!/usr/bin/env python3
"""Records comm_hooks.json and optim_more.json from the installed PyTorch (recorded with 1.13.1 of
Debian 12; Gloo on 127.0.0.1, a free port). Inputs follow from a formula, so they are not stored:
u(rank, iteration, tensor, element) below. Usage: record_more.py (writes beside itself)."""
import json
import os
import pathlib
import struct
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

HERE = pathlib.Path(__file__).resolve().parent
MASK = (1 << 64) - 1
SHAPES = [(16, 12), (16,), (20, 8), (20,), (16, 12), (3, 2)]


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def u(rank, iteration, tensor, element):
    """A multiple of 2^-23 in [-1, 1)."""
    key = (((rank * 1024 + iteration) * 1024 + tensor) << 32) + element
    return (splitmix64(key) >> 40) / 2.0**23 - 1


def filled(rank, iteration, tensor, shape, dtype=torch.float32):
    numel = 1
    for size in shape:
        numel *= size
    values = [u(rank, iteration, tensor, element) for element in range(numel)]
    return torch.tensor(values, dtype=torch.float32).reshape(shape).to(dtype)


def bits(tensor):
    return [struct.pack(">f", value).hex() for value in tensor.detach().float().flatten().tolist()]


class Given(torch.nn.Module):
    """A module whose gradients are given: the loss is the sum of p * g."""

    def __init__(self, dtype):
        super().__init__()
        self.p = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in SHAPES])

    def forward(self, gradients):
        total = None
        for parameter, gradient in zip(self.p, gradients):
            part = (parameter * gradient).sum()
            total = part if total is None else total + part
        return total


# batched_powerSGD_hook of 1.13 fails with an assertion of its own.
HOOKS = {
    "none": None,
    "allreduce": None,
    "fp16_compress": None,
    "power_sgd rank 1": dict(matrix_approximation_rank=1),
    "power_sgd rank 2": dict(matrix_approximation_rank=2),
    "power_sgd rank 4": dict(matrix_approximation_rank=4),
    "power_sgd rank 1 without error feedback": dict(matrix_approximation_rank=1, use_error_feedback=False),
    "power_sgd rank 2 without warm start": dict(matrix_approximation_rank=2, warm_start=False),
}
ITERATIONS = 5


def cases_of_hooks():
    for name in HOOKS:
        dtypes = [torch.float32, torch.float64, torch.float16] if name == "none" else [torch.float32]
        for dtype in dtypes:
            yield name, dtype


def run_case(rank, name, dtype):
    ddp = torch.nn.parallel.DistributedDataParallel(Given(dtype))
    if name == "allreduce":
        ddp.register_comm_hook(None, default_hooks.allreduce_hook)
    elif name == "fp16_compress":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name != "none":
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **HOOKS[name])
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    gradients = []
    for iteration in range(ITERATIONS):
        ddp.zero_grad(set_to_none=True)
        inputs = [filled(rank, iteration, t, shape, dtype) for t, shape in enumerate(SHAPES)]
        ddp(inputs).backward()
        if iteration % 2 == 0:
            gradients.append([bits(p.grad) for p in ddp.module.p])
    order = ddp._get_ddp_logging_data()["prev_iteration_grad_ready_order_indices"]
    return {"order": [int(i) for i in order.split(", ")], "gradients_bits": gradients}


def run(rank, world, folder):
    store = os.path.join(folder, "store")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.set_num_threads(1)
    cases = []
    for name, dtype in cases_of_hooks():
        cases.append({"world": world, "hook": name, "options": HOOKS[name] or {},
                      "dtype": str(dtype).split(".")[1], **run_case(rank, name, dtype)})
    if rank == 0:
        with open(os.path.join(folder, "out.json"), "w", encoding="utf-8") as file:
            json.dump(cases, file)
    dist.barrier()
    dist.destroy_process_group()


def record_hooks():
    cases = []
    for world in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(run, args=(world, folder), nprocs=world)
            with open(os.path.join(folder, "out.json"), encoding="utf-8") as file:
                cases += json.load(file)
    return {
        "torch_version": torch.__version__,
        "note": "gradients of Given after reduction in iterations 0, 2 and 4, by parameter, as float32 bits (float64 "
                "rounded to float32); inputs u(rank, iteration, tensor, element); zero_grad before each "
                "iteration; start_powerSGD_iter=2; defaults otherwise. order: in which gradients arrive",
        "shapes": SHAPES,
        "cases": cases,
    }


def record_sgd():
    cases = []
    variants = [
        dict(lr=0.1),
        dict(lr=0.1, momentum=0.9),
        dict(lr=0.1, momentum=0.9, dampening=0.3),
        dict(lr=0.1, momentum=0.9, nesterov=True),
        dict(lr=0.1, weight_decay=0.01),
        dict(lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
        dict(lr=0.1, momentum=0.9, weight_decay=0.01, maximize=True),
    ]
    for hyper in variants:
        for n in (3, 19):
            p = torch.nn.Parameter(filled(0, 0, 0, (n,)))
            optimizer = torch.optim.SGD([p], **hyper)
            steps = []
            for step in range(4):
                p.grad = None if step == 2 else filled(0, step, 1, (n,))
                optimizer.step()
                buffer = optimizer.state[p].get("momentum_buffer")
                steps.append({"param_bits": bits(p),
                              "momentum_bits": None if buffer is None else bits(buffer)})
            cases.append({"n": n, "hyper": hyper, "steps": steps})
    return {"note": "parameter u(0, 0, 0, i), gradient of step s u(0, s, 1, i), none in step 2",
            "cases": cases}


def record_groups():
    """Two groups with options of their own, learning rates changed on the way."""
    first = torch.nn.Parameter(filled(0, 0, 0, (8,)))
    second = torch.nn.Parameter(filled(0, 0, 2, (8,)))
    optimizer = torch.optim.AdamW([
        {"params": [first], "lr": 0.01, "weight_decay": 0.0},
        {"params": [second], "lr": 0.002, "betas": (0.8, 0.9)},
    ])
    steps = []
    for step in range(3):
        first.grad, second.grad = filled(0, step, 1, (8,)), filled(0, step, 3, (8,))
        optimizer.step()
        steps.append([bits(first), bits(second)])
        optimizer.param_groups[0]["lr"] *= 0.5
    return {"steps_bits": steps}


def record_schedules():
    from torch.optim import lr_scheduler as s

    def rates(make, steps=40, lr=0.1):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
        scheduler = make(optimizer)
        result = []
        for _ in range(steps):
            result.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return result

    def warm_up(optimizer, after):
        return s.SequentialLR(optimizer, [s.LinearLR(optimizer, start_factor=0.25, total_iters=8),
                                          after(optimizer)], milestones=[8])

    return [
        {"kind": "step", "step_size": 7, "gamma": 0.5,
         "lr": rates(lambda o: s.StepLR(o, 7, 0.5))},
        {"kind": "cosine", "total_steps": 30, "min_lr": 0.001,
         "lr": rates(lambda o: s.CosineAnnealingLR(o, 30, 0.001), steps=31)},
        {"kind": "constant", "warmup_steps": 8, "warmup_start_factor": 0.25,
         "lr": rates(lambda o: s.LinearLR(o, start_factor=0.25, total_iters=8))},
        {"kind": "step", "step_size": 7, "gamma": 0.5, "warmup_steps": 8, "warmup_start_factor": 0.25,
         "lr": rates(lambda o: warm_up(o, lambda p: s.StepLR(p, 7, 0.5)))},
        {"kind": "cosine", "total_steps": 30, "min_lr": 0.001, "warmup_steps": 8,
         "warmup_start_factor": 0.25,
         "lr": rates(lambda o: warm_up(o, lambda p: s.CosineAnnealingLR(p, 30, 0.001)), steps=38)},
    ]


def record_clip_double():
    cases = []
    for norm_type in (1.0, 2.0, float("inf")):
        parameters = []
        for t, n in enumerate((37, 5)):
            p = torch.nn.Parameter(torch.zeros(n, dtype=torch.float64))
            p.grad = filled(0, 0, t, (n,), torch.float64)
            parameters.append(p)
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0, norm_type)
        cases.append({"norm_type": str(norm_type), "norm": norm.item(),
                      "grads": [p.grad.tolist() for p in parameters]})
    return cases


def record_randn():
    cases = []
    for seed, n in ((0, 5), (0, 15), (1, 16), (2, 17), (209652396, 40)):
        torch.manual_seed(seed)
        cases.append({"seed": seed, "values": torch.randn(n).tolist()})
    return cases


def main():
    (HERE / "comm_hooks.json").write_text(json.dumps(record_hooks()) + "\n", encoding="utf-8")
    more = {
        "torch_version": torch.__version__,
        "sgd": record_sgd(),
        "groups": record_groups(),
        "schedules": record_schedules(),
        "clip_float64": record_clip_double(),
        "randn": record_randn(),
    }
    (HERE / "optim_more.json").write_text(json.dumps(more) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
