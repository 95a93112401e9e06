"""The learned baselines: their networks are small and play as any agent does, and their campaign can be planned."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.cli import run_command
from support.places import ROOT

BASELINES = ROOT / "examples" / "baselines"
NETWORKS = BASELINES / "networks"
MAX_BYTES = 2_000_000
SHORT = {"training": 0, "before": 1, "after": 1}
PLAYS: list[Any] = [
    pytest.param("gym:CartPole-v1", "onnx:cartpole.onnx", SHORT, 0.9, "gymnasium", id="cartpole"),
    pytest.param("gym:LunarLander-v3", "onnx:lunarlander.onnx", SHORT, 0.2, "Box2D", id="lunarlander"),
    pytest.param("gym:MiniGrid-DoorKey-5x5-v0", "onnx:doorkey.onnx", SHORT, 0.5, "minigrid", id="doorkey"),
    pytest.param(
        "doom",
        "onnx:doom.onnx",
        {"training": 0, "episodes": 2, "observation": "array"},
        0.5,
        "vizdoom",
        id="doom",
        marks=pytest.mark.engine,
    ),
    pytest.param(
        "doom",
        "learned.py:make(networks={0}, watch=nothing)",
        {"training": 0, "episodes": 2, "observation": "pixels", "image_size": "160x120", "frame_skip": 4},
        0.9,
        "vizdoom",
        id="doom from pixels",
        marks=pytest.mark.engine,
    ),
    pytest.param(
        "gym:ALE/Breakout-v5",
        "learned.py:make(networks={0}, watch=nothing)",
        {**SHORT, "make": {"obs_type": "grayscale"}, "max_steps": 120},
        0.02,
        "ale_py",
        id="breakout",
    ),
    pytest.param("birds", "shooter.py:Shooter(network={0}/shooter.onnx)", SHORT, 0.0, "Box2D", id="birds"),
    pytest.param("ond", "reader.py:Reader(network={0}/reader.onnx)", {"before": 1, "after": 1}, 0.5, "numpy", id="ond"),
]


@pytest.mark.parametrize(("domain", "agent", "settings", "least", "needs"), PLAYS)
def test_a_baseline_plays_through_the_ordinary_rollout(
    path: Path, domain: str, agent: str, settings: dict[str, Any], least: float, needs: str
) -> None:
    for module in ("onnxruntime", needs):
        pytest.importorskip(module)
    kind, colon, file = agent.rpartition("onnx:")
    source = f"{kind}{colon}{(NETWORKS if colon else BASELINES) / file}".format(NETWORKS)
    (cell,) = of.run({"learned": source}, of.trials(domain, 1, novelty="none", **settings), path, workers=0).cells
    assert cell.outcome == "done", cell.note
    played = [episode.performance or 0.0 for episode in cell.episodes if episode.phase == "test"]
    assert sum(played) / len(played) >= least


def test_networks_are_small_and_have_a_script_that_makes_them() -> None:
    networks = sorted(NETWORKS.glob("*.onnx"))
    assert len(networks) >= 6
    assert {each.name: each.stat().st_size for each in networks if each.stat().st_size > MAX_BYTES} == {}
    scripts = [each.read_text(encoding="utf-8") for each in BASELINES.glob("train_*.py")]
    assert [each.name for each in networks if not any(each.stem in script for script in scripts)] == []
    assert all("--seed" in script and ast.get_docstring(ast.parse(script)) for script in scripts)


@pytest.mark.parametrize(("campaign", "least"), [("baselines.toml", 40), ("baselines-pixels.toml", 10)])
def test_a_campaign_plans_its_agents_in_every_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], campaign: str, least: int
) -> None:
    for extra in ("river", "gymnasium", "minigrid", "Box2D", "vizdoom", "onnxruntime", "ale_py"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")  # names of domains whole
    Path("examples").symlink_to(ROOT / "examples")
    given = tomllib.loads(Path("examples", campaign).read_text(encoding="utf-8"))
    changes = {(each["domain"], novelty) for each in given["domains"] for novelty in each["novelty"]}
    assert len(changes) >= least
    small = ["--trials", "1", "--set", "unchanged=0"]
    assert run_command(["run", f"examples/{campaign}", "--dry-run", *small]) == 0, capsys.readouterr().err
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    planned = Counter((row[2], row[1]) for row in rows if len(row) >= 5 and re.fullmatch("[0-9a-f]{12}", row[0]))
    for each in given["domains"]:
        for agent in {**given["agents"], **each.get("agents", {})}:
            name = each["domain"].replace(":", "-").replace("/", "-")
            assert planned[name, agent] >= len(each["novelty"]), agent
    assert not Path(given["output"]).exists()
