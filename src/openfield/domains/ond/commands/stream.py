"""`openfield ond stream`: see how soon change detectors notice unknown samples, on streams made of scored samples."""

from __future__ import annotations

from pathlib import Path

from openfield.console import print_json, print_table
from openfield.options import Whole


def stream(file: Path, /, *, seed: Whole = 0, json: bool = False) -> None:
    """Play streams of scored samples with each change detector, and print delays and false alarms.

    Args:
        file: An .npz file with pred, conf and label of samples; label -1 is unknown.
        seed: The root of the draws [0].
        json: Print all numbers as JSON.

    Example:
        openfield ond stream scores.npz --json
    """
    from openfield.domains.ond.scoring.open_set import list_scores, read_named, score_stream

    numbers = score_stream(read_named(file), seed=seed)
    print_json(numbers) if json else print_table(("detector", "number", "value"), list_scores(numbers))
