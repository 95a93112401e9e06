"""The client's side over a real socket: equal scores, hosted agents, features, budgets."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from openfield.cli import run_command
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.agents.builtin import AdaptingAgent
from openfield.domains.ond.agents.precomputed import PrecomputedAgent
from openfield.domains.ond.client.original_client import FeedbackAccount, register_stubs
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.client.step_player import StepOptions, StepPlayer
from openfield.domains.ond.client.turn_player import TurnPlayer
from openfield.domains.ond.client.workflow import SessionOptions, StartedTest
from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import write_tests
from openfield.domains.ond.testset.evaluation import evaluate
from openfield.errors import InvalidInput
from openfield.rollout import Rollout, drive
from support.ond.protocol import TEST
from support.ond.serving import play_session, server
from support.ond.veterans import Executor, Methods


def in_process(root: Path, test: str, red_light: bool) -> dict[str, Any]:
    (trial,) = DOMAIN.trials(data=str(root), test=test, red_light=red_light, training=1)
    world = DOMAIN.world(trial)
    drive(Rollout(world), AdaptingAgent(DOMAIN.spec(trial), 7))
    return evaluate(world.ledger)


def test_both_workflows_score_the_same_over_a_socket_and_in_process(tmp_path: Path) -> None:
    settings = OndSettings(training=200, round_size=20, before=4, after=6)
    changed = msgspec.structs.replace(settings, new_classes=True)
    names = write_tests(tmp_path / "data", settings, changed, [5, 6])
    with server(tmp_path, "--data", str(tmp_path / "data")) as (url, _), RestClient(url) as client:
        for hints in ((), ("red_light",)):
            player = TurnPlayer("adapting", lambda: AdaptingAgent(None, 7), str(tmp_path / "data"))
            visit = SessionOptions(hints=hints, save=str(tmp_path / "scores"))
            found = play_session(client, player, visit)
            assert list(found) == names
            for name in names:
                wanted = msgspec.json.decode(msgspec.json.encode(in_process(tmp_path / "data", name, bool(hints))))
                assert {family: found[name][family] for family in wanted} == wanted
    assert (tmp_path / f"scores/{names[0]}_adapting.json").is_file()


def test_agents_of_the_original_client_are_hosted(served: RestClient, tmp_path: Path) -> None:
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


def test_precomputed_results_are_posted_round_by_round(served: RestClient, tmp_path: Path) -> None:
    ids = [f"{TEST}-{at}.png" for at in range(30)]
    (tmp_path / f"{TEST}_mine_detection.csv").write_text("".join(f"{key},0.3\n" for key in ids[::-1]))
    (tmp_path / f"{TEST}_mine_classification.csv").write_text("".join(f"{key},0,1,0,0,0\n" for key in ids))
    player = StepPlayer(
        "mine", PrecomputedAgent(str(tmp_path), "mine"), options=StepOptions(skip=("CreateFeedbackInstance",))
    )
    scores = play_session(served, player, SessionOptions(tests=(TEST,)))[TEST]
    sheet = (tmp_path / f"data/OND/image_classification/{TEST}_single_df.csv").read_text()
    assert scores["m_acc"]["full_top1"] == round(sheet.count(",0,1\n") / 30, 5)


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


def test_the_command_plays_on_a_server(served: RestClient, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "guest.py").write_text(
        "from sail_on_client.agent.ond_agent import ONDAgent\n"
        "from support.ond.veterans import Executor\n"
        "class Guest(Executor, ONDAgent):\n"
        "    def __init__(self, **config):\n"
        "        super().__init__(config)\n"
    )
    words = ["run", "ond", "--server", str(served._http.base_url), "-a", f"{tmp_path}/guest.py:Guest", "--trials", "1"]
    assert run_command(words) == 0
    assert "m_acc" in capsys.readouterr().out
    assert run_command(["run", "ond", "--server", "http://127.0.0.1:9", "-a", "knn"]) == 2


def test_feedback_accounts_fill_up_batch_by_batch() -> None:
    asked: list[Any] = []

    def buy(kind: str, ids: Any) -> list[str]:
        asked.append((kind, ids))
        return [f"{key},1" for key in ids or ["accuracy"]]

    account = FeedbackAccount(3, 2, 3, buy, "classification")
    rows = account.get_feedback(0, [0, 2], ["a", "b", "c"])
    assert len(rows) == 2
    assert account.get_feedback(0, [1], ["a", "b", "c"]) is None
    with pytest.raises(ValueError, match="budget"):
        account.get_feedback(1, [0, 1, 2, 3], ["a", "b", "c", "d"])
    assert asked == [("classification", ["a", "c"])]
    assert account.budget == 3


def test_a_budget_that_is_used_up_is_an_empty_table() -> None:
    def buy(kind: str, ids: Any) -> list[str]:
        raise Refusal("FeedbackBudgetExceeded" if kind == "labels" else "SessionEnded", "no")

    table = FeedbackAccount(3, 3, 3, buy, "labels").get_feedback(0, [0], ["a"])
    assert (len(table), list(table["labels"]) if hasattr(table, "columns") else []) == (0, [])
    with pytest.raises(Refusal, match="no"):
        FeedbackAccount(3, 3, 3, buy, "detection").get_feedback(0, [0], ["a"])


def test_stand_ins_leave_the_real_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sail_on_client", ModuleType("sail_on_client"))
    assert not register_stubs()


def test_a_server_that_is_not_there_is_said() -> None:
    with RestClient("http://127.0.0.1:9") as client, pytest.raises(InvalidInput, match="does not answer"):
        client.test_ids("OND", "image_classification")
