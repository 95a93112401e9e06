"""Write the pictures of `docs/recipes`: each is made of a run of the recipe's own example.

Films show the end of what an agent does before the change, and then what it does after it. The study of objectives
takes an hour, so its drawings are taken from its folder: `python docs/generate_recipes.py atari_study`.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import openfield as of
from openfield.journal.reader import Run
from openfield.lazy import import_extra
from openfield.report.film import EpisodeReplay, write_webp

ROOT = Path(__file__).parent.parent
IMAGES = Path(__file__).parent / "images"
CAPTION, CHART = 18, (640, 280)
LAST_MILLISECONDS = 1_500
STUDY_DRAWINGS = ("lives_input_entropy", "lives_empowerment", "lives_task_reward", "bars_task_reward")
COLOURS = ((31, 97, 160), (200, 90, 30), (90, 90, 90))
TALK, TALK_LETTERS = (640, 300), 46
"""The size of the film of a model, and the letters of a line in it."""
MODEL_EPISODES: dict[str, Any] = {"before": 2, "after": 1, "onset": 2, "max_steps": 30}
INK, PALE = (40, 40, 40), (225, 225, 225)


class FilmedRecipe(NamedTuple):
    """A recipe whose picture is a film."""

    name: str
    domain: str
    agent: str
    novelty: str
    settings: Mapping[str, Any] = {}
    size: tuple[int, int] | None = None
    """Of the film, if not that of the environment's pictures."""
    pictures: int = 60
    """Of each of its two parts."""
    skip: int = 0
    """Pictures at the beginning of each part that are left out."""


FILMED = (
    FilmedRecipe("environment", "gym:examples/garden.py:Garden", "examples/garden.py:DRIEST", "sun*=2"),
    FilmedRecipe(
        "wrapper", "gym:CartPole-v1", "examples/fog.py:BALANCE", "examples/fog.py:Fog", {"max_steps": 90}, (300, 200)
    ),
    FilmedRecipe(
        "atari",
        "gym:ALE/Breakout-v5",
        "examples/breakout.py:FOLLOWER",
        "make.mode=36",
        {"max_steps": 260},
        (160, 210),
        60,
        180,
    ),
    FilmedRecipe(
        "minigrid",
        "gym:MiniGrid-DoorKey-5x5-v0",
        "examples/door.py:Planner",
        "examples/door.py:StuckDoor",
        {},
        (200, 200),
    ),
)


def main() -> None:
    """Write all pictures, or those of a study whose folder is given."""
    if len(sys.argv) > 1:
        for name in STUDY_DRAWINGS:
            shutil.copyfile(Path(sys.argv[1]) / f"{name}.svg", IMAGES / f"study_{name}.svg")
        return
    os.chdir(ROOT)
    sys.path.insert(0, "examples")
    with tempfile.TemporaryDirectory() as folder:
        for recipe in FILMED:
            film_recipe(recipe, Path(folder) / f"{recipe.name}.sqlite")
        film_model(Path(folder) / "model.sqlite")
        draw_policies(Path(folder))
        draw_curves(Path(folder))


def film_recipe(recipe: FilmedRecipe, path: Path) -> None:
    """Write the film of a recipe: the episode before the change, and the one after it."""
    settings = {"unchanged": 0, "before": 2, "after": 1, "onset": 2, **recipe.settings}
    of.run(recipe.agent, of.trials(recipe.domain, 1, novelty=recipe.novelty, **settings), path)
    with Run(path) as run:
        (cell,) = run.cells()
        parts = [EpisodeReplay(run, cell, episode) for episode in (1, 2)]
        pictures = itertools.chain.from_iterable(
            _caption(replay, recipe, words) for replay, words in zip(parts, ("before", "after"), strict=True)
        )
        write_webp(pictures, IMAGES / f"recipe-{recipe.name}.webp", parts[0].milliseconds, LAST_MILLISECONDS)


def _caption(replay: EpisodeReplay, recipe: FilmedRecipe, words: str) -> Iterator[Any]:
    """Yield the pictures of an episode, each with a line above it."""
    image, draw = (import_extra(f"PIL.{name}", "birds", "A picture") for name in ("Image", "ImageDraw"))
    for taken in itertools.islice(replay.pictures(), recipe.skip, recipe.skip + recipe.pictures):
        drawn = image.fromarray(taken.pixels)
        drawn = drawn if recipe.size is None else drawn.resize(recipe.size)
        framed = image.new("RGB", (drawn.width, drawn.height + CAPTION), PALE if words == "before" else COLOURS[1])
        framed.paste(drawn, (0, CAPTION))
        draw.Draw(framed).text((6, 3), f"{words} the change", fill=INK if words == "before" else (255, 255, 255))
        yield framed


