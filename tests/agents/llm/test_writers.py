"""The turns of shipped domains in words, and what a model that answers at random makes of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import openfield as of
from openfield.agents.llm.call_estimate import _answer as answer_at_random
from openfield.agents.llm.language_model import LanguageModel
from openfield.agents.llm.model_endpoint import ModelAnswer, ModelQuestion
from openfield.capabilities import WritesTurns
from openfield.core import Reply
from openfield.domain import spec_of
from openfield.rollout import Rollout

WORDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "birds": ({"before": 1, "after": 1}, ("- pig: +", "bird red", "angle: degrees", '"world_changed"')),
    "commai": ({"tasks": "micro1", "onset_steps": 60, "steps": 120}, ("The teacher says:", "Your last answer earned")),
    "doom": ({"before": 1, "after": 1}, ("Health", "Ahead:", "an enemy", "one of 'left'")),
    "doom-arena": ({"before": 1, "after": 1}, ("Health", "Ahead:", "a wall")),
    "ond": ({"before": 1, "after": 1, "round_size": 3}, ("Class 1: picture 1", "Sample 3: picture", "[3 pictures]")),
}


def settings_of(name: str) -> dict[str, Any]:
    known = {row.name for row in of.settings.setting_rows(of.registry.find_domain(name).settings)}
    return {key: value for key, value in WORDS[name][0].items() if key in known}


@pytest.mark.parametrize("name", WORDS)
def test_a_domain_says_its_turns_and_reads_what_is_answered(name: str) -> None:
    domain = of.registry.find_domain(name)
    trial = domain.trials(1, unchanged=0, **settings_of(name))[0]
    assert isinstance(domain, WritesTurns)
    writer, rng, told = domain.turn_writer(spec_of(domain, trial)), random.Random(1), list[str]()

    def ask(question: ModelQuestion) -> ModelAnswer:
        told.append(str(question.messages[0]["content"]) + str(question.messages[-1]["content"]))
        return ModelAnswer(answer_at_random(writer, question, rng))

    agent, rollout, notes = LanguageModel(writer, ask), Rollout(domain.world(trial)), list[Any]()
    replies: list[Reply] = []
    while not rollout.over and len(told) < 12 and rollout.turns < 2_000:
        replies.append(agent(rollout.turn))
        rollout.reply(replies[-1])
    rollout.close()
    notes = [reply.note for reply in replies if reply.note]
    shown = "".join(message["content"] for note in notes for message in note["transcript"])
    for words in WORDS[name][1]:
        assert words in shown
    assert all(note["calls"] == 1 for note in notes)  # none was asked again
    assert len(shown) / len(notes) < 6_000


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("birds", {"pull": 1}, "a shot has angle"),
        ("birds", {"angle": "up"}, "a shot has angle"),
        ("birds", {"angle": 42, "pull": 2}, "a shot has angle"),
        ("commai", "ю", "is not a symbol"),
        ("commai", "x" * 999, "at most 500 characters"),
        ("ond", [1], "0 labels are wanted"),
        ("doom", "fly", "is not an action here; it must be one of"),
    ],
)
def test_what_is_no_action_of_a_domain_is_refused(name: str, value: Any, told: str) -> None:
    domain = of.registry.find_domain(name)
    assert isinstance(domain, WritesTurns)
    writer = domain.turn_writer(domain.spec(domain.trials(1, unchanged=0)[0]))
    with pytest.raises(ValueError, match=told):
        writer.read(value)


def test_environments_name_their_actions_and_grids_are_told() -> None:
    pytest.importorskip("minigrid", reason="the extra minigrid is not installed")
    domain = of.registry.find_domain("gym:MiniGrid-DoorKey-5x5-v0")
    (trial,) = domain.trials(1, unchanged=0, novelty="none", before=1, after=0)
    assert isinstance(domain, WritesTurns)
    writer = domain.turn_writer(domain.spec(trial))
    assert "2 forward" in writer.rules
    rollout = Rollout(domain.world(trial))
    text = writer.describe(rollout.turn).text
    rollout.close()
    assert "Mission: use the key to open the door and then get to the goal" in text
    assert "door" in text or "key" in text
    grid = text.splitlines()[-7:]
    assert [len(row) for row in grid] == [7] * 7
    assert grid[-1][3] == "^"
    assert {"#", "?"} <= set("".join(grid))
