"""The handbook's model on the data of a case, on PyTorch's side: each side computes for itself."""

import math

import numpy as np
import torch

import formula
from handbook_model import HandbookModel

_KINDS = {"parameter": 1, "input": 5, "target": 6}


class TransformerModel(HandbookModel):
    """The case's "model" has the model's sizes and seq_len.

    Weights start as formula.uniform, scaled by sqrt(1 / columns); those of layer norms at 1, biases
    at 0.1 times the uniform values. tests/torch/transformer_model.cpp sets the same.
    """

    def __init__(self, case: dict, rank: int):
        sizes = dict(case["model"])
        del sizes["kind"]
        seq_len = sizes.pop("seq_len")
        super().__init__(**sizes)
        self._seed = case["seed"]
        self._seq_len = seq_len
        self._vocab_size = sizes["vocab_size"]
        with torch.no_grad():
            for index, (name, parameter) in enumerate(self.named_parameters()):
                parameter.copy_(self._initial(rank, index, name, parameter.shape))

    def forward(self, samples: list) -> torch.Tensor:
        return super().forward(self._tokens("input", samples), self._tokens("target", samples))

    def _initial(self, rank: int, index: int, name: str, shape) -> torch.Tensor:
        if "norm" in name and name.endswith("weight"):
            return torch.ones(shape)
        scale = 0.1 if name.endswith("bias") else math.sqrt(1 / shape[-1])
        stream = formula.stream(self._seed, _KINDS["parameter"], rank, index)
        values = formula.uniform(stream, math.prod(shape), np.dtype(np.float32))
        return torch.from_numpy(values.reshape(tuple(shape)) * np.float32(scale))

    def _tokens(self, kind: str, samples: list) -> torch.Tensor:
        return torch.tensor(
            [
                [
                    formula.stream(self._seed, _KINDS[kind], sample, position) % self._vocab_size
                    for position in range(self._seq_len)
                ]
                for sample in samples
            ]
        )
