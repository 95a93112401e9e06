"""Trials as tasks of Inspect, played by a model that Inspect makes up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openfield.result import Result
from support.places import MAZE

pytest.importorskip("inspect_ai", reason="the optional package inspect-ai is not installed")


@pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")  # in Inspect itself
@pytest.mark.filterwarnings("ignore:.*MemoryObjectReceiveStream:pytest.PytestUnraisableExceptionWarning")
def test_a_model_of_inspect_plays_trials_that_openfield_records(tmp_path: Path) -> None:
    from inspect_ai import eval as evaluate
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from openfield.inspect import trial

    def answer(messages: Any, *_: Any) -> ModelOutput:
        belief = ', "world_changed": 0.25' if "world_changed" in messages[-1].text else ""
        output = ModelOutput.from_content("mockllm/model", f'{{"reasoning": "west", "action": "left"{belief}}}')
        output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)  # else it would fetch a tokenizer
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    task = trial(MAZE, count=1, runs=str(tmp_path / "runs"))
    (log,) = evaluate(task, model=model, log_dir=str(tmp_path / "logs"), display="none")
    assert log.status == "success", log.error
    samples = log.samples or []
    runs = sorted((tmp_path / "runs").glob("*.sqlite"))
    assert len(samples) == len(runs) == 2  # one that changes and one that does not
    for sample in samples:
        (path,) = [run for run in runs if run.name.startswith(str(sample.id))]
        (cell,) = Result([path]).cells
        assert cell.outcome == "done", cell.note
        assert {episode.belief.highest for episode in cell.episodes if episode.belief} == {0.25}
        assert sample.model_usage["mockllm/model"].output_tokens > 0
        (score,) = (sample.scores or {}).values()
        judged = [each for each in cell.episodes if each.phase == "test" and each.novel == cell.trial.is_changed]
        assert score.value == pytest.approx(sum(each.performance or 0.0 for each in judged) / len(judged))
        assert not any(str(cell.trial.seed) in str(message.content) for message in sample.messages)
