"""`openfield play`: a person, recorded like any agent."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from openfield.agents.turn_writer import BELIEF_QUESTION
from openfield.core import Belief
from openfield.journal.reader import Run
from openfield.runner.sealing import SEED_FACT
from support.places import MAZE

SMALL = ("--set", "training=0", "--set", "before=1", "--set", "after=1", "--set", "patience=3")


def play(openfield: Any, monkeypatch: pytest.MonkeyPatch, typed: str, *words: str) -> Any:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return openfield("play", MAZE, *SMALL, "-o", "x.sqlite", *words)


def test_a_typed_script_plays_a_whole_trial(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "right\nfly\n? 0.7\n? 7\nright\nright\n\nright\nright\nright\nsure\n0.9\n"
    said = play(openfield, monkeypatch, typed, "--agent-name", "ada", "--redlight")
    assert said.status == 0
    assert "Reach the goal." in said.out
    assert '"fly" is not an action here; it must be one of' in said.out
    assert "A belief is a number from 0 to 1." in said.out
    assert "Red light: the world has changed." in said.out
    with Run("x.sqlite") as run:
        (cell,) = run.cells()
        replies = [step.reply for step in run.steps(cell.id, cell.attempt)]
    assert (cell.agent, cell.outcome, len(cell.episodes)) == ("ada", "done", 2)
    assert [episode.belief for episode in cell.episodes] == [Belief(0.7), Belief(0.9)]
    assert said.out.count(BELIEF_QUESTION) == 3  # an empty line is an answer, 'sure' is none
    assert sum(reply is not None and reply.action == "right" for reply in replies) == 6


@pytest.mark.parametrize("leave", ["QUIT\n", ""], ids=["QUIT", "end of input"])
def test_who_leaves_goes_on_later(openfield: Any, monkeypatch: pytest.MonkeyPatch, leave: str) -> None:
    said = play(openfield, monkeypatch, f"right\nup\n{leave}", "--trials", "2", "--set", "unchanged=0")
    assert said.status == 130
    assert said.err == "openfield: Stopped; your trials are in x.sqlite. The same command goes on.\n"
    with Run("x.sqlite") as run:
        assert [cell.outcome for cell in run.cells()] == ["cancelled", None]
    said = play(openfield, monkeypatch, "up\n" + 3 * "\nup\nup\nup\n", "--trials", "2", "--set", "unchanged=0")
    assert said.status == 0
    with Run("x.sqlite") as run:
        cells = run.cells()
        first = [step.reply.action for step in run.steps(cells[0].id, cells[0].attempt) if step.reply]
    assert [(cell.outcome, cell.attempt) for cell in cells] == [("done", 1)] * 2
    assert first[:3] == ["right", "up", "up"]


def test_a_person_plays_sealed_trials(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = play(openfield, monkeypatch, "right\nright\nright\n\n" * 2, "--sealed")
    assert said.status == 0
    with Run("x.sqlite") as run:
        assert f"their root seed was 0x{run.facts[SEED_FACT]}." in said.out


def test_a_person_is_asked_with_every_turn_on_request(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = play(openfield, monkeypatch, "up\n0.1\nup\n\nup\n0.3\n0.4\n" * 2, "--set", "ask=turn")
    assert said.status == 0
    with Run("x.sqlite") as run:
        (cell,) = run.cells()
        replies = [step.reply for step in run.steps(cell.id, cell.attempt) if step.reply]
    assert cell.trial.settings["ask"] == "turn"
    stated = [(reply.action, reply.belief and reply.belief.novel) for reply in replies]
    assert stated == [("up", 0.1), ("up", 0.1), ("up", 0.3), (None, 0.4)] * 2


def test_without_options_it_is_a_game_that_ends_with_the_truth(
    openfield: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def play_game() -> Any:
        monkeypatch.setattr(sys, "stdin", io.StringIO("up\nup\nup\n0.2\n" * 200))
        return openfield("play", MAZE)

    first, second = play_game(), play_game()
    assert (first.status, second.status) == (0, 0)
    assert first.err.startswith("Loading maze")
    played = tmp_path / "runs" / "maze-played.sqlite"
    with Run(played) as run:
        cells = run.cells()
    assert [cell.outcome for cell in cells] == ["done", "done"]
    assert {cell.trial.is_changed for cell in cells} <= {True, False}
    for said in (first, second):
        assert "Your world changed before" in said.out or "Your world never changed." in said.out
        assert re.search(r"^compass +", said.out, re.MULTILINE)
        assert "Another world: openfield play" in said.out
        assert "Correct detection" not in said.out


def test_a_full_trial_ends_with_numbers(openfield: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("right\n\n" * 2000))
    said = openfield("play", MAZE, "--full", "-o", "x.sqlite")
    assert said.status in (0, 130)
    assert "Your world" not in said.out
    with Run("x.sqlite") as run:
        (cell,) = run.cells()
    assert "before" not in cell.trial.settings  # the usual length
