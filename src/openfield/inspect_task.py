"""Trials as a task of Inspect: `inspect eval openfield/trial --model MODEL -T domain=birds`.

Inspect finds this module by its entry point. The samples of the task are trials, played by the model that Inspect
evaluates. Inspect chooses the model, counts its tokens and logs its calls. openfield plays the trial and records each
sample in a run file, which `openfield report`, `view` and `verify` read as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openfield.agents.llm.language_model import LanguageModel, PromptOptions
from openfield.agents.llm.model_endpoint import ModelAnswer, ModelQuestion
from openfield.agents.turn_writer import find_writer
from openfield.api import run, trials
from openfield.core import Spec
from openfield.domain import Domain
from openfield.errors import MissingExtra
from openfield.journal.reader import CellRecord
from openfield.metrics.performance import mean as average
from openfield.metrics.performance import performances
from openfield.metrics.summary import Summary
from openfield.registry import find_domain
from openfield.trial import Trial

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        Content,
        ContentImage,
        ContentText,
        Model,
        get_model,
    )
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
except ModuleNotFoundError as error:
    if error.name != "inspect_ai":
        raise
    raise MissingExtra("inspect", "openfield.inspect_task") from None

__all__ = ["trial"]

NUMBERS = "openfield"
"""Where a sample keeps its numbers."""
SCORE = "performance"
"""The number that scores a sample: the performance in the test, from the onset on if there is one."""


@task
def trial(
    domain: str,
    novelty: str | None = None,
    count: int = 5,
    seed: int = 0,
    history: int = 20,
    runs: str = "runs/inspect",
    settings: dict[str, Any] | None = None,
) -> Task:
    """Play blind trials of a domain with the model that Inspect evaluates.

    Args:
        domain: The domain, as on the command line of openfield.
        novelty: What changes; the domain's first novelty if not given.
        count: How many trials change; unchanged ones come on top.
        seed: The root of all seeds.
        history: Questions and answers before the present one that the model is shown.
        runs: The folder of the run files.
        settings: Settings of the domain, as `--set` takes them.
    """
    known = find_domain(domain, settings)
    options: dict[str, Any] = {**(settings or {}), "seed": seed}
    if novelty is not None:
        options["novelty"] = novelty
    made = {each.id: each for each in trials(known, count, **options)}
    samples = [Sample(input=known.spec(each).task, id=key) for key, each in made.items()]
    return Task(
        dataset=MemoryDataset(samples, name=f"{known.name} trials"),
        solver=play_trial(known, made, PromptOptions(history=history), Path(runs)),
        scorer=score_performance(),
    )


@solver
def play_trial(domain: Domain[Any], made: Mapping[str, Trial], prompt: PromptOptions, runs: Path) -> Solver:
    """Play the trial of a sample and keep its numbers.

    Args:
        domain: The domain.
        made: The trials by their ids, which are those of the samples.
        prompt: How the model is asked.
        runs: The folder of the run files.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, loop = get_model(), asyncio.get_running_loop()

        def ask(question: ModelQuestion) -> ModelAnswer:
            return asyncio.run_coroutine_threadsafe(ask_model(model, question), loop).result()

        def make_agent(spec: Spec, seed: int) -> LanguageModel:
            return LanguageModel(find_writer(domain, spec), ask, prompt)

        played, place = made[str(state.sample_id)], runs / f"{state.sample_id}-{state.epoch}.sqlite"
        result = await asyncio.to_thread(run, {str(model): make_agent}, [played], place, progress=False)
        (cell,) = result.counted()
        numbers = {SCORE: score_trial(cell), "run": str(place), **_list_numbers(result.summary())}
        state.metadata[NUMBERS] = numbers
        state.completed = True
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def score_performance() -> Scorer:
    """Score a sample by the performance in its trial, and show its other numbers."""

    async def score(state: TaskState, target: Target) -> Score:
        numbers = dict(state.metadata[NUMBERS])
        return Score(value=numbers[SCORE], metadata=numbers)

    return score


def score_trial(cell: CellRecord) -> float:
    """Return the mean performance in the test, from the onset on if the world changes; 0 without one."""
    judged = [each for each in cell.episodes if each.phase == "test" and each.novel == cell.trial.is_changed]
    return average(performances(judged)) or 0.0


async def ask_model(model: Model, question: ModelQuestion) -> ModelAnswer:
    """Ask the model that Inspect evaluates."""
    output = await model.generate([_convert(message) for message in question.messages])
    usage = output.usage
    return ModelAnswer(
        output.completion,
        tokens_in=usage.input_tokens if usage else 0,
        tokens_out=usage.output_tokens if usage else 0,
        seconds=output.time or 0.0,
        counted=usage is not None,
    )


def _convert(message: Mapping[str, Any]) -> ChatMessage:
    content = _convert_content(message["content"])
    match message["role"]:
        case "system":
            return ChatMessageSystem(content=content)
        case "assistant":
            return ChatMessageAssistant(content=content)
        case _:
            return ChatMessageUser(content=content)


def _convert_content(content: str | Sequence[Mapping[str, Any]]) -> str | list[Content]:
    """Return a text, or texts and pictures, as Inspect has them."""
    if isinstance(content, str):
        return content
    return [
        ContentText(text=part["text"]) if part["type"] == "text" else ContentImage(image=part["image_url"]["url"])
        for part in content
    ]


def _list_numbers(summary: Summary) -> dict[str, Any]:
    """Return the numbers of the only trial of a run, and how it ended."""
    (group,) = summary.groups
    return {name: found.mean for name, found in group.estimates.items()} | {"outcomes": group.outcomes}
