"""The model that `"model": {"type": "transformer"}` trains, in PyTorch: 1,567,208 parameters by default.

Embedding, post-norm (or pre-norm) blocks of self-attention and feed-forward, and a linear head.
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, norm_first: bool):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.ff = nn.Sequential(
            nn.Linear(d_model, dim_feedforward), nn.ReLU(), nn.Linear(dim_feedforward, d_model)
        )
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self._norm_first = norm_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._norm_first:
            x = x + self._attend(self.norm1(x))
            return x + self.ff(self.norm2(x))
        x = self.norm1(x + self._attend(x))
        return self.norm2(x + self.ff(x))

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        return self.attn(x, x, x, need_weights=False)[0]


class HandbookModel(nn.Module):
    """forward(inputs, targets): the mean cross-entropy over all tokens."""

    def __init__(
        self,
        vocab_size: int = 1000,
        d_model: int = 256,
        nhead: int = 4,
        num_layers: int = 2,
        dim_feedforward: int = 512,
        norm_first: bool = False,
    ):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            Block(d_model, nhead, dim_feedforward, norm_first) for _ in range(num_layers)
        )
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(inputs)
        for layer in self.layers:
            x = layer(x)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