def film_model(path: Path) -> None:
    """Write a film of what a model reads and answers: the episode before the change, and the one after it."""
    from local_model import serving

    trials = of.trials("gym:MiniGrid-Empty-5x5-v0", 1, novelty="actions-permuted", unchanged=0, **MODEL_EPISODES)
    with serving() as url:
        of.run({"model": f"llm:walker(url={url})"}, trials, path)
    with Run(path) as run:
        (cell,) = run.cells()
        steps = list(run.steps(cell.id, cell.attempt))
        drawn = [
            _draw_talk(picture.pixels, steps[picture.turn + 1].reply, words)
            for episode, words in ((1, "before"), (2, "after"))
            for picture in EpisodeReplay(run, cell, episode).pictures()
        ]
        write_webp(drawn, IMAGES / "recipe-model.webp", 1_200, LAST_MILLISECONDS)


def _draw_talk(pixels: Any, reply: of.Reply | None, words: str) -> Any:
    """Return a picture beside the question that was asked about it and its answer."""
    image, draw = (import_extra(f"PIL.{name}", "birds", "A picture") for name in ("Image", "ImageDraw"))
    framed = image.new("RGB", (TALK[0], TALK[1] + CAPTION), "white")
    framed.paste(image.fromarray(pixels).resize((TALK[1], TALK[1])), (0, CAPTION))
    pen = draw.Draw(framed)
    pen.rectangle((0, 0, TALK[0], CAPTION), PALE if words == "before" else COLOURS[1])
    pen.text((6, 3), f"{words} the change", fill=INK if words == "before" else (255, 255, 255))
    question, answer = [each["content"] for each in reply.note["transcript"][-2:]] if reply else ("", "{}")
    seen = question.rpartition("You see: ")[2].partition("Answer with")[0]
    told = [part for line in f"You see: {seen}".splitlines() for part in textwrap.wrap(line, TALK_LETTERS)]
    said = [f"{key}: {value}" for key, value in json.loads(answer).items()]
    said = [part for line in said for part in textwrap.wrap(line, TALK_LETTERS)]
    lines = [("It is told:", INK), *((line, COLOURS[2]) for line in told)]
    lines += [("It answers:", INK), *((line, COLOURS[0]) for line in said)]
    for number, (line, colour) in enumerate(lines):
        pen.text((TALK[1] + 12, CAPTION + 6 + 17 * number), line, colour, font_size=13)
    return framed


def draw_policies(folder: Path) -> None:
    """Draw what becomes of a trained table and of a network when the world changes."""
    from q_learner import LAKE, train

    lake, length = of.from_gymnasium("FrozenLake-v1", **LAKE), 20
    changes = {"unchanged": 0, "before": length, "after": length, "onset": length, "return": (0, 1)}
    trials = lake.trials(10, novelty="make.is_slippery=true", **changes)
    result = of.run({"trained": of.policy(train()), "random": "random"}, trials, folder / "policy.sqlite")
    _draw_chart({name: _curve(result, name) for name in ("trained", "random")}, length, "recipe-policy.png")


def draw_curves(folder: Path) -> None:
    """Draw how a learner learns, and learns again."""
    from curves import Learner, make_trials, read_curve

    result = of.run({"learner": Learner, "random": "random"}, make_trials(10, 60), folder / "curves.sqlite")
    _draw_chart({name: read_curve(result, name) for name in ("learner", "random")}, 60, "recipe-curves.png")


def _curve(result: of.Result, agent: str) -> list[float]:
    cells = [cell.episodes for cell in result.cells if cell.agent == agent]
    return [sum(each.performance or 0.0 for each in row) / len(row) for row in zip(*cells, strict=True)]


def _draw_chart(curves: Mapping[str, Sequence[float]], onset: int, name: str) -> None:
    """Draw performance by episode, with a line where the world changes; twice as large first, for smooth lines."""
    image, draw = (import_extra(f"PIL.{name}", "birds", "A picture") for name in ("Image", "ImageDraw"))
    width, height = CHART[0] * 2, CHART[1] * 2
    picture = image.new("RGB", (width, height), "white")
    pen, left, top, right, bottom = draw.Draw(picture), 80, 60, width - 30, height - 70
    count = len(next(iter(curves.values())))

    def place(episode: float, value: float) -> tuple[float, float]:
        return left + (right - left) * episode / (count - 1), bottom - (bottom - top) * value

    for value in (0.0, 0.5, 1.0):
        pen.line([place(0, value), place(count - 1, value)], PALE, 2)
        pen.text((20, place(0, value)[1] - 14), f"{value:.1f}", INK, font_size=24)
    pen.line([place(onset - 0.5, 0), place(onset - 0.5, 1)], COLOURS[1], 3)
    pen.text((place(onset, 0)[0] + 4, bottom + 8), "the world changes", COLOURS[1], font_size=24)
    pen.text((left, bottom + 8), "episode 1", INK, font_size=24)
    pen.text((left, 12), "performance", INK, font_size=24)
    for number, (label, values) in enumerate(curves.items()):
        colour = COLOURS[2 * number % 3]
        pen.line([place(*point) for point in enumerate(values)], colour, 5, joint="curve")
        pen.text((right - 300 + 160 * number, 12), label, colour, font_size=28)
    picture.resize(CHART, image.Resampling.LANCZOS).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
