"""`openfield export --format seed`: recorded interactions in the JSON formats of the first published task.

Each line is one interaction: feature vector, novelty indicator, the label where one was given, the agent's action, the
performance after it, and the agent's novelty prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from openfield.core import Belief, Reply, Turn
from openfield.domains.doom.novelty import MAX_LEVEL
from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.journal.reader import CellRecord, Run
from openfield.record import Step

INDICATORS = {True: "true", False: "false", None: "null"}
"""Whether the agent knew of a change, in the words of the format; one that was shown a strength knew."""


def write_seed(path: Path, target: Path, cell: str | None = None) -> str:
    """Write the interactions of a run file, or of the one cell whose id begins with `cell`, as JSON lines.

    Raises:
        InvalidInput: The agents saw arrays, which the format does not have.
    """
    count = 0
    with Run(path) as run, replacing(target) as draft, draft.open("wb") as file:
        for record in run.cells() if cell is None else [run.cell(cell)]:
            about = {"agent": record.agent, "cell": record.id}
            for interaction in _interactions(record, run.steps(record.id, record.attempt)):
                file.write(msgspec.json.encode(about | interaction) + b"\n")
                count += 1
    return f"{count:,} interactions in {target}"


def _interactions(record: CellRecord, steps: Iterable[Step]) -> Iterator[dict[str, Any]]:
    """Yield the interactions of a cell; the last one of an episode has the final prediction."""
    shown: Turn | None = None
    belief: Belief | None = None
    last: dict[str, Any] = {}
    for step in steps:
        if shown is not None and step.reply is not None:
            belief = step.reply.belief or belief
            if shown.last is not None:
                last["novelty_prediction"], belief = predicted_level(belief), None
            elif step.reply.action is not None:
                if last:
                    yield last
                last = _interaction(record, shown, step.reply, step.turn)
                last["novelty_prediction"] = predicted_level(belief)
        shown = step.turn
    if last:
        yield last


def _interaction(record: CellRecord, shown: Turn, reply: Reply, result: Turn | None) -> dict[str, Any]:
    if not isinstance(shown.observation, dict):
        raise InvalidInput(f"The agents of cell {record.id} saw arrays; the format 'seed' needs feature vectors.")
    label, features = (shown.feedback or {}).get("label"), dict(shown.observation)
    if "enemy" in features:
        del features["enemies"]  # an addition of ours to the duel's vector
    features.pop("image", None)  # the record has only its digest, and the format none
    return {
        "feature_vector": features,
        "novelty_indicator": INDICATORS[None if shown.red_light is None else bool(shown.red_light)],
        **({"feature_label": label} if label else {}),
        "action": reply.action["action"] if isinstance(reply.action, dict) else reply.action,
        "performance": result.feedback["performance"] if result is not None else None,
    }


def predicted_level(belief: Belief | None) -> int:
    """Return the novelty level a belief predicts, from 0 to 10; 0 means no novelty, or no belief."""
    if belief is None:
        return 0
    level = int(belief.highest >= 0.5) if belief.level is None else belief.level
    return min(max(level, 0), MAX_LEVEL)
