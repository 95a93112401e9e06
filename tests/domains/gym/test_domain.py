from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium import spaces as gs

import openfield as of
from openfield.domains.gym.domain import GymDomain
from openfield.domains.gym.family import FAMILY
from openfield.domains.gym.makers import find_maker
from openfield.provenance.trust import is_domain_code, trusted_domain
from openfield.registry import absolute, find_domain, list_trial_code
from openfield.testing import check_domain, check_wire, check_world
from support.all_spaces import PARTS, AllSpaces

SHORT: dict[str, Any] = {"before": 2, "after": 2, "max_steps": 30}
ENVIRONMENTS = ("CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1", "Pendulum-v1")

FILE = """
import random
import gymnasium
from gymnasium import spaces

class Corridor(gymnasium.Env):
    action_space = spaces.Discrete(2)
    observation_space = spaces.Dict({"at": spaces.Discrete(9), "word": spaces.Text(3, charset="ab")})
    wind = calm = 0

    def __init__(self, size=5, drift=False):
        self.size, self.drift = size, drift

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = random.randrange(9) if self.drift else int(self.np_random.integers(3))
        self.calm = 0
        return self._see(), {}

    def step(self, action):
        self.at = min(8, max(0, self.at + (1 if action else -1) + self.wind))
        return self._see(), float(self.at == self.size), self.at == self.size, False, {}

    def _see(self):
        return {"at": self.at, "word": "ab"}

NUMBER = 3
"""


@pytest.fixture
def corridor(tmp_path: Path) -> str:
    path = tmp_path / "corridor.py"
    path.write_text(FILE)
    sys.modules.pop("openfield_file_corridor", None)
    return f"gym:{path}:Corridor"


def play(domain: of.Domain[Any], path: Path, **options: Any) -> list[of.journal.CellRecord]:
    of.run("random", domain.trials(count=2, **{**SHORT, **options}), path)
    with of.journal.Run(path) as run:
        return list(run.cells())


def ends(cells: list[of.journal.CellRecord]) -> list[of.journal.Episode]:
    return [episode for cell in cells for episode in cell.episodes]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_real_environments_are_played_scored_and_verified(name: str, tmp_path: Path) -> None:
    domain = find_domain(f"gym:{name}")
    cells = play(domain, tmp_path / "run.sqlite")
    assert {cell.outcome for cell in cells} == {"done"}
    episodes = ends(cells)
    assert len(episodes) == 4 * len(cells)
    assert any(episode.novel for episode in episodes)
    scored = [episode.performance is not None for episode in episodes]
    assert set(scored) == {domain.trials(count=1, **SHORT)[0].settings.get("return") is not None}


def test_cartpole_keeps_all_rules() -> None:
    report = check_domain(find_domain("gym:CartPole-v1"))
    assert report.passed, report


def test_the_scale_is_the_threshold_over_random_play_and_kept_in_the_trial() -> None:
    domain = find_domain("gym:CartPole-v1")
    (trial,) = domain.trials(count=1, unchanged=0)
    low, high = trial.settings["return"]
    assert 15 < low < 30
    assert high == 475
    assert trial.id == GymDomain("CartPole-v1", find_maker("CartPole-v1")).trials(count=1, unchanged=0)[0].id
    assert "a return of 475" in domain.remark(trial)  # type: ignore[attr-defined]
    (given,) = domain.trials(count=1, unchanged=0, **{"return": "0,100"})
    assert given.settings["return"] == [0.0, 100.0]
    with pytest.raises(of.errors.InvalidInput, match="LOW must be below HIGH"):
        domain.trials(count=1, **{"return": "5,5"})


def test_an_environment_without_threshold_has_no_performance_but_a_return(tmp_path: Path) -> None:
    domain = find_domain("gym:Blackjack-v1")
    episodes = ends(play(domain, tmp_path / "run.sqlite"))
    assert {episode.performance for episode in episodes} == {None}
    assert {episode.detail["return"] for episode in episodes} <= {-1.0, 0.0, 1.0}
    assert "no scale" in domain.remark(domain.trials(count=1)[0])  # type: ignore[attr-defined]


