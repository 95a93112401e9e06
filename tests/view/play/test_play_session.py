"""Whole trials played through the browser, and found in the record equal to what was shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.agents.turn_writer import BELIEF_QUESTION
from openfield.cell import Cell
from openfield.domain import Domain
from openfield.domains.doom.play_page import describe_player
from openfield.record import Step
from openfield.view.play.open_trial import OpenTrial
from openfield.view.play.play_session import PlaySession
from support.places import MAZE
from support.play import PlayVisit, find_barriers, open_study, read_played

Plays = Any
pytestmark = pytest.mark.browser

SAY = """answer => {
    const line = document.querySelector(".line:enabled");
    if (line) { line.value = answer; line.form.requestSubmit(); }
}"""
"""Says something if it is one's turn; in one step, since the question about the belief may come at any moment."""


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


def test_maze_is_played_with_keys_and_asked_at_every_turn(tmp_path: Path, play: Plays) -> None:
    maze = of.registry.find_domain(MAZE)
    trial = one_trial(maze, training=0, before=1, after=1, patience=3, ask="turn")
    with open_study(tmp_path / "run.sqlite", maze, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        turn = 0
        for belief in (10, 20):
            for key in ("ArrowLeft", "ArrowUp", "ArrowDown"):
                if (told := person.reach(turn))["last"] is None:
                    assert told["asks"]
                    page.get_by_text(BELIEF_QUESTION).wait_for()  # in the words that language models are asked in
                    person.believe(turn + 1)
                    page.locator(".belief").wait_for(state="hidden")
                    page.keyboard.press(key)
                    turn += 1
            assert person.reach(turn)["asks"]
            assert find_barriers(page) == []
            person.believe(belief)
            turn += 1
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    assert (cell.agent, cell.outcome) == ("human", "done")
    acts = [each["act"] for each in person.sent if each["do"] == "act"]
    names = ("left", "right", "up", "down")
    assert [step.reply.action for step in steps if step.reply and step.reply.action] == [names[act] for act in acts]
    said = [round(step.reply.belief.highest, 2) for step in steps if step.reply and step.reply.belief]
    assert said == [0.51, 0.52, 0.53, 0.6, 0.55, 0.56, 0.57, 0.7]
    assert compare(maze, trial, steps, person) == len(steps) - 1  # the last reply leads to no turn


def test_doom_is_played_with_held_keys_at_twenty_pictures_a_second(tmp_path: Path, play: Plays) -> None:
    doom = of.registry.find_domain("doom")
    trial = one_trial(doom, training=0, episodes=1, before=0, limit=40)
    with open_study(tmp_path / "run.sqlite", doom, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        page.get_by_role("button", name="Begin").click()
        page.keyboard.down("d")
        page.locator(".card .belief").wait_for()
        page.keyboard.up("d")
        last = person.turns()[-1]
        person.believe(1)
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    ticks = [told for told in person.shown if told["show"] == "tick"]
    assert (cell.outcome, len(ticks)) == ("done", last["turn"])
    held = [step.reply.action for step in steps if step.reply][: last["turn"]]
    assert set(held) <= {"nothing", "right"}
    assert "right" in held
    assert [told["values"] for told in ticks] == [
        describe_player(step.turn) for step in steps[1 : len(ticks) + 1] if step.turn
    ]
    assert compare(doom, trial, steps, person) == 2  # the first and the last; between them the clock runs
    page_of_doom = doom.play_page(trial)  # type: ignore[attr-defined]
    assert page_of_doom.milliseconds <= 50  # what the clock aims at; bench/ measures what a machine reaches


def test_birds_are_shot_with_a_sling_and_clicked_at(tmp_path: Path, play: Plays) -> None:
    birds = of.registry.find_domain("birds")
    trial = one_trial(birds, before=0, after=1, family=1, scenario="single")
    with open_study(tmp_path / "run.sqlite", birds, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        page.get_by_role("button", name="Go on").click()
        page.locator(".pad .primary:visible").wait_for()
        box = page.locator("canvas.overlay").bounding_box()
        assert box is not None
        x, y = box["x"] + 200, box["y"] + 200
        shots = 0
        while not page.locator(".card .belief").is_visible():
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(x - 150, y + 50, steps=2)
            page.mouse.up()
            shots += 1
            page.get_by_role("button", name="Skip").click()
            page.locator(".card .belief, .pad .primary:visible").first.wait_for()
        person.believe(3)
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    launches = [step.reply.action for step in steps if step.reply and isinstance(step.reply.action, dict)]
    assert cell.outcome == "done"
    assert launches == [{"do": "launch", "dx": 0.9487, "dy": 0.3162, "tap": 0.0}] * shots
    assert compare(birds, trial, steps, person) == len(person.turns())


def test_a_click_in_flight_uses_the_power_of_the_bird_from_there_on(tmp_path: Path) -> None:
    birds = of.registry.find_domain("birds")
    trial = one_trial(birds, before=0, after=1, family=1, scenario="single")
    opened = OpenTrial(birds, Cell("human", trial), None)
    while opened.turn.ask is not of.Ask.ACT:
        opened.answer(of.Reply(True))
    opened.show()
    page: Any = opened.page
    seen = list(islice(page.preview({"dx": 0.9, "dy": 0.4}), 12))
    opened.act(page.join({"dx": 0.9, "dy": 0.4}, {"tap": 8}))
    for_good = list(islice(page.pictures(), 8))
    assert all(np.array_equal(one, other) for one, other in zip(seen, for_good, strict=False))
    opened.finish("cancelled")


def test_commai_is_a_conversation(tmp_path: Path, play: Plays) -> None:
    commai = of.registry.find_domain("commai")
    trial = one_trial(commai, tasks="mini1", max_steps=400)
    with open_study(tmp_path / "run.sqlite", commai, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        page.locator(".line:enabled").wait_for()
        while not page.locator(".card .belief").is_visible():
            page.evaluate(SAY, "false.")
            page.locator(".line:enabled, .card .belief").first.wait_for()
        assert find_barriers(page) == []
        person.believe(5)
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    told = [step for turn in person.turns() for step in turn["steps"]]
    heard = [chr(step.turn.observation) for step in steps if step.turn is not None]
    said = [chr(step.reply.action) for step in steps if step.reply and isinstance(step.reply.action, int)]
    assert cell.outcome in ("done", "truncated")
    assert [each[1] for each in told] == heard
    assert [each[0] for each in told][1:] == said
    rewards = [step.turn.reward for step in steps if step.turn is not None]
    assert [each[2] for each in told] == rewards
    assert "false." in "".join(said)


def test_ond_is_labelled_picture_by_picture(tmp_path: Path, play: Plays) -> None:
    ond = of.registry.find_domain("ond")
    trial = one_trial(ond, before=1, after=1, round_size=4, training=60, budget=1)
    with open_study(tmp_path / "run.sqlite", ond, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        page.get_by_role("button", name="Go on").click()
        for batch in (0, 1):
            page.get_by_text(f"Batch {batch + 1}, picture 1 of 4").wait_for()
            for digit in "1203":
                page.keyboard.press(digit)
            assert batch or find_barriers(page) == []
            person.believe(20)
            ask = page.get_by_role("button", name="Ask for the true class")
            ask.wait_for()  # until then the strip is that of the labels
            assert (ask.is_disabled(), page.locator(".strip .now").count()) == (True, 0)
            for number in range(1 + batch):
                page.locator(".strip button").nth(number).click()
            ask.click()
            page.locator(".strip b").wait_for()
            assert page.get_by_text("You are told 1 of 2").count() == batch
            page.get_by_role("button", name="Next batch").click()
            page.locator(".card button").click()
        page.get_by_role("heading", name="Done").wait_for()
    ((cell, steps),) = read_played(tmp_path / "run.sqlite")
    scores = [
        step.reply for step in steps if step.reply and isinstance(step.reply.action, dict) and "p" in step.reply.action
    ]
    assert cell.outcome == "done"
    assert [[row.index(1) for row in reply.action["p"]] for reply in scores] == [[1, 2, 0, 3]] * 2
    assert [reply.belief.highest for reply in scores if reply.belief] == [0.7, 0.7]
    assert compare(ond, trial, steps, person) == len(steps) - 1


def test_gymnasium_is_played_with_keys_from_the_names_of_actions(tmp_path: Path, play: Plays) -> None:
    lake = of.registry.find_domain("gym:FrozenLake-v1")
    trial = one_trial(lake, training=0, before=1, after=0, max_steps=3)
    with open_study(tmp_path / "run.sqlite", lake, [trial]) as server:
        person = play(server.links[0])
        page = person.open()
        turn = 0
        for key in ("ArrowLeft", "ArrowUp", "ArrowRight"):
            if person.reach(turn)["last"] is None:
                page.keyboard.press(key)
                turn += 1
        person.reach(turn)
        person.believe(1)
        page.get_by_role("heading", name="Done").wait_for()
    ((_, steps),) = read_played(tmp_path / "run.sqlite")
    assert [step.reply.action for step in steps if step.reply][:turn] == [0, 3, 2][:turn]
    assert compare(lake, trial, steps, person) == len(steps) - 1
