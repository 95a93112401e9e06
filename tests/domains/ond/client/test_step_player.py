"""Agents of the original client, played step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.client.step_player import StepOptions, StepPlayer
from openfield.domains.ond.client.workflow import SessionOptions, StartedTest
from openfield.errors import InvalidInput
from support.ond.original_agents import Executor, Methods
from support.ond.protocol import TEST
from support.ond.serving import play_session


def test_agents_of_the_original_client_are_played(served: RestClient, tmp_path: Path) -> None:
    agent = Executor({})
    player = StepPlayer("old", agent, options=StepOptions(features=str(tmp_path / "features")))
    scores = play_session(served, player, SessionOptions(tests=(TEST,)))[TEST]
    assert scores["m_num_stats"]["P_indx_0.5"] == 1
    once = ["FeatureExtraction", "WorldDetection", "NoveltyClassification", "NoveltyAdaptation", "NoveltyAdaption"]
    assert agent.steps == ["Initialize", *once * 3, "NoveltyCharacterization"]
    assert len(agent.labels[0]) == 2
    again = StepPlayer("old", Methods(), options=StepOptions(features=str(tmp_path / "features")))
    scores = play_session(served, again, SessionOptions(tests=(TEST,), hints=("red_light",)))[TEST]
    assert scores["m_num_stats"]["P_indx_0.175"] == 31
    assert again._agent.light == f"{TEST}-15.png"


@pytest.mark.parametrize("unstated", [None, "absent", "0"])
def test_metadata_that_state_nothing_are_no_budget(unstated: str | None, caplog: pytest.LogCaptureFixture) -> None:
    facts = {"feedback_max_ids": unstated, "pre_novelty_batches": None, "red_light": None}
    metadata = {} if unstated == "absent" else facts
    player = StepPlayer("mine", Executor({}))
    player.start(StartedTest("s", TEST, metadata, lambda *_: []))
    assert player._toolset["FeedbackInstance"].budget == 0
    assert (player._toolset["redlight_image"], player._toolset["pre_novelty_batches"]) == ("", 0)
    with pytest.raises(InvalidInput, match="feedback_max_ids must be a whole number"):
        player.start(StartedTest("s", TEST, {"feedback_max_ids": "many"}, lambda *_: []))


def test_agents_that_may_pass_over_adaptation_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    class Mute(Executor):
        def execute(self, toolset: dict[str, Any], step: str) -> Any:
            return None

    for agent, times in ((Mute({}), 1), (Executor({}), 0)):
        caplog.clear()
        player = StepPlayer("mine", agent)
        player.start(StartedTest("s", TEST, {"feedback_max_ids": 2}, lambda *_: []))
        for number in range(3):
            list(player.play(number, b"a\nb\n"))
        assert caplog.text.count("mine names adaptation by neither spelling") == times
