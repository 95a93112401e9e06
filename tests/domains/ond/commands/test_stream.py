"""`openfield ond stream`: change detectors on streams of scored samples."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command


def test_streams_of_scored_samples_are_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 3, 300)
    logits = rng.normal(0, 1, (300, 3)) + 4 * (np.eye(4)[labels][:, :3])
    np.savez(tmp_path / "a.npz", pred=logits.argmax(axis=1), conf=logits.max(axis=1), label=labels)
    assert run_command(["ond", "stream", str(tmp_path / "a.npz"), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["cusum"]["false_alarm_rate"]["mean"] <= 0.2
    assert run_command(["ond", "stream", str(tmp_path / "a.npz")]) == 0
    assert "false_alarm_rate" in capsys.readouterr().out
    np.savez(tmp_path / "b.npz", conf=logits.max(axis=1), label=labels)
    assert run_command(["ond", "stream", str(tmp_path / "b.npz")]) == 2
    assert "must hold pred, conf and label" in capsys.readouterr().err
