"""Which collectives PyTorch issues, in order, with their element counts.

The Gloo group enters each collective in the profiler when one of its threads takes it up. With one
thread that is the order of issue, so a trace wants a group with a single thread.
"""

import datetime
import math

import torch.distributed as dist
from torch.autograd import profiler
from torch.distributed import distributed_c10d

_OPERATIONS = {
    "gloo:all_reduce": "allreduce",
    "gloo:broadcast": "broadcast",
    "gloo:all_gather": "allgather",
}
_Gloo = distributed_c10d.ProcessGroupGloo


def init_gloo(store, rank: int, world: int, timeout: datetime.timedelta, threads: int) -> None:
    """dist.init_process_group for Gloo with so many threads: it has no argument for that."""

    class Gloo(_Gloo):
        def __init__(self, store, rank, size, timeout):
            options = _Gloo._Options()
            options._timeout = timeout
            options._threads = threads
            options._devices = [_Gloo.create_device(hostname="127.0.0.1")]
            super().__init__(store, rank, size, options)

    distributed_c10d.ProcessGroupGloo = Gloo
    try:
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timeout)
    finally:
        distributed_c10d.ProcessGroupGloo = _Gloo


class CollectiveTrace:
    """Records the collectives that are issued inside a `with` block."""

    def __enter__(self):
        self._profile = profiler.profile(record_shapes=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *exception):
        # The thread enters a collective after its result is there. It runs a barrier only when
        # that is done.
        dist.barrier()
        self._profile.__exit__(*exception)

    def collectives(self) -> list:
        """[operation, elements] of each, in order."""
        events = sorted(self._profile.function_events, key=lambda event: event.time_range.start)
        return [
            [_OPERATIONS[event.name], math.prod(event.input_shapes[0])]
            for event in events
            if event.name in _OPERATIONS
        ]
