"""Whole trials played through the browser, and found in the record equal to what was shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openfield as of
from openfield.cell import Cell
from openfield.domain import Domain
from openfield.record import Step
from openfield.view.play.open_trial import OpenTrial
from openfield.view.play.play_session import PlaySession
from support.browsers import needs_chromium
from support.places import MAZE
from support.play import PlayVisit, open_study, read_played

Plays = Any
pytestmark = needs_chromium


def one_trial(domain: Domain[Any], **settings: Any) -> of.Trial:
    return domain.trials(count=1, unchanged=0, **settings)[-1]


def compare(domain: Domain[Any], trial: of.Trial, steps: Sequence[Step], person: PlayVisit) -> int:
    """Play the record again, compare each turn that the browser was shown, and return how many there were."""
    again = OpenTrial(domain, Cell("human", trial), None)
    session: Any = PlaySession(again, None, None)  # type: ignore[arg-type]
    shown = {told["turn"]: (told, picture) for told, picture in zip(person.turns(), person.pictures, strict=True)}
    try:
        for number, step in enumerate(steps):
            if step.reply is not None:
                again.answer(step.reply)
            if number in shown:
                told, picture = shown.pop(number)
                again_picture, text = session._render(again.turn, told["asks"])
                assert json.loads(text) == told
                assert (again_picture or b"") == picture
    finally:
        again.finish("cancelled")
    assert not shown
    return len(person.turns())


def test_maze_is_played_with_keys(tmp_path: Path, play: Plays) -> None:
    maze = of.find_domain(MAZE)
    trial = one_trial(maze, training=0, before=1, after=1, patience=3)
    with open_study(tmp_path / "run.sqlite", maze, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        turn = 0
        for belief in (10, 20):
            for key in ("ArrowLeft", "ArrowUp", "ArrowDown"):
                if person.reach(turn)["last"] is None:
                    page.keyboard.press(key)
                    turn += 1
            assert person.reach(turn)["asks"]
            person.believe(belief)
            turn += 1
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    assert (cell.agent, cell.outcome) == ("human", "done")
    acts = [each["act"] for each in person.sent if each["do"] == "act"]
    names = ("left", "right", "up", "down")
    assert [step.reply.action for step in steps if step.reply and step.reply.action] == [names[act] for act in acts]
    assert [round(episode.belief.highest, 2) for episode in cell.episodes if episode.belief] == [0.6, 0.7]
    assert compare(maze, trial, steps, person) == len(steps) - 1  # the last reply leads to no turn
