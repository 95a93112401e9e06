"""The checks of an agent pass one that keeps its promises and name the promise that is broken."""

from __future__ import annotations

from typing import Any

import pytest

import openfield as of
from openfield.testing import check_agent
from support import bad_agents
from support.walks import WALKS

PATIENCE = 60.0
BAD_AGENTS = {
    "Unmakeable": "made",
    "Crashes": "stands",
    "FallsAtTheEnd": "stands",
    "Hangs": "in_time",
    "WrongType": "answers",
    "WrongAction": "answers",
    "Hesitates": "moderate",
    "TalksTooMuch": "moderate",
    "Unseeded": "same_seed",
    "GlobalRandom": "same_seed",
    "SharesState": "separate",
    "Forgets": "save_load",
    "CannotLoad": "save_load",
}


@pytest.mark.parametrize("name", BAD_AGENTS)
def test_a_bad_agent_is_caught_by_name(name: str) -> None:
    report = check_agent(getattr(bad_agents, name), WALKS, patience=0.5 if name == "Hangs" else PATIENCE)
    assert report.failed == [BAD_AGENTS[name]], report


@pytest.mark.parametrize("agent", [bad_agents.Walker, bad_agents.Learner, "random"])
def test_a_good_agent_passes(agent: Any) -> None:
    assert check_agent(agent, WALKS, patience=PATIENCE).passed


def test_an_agent_that_cannot_be_sent_is_checked_here() -> None:
    assert check_agent(lambda turn: of.Reply(1), WALKS, patience=PATIENCE).passed