def test_a_reward_novelty_changes_what_is_paid_and_not_the_score() -> None:
    domain = find_domain("gym:CartPole-v1")
    paid, scores = zip(*(play_once(domain, novelty) for novelty in ("rewards-negated", "none")), strict=True)
    assert paid[0] == -paid[1] < 0
    assert scores[0] == scores[1]
    assert scores[0]["return"] == paid[1]
    assert scores[0]["unclipped"] < 0  # it is clipped in the performance only


def play_once(domain: of.Domain[Any], novelty: str) -> tuple[float, Any]:
    """Play an episode with one action, and return what was paid and the detail of the truth."""
    twins = {} if novelty == "none" else {"unchanged": 0}
    (trial,) = domain.trials(count=1, novelty=novelty, before=0, after=1, **twins)
    world = domain.world(trial)
    turn, total = world.reset(), 0.0
    while turn.last is None:
        assert world.truth.performance is None
        turn = world.step(of.Reply(1))
        total += turn.reward
    world.close()
    return total, world.truth.detail


def watch(domain: of.Domain[Any], novelty: str, **settings: Any) -> list[Any]:
    """Return what a changed episode shows to an agent that always takes the last action."""
    (trial,) = domain.trials(count=1, novelty=novelty, **{"before": 0, "after": 1, "unchanged": 0, **settings})
    world, shown = domain.world(trial), []
    action = domain.spec(trial).actions
    assert isinstance(action, of.spaces.Discrete)
    turn = world.reset()
    while turn.last is None:
        turn = world.step(of.Reply(action.n - 1))
        shown.append(np.asarray(turn.observation).tolist())
    world.close()
    return shown


def test_attributes_and_arguments_are_novelties_that_take_effect_and_compose() -> None:
    domain = find_domain("gym:CartPole-v1")
    strong, twice = watch(domain, "force_mag=20"), watch(domain, "force_mag*=2")
    assert strong == twice
    assert len(strong) < len(watch(domain, "gravity=9.7"))
    assert domain.describe(["force_mag*=2"]) == "force_mag is multiplied by 2"
    assert domain.novelty_names("force_mag=20+actions-sticky") == ("force_mag=20", "actions-sticky:easy")
    assert watch(domain, "force_mag=20+length=2") not in (strong, watch(domain, "length=2"))
    with pytest.raises(of.errors.InvalidInput, match="changes nothing beside"):
        domain.trials(novelty="force_mag=20+force_mag=30")
    lake = find_domain("gym:FrozenLake-v1")
    assert watch(lake, "make.is_slippery=false", max_steps=9) == [0] * 9 != watch(lake, "rewards-scaled", max_steps=9)


@pytest.mark.parametrize(
    ("source", "novelty", "message"),
    [
        ("gym:CartPole-v1", "gravty=3", "Unknown attribute 'gravty'. Did you mean 'gravity'"),
        ("gym:CartPole-v1", "gravity=heavy", "gravity is 9.8"),
        ("gym:CartPole-v1", "gravity/=0", "divides by 0"),
        ("gym:CartPole-v1", "state.x=3", "Unknown attribute"),
        ("gym:CartPole-v1", "render.x=3", "Unknown attribute"),
        ("gym:CartPole-v1", "spec=3", "is a EnvSpec"),
        ("gym:CartPole-v1", "kinematics_integrator*=2", "is 'euler'"),
        ("gym:CartPole-v1", "_secret=3", "Unknown novelty '_secret=3'"),
        ("gym:CartPole-v1", "sticky", "Unknown novelty 'sticky'"),
        ("gym:CartPole-v1", "make.foo=3", "unexpected keyword argument 'foo'"),
        ("gym:FrozenLake-v1", "make.map_name=8x8", "changes the observation space from Discrete.16. to Discrete.64."),
    ],
)
def test_a_novelty_that_does_not_fit_is_refused_in_one_line(source: str, novelty: str, message: str) -> None:
    with pytest.raises(of.errors.OpenfieldError, match=message) as caught:
        find_domain(source).trials(novelty=novelty)
    assert "\n" not in str(caught.value)


