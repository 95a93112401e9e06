"""Wrappers of NS-Gym as novelties, unchanged.

NS-Gym brings torch and another pygame, so it is no part of the environment of these tests: what needs it is skipped
where it is missing, and a stand-in with the form of its observations and rewards shows that they are understood.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.core import Reply

gymnasium = pytest.importorskip("gymnasium")

STAND_IN = """
from types import SimpleNamespace

import gymnasium
import numpy as np


class NSWrapper(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        plain = env.observation_space
        told = gymnasium.spaces.Dict({"gravity": gymnasium.spaces.Discrete(2)})
        self.observation_space = gymnasium.spaces.Dict({"state": plain, "env_change": told})

    def reset(self, **options):
        state, info = self.env.reset(**options)
        self.unwrapped.gravity = 9.8
        return {"state": state, "env_change": {"gravity": 0}}, info

    def step(self, action):
        self.unwrapped.gravity += 0.5
        state, reward, *rest = self.env.step(action)
        reward = SimpleNamespace(reward=reward, env_change={"gravity": 1})
        return {"state": state, "env_change": {"gravity": 1}}, reward, *rest
"""
DRIFT = """
from ns_gym import NSWrapper as Base


class Drift(Base):
    pass
"""
EVERY = "ContinuousScheduler()"
SCHEDULERS = {
    "BurstScheduler": "2, 3",
    "ContinuousScheduler": "start=2",
    "CustomScheduler": "lambda t: t % 4 == 1",
    "DecayingProbabilityScheduler": "0.9, 0.05, seed=1",
    "DiscreteScheduler": "{2, 3, 7}",
    "MemorylessScheduler": "0.4, seed=1",
    "PeriodicScheduler": "3",
    "RandomScheduler": "0.5, seed=1",
    "WindowScheduler": "[(1, 3), (6, 9)]",
}
"""All of NS-Gym, with arguments. Those that draw have a seed: `reset` gives none to them, as it does to updates."""
UPDATES = {
    "BoundedRandomWalk": "0, 0.2, 9, 11",
    "CyclicUpdate": "[9, 10, 11]",
    "DecrementUpdate": "0.1",
    "DeterministicTrend": "0.01",
    "ExponentialDecay": "0.01",
    "GeometricProgression": "0.999",
    "IncrementUpdate": "0.1",
    "LinearInterpolation": "9.8, 15, 20",
    "NoUpdate": "",
    "OrnsteinUhlenbeck": "0.2, 12, 0.1",
    "OscillatingUpdate": "0.2",
    "PolynomialTrend": "[0.01, 0.0001]",
    "RandomWalk": "0, 0.1",
    "RandomWalkWithDrift": "0.01, 0, 0.1",
    "RandomWalkWithDriftAndTrend": "0.01, 0, 0.1, 0.001",
    "SigmoidTransition": "9.8, 15, 0.5, 6",
    "StepWiseUpdate": "[9, 11, 12]",
}
DISTRIBUTIONS = {
    "DistributionCyclicUpdate": "[[1, 0, 0], [0.4, 0.3, 0.3]]",
    "DistributionDecrementUpdate": "0.05",
    "DistributionIncrementUpdate": "0.01",
    "DistributionLinearInterpolation": "[1, 0, 0], [0.4, 0.3, 0.3], 10",
    "DistributionNoUpdate": "",
    "DistributionStepWiseUpdate": "[[0.4, 0.3, 0.3], [1, 0, 0]]",
    "RandomCategorical": "",
    "TargetReversion": "[0.4, 0.3, 0.3], 0.1",
    "UniformDrift": "0.1",
}
OWN_FAULTS = {"BudgetBoundedIncrement", "LCBoundedDistrubutionUpdate"}
"""NS-Gym 1.0.12 cannot make the first one, and gives no seed to what the second one draws."""
CONTROL = "NSClassicControlWrapper"
DRAW = "RandomWalk({}, 0, {})"
CHANGES: dict[str, tuple[str, str, dict[str, str]]] = {
    **{name: ("CartPole-v1", CONTROL, {"gravity": f"{name}({EVERY}, {given})"}) for name, given in UPDATES.items()},
    **{
        name: ("FrozenLake-v1", "NSFrozenLakeWrapper", {"P": f"{name}({EVERY}, {given})"})
        for name, given in DISTRIBUTIONS.items()
    },
    **{
        name: ("Pendulum-v1", CONTROL, {"m": f"IncrementUpdate({name}({given}), 0.01)"})
        for name, given in SCHEDULERS.items()
    },
    "Acrobot": ("Acrobot-v1", CONTROL, {"LINK_MASS_1": DRAW.format(EVERY, 0.01), "LINK_MOI": f"NoUpdate({EVERY})"}),
    "MountainCar": ("MountainCar-v0", CONTROL, {"force": DRAW.format("PeriodicScheduler(2)", 0.00001)}),
    "MountainCarContinuous": ("MountainCarContinuous-v0", CONTROL, {"power": DRAW.format(EVERY, 0.00001)}),
    "CliffWalking": ("CliffWalking-v1", "NSCliffWalkingWrapper", {"P": f"UniformDrift({EVERY}, 0.1)"}),
    "Hopper": ("Hopper-v5", "MujocoWrapper", {"torso_mass": DRAW.format(EVERY, 0.01)}),
}
"""Changes by name: the environment, the wrapper, and what its parameters follow."""
WRAPPED = """
class {name}({wrapper}):
    def __init__(self, env):
        super().__init__(env, {{{changes}}}, change_notification=True, delta_change_notification=True, {options})
"""


def play(source: str, novelty: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return for each episode whether it is novel, its seed, its actions and return, and what there was to see."""
    domain, episodes = of.registry.find_domain(source), list[dict[str, Any]]()
    settings = {"unchanged": 0, "before": 1, "after": 2, "onset": 1, "max_steps": 40, "return": (0.0, 1.0)}
    (trial,) = domain.trials(1, novelty=novelty, **settings)
    world: Any = domain.world(trial)
    turn, rng, actions = world.reset(), random.Random(3), domain.spec(trial).actions
    while True:
        env = next(value for value in vars(world).values() if isinstance(value, gymnasium.Env))
        if turn.first:
            seed = env.unwrapped.np_random_seed
            episodes.append({"novel": world.truth.novel, "seed": seed, "actions": [], "seen": []})
        assert turn.red_light is None
        episodes[-1]["seen"].append(describe(env, names, turn.observation, turn.reward))
        if turn.last:
            episodes[-1]["return"] = world.truth.detail["return"]
            if world.over:
                world.close()
                return episodes
        action = None if turn.last else actions.sample(rng)
        if action is not None:
            episodes[-1]["actions"].append(action)
        turn = world.step(Reply(action))


def play_alone(make: Any, source: str, episode: dict[str, Any], names: tuple[str, ...]) -> list[list[float]]:
    """Return the same of one episode of the wrapper alone, in an environment of Gymnasium."""
    env = make(gymnasium.make(source))
    seen = [describe(env, names, env.reset(seed=episode["seed"])[0]["state"], 0.0)]
    for action in episode["actions"]:
        discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
        observation, reward, *_ = env.step(action if discrete else np.asarray(action, env.action_space.dtype))
        seen.append(describe(env, names, observation["state"], reward))
    return seen


def describe(env: Any, names: tuple[str, ...], observation: Any, reward: float) -> list[float]:
    """Return parameters, observation and reward as numbers."""
    inner = env.unwrapped
    found = [inner.model.body_mass if hasattr(inner, "model") else getattr(inner, name) for name in names]
    found = [list_chances(value) if isinstance(value, dict) else value for value in found]
    return [float(number) for value in (*found, observation, reward) for number in np.ravel(value)]


def list_chances(transitions: dict[int, Any]) -> list[float]:
    return [chance for row in transitions.values() for ways in row.values() for chance, *_ in ways]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    package = tmp_path / "ns_gym"
    package.mkdir()
    (package / "__init__.py").write_text(STAND_IN)
    (tmp_path / "drift.py").write_text(DRIFT)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "ns_gym"]:
        monkeypatch.delitem(sys.modules, name)
    yield str(tmp_path / "drift.py")
    sys.modules.pop("ns_gym", None)


