"""stable-baselines3 needs torch, which is not installed here: `support.stable_baselines3` stands in for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.errors import InvalidInput, UnknownName
from openfield.provenance.versions import identify_agent
from openfield.registry import find_agent
from support import stable_baselines3

SPEC = of.Spec(domain="tiny", task="", actions=of.spaces.Discrete(2), observations=of.spaces.Box(-1, 1, (2,)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a saved model, and a package that reads it."""
    for name in ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.save_util"):
        monkeypatch.setitem(sys.modules, name, stable_baselines3)
    monkeypatch.chdir(tmp_path)
    Path("model.zip").write_text("[[1, 0], [0, 1]]")
    Path("vec.pkl").write_text("-1")
    return tmp_path


def answer(text: str, maze: Any, spec: of.Spec = SPEC) -> Any:
    return find_agent(text, maze)(spec, 0)(of.Turn(observation=[0.5, 0.25])).action


def test_a_saved_model_plays_with_its_normalisation(folder: Path, maze: Any) -> None:
    assert answer("sb3:PPO:model.zip", maze) == 0
    assert answer("sb3:PPO:model.zip(normalize=vec.pkl)", maze) == 1


def test_frames_are_stacked_along_the_last_axis_after_zeros(folder: Path, maze: Any) -> None:
    Path("model.zip").write_text("[[1, 0], [1, 0], [0, 1], [0, 1]]")
    assert answer("sb3:PPO:model.zip(stack=2)", maze) == 1


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("sb3:model.zip", InvalidInput, "sb3:PPO:model.zip, not sb3:model.zip"),
        ("sb3:PPA:model.zip", UnknownName, "Unknown algorithm 'PPA'.*PPO"),
        ("sb3:PPO:none.zip", InvalidInput, r"There is no file none.zip"),
        ("sb3:PPO:bad.zip", InvalidInput, "bad.zip cannot be read by stable-baselines3: JSONDecodeError"),
        ("sb3:PPO:model.zip(normalise=vec.pkl)", UnknownName, "normalise"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, maze: Any, text: str, kind: Any, told: str) -> None:
    Path("bad.zip").write_text("no model")
    with pytest.raises(kind, match=told):
        find_agent(text, maze)


def test_a_model_for_other_spaces_is_refused(folder: Path, maze: Any) -> None:
    other = of.Spec(domain="tiny", task="", actions=of.spaces.Discrete(3), observations=of.spaces.Box(-1, 1, (2,)))
    with pytest.raises(InvalidInput, match=r"n=2.*where the action is a whole number from 0 to 2"):
        answer("sb3:PPO:model.zip", maze, other)


def test_the_package_is_named_where_it_is_missing(maze: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    with pytest.raises(InvalidInput, match="need stable-baselines3: pip install stable-baselines3"):
        find_agent("sb3:PPO:model.zip", maze)


def test_its_files_are_part_of_its_identity(folder: Path, maze: Any) -> None:
    before = identify_agent("sb3:PPO:model.zip(normalize=vec.pkl)", maze)
    Path("model.zip").write_text("[[2, 0], [0, 1]]")
    Path("vec.pkl").write_text("-2")
    after = identify_agent("sb3:PPO:model.zip(normalize=vec.pkl)", maze)
    assert before is not None
    assert after is not None
    assert before.version.differences(after.version) == ["model.zip", "vec.pkl"]
