"""Train the learner on CommAI's micro tasks, on one NVIDIA card.

    python train.py --seconds 480 --out learner            # 40 tasks
    python train.py --without 'micro5.1[0-8]' --made 80 --drawn-alphabets 0.5 --out narrow

`--without` leaves families of tasks out, to measure transfer; `--made` adds mappings of digits of other forms than those
of micro5, and `--drawn-alphabets` lets other letters stand for the letters in a share of the environments.

The oracle says what would have been right at every step. At first the environments are played by an oracle that errs;
later also by the learner itself, so that it sees what its own mistakes lead to. `--reward-only` uses no labels of the
oracle: the learner imitates those of its own answers that were rewarded. Training goes on from `OUT.npz` if it is there.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from model import SPACE, SYMBOLS, Learner, make_caches, rotations
from torch import Tensor
from torch.nn import functional

from openfield.domains import commai
from openfield.domains.commai.tasks.catalogue import CATALOGUE, MICRO
from openfield.domains.commai.tasks.mapping import DigitsTask, Shape

DOT = ord(".")
LENGTH = 1024
"""Steps of a sequence that is learned from."""
SKILLS = (0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 1.0)
"""How often the erring oracle is right. Long runs of wrong guesses teach what is left to try, as micro1 asks for."""
LETTERS = tuple(range(ord("a"), ord("z") + 1))


class Experience(NamedTuple):
    """Sequences of steps."""

    teacher: Tensor
    own: Tensor
    """What the learner said a step ago."""
    reward: Tensor
    """The reward for that, and one."""
    label: Tensor
    weight: Tensor


class Conversations:
    """Environments on the card, each with a task, and perhaps with letters of its own."""

    def __init__(self, tasks: list[str], n: int, seed: int, drawn_alphabets: float = 0.0) -> None:
        self.n, self.tasks = n, tasks
        curricula = [(tasks[number % len(tasks)],) for number in range(n)]
        self.batch = commai.batch(curricula, n, commai.CommaiSettings(cyclic=True), seed=seed, device="cuda")
        self.rng = torch.Generator("cuda").manual_seed(seed)
        self.said = self.draw_alphabets(drawn_alphabets)
        self.meant = self.said.argsort(1)
        self.teacher = self.show(torch.as_tensor(self.batch.reset(), device="cuda"))
        self.own = torch.full((n,), SPACE, device="cuda")
        self.reward = torch.ones(n, dtype=torch.long, device="cuda")
        self.task = torch.arange(n, device="cuda") % len(tasks)

    def draw_alphabets(self, share: float) -> Tensor:
        """Return what each symbol looks like in each environment: in some, other letters stand for the letters."""
        looks = torch.arange(SYMBOLS, device="cuda").repeat(self.n, 1)
        letters = torch.tensor(LETTERS, device="cuda")
        drawn = letters[torch.rand(self.n, len(LETTERS), generator=self.rng, device="cuda").argsort(1)]
        other = torch.rand(self.n, generator=self.rng, device="cuda") < share
        looks[:, letters] = torch.where(other[:, None], drawn, letters)
        return looks

    def show(self, symbols: Tensor) -> Tensor:
        """Return symbols as the learner sees them."""
        return self.said.gather(1, symbols.long().clamp(0, SYMBOLS - 1)[:, None])[:, 0]

    def answers(self) -> Tensor:
        """Return the right symbols as the learner sees them, or -1."""
        right = torch.as_tensor(self.batch.answers(), device="cuda")
        return torch.where(right < 0, -1, self.show(right))

    def step(self, symbols: Tensor) -> None:
        """Say a symbol in each environment."""
        heard = self.meant.gather(1, symbols[:, None])[:, 0]
        teacher, reward = self.batch.step(heard.int())
        self.teacher, self.own = self.show(torch.as_tensor(teacher, device="cuda")), symbols
        self.reward = torch.as_tensor(reward, device="cuda").long() + 1

    def err(self, right: Tensor, skill: Tensor) -> Tensor:
        """Return the answers of an oracle that errs: it says a dot, repeats what it heard or said, or any symbol.

        An oracle that is seldom right repeats what it heard instead of dots, as one who searches would.
        """
        draw, kind = (torch.rand(self.n, generator=self.rng, device="cuda") for _ in range(2))
        other = torch.randint(SPACE, 123, (self.n,), generator=self.rng, device="cuda")
        wrong = torch.where((kind < 0.3) & (skill >= 0.2), DOT, torch.where(kind < 0.6, self.teacher, other))
        wrong = torch.where((kind >= 0.6) & (kind < 0.75), self.own, wrong)
        return torch.where(right < 0, SPACE, torch.where(draw < skill, right, wrong))


class Actor:
    """The learner, playing many environments by itself."""

    def __init__(self, learner: Learner, n: int, steps: int) -> None:
        self.learner, self.at = learner, 0
        self.caches = make_caches(n, "cuda", torch.bfloat16)
        self.turns = rotations(steps, "cuda")

    @torch.no_grad()
    def scores(self, conversations: Conversations) -> tuple[Tensor, Tensor]:
        """Return scores of what to say now, and of what will be said next."""
        shown = conversations.teacher, conversations.own, conversations.reward
        with torch.autocast("cuda", torch.bfloat16):
            own, teacher = self.learner.step(shown, self.caches, self.at, self.turns)
        self.at += 1
        return own.float(), teacher.float()


def play(conversations: Conversations, skills: Tensor, actor: Actor | None, labelled: bool) -> Experience:
    """Play on, and return what there is to learn.

    Args:
        conversations: The environments.
        skills: How often the erring oracle is right in each.
        actor: The learner, if it plays itself; it says what it finds likely, but the best in every other environment.
        labelled: Whether the oracle's answers are learned, or the actor's own where they were rewarded.
    """
    n = conversations.n
    teacher, own, reward, label = (torch.empty(n, LENGTH, dtype=torch.uint8, device="cuda") for _ in range(4))
    weight = torch.empty(n, LENGTH, device="cuda")
    greedy = torch.arange(n, device="cuda") // len(conversations.tasks) % 2 == 0
    for t in range(LENGTH):
        teacher[:, t], own[:, t] = conversations.teacher, conversations.own
        reward[:, t] = conversations.reward
        right = conversations.answers()
        if actor is None:
            said = conversations.err(right, skills)
        else:
            scores, _ = actor.scores(conversations)
            noise = -torch.log(-torch.log(torch.rand(scores.shape, device="cuda") + 1e-9) + 1e-9)
            said = torch.where(greedy, scores.argmax(1), (scores + noise).argmax(1))
        label[:, t] = torch.where(right < 0, SPACE, right) if labelled else said
        weight[:, t] = torch.where(right < 0, 0.02, 1.0)
        conversations.step(said)
    if not labelled:
        weight *= find_rewarded(reward)
    return Experience(teacher, own, reward, label, weight)


def find_rewarded(reward: Tensor) -> Tensor:
    """Return 1 for what was said since the last reward if the next one is positive, and else 0."""
    good = torch.zeros(len(reward), device="cuda")
    kept = torch.zeros(reward.shape, device="cuda")
    for t in range(reward.shape[1] - 2, -1, -1):  # the reward for what is said at t is shown at t + 1
        paid = reward[:, t + 1]
        good = torch.where(paid == 1, good, (paid == 2).float())
        kept[:, t] = good
    return kept


def learn(learner: Learner, batch: Experience) -> Tensor:
    """Return the loss of a part of an experience: of its answers, and a tenth of foretelling the teacher."""
    with torch.autocast("cuda", torch.bfloat16):
        own, teacher = learner(batch.teacher.int(), batch.own.int(), batch.reward.int())
    said = functional.cross_entropy(own.float().flatten(0, 1), batch.label.long().flatten(), reduction="none")
    weight = batch.weight.flatten()
    foretold = functional.cross_entropy(teacher[:, :-1].float().flatten(0, 1), batch.teacher[:, 1:].long().flatten())
    return (said * weight).sum() / weight.sum().clamp(min=1) + 0.1 * foretold


def make_tasks(count: int, seed: int) -> list[str]:
    """Add mappings of digits of forms that none of the forty tasks has, and return their names."""
    rng = random.Random(seed)
    known = {task._shape for name in MICRO if isinstance(task := CATALOGUE[name](name), DigitsTask)}
    names: list[str] = []
    while len(names) < count:
        lengths = [(low, low + rng.randrange(5)) for low in rng.choices(range(1, 6), k=3)]
        question, answer, noise = (each if rng.random() < 0.6 else None for each in lengths)
        end, after = rng.choice(".:?,"), rng.choice(".;!,")
        chance = rng.choice([0.3, 0.5, 1.0])
        shape = Shape(question, answer, end, rng.choice(".,"), after, noise, chance, rng.random() < 0.3)
        if not any((shape.question, shape.answer, shape.noise) == (x.question, x.answer, x.noise) for x in known):
            names.append(f"made.{len(names)}")
            CATALOGUE[names[-1]] = MICRO[names[-1]] = partial(DigitsTask, shape=shape)
    return names


def make_blank(n: int) -> Experience:
    """Return sequences of nothing."""
    blank = torch.zeros(n, LENGTH, dtype=torch.uint8, device="cuda")
    return Experience(blank, blank, blank, blank, torch.ones(n, LENGTH, device="cuda"))


def save(path: Path, learner: Learner, **facts: object) -> None:
    """Write the weights, as halves, and what is known of the training."""
    weights = {name: value.detach().half().cpu().numpy() for name, value in learner.state_dict().items()}
    np.savez(path.with_suffix(".npz"), **weights)
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1))


def load(path: Path, learner: Learner) -> bool:
    """Read the weights if they are there."""
    file = path.with_suffix(".npz")
    if file.exists():
        with np.load(file) as kept:
            learner.load_state_dict({name: torch.from_numpy(kept[name]).float() for name in kept.files})
    return file.exists()


def main() -> None:
    """Train, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("learner"))
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", help="a regular expression of tasks that are left out")
    parser.add_argument("--made", type=int, default=0, help="mappings of digits of other forms, beside the tasks")
    parser.add_argument("--drawn-alphabets", type=float, default=0.0, help="share of environments with other letters")
    parser.add_argument("--reward-only", action="store_true")
    parser.add_argument("--n", type=int, default=8192, help="environments")
    parser.add_argument("--own", type=int, default=2048, help="environments that the learner plays itself")
    parser.add_argument("--part", type=int, default=64, help="sequences per update")
    parser.add_argument("--rate", type=float, default=1.2e-3)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    tasks = [name for name in MICRO if not (given.without and re.fullmatch(given.without, name))]
    played = tasks + ["micro1"] * 3 + make_tasks(given.made, given.seed)  # micro1 has to be searched for, which is hard
    learner = Learner().cuda()
    warm = 1 if load(given.out, learner) else 300
    compiled = torch.compile(learner)
    optimiser = torch.optim.AdamW(learner.parameters(), lr=given.rate, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    oracle = Conversations(played, given.n, 2 * given.seed, given.drawn_alphabets)
    itself = Conversations(played, given.own, 2 * given.seed + 1, given.drawn_alphabets)
    levels = torch.tensor(SKILLS, device="cuda")
    learn(compiled, make_blank(given.part)).backward()  # compiles
    optimiser.zero_grad(set_to_none=True)
    began, cycles, updates, tokens, told, share = time.time(), 0, 0, 0, 0.0, 0.0
    while share < 1:
        skills = levels[torch.randint(len(SKILLS), (given.n,), device="cuda")]
        taught = [] if given.reward_only and updates else [play(oracle, skills, None, labelled=not given.reward_only)]
        cycles += 1
        if given.reward_only or (share > 0.25 and cycles % 2):
            taught.append(play(itself, skills, Actor(learner, given.own, LENGTH), labelled=not given.reward_only))
        experience = Experience(*(torch.cat(parts) for parts in zip(*taught, strict=True)))
        order = torch.randperm(len(experience.label), device="cuda")
        for start in range(0, len(order) - given.part + 1, given.part):
            share = (time.time() - began) / given.seconds
            if share >= 1:
                break
            rate = given.rate * min(1, (updates + 1) / warm) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
            for group in optimiser.param_groups:
                group["lr"] = rate
            part = Experience(*(each[order[start : start + given.part]] for each in experience))
            loss = learn(compiled, part)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
            optimiser.step()
            updates, tokens = updates + 1, tokens + part.label.numel()
        if time.time() - told > 20:
            told = time.time()
            seconds = told - began
            print(
                f"{seconds:.0f} s, {updates} updates, {tokens / 1e6:.0f} million steps, loss {loss.item():.4f}",
                flush=True,
            )
            save(given.out, learner, tasks=tasks, steps=tokens, seconds=round(seconds), seed=given.seed)
    save(given.out, learner, tasks=tasks, steps=tokens, seconds=round(time.time() - began), seed=given.seed)
    print(f"{tokens / (time.time() - began) / 1e6:.2f} million steps learned a second", flush=True)


if __name__ == "__main__":
    main()
