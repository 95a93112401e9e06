"""Environments of other packages: they replay, their suites are true, and what is missing is said."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.gym import makers
from openfield.domains.gym.makers import find_maker
from openfield.registry import find_domain
from openfield.testing import check_world

REAL = (
    "CartPole-v1",
    "FrozenLake-v1",
    "Taxi-v4",
    "Blackjack-v1",
    "MiniGrid-DoorKey-5x5-v0",
    "ALE/Breakout-v5",
    "CrafterReward-v1",
)
SMALL: dict[str, dict[str, Any]] = {"CrafterReward-v1": {"area": (24, 24)}}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in REAL if name not in ("CartPole-v1", "Taxi-v4")])
def test_real_environments_keep_the_rules_of_worlds(name: str) -> None:
    """The light form; `soak/soak_suites.py` checks every novelty of every suite."""
    domain: Any = find_domain(f"gym:{name}")
    chosen = [domain.novelties[0].id, "actions-delayed:hard"][: 1 if name.startswith("ALE/") else 2]
    trials = [domain.trials(1, novelty=each, unchanged=0, **domain.check_settings)[0] for each in chosen]
    report = check_world(domain, trials, patience=120.0)
    assert report.passed, report


@pytest.mark.parametrize("name", [*REAL, "Acrobot-v1", "MountainCarContinuous-v0", "Pendulum-v1", "CliffWalking-v1"])
def test_an_environment_that_is_used_again_is_like_a_fresh_one(name: str) -> None:
    make, shown = find_maker(name), list[list[bytes]]()
    used = make(**SMALL.get(name, {}))
    for _ in range(2):
        fresh = make(**SMALL.get(name, {}))
        shown = [play(env, 7) for env in (used, fresh)]
        assert shown[0] == shown[1]
        play(used, 8)
        fresh.close()
    used.close()


def play(env: Any, seed: int) -> list[bytes]:
    """Return what some random actions show."""
    env.action_space.seed(seed)
    seen, _ = env.reset(seed=seed)
    shown = [repr(seen).encode() if not isinstance(seen, np.ndarray) else seen.tobytes()]
    for _ in range(25):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        shown.append(repr((reward, seen)).encode() if not isinstance(seen, np.ndarray) else seen.tobytes())
        if terminated or truncated:
            break
    return shown


@pytest.mark.parametrize(
    ("source", "settings", "scale"),
    [
        ("ALE/Breakout-v5", {}, [1.7, 30.5]),
        ("ALE/Breakout-v5", {"make.obs_type": "ram"}, [1.7, 30.5]),
        ("ALE/Breakout-v5", {"make.mode": 4}, None),
        ("ALE/Breakout-v5", {"return": "0,10"}, [0.0, 10.0]),
        ("MiniGrid-Empty-5x5-v0", {}, [0.0, 1.0]),
        ("CrafterReward-v1", {}, [2.1, 14.3]),
        ("CrafterReward-v1", {"make.area": [24, 24]}, None),
        ("Pendulum-v1", {}, None),
        ("MountainCar-v0", {}, [-200.0, -110.0]),
    ],
)
def test_scales_come_in_order(source: str, settings: dict[str, Any], scale: list[float] | None) -> None:
    domain: Any = find_domain(f"gym:{source}")
    (trial,) = domain.trials(1, novelty="none", before=1, after=0, **{"allow_drift": True, **settings})
    assert trial.settings.get("return") == scale


def test_published_scores_say_nothing_where_rewards_are_others() -> None:
    domain: Any = find_domain("gym:MiniGrid-Empty-5x5-v0")
    (trial,) = domain.trials(1, novelty="none", before=1, after=0, wrappers=f"{Path(__file__)}:Doubled")
    assert trial.settings.get("return") is None


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    """Pays twice as much."""

    def reward(self, reward: Any) -> float:
        return 2.0 * float(reward)


def test_rewards_of_a_lake_are_negated_where_they_are_paid() -> None:
    domain = find_domain("gym:FrozenLake-v1")
    ways: dict[str, Any] = {"make.is_slippery": False, "before": 0, "after": 1}
    paid = {}
    for novelty in ("rewards-negated", "none"):
        world = domain.world(
            domain.trials(1, novelty=novelty, **ways, **({} if novelty == "none" else {"unchanged": 0}))[0]
        )
        turn = world.reset()
        for action in (1, 1, 2, 1, 2, 2):
            turn = world.step(of.Reply(action))
        paid[novelty] = turn.reward
        assert (turn.last, world.truth.performance) == ("terminated", 1.0)
        world.close()
    assert paid == {"rewards-negated": -1.0, "none": 1.0}


def test_crafter_shows_its_changes() -> None:
    make = find_maker("CrafterReward-v1")
    usual, night, weak = (make(area=(24, 24)) for _ in range(3))
    night.unwrapped.daylight, weak.unwrapped.health = 0.0, 3
    dark, light, poor = (env.reset(seed=1)[0] for env in (night, usual, weak))
    assert dark.mean() < light.mean()
    assert not np.array_equal(poor, light)
    assert usual.render().shape == usual.observation_space.shape
    crowd = make(area=(24, 24))
    crowd.unwrapped.zombies = 5.0
    assert play(crowd, 3)[:1] == play(usual, 3)[:1]


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("MiniGrid-Empty-5x5-v0", "minigrid", "minigrid"),
        ("ALE/Pong-v5", "ale_py", "atari"),
        ("CrafterReward-v1", "crafter.engine", "crafter"),
    ],
)
def test_a_missing_package_gives_the_line_that_installs_it(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(gymnasium.registry, name, raising=False)
    for ours in ("atari", "crafter"):
        monkeypatch.delitem(sys.modules, f"openfield.domains.gym.suites.{ours}", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(of.errors.MissingExtra, match=rf"gym:{name} needs an optional part.*\[{extra}\]") as caught:
        find_maker(name)
    assert "\n" not in str(caught.value)


PLUGIN = """
import gymnasium

