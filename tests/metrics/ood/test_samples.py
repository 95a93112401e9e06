"""Sets are read from files in parts, and files that cannot be used are refused in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.files import large
from openfield.metrics.ood.samples import SampleSet, read_last_layer, read_samples

LOGITS = np.arange(12.0).reshape(4, 3)


def test_sets_are_read_from_archives_arrays_and_folders(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=LOGITS, feature=LOGITS * 2, label=[0, 1, 2, -5])
    np.savez_compressed(tmp_path / "b.npz", logits=LOGITS, feature=LOGITS * 2, label=[0.0, 1, 2, -5])
    np.save(tmp_path / "c.npy", np.asfortranarray(LOGITS))
    (tmp_path / "d").mkdir()
    for name, array in {"logits": LOGITS, "features": LOGITS * 2, "labels": np.array([0, 1, 2, -1])}.items():
        np.save(tmp_path / "d" / f"{name}.npy", array)
    for place in ("a.npz", "b.npz", "d"):
        found = read_samples(tmp_path / place, "x")
        np.testing.assert_array_equal(found.logits, LOGITS)
        np.testing.assert_array_equal(found.features, LOGITS * 2)
        assert found.labels is not None
        assert found.labels.tolist() == [0, 1, 2, -1]
        assert found.known.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(read_samples(tmp_path / "c.npy").logits, LOGITS)
    assert isinstance(read_samples(tmp_path / "a.npz").logits, np.memmap)
    parts = [(at.start, part.tolist()) for at, (part,) in read_samples(tmp_path / "c.npy").parts("logits", rows=3)]
    assert parts == [(0, LOGITS[:3].tolist()), (3, LOGITS[3:].tolist())]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("a.npz", {"x": LOGITS}, "holds x; wanted are arrays called logits, features, labels"),
        ("a.npz", {"logits": LOGITS, "labels": [1]}, "4 logits, 1 labels"),
        ("a.npz", {"logits": LOGITS[0]}, "a table of samples x columns, not of shape"),
        ("a.npz", {"labels": [0.5, 1]}, "row 0 holds 0.5"),
        ("a.npz", {"logits": LOGITS.astype("U3")}, "logits holds no numbers"),
        ("a.npz", {"labels": [1e300]}, "labels must be at most"),
        ("a.npz", {"labels": [[1]]}, "flat array of whole numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, name: str, given: dict, message: str) -> None:
    np.savez(tmp_path / name, **given)
    with pytest.raises(InvalidInput, match=message):
        read_samples(tmp_path / name)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".mat", ".h5", ".safetensors"])
def test_files_of_other_programs_are_refused_with_the_line_that_converts_them(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    path.write_bytes(b"\x80\x04")
    with pytest.raises(InvalidInput, match=r"numpy\.savez\('f\.npz'") as caught:
        read_samples(path)
    assert "\n" not in str(caught.value)


def test_hostile_files_are_refused_before_they_cost_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "MAX_UNPACKED", 1 << 16)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, logits=np.zeros((1 << 16, 1)))
    with pytest.raises(InvalidInput, match="would unpack"):
        read_samples(path)
    short = tmp_path / "short.npy"
    np.save(short, LOGITS)
    short.write_bytes(short.read_bytes()[:-8])
    with pytest.raises(InvalidInput, match="does not fit"):
        read_samples(short)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name, content in {"objects.npy": None, "text.npz": b"hello", "gone.npy": b""}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match="cannot be read as arrays"):
            read_samples(tmp_path / name)


def test_the_last_layer_is_read_in_either_orientation(tmp_path: Path) -> None:
    weight = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "a.npz", weight=weight, bias=[1, 2])
    np.savez(tmp_path / "b.npz", w=weight.T, b=[1, 2])
    for name in ("a.npz", "b.npz"):
        np.testing.assert_array_equal(read_last_layer(tmp_path / name, 3)(np.eye(3)), weight.T + np.array([1, 2]))
    np.savez(tmp_path / "c.npz", weight=weight)
    with pytest.raises(InvalidInput, match="wanted are weight"):
        read_last_layer(tmp_path / "c.npz", 3)
    with pytest.raises(InvalidInput, match="do not fit 5 features"):
        read_last_layer(tmp_path / "a.npz", 5)


def test_a_value_that_is_not_finite_is_named(tmp_path: Path) -> None:
    logits = LOGITS.copy()
    logits[3, 1] = np.inf
    with pytest.raises(InvalidInput, match="x: row 3 of logits"):
        list(SampleSet("x", logits).parts("logits", rows=2))
