from __future__ import annotations

import pytest

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import InvalidInput

SPEC = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(1000))


def test_it_draws_from_its_seed_and_believes_in_no_change() -> None:
    one, same, other = RandomAgent(SPEC, 1), RandomAgent(SPEC, 1), RandomAgent(SPEC, 2)
    drawn = [one(Turn()).action for _ in range(20)]
    assert drawn == [same(Turn()).action for _ in range(20)]
    assert drawn != [other(Turn()).action for _ in range(20)]
    assert one(Turn(ask=Ask.BELIEF)) == Reply(None, Belief(0.0))


def test_it_goes_on_where_it_was_saved() -> None:
    agent, later = RandomAgent(SPEC, 1), RandomAgent(SPEC, 2)
    agent(Turn())
    later.load(agent.save())
    assert [agent(Turn()) for _ in range(9)] == [later(Turn()) for _ in range(9)]


def test_it_needs_an_action_space() -> None:
    with pytest.raises(InvalidInput, match="cannot play tiny: it declares no action space"):
        RandomAgent(Spec(domain="tiny", task="Answer."), 1)
