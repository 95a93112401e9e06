"""Turns as a page shows them: what was seen, answered, believed, noted and earned, and what was true.

A step of the record is a reply and the turn it led to. A page shows a turn with the reply that was given to it, so it
takes its parts from two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import msgspec

from openfield.core import Belief, Truth, Turn
from openfield.journal.reader import Run
from openfield.record import Step
from openfield.view.trials.trial import PlayedTrial
from openfield.view.trials.values import Shortener

MAX_AGAIN = 64
"""How far back a turn is looked for that was shown again."""
MAX_TRACE = 4_000
"""Turns of an episode whose numbers are drawn; of a longer one the first."""


class ShownReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent gave back."""

    action: Any
    belief: float | None
    """The probability that the world has changed."""
    beliefs: Any = None
    """One probability for each sample, if there are several."""
    level: int | None = None
    detail: Any = None
    """What else the belief says."""
    note: Any = None
    milliseconds: float
    """How long the agent needed."""


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with the reply that was given to it."""

    number: int
    episode: int
    ask: str
    phase: str
    first: bool
    last: str | None
    red_light: bool | float | None
    observation: Any
    feedback: Any
    reward: float
    """What the reply before it earned."""
    reply: ShownReply | None
    """None until the agent replies."""
    earned: float | None
    """What this reply earned; None if it led to no turn."""
    truth: Any
    again: bool = False
    """Whether the turn before was shown again."""


class TracePoint(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a turn that are drawn along an episode."""

    reward: float
    belief: float | None
    performance: float | None
    milliseconds: float


def read_turns(run: Run, trial: PlayedTrial, first: int, count: int = 1) -> list[ShownTurn]:
    """Return some turns of a cell, found by an index.

    Args:
        run: The run file, open.
        trial: The cell.
        first: The number of the first turn.
        count: How many turns, as far as there are.
    """
    count = max(min(count, trial.turns - first), 0)
    if not count:
        return []
    cell = trial.cell
    steps = list(islice(run.steps(cell.id, cell.attempt, first), count + 1))
    shown, truth = _find_shown(run, trial, first, steps[0])
    turns = []
    for number, (step, answer) in enumerate(_pairs(steps), first):
        again = step.turn is None
        shown, truth = step.turn or shown, step.truth or truth
        turns.append(_show(trial, number, shown or Turn(), answer, truth, again))
    return turns[:count]


def trace_episode(run: Run, trial: PlayedTrial, episode: int) -> list[TracePoint]:
    """Return the numbers of the turns of an episode, for a drawing; of the first `MAX_TRACE` of them."""
    turns = trial.turns_of(episode)
    count = min(len(turns), MAX_TRACE)
    steps = list(islice(run.steps(trial.cell.id, trial.cell.attempt, turns.start), count + 1))
    points = []
    for step, answer in islice(_pairs(steps), count):
        belief = None if answer is None or answer.reply is None or answer.reply.belief is None else answer.reply.belief
        points.append(
            TracePoint(
                0.0 if answer is None or answer.turn is None else _finite(answer.turn.reward) or 0.0,
                None if belief is None else _finite(belief.highest),
                None if step.truth is None else _finite(step.truth.performance),
                0.0 if answer is None else answer.took / 1e6,
            )
        )
    return points


def _pairs(steps: list[Step]) -> Iterator[tuple[Step, Step | None]]:
    """Yield each step with the next one, which holds the reply to it; the last one with None."""
    yield from pairwise(steps)
    yield steps[-1], None


def _find_shown(run: Run, trial: PlayedTrial, number: int, step: Step) -> tuple[Turn | None, Truth | None]:
    """Return the turn that a step without one shows again, and what was true before, if the record repeats neither."""
    shown, truth = step.turn, step.truth
    if (shown is not None and truth is not None) or number == 0:
        return shown, truth
    before = max(number - MAX_AGAIN, 0)
    for earlier in islice(run.steps(trial.cell.id, trial.cell.attempt, before), number - before):
        shown, truth = (earlier.turn or shown) if step.turn is None else step.turn, earlier.truth or truth
    if truth is None:  # it has not changed for long: an episode knows it
        episode = trial.episode_of(number)
        novel = episode < len(trial.episodes) and trial.episodes[episode].novel
        truth = Truth(novel=novel)
    return shown, truth


def _show(
    trial: PlayedTrial, number: int, turn: Turn, answer: Step | None, truth: Truth | None, again: bool
) -> ShownTurn:
    cut = Shortener().shorten
    return ShownTurn(
        number=number,
        episode=trial.episode_of(number),
        ask=turn.ask.value,
        phase=turn.phase,
        first=turn.first,
        last=turn.last,
        red_light=turn.red_light,
        observation=cut(turn.observation),
        feedback=cut(turn.feedback),
        reward=_finite(turn.reward) or 0.0,
        reply=_show_reply(answer),
        earned=None if answer is None or answer.turn is None else _finite(answer.turn.reward),
        truth=None if truth is None else _show_truth(truth),
        again=again,
    )


def _show_reply(answer: Step | None) -> ShownReply | None:
    if answer is None or answer.reply is None:
        return None
    reply, cut = answer.reply, Shortener().shorten
    belief: Belief | None = reply.belief
    return ShownReply(
        action=cut(reply.action),
        belief=None if belief is None else _finite(belief.highest),
        beliefs=cut(belief.novel) if belief is not None and isinstance(belief.novel, tuple) else None,
        level=None if belief is None else belief.level,
        detail=None if belief is None else cut(belief.detail),
        note=cut(reply.note),
        milliseconds=answer.took / 1e6,
    )


def _show_truth(truth: Truth) -> dict[str, Any]:
    shown = {"novel": truth.novel, "performance": _finite(truth.performance), "episode_over": truth.episode_over}
    return {**shown, "detail": Shortener().shorten(truth.detail), "strength": truth.strength, "change": truth.change}


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can carry."""
    return value if value is not None and abs(value) < float("inf") else None
