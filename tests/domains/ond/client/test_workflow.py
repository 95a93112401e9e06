"""Visits that are cut short go on where they were: sessions, budgets, red lights, agents that fail."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openfield.cli import run_command
from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.domains.ond.client.rest_client import RestClient, SessionProgress
from openfield.domains.ond.client.step_player import StepOptions, StepPlayer
from openfield.domains.ond.client.turn_player import TurnPlayer
from openfield.domains.ond.client.workflow import SessionOptions, StartedTest, play_sessions, play_test
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import write_tests
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.errors import AgentCrashed
from support.ond.original_agents import Executor
from support.ond.protocol import TEST
from support.ond.serving import play_session


def test_an_interrupted_session_goes_on_where_it_was(served: RestClient) -> None:
    player = StepPlayer("old", Executor({}), options=StepOptions(skip=("CreateFeedbackInstance",)))
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
    session = served.open(asked, [TEST, "OND.2"])
    assert served.latest(session).finished_tests == ()
    play_test(served, player, session, TEST)
    served.dataset(session, "OND.2", 0)
    scores = play_session(served, player, SessionOptions(tests=(TEST, "OND.2"), resume={"old": session}))
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
    served: RestClient, rounds: int, before: str, left: list[int]
) -> None:
    visit = SessionOptions(tests=(TEST,))
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


def test_attributes_of_half_a_test_are_not_kept(served: RestClient, tmp_path: Path, caplog) -> None:
    visit = SessionOptions(tests=(TEST, "OND.2"))
    keeping = StepOptions(attributes=str(tmp_path / "kept"), keep={"WorldDetection": ("played",)})
    with pytest.raises(AgentCrashed) as told:
        play_session(served, StepPlayer("mine", Spender(2), options=keeping), visit)
    session = str(told.value).rpartition("resume=mine:")[2].rstrip(".")
    player = StepPlayer("mine", Spender(9), options=keeping)
    play_session(served, player, msgspec.structs.replace(visit, resume={"mine": session}))
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["OND.2_attribute.npz"]
    assert "lack its first rounds" in caplog.text


def test_a_session_that_is_gone_is_not_offered_again(served: RestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
    ended = served.open(asked, [TEST])
    served.end(ended)
    players = [StepPlayer(name, Spender(9)) for name in ("other", "mine")]
    for session in (ended, "nobody"):
        visit = SessionOptions(tests=(TEST,), resume={"mine": session})
        with pytest.raises(Refusal, match=r"SessionEnded|session_id_invalid") as told:
            play_sessions(served, players, visit)
        assert "resume=" not in str(told.value)
    assert "other" not in served._ask("GET", "/session/status").decode()  # nothing was opened in vain
    monkeypatch.setattr(RestClient, "latest", lambda *_: SessionProgress())  # it ends after that
    with pytest.raises(Refusal, match="SessionEnded") as told:
        play_sessions(served, players[::-1], SessionOptions(tests=(TEST,), resume={"mine": ended}))
    assert "resume=other:" in str(told.value)
    assert "mine:" not in str(told.value)


def test_a_server_that_tells_no_round_is_begun_again(served: RestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentCrashed) as told:
        play_session(served, StepPlayer("mine", Spender(2)), SessionOptions(tests=(TEST,)))
    session = str(told.value).rpartition("resume=mine:")[2].rstrip(".")
    monkeypatch.setattr(RestClient, "latest", lambda *_: SessionProgress())
    agent = Spender(9)
    play_session(served, StepPlayer("mine", agent), SessionOptions(tests=(TEST,), resume={"mine": session}))
    assert agent.played == [0, 1, 2]
    assert [len(table) for table in agent.labels] == [0, 0, 2]  # what was spent is spent


def test_a_red_light_that_was_on_before_an_interruption_is_on_after_it(tmp_path: Path) -> None:
    settings = OndSettings(training=50, round_size=10, before=1, after=2)
    changed = msgspec.structs.replace(settings, new_classes=True)
    (name,) = write_tests(tmp_path, settings, changed, [5])
    test = DataDirectory(tmp_path).load("OND", "image_classification", name)[0]
    lights: list[bool | None] = []

    def agent(turn: Turn) -> Reply:
        lights.append(turn.red_light)
        if turn.ask != Ask.ACT:
            return Reply(None)
        return Reply(Scores.of([[0.5] * 7] * 10) if turn.first else NextBatch())

    for answered in ((), tuple(test.ids[:20])):
        player, content = TurnPlayer("mine", lambda: agent, str(tmp_path)), "\n".join(test.ids[20:])
        player.start(StartedTest("s", name, {"red_light": test.ids[10]}, lambda *_: [], answered))
        lights.clear()
        assert len(list(player.play(2, content.encode()))) == 1
        assert lights[0] is bool(answered)


FAILURES: dict[str, tuple[Any, str]] = {
    "raises": (lambda: 1 / 0, "round 1: the agent raised ZeroDivisionError: division by zero"),
    "no reply": (lambda: 5, "round 1: the agent returned a int, not a Reply"),
    "no scores": (lambda: Reply(NextBatch()), "round 1: waits for Scores"),
    "few": (lambda: Reply(Scores.of([[0.5] * 7] * 3)), "round 1: scores must be a table with 10 rows"),
    "ragged": (lambda: Reply(Scores([[0.5] * 7] * 9 + [[0.5]])), "round 1: scores must be a table with 10 rows"),
    "text": (lambda: Reply(Scores([["0.5"] * 7] * 10)), "round 1: scores must be a table with 10 rows"),  # type: ignore[list-item]
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
