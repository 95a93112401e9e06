"""The checks of a world pass one that keeps its promises and name the promise that is broken."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from openfield.domain import Domain
from openfield.processes.child import Child
from openfield.testing import Report, check_world, world
from openfield.testing.worker import Worker
from support import bad_worlds

PATIENCE = 60.0
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
    "SHOWS_ORDER": {"secrets"},
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


class KeptWorker(Worker):
    """A worker whose process the next check goes on with: to start one takes longer than most checks do."""

    idle: ClassVar[list[Child]] = []
    unanswered = 0

    def ask(self, function: Callable[..., Any], *values: Any) -> None:
        super().ask(function, *values)
        self.unanswered += 1

    def _start(self) -> Child:
        self._child = child = self.idle.pop() if self.idle else super()._start()
        self.unanswered = 0
        return child

    def _receive(self, patience: float) -> bytes:
        message = super()._receive(patience)
        self.unanswered -= 1
        return message

    def close(self) -> None:
        if self._child is None or self.unanswered:  # it hangs, or died
            super().close()
        else:
            self.idle.append(self._child)
            self._child = None


@pytest.fixture(scope="module", autouse=True)
def one_process() -> Iterator[None]:
    """Checks share a process as long as none hangs in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "Worker", KeptWorker)
        yield
    for child in KeptWorker.idle:
        child.end()
    KeptWorker.idle.clear()


@functools.cache
def check(domain: Domain[Any]) -> Report:
    """Check a domain once for all tests that ask."""
    return check_world(domain, patience=PATIENCE)


def detail(report: Report) -> str:
    return next(finding.detail for finding in report.findings if not finding.passed)


@pytest.mark.parametrize("name", BAD_WORLDS)
def test_a_bad_world_is_caught_by_name(name: str) -> None:
    domain = getattr(bad_worlds, name)
    report = check_world(domain, patience=0.5) if name == "HANGS" else check(domain)
    assert set(report.failed) == BAD_WORLDS[name], report


def test_details_say_what_is_wrong() -> None:
    assert detail(check_world(bad_worlds.HANGS, patience=0.3)) == "backwards: no answer within 0.3 s"
    assert "Turn 4: the world raised ZeroDivisionError: out of luck" in detail(check(bad_worlds.CRASHES))
    assert "idle: nothing shown changes" in detail(check(bad_worlds.IDLE_NOVELTY))
    assert detail(check(bad_worlds.SHOWS_FLAG)) == (
        "observation.parts[1] is True exactly when the world is novel (backwards, leaps:easy, leaps:hard), "
        "and False otherwise"
    )


@pytest.mark.parametrize("name", ["EFFECTS", "DECLARED"])
def test_what_a_novelty_does_may_be_seen(name: str) -> None:
    report = check(getattr(bad_worlds, name))
    assert report.passed, report


def test_novelties_of_rewards_are_not_judged_where_none_is_paid_any_more() -> None:
    (finding,) = (each for each in check(bad_worlds.PAYS_EARLY).findings if each.check == "novelties")
    assert finding.passed
    assert not finding.judged
    assert "which double would change" in finding.detail


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SHOWS_SPARE_KEY", "observation.spare is 0 exactly when the world is novel (backwards), and not there"),
        (
            "SHOWS_ORDER",
            "observation.other order of a, at, b, noise is True exactly when the world is novel (backwards)",
        ),
        ("SHOWS_PIXEL", "observation.picture[19][19] is 255 exactly when the world is novel (backwards, leaps:easy, "),
        ("SHARES_GLOBAL", "backwards, with an agent that alters what it is shown: Turn 1 differs"),
        ("ALTERS_TURNS", "backwards: turn 0 is altered after it was shown"),
    ],
)
def test_it_says_what_gives_a_world_away(name: str, said: str) -> None:
    assert said in detail(check(getattr(bad_worlds, name)))


def test_what_a_domain_declares_as_shown_is_no_secret() -> None:
    class Open(bad_worlds.Altered):
        shown_detail = ("map",)

    assert "secrets" not in check(Open("shows_detail")).failed


def test_a_domain_that_no_other_process_finds_is_checked_here() -> None:
    class Local(bad_worlds.BadWalks):
        pass

    report = check(Local("local"))
    assert report.failed == ["same_seed"]
    assert "make it a global of a module" in detail(report)
