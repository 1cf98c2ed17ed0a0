"""The model of the differential tests whose gradients are given, on PyTorch's side.

Its loss is a sum of products p * g, so the gradient of a parameter is the array g itself, equal to
the last bit to what tests/torch/fed_model.cpp feeds to gradsync.
"""

import math

import numpy as np
import torch

import formula

_KINDS = {"parameter": 1, "buffer": 2, "gradient": 3, "statistics": 4}


class FedModel(torch.nn.Module):
    """Parameters body.p0, body.p1, ... and buffers body.b0, ... as a case describes them.

    uses[k] lists, for the k-th forward of this rank (repeating from its start), the parameters that
    the forward uses, in that order; a parameter may stand there twice, or not at all.
    """

    def __init__(self, case: dict, rank: int):
        super().__init__()
        self._seed = case["seed"]
        self._rank = rank
        self._dtype = case["dtype"]
        self._uses = case["model"]["uses"][rank]
        self._forwards = 0
        self.body = torch.nn.Module()
        for index, shape in enumerate(case["model"]["parameters"]):
            # Ranks start from different values: DDP has to bring rank 0's to all.
            value = self._array(shape, "parameter", rank, index)
            self.body.register_parameter(f"p{index}", torch.nn.Parameter(value))
        for index, buffer in enumerate(case["model"]["buffers"]):
            if buffer["dtype"] == "int64":
                value = torch.full(buffer["shape"], 100 * rank + index, dtype=torch.int64)
            else:
                value = self._array(buffer["shape"], "buffer", rank, index)
            self.body.register_buffer(f"b{index}", value)

    def forward(self, samples: list) -> torch.Tensor:
        self._update_buffers()
        key = formula.stream(*samples)
        uses = self._uses[self._forwards % len(self._uses)]
        self._forwards += 1
        loss = None
        for position, index in enumerate(uses):
            parameter = self.body.get_parameter(f"p{index}")
            gradient = self._array(parameter.shape, "gradient", key, index, position)
            term = (parameter * gradient).sum()
            loss = term if loss is None else loss + term
        return loss

    @torch.no_grad()
    def _update_buffers(self) -> None:
        """As batch norm does: running values move towards what this rank sees."""
        for index, buffer in enumerate(self.buffers()):
            if buffer.dtype == torch.int64:
                buffer.add_(1 + self._rank)
            else:
                seen = self._array(buffer.shape, "statistics", self._rank, index, self._forwards)
                buffer.mul_(0.5).add_(seen)

    def _array(self, shape, kind: str, *numbers: int) -> torch.Tensor:
        stream = formula.stream(self._seed, _KINDS[kind], *numbers)
        values = formula.uniform(stream, math.prod(shape), np.dtype(self._dtype))
        return torch.from_numpy(values.reshape(tuple(shape)))
