"""Agents are asked for adaptation by the spelling they know, however they show which one that is."""

from __future__ import annotations

from typing import Any

import pytest

from openfield.domains.ond.steps import ADAPTATION, ADAPTION, do_step


class Table:
    """Looks steps up in a table, and passes over others."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.table = {"WorldDetection": self.note, ADAPTION: self.note}

    def note(self, step: str) -> str:
        self.calls.append(step)
        return "adapted"

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        return self.run(step)

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


@pytest.mark.parametrize("kind", [Table, Within, Methods, Listed])
def test_agents_that_pass_over_unknown_steps_adapt_once(kind: type[Table]) -> None:
    agent = kind()
    assert do_step(agent, ADAPTATION, {}) == "adapted"
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
    assert do_step(agent, ADAPTATION, {}) == "adapted"
    assert agent.calls == 1


def test_what_goes_wrong_in_adaptation_is_not_taken_for_an_unknown_step() -> None:
    with pytest.raises(ValueError, match="out of labels"):
        do_step(Strict(ValueError("out of labels"), ""), ADAPTATION, {})
    with pytest.raises(NotImplementedError, match="neither"):
        do_step(Strict(NotImplementedError("neither"), ""), ADAPTATION, {})


def test_agents_that_know_both_spellings_adapt_once() -> None:
    class Both(Table):
        def run(self, step: str) -> Any:
            return self.note(step) if step in ("NoveltyAdaption", "NoveltyAdaptation") else None

    agent = Both()
    assert do_step(agent, ADAPTATION, {}) == "adapted"
    assert agent.calls == [ADAPTATION]