def test_agents_see_and_are_paid_the_state_and_reward_and_not_what_changed(stand_in: str) -> None:
    usual, *changed = play("gym:CartPole-v1", f"{stand_in}:Drift", ("gravity",))
    assert [usual["novel"], *(each["novel"] for each in changed)] == [False, True, True]
    assert {row[0] for row in usual["seen"]} == {9.8}
    for each in changed:
        assert {len(row) for row in each["seen"]} == {1 + 4 + 1}
        assert [row[0] for row in each["seen"]] == pytest.approx(
            [9.8 + 0.5 * step for step in range(len(each["seen"]))]
        )
        assert sum(row[-1] for row in each["seen"]) == each["return"] == len(each["actions"])


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a wrapper of NS-Gym into a file and returns that file's module."""
    pytest.importorskip("ns_gym.wrappers", reason="NS-Gym is not installed")
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(wrapper: str, changes: dict[str, str], options: str = "") -> Any:
        module = f"drift_{len(list(tmp_path.glob('*.py')))}_{tmp_path.name}"
        heads = [f"from ns_gym.{each} import *" for each in ("schedulers", "update_functions", "wrappers")]
        text = ", ".join(f"{name!r}: {change}" for name, change in changes.items())
        wrapped = WRAPPED.format(name="Drift", wrapper=wrapper, changes=text, options=options)
        (tmp_path / f"{module}.py").write_text("\n".join([*heads, wrapped]))
        return import_module(module)

    return write


