"""All controls in every domain, the counter at every n: none reaches more than chance in concordance.

Counters and the alarmist also meet changes that come gradually, again, or one after the other, in twelve processes.

`--trials N` [40] changed trials a domain. Counter and alarmist go by the number of the episode only, so that theirs is
0.5 exactly; the others are held to a p-value of .001, corrected for their number.
"""

from __future__ import annotations

from pathlib import Path

from common import QUICK, SMALL, complete, finish, folder, parameter, report
from openfield.agents.controls import KINDS
from openfield.metrics import Estimate
from openfield.result import Result

TESTED = {"examples/maze.py": 25, "birds": 4, "commai": 300, "doom": 4, "ond": 13}
"""Test episodes of the quick trials (of CommAI: steps), so that a counter changes its mind within them."""
SHORT = {domain: options[2:] for domain, options in QUICK.items()} | {
    "birds": ["--set", "training=1", "--set", "before=2", "--set", "after=2", "--set", "onset=1-3"]
}
"""The options of short trials whose change is drawn; quick runs of Birds fix it."""
ALPHA = 0.001
NUMBERS = {
    "examples/maze.py": "slip:hard",
    "birds": "gravity=2",
    "commai": "alphabet:hard",
    "doom": "enemy_stride=8",
    "ond": "classes",
}
"""A novelty that changes a number, for each domain."""
PROCESSES = (
    "over 2",
    "over 3 in steps of 2",
    "every 2",
    "every 3 for 1",
    "for 1",
    "with probability 0.5",
    "as bursts(probability=0.3, length=2)",
    "as sine(period=3)",
    "as sigmoid(width=3)",
    "as geometric(ratio=3, start=0.2)",
    "as points(0:0.5, 1:0, 2:1)",
    "as walk(sigma=0.2)",
)
"""They fit the short tests, and all of them change the world before these are over."""


def main(trials: int) -> None:
    with folder() as place:
        for domain, length in TESTED.items():
            count_away(domain, place / "run.sqlite", length, max(5, trials // 4))
            judge(domain, place / "run.sqlite", trials)
            for process in PROCESSES[:: 5 if SMALL else 1]:
                change(f"{NUMBERS[domain]} {process}", domain, place / "run.sqlite", max(5, trials // 4))


def count_away(domain: str, path: Path, length: int, trials: int) -> None:
    """Report how far from 0.5 counters are; fewer trials show it as well, because theirs is exact."""
    counters = [f"counter:{number}" for number in range(0, length + 1, max(1, length // 5) if SMALL else 1)]
    found = play(domain, path, [*counters, "alarmist"], trials)
    away = [1.0 if each.mean is None else abs(each.mean - 0.5) for each in found.values()]
    report("controls", f"{domain}: counters away from 0.5", max(away, default=1.0), 1e-9, counters=len(away))


def change(novelty: str, domain: str, path: Path, trials: int) -> None:
    """Report how far from 0.5 beliefs are that depend on time alone, where the world changes like this."""
    length = TESTED[domain]
    counters = [f"counter:{number}" for number in (0, length // 3, length // 2, length)]
    found = play(domain, path, [*dict.fromkeys(counters), "alarmist"], trials, "--novelty", novelty)
    away = [1.0 if each.mean is None else abs(each.mean - 0.5) for each in found.values()]
    report("controls", f"{domain}, {novelty}: counters away from 0.5", max(away, default=1.0), 1e-9, counters=len(away))


def judge(domain: str, path: Path, trials: int) -> None:
    """Report which of the controls that do not count beat chance."""
    found = play(domain, path, [name for name in KINDS if name not in ("counter", "enumerator", "peeker")], trials)
    beat = [name for name, each in found.items() if each.p is not None and each.p < ALPHA / len(found)]
    means = {name: each.mean for name, each in found.items()}
    report("controls", f"{domain}: controls that beat chance", len(beat), 0, trials=trials, concordance=means)


def play(domain: str, path: Path, agents: list[str], trials: int, *more: str) -> dict[str, Estimate]:
    """Play the agents, with more options, and return the concordance of each."""
    named = [word for agent in agents for word in ("--agent", agent)]
    usual = (
        SHORT[domain][: SHORT[domain].index("--novelty")] if more and "--novelty" in SHORT[domain] else SHORT[domain]
    )
    options = [*usual, "--trials", str(trials), *named, "--workers", "2", "-o", str(path), *more]
    status, said = complete(["run", domain, *options], timeout=None)
    if status:
        raise SystemExit(f"{domain}: {said}")
    groups = Result([path]).summary().groups
    path.unlink()
    return {group.agent: group.estimates["concordance"] for group in groups if "concordance" in group.estimates}


if __name__ == "__main__":
    main(parameter("trials", 40, 5))
    finish()
