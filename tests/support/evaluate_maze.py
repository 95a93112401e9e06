"""Evaluate a made-up model on a maze with Inspect, in a process of its own: Inspect changes asyncio for good.

python evaluate_maze.py MAZE RUNS LOGS
"""

from __future__ import annotations

import json
import sys
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from openfield.inspect_task import trial


def answer(messages: Any, *_: Any) -> ModelOutput:
    belief = ', "world_changed": 0.25' if "world_changed" in messages[-1].text else ""
    output = ModelOutput.from_content("mockllm/model", f'{{"reasoning": "west", "action": "left"{belief}}}')
    output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)  # else it would fetch a tokenizer
    return output


if __name__ == "__main__":
    maze, runs, logs = sys.argv[1:]
    model = get_model("mockllm/model", custom_outputs=answer)
    settings = {"training": 1, "before": 1, "after": 1, "patience": 6}
    task = trial(maze, count=1, history=2, runs=runs, settings=settings)
    (log,) = evaluate(task, model=model, log_dir=logs, display="none")
    samples = [
        {
            "id": sample.id,
            "tokens_out": sample.model_usage["mockllm/model"].output_tokens,
            "scores": [score.value for score in (sample.scores or {}).values()],
            "said": [str(message.content) for message in sample.messages],
        }
        for sample in log.samples or []
    ]
    sys.stdout.write(json.dumps({"status": log.status, "error": str(log.error), "samples": samples}))
