"""Environments that show and draw pictures: their record, its replay, and their films."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from PIL import Image

import openfield as of
from openfield.capabilities import make_film
from openfield.errors import Cancelled, InvalidInput, OpenfieldError
from openfield.journal.reader import Run
from openfield.journal.verification import find_false_arrays, find_false_turns
from openfield.journal.writer import Journal
from openfield.objectives.runs.recordings import read_recording
from openfield.record import RECORD_FACT, array_digest, restore_arrays
from openfield.registry import find_domain
from openfield.report.film import EpisodeReplay, write_film
from openfield.serving.dispatch import open_dispatcher
from openfield.serving.wire import Serving

SHAPE = (24, 20, 3)


class Patches(gymnasium.Env[Any, Any]):
    """Shows a picture with a bright column, which the actions move."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    action_space = gs.Discrete(2)
    observation_space = gs.Box(0, 255, SHAPE, np.uint8)
    brightness = 200
    closed = 0

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.column = int(self.np_random.integers(20))
        return self.render(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.column = (self.column + 2 * int(action) - 1) % 20
        return self.render(), float(self.column == 0), False, False, {}

    def render(self) -> Any:
        picture = np.zeros(SHAPE, np.uint8)
        picture[:, self.column] = self.brightness
        return picture

    def close(self) -> None:
        Patches.closed += 1


class Blind(Patches):
    """The same without a way to draw."""

    metadata = {"render_modes": ["ansi"]}


class Sketchy(Patches):
    """Draws something else than a picture."""

    def render(self) -> Any:
        return super().render() if self.render_mode is None else "a picture"

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        mode, self.render_mode = self.render_mode, None
        found = super().reset(**options)
        self.render_mode = mode
        return found


LENGTH: dict[str, Any] = {"unchanged": 0, "before": 2, "after": 2, "max_steps": 8, "return": (0, 8)}


@pytest.fixture
def trials() -> list[of.Trial]:
    return of.from_gymnasium(Patches).trials(1, novelty="brightness=90", **LENGTH)


class Quitter:
    """Leaves once in the midst of an episode."""

    left = False
    may_leave = True

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.turns = 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        self.turns += 1
        if self.turns == 15 and not Quitter.left:
            Quitter.left = True
            raise Cancelled("Enough.")
        return of.Reply(self.turns % 3 % 2)


def observations(path: Path) -> list[Any]:
    with Run(path) as run:
        (cell,) = run.cells()
        return [step.turn.observation for step in run.steps(cell.id, cell.attempt) if step.turn is not None]


@pytest.mark.parametrize("record", ["digests", "full"])
def test_pictures_are_recorded_resumed_verified_and_replayed(tmp_path: Path, trials: Any, record: Any) -> None:
    path, Quitter.left = tmp_path / "x.sqlite", False
    with pytest.raises(Cancelled):
        of.run(Quitter, trials, path, record=record)
    of.run(Quitter, trials, path)  # goes on as it was begun
    with Run(path) as run:
        (cell,) = run.cells()
        assert (cell.outcome, cell.attempt) == ("done", 1)
        assert run.facts[RECORD_FACT] == record
        assert run.verify() == []
        (attempt,) = run.attempts()
        steps = run.raw_steps(cell.id, cell.attempt)
        assert list(find_false_turns(attempt, find_domain(cell.trial.domain).world, steps)) == []
    shown = observations(path)
    assert all(("data" in each) == (record == "full") for each in shown)
    if record == "full":
        assert [array_digest(restore_arrays(each)) for each in shown] == [_plain(each) for each in shown]


def _plain(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in kept.items() if name != "data"}


def test_a_full_record_is_the_same_run_and_needs_no_replay_to_be_counted(tmp_path: Path, trials: Any) -> None:
    for record in ("digests", "full"):
        of.run("random", trials, tmp_path / f"{record}.sqlite", record=record)
    digests, full = tmp_path / "digests.sqlite", tmp_path / "full.sqlite"
    assert [_plain(each) for each in observations(full)] == observations(digests)
    made = Patches.closed
    counted = read_recording(full)
    assert Patches.closed == made
    replayed = read_recording(digests)
    assert Patches.closed > made
    assert [len(each) for each in replayed.groups.values()] == [len(each) for each in counted.groups.values()] == [2, 2]
    assert repr(replayed) == repr(counted).replace("full.sqlite", "digests.sqlite")


def test_a_run_of_digests_may_go_on_in_full(tmp_path: Path, trials: Any) -> None:
    path, Quitter.left = tmp_path / "x.sqlite", False
    with pytest.raises(Cancelled):
        of.run(Quitter, trials, path)
    of.run(Quitter, trials, path, record="full")
    shown = observations(path)
    assert ("data" in shown[0], "data" in shown[-1]) == (False, True)
    with Run(path) as run:
        assert run.verify() == []


def test_verify_finds_a_picture_that_is_not_what_its_digest_says(tmp_path: Path, trials: Any) -> None:
    path = tmp_path / "x.sqlite"
    of.run("random", trials, path, record="full")
    with Run(path) as run:
        (attempt,) = run.attempts()
        steps = list(run.steps(attempt.cell, attempt.number))
    assert list(find_false_arrays(attempt, steps)) == []
    assert steps[3].turn is not None
    steps[3].turn.observation["data"] = bytes(np.prod(SHAPE))
    (fault,) = find_false_arrays(attempt, steps)
    assert fault.endswith("turn 3: the bytes of a recorded array do not match its digest.")


@pytest.mark.parametrize("episode", [0, 3])
def test_an_episode_is_filmed_from_its_record(tmp_path: Path, trials: Any, episode: int) -> None:
    path, film = tmp_path / "x.sqlite", tmp_path / "x.gif"
    of.run("random", trials, path)
    with Run(path) as run:
        (cell,) = run.cells()
        assert write_film(run, cell, episode, film) == 9
    with Image.open(film) as made:
        assert made.size == (20, 24)
        assert made.info["duration"] == 50
        brightest = np.asarray(made.convert("RGB")).max()
    assert abs(int(brightest) - (200 if episode == 0 else 90)) < 20


def test_a_late_episode_is_filmed_without_the_earlier_ones(tmp_path: Path, trials: Any) -> None:
    path, played = tmp_path / "x.sqlite", list[int]()
    of.run("random", trials, path)
    with Run(path) as run:
        (cell,) = run.cells()
        taken = list(EpisodeReplay(run, cell, 3).pictures(played.append))
    assert len(taken) == 9
    assert played == list(range(27, 36))


def test_pictures_that_the_agent_saw_are_a_film_where_nothing_else_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    of.run("random", of.from_gymnasium(Blind).trials(1, novelty="brightness=90", **LENGTH), path)
    with Run(path) as run:
        (cell,) = run.cells()
        assert write_film(run, cell, 0, tmp_path / "x.gif") == 9


def test_a_film_frees_its_environments(trials: Any) -> None:
    closed = Patches.closed
    film = make_film(find_domain(trials[0].domain), trials[0])
    film.world.reset()
    assert film.world.look("picture").shape == SHAPE
    with pytest.raises(OpenfieldError, match="no 'score' to look at"):
        film.world.look("score")
    film.world.close()
    assert Patches.closed == closed + 1


def test_an_environment_that_draws_no_pictures_says_so() -> None:
    blind, sketchy = of.from_gymnasium(Blind), of.from_gymnasium(Sketchy)
    with pytest.raises(InvalidInput, match="Blind draws no pictures"):
        make_film(blind, blind.trials(1, unchanged=0)[0])
    film = make_film(sketchy, sketchy.trials(1, unchanged=0)[0])
    film.world.reset()
    with pytest.raises(InvalidInput, match="three colours, but a str"):
        film.world.look("picture")


def test_what_is_recorded_is_one_of_two_kinds(tmp_path: Path, trials: Any) -> None:
    with pytest.raises(InvalidInput, match="record is 'digests' or 'full', not 'half'"):
        of.run("random", trials, tmp_path / "x.sqlite", record="half")  # type: ignore[arg-type]


def test_loops_of_ones_own_and_servers_keep_pictures_too(tmp_path: Path, trials: Any) -> None:
    domain = find_domain(trials[0].domain)
    for number, record in enumerate(("full", None, "digests")):  # None goes on as the file was begun
        env = of.env(trials[0], tmp_path / "env.sqlite", f"mine {number}", record=record)  # type: ignore[arg-type]
        env.reset()
        env.step(0)
        env.close()
    with Run(tmp_path / "env.sqlite") as run:
        kept = [next(run.steps(cell.id, cell.attempt)).turn.observation for cell in run.cells()]  # type: ignore[union-attr]
        assert run.verify() == []
    assert ["data" in each for each in kept] == [True, True, False]
    with pytest.raises(InvalidInput, match="record is 'digests' or 'full', not 'half'"):
        of.env(trials[0], record="half")  # type: ignore[arg-type]
    with Journal(tmp_path / "served.sqlite") as journal:
        _, dispatcher = open_dispatcher(domain, journal, trials, Serving(record="full"))
        asyncio.run(dispatcher.join("peer"))
        dispatcher.close()
    assert "data" in observations(tmp_path / "served.sqlite")[0]


PROGRAM = """
import base64, json, socket, sys

arrays, *place = sys.argv[1:]
if place:
    stream = socket.create_connection((place[0], int(place[1]))).makefile("rw")
    lines, write = stream, stream.write
else:
    lines, write, stream = sys.stdin, sys.stdout.write, sys.stdout

def say(**message):
    write(json.dumps(message) + "\\n")
    stream.flush()

say(type="hello", arrays=arrays)
for line in lines:
    message = json.loads(line)
    if message["type"] == "turn" and message["ask"] != "none":
        seen = message["observation"]
        if arrays == "base64":
            assert (seen["dtype"], seen["shape"]) == ("uint8", [24, 20, 3])
            row = base64.b64decode(seen["base64"])[:60:3]
        else:
            row = bytes(pixel[0] for pixel in seen[0])
        say(type="reply", action=row.index(max(row)) % 2)
    elif message["type"] == "bye":
        break
"""


def test_pictures_are_shown_to_programs_as_lists_or_bytes(tmp_path: Path, trials: Any) -> None:
    program, path = tmp_path / "program.py", tmp_path / "x.sqlite"
    program.write_text(PROGRAM)
    command = f"{sys.executable} -S {program}"
    agents = {
        "lists": f"process:{command} lists",
        "base64": f"process:{command} base64",
        "tcp": f"wire:{command} base64 {{host}} {{port}}",
    }
    of.run(agents, trials, path)
    with Run(path) as run:
        cells = run.cells()
        assert [(cell.agent, cell.outcome, cell.note) for cell in cells] == [(name, "done", "") for name in agents]
        replies = [
            [step.reply.action for step in run.steps(cell.id, cell.attempt) if step.reply is not None] for cell in cells
        ]
    assert replies[0] == replies[1] == replies[2]
    assert {0, 1} <= set(replies[0])
