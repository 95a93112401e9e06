"""The moments at which people and models are asked what they believe."""

import openfield as of
from openfield.agents.belief_question import asks_belief

END = of.Turn(ask=of.Ask.NONE, last="terminated")


def test_question_comes_at_the_end_of_test_episodes_and_where_the_world_asks() -> None:
    assert asks_belief(END, "episode")
    assert not asks_belief(of.Turn(ask=of.Ask.NONE, last="terminated", phase="training"), "episode")
    assert not asks_belief(of.Turn(), "episode")
    assert asks_belief(of.Turn(ask=of.Ask.BELIEF, phase="training"), "episode")


def test_question_comes_with_every_action_of_the_test_if_wanted() -> None:
    assert asks_belief(of.Turn(), "turn")
    assert asks_belief(END, "turn")
    assert not asks_belief(of.Turn(phase="training"), "turn")
    assert not asks_belief(of.Turn(ask=of.Ask.READY), "turn")
