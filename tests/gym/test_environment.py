"""Domains as Gymnasium environments: the usual loop, the same record, nothing of the truth."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import openfield as of
from openfield.capabilities import Film
from openfield.core import Ask, Belief, Reply, Truth, Turn
from openfield.errors import AgentProtocol, InvalidInput, UnknownName, WorldFault
from openfield.gym import DomainEnv, register_domain
from openfield.gym.environment import gym_name, to_gym
from openfield.installation import install_line
from openfield.journal.reader import Run
from openfield.registry import find_domain
from openfield.result import Result
from openfield.spaces import from_numpy, to_numpy
from openfield.trial import Phase
from support.places import MAZE
from support.walks import WALKS, Walks


class Drift:
    """An episode whose actions and observations are numbers: the position after each push."""

    def __init__(self, settings: Any, rng: Any) -> None:
        self.at, self.rng, self.pushes = rng.uniform(-1, 1), rng, 0
        self.reward, self.performance, self.ended = 0.0, 0.0, None
        self.observation: Any = [self.at, 0.0]

    def move(self, action: Any) -> None:
        if not isinstance(action, list):
            raise AgentProtocol("a push is a list of one number")
        self.at = min(max(self.at + action[0], -2.0), 2.0)
        self.pushes += 1
        self.reward = -abs(self.at)
        self.ended = "truncated" if self.pushes >= 5 else None  # type: ignore[assignment]
        self.observation = [self.at, self.pushes / 5]


class Drifts(Walks):
    name, title, play = "drift-box", "Drifts", Drift

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(
            domain=self.name, task="Push.", actions=of.spaces.Box(-1, 1, (1,)), observations=of.spaces.Box(-2, 2, (2,))
        )


class Interview(Walks):
    """Asks for a go-ahead before, and for a belief after every episode of one action."""

    name, title = "interview", "An interview"

    def world(self, trial: of.Trial) -> of.World:
        return InterviewWorld()

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(
            domain=self.name, task="Answer.", actions=of.spaces.Discrete(2), observations=of.spaces.Discrete(3)
        )


class InterviewWorld:
    asks = [Ask.READY, Ask.ACT, Ask.BELIEF, Ask.NONE] * 2

    def __init__(self) -> None:
        self.number, self.truth = -1, Truth()

    @property
    def over(self) -> bool:
        return self.number == len(self.asks) - 1

    def reset(self) -> Turn:
        return self.step(Reply())

    def step(self, reply: Reply) -> Turn:
        self.number += 1
        ask = self.asks[self.number]
        last = "terminated" if ask is Ask.NONE else None
        self.truth = Truth(episode_over=last is not None)
        shown = 1 if ask is Ask.ACT else None
        return Turn(ask=ask, observation=shown, reward=0.25, last=last, first=ask is Ask.READY)

    def look(self, query: str) -> Any:
        return None

    def close(self) -> None:
        pass


class FilmedDrifts(Drifts):
    """Draws three pictures a turn, each with its number in its first colour."""

    name, gym_name = "filmed-drifts", "FilmedDrifts"

    def film(self, trial: of.Trial) -> Film:
        world, shown = self.world(trial), itertools.count()
        world.look = lambda query: np.full((4, 6, 3), 99, np.uint8)  # type: ignore[method-assign]
        return Film(world, lambda: [np.full((4, 6, 3), next(shown), np.uint8) for _ in range(3)], 50)


DRIFTS = Drifts()
INTERVIEW = Interview()
SHORT = {"size": 4, "patience": 10, "training": 1, "before": 1, "after": 2}


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    for domain in (WALKS, DRIFTS, INTERVIEW, FilmedDrifts(), find_domain(MAZE)):
        assert register_domain(domain) is not None


def play(env: Any, episodes: int) -> list[float]:
    rewards = []
    for _ in range(episodes):
        env.reset()
        ended, total = False, 0.0
        while not ended:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            total, ended = total + reward, terminated or truncated
            assert info.keys() <= {"phase", "feedback", "red_light"}
        rewards.append(total)
    return rewards


@pytest.mark.parametrize("name", ["Maze", "Walks", "DriftBox"])
def test_gymnasium_is_content(name: str) -> None:
    env = gymnasium.make(f"openfield/{name}-v0")
    check_env(env.unwrapped)
    env.close()


def test_the_module_registers_itself_when_named() -> None:
    line = "import gymnasium; gymnasium.make('openfield.gym:openfield/Nothing-v0')"
    done = subprocess.run([sys.executable, "-W", "error", "-c", line], capture_output=True, text=True, check=False)
    assert "openfield" in done.stderr.splitlines()[-1]
    assert "ModuleNotFoundError" not in done.stderr


def test_a_trial_is_recorded_like_any_other(tmp_path: Path) -> None:
    path, domain = tmp_path / "run.sqlite", find_domain(MAZE)
    trial = domain.trials(count=1, novelty="swapped", **SHORT, unchanged=0)[0]
    env = gymnasium.make("openfield/Maze-v0", trial=trial, journal=path)
    env.action_space.seed(3)
    play(env, 4)
    env.unwrapped.believe(0.7, level=2)
    env.close()
    (cell,) = Result([path]).cells
    assert (cell.agent, cell.trial, cell.outcome) == ("gym", trial, "done")
    assert [episode.novel for episode in cell.episodes] == [False, False, True, True]
    assert [episode.belief for episode in cell.episodes] == [None, None, None, Belief(0.7, 2)]
    assert [episode.detected for episode in cell.episodes] == [False, False, False, True]
    with Run(path) as run:
        assert not run.verify()
        assert run.facts["domain maze"].endswith("maze.py")


def test_a_belief_rides_on_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    env = gymnasium.make("openfield/Walks-v0", journal=path, agent_name="me")
    env.reset(seed=5)
    env.unwrapped.believe(0.4)
    env.step(1)
    env.step(1)
    env.close()
    (cell,) = Result([path]).cells
    assert (cell.agent, cell.trial.seed, cell.outcome) == ("me", 5, "cancelled")
    with Run(path) as run:
        replies = [step.reply for step in run.steps(cell.id, 1)]
    assert replies == [None, Reply(1, Belief(0.4)), Reply(1)]


def test_when_the_trial_is_over_a_reset_starts_a_new_repeat(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    env = gymnasium.make("openfield/Walks-v0", journal=path)
    first, _ = env.reset(seed=1)
    play(env, 5)
    again, info = env.reset()
    env.close()
    assert again == first
    assert info["phase"] == "training"
    assert [(cell.repeat, cell.outcome) for cell in Result([path]).cells] == [(0, "done"), (1, "cancelled")]


def test_a_reset_amid_an_episode_gives_the_trial_up(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    env = gymnasium.make("openfield/Walks-v0", journal=path)
    first, _ = env.reset(seed=1)
    assert env.reset()[0] == first
    env.step(0)
    assert env.reset()[0] == first
    env.close()
    assert [(cell.repeat, cell.outcome) for cell in Result([path]).cells] == [(0, "cancelled"), (1, "cancelled")]


def test_environments_side_by_side_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    envs = gymnasium.make_vec("openfield/Walks-v0", 2, vectorization_mode="sync", journal=path)
    envs.reset(seed=9)
    for _ in range(60):
        _, rewards, *_ = envs.step(envs.action_space.sample())
    envs.close()
    cells = Result([path]).cells
    assert rewards.shape == (2,)
    assert {cell.trial.seed for cell in cells} == {9, 10}
    assert sum(cell.outcome == "done" for cell in cells) == 2


def test_turns_that_ask_for_no_action_are_answered(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    env = gymnasium.make("openfield/Interview-v0", journal=path)
    observation, _ = env.reset()
    assert observation == 1
    observation, reward, terminated, *_ = env.step(1)
    assert (observation, reward, terminated) == (1, 0.5, True)
    env.reset()
    env.unwrapped.believe(0.9)
    env.step(1)
    env.close()
    (cell,) = Result([path]).cells
    assert cell.outcome == "done"
    with Run(path) as run:
        replies = [step.reply for step in run.steps(cell.id, 1)]
    first = [None, Reply(), Reply(1), Reply(None, Belief(0.0)), Reply()]
    assert replies == [*first, Reply(), Reply(1, Belief(0.9)), Reply(None, Belief(0.0)), Reply()]


def test_a_wrong_action_is_the_callers_fault(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    env = gymnasium.make("openfield/Walks-v0", journal=path, disable_env_checker=True)
    env.reset()
    with pytest.raises(AgentProtocol):
        env.step(7)
    with pytest.raises(ResetNeeded):
        env.step(1)
    env.close()
    assert [cell.outcome for cell in Result([path]).cells] == ["agent_protocol"]


def test_a_step_after_the_end_is_refused() -> None:
    env = gymnasium.make("openfield/Walks-v0").unwrapped
    play(env, 1)
    with pytest.raises(ResetNeeded):
        env.step(1)


def test_a_world_that_cannot_start_is_on_record(tmp_path: Path) -> None:
    path, trial = tmp_path / "run.sqlite", of.Trial(domain="walks", version=1, seed=0, phases=())
    env = gymnasium.make("openfield/Walks-v0", trial=trial, journal=path)
    with pytest.raises(WorldFault):
        env.reset()
    env.close()
    assert [cell.outcome for cell in Result([path]).cells] == ["world_error"]


def test_a_trial_that_asks_for_no_action_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InterviewWorld, "asks", [Ask.READY, Ask.NONE])
    env = gymnasium.make("openfield/Interview-v0")
    with pytest.raises(InvalidInput, match="asks for no action"):
        env.reset()


def test_settings_are_those_of_the_domain_and_no_other_options_of_its_trials() -> None:
    DomainEnv("commai", settings={"unchanged": 2}).close()
    with pytest.raises(UnknownName, match="setting 'novelty'"):
        DomainEnv("commai", settings={"novelty": "none"})


def test_limits_cut_an_episode_off() -> None:
    trial = of.Trial(domain="walks", version=1, seed=0, phases=(Phase("test", 1),), limits=of.Limits(episode_turns=3))
    env = gymnasium.make("openfield/Walks-v0", trial=trial)
    env.reset()
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_only_domains_with_spaces_are_registered() -> None:
    class Silent(Walks):
        name = "silent"

        def spec(self, trial: of.Trial) -> of.Spec:
            return of.Spec(domain=self.name, task="Guess.")

    assert register_domain(Silent()) is None
    with pytest.raises(InvalidInput, match="does not declare its spaces"):
        gymnasium.make("openfield/Walks-v0", domain="silent")


def test_a_trial_without_spaces_is_told_how_to_have_them() -> None:
    (trial,) = of.trials("birds", count=1, observe="objects", unchanged=0)
    with pytest.raises(
        InvalidInput, match="birds does not declare its spaces unless trials are made with observe=features"
    ):
        gymnasium.make("openfield/Birds-v0", trial=trial)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (of.trials("commai", count=1, unchanged=0)[0], r"^Trial \w+ is one of commai; this environment plays walks\.$"),
        ([], r"^'trial' is one trial, such as of\.trials\('walks'\)\[-1\], not a list\.$"),
        ("first", r"not 'first'\.$"),
    ],
)
def test_a_trial_must_be_one_of_the_domain(given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        gymnasium.make("openfield/Walks-v0", trial=given)


def test_names_in_camel_case() -> None:
    assert gym_name(DRIFTS) == "DriftBox"
    assert gym_name(WALKS) == "Walks"


def test_spaces_and_values_go_there_and_back() -> None:
    space = of.spaces.Fields(
        {"way": of.spaces.Choice(("left", "right")), "count": of.spaces.Discrete(3), "push": of.spaces.Box(0, 1, (2,))}
    )
    value = {"way": "right", "count": 2, "push": [0.5, 0.25]}
    shown = to_numpy(space, value)
    assert shown in to_gym(space)
    assert from_numpy(space, shown) == value
    assert np.array_equal(shown["push"], np.array([0.5, 0.25], dtype="float32"))


def test_a_missing_gymnasium_is_named() -> None:
    line = "import sys; sys.modules['gymnasium'] = None; import openfield.gym"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f"Install it: {install_line('gym')}")


@pytest.mark.parametrize("action", [99, -1, 0.5, "left", None])
def test_what_is_no_action_at_all_is_refused(action: Any) -> None:
    env = gymnasium.make(register_domain(find_domain(MAZE)) or "").unwrapped
    env.reset()
    with pytest.raises(AgentProtocol, match=r"is not an action of Discrete\(4\)"):
        env.step(action)
    env.close()


def test_what_is_no_belief_is_refused() -> None:
    env = gymnasium.make(register_domain(WALKS) or "").unwrapped
    env.reset()
    for novel in (7.0, -1.0, "yes", ()):
        with pytest.raises(InvalidInput, match="is not a belief"):
            env.believe(novel)  # type: ignore[attr-defined]
    env.step(1)
    env.close()


def test_the_ids_are_known_to_whoever_imports_gymnasium_first() -> None:
    code = "import gymnasium, openfield; print(gymnasium.make('openfield/CommAI-v0').action_space)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.strip() == b"Discrete(256)"


def test_a_picture_of_now_or_all_since_the_last_call() -> None:
    env = gymnasium.make("openfield/FilmedDrifts-v0", render_mode="rgb_array")
    env.reset(seed=1)
    assert env.metadata["render_fps"] == 20
    assert env.render().shape == (4, 6, 3)
    assert env.render()[0, 0, 0] == 99
    listed = gymnasium.make("openfield/FilmedDrifts-v0", render_mode="rgb_array_list")
    listed.reset(seed=1)
    assert [picture[0, 0, 0] for picture in listed.render()] == [0, 1, 2]
    listed.step([0.1])
    listed.step([0.1])
    assert [picture[0, 0, 0] for picture in listed.render()] == list(range(3, 9))
    assert listed.render() == []


def test_a_render_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidInput, match="walks draws no pictures"):
        gymnasium.make("openfield/Walks-v0", render_mode="rgb_array")
    with pytest.raises(UnknownName, match="Did you mean 'rgb_array'"):
        DomainEnv("filmed-drifts", render_mode="rgb_aray")
    assert gymnasium.make("openfield/Walks-v0").metadata["render_modes"] == []


def test_people_watch_in_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    flips = []
    flip = pygame.display.flip
    monkeypatch.setattr(pygame.display, "flip", lambda: flips.append(flip()))
    env = gymnasium.make("openfield/FilmedDrifts-v0", render_mode="human")
    env.reset(seed=1)
    env.step([0.1])
    assert len(flips) == 6
    assert env.render() is None
    assert pygame.display.get_window_size() == (6, 4)
    assert "filmed-drifts" in pygame.display.get_caption()[0]
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.step([0.1])  # the user closed the window: the loop goes on without it
    assert len(flips) == 7
    env.close()
    assert not pygame.display.get_init()


def test_without_a_screen_the_message_says_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "no such driver")
    env = gymnasium.make("openfield/FilmedDrifts-v0", render_mode="human")
    with pytest.raises(InvalidInput, match=r"No window can be opened .*rgb_array"):
        env.reset(seed=1)
    env.close()
