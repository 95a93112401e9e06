from __future__ import annotations

import io
import signal

import numpy as np
import pytest

import openfield as of
from openfield.agents.human import LineHuman
from openfield.agents.turn_writer import BELIEF_QUESTION, TurnWriter
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import Cancelled
from openfield.rollout import Rollout, drive
from support.worlds import TINY, tiny_trials


def person(
    typed: str, actions: of.spaces.Discrete | of.spaces.Choice | of.spaces.Box | None
) -> tuple[LineHuman, io.StringIO]:
    shown = io.StringIO()
    spec = Spec(domain="tiny", task="Answer the cue.", actions=actions)
    return LineHuman(TurnWriter(spec), io.StringIO(typed), shown), shown


@pytest.mark.parametrize(
    ("typed", "actions", "reply"),
    [
        ("1\n", of.spaces.Discrete(2), Reply(1)),
        ("  left \n", of.spaces.Choice(("left", "right")), Reply("left")),
        ("1\n", of.spaces.Choice(("1", "2")), Reply("1")),
        ("true\n", of.spaces.Choice(("true", "false")), Reply("true")),
        ("[0.5, 1]\n", of.spaces.Box(0, 1, (2,)), Reply([0.5, 1])),
        ('{"x": 1}\n', None, Reply({"x": 1})),
        ("anything\n", None, Reply("anything")),
        ("? 0.7\n", of.spaces.Discrete(2), Reply(None, Belief(0.7))),
        ("? 70 %\n", of.spaces.Discrete(2), Reply(None, Belief(0.7))),
        ("?1\n", of.spaces.Discrete(2), Reply(None, Belief(1.0))),
        ("7\nleft\n\n0\n", of.spaces.Discrete(2), Reply(0)),
        ("null\n\n0\n", None, Reply(0)),
        ("? maybe\n? 7\n? nan\n1\n", of.spaces.Discrete(2), Reply(1)),
    ],
)
def test_what_is_typed_is_answered(typed: str, actions: of.spaces.Discrete | None, reply: Reply) -> None:
    agent, _ = person(typed, actions)
    assert agent(Turn(observation={"cue": 1})) == reply


def test_what_makes_no_sense_is_asked_again_with_help() -> None:
    agent, shown = person("up\n? 7\n?\n1\n", of.spaces.Discrete(2))
    agent(Turn(observation={"cue": 1}))
    refused = '"up" is not an action here; it must be a whole number from 0 to 1. Type ? for help.'
    assert refused in shown.getvalue()
    assert "A belief is a number from 0 to 1." in shown.getvalue()
    assert shown.getvalue().count("0 .. 1: ") == 4
    assert shown.getvalue().count("Type an action;") == 2  # at the start, and for ?


def test_every_kind_of_turn_is_shown() -> None:
    agent, shown = person("\n0.25\n\nleft\n", of.spaces.Choice(("left", "right")))
    assert agent(Turn(ask=Ask.READY, observation={"begins": "test"})) == Reply(True)
    assert agent(Turn(ask=Ask.BELIEF)) == Reply(None, Belief(0.25))
    assert agent(Turn(ask=Ask.NONE, last="terminated", reward=1.0, feedback={"p": 0.9})) == Reply(None, Belief(0.25))
    assert agent(Turn(red_light=True, phase="training", first=True)) == Reply("left")
    text = shown.getvalue()
    for words in (
        "Answer the cue.",
        "Ready? Press Enter: ",
        f"{BELIEF_QUESTION} ",
        "The episode is over (terminated).",
        "Reward: 1",
        "Feedback:\n- p: 0.9",
        "Red light: the world has changed.",
        "[training] A new episode begins.",
        "left | right: ",
    ):
        assert words in text


@pytest.mark.parametrize("typed", ["QUIT\n", "", "7\n"])
def test_leaving_is_a_cancellation(typed: str) -> None:
    agent, _ = person(typed, of.spaces.Discrete(2))
    with pytest.raises(Cancelled):
        agent(Turn(observation={"cue": 1}))


def test_ctrl_c_leaves_at_once_and_ends_the_line() -> None:
    """It is the person that the turn under way waits for: a run that stops after the turn would wait for ever."""

    class Interrupted(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            signal.raise_signal(signal.SIGINT)
            return ""

    shown, asked = io.StringIO(), []
    before = signal.signal(signal.SIGINT, lambda *_: asked.append("to stop after the turn"))
    try:
        spec = Spec(domain="tiny", task="", actions=of.spaces.Discrete(2))
        agent = LineHuman(TurnWriter(spec), Interrupted(), shown)
        with pytest.raises(Cancelled):
            agent(Turn(observation={"cue": 1}))
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked == ["to stop after the turn"]  # of the one after the line alone
    assert shown.getvalue().endswith("0 .. 1: \n")


def test_a_person_plays_a_trial() -> None:
    agent, _ = person("0\n? 0.9\n" * 60, of.spaces.Discrete(2))
    trial = tiny_trials(1)[0]
    assert drive(Rollout(TINY.world(trial)), agent) == "done"


def test_a_turn_is_believed_and_then_answered() -> None:
    agent, shown = person("? 0.9\n1\n", of.spaces.Discrete(2))
    rollout = Rollout(TINY.world(tiny_trials(1)[0]))
    for _ in range(2):
        rollout.reply(agent(rollout.turn))
    seen = [line for line in shown.getvalue().splitlines() if line.startswith("- cue: ")]
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_pictures_are_drawn_as_text() -> None:
    agent, shown = person("0\n", of.spaces.Discrete(2))
    agent(Turn(observation=np.array([[0, 255], [127, 0]], np.uint8)))
    assert "Observation: picture 1, 2 x 2 pixels\npicture 1\n  @@\n==\n" in shown.getvalue()


def test_who_goes_on_later_has_said_before_what_they_believe() -> None:
    agent, _ = person("\n", of.spaces.Discrete(2))
    agent.remember(Turn(), Reply(1, Belief(0.4)))
    agent.remember(Turn(), Reply(1))
    assert agent(Turn(ask=Ask.NONE, last="terminated")) == Reply(None, Belief(0.4))
