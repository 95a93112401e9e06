"""All controls in every domain, the counter at every n: none reaches more than chance in concordance.

`--trials N` [40] changed trials a domain. Counter and alarmist go by the number of the episode only, so that theirs is
0.5 exactly; the others are held to a p-value of .001, corrected for their number.
"""

from __future__ import annotations

from pathlib import Path

from common import QUICK, SMALL, complete, finish, folder, parameter, report
from openfield.agents.controls.find import KINDS
from openfield.result import Result

TESTED = {"examples/maze.py": 25, "birds": 4, "commai": 300, "doom": 4, "ond": 13}
"""Test episodes of the quick trials (of CommAI: steps), so that a counter changes its mind within them."""
ALPHA = 0.001


def main(trials: int) -> None:
    with folder() as place:
        for domain, length in TESTED.items():
            counters = [f"counter:{number}" for number in range(0, length + 1, max(1, length // (5 if SMALL else 25)))]
            judge(domain, place / "run.sqlite", counters, trials)


def judge(domain: str, path: Path, counters: list[str], trials: int) -> None:
    sightless = [name for name in KINDS if name not in ("counter", "enumerator", "peeker")]
    named = [word for agent in (*counters, *sightless) for word in ("--agent", agent)]
    options = [*QUICK[domain][2:], "--trials", str(trials), *named, "--workers", "2", "-o", str(path)]
    status, said = complete(["run", domain, *options])
    if status:
        raise SystemExit(f"{domain}: {said}")
    groups = Result([path]).summary().groups
    found = {group.agent: group.estimates["concordance"] for group in groups if "concordance" in group.estimates}
    path.unlink()
    means = {name: each.mean for name, each in found.items() if each.mean is not None}
    exact = [abs(mean - 0.5) for name, mean in means.items() if name.startswith(("counter", "alarmist"))]
    report("controls", f"{domain}: counters away from 0.5", max(exact, default=1.0), 1e-9, counters=len(exact))
    beat = [name for name, each in found.items() if each.p is not None and each.p < ALPHA / len(found)]
    others = {name: mean for name, mean in means.items() if not name.startswith("counter")}
    report("controls", f"{domain}: controls that beat chance", len(beat), 0, trials=trials, concordance=others)


if __name__ == "__main__":
    main(parameter("trials", 40, 5))
    finish()