@pytest.mark.filterwarnings("ignore:Novelty .* changed nothing")  # as `NoUpdate` should
@pytest.mark.parametrize("name", CHANGES)
def test_parameters_follow_the_same_traces_as_in_ns_gym_alone(real: Any, name: str) -> None:
    source, wrapper, changes = CHANGES[name]
    if wrapper == "MujocoWrapper":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    module, names = real(wrapper, changes), tuple(changes)
    _, *changed = play(f"gym:{source}", f"{module.__file__}:Drift", names)
    for each in changed:
        alone = play_alone(module.Drift, source, each, names)
        assert np.abs(np.array(each["seen"]) - np.array(alone)).max() <= 1e-12
        assert sum(row[-1] for row in alone) == pytest.approx(each["return"])


def test_the_table_has_all_that_is_installed() -> None:
    updates = pytest.importorskip("ns_gym.update_functions", reason="NS-Gym is not installed").__all__
    schedulers = {name for name in vars(import_module("ns_gym.schedulers")) if name.endswith("Scheduler")}
    assert set(updates) <= UPDATES.keys() | DISTRIBUTIONS.keys() | OWN_FAULTS
    assert schedulers <= SCHEDULERS.keys() | {"Scheduler"}


@pytest.mark.parametrize(
    ("changes", "options", "problem"),
    [
        ({"gravty": f"NoUpdate({EVERY})"}, "", r"cannot wrap CartPole-v1: AssertionError: .*gravty"),
        ({"gravity": f"BudgetBoundedIncrement({EVERY}, 0.1, 0.3)"}, "", "cannot wrap CartPole-v1: TypeError"),
        ({"gravity": "NoUpdate(CustomScheduler(lambda t: 1 // 0))"}, "", "failed in random play: ZeroDivisionError"),
        ({"gravity": "IncrementUpdate(RandomScheduler(0.5), 0.5)"}, "", r"does not replay: at step \d+ .*seeds of its"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(real: Any, changes: Any, options: str, problem: str) -> None:
    novelty = f"{real(CONTROL, changes, options).__file__}:Drift"
    with pytest.raises(of.errors.InvalidInput, match=problem) as caught:
        of.trials("gym:CartPole-v1", 1, novelty=novelty)
    assert "\n" not in str(caught.value)


class Watches:
    """Pushes at random, keeps what it sees, and stops once."""

    left = 0
    shown: ClassVar[list[tuple[int, bool | float | None]]] = []

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self._rng = random.Random(seed)

    def __call__(self, turn: of.Turn) -> of.Reply:
        Watches.left -= 1
        if Watches.left == 0:
            raise KeyboardInterrupt
        Watches.shown.append((len(turn.observation), turn.red_light))
        return of.Reply(None if turn.last else self._rng.randrange(2))


@pytest.mark.parametrize("red_light", [False, True])
def test_a_run_goes_on_and_replays_and_shows_only_the_red_light(real: Any, tmp_path: Path, red_light: bool) -> None:
    module = real(CONTROL, {"gravity": DRAW.format(EVERY, 0.5)}, "scalar_reward=False")
    settings = {"unchanged": 0, "before": 3, "after": 3, "onset": 3, "red_light": red_light}
    trials, recorded = of.trials("gym:CartPole-v1", 1, novelty=f"{module.__file__}:Drift", **settings), []
    for name, left in (("whole", 0), ("stopped", 90)):
        Watches.left, Watches.shown, path = left, [], tmp_path / f"{name}.sqlite"
        if left:
            with pytest.raises((of.errors.Cancelled, KeyboardInterrupt)):
                of.run(Watches, trials, path)
        of.run(Watches, trials, path)
        assert run_command(["verify", str(path), "--replay", "--trust"]) == 0
        with of.journal.Run(path) as run:
            (cell,) = run.cells()
            steps = run.steps(cell.id, cell.attempt)
            recorded.append([(step.turn, step.truth, step.reply and step.reply.action) for step in steps])
    assert len(recorded[0]) > 90
    assert recorded[0] == recorded[1]
    assert set(Watches.shown) == ({(4, False), (4, True)} if red_light else {(4, None)})
