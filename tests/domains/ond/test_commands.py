"""`openfield ond merge` joins files of features, `ond stream` plays change detectors on streams of scored samples."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.domains.ond.client.saved_features import read_features, write_features


def test_files_of_features_are_joined(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_features(Path("a.npz"), ({"x": np.zeros(2), "y": np.zeros(2)}, {"x": np.zeros(1), "y": np.zeros(1)}))
    write_features(Path("b.npz"), ({"y": np.ones(2)}, {"y": np.ones(1)}))
    assert run_command(["ond", "merge", "a.npz", "b.npz", "-o", "c.npz"]) == 0
    assert capsys.readouterr().out == "2 samples in c.npz\n"
    features, logits = read_features(Path("c.npz"))
    assert (features["x"].tolist(), features["y"].tolist(), logits["y"].tolist()) == ([0, 0], [1, 1], [1])
    Path("d.npz").write_bytes(b"junk")
    Path("e.pkl").write_bytes(b"junk")
    for wrong in (["a.npz", "missing.npz"], ["d.npz"], ["e.pkl"], ["e.pkl", "--pickles"]):
        assert run_command(["ond", "merge", *wrong, "-o", "f.npz"]) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert run_command(["ond", "merge", "a.npz", "-o", "a.npz/under"]) == 2
    assert not Path("f.npz").exists()


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
