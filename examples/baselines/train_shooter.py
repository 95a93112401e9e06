"""Train the network of `shooter.py` by trying shots in the simulation, and write it as `networks/shooter.onnx`.

    openfield birds generate --pool levels --count 8 --seed 1
    python examples/baselines/train_shooter.py levels

It learns from made levels, none of which the trials of the domain play. It needs PyTorch, the
package onnx and the extra birds.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
import torch
from shooter import Rows, describe_shot, propose_shots
from torch import nn

from openfield.domains.birds.actions import Shot
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.settings import BirdsSettings

NETWORKS = Path(__file__).parent / "networks"


def try_shots(pool: Path, seed: int) -> tuple[Rows, Rows]:
    """Return the numbers of all proposed shots in the normal levels of a folder, and which share of the pigs they kill.

    In a level with several birds the next one meets what a good shot of the one before has left.
    """
    levels, rows, worth = LevelPool(pool), list[Rows](), list[float]()
    names = [name for kind in levels.types(0) if kind.startswith("01") for name in levels.names(0, kind)]
    for name in names:
        played = LevelInPlay(levels.level(name), BirdsSettings(), seed)
        while played.game.bird_ready:
            seen, before = observe_level(played.ground_truth(False)), max(played.game.pigs, 1)
            killed, games = list[float](), list[LevelInPlay]()
            for launch, target in propose_shots(seen):
                games.append(played.copy())
                games[-1].shoot(Shot(*seen.release(launch), round(seen.tap_time(launch, target))))
                killed.append((before - games[-1].game.pigs) / before)
                rows.append(describe_shot(seen, launch))
            worth += killed
            played = games[int(np.argmax(killed))]
    return np.stack(rows), np.array(worth, np.float32)


def train(rows: Rows, worth: Rows, seed: int, epochs: int) -> nn.Sequential:
    """Train the network to foretell which share of the pigs a shot kills."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    sizes = (rows.shape[1], 128, 64)
    hidden = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    network = nn.Sequential(nn.Dropout(0.05), hidden[0], hidden[1], nn.Dropout(0.3), *hidden[2:], nn.Linear(64, 1))
    optimiser = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=0.03)
    seen, aims = torch.as_tensor(rows), torch.as_tensor(worth)[:, None]
    for epoch in range(epochs):
        optimiser.param_groups[0]["lr"] = 1e-3 * (1 - epoch / epochs)
        total = 0.0
        for chosen in torch.randperm(len(seen)).split(256):
            loss = nn.functional.binary_cross_entropy_with_logits(network(seen[chosen]), aims[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(chosen)
        print(f"epoch {epoch + 1:>3}  loss {total / len(seen):.4f}")
    return network.eval()


def main() -> None:
    """Try shots, train and export."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pool", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=NETWORKS / "shooter.onnx")
    given = parser.parse_args()
    rows, worth = try_shots(given.pool, given.seed)
    print(f"{len(rows):,} shots, {worth.mean():.3f} of the pigs killed")
    network = train(rows, worth, given.seed, given.epochs)
    names = {"input_names": ["shots"], "output_names": ["worth"], "dynamic_axes": {"shots": {0: "n"}}}
    torch.onnx.export(network, (torch.zeros(2, rows.shape[1]),), str(given.out), dynamo=False, **names)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
