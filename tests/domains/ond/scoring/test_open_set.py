"""Arrays of an open-set experiment are scored alike in every type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openfield.domains.ond.scoring.open_set import score_logits


@pytest.mark.parametrize("kind", ["int8", "uint8", "float16"])
def test_logits_are_scored_alike_in_every_type(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 3, 300)
    logits = np.clip(rng.normal(60, 20, (300, 3)) + 40 * np.eye(4)[labels][:, :3], 0, 120).round()
    wanted, found = score_logits(logits, labels, logits), score_logits(logits.astype(kind), labels, logits.astype(kind))
    assert {name: part["auroc"] for name, part in found.items()} == {n: part["auroc"] for n, part in wanted.items()}
