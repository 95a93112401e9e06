"""Train a policy of a world with PPO and write it as an ONNX network that `onnx:WORLD.onnx` plays.

    python examples/baselines/train_policy.py lunarlander

One thread of a processor is enough, but for worlds of pictures, `breakout` and `doom-pixels`: an NVIDIA card is used where
there is one. It needs PyTorch, the package onnx and the extra of the world. The same seed gives the same network on the same
processor.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

import openfield.gym  # noqa: F401 - registers openfield/DoomDuel-v0

NETWORKS = Path(__file__).parent / "networks"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DUEL = "openfield/DoomDuel-v0"
OBJECTS, COLOURS, STATES, DIRECTIONS = 11, 6, 3, 4
"""What MiniGrid tells of a square, and where its agent looks."""
COLOURS_OF_PIXELS, LARGE = 3, 128
"""A picture higher than this many pixels is read at half its size."""


ATARI = {
    "img_height": 210,
    "img_width": 160,
    "maxpool": False,
    "repeat_action_probability": 0.25,
    "use_fire_reset": False,
    "episodic_life": True,
}
"""The pictures of `gymnasium.make` with `obs_type="grayscale"`, the last four at once; a lost life ends an episode."""


class World(NamedTuple):
    """A world and how a policy is trained in it."""

    id: str
    steps: int
    envs: int = 16
    horizon: int = 256
    """Steps of each environment between two updates."""
    gamma: float = 0.99
    decay: float = 0.95
    """How fast later errors of the value are forgotten (lambda of GAE)."""
    rate: float = 1e-3
    entropy: float = 0.01
    epochs: int = 4
    batch: int = 512
    width: int = 64
    scale: float = 1.0
    """What rewards are multiplied by, so that returns are of the order of 1."""
    settings: dict[str, Any] | None = None
    """Settings of a domain of openfield; None means an environment of Gymnasium."""
    many: dict[str, Any] | None = None
    """Arguments of a vector environment that Gymnasium knows for the id."""


WORLDS = {
    "cartpole": World("CartPole-v1", 300_000, envs=8, horizon=128, batch=256, entropy=0.0),
    "lunarlander": World("LunarLander-v3", 1_500_000, gamma=0.999, decay=0.98, rate=1e-3, scale=0.02),
    "doorkey": World("minigrid:MiniGrid-DoorKey-5x5-v0", 400_000, horizon=128),
    "doom": World(DUEL, 120_000, settings={"frame_skip": 4, "reward": "shaped"}, width=128),
    "doom-pixels": World(
        DUEL,
        1_500_000,
        envs=64,
        horizon=128,
        rate=5e-4,
        width=128,
        settings={"observation": "pixels", "image_size": "160x120", "frame_skip": 4, "reward": "shaped"},
    ),
    "breakout": World(
        "ale_py:ALE/Breakout-v5", 6_000_000, envs=128, horizon=128, rate=5e-4, batch=1024, width=128, many=ATARI
    ),
}


class Numbers(nn.Module):
    """Standardises a list of numbers by the mean and deviation of those seen so far."""

    names = ("observation",)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        for name, value in (("mean", torch.zeros), ("square", torch.ones)):
            self.register_buffer(name, value(self.size))
        self.count = 1e-4

    def watch(self, numbers: Tensor) -> None:
        """Take more numbers into the mean and the deviation."""
        share = len(numbers) / (self.count + len(numbers))
        self.count += len(numbers)
        self.mean += share * (numbers.mean(0) - self.mean)
        self.square += share * ((numbers**2).mean(0) - self.square)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return standardised numbers; those that never changed stay zero."""
        deviation = (self.square - self.mean**2).clamp(min=0).sqrt()
        return ((numbers - self.mean) / (deviation + 1e-3)).clamp(-5, 5)


class Squares(nn.Module):
    """Writes the squares that an agent of MiniGrid sees, and where it looks, as one-hot numbers."""

    names = ("image", "direction")
    size = 7 * 7 * (OBJECTS + COLOURS + STATES) + DIRECTIONS

    def __init__(self) -> None:
        super().__init__()
        for name, count in (("objects", OBJECTS), ("colours", COLOURS), ("states", STATES), ("ways", DIRECTIONS)):
            self.register_buffer(name, torch.arange(count).float())

    def forward(self, image: Tensor, direction: Tensor) -> Tensor:
        """Return the numbers of what is seen."""
        image = image.float()
        kinds = (self.objects, self.colours, self.states)
        seen = [(image[..., place, None] == kind).float().flatten(1) for place, kind in enumerate(kinds)]
        return torch.cat([*seen, (direction.float().reshape(-1, 1) == self.ways).float()], 1)


