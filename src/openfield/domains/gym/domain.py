"""The domain `gym:ID`: any environment of Gymnasium with trials, novelties and a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from openfield.capabilities import Film
from openfield.core import Spec, World
from openfield.domain import Domain
from openfield.domains.gym.adapter import GymSpace, to_space
from openfield.domains.gym.environment import (
    PICTURES,
    Env,
    MakeEnv,
    ReturnMeter,
    find_maker,
    make_env,
    one_line,
    read_attribute,
    read_fps,
    wrap_env,
)
from openfield.domains.gym.episode import GymWorld
from openfield.domains.gym.novelty import list_novelties
from openfield.domains.gym.scale import find_drift, measure_floor
from openfield.domains.gym.settings import GymSettings
from openfield.errors import InvalidInput, OpenfieldError, describe_error
from openfield.novelty import apply_novelties
from openfield.registry import absolute, list_trial_code, use_domain
from openfield.settings import make_settings
from openfield.spaces import Discrete, Space
from openfield.trial import Phase, Trial, file_digest, with_changes

MAX_EPISODE_STEPS = 10_000
"""Steps until an episode is cut off, where neither the environment nor the user says it."""
REUSABLE = ("ALE/", "CartPole-", "Acrobot-", "MountainCar", "Pendulum-")
"""How the ids of environments begin that start an episode as fresh ones do, which a test compares."""
MAX_PHASES = 256
"""Phases whose settings are kept."""


class Probe(NamedTuple):
    """What an environment says of itself before it is played."""

    id: str
    gym_actions: GymSpace
    gym_observations: GymSpace
    actions: Space
    observations: Space
    threshold: float | None
    """The mean return from which Gymnasium calls it solved."""
    limit: int
    """Steps of an episode."""
    fps: float | None
    """How many steps a second a film shows; None if it draws no pictures."""


class GymDomain(Domain[GymSettings]):
    """Trials of one environment."""

    settings = GymSettings
    extra, modules = "gym", ("gymnasium",)
    demo_agents: Sequence[str] = ("random",)
    demo_novelty: str | None = None
    demo_settings: Mapping[str, Any] = {"before": 3, "after": 3, "max_steps": 200}
    check_settings: Mapping[str, Any] | None = {"before": 2, "after": 6, "max_steps": 40}
    shown_detail: Sequence[str] = ("return",)
    shown_effects: Sequence[str] = ()

    def __init__(self, text: str, maker: MakeEnv, arguments: Mapping[str, Any] | None = None) -> None:
        """Make the environment once, to learn its spaces.

        Args:
            text: What the user called it.
            maker: Makes one for every episode.
            arguments: Arguments of the constructor, unless trials are made with others.
        """
        self._text, self._maker, self._arguments = text, maker, dict(arguments or {})
        try:
            msgspec.json.encode(self._arguments)
        except TypeError:
            raise InvalidInput(
                f"Arguments of {text} must be numbers, text, lists or mappings, which a trial can keep. "
                "For others give a function that makes the environment."
            ) from None
        self._probes: dict[bytes, Probe] = {}
        self._floors: dict[bytes, float] = {}
        self._phases: dict[tuple[str, tuple[str, ...]], GymSettings] = {}
        self._steady: set[bytes] = set()
        probe = self.probe(GymSettings(make=self._arguments))
        self.name = f"gym-{probe.id.replace('/', '-')}"
        self.title = f"{probe.id}, an environment of Gymnasium"
        self.novelties = list_novelties(probe.gym_actions, probe.gym_observations)
        self.default_novelty = self.novelties[0].id
        if isinstance(probe.observations, Discrete):  # the whole observation is one number, which may well be constant
            self.shown_effects = ("observation",)

    def make_env(self, settings: GymSettings, drawing: bool = False) -> Env:
        """Make an environment with these settings, or one that draws for people."""
        arguments = {**settings.make, "render_mode": PICTURES} if drawing else settings.make
        env = make_env(self._text, self._maker, arguments, settings.attributes)
        env = wrap_env(env, settings.wrappers, self._text)
        if settings.novel_wrappers:
            env = wrap_env(ReturnMeter(env), settings.novel_wrappers, self._text)
        return env

    def probe(self, settings: GymSettings) -> Probe:
        """Return what the environment says of itself with these settings. It is made once for each kind of them."""
        key = _key(settings)
        if key not in self._probes:
            self._probes[key] = self._probe(settings)
        return self._probes[key]

    def spec(self, trial: Trial) -> Spec:
        """Return what an agent may know before this trial starts."""
        probe = self.probe(self.settings_of(trial))
        task = f"Earn a high return in {probe.id}."
        return Spec(domain=self.name, task=task, actions=probe.actions, observations=probe.observations)

    def phases(self, settings: GymSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return training, the test before the onset, and the test from there on."""
        early = Phase("training", settings.training), Phase("test", settings.before)
        return (*early, Phase("test", settings.after, novelty))

    def world(self, trial: Trial) -> World:
        """Make the world of a trial.

        Raises:
            InvalidInput: A file of a wrapper is not what it was when the trial was made.
        """
        if trial.files and (now := digest_wrappers(list_trial_code([trial]))) != trial.files:
            changed = sorted(name for name in {*now, *trial.files} if now.get(name) != trial.files.get(name))
            raise InvalidInput(
                f"{', '.join(changed)} changed since trial {trial.id} was made: its world is another now."
            )
        return GymWorld(self, trial)

    def film(self, trial: Trial) -> Film:
        """Return a world of the trial whose environment draws what happens, whatever the agent is shown.

        Raises:
            InvalidInput: The environment draws no pictures.
        """
        fps = self.probe(self.settings_of(trial)).fps
        if fps is None:
            raise InvalidInput(f"{self._text} draws no pictures: its metadata names no render mode '{PICTURES}'.")
        world = GymWorld(self, trial, drawing=True)
        return Film(world, lambda: [world.look("picture")], 1000 / fps, lambda before: world.skip(len(before)))

    def settings_in(self, trial: Trial, phase: Phase) -> GymSettings:
        """Return the settings of a phase. They are kept, as every short episode asks for them."""
        key = trial.id, phase.novelty
        if key not in self._phases:
            if len(self._phases) >= MAX_PHASES:
                self._phases.clear()
            self._phases[key] = super().settings_in(trial, phase)
        return self._phases[key]

    def trials(
        self, count: int = 5, seed: int = 0, novelty: str | None = None, red_light: bool = False, **settings: Any
    ) -> list[Trial]:
        """Make trials as every domain does. They keep the scale that returns are scored on.

        Args:
            count: How many trials change.
            seed: The root of all their seeds.
            novelty: What changes; `gravity=19.6`, `make.KEY=VALUE` and `file.py:Wrapper` are novelties too.
            red_light: Tell the agents when the world has changed.
            **settings: Changes of the settings.

        Raises:
            InvalidInput: The environment does not replay, or a setting or novelty does not fit it.
        """
        given = make_settings(self.settings, settings)
        chosen = msgspec.structs.replace(given, make={**self._arguments, **given.make})
        if not chosen.allow_drift:
            self._refuse_drift(chosen)
        scale = chosen.scale or self._find_scale(chosen)
        plain = {name: value for name, value in settings.items() if name.partition(".")[0] != "make"}
        found = {"make": chosen.make, "return": scale, "reuse": self._find_reuse(chosen)}
        made = super().trials(count, seed, novelty, red_light, **{**plain, **found})
        files = digest_wrappers(list_trial_code(made))
        return with_changes(made, lambda trial: msgspec.structs.replace(trial, files=files)) if files else made

    def check_novelties(self, settings: GymSettings, names: Sequence[str]) -> None:
        """Refuse novelties that the environment does not have, or that change its spaces."""
        super().check_novelties(settings, names)
        usual, changed = self.probe(settings), self.probe(apply_novelties(self.novelties, names, settings))
        for what, one, other in (
            ("action", usual.gym_actions, changed.gym_actions),
            ("observation", usual.gym_observations, changed.gym_observations),
        ):
            if one != other:
                text = f"Novelty '{'+'.join(names)}' changes the {what} space from {one} to {other}"
                raise InvalidInput(f"{text}; agents could not go on.")

    def remark(self, trial: Trial) -> str:
        """Return the scale of a trial in words."""
        scale = self.settings_of(trial).scale
        if scale is None:
            return "returns have no scale here, so there is no performance: set return=LOW,HIGH"
        return f"a performance of 0 is a return of {scale[0]:g}, and of 1 a return of {scale[1]:g}"

    def _probe(self, settings: GymSettings) -> Probe:
        env = self.make_env(settings)
        try:
            spec = env.spec
            self._check_attributes(env, settings)
            return Probe(
                id=self._text.rpartition(":")[2] if spec is None else spec.id,
                gym_actions=env.action_space,
                gym_observations=env.observation_space,
                actions=to_space(env.action_space),
                observations=to_space(env.observation_space),
                threshold=None if spec is None else spec.reward_threshold,
                limit=(None if spec is None else spec.max_episode_steps) or MAX_EPISODE_STEPS,
                fps=read_fps(env),
            )
        finally:
            env.close()

    def _check_attributes(self, env: Env, settings: GymSettings) -> None:
        """Start an episode, and refuse changes of attributes that its start undoes."""
        before = [msgspec.json.encode(_plain(read_attribute(env, each, self._text))) for each in settings.attributes]
        self._begin(env)
        for change, value in zip(settings.attributes, before, strict=True):
            if msgspec.json.encode(_plain(read_attribute(env, change, self._text))) != value:
                raise InvalidInput(f"'{change}' has no effect: {self._text} sets it anew when an episode starts.")

    def _begin(self, env: Env) -> None:
        try:
            env.reset(seed=0)
        except Exception as error:
            raise InvalidInput(f"{self._text} cannot start an episode: {one_line(describe_error(error))}") from error

    def _refuse_drift(self, settings: GymSettings) -> None:
        key = _key(settings)
        if key in self._steady:
            return
        step = self._try(lambda: find_drift(partial(self.make_env, settings), self.probe(settings).actions))
        if step is not None:
            raise InvalidInput(
                f"{self._text} does not replay: at step {step} two environments with the same seed differ, so its runs "
                "could not be resumed or proven. To play it all the same: --set allow_drift=true"
            )
        self._steady.add(key)

    def _find_scale(self, settings: GymSettings) -> tuple[float, float] | None:
        """Return the mean return of random play and Gymnasium's threshold, if that is higher."""
        probe, key = self.probe(settings), _key(settings)
        if probe.threshold is None:
            return None
        limit = settings.max_steps or probe.limit
        if (floor_key := key + str(limit).encode()) not in self._floors:
            make = partial(self.make_env, settings)
            self._floors[floor_key] = self._try(lambda: measure_floor(make, probe.actions, limit))
        floor = self._floors[floor_key]
        return (floor, probe.threshold) if floor < probe.threshold else None

    def _find_reuse(self, settings: GymSettings) -> bool | None:
        """Return whether one environment plays all episodes: what the user says, else what is known of it."""
        known = self.probe(settings).id.startswith(REUSABLE) or None
        return known if settings.reuse is None else settings.reuse

    def _try(self, play: Callable[[], Any]) -> Any:
        """Play before the first trial is made; an environment that fails is an input that cannot be used."""
        try:
            return play()
        except OpenfieldError:
            raise
        except Exception as error:
            raise InvalidInput(f"{self._text} failed in random play: {one_line(describe_error(error))}") from error


