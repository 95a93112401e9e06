"""Say before the first call how many calls and tokens a run will take: a few turns are played with random answers."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

from openfield.agents.llm.factory import LanguageModelFactory
from openfield.agents.llm.language_model import LanguageModel
from openfield.agents.llm.model_endpoint import TOKEN_CHARACTERS, ModelAnswer, ModelQuestion, count_tokens
from openfield.agents.turn_writer import TurnWriter, find_writer
from openfield.cell import Cell
from openfield.console import say_count
from openfield.domain import Domain, make_world, spec_of
from openfield.errors import AgentFault
from openfield.parameters import list_language_models
from openfield.registry import find_agent
from openfield.rollout import Rollout
from openfield.runner.duration import measure_part
from openfield.runner.plan import Plan
from openfield.trial import Trial

MAX_SECONDS, MAX_CALLS = 1.0, 200
"""How long turns are played, and how many questions are asked, before a number is said."""
ANSWER_TOKENS = 40
"""Tokens of an answer beside its action: the model writes one line on why."""
CALL_SECONDS = 2.0
"""What a call is taken to last. Endpoints differ, and none is asked before the run."""


class CallEstimate(NamedTuple):
    """What the cells of an agent will take, about."""

    calls: int
    tokens: int
    cells: int
    cost: float | None = None
    """By the prices that the agent was given."""

    def __str__(self) -> str:
        cost = "" if self.cost is None else f", which cost about {self.cost:,.2f}"
        cells = say_count(self.cells, "cell")
        return f"about {_round(self.calls)} calls and {_round(self.tokens)} tokens in {cells}{cost}"


class _Sample(NamedTuple):
    """The questions of some turns of a trial."""

    tokens_in: list[int]
    tokens_out: list[int]
    played: float
    """The part of the trial that these turns are."""


def estimate_plan(plan: Plan, left: Sequence[Cell]) -> dict[str, CallEstimate]:
    """Return what every language model of a plan will be asked, by the name of the agent.

    Args:
        plan: The plan to play.
        left: Those of its cells that are not over.
    """
    found: dict[str, CallEstimate] = {}
    for name in list_language_models(plan.agents):
        trials = [cell.trial for cell in left if cell.agent == name]
        for domain in {trial.domain: plan.domains[trial.domain] for trial in trials}.values():
            factory = find_agent(plan.agents[name], domain)
            if isinstance(factory, LanguageModelFactory):
                own = [trial for trial in trials if trial.domain == domain.name]
                found[name] = _add(found.get(name), _estimate(factory, domain, own))
    return found


def _estimate(factory: LanguageModelFactory, domain: Domain[Any], trials: list[Trial]) -> CallEstimate:
    sample = _play(factory, domain, trials[0])
    times = len(trials) / sample.played
    tokens_in, written = sum(sample.tokens_in) * times, sum(sample.tokens_out) * times
    prices = factory.prompt.prices
    cost = None if prices is None else (tokens_in * prices[0] + written * prices[1]) / 1e6
    return CallEstimate(math.ceil(len(sample.tokens_in) * times), math.ceil(tokens_in + written), len(trials), cost)


def _play(factory: LanguageModelFactory, domain: Domain[Any], trial: Trial) -> _Sample:
    """Play some turns of a trial with random answers. Nothing is recorded, and no model is asked."""
    spec, rng = spec_of(domain, trial), random.Random(0)
    writer, tokens_in, written = find_writer(factory.domain, spec), list[int](), list[int]()

    def ask(question: ModelQuestion) -> ModelAnswer:
        text = _answer(writer, question, rng)
        tokens_in.append(count_tokens(question.messages))
        written.append(ANSWER_TOKENS + len(text) // TOKEN_CHARACTERS)
        return ModelAnswer(text)

    agent, episodes, until = LanguageModel(writer, ask, factory.prompt), 0, time.monotonic() + MAX_SECONDS
    with closing(make_world(domain, trial)) as world:
        rollout = Rollout(world)
        while not rollout.over and (not tokens_in or (time.monotonic() < until and len(tokens_in) < MAX_CALLS)):
            episodes += rollout.turn.last is not None
            try:
                rollout.reply(agent(rollout.turn))
            except AgentFault:  # a random answer may be none
                break
    return _Sample(tokens_in, written, 1.0 if rollout.over else measure_part(trial, episodes, rollout.turns))


def _answer(writer: TurnWriter, question: ModelQuestion, rng: random.Random) -> str:
    """Return an answer that has all keys."""
    wanted = str(question.messages[-1]["content"]).rpartition("Answer with")[2]
    values: dict[str, Any] = {"world_changed": 0.5} if '"world_changed"' in wanted else {}
    return json.dumps({"reasoning": "", **values, **({"action": writer.sample(rng)} if '"action"' in wanted else {})})


def _add(one: CallEstimate | None, other: CallEstimate) -> CallEstimate:
    if one is None:
        return other
    cost = None if one.cost is None or other.cost is None else one.cost + other.cost
    return CallEstimate(one.calls + other.calls, one.tokens + other.tokens, one.cells + other.cells, cost)


def _round(count: int) -> str:
    """Return a number with two digits that count."""
    digits = len(str(count)) - 2
    return f"{round(count, -digits) if digits > 0 else count:,}"