def test_attributes_that_are_computed_in_an_episode_only_are_not_listed() -> None:
    minigrid = pytest.importorskip("minigrid")
    gymnasium.register_envs(minigrid)
    with pytest.raises(of.errors.UnknownName, match=r"Unknown attribute 'see_through'.*see_through_walls"):
        find_domain("gym:MiniGrid-Empty-5x5-v0").trials(novelty="see_through=true")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gym:CartPol-v1", "Did you mean 'gym:CartPole-v1'"),
        ("gym:Nowhere/Thing-v0", "Gymnasium knows no 'Nowhere/Thing-v0': Namespace Nowhere not found"),
        ("gym:", "Which environment"),
        ("gym:no_such_module:Thing-v0", "No module named 'no_such_module'"),
        ("gym:no_such_file.py:Thing", "no such file"),
    ],
)
def test_an_environment_that_is_not_there_is_one_line(source: str, message: str) -> None:
    with pytest.raises(of.errors.OpenfieldError, match=message) as caught:
        find_domain(source)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_told_in_the_words_of_gymnasium() -> None:
    def make() -> Any:
        raise gymnasium.error.DependencyNotInstalled('box is not installed,\nrun `pip install "gymnasium[box]"`')

    with pytest.raises(of.errors.InvalidInput, match=r"needs a package .* is not installed, run `pip install"):
        of.from_gymnasium(make)


def test_a_class_in_a_file_is_a_domain_that_other_processes_find(corridor: str, tmp_path: Path) -> None:
    domain = find_domain(corridor)
    assert domain.name == "gym-Corridor"
    trials = domain.trials(count=2, novelty="wind=1", **{"make.size": "7", "return": (0, 1)}, **SHORT)
    assert trials[0].settings["make"] == {"size": 7}
    result = of.run("random", trials, tmp_path / "run.sqlite", workers=2)
    with of.journal.Run(tmp_path / "run.sqlite") as run:
        assert {cell.outcome for cell in run.cells()} == {"done"}
        assert run.facts["domain gym-Corridor"] == corridor
    assert result.table() is not None
    with pytest.raises(of.errors.InvalidInput, match="sets it anew when an episode starts"):
        domain.trials(novelty="calm=1")
    assert is_domain_code(corridor)
    assert not is_domain_code("gym:CartPole-v1")
    assert absolute("gym:a.py:B") == f"gym:{Path.cwd() / 'a.py'}:B"
    with pytest.raises(of.errors.InvalidInput, match="makes no environment: it is a int"):
        find_domain(corridor.replace("Corridor", "NUMBER"))


def test_an_environment_that_does_not_replay_is_refused_unless_allowed(corridor: str) -> None:
    domain = find_domain(corridor)
    with pytest.raises(of.errors.InvalidInput, match=r"does not replay: at step 0 .*--allow-drift"):
        domain.trials(count=1, **{"make.drift": True})
    assert domain.trials(count=1, **{"make.drift": True, "allow_drift": "true"})
    with pytest.raises(of.errors.InvalidInput, match=r"Novelty 'make.drift=true' does not replay: at step 0 "):
        domain.trials(count=1, novelty="make.drift=true")
    assert domain.trials(count=1, novelty="make.drift=true", allow_drift=True)


