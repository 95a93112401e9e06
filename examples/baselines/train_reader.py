"""Train a network that finds features of small characters and write it as `networks/reader.onnx`.

    python examples/baselines/train_reader.py

It learns to tell printed letters and signs apart, bent and blurred at random, and never sees a digit: to an agent that
recognises digits by these features all classes are new. It needs PyTorch, the package onnx and Pillow.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn
from torch.nn import functional

NETWORKS = Path(__file__).parent / "networks"
CHARACTERS = "ABCDEFGHIJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz@#$%&?+=<>!/*"
DRAWN, SIDE, WIDTH = 16, 8, 64
"""Points of a character as it is drawn and as the network sees it, and how many features it finds."""


def draw_characters() -> Tensor:
    """Return every character in four sizes, thin and bold: characters, variants, points."""
    drawn = []
    for character in CHARACTERS:
        for variant in range(8):
            image = Image.new("L", (DRAWN, DRAWN))
            font, place = ImageFont.load_default(10.0 + 1.5 * (variant % 4)), (DRAWN / 2, DRAWN / 2)
            ImageDraw.Draw(image).text(place, character, 255, font, anchor="mm", stroke_width=variant // 4)
            drawn.append(np.asarray(image, np.float32) / 255)
    return torch.as_tensor(np.stack(drawn)).reshape(len(CHARACTERS), 8, DRAWN, DRAWN)


def bend(images: Tensor) -> Tensor:
    """Return characters turned, slanted, moved and bent at random, in the size that the network sees."""
    count = len(images)
    maps = torch.eye(2, 3) + torch.randn(count, 2, 3) * torch.tensor([[0.16, 0.2, 0.08], [0.1, 0.16, 0.08]])
    grid = functional.affine_grid(maps, [count, 1, DRAWN, DRAWN], align_corners=False)
    waves = functional.interpolate(torch.randn(count, 2, 4, 4) * 0.1, DRAWN, mode="bicubic", align_corners=False)
    bent = functional.grid_sample(images[:, None], grid + waves.permute(0, 2, 3, 1), align_corners=False)
    small = functional.avg_pool2d(bent, DRAWN // SIDE)[:, 0]
    strength = 0.6 + 0.9 * torch.rand(count, 1, 1)
    return (small * strength + 0.03 * torch.randn(count, SIDE, SIDE)).clamp(0, 1)


class Reader(nn.Module):
    """Finds features of length 1 in small pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 16, 128),
            nn.ReLU(),
            nn.Linear(128, WIDTH),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of pictures."""
        return functional.normalize(self.layers(images[:, None]), dim=1)


def train(steps: int, seed: int) -> Reader:
    """Train on characters drawn anew at every step, by their likeness to a direction of each class."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    drawn, reader = draw_characters(), Reader()
    directions = nn.Parameter(torch.randn(len(CHARACTERS), WIDTH))
    optimiser = torch.optim.AdamW([*reader.parameters(), directions], 2e-3, weight_decay=1e-3)
    start = time.monotonic()
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 2e-3 * (1 - step / steps)
        labels, variants = torch.randint(len(CHARACTERS), (256,)), torch.randint(8, (256,))
        likeness = reader(bend(drawn[labels, variants])) @ functional.normalize(directions, dim=1).T
        loss = functional.cross_entropy(16 * likeness, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 200 == 0:
            right = (likeness.argmax(1) == labels).float().mean()
            print(f"{step:>6,} steps  {time.monotonic() - start:4.0f} s  loss {loss:.3f}  right {right:.2f}")
    return reader


def main() -> None:
    """Train and export."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--out", type=Path, default=NETWORKS / "reader.onnx")
    given = parser.parse_args()
    reader, axes = train(given.steps, given.seed), {"images": {0: "n"}, "features": {0: "n"}}
    shown = (torch.zeros(2, SIDE, SIDE),)
    names = {"input_names": ["images"], "output_names": ["features"], "dynamic_axes": axes}
    torch.onnx.export(reader.eval(), shown, str(given.out), dynamo=False, **names)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
