"""The client's side over a real socket: equal scores, hosted agents, features, resume."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from domains.ond.protocol import TEST, write_test
from domains.ond.serving import server
from domains.ond.veterans import Executor, Methods
from openfield.cli import run_command
from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.domains.ond.agents import AdaptingAgent
from openfield.domains.ond.builder import write_tests
from openfield.domains.ond.client import Client, Progress
from openfield.domains.ond.evaluation import evaluate
from openfield.domains.ond.feedback_client import FeedbackAccount
from openfield.domains.ond.host import StepPlayer
from openfield.domains.ond.precomputed import PrecomputedAgent
from openfield.domains.ond.refusal import Refusal
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.sheet import Shelf
from openfield.domains.ond.stages import Options
from openfield.domains.ond.standins import register_standins
from openfield.domains.ond.turns import TurnPlayer
from openfield.domains.ond.visit import Occasion, Visit, play_session, play_sessions, play_test
from openfield.errors import AgentCrashed, InvalidInput
from openfield.rollout import Rollout, drive


def in_process(root: Path, test: str, red_light: bool) -> dict[str, Any]:
    (trial,) = DOMAIN.trials(data=str(root), test=test, red_light=red_light, training=1)
    world = DOMAIN.world(trial)
    drive(Rollout(world), AdaptingAgent(DOMAIN.spec(trial), 7))
    return evaluate(world.ledger)


def test_both_workflows_score_the_same_over_a_socket_and_in_process(tmp_path: Path) -> None:
    settings = OndSettings(training=200, round_size=20, before=4, after=6)
    changed = msgspec.structs.replace(settings, new_classes=True)
    names = write_tests(tmp_path / "data", settings, changed, [5, 6])
    with server(tmp_path, "--data", str(tmp_path / "data")) as (url, _), Client(url) as client:
        for hints in ((), ("red_light",)):
            player = TurnPlayer("adapting", lambda: AdaptingAgent(None, 7), str(tmp_path / "data"))
            visit = Visit(hints=hints, save=str(tmp_path / "scores"))
            found = play_session(client, player, visit)
            assert list(found) == names
            for name in names:
                wanted = msgspec.json.decode(msgspec.json.encode(in_process(tmp_path / "data", name, bool(hints))))
                assert {family: found[name][family] for family in wanted} == wanted
    assert (tmp_path / f"scores/{names[0]}_adapting.json").is_file()


@pytest.fixture
def served(tmp_path: Path):
    write_test(tmp_path / "data", feedback_max_ids=2)
    write_test(tmp_path / "data", "OND.2", feedback_max_ids=2)
    with server(tmp_path, "--data", str(tmp_path / "data")) as (url, _), Client(url) as client:
        yield client


def test_agents_of_the_original_client_are_hosted(served: Client, tmp_path: Path) -> None:
    agent = Executor({})
    player = StepPlayer("old", agent, options=Options(features=str(tmp_path / "features")))
    scores = play_session(served, player, Visit(tests=(TEST,)))[TEST]
    assert scores["m_num_stats"]["P_indx_0.5"] == 1
    once = ["FeatureExtraction", "WorldDetection", "NoveltyClassification", "NoveltyAdaptation", "NoveltyAdaption"]
    assert agent.steps == ["Initialize", *once * 3, "NoveltyCharacterization"]
    assert len(agent.labels[0]) == 2
    again = StepPlayer("old", Methods(), options=Options(features=str(tmp_path / "features")))
    scores = play_session(served, again, Visit(tests=(TEST,), hints=("red_light",)))[TEST]
    assert scores["m_num_stats"]["P_indx_0.175"] == 31
    assert again._agent.light == f"{TEST}-15.png"


def test_precomputed_results_are_posted_round_by_round(served: Client, tmp_path: Path) -> None:
    ids = [f"{TEST}-{at}.png" for at in range(30)]
    (tmp_path / f"{TEST}_mine_detection.csv").write_text("".join(f"{key},0.3\n" for key in ids[::-1]))
    (tmp_path / f"{TEST}_mine_classification.csv").write_text("".join(f"{key},0,1,0,0,0\n" for key in ids))
    player = StepPlayer(
        "mine", PrecomputedAgent(str(tmp_path), "mine"), options=Options(skip=("CreateFeedbackInstance",))
    )
    scores = play_session(served, player, Visit(tests=(TEST,)))[TEST]
    sheet = (tmp_path / f"data/OND/image_classification/{TEST}_single_df.csv").read_text()
    assert scores["m_acc"]["full_top1"] == round(sheet.count(",0,1\n") / 30, 5)


def test_an_interrupted_session_goes_on_where_it_was(served: Client) -> None:
    player = StepPlayer("old", Executor({}), options=Options(skip=("CreateFeedbackInstance",)))
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
    session = served.open(asked, [TEST, "OND.2"])
    assert served.latest(session).finished_tests == ()
    play_test(served, player, session, TEST)
    served.dataset(session, "OND.2", 0)
    scores = play_session(served, player, Visit(tests=(TEST, "OND.2"), resume={"old": session}))
    assert {test: "m_acc" in numbers for test, numbers in scores.items()} == {TEST: True, "OND.2": True}
    with pytest.raises(Refusal, match="SessionEnded"):
        served.metadata(session, TEST)


class Spender(Executor):
    """Spends its whole budget in every round, and is told how many rounds it lives."""

    def __init__(self, rounds: int, before: str = "WorldDetection") -> None:
        super().__init__({})
        self.rounds, self.before, self.played, self.characterised = rounds, before, list[int](), list[str]()

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        if step == self.before and (self.rounds == 0 or toolset.get("round_id") == self.rounds):
            raise RuntimeError("interrupted")
        if step == "WorldDetection":
            self.played.append(toolset["round_id"])
        if step == "NoveltyCharacterization":
            self.characterised = toolset["dataset_ids"]
            assert isinstance(toolset["features_dict"], dict)
        return super().execute(toolset, step)


@pytest.mark.parametrize(
    ("rounds", "before", "left"),
    [
        (2, "WorldDetection", [2]),
        (2, "NoveltyClassification", [2]),  # its detections are there, its classes are not
        (0, "NoveltyClassification", [0, 1, 2]),
        (2, "NoveltyCharacterization", []),  # nothing is left but to complete the test
    ],
)
def test_an_agent_that_spends_its_budget_goes_on_at_the_round_the_server_tells(
    served: Client, rounds: int, before: str, left: list[int]
) -> None:
    visit = Visit(tests=(TEST,))
    with pytest.raises(AgentCrashed, match="interrupted") as told:
        play_session(served, StepPlayer("mine", Spender(rounds, before)), visit)
    session = str(told.value).rpartition("resume=mine:")[2].rstrip(".")
    agent = Spender(9)
    scores = play_session(served, StepPlayer("mine", agent), msgspec.structs.replace(visit, resume={"mine": session}))
    assert agent.played == left
    assert agent.characterised == [f"{TEST}-{at}.png" for at in range(30)]
    assert "m_acc" in scores[TEST]
    packed = zipfile.ZipFile(io.BytesIO(served._ask("GET", "/session/zip", params={"session_id": session})))
    rows = packed.read(f"OND/image_classification/{session}.{TEST}_detection.csv").decode().splitlines()
    assert [row.partition(",")[0] for row in rows] == agent.characterised


def test_attributes_of_half_a_test_are_not_kept(served: Client, tmp_path: Path, caplog) -> None:
    visit = Visit(tests=(TEST, "OND.2"))
    keeping = Options(attributes=str(tmp_path / "kept"), keep={"WorldDetection": ("played",)})
    with pytest.raises(AgentCrashed) as told:
        play_session(served, StepPlayer("mine", Spender(2), options=keeping), visit)
    session = str(told.value).rpartition("resume=mine:")[2].rstrip(".")
    player = StepPlayer("mine", Spender(9), options=keeping)
    play_session(served, player, msgspec.structs.replace(visit, resume={"mine": session}))
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["OND.2_attribute.npz"]
    assert "lack its first rounds" in caplog.text


def test_a_session_that_is_gone_is_not_offered_again(served: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
    ended = served.open(asked, [TEST])
    served.end(ended)
    players = [StepPlayer(name, Spender(9)) for name in ("other", "mine")]
    for session in (ended, "nobody"):
        visit = Visit(tests=(TEST,), resume={"mine": session})
        with pytest.raises(Refusal, match=r"SessionEnded|session_id_invalid") as told:
            play_sessions(served, players, visit)
        assert "resume=" not in str(told.value)
    assert "other" not in served._ask("GET", "/session/status").decode()  # nothing was opened in vain
    monkeypatch.setattr(Client, "latest", lambda *_: Progress())  # it ends after that
    with pytest.raises(Refusal, match="SessionEnded") as told:
        play_sessions(served, players[::-1], Visit(tests=(TEST,), resume={"mine": ended}))
    assert "resume=other:" in str(told.value)
    assert "mine:" not in str(told.value)


def test_a_server_that_tells_no_round_is_begun_again(served: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentCrashed) as told:
        play_session(served, StepPlayer("mine", Spender(2)), Visit(tests=(TEST,)))
    session = str(told.value).rpartition("resume=mine:")[2].rstrip(".")
    monkeypatch.setattr(Client, "latest", lambda *_: Progress())
    agent = Spender(9)
    play_session(served, StepPlayer("mine", agent), Visit(tests=(TEST,), resume={"mine": session}))
    assert agent.played == [0, 1, 2]
    assert [len(table) for table in agent.labels] == [0, 0, 2]  # what was spent is spent


def test_a_red_light_that_was_on_before_an_interruption_is_on_after_it(tmp_path: Path) -> None:
    settings = OndSettings(training=50, round_size=10, before=1, after=2)
    changed = msgspec.structs.replace(settings, new_classes=True)
    (name,) = write_tests(tmp_path, settings, changed, [5])
    test = Shelf(tmp_path).load("OND", "image_classification", name)[0]
    lights: list[bool | None] = []

    def agent(turn: Turn) -> Reply:
        lights.append(turn.red_light)
        if turn.ask != Ask.ACT:
            return Reply(None)
        return Reply(Scores.of([[0.5] * 7] * 10) if turn.first else NextBatch())

    for answered in ((), tuple(test.ids[:20])):
        player, content = TurnPlayer("mine", lambda: agent, str(tmp_path)), "\n".join(test.ids[20:])
        player.start(Occasion("s", name, {"red_light": test.ids[10]}, lambda *_: [], answered))
        lights.clear()
        assert len(list(player.play(2, content.encode()))) == 1
        assert lights[0] is bool(answered)


FAILURES: dict[str, tuple[Any, str]] = {
    "raises": (lambda: 1 / 0, "round 1: the agent raised ZeroDivisionError: division by zero"),
    "no reply": (lambda: 5, "round 1: the agent returned a int, not a Reply"),
    "no scores": (lambda: Reply(NextBatch()), "round 1: waits for Scores"),
    "few": (lambda: Reply(Scores.of([[0.5] * 7] * 3)), "round 1: scores must be a table with 10 rows"),
    "ragged": (lambda: Reply(Scores([[0.5] * 7] * 9 + [[0.5]])), "round 1: scores must be a table with 10 rows"),
    "beyond": (lambda: Reply(Scores.of([[7.0] * 7] * 10)), "round 1: scores must be numbers from 0 to 1"),
    "beliefs": (lambda: Reply(Scores.of([[0.5] * 7] * 10), Belief((0.5,) * 3)), "round 1: the belief must be one"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_agent_of_ours_that_fails_is_told_and_the_session_can_be_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    settings = OndSettings(training=50, round_size=10, before=1, after=2)
    (name,) = write_tests(tmp_path / "data", settings, settings, [5])
    (tmp_path / "failing_turns.py").write_text("def play(turn):\n    return AGENT(turn)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    fail, said = FAILURES[failure]

    def agent(turn: Turn) -> Any:
        if turn.ask != Ask.ACT or "answered" in turn.observation:
            return Reply(NextBatch())
        return fail() if turn.observation["round"] == 1 and fail else Reply(Scores.of([[0.5] * 7] * 10))

    import failing_turns

    monkeypatch.setattr(failing_turns, "AGENT", agent, raising=False)
    words = ["run", "ond", "--server", "here", "-o", str(tmp_path / "r.sqlite"), "--set", f"data={tmp_path / 'data'}"]
    assert run_command([*words, "-a", "mine=failing_turns:play"]) == 2
    told = capsys.readouterr().err
    assert f"Test {name}, {said}" in told
    assert "Traceback" not in told
    fail = None
    resume = told.rpartition("resume=")[2].strip(" .\n")
    assert run_command([*words, "-a", "mine=failing_turns:play", "--set", f"resume={resume}"]) == 0
    del sys.modules["failing_turns"]


@pytest.mark.parametrize("unstated", [None, "absent", "0"])
def test_metadata_that_state_nothing_are_no_budget(unstated: str | None, caplog: pytest.LogCaptureFixture) -> None:
    facts = {"feedback_max_ids": unstated, "pre_novelty_batches": None, "red_light": None}
    metadata = {} if unstated == "absent" else facts
    player = StepPlayer("mine", Executor({}))
    player.start(Occasion("s", TEST, metadata, lambda *_: []))
    assert player._tools["FeedbackInstance"].budget == 0
    assert (player._tools["redlight_image"], player._tools["pre_novelty_batches"]) == ("", 0)
    with pytest.raises(InvalidInput, match="feedback_max_ids must be a whole number"):
        player.start(Occasion("s", TEST, {"feedback_max_ids": "many"}, lambda *_: []))


def test_agents_that_may_pass_over_adaptation_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    class Mute(Executor):
        def execute(self, toolset: dict[str, Any], step: str) -> Any:
            return None

    for agent, times in ((Mute({}), 1), (Executor({}), 0)):
        caplog.clear()
        player = StepPlayer("mine", agent)
        player.start(Occasion("s", TEST, {"feedback_max_ids": 2}, lambda *_: []))
        for number in range(3):
            list(player.play(number, b"a\nb\n"))
        assert caplog.text.count("mine names adaptation by neither spelling") == times


def test_the_command_plays_on_a_server(served: Client, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "guest.py").write_text(
        "from sail_on_client.agent.ond_agent import ONDAgent\n"
        "from domains.ond.veterans import Executor\n"
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
    assert not register_standins()


def test_a_server_that_is_not_there_is_said() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(InvalidInput, match="does not answer"):
        client.test_ids("OND", "image_classification")