def test_any_callable_is_a_domain_and_its_arguments_are_kept_in_the_trial() -> None:
    lake = of.from_gymnasium("FrozenLake-v1", map_name="8x8")
    (trial,) = lake.trials(count=1, unchanged=0)
    assert lake.spec(trial).observations == of.spaces.Discrete(64)
    assert trial.settings["make"] == {"map_name": "8x8"}
    assert FAMILY.open_domain("FrozenLake-v1").spec(trial).observations == of.spaces.Discrete(64)
    made = of.from_gymnasium(lambda g=10.0: gymnasium.make("Pendulum-v1", g=g))
    assert made.spec(made.trials(count=1)[0]).actions == of.spaces.Box(-2.0, 2.0, (1,))
    with pytest.raises(of.errors.InvalidInput, match="must be finite numbers, text"):
        of.from_gymnasium("FrozenLake-v1", desc=object())
    with pytest.raises(of.errors.InvalidInput, match="makes a int, not an environment"):
        of.from_gymnasium(lambda: 3)


class Stops:
    """Raises in the middle of a trial, once."""

    left = 40

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.inner = of.registry.find_agent("random", find_domain(spec.domain))(spec, seed)

    def __call__(self, turn: of.Turn) -> of.Reply:
        Stops.left -= 1
        if Stops.left == 0:
            raise KeyboardInterrupt
        return self.inner(turn)


@pytest.mark.parametrize("name", ["CartPole-v1", "Taxi-v4", "Pendulum-v1"])
def test_a_run_stopped_in_the_middle_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    trials = find_domain(f"gym:{name}").trials(count=1, unchanged=0, novelty="actions-sticky", **SHORT)
    Stops.left = 10_000
    of.run(Stops, trials, whole := tmp_path / "whole.sqlite")
    Stops.left = 40
    with pytest.raises((of.errors.Cancelled, KeyboardInterrupt)):
        of.run(Stops, trials, path := tmp_path / "run.sqlite")
    Stops.left = 10_000
    of.run(Stops, trials, path)
    with of.journal.Run(path) as run, of.journal.Run(whole) as other:
        (cell,), (same,) = run.cells(), other.cells()
        assert cell.outcome == "done"
        assert [each.detail for each in cell.episodes] == [each.detail for each in same.episodes]
        assert run.facts[f"domain gym-{name}"] == f"gym:{name}"


def test_environments_are_closed_one_by_one() -> None:
    made: list[Any] = []

    class Counted(gymnasium.Env[Any, Any]):
        action_space, observation_space = gs.Discrete(2), gs.Discrete(2)

        def __init__(self) -> None:
            made.append(self)
            self.closed = False

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            return 0, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return 1, 1.0, True, False, {}

        def close(self) -> None:
            self.closed = True

    domain = of.from_gymnasium(Counted)
    (trial,) = domain.trials(count=1, novelty="none", before=2, after=1)
    made.clear()
    world = domain.world(trial)
    turn = world.reset()
    while not (turn.last and world.over):
        turn = world.step(of.Reply(0))
    world.close()
    assert len(made) == 3
    assert all(env.closed for env in made)


WRAPPERS = """
import gymnasium

class Charged(gymnasium.RewardWrapper):
    def reward(self, reward):
        return -5 * reward

class Reversed(gymnasium.ActionWrapper):
    def action(self, action):
        return 1 - action

class Wider(gymnasium.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(3)

class Broken(gymnasium.Wrapper):
    def __init__(self, env):
        raise ValueError("no")

def number(env):
    return 3
"""


@pytest.fixture
def wrappers(tmp_path: Path) -> str:
    path = tmp_path / "wrappers.py"
    path.write_text(WRAPPERS)
    sys.modules.pop("openfield_file_wrappers", None)
    return str(path)


def test_a_wrapper_of_ones_own_is_a_novelty_that_changes_no_score(wrappers: str) -> None:
    domain = find_domain("gym:CartPole-v1")
    assert watch(domain, f"{wrappers}:Reversed") == watch(domain, "actions-permuted")
    paid, detail = play_once(domain, f"{wrappers}:Charged")
    assert detail == play_once(domain, "none")[1]
    assert detail["return"] == -paid / 5
    (trial,) = domain.trials(count=1, unchanged=0, novelty=f"{wrappers}:Charged")
    assert trial.files.keys() == {"wrappers.py"}
    assert list_trial_code([trial]) == [f"{wrappers}:Charged"]
    Path(wrappers).write_text(WRAPPERS + "\nMORE = 1\n")
    with pytest.raises(of.errors.InvalidInput, match=r"wrappers\.py changed since trial"):
        domain.world(trial)