def register():
    gymnasium.register("PluginPole-v0", "gymnasium.envs.classic_control:CartPoleEnv")
"""


def test_environments_of_plugins_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_of_a_test.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("__root__", "plugin_of_a_test:register", makers.PLUGINS)
    monkeypatch.setattr(makers, "installed_points", lambda group: EntryPoints([point]))
    assert find_maker("PluginPole-v0")().spec.id == "PluginPole-v0"  # type: ignore[union-attr]
    del gymnasium.registry["PluginPole-v0"]


def test_a_trial_is_an_environment_for_a_loop_of_ones_own(tmp_path: Path) -> None:
    (trial,) = of.trials("gym:CartPole-v1", 1, unchanged=0, novelty="heavy-cart", before=1, after=1)
    env = of.env(trial, journal=tmp_path / "run.sqlite", agent_name="mine")
    for _ in range(2):
        seen, _ = env.reset()
        ended = False
        while not ended:
            assert env.observation_space.contains(seen)
            env.believe(0.7)
            seen, _, terminated, truncated, info = env.step(env.action_space.sample())
            ended = terminated or truncated
            assert info.keys() <= {"phase", "feedback", "red_light"}
    env.close()
    with of.journal.Run(tmp_path / "run.sqlite") as run:
        (cell,) = run.cells()
        assert (cell.agent, cell.outcome, len(cell.episodes)) == ("mine", "done", 2)
        assert cell.trial == trial
    with pytest.raises(of.errors.InvalidInput, match="is one trial"):
        of.env([trial])  # type: ignore[arg-type]


DRIFT = """
import random
import gymnasium

class Drift(gymnasium.Env):
    action_space = observation_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return random.randrange(4), {}

    def step(self, action):
        return random.randrange(4), 1.0, False, False, {}
"""


@pytest.mark.slow
def test_an_environment_that_does_not_replay_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("drift.py").write_text(DRIFT)
    line = ["run", "gym:drift.py:Drift", "--agent", "random", "--trials", "1", "--set", "max_steps=5"]
    assert run_command(line) == 2
    assert "--allow-drift" in capsys.readouterr().err
    assert run_command([*line, "--allow-drift"]) == 0
    capsys.readouterr()
    assert run_command(["check", "gym:drift.py:Drift"]) == 2
    said = capsys.readouterr()
    assert "FAILED" in said.out
    assert "global_random" in said.err
    assert "It must draw all chance from np_random" in said.err


def test_seeds_that_change_nothing_are_declared() -> None:
    assert find_domain("gym:MiniGrid-Empty-5x5-v0").without_chance  # type: ignore[attr-defined]
    assert not find_domain("gym:CartPole-v1").without_chance  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_kit_plays_on_until_a_game_begins_to_move() -> None:
    usual, still = (find_domain(f"gym:ALE/{name}-v5") for name in ("Breakout", "Seaquest"))
    assert usual.check_settings["max_steps"] == 30  # type: ignore[attr-defined]
    assert still.check_settings["max_steps"] > 40  # type: ignore[attr-defined]
