"""Columns and counts that are right but unusual, and those that only look right."""

import pickle
import zipfile

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.files import large
from openfield.files.database import Database, reading
from openfield.objectives import evaluate, evaluate_file, info_gain_dirichlet, load_table, transitions
from openfield.objectives.frames import episode_files
from openfield.objectives.frames.episode_files import read_stretches
from openfield.objectives.study.study import Study, StudyRow
from openfield.report.study import render_study
from support.objectives.parquet import write_parquet

COLUMNS = {"obs": [0, 0, 1, 2], "next_obs": [1, 2, 2, 0], "action": [0, 1, 1, 0], "count": [3, 2, 2, 9]}


@pytest.mark.parametrize("described", [False, True])
def test_unsigned_columns_of_64_bits_are_like_others(tmp_path, described):
    found = []
    for kind in ("UBIGINT", "BIGINT"):
        header = '{"schema":1,"ordered":true}' if described else None
        write_parquet(tmp_path / "t.parquet", COLUMNS, kind=kind, header=header)
        found.append(evaluate_file(tmp_path / "t.parquet", num_obs=10).values)
    assert found[0] == found[1]


def test_unsigned_actions_and_inputs_make_the_same_table():
    inputs, actions = np.array([0, 1, 2, 0, 1]), np.array([0, 1, 1, 0, 0])
    signed = evaluate(transitions(inputs, actions)).values
    assert evaluate(transitions(inputs.astype(np.uint64), actions.astype(np.uint64))).values == signed


def test_counts_whose_sum_is_beyond_float64_are_refused(tmp_path):
    (tmp_path / "t.pkl").write_bytes(pickle.dumps({(1, 0, 1): 1e308, (1, 1, 2): 1e308}, 3))
    with pytest.raises(InvalidInput, match=r"t\.pkl: the sum of all counts is beyond the range of float64\.$"):
        evaluate_file(tmp_path / "t.pkl", num_obs=10)


@pytest.mark.parametrize("size", [float("nan"), 2.5, "5"])
def test_the_number_of_inputs_is_whole(size):
    with pytest.raises(InvalidInput, match="must be a whole number"):
        info_gain_dirichlet({(1, 0, 1): 3}, size)


def test_a_column_whose_name_is_no_text_is_damage(tmp_path):
    path = tmp_path / "t.parquet"
    write_parquet(path, COLUMNS)
    path.write_bytes(path.read_bytes().replace(b"next_obs", b"next_ob\xf8"))
    with pytest.raises(InvalidInput, match=r"t\.parquet: the file is damaged"):
        evaluate_file(path)


@pytest.mark.parametrize("damage", ["encrypted", "long head"])
def test_what_is_wrong_with_an_array_is_said_in_one_line(tmp_path, damage):
    path = tmp_path / "e.npz"
    if damage == "encrypted":
        np.savez(path, observ=np.zeros((2, 8, 8)))
        raw = bytearray(path.read_bytes())
        raw[raw.find(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(raw)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("observ.npy", b"\x93NUMPY\x02\x00" + (60_000).to_bytes(4, "little") + b"(" * 60_000)
    with pytest.raises(InvalidInput, match=r"^[^\n]{1,400}$"):
        list(read_stretches(path, "observ", 10))


def test_a_page_says_why_nothing_could_be_drawn_from_a_table():
    row = StudyRow(
        environment="maze", agent="ppo", reasons={"rarefied": "a.pkl: Drawing transitions needs whole counts."}
    )
    assert "rarefied similarity a.pkl: Drawing" in render_study(Study(rows=[row], correlations=[]), "A study")


def test_actions_of_a_foreign_file_may_be_truth_values(tmp_path):
    write_parquet(tmp_path / "whole.parquet", COLUMNS)
    with Database(tmp_path / "t.parquet", tmp_path / "whole.parquet") as base:
        source = str(tmp_path / "whole.parquet")
        base.run(
            "CREATE TABLE t AS SELECT obs, next_obs, action::BOOLEAN AS action, count FROM read_parquet(?)", source
        )
        base.write_parquet("SELECT * FROM t", tmp_path / "t.parquet")
    assert evaluate_file(tmp_path / "t.parquet").values == evaluate_file(tmp_path / "whole.parquet").values
    inputs, actions = np.array([0, 1, 2, 0, 1]), np.array([False, True, True, False, False])
    assert evaluate(transitions(inputs, actions)).values == evaluate(transitions(inputs, actions.astype(int))).values


@pytest.mark.parametrize("command", ["evaluate", "convert", "similarity", "study"])
def test_foreign_files_of_many_rows_are_read_if_they_are_allowed_to_be(run, tmp_path, monkeypatch, command):
    """A few kilobytes of equal rows may be gigabytes in memory."""
    monkeypatch.setattr(large, "MAX_UNPACKED", 1 << 16)
    folder = tmp_path / "tables"
    folder.mkdir()
    path = folder / "toy_ppo_shared_disc.parquet"
    with Database(path) as base:
        base.write_parquet("SELECT 1 AS obs, 2 AS next_obs, 0 AS action, 1 AS count FROM range(50000)", path)
    words = {
        "evaluate": [path],
        "convert": ["convert", path, tmp_path / "t.parquet"],
        "similarity": ["similarity", path, path],
        "study": ["study", folder, "--workers", 0, "-o", tmp_path / "out"],
    }[command]
    status, _, said = run(*words)
    assert status == 2
    assert "bytes to 1,600,000; refused. If you trust the file, --allow-large reads it." in said
    assert run(*words, "--allow-large")[0] == (2 if command == "similarity" else 0)  # it has no code book


def test_a_foreign_book_of_long_codes_is_none(tmp_path):
    write_parquet(tmp_path / "t.parquet", COLUMNS)
    beside = tmp_path / "t.codes.parquet"
    with Database(beside) as base:
        base.write_parquet("SELECT repeat('\\x00'::BLOB, 800) AS code, 1 AS \"index\" FROM range(3)", beside)
    with pytest.raises(InvalidInput, match="no code book"):
        load_table(tmp_path / "t.parquet")


def test_large_frames_that_pack_well_need_only_to_be_allowed(run, tmp_path, monkeypatch):
    monkeypatch.setattr(large, "MAX_UNPACKED", 1 << 16)
    np.savez_compressed(tmp_path / "e.npz", observ=np.zeros((4_000, 8, 8)), action=np.arange(4_000) % 2 > 0)
    words = ("frames", tmp_path / "e.npz", "-o", tmp_path / "t.parquet")
    status, _, said = run(*words)
    assert (status, said.endswith("refused. If you trust the file, --allow-large reads it.")) == (2, True)
    assert run(*words, "--allow-large")[::2] == (0, "")
    assert evaluate_file(tmp_path / "t.parquet").distinct["actions"] == 2
    assert run(*words)[0] == 2


def test_too_little_memory_is_one_line_with_the_way_out(tmp_path, monkeypatch):
    def lack(*_):
        raise MemoryError

    np.savez(tmp_path / "e.npz", observ=np.zeros((4, 8, 8)), action=np.arange(4))
    monkeypatch.setattr(episode_files, "read_npy_head", lack)
    with pytest.raises(InvalidInput, match=r"not enough memory to read array 'observ'\. Allow it more \(ulimit -v"):
        list(read_stretches(tmp_path / "e.npz", "observ", 2))
    with (
        pytest.raises(InvalidInput, match=r"t\.parquet: not enough memory to read it\. Allow it more"),
        reading(tmp_path / "t.parquet", "trouble"),
    ):
        raise MemoryError
