"""Columns and counts that are right but unusual, and those that only look right."""

import pickle
import zipfile

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import evaluate, evaluate_file, info_gain_dirichlet, transitions
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
