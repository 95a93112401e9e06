"""Turns are found by number, cut to what a page can show, and searched."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.report.addresses import name_run
from openfield.report.analysis import Noticing
from openfield.view import Library
from openfield.view.pages.trial import TurnQuery, find_turns
from openfield.view.trials import PlayedTrial, TrialReader, draw_timeline, read_turns
from openfield.view.trials.timeline import HEIGHT, NovelStretch
from openfield.view.trials.values import CUT, MAX_DEPTH, MAX_TEXT, Shortener, format_value
from support.places import MAZE


def noting(turn: of.Turn) -> of.Reply:
    """Go left, and say something now and then."""
    far = turn.observation["at"][0]
    return of.Reply("left", of.Belief(far / 10), note={"tokens": far, "text": f"I am at {far}"} if far else None)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded trial of two agents."""
    path = tmp_path_factory.mktemp("runs") / "maze.sqlite"
    trials = of.trials(MAZE, count=1, training=1, before=2, after=2, unchanged=0)
    of.run({"noting": noting, "random": "random"}, trials, path, workers=0)
    return path


@pytest.fixture(scope="module")
def trial(path: Path) -> PlayedTrial:
    """The cell of the agent that notes."""
    with Run(path) as run:
        cell = next(cell for cell in run.cells() if cell.agent == "noting")
    return TrialReader(Library([path])).read(name_run(path), cell.id)


def test_found_turns_say_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    def silent(turn: of.Turn) -> of.Reply:
        return of.Reply(None, of.Belief(0.7))

    path = tmp_path / "run.sqlite"
    trials = of.trials(MAZE, count=1, training=0, before=1, after=1, unchanged=0, patience=3)
    of.run({"silent": silent}, trials, path, workers=0)
    with Run(path) as run:
        (cell,) = run.cells()
        trial = TrialReader(Library([path])).read(name_run(path), cell.id)
        found = find_turns(run, trial, TurnQuery(belief=0.5)).found
    assert {(each.action, each.note) for each in found} == {("", "")}


def test_a_turn_comes_with_the_reply_to_it(path: Path, trial: PlayedTrial) -> None:
    with Run(path) as run:
        steps = list(run.steps(trial.cell.id, trial.cell.attempt))
        shown = [turn for number in range(trial.turns) for turn in read_turns(run, trial, number)]
        together = read_turns(run, trial, 0, trial.turns)
    assert shown == together
    assert [turn.number for turn in shown] == list(range(len(steps) - 1))
    for turn, (step, answer) in zip(shown, itertools.pairwise(steps), strict=True):
        assert step.turn is not None
        assert answer.reply is not None
        assert turn.reply is not None
        assert (turn.observation, turn.first) == (step.turn.observation, step.turn.first)
        assert (turn.reply.action, turn.reply.note) == (answer.reply.action, answer.reply.note)
        assert turn.reply.milliseconds == answer.took / 1e6
        assert turn.earned == (None if answer.turn is None else answer.turn.reward)
        assert turn.truth["novel"] == (step.truth is not None and step.truth.novel)
        assert trial.turns_of(turn.episode).start <= turn.number < trial.turns_of(turn.episode).stop
    assert [turn.number for turn in shown if turn.first] == list(trial.firsts[:-1])


def test_numbers_that_there_are_not_are_refused(trial: PlayedTrial) -> None:
    with pytest.raises(InvalidInput, match=f"no turn {trial.turns}; it has turns 0 to {trial.turns - 1}"):
        trial.check_turn(trial.turns)
    with pytest.raises(InvalidInput, match="no episode 5; it has episodes 0 to 4"):
        trial.turns_of(5)


def test_turns_are_found_by_action_note_and_belief(path: Path, trial: PlayedTrial) -> None:
    with Run(path) as run:
        shown = read_turns(run, trial, 0, trial.turns)

        def find(**wanted: Any) -> list[int]:
            found, start = list[int](), 0
            while True:
                part = find_turns(run, trial, TurnQuery(**wanted), start)
                found += [each.number for each in part.found]
                if part.next is None:
                    return found
                start = part.next

        assert find(action="LEFT") == find(text="left") == [turn.number for turn in shown]
        assert find(note="i am at") == [turn.number for turn in shown if turn.reply and turn.reply.note]
        assert find(text="am I at") == find(note="i am at")
        assert find(text='"at":[4') == [turn.number for turn in shown if turn.observation["at"][0] == 4]
        (first, *_) = find_turns(run, trial, TurnQuery(text="am"), 0).found
        assert "I am at" in first.excerpt
        assert find(belief=0.4) == [turn.number for turn in shown if turn.observation["at"][0] >= 4]
        assert find(action="left", note="nowhere") == []


def test_beliefs_about_the_borders_between_tasks_are_no_false_alarms(tmp_path: Path) -> None:
    trials = of.trials("commai", 1, design="gradual", tasks="micro4,micro2", task_budget=100)
    of.run("counter", trials, path := tmp_path / "run.sqlite")
    with Run(path) as run:
        played = [PlayedTrial(run, run.cell(cell.id)) for cell in run.cells()]
    (all_tasks,) = [each for each in played if len(each.cell.trial.settings["tasks"]) > 1]
    assert any(episode.detected for episode in all_tasks.episodes)
    assert all_tasks.noticing == Noticing(None, None, None, [])


def test_the_timeline_has_a_column_for_each_episode(trial: PlayedTrial) -> None:
    line = draw_timeline(trial)
    assert [column.novel for column in line.columns] == [False] * 3 + [True] * 2
    assert (line.onset, line.onset_x, line.training) == (3, 60.0, 20.0)
    assert line.novel == [NovelStretch(60.0, 40.0, 0.0, HEIGHT)]
    assert all(column.y_belief is not None for column in line.columns)


def test_the_timeline_shows_how_strong_a_change_is(trial: PlayedTrial) -> None:
    strengths = (0.0, 0.5, 0.5, 1.0, 0.001)
    pairs = zip(trial.episodes, strengths, strict=True)
    episodes = tuple(msgspec.structs.replace(each, strength=strength) for each, strength in pairs)
    trial.cell = msgspec.structs.replace(trial.cell, episodes=episodes)
    assert draw_timeline(trial, 100).novel == [
        NovelStretch(20.0, 40.0, 50.0, 50.0),
        NovelStretch(60.0, 20.0, 0.0, 100.0),
        NovelStretch(80.0, 20.0, 98.0, 2.0),
    ]


def deep(levels: int) -> Any:
    """Return lists in lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        deep(900),
        list(range(200_000)),
        {str(number): {"x": [number] * 40} for number in range(5_000)},
        "x" * 3_000_000,
        b"\xff\xfe" * 1_000_000,
        [["x" * 90_000]] * 500,
        {"</script><script>alert(1)</script>": "\x00\x1b[2J"},
    ],
    ids=["deep", "long", "wide", "text", "bytes", "texts", "markup"],
)
def test_hostile_values_stay_small(value: Any) -> None:
    shown = msgspec.json.encode(Shortener().shorten(value))
    assert len(shown) < 3 * MAX_TEXT + 400_000
    assert len(format_value(value)) <= 200
    assert shown.count(b"[") <= 20_000 + MAX_DEPTH


def test_numbers_that_browsers_cannot_hold_become_text() -> None:
    assert Shortener().shorten([1 << 60, float("nan"), 1.5, True, None]) == [str(1 << 60), "nan", 1.5, True, None]
    assert Shortener(values=3).shorten([1, 2, 3, 4]) == [1, 2, {CUT: "2 more"}]