def test_a_wrapper_that_a_file_names_runs_only_if_it_is_signed_or_trusted(
    wrappers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "mine"))
    domain = find_domain("gym:CartPole-v1")
    of.run("random", domain.trials(count=1, novelty=f"{wrappers}:Reversed", **SHORT), path := tmp_path / "run.sqlite")
    with of.journal.Run(path) as run:
        assert trusted_domain(run, domain.name) is domain
        assert WRAPPERS in [source.text for source in run.sources()]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    with (
        of.journal.Run(path) as run,
        pytest.raises(of.errors.InvalidInput, match=r"code that you did not sign.*wrappers\.py:Reversed"),
    ):
        trusted_domain(run, domain.name)
    with pytest.raises(of.errors.InvalidInput, match="code that you did not sign"):
        of.resume(path)
    assert of.resume(path, trust=True)


@pytest.mark.parametrize("key", ["wrappers", "novel_wrappers"])
@pytest.mark.parametrize("given", ["a.py:B,c.py:D", ["a.py:B", "c.py:D"]])
def test_wrappers_in_settings_are_code_in_whatever_form_a_file_has_them(key: str, given: Any) -> None:
    (trial,) = find_domain("gym:CartPole-v1").trials(count=1, novelty="none")
    forged = msgspec.structs.replace(trial, settings={**trial.settings, key: given})
    assert list_trial_code([forged]) == ["a.py:B", "c.py:D"]
    assert list_trial_code([msgspec.structs.replace(forged, domain="maze")]) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Wider", "changes the action space from Discrete.2. to Discrete.3."),
        ("Broken", "cannot wrap CartPole-v1: ValueError: no"),
        ("number", "is not a wrapper: it makes a int"),
        ("Missing", "Unknown name 'Missing'"),
    ],
)
def test_a_wrapper_that_does_not_fit_is_one_line(name: str, message: str, wrappers: str) -> None:
    with pytest.raises(of.errors.OpenfieldError, match=message) as caught:
        find_domain("gym:CartPole-v1").trials(novelty=f"{wrappers}:{name}")
    assert "\n" not in str(caught.value)


def test_a_wrapper_of_the_usual_world_may_change_spaces(wrappers: str) -> None:
    domain = find_domain("gym:Taxi-v4")
    (trial,) = domain.trials(count=1, unchanged=0, wrappers=f"{wrappers}:Wider", allow_drift=True)
    assert domain.spec(trial).actions == of.spaces.Discrete(3)
    with pytest.raises(of.errors.InvalidInput, match="names no wrapper"):
        domain.trials(count=1, wrappers="Wider")


def test_every_kind_of_space_is_played_recorded_replayed_sent_and_told() -> None:
    """The kit plays and replays it and sends it as JSON lines; the rest is what a language model sees and answers."""
    domain: Any = of.from_gymnasium(AllSpaces)
    (trial,) = domain.trials(1, novelty="force=2", unchanged=0, before=1, after=1, max_steps=4)
    report = check_world(domain, [trial], patience=120.0) + check_wire(domain, trial=trial, patience=240.0)
    assert report.passed, report
    writer, world, rng = domain.turn_writer(domain.spec(trial)), domain.world(trial), random.Random(1)
    turn = world.reset()
    assert all(f"- {name}: " in writer.describe(turn).text for name in PARTS)
    assert writer.schema["properties"].keys() == PARTS.keys()
    assert "2 whole numbers (1 to 2; 0 to 4)" in writer.action
    while turn.last is None:
        turn = world.step(of.Reply(writer.read(msgspec.json.decode(msgspec.json.encode(writer.sample(rng))))))
        assert turn.reward == 1.0  # the action was what the environment takes
    world.close()
