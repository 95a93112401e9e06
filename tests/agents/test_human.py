from __future__ import annotations

import io
import signal

import pytest

import openfield as of
from openfield.agents.belief_question import BELIEF_QUESTION
from openfield.agents.human import LineHuman
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import Cancelled
from openfield.rollout import Rollout, drive
from support.worlds import TINY, tiny_trials


def person(typed: str, actions: of.Discrete | of.Choice | of.Box | None) -> tuple[LineHuman, io.StringIO]:
    shown = io.StringIO()
    spec = Spec(domain="tiny", task="Answer the cue.", actions=actions)
    return LineHuman(spec, 0, io.StringIO(typed), shown), shown


@pytest.mark.parametrize(
    ("typed", "actions", "reply"),
    [
        ("1\n", of.Discrete(2), Reply(1)),
        ("  left \n", of.Choice(("left", "right")), Reply("left")),
        ("1\n", of.Choice(("1", "2")), Reply("1")),
        ("true\n", of.Choice(("true", "false")), Reply("true")),
        ("[0.5, 1]\n", of.Box(0, 1, (2,)), Reply([0.5, 1])),
        ('{"x": 1}\n', None, Reply({"x": 1})),
        ("anything\n", None, Reply("anything")),
        ("? 0.7\n", of.Discrete(2), Reply(None, Belief(0.7))),
        ("?1\n", of.Discrete(2), Reply(None, Belief(1.0))),
        ("7\nleft\n\n0\n", of.Discrete(2), Reply(0)),
        ("? maybe\n? 7\n? nan\n1\n", of.Discrete(2), Reply(1)),
    ],
)
def test_what_is_typed_is_answered(typed: str, actions: of.Discrete | None, reply: Reply) -> None:
    agent, _ = person(typed, actions)
    assert agent(Turn(observation={"cue": 1})) == reply


def test_what_makes_no_sense_is_asked_again_with_help() -> None:
    agent, shown = person("up\n? 7\n?\n1\n", of.Discrete(2))
    agent(Turn(observation={"cue": 1}))
    assert "'up' is not an action here. Type an action;" in shown.getvalue()
    assert "A belief is a number from 0 to 1." in shown.getvalue()
    assert shown.getvalue().count("0 .. 1: ") == 4
    assert shown.getvalue().count("Type an action;") == 3  # at the start, with the mistake, and for ?


def test_every_kind_of_turn_is_shown() -> None:
    agent, shown = person("\n0.25\n\nleft\n", of.Choice(("left", "right")))
    assert agent(Turn(ask=Ask.READY, observation={"begins": "test"})) == Reply(True)
    assert agent(Turn(ask=Ask.BELIEF)) == Reply(None, Belief(0.25))
    assert agent(Turn(ask=Ask.NONE, last="terminated", reward=1.0, feedback={"p": 0.9})) == Reply(None, Belief(0.25))
    assert agent(Turn(red_light=True, phase="training")) == Reply("left")
    text = shown.getvalue()
    for words in (
        "Answer the cue.",
        "Ready? ",
        f"{BELIEF_QUESTION} ",
        "-- episode terminated --",
        "reward 1",
        "feedback {'p': 0.9}",
        "RED LIGHT: the world has changed",
        "[training]",
        "left | right: ",
    ):
        assert words in text


@pytest.mark.parametrize("typed", ["QUIT\n", "", "7\n"])
def test_leaving_is_a_cancellation(typed: str) -> None:
    agent, _ = person(typed, of.Discrete(2))
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
        agent = LineHuman(Spec(domain="tiny", task="", actions=of.Discrete(2)), 0, Interrupted(), shown)
        with pytest.raises(Cancelled):
            agent(Turn(observation={"cue": 1}))
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked == ["to stop after the turn"]  # of the one after the line alone
    assert shown.getvalue().endswith("0 .. 1: \n")


def test_a_person_plays_a_trial() -> None:
    agent, _ = person("0\n? 0.9\n" * 60, of.Discrete(2))
    trial = tiny_trials(1)[0]
    assert drive(Rollout(TINY.world(trial)), agent) == "done"


def test_a_turn_is_believed_and_then_answered() -> None:
    agent, shown = person("? 0.9\n1\n", of.Discrete(2))
    rollout = Rollout(TINY.world(tiny_trials(1)[0]))
    for _ in range(2):
        rollout.reply(agent(rollout.turn))
    lines = [line for line in shown.getvalue().splitlines() if "reward" in line]
    assert lines[0].rpartition("[")[2] == lines[1].rpartition("[")[2]