def from_gymnasium(environment: str | Callable[..., Env], /, **arguments: Any) -> Domain[Any]:
    """Return an environment of Gymnasium as a domain.

    Args:
        environment: An id, `module:ID`, `file.py:NAME`, or what makes an environment: a class or a function.
        **arguments: Arguments of its constructor.
    """
    if isinstance(environment, str):
        return use_domain(GymDomain(environment, find_maker(environment), arguments), f"gym:{absolute(environment)}")
    name, module = getattr(environment, "__qualname__", ""), getattr(environment, "__module__", "__main__")
    source = f"gym:{module}:{name}" if name and "<" not in name and module != "__main__" else ""
    return use_domain(GymDomain(name or type(environment).__name__, environment, arguments), source)


@cache
def open_domain(text: str) -> GymDomain:
    """Return the domain that `gym:TEXT` names."""
    if not text:
        raise InvalidInput("Which environment? Write gym:ID, such as gym:CartPole-v1.")
    return GymDomain(text, find_maker(text))


def digest_wrappers(sources: Iterable[str]) -> dict[str, str]:
    """Return the digest of each file that holds a wrapper, by its name. Packages have versions of their own."""
    paths = {Path(source.partition(":")[0]) for source in sources}
    found = {path.name: path if path.is_file() else Path(path.name) for path in paths if path.suffix == ".py"}
    return {name: file_digest(path.read_bytes()) for name, path in sorted(found.items()) if path.is_file()}


def _key(settings: GymSettings) -> bytes:
    """Return what tells environments apart that are made differently."""
    made_of = settings.make, settings.attributes, settings.wrappers, settings.novel_wrappers
    return msgspec.json.encode(made_of, order="sorted")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
