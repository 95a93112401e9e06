"""The conformance kit passes what keeps its promises and names the promise that is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

import openfield as of
from openfield.agents.random import RandomAgent
from openfield.domain import spec_of
from openfield.errors import ReplayMismatch
from openfield.record import ENCODER
from openfield.registry import find_domain
from openfield.rollout import Rollout
from openfield.serving.jsonlines import JsonLinesWire
from openfield.testing import Conformance, Report, check_agent, check_domain, check_wire, check_world
from openfield.testing.transcript import record, replay
from support import bad_agents, bad_worlds
from support.places import ROOT
from support.walks import WALKS

MAZE = ROOT / "examples" / "maze.py"

BAD_WORLDS = {
    "UNHASHABLE": {"odd_actions"},
    "IGNORES_SEED": {"other_seed"},
    "UNSEEDED": {"replay", "same_seed"},
    "HASHES": {"same_seed"},
    "READS_CLOCK": {"clock", "replay", "same_seed"},
    "READS_DEADLINE": {"clock"},
    "READS_CALENDAR": {"clock", "replay", "same_seed"},
    "READS_YEAR": {"clock"},
    "GLOBAL_RANDOM": {"global_random"},
    "GLOBAL_NUMPY_RANDOM": {"global_random"},
    "CRASHES": {"answers"},
    "HANGS": {"answers"},
    "UNRECORDABLE": {"recorded"},
    "PERFORMANCE": {"performance"},
    "SHOWS_NAME": {"secrets"},
    "SHOWS_FLAG": {"secrets"},
    "SHOWS_ONE_FLAG": {"secrets"},
    "SHOWS_SPARE_KEY": {"secrets"},
    "SHOWS_LENGTH": {"secrets"},
    "SHOWS_SMALL_ARRAY": {"secrets"},
    "SHOWS_PIXEL": {"secrets"},
    "SHOWS_WORD": {"secrets"},
    "SHOWS_AT_START": {"secrets"},
    "SHOWS_KEY": {"secrets"},
    "SHOWS_DETAIL": {"secrets"},
    "SHOWS_PHASE": {"secrets"},
    "SHOWS_RED_LIGHT": {"red_light"},
    "LYING_RED_LIGHT": {"red_light"},
    "ALWAYS_NOVEL": {"onset"},
    "KNOWS_BEFORE": {"onset"},
    "TELLING_SPEC": {"secrets"},
    "IDLE_NOVELTY": {"novelties"},
    "NARROW_SPACE": {"observations"},
    "WIDE_ACTIONS": {"actions"},
    "SHARES_LIST": {"own_turns"},
    "SHARES_GLOBAL": {"own_turns"},
    "ALTERS_TURNS": {"own_turns"},
    "KEEPS_ACTIONS": {"own_turns"},
    "STRUCT_ACTIONS": {"plain_actions", "odd_actions", "same_seed", "replay"},
}
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


class TestWalks(Conformance):
    domain = WALKS


@pytest.mark.parametrize("name", BAD_WORLDS)
def test_a_bad_world_is_caught_by_name(name: str) -> None:
    report = check_world(getattr(bad_worlds, name), patience=0.5)
    assert set(report.failed) == BAD_WORLDS[name], report


@pytest.mark.parametrize("name", BAD_AGENTS)
def test_a_bad_agent_is_caught_by_name(name: str) -> None:
    report = check_agent(getattr(bad_agents, name), WALKS, patience=0.5 if name == "Hangs" else 5.0)
    assert report.failed == [BAD_AGENTS[name]], report


@pytest.mark.parametrize("agent", [bad_agents.Walker, bad_agents.Learner, "random"])
def test_a_good_agent_passes(agent: Any) -> None:
    assert check_agent(agent, WALKS).passed


def test_details_say_what_is_wrong() -> None:
    details = {name: _detail(check_world(getattr(bad_worlds, name), patience=0.3)) for name in ("HANGS", "CRASHES")}
    assert details["HANGS"] == "backwards: no answer within 0.3 s"
    assert "Turn 4: the world raised ZeroDivisionError: out of luck" in details["CRASHES"]
    assert "idle: nothing shown changes" in _detail(check_world(bad_worlds.IDLE_NOVELTY))
    assert _detail(check_world(bad_worlds.SHOWS_FLAG)) == (
        "observation.parts[1] is True exactly when the world is novel (backwards, leaps:easy, leaps:hard), "
        "and False otherwise"
    )


@pytest.mark.parametrize("name", ["EFFECTS", "DECLARED"])
def test_what_a_novelty_does_may_be_seen(name: str) -> None:
    report = check_world(getattr(bad_worlds, name))
    assert report.passed, report


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SHOWS_SPARE_KEY", "observation.spare is 0 exactly when the world is novel (backwards), and not there"),
        ("SHOWS_PIXEL", "observation.picture[19][19] is 255 exactly when the world is novel (backwards, leaps:easy, "),
        ("SHARES_GLOBAL", "backwards, with an agent that alters what it is shown: Turn 1 differs"),
        ("ALTERS_TURNS", "backwards: turn 0 is altered after it was shown"),
    ],
)
def test_it_says_what_gives_a_world_away(name: str, said: str) -> None:
    assert said in _detail(check_world(getattr(bad_worlds, name)))


def test_what_a_domain_declares_as_shown_is_no_secret() -> None:
    class Open(bad_worlds.Altered):
        shown_detail = ("map",)

    assert "secrets" not in check_world(Open("shows_detail")).failed


def test_a_domain_that_no_other_process_finds_is_checked_here() -> None:
    class Local(bad_worlds.BadWalks):
        pass

    report = check_world(Local("local"))
    assert report.failed == ["same_seed"]
    assert "make it a global of a module" in _detail(report)


def test_an_agent_that_cannot_be_sent_is_checked_here() -> None:
    assert check_agent(lambda turn: of.Reply(1), WALKS).passed


def test_the_maze_passes_as_a_whole_and_the_report_is_data() -> None:
    report = check_domain(find_domain(str(MAZE)))
    assert report.passed, report
    assert {finding.subject for finding in report.findings} == {"world", "agent compass", "wire"}
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
    assert "world: answers: ok" in str(report)


def test_conformance_tells_what_failed() -> None:
    class Broken(Conformance):
        domain = bad_worlds.IDLE_NOVELTY

    with pytest.raises(AssertionError, match="novelties: FAILED"):
        Broken().test_world()


class ForgetfulWire(JsonLinesWire):
    """Loses beliefs on the way."""

    async def serve(self, dispatcher: Any, *rest: Any) -> None:
        await super().serve(ForgetfulDispatcher(dispatcher), *rest)


class ForgetfulDispatcher:
    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    async def join(self, *asked: Any) -> Any:
        remote = await self.dispatcher.join(*asked)
        reply = remote.reply
        remote.reply = lambda answer: reply(of.Reply(answer.action))
        return remote


def test_a_wire_that_loses_something_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "wire", ForgetfulWire, raising=False)
    assert check_wire(WALKS, agent=bad_agents.Walker).failed == ["equal_record"]


def test_a_peer_that_gets_nowhere_is_caught() -> None:
    async def leave(host: str, port: int, replies: Sequence[of.Reply]) -> None:
        pass

    assert check_wire(WALKS, peer=leave).failed == ["plays"]


def test_a_foreign_wire_without_a_peer_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WALKS, "wire", lambda: object(), raising=False)
    report = check_wire(WALKS)
    assert [finding.judged for finding in report.findings] == [False, False]
    assert report.passed


def test_a_replay_does_not_mind_which_string_says_test() -> None:
    """A trial that came through a pipe has phase names of its own, and msgspec writes those out."""
    trial = WALKS.trials(count=1)[0]
    copied = msgspec.json.decode(msgspec.json.encode(trial), type=of.Trial)
    phases = tuple(of.Phase("".join(phase.name), phase.episodes, phase.novelty) for phase in copied.phases)
    other = msgspec.structs.replace(copied, phases=phases)
    tape = record(WALKS, other, RandomAgent(spec_of(WALKS, other), 0))
    watched, error = replay(WALKS, trial, tape.steps)
    assert error is None
    assert len(watched.turns) + 1 == len(tape.steps)
    assert any(ENCODER.encode(t) != bytes(s.turn) for t, s in zip(watched.turns, tape.steps, strict=False))


def test_a_changed_turn_is_no_replay() -> None:
    trial = WALKS.trials(count=1)[0]
    tape = record(WALKS, trial, RandomAgent(spec_of(WALKS, trial), 0))
    other = msgspec.structs.replace(trial, seed=trial.seed + 1)
    with pytest.raises(ReplayMismatch, match="Turn 0 differs"):
        Rollout.resume(WALKS.world(other), tape.steps)


def _detail(report: Report) -> str:
    return next(finding.detail for finding in report.findings if not finding.passed)