class Pixels(nn.Module):
    """Reads pictures by convolutions: the last few in grey, or one in colours."""

    names = ("observation",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.coloured = shape[-1] == COLOURS_OF_PIXELS
        planes, height = (shape[2], shape[0]) if self.coloured else shape[:2]
        large = height > LARGE
        forms = ((planes, 32, 8, 4), (32, 64, 4, 2), (64, 32, 3, 1 if large else 2))
        layers = [each for form in forms for each in (nn.Conv2d(*form), nn.ReLU())]
        self.layers = nn.Sequential(*([nn.MaxPool2d(2)] if large else []), *layers, nn.Flatten())
        self.size = self(torch.zeros(1, *shape)).shape[1]

    def forward(self, pictures: Tensor) -> Tensor:
        """Return what the last convolution finds, and where."""
        shares = pictures.float() / 255
        return self.layers(shares.permute(0, 3, 1, 2) if self.coloured else shares)


def make_reader(space: gymnasium.Space[Any]) -> nn.Module:
    """Return what reads the observations of a space."""
    if isinstance(space, gymnasium.spaces.Dict):
        return Squares()
    return Pixels(space.shape) if space.dtype == np.uint8 else Numbers(int(np.prod(space.shape)))


class Policy(nn.Module):
    """Scores the actions; a second network of the same form, which is not exported, estimates the return."""

    def __init__(self, space: gymnasium.Space[Any], actions: int, width: int) -> None:
        super().__init__()
        self.reader = make_reader(space)
        self.actor, self.critic = (self.make_layers(width, outputs) for outputs in (actions, 1))
        with torch.no_grad():
            self.actor[-1].weight *= 0.01

    def make_layers(self, width: int, outputs: int) -> nn.Sequential:
        """Return two hidden layers and the outputs."""
        sizes = (self.reader.size, width, width)
        hidden = [each for a, b in itertools.pairwise(sizes) for each in (nn.Linear(a, b), nn.Tanh())]
        return nn.Sequential(*hidden, nn.Linear(width, outputs))

    def forward(self, *seen: Tensor) -> Tensor:
        """Return a score of each action."""
        return self.actor(self.reader(*seen))

    def judge(self, *seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of actions and the estimated return."""
        read = self.reader(*seen)
        return self.actor(read), self.critic(read)[:, 0]


class Stretch(NamedTuple):
    """What was met between two updates: steps by environments, and the observations of one step more."""

    seen: list[Tensor]
    actions: Tensor
    chances: Tensor
    rewards: Tensor
    ended: Tensor
    lost: Tensor
    """Whether an episode ended by itself, so that nothing follows."""
    real: Tensor
    """False where the step only began an episode."""


class Player:
    """Plays many environments at once and keeps what it meets."""

    def __init__(self, world: World, envs: Any, policy: Policy, seed: int) -> None:
        self.world, self.envs, self.policy = world, envs, policy
        self.now, _ = envs.reset(seed=seed)
        self.began = np.zeros(world.envs, bool)
        self.totals, self.returns = np.zeros(world.envs), list[float]()

    def look(self) -> list[Tensor]:
        """Return what is seen now."""
        names = self.policy.reader.names
        parts = [np.asarray(self.now[name] if len(names) > 1 else self.now) for name in names]
        return [torch.as_tensor(part).to(DEVICE, copy=True) for part in parts]

    @torch.no_grad()
    def play(self) -> Stretch:
        """Play until the next update."""
        rows: list[tuple[Any, ...]] = []
        frames = [self.look()]
        for _ in range(self.world.horizon):
            scores = torch.log_softmax(self.policy(*frames[-1]), 1)
            action = torch.distributions.Categorical(logits=scores).sample()
            self.now, reward, lost, cut, _ = self.envs.step(action.cpu().numpy())
            real, ended = ~self.began, (lost | cut) & ~self.began
            rows.append((action, scores.gather(1, action[:, None])[:, 0], reward * real, ended, lost & real, real))
            self.totals += reward * real
            self.returns += self.totals[ended].tolist()
            self.totals[ended] = 0.0
            self.began = ended
            frames.append(self.look())
        parts = [
            torch.stack([torch.as_tensor(each) for each in column]).to(DEVICE) for column in zip(*rows, strict=True)
        ]
        seen = [torch.stack(column) for column in zip(*frames, strict=True)]
        return Stretch(seen, parts[0], parts[1], parts[2].float(), parts[3].float(), parts[4].float(), parts[5])


@torch.no_grad()
def find_advantages(world: World, values: Tensor, met: Stretch) -> Tensor:
    """Return by how much each action was better than expected (generalised advantage estimation)."""
    advantages, later = torch.zeros_like(met.rewards), torch.zeros(world.envs, device=DEVICE)
    for at in range(world.horizon - 1, -1, -1):
        error = world.scale * met.rewards[at] + world.gamma * values[at + 1] * (1 - met.lost[at]) - values[at]
        later = error + world.gamma * world.decay * (1 - met.ended[at]) * later
        advantages[at] = later
    return advantages


def improve(world: World, policy: Policy, optimiser: torch.optim.Optimizer, met: Stretch) -> None:
    """Update the policy by the clipped objective of PPO."""
    with torch.no_grad():
        flat = [part.flatten(0, 1) for part in met.seen]
        values = torch.cat([policy.judge(*rows)[1] for rows in zip(*(part.split(4096) for part in flat), strict=True)])
        values = values.reshape(world.horizon + 1, world.envs)
    advantages = find_advantages(world, values, met)
    real = met.real.flatten().nonzero()[:, 0]
    aims, gains = ((part.flatten()) for part in (advantages + values[:-1], advantages))
    chances, actions = met.chances.flatten(), met.actions.flatten()
    for _ in range(world.epochs):
        for rows in real[torch.randperm(len(real)).to(DEVICE)].split(world.batch):
            scores, value = policy.judge(*(part[rows] for part in flat))
            scores = torch.log_softmax(scores, 1)
            gain = (gains[rows] - gains[rows].mean()) / (gains[rows].std(correction=0) + 1e-8)
            ratio = (scores.gather(1, actions[rows, None])[:, 0] - chances[rows]).exp()
            gained = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            entropy = -(scores.exp() * scores).sum(1).mean()
            loss = 0.5 * (value - aims[rows]).pow(2).mean() - gained - world.entropy * entropy
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimiser.step()


def train(world: World, seed: int, kept: Path | None = None, log: Callable[[str], None] = print) -> Policy:
    """Train a policy, or go on with one that was kept in a file."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    envs = make_envs(world)
    policy = Policy(envs.single_observation_space, int(envs.single_action_space.n), world.width).to(DEVICE)
    optimiser = torch.optim.Adam(policy.parameters(), world.rate, eps=1e-5)
    player, start, size, first = Player(world, envs, policy, seed), time.monotonic(), world.envs * world.horizon, 0
    if kept and kept.is_file():
        weights, moments, first = torch.load(kept, DEVICE)
        policy.load_state_dict(weights)
        optimiser.load_state_dict(moments)
    for done in range(first, world.steps, size):
        optimiser.param_groups[0]["lr"] = world.rate * (1 - done / world.steps)
        met = player.play()
        improve(world, policy, optimiser, met)
        if hasattr(policy.reader, "watch"):
            policy.reader.watch(met.seen[0].flatten(0, 1))
        if done // size % 10 == 0 or done + size >= world.steps:
            recent = np.mean(player.returns[-100:]) if player.returns else float("nan")
            log(f"{done + size:>9,} steps  {time.monotonic() - start:5.0f} s  mean return {recent:8.3f}")
            if kept:
                torch.save((policy.state_dict(), optimiser.state_dict(), done + size), kept)
    envs.close()
    return policy.cpu()


def make_envs(world: World) -> Any:
    """Make the environments that are played at once."""
    if world.many is None and world.settings is None:
        return gymnasium.make_vec(world.id, world.envs)
    options = {"settings": world.settings} if world.many is None else world.many
    return gymnasium.make_vec(world.id, world.envs, vectorization_mode="vector_entry_point", **options)


def export(policy: Policy, space: gymnasium.Space[Any], path: Path) -> None:
    """Write the policy as an ONNX network that takes one observation and scores the actions."""
    names = policy.reader.names
    parts = [space[name] for name in names] if len(names) > 1 else [space]
    seen = tuple(torch.as_tensor(np.asarray(part.sample()))[None] for part in parts)
    torch.onnx.export(policy.eval(), seen, str(path), input_names=names, output_names=["scores"], dynamo=False)


def main() -> None:
    """Train and export."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("world", choices=WORLDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kept", type=Path, help="a file that keeps the weights, so that the same command goes on")
    given = parser.parse_args()
    world, out = WORLDS[given.world], given.out or NETWORKS / f"{given.world}.onnx"
    policy, envs = train(world, given.seed, given.kept), make_envs(world._replace(envs=1))
    export(policy, envs.single_observation_space, out)
    envs.close()
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
