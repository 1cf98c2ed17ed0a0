"""PyTorch's side of the differential tests: one rank, all cases of one world size.

    RANK=r WORLD_SIZE=w MASTER_ADDR=127.0.0.1 MASTER_PORT=p torch_runner.py CASE.json...

Leaves torch-R.json and torch-R.bin (see results.py) beside each case. Importing torch takes longer
than a case, so a process goes through many cases, each with a process group of its own.
"""

import contextlib
import datetime
import json
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from collective_trace import CollectiveTrace, init_gloo
from fed_model import FedModel
from results import ResultWriter
from transformer_model import TransformerModel

_TIMEOUT = datetime.timedelta(seconds=60)
_DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES


def make_model(case: dict, rank: int) -> torch.nn.Module:
    return {"fed": FedModel, "transformer": TransformerModel}[case["model"]["kind"]](case, rank)


def make_ddp(case: dict, model: torch.nn.Module) -> DistributedDataParallel:
    options = case["ddp"]
    dist._DEFAULT_FIRST_BUCKET_BYTES = options["first_bucket_bytes"] or _DEFAULT_FIRST_BUCKET_BYTES
    arguments = {
        "find_unused_parameters": options["find_unused_parameters"],
        "static_graph": options["static_graph"],
        "gradient_as_bucket_view": options["gradient_as_bucket_view"],
        "broadcast_buffers": options["broadcast_buffers"],
    }
    if options["bucket_cap_mb"] is not None:
        arguments["bucket_cap_mb"] = options["bucket_cap_mb"]
    if options["ignored_parameters"]:
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
            model, options["ignored_parameters"]
        )
    ddp = DistributedDataParallel(model, **arguments)
    if options["comm_hook"] == "allreduce":
        ddp.register_comm_hook(None, default_hooks.allreduce_hook)
    elif options["comm_hook"] == "fp16_compress":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif options["power_sgd"]:
        state = powerSGD_hook.PowerSGDState(None, **options["power_sgd"])
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return ddp


def make_optimizer(case: dict, parameters) -> torch.optim.Optimizer:
    options = dict(case["optimizer"])
    kind = options.pop("kind")
    if kind == "adamw":
        return torch.optim.AdamW(parameters, **options)
    return torch.optim.SGD(parameters, **options)


class Sampler:
    """Batches of sample indices without end, epoch after epoch, and a note of each epoch's order."""

    def __init__(self, case: dict, rank: int):
        self._options = case["sampler"]
        self._sampler = DistributedSampler(
            range(self._options["dataset_size"]),
            num_replicas=case["world"],
            rank=rank,
            shuffle=self._options["shuffle"],
            seed=self._options["seed"],
            drop_last=self._options["drop_last"],
        )
        self.orders = []

    def batches(self):
        size = self._options["batch_size"]
        while True:
            if self._options["set_epoch"]:
                self._sampler.set_epoch(len(self.orders))
            order = list(self._sampler)
            self.orders.append(order)
            for start in range(0, len(order), size):
                yield order[start : start + size]


class Training:
    """The training loop of a case on one rank, with everything noted that is compared."""

    def __init__(self, case: dict, rank: int, writer: ResultWriter):
        self._case = case
        self._rank = rank
        self._writer = writer
        self._norms = []
        self._losses = []
        self._steps = 0

    def run(self) -> dict:
        case = self._case
        sampler = Sampler(case, self._rank)
        error = None
        self._model = make_model(case, self._rank)
        with CollectiveTrace() as trace:
            try:
                self._ddp = make_ddp(case, self._model)
                self._optimizer = make_optimizer(case, self._model.parameters())
                self._train(sampler.batches())
            except (RuntimeError, ValueError) as raised:
                error = str(raised)
        for name, tensor in self._model.state_dict().items():
            self._note(f"final/{name}", tensor)
        return {
            "error": error,
            "steps_completed": self._steps,
            "sampler": sampler.orders,
            "collectives": trace.collectives(),
            "norms": self._norms,
            "losses": self._losses,
            "logging_data": self._ddp._get_ddp_logging_data(),
        }

    def _train(self, batches) -> None:
        join = self._case["join"]
        steps = self._case["train"]["steps"]
        uneven = contextlib.nullcontext()
        if join:
            steps = join["steps"][self._rank]
            uneven = self._ddp.join(
                divide_by_initial_world_size=join["divide_by_initial_world_size"],
                throw_on_early_termination=join["throw_on_early_termination"],
            )
        with uneven:
            for _ in range(steps):
                self._step(batches)

    def _step(self, batches) -> None:
        train = self._case["train"]
        if self._case["model"]["kind"] != "fed":
            for name, parameter in self._model.named_parameters():
                self._note(f"step {self._steps}/parameter {name}", parameter)
        self._optimizer.zero_grad(set_to_none=train["set_to_none"])
        for micro_step in range(train["accumulation_steps"]):
            last = micro_step == train["accumulation_steps"] - 1
            with contextlib.nullcontext() if last else self._ddp.no_sync():
                loss = self._ddp(next(batches))
                loss.backward()
            if self._case["model"]["kind"] != "fed":
                self._losses.append(loss.item())
        for name, parameter in self._model.named_parameters():
            self._note(f"step {self._steps}/gradient of {name}", parameter.grad)
        if train["clip"]:
            norm = torch.nn.utils.clip_grad_norm_(
                self._model.parameters(), train["clip"]["max_norm"], float(train["clip"]["norm_type"])
            )
            self._norms.append(float(norm))
        self._optimizer.step()
        self._steps += 1

    def _note(self, key: str, tensor: "torch.Tensor | None") -> None:
        if tensor is None:
            self._writer.array(key, None, self._case["dtype"])
        else:
            values = tensor.detach().numpy()
            self._writer.array(key, values, str(values.dtype))


def main() -> None:
    torch.set_num_threads(1)
    store, rank, world = next(dist.rendezvous("env://", timeout=_TIMEOUT))
    for path in map(pathlib.Path, sys.argv[1:]):
        case = json.loads(path.read_text())
        # PowerSGD's hook waits for an all-reduce on the thread that has just ended another one.
        threads = 4 if case["ddp"]["power_sgd"] else 1
        init_gloo(dist.PrefixStore(case["name"], store), rank, world, _TIMEOUT, threads)
        writer = ResultWriter(path.parent / f"torch-{rank}")
        writer.finish(Training(case, rank, writer).run())
        dist.destroy_process_group()
    # The store is served by rank 0: it stays until nobody needs it any more.
    store.add("done", 1)
    while rank == 0 and store.add("done", 0) < world:
        time.sleep(0.01)


if __name__ == "__main__":
    main()
