"""Agents are asked for adaptation by the spelling they know, however they show which one that is."""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

import pytest

from openfield.domains.ond.client.step_player import ADAPTATION, ADAPTION, PASSED_OVER, call_step


class Plain:
    """Shows nothing of the steps it knows but what is in those derived from it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def note(self, step: str) -> str:
        self.calls.append(step)
        return "adapted"

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.run(step)

    def run(self, step: str) -> Any:
        raise AssertionError(step)


class Table(Plain):
    """Looks steps up in a table, and passes over others."""

    def __init__(self) -> None:
        super().__init__()
        self.table = {"WorldDetection": self.note, ADAPTION: self.note}

    def run(self, step: str) -> Any:
        return self.table[step](step) if step in self.table else None


class Within(Table):
    """Hands steps on to an agent inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = {}
        self.inner = Table()
        self.inner.calls = self.calls

    def run(self, step: str) -> Any:
        return self.inner.execute({}, step)


class Methods(Table):
    """Looks for a method of the step's name."""

    def run(self, step: str) -> Any:
        self.table = {}
        return getattr(self, step, lambda: None)()

    def NoveltyAdaption(self) -> str:  # noqa: N802
        return self.note("adapt")


KNOWN = ("FeatureExtraction", ADAPTION)


class Listed(Table):
    """Knows steps by a list of its module."""

    def run(self, step: str) -> Any:
        self.table = {}
        return self.note(step) if step in KNOWN else None


def timed(function: Any) -> Any:
    @functools.wraps(function)
    def call(*values: Any) -> Any:
        return function(*values)

    return call


def bare(function: Any) -> Any:
    return lambda *values: function(*values)


class Decorated(Plain):
    """Has something around its steps."""

    @timed
    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.note(step) if step == "NoveltyAdaption" else None


class Closed(Plain):
    """Has something around its steps that does not say around what."""

    @bare
    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.note(step) if step == "NoveltyAdaption" else None


def dispatch(agent: Plain, step: str) -> Any:
    table = {"NoveltyAdaption": agent.note}
    return table.get(step, lambda _: None)(step)


class Helped(Plain):
    """Leaves it to a function of its module."""

    def run(self, step: str) -> Any:
        return dispatch(self, step)


class Step(Enum):
    ADAPT = "NoveltyAdaption"


class Chooser(Plain):
    """Has its steps as choices."""

    def run(self, step: str) -> Any:
        return self.note(step) if step == Step.ADAPT.value else None


class Snake(Plain):
    """Looks for a method in lower case."""

    def run(self, step: str) -> Any:
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in step).lstrip("_")
        return getattr(self, words, lambda: None)()

    def novelty_adaption(self) -> str:
        return self.note("adapt")


class Newer(Plain):
    """Knows the longer spelling; what is derived from it has steps of its own."""

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.note(step) if step == "NoveltyAdaptation" else None


class Older(Newer):
    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.note(step) if step == "NoveltyAdaption" else None


class Above(Newer):
    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return super().execute(toolset, step)


class Between(Plain):
    """Knows the shorter spelling, and has a method of the longer one."""

    def run(self, step: str) -> Any:
        return self.novelty_adaptation() if step == "NoveltyAdaption" else None

    def novelty_adaptation(self) -> str:
        return self.note("adapt")


KINDS: list[type[Plain]] = [
    Table,
    Within,
    Methods,
    Listed,
    Decorated,
    Closed,
    Helped,
    Chooser,
    Snake,
    Older,
    Above,
    Between,
]


@pytest.mark.parametrize("kind", KINDS)
def test_agents_that_pass_over_unknown_steps_adapt_once(kind: type[Plain]) -> None:
    agent = kind()
    assert call_step(agent, ADAPTATION, {}) == "adapted"
    assert len(agent.calls) == 1


class Strict:
    """Refuses steps it does not know, in its own way; what it knows cannot be read off it."""

    def __init__(self, error: BaseException, known: str = ADAPTION[::-1]) -> None:
        self.error, self.known, self.calls = error, known, 0

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        if step[::-1] != self.known:
            raise self.error
        self.calls += 1
        return "adapted"


REFUSALS = [
    Exception(f"Unrecognized step {ADAPTATION}"),
    RuntimeError(f"step {ADAPTATION} not supported"),
    AssertionError("novelty_adaptation"),
    NotImplementedError(),
    NotImplementedError("no such step"),
    KeyError(ADAPTATION),
]


@pytest.mark.parametrize("error", REFUSALS, ids=repr)
def test_whoever_refuses_one_spelling_is_asked_by_the_other(error: Exception) -> None:
    agent = Strict(error)
    assert call_step(agent, ADAPTATION, {}) == "adapted"
    assert agent.calls == 1


def test_what_goes_wrong_in_adaptation_is_not_taken_for_an_unknown_step() -> None:
    with pytest.raises(ValueError, match="out of labels"):
        call_step(Strict(ValueError("out of labels"), ""), ADAPTATION, {})
    with pytest.raises(NotImplementedError, match="neither"):
        call_step(Strict(NotImplementedError("neither"), ""), ADAPTATION, {})


class Breaking:
    """Knows one spelling, in which something goes wrong, and passes over the other."""

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        if step == "NoveltyAdaptation":
            raise RuntimeError("NoveltyAdaptation failed: out of memory")


class Unfinished:
    """Knows one spelling, for which nothing is written yet, and passes over the other."""

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        if step == "NoveltyAdaptation":
            raise NotImplementedError("later")


def test_what_goes_wrong_in_the_spelling_an_agent_knows_is_its_own() -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        call_step(Breaking(), ADAPTATION, {})
    with pytest.raises(NotImplementedError, match="later"):
        call_step(Unfinished(), ADAPTATION, {})


class Unnamed:
    """Names no step at all."""

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return None


def test_agents_that_may_pass_over_adaptation_unnoticed_are_known() -> None:
    assert call_step(Unnamed(), ADAPTATION, {}) is PASSED_OVER
    assert call_step(object(), ADAPTATION, {}) is None


class Reading(Plain):
    """Reads the name of a step in its own way, and returns nothing."""

    def __init__(self, test: Any) -> None:
        super().__init__()
        self.test = test

    def run(self, step: str) -> None:
        if self.test(step):
            self.note(step)


@pytest.mark.parametrize(
    "test",
    [
        lambda step: "Adapt" in step,
        lambda step: step.startswith("NoveltyAdapt"),
        lambda step: step.lower() == "noveltyadaptation",
        lambda step: (step != ADAPTION) is False,
    ],
)
def test_agents_that_read_the_name_in_their_own_way_adapt_once(test: Any) -> None:
    agent = Reading(test)
    assert call_step(agent, ADAPTATION, {}) is None
    assert len(agent.calls) == 1


def test_agents_that_know_both_spellings_adapt_once() -> None:
    class Both(Table):
        def run(self, step: str) -> Any:
            return self.note(step) if step in ("NoveltyAdaption", "NoveltyAdaptation") else None

    agent = Both()
    assert call_step(agent, ADAPTATION, {}) == "adapted"
    assert agent.calls == [ADAPTATION]
