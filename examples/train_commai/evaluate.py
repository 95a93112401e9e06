"""Let the trained learner play all micro tasks by itself on a card, and print what it solves.

    python evaluate.py learner.npz --steps 4000

Every task is played by several environments, without labels and without the curriculum; `openfield run commai` plays
the exported network in trials that count.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from model import Learner
from train import Actor, Conversations, load

from openfield.domains.commai.tasks.catalogue import MICRO


@torch.no_grad()
def evaluate(learner: Learner, each: int, steps: int, seed: int) -> dict[str, dict[str, float]]:
    """Return for each task the shares of solved instances and right answers, and how many were asked and ended.

    Args:
        learner: What plays, always what it finds best.
        each: Environments for each task.
        steps: Steps of each.
        seed: The seed of the first environment.
    """
    tasks = list(MICRO)
    conversations = Conversations(tasks, each * len(tasks), seed)
    actor = Actor(learner, conversations.n, steps)
    counts = torch.zeros(6, len(tasks), device="cuda")
    for step in range(steps):
        scores, _ = actor.scores(conversations)
        conversations.step(scores.argmax(1))
        info = conversations.batch.training_info()
        ended, solved = (torch.as_tensor(info[name], device="cuda") for name in ("ended", "solved"))
        late = step >= steps // 2
        paid = conversations.reward - 1
        noted = (ended, ended & solved, paid != 0, paid > 0, (paid != 0) & late, (paid > 0) & late)
        for number, what in enumerate(noted):
            counts[number].index_add_(0, conversations.task, what.float())
    names = ("ended", "solved", "asked", "right", "asked_late", "right_late")
    return {task: dict(zip(names, counts[:, place].tolist(), strict=True)) for place, task in enumerate(tasks)}


def main() -> None:
    """Evaluate, print a row for each task, and write the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--each", type=int, default=16, help="environments for each task")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    given = parser.parse_args()
    learner = Learner().cuda()
    if not load(given.weights, learner):
        parser.error(f"there is no {given.weights}")
    counts = evaluate(learner, given.each, given.steps, given.seed)
    for task, found in counts.items():
        solved, right = found["solved"] / max(1, found["ended"]), found["right"] / max(1, found["asked"])
        late = found["right_late"] / max(1, found["asked_late"])
        print(f"{task:10} solved {solved:.2f} of {found['ended']:5.0f}, right {right:.2f}, at the end {late:.2f}")
    good = sum(found["solved"] >= 0.9 * found["ended"] > 0 for found in counts.values())
    print(f"{given.weights.stem}: {good} of {len(counts)} tasks have nine of ten instances solved")
    given.weights.with_suffix(".tasks.json").write_text(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
