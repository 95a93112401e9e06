"""What the physics of birds does to fixed shots: films, published signatures, pass rates, and what can be solved.

One JSON line per figure. The levels are our own, so pass rates are not those of the published levels.
`python bench/bench_birds_physics.py FOLDER` asks the same of other levels, in the layout of a pool.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from birds_films import NOTCH, film_facts
from openfield.core import Spec
from openfield.domains.birds.agents import NaiveShooter, Planner
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.agents.shooters import Shooter
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.files.templates import SCENARIOS, build, load_templates
from openfield.domains.birds.game.bodies import INTANGIBLE
from openfield.domains.birds.game.game import ANGLES, Game, measure_progress
from openfield.domains.birds.game.ground_truth import ground_truth
from openfield.domains.birds.game.level import Level, LevelObject, ProfileName
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.domains.birds.novelty import CHANGES, change_level

FULL_POWER = range(-14, 81)
"""Degrees of the 95 shots that are tried at a template."""
BARS = {"normal": 0.95, "novel": 0.95, "phyq": 0.7}
"""The least share of levels that a full-power shot must solve: normal and novel ones, and normal ones in `phyq`."""
DRAWN = 3
"""Levels drawn from each template, whether they can be solved or not."""


class Bench:
    """Plays levels."""

    def shoot(self, level: Level, degrees: float, profile: ProfileName | None = None) -> Game:
        """Plays a level to its end, every bird at the same angle."""
        return self.follow(level, [degrees] * len(level.birds), profile)

    def follow(self, level: Level, shots: list[float], profile: ProfileName | None = None) -> Game:
        game = Game(level, profile)
        side = 1 if level.sling[0] < 0 else -1
        for degrees in shots:
            if game.bird_ready:
                game.shoot(side * math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
                game.settle()
        return game

    def solvable(self, level: Level, profile: ProfileName | None = None) -> bool:
        """True if some angle passes a level, or the best angle for each bird in turn."""
        if any(self.shoot(level, degrees, profile).state == "won" for degrees in FULL_POWER):
            return True
        chosen: list[float] = []
        for _ in level.birds:
            games = {degrees: self.follow(level, [*chosen, degrees], profile) for degrees in ANGLES}
            if any(game.state == "won" for game in games.values()):
                return True
            chosen.append(max(games, key=lambda degrees: measure_progress(games[degrees])))
        return False

    def moved(self, level: Level, profile: ProfileName | None = None) -> float:
        """How far an object moves before the first shot; infinite if one is lost."""
        game = Game(level, profile)
        placed = [each for each in level.objects if each.kind != "ExternalAgent" and each.type not in INTANGIBLE]
        if len(game.bodies) != len(placed):
            return math.inf
        pairs = zip(game.bodies, placed, strict=True)
        return max((math.dist(body.place, (each.x, each.y)) for body, each in pairs), default=0.0)

    def passes(self, level: Level, agent: Shooter, profile: ProfileName) -> bool:
        game = Game(level, profile)
        while game.bird_ready:
            (dx, dy), tap = agent.choose(observe_level(ground_truth(see(game, zoomed_out(level.camera)))))
            game.shoot(dx, dy, tap / 1000)
            game.settle()
        return game.state == "won"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", nargs="?", type=Path)
    chosen = options.parse_args()
    bench, pool = Bench(), LevelPool(chosen.folder)
    if chosen.folder is None:
        show_films()
        show_signatures(bench)
    show_loads(pool)
    show_templates(bench, pool)
    show_pass_rates(bench, pool)
    if chosen.folder is None:
        show_drawn(bench)


def show_films() -> None:
    """What films of the original show, beside ours."""
    for fact in film_facts():
        ratio = None if fact.ratio is None else round(fact.ratio, 2)
        bar = f"at most {fact.most:g}" if fact.most is not None else "within 20 %"
        show(f"film, {fact.name}", fact.ours, film=fact.film, ratio=ratio, limit=bar, ok=fact.holds)


def show_signatures(bench: Bench) -> None:
    """Figures of the published scores that levels of our own can have too."""
    ball = LevelObject(kind="Block", type="Circle", material="stone", x=-6.0, y=-1.3)
    points = list(hit_points(bench, ball))
    even = sum(score % 2 == 0 for score in points) / max(1, len(points))
    show("phyq, a bird hits a stone ball: share of even points", even, published=0.93)
    show("phyq, a bird hits a stone ball: median points", statistics.median(points), published=78)
    shots = [bench.shoot(NOTCH, number / 4, "phyq") for number in range(68, 92)]
    rest = [game.score % 5000 for game in shots if game.state == "won"]
    show(
        "phyq, a big pig in a notch: median points of hits in won levels",
        statistics.median(rest or [0]),
        published=2150,
    )
    show("phyq, a big pig in a notch: lowest points of hits in won levels", min(rest, default=0), published=1800)
    show("phyq, a big pig in a notch: highest points of hits in won levels", max(rest, default=0), published=2750)
    blocks = [
        LevelObject(kind="Block", type=type_, material=material, x=-6.0, y=-1.3)
        for type_ in ("RectFat", "SquareHole", "Circle", "RectMedium")
        for material in ("wood", "stone")
    ]
    points = [score for block in blocks for score in hit_points(bench, block)]
    odd = sum(score % 10 != 0 for score in points) / max(1, len(points))
    show("phyq, one bird at blocks: share of points that are not multiples of 10", odd, published=0.8)
    square = LevelObject(kind="Block", type="SquareHole", material="wood", x=-6.06, y=-3.1)
    level = Level(birds=("BirdRed",), objects=(square, LevelObject(kind="Pig", type="BasicSmall", x=15.0, y=-3.27)))
    scores = [score for number in range(26) if (score := bench.shoot(level, number / 2 - 13, "phyq").score) >= 100]
    alone = sum(score == 500 for score in scores) / max(1, len(scores))
    show("phyq, a bird hits a square of wood on the ground: share of exactly 500 points", alone, published=0.99)


def played(bench: Bench, target: LevelObject) -> Iterator[Game]:
    """Levels with one target on a floor and a pig far away, shot at every half degree."""
    floor = LevelObject(kind="Platform", x=-6.0, y=-2.0, scale_x=8.0)
    far = LevelObject(kind="Pig", type="BasicSmall", x=15.0, y=-3.27)
    level = Level(birds=("BirdRed",), objects=(floor, target, far))
    for number in range(26):
        yield bench.shoot(level, 2 + number / 2, "phyq")


def hit_points(bench: Bench, target: LevelObject) -> Iterator[int]:
    """The points of hits that earned any, without those of destroyed blocks."""
    return (game.score % 500 for game in played(bench, target) if game.score % 500)


def show_loads(pool: LevelPool) -> None:
    """How many of all levels are over before the first shot."""
    loaded: dict[ProfileName, list[Level]] = {"sailon": [], "phyq": []}
    for number in range(9):
        for type_ in pool.types(number):
            levels = [pool.level(name) for name in pool.names(number, type_)]
            loaded["sailon"] += levels
            loaded["phyq"] += [] if number else [without_novelties(level) for level in levels]
    for profile, found in loaded.items():
        ended = sum(Game(level, profile).state != "playing" for level in found)
        show(f"{profile}, of {len(found)} levels: won or lost when they are loaded", ended, 0, "lower")


def show_templates(bench: Bench, pool: LevelPool) -> None:
    """How many templates stand still, and how many some full-power shot solves."""
    found: dict[str, list[Level]] = {"normal": [], "novel": [], "phyq": []}
    for number in range(9):
        for type_ in pool.types(number):
            if type_ in load_templates():
                found["novel" if number else "normal"].append(pool.level(pool.names(number, type_)[0]))
    found["phyq"] = [without_novelties(level) for level in found["normal"]]
    for kind, levels in found.items():
        profile: ProfileName = "phyq" if kind == "phyq" else "sailon"
        moving = sum(bench.moved(level, profile) > 0.3 for level in levels)
        show(f"{kind} templates in which something moves before the first shot", moving, 0, "lower")
        solved = sum(bench.solvable(level, profile) for level in levels) / max(1, len(levels))
        show(f"share of {len(levels)} {kind} templates that some full-power shot solves", solved, BARS[kind])


def without_novelties(level: Level) -> Level:
    """A level as Phy-Q has them: without winds."""
    return replace(level, objects=tuple(each for each in level.objects if each.kind != "Novelty"))


def show_drawn(bench: Bench) -> None:
    """The same for levels as they are drawn: those that ship were chosen because they can be solved."""
    counts = {"normal": [0, 0], "novel": [0, 0], "phyq": [0, 0]}
    for type_, template in load_templates().items():
        change = list(CHANGES)[int(type_[2:4]) - 1]
        for number in range(DRAWN):
            normal = build(template, random.Random(f"{type_} {number}"))
            novel, plain = change_level(normal, [change]), without_novelties(normal)
            for kind, level in (("normal", normal), ("novel", novel), ("phyq", plain)):
                counts[kind][0] += bench.solvable(level, "phyq" if kind == "phyq" else "sailon")
                counts[kind][1] += 1
    for kind, (solved, total) in counts.items():
        figure = f"share of {total} {kind} levels, as drawn, that some full-power shot solves"
        show(figure, solved / total, BARS[kind])


def show_pass_rates(bench: Bench, pool: LevelPool) -> None:
    profiles: tuple[ProfileName, ...] = ("sailon", "phyq")
    for profile in profiles:
        for kind in (NaiveShooter, Planner):
            for number, scenario in enumerate(SCENARIOS, 1):
                types = [type_ for type_ in pool.types(0) if type_ in load_templates() and int(type_[4:]) == number]
                levels = [pool.level(name) for type_ in types for name in pool.names(0, type_)[:2]]
                agent = kind(Spec(domain="birds", task=""), 1)
                passed = sum(bench.passes(level, agent, profile) for level in levels)
                show(f"{profile}, pass rate of {kind.__name__}, {scenario}", passed / max(1, len(levels)))


def show(figure: str, value: float, bar: float | None = None, better: str = "higher", **more: Any) -> None:
    line: dict[str, Any] = {"subject": "birds physics", "figure": figure, "value": round(value, 3), **more}
    if bar is not None:
        line |= {"bar": bar, "better": better, "ok": value >= bar if better == "higher" else value <= bar}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
