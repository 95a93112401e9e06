"""The learner: a small transformer that reads a conversation and says what to answer.

At every step it takes three symbols: what the teacher says, what it said itself a step ago, and the reward for that. It
returns scores for its own symbol now, and for the teacher's next one. Attention reaches back over `WINDOW` steps.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SYMBOLS = 128
"""Codes of symbols; micro tasks use no others."""
SPACE = 32
WIDTH, LAYERS, HEADS = 224, 4, 7
WINDOW, BLOCK = 768, 256
"""Steps that attention reaches back over, and steps that are attended from at once in training."""


class Attention(nn.Module):
    """Attention over a window of steps, with positions as rotations."""

    def __init__(self) -> None:
        super().__init__()
        self.size = WIDTH // HEADS
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.join = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, turns: Tensor, mask: Tensor) -> Tensor:
        """Return what each step gathers from the window before it.

        Args:
            x: Sequences whose length is a whole number of blocks.
            turns: How far each step rotates queries and keys, from `rotations`.
            mask: Which steps a block attends to, from `window_mask`.
        """
        n, length, _ = x.shape
        parts = self.query_key_value(x).view(n, length, 3, HEADS, self.size).permute(2, 0, 3, 1, 4)
        query, key, value = rotate(parts[0], turns), rotate(parts[1], turns), parts[2]
        blocks, behind = length // BLOCK, WINDOW // BLOCK
        query = query.reshape(n, HEADS, blocks, BLOCK, self.size).transpose(1, 2)
        key, value = (spread_blocks(each, blocks, behind) for each in (key, value))
        gathered = [
            functional.scaled_dot_product_attention(query[:, b], key[:, b], value[:, b], attn_mask=mask[min(b, behind)])
            for b in range(blocks)
        ]
        joined = torch.stack(gathered, 1).transpose(2, 3)  # sequences, blocks, steps, heads, size
        answer: Tensor = self.join(joined.reshape(n, length, WIDTH))
        return answer

    def step(self, x: Tensor, cache: Tensor, at: int, turn: Tensor) -> Tensor:
        """Return what one more step gathers, and write its key and value into the cache.

        Args:
            x: The step of each sequence.
            cache: Keys and values of the last steps, in a ring.
            at: The number of the step.
            turn: How far this step rotates, from `rotations`.
        """
        query, key, value = self.query_key_value(x).view(-1, 3, HEADS, 1, self.size).unbind(1)
        cache[0, :, :, at % WINDOW] = rotate(key, turn)[:, :, 0]
        cache[1, :, :, at % WINDOW] = value[:, :, 0]
        seen = min(at + 1, WINDOW)
        gathered = functional.scaled_dot_product_attention(
            rotate(query, turn), cache[0, :, :, :seen], cache[1, :, :, :seen]
        )
        answer: Tensor = self.join(gathered.reshape(-1, WIDTH))
        return answer


class Layer(nn.Module):
    """Attention, then a network for each step."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, turns: Tensor, mask: Tensor) -> Tensor:
        """Return the next features of all steps."""
        x = x + self.attention(self.before_attention(x), turns, mask)
        features: Tensor = x + self.network(self.before_network(x))
        return features

    def step(self, x: Tensor, cache: Tensor, at: int, turn: Tensor) -> Tensor:
        """Return the next features of one more step."""
        x = x + self.attention.step(self.before_attention(x), cache, at, turn)
        features: Tensor = x + self.network(self.before_network(x))
        return features


class Learner(nn.Module):
    """The whole network."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.own = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(SYMBOLS, WIDTH)
        self.reward = nn.Embedding(3, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for embedding in (self.teacher, self.own, self.reward):
            nn.init.normal_(embedding.weight, std=0.5)

    def forward(self, teacher: Tensor, own: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of its own symbols and of the teacher's next ones, at every step of sequences."""
        x = self.teacher(teacher) + self.own(own) + self.reward(reward)
        turns, mask = rotations(x.shape[1], x.device), window_mask(x.device)
        for layer in self.layers:
            x = layer(x, turns, mask)
        return self.score(x)

    def step(
        self, shown: tuple[Tensor, Tensor, Tensor], caches: Tensor, at: int, turns: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the same for one more step of each sequence.

        Args:
            shown: The teacher's symbol, its own last one, and the reward.
            caches: Keys and values of all layers, from `make_caches`; they are written to.
            at: The number of the step.
            turns: Rotations of at least as many steps, from `rotations`.
        """
        teacher, own, reward = shown
        x = self.teacher(teacher) + self.own(own) + self.reward(reward)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer.step(x, cache, at, turns[at : at + 1])
        return self.score(x)

    def score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of symbols: those that are read are also those that are said."""
        x = self.norm(x) * WIDTH**-0.5
        return x @ self.own.weight.T * 2, x @ self.teacher.weight.T * 2


def make_caches(n: int, device: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return room for keys and values of n sequences."""
    return torch.zeros(LAYERS, 2, n, HEADS, WINDOW, WIDTH // HEADS, device=device, dtype=dtype)


def rotations(length: int, device: Any) -> Tensor:
    """Return the angle of each step and each pair of features."""
    half = WIDTH // HEADS // 2
    rates = 10_000.0 ** -(torch.arange(half, device=device) / half)
    return torch.arange(length, device=device)[:, None] * rates


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate pairs of features, one of the first half with one of the second."""
    first, second = x.chunk(2, -1)
    cos, sin = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


def spread_blocks(x: Tensor, blocks: int, behind: int) -> Tensor:
    """Return for each block its own steps with those of the blocks behind it; what is before the first is zero."""
    x = functional.pad(x, (0, 0, behind * BLOCK, 0))
    return x.unfold(2, (behind + 1) * BLOCK, BLOCK).permute(0, 2, 1, 4, 3)


def window_mask(device: Any) -> Tensor:
    """Return which steps of its blocks a step attends to, for each count of blocks behind the own one."""
    behind = WINDOW // BLOCK
    at = torch.arange(BLOCK, device=device)[:, None] + behind * BLOCK
    seen = torch.arange((behind + 1) * BLOCK, device=device)[None]
    near = (seen <= at) & (seen > at - WINDOW)
    return torch.stack([near & (seen >= (behind - count) * BLOCK) for count in range(behind + 1)])
