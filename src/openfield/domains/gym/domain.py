"""The domain `gym:ID`: any environment of Gymnasium with trials, novelties and a score."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.capabilities import Film
from openfield.change_process import split_process
from openfield.core import Spec, World
from openfield.course import Blend
from openfield.domain import Domain
from openfield.domains.gym.blend import GymBlend, check_order, check_turnwise
from openfield.domains.gym.environment import (
    PICTURES,
    Env,
    Holder,
    MakeEnv,
    ReturnMeter,
    derive_attributes,
    list_needed,
    make_env,
    make_stand_in,
    makes_by_id,
    one_line,
    read_attribute,
    read_defaults,
    set_attribute,
    takes_arguments,
    wrap_env,
)
from openfield.domains.gym.generic import RULES, Fit
from openfield.domains.gym.makers import find_maker, name_maker
from openfield.domains.gym.novelty import join_changes, list_novelties
from openfield.domains.gym.probe import (
    EFFECT_STEPS,
    Probe,
    find_chance,
    find_drift,
    measure_floor,
    probe_env,
    shows_difference,
)
from openfield.domains.gym.settings import GymSettings, environment_key, keep_arguments
from openfield.domains.gym.suites.suite import Suite, find_entry, list_suite_novelties, open_suite
from openfield.domains.gym.world import GymWorld
from openfield.errors import InvalidInput, OpenfieldError, describe_error
from openfield.novelty import Novelty, apply_novelties, find_novelty
from openfield.parameters import write_source
from openfield.registry import absolute, list_trial_code, use_domain
from openfield.settings import make_settings
from openfield.spaces import Discrete, Fields, Space
from openfield.trial import Phase, RedLight, Trial, bare_names, file_digest, with_changes

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.options import CommandOptions

MAX_EPISODE_STEPS = 10_000
"""Steps until an episode is cut off, where neither the environment nor the user says it."""
MAX_PHASES = 256
"""Phases whose settings are kept."""


CHECK_SETTINGS = {"before": 2, "after": 6, "max_steps": 40, "allow_drift": True}
"""How the conformance kit plays an environment. It says itself where one does not replay."""
SEED_MARGIN = 1.4
"""How much longer the kit plays than it once took two seeds to differ: with other seeds it may take longer."""


class GymDomain(Domain[GymSettings]):
    """Trials of one environment."""

    settings = GymSettings
    extra, modules = "gym", ("gymnasium",)
    metrics = ("performance", "returns", "detection", "adaptation")
    turnwise = True
    demo_agents: Sequence[str] = ("random",)
    demo_novelty: str | None = None
    demo_settings: Mapping[str, Any] = {"before": 3, "after": 3, "max_steps": 200}
    check_patience = 60.0  # some environments need long to be made
    shown_detail: Sequence[str] = ("return", "unclipped")
    shown_effects: Sequence[str] = ()
    rare_novelties: Sequence[str] = ()
    replay_advice = (
        "It must draw all chance from np_random, which reset(seed) sets, or by seeds of its own, and depend neither on "
        "a clock nor on the order of a set. To play it all the same, without resume and proof: --allow-drift"
    )

    def __init__(
        self,
        text: str,
        maker: MakeEnv,
        arguments: Mapping[str, Any] | None = None,
        suite: Suite | None = None,
        made_by: str = "",
    ) -> None:
        """Make the environment once, to learn its spaces.

        Args:
            text: What the user called it.
            maker: Makes one for every episode.
            arguments: Arguments of the constructor, unless trials are made with others.
            suite: A suite of the user's own, whose novelties take the place of those of the package.
            made_by: The name of a function or class that makes it. It is part of the domain's name, as what it makes
                may have the id of another environment.
        """
        self._text, self._maker, self._given = text, maker, dict(arguments or {})
        self._arguments = self._given
        """Those of the environment that the title and the novelties are of: trials may be made with others."""
        keep_arguments(text, self._given)
        self._probes: dict[bytes, Probe] = {}
        self._floors: dict[bytes, float] = {}
        self._values: dict[bytes, dict[str, Any]] = {}
        """Attributes of environments that a change of theirs is about, before it."""
        self._defaults: dict[str, dict[str, Any]] = {}
        self._phases: dict[tuple[str, tuple[str, ...]], GymSettings] = {}
        self._steady: set[bytes] = set()
        self._effective: set[tuple[bytes, bytes]] = set()
        """The changes of environments that were tried, each with its earlier value."""
        self._find_entry = cache(partial(find_entry, suite=suite))
        self._has_own_suite = suite is not None
        self._incomplete = ""
        """Why the environment cannot be made with the arguments given: it needs others, which trials must give."""
        known_as = text.rpartition(":")[2]
        self._made_by = made_by
        self.title = f"{known_as}, an environment of Gymnasium"
        try:
            known_as = self._learn(self._given).id
        except InvalidInput as error:
            if not (_lacks_argument(error) or takes_arguments(maker)):
                raise
            advice = "Give it" if _lacks_argument(error) else "Give another argument"
            ways = f"as in {text}(NAME=VALUE), or with --set make.NAME=VALUE"
            self._incomplete = f"{str(error).removesuffix('.')}. {advice}, {ways}."
        start = "gym-" if suite is None else f"gym-{suite.name}-"
        self.name = start + known_as.replace("/", "-")
        if self._has_other_id(known_as):
            self.name, self.former_names = f"{start}{made_by}-{known_as.replace('/', '-')}", (self.name,)

    def _has_other_id(self, known_as: str) -> bool:
        """Return whether a function or class of the user makes the environment, and it has another id than that."""
        return bool(self._made_by) and known_as != self._text.rpartition(":")[2]

    def _learn(self, arguments: Mapping[str, Any]) -> Probe:
        """Make the environment once with these arguments, and learn its title and which novelties fit it."""
        probe = self.probe(GymSettings(make=dict(arguments)))
        self._arguments, self._entry = dict(arguments), self._find_entry(probe.id)
        entry = self._entry
        made_by = f" by {self._made_by}" if self._has_other_id(probe.id) else ""
        self.title = f"{probe.id}{made_by}, an environment of Gymnasium"
        limited, late = bool(probe.steps or entry.steps), bool(entry.pays_late)
        fit = Fit(probe.gym_actions, probe.gym_observations, limited, late)
        self.novelties = list_novelties(list_suite_novelties(entry), fit)
        self.default_novelty = self.novelties[0].id
        self.rare_novelties = [each.id for each in entry.novelties if each.rare]
        self.shown_effects = list_single_numbers(probe.observations)
        return probe

    def settings_of(self, trial: Trial) -> GymSettings:
        """Return the settings of a trial, whose arguments may make another environment."""
        settings = super().settings_of(trial)
        self._turn_to(settings.make)
        return settings

    def _turn_to(self, arguments: Mapping[str, Any]) -> None:
        """Have the title and the novelties of the environment that is made with these arguments of a trial."""
        if self._incomplete and not arguments:
            raise InvalidInput(self._incomplete)
        wanted = {**self._given, **arguments}
        if wanted != self._arguments or not self.novelties:
            self._learn(wanted)

    def diagnose(self) -> str:
        """Return which argument the environment lacks, if it does."""
        return self._incomplete

    def make_env(self, settings: GymSettings, drawing: bool = False) -> Env:
        """Make an environment with these settings, or one that draws for people."""
        other = settings.instead
        text, maker = (other, find_maker(other)) if other else (self._text, self._maker)
        arguments = {**settings.make, "render_mode": PICTURES} if drawing else settings.make
        env = make_env(text, maker, arguments, settings.attributes, settings.derived)
        env = wrap_env(env, settings.wrappers, text)
        if settings.novel_wrappers:
            env = wrap_env(ReturnMeter(env), settings.novel_wrappers, self._text)
        return env

    def probe(self, settings: GymSettings) -> Probe:
        """Return what the environment says of itself with these settings. It is made once for each kind of them."""
        key = environment_key(settings)
        if key not in self._probes:
            self._probes[key] = self._probe(settings)
        return self._probes[key]

    def attributes_of(self, settings: GymSettings, texts: Sequence[str]) -> Holder:
        """Return a stand-in for an environment with these settings, which has the attributes that changes are about.

        To make an environment takes time that an agent can measure. So only one is made for all changes of attributes,
        and they are carried out on what was read off it.
        """
        bare, text = msgspec.structs.replace(settings, attributes=()), settings.instead or self._text
        needed = list_needed((*settings.attributes, *texts), settings.derived)
        known = self._values.setdefault(environment_key(bare), {})
        if any(path not in known for path in needed):
            env = self.make_env(bare)
            try:
                known.update({path: copy.deepcopy(read_attribute(env, f"{path}=0", text)) for path in needed})
            finally:
                env.close()
        stand_in = make_stand_in({path: known[path] for path in needed})
        for change in settings.attributes:
            set_attribute(stand_in, change, text)
        if settings.attributes:
            derive_attributes(stand_in, settings.attributes, settings.derived, text)
        return stand_in

    def argument_defaults(self, settings: GymSettings) -> dict[str, Any]:
        """Return the numbers that arguments of the constructor are where none is given."""
        known = self._defaults
        if settings.instead not in known:
            env = self.make_env(settings)
            known[settings.instead] = read_defaults(env)
            env.close()
        return known[settings.instead]

    def limit(self, settings: GymSettings, name: str, own: int | None) -> int:
        """Return the steps until an episode is cut off.

        Args:
            settings: The settings in force.
            name: The id of the environment.
            own: The steps of its own limit, if it has one.
        """
        steps = settings.max_steps or own or self._find_entry(name).steps or MAX_EPISODE_STEPS
        return max(1, round(steps * settings.time_limit))

    @cached_property
    def check_settings(self) -> Mapping[str, Any]:
        """How the kit plays the environment: its episodes outlast a beginning in which nothing moves."""
        self._turn_to({})
        usual, still = {**CHECK_SETTINGS, **self._entry.check}, 0
        with suppress(InvalidInput):  # the kit itself says what fails
            still = self._first_chance or 0
        return {**usual, "max_steps": max(usual["max_steps"], round(still * SEED_MARGIN))}

    @property
    def without_chance(self) -> bool:
        """Whether seeds change nothing, so that all trials without novelty show the same."""
        return self._first_chance is None

    @cached_property
    def _first_chance(self) -> int | None:
        """The first step at which another seed shows something else."""
        settings = GymSettings(make=self._given)
        actions = self.probe(settings).actions
        found: int | None = self._try(lambda: find_chance(partial(self.make_env, settings), actions))
        return found

    def longest_episode(self, settings: GymSettings) -> int:
        """Return the steps until an episode is cut off."""
        probe = self.probe(settings)
        return self.limit(settings, probe.id, probe.steps)

    def spec(self, trial: Trial) -> Spec:
        """Return the agent's knowledge before this trial starts."""
        probe = self.probe(self.settings_of(trial))
        task = self._find_entry(probe.id).task or f"Earn a high return in {probe.id}."
        return Spec(domain=self.name, task=task, actions=probe.actions, observations=probe.observations)

    def phases(self, settings: GymSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return training, the test before the onset, and the test from there on."""
        early = Phase("training", settings.training), Phase("test", settings.before)
        return (*early, Phase("test", settings.after, novelty))

    def world(self, trial: Trial) -> World:
        """Make the world of a trial.

        Raises:
            InvalidInput: A file of a wrapper has changed since the trial was made.
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

    def play_page(self, trial: Trial) -> PlayPage:
        """Let a person play with keys for what the environment calls its actions."""
        from openfield.domains.gym.play_page import make_gym_page

        settings = self.settings_of(trial)
        env = self.make_env(settings)
        try:
            return make_gym_page(env, self.spec(trial), self.probe(settings).fps)
        finally:
            env.close()

    def settings_in(self, trial: Trial, phase: Phase) -> GymSettings:
        """Return the settings of a phase. They are kept, as every short episode asks for them."""
        key = trial.id, phase.novelty
        if key not in self._phases:
            if len(self._phases) >= MAX_PHASES:
                self._phases.clear()
            self._phases[key] = self._apply(phase.novelty, self.settings_of(trial))
        return self._phases[key]

    def _apply(self, names: Iterable[str], settings: GymSettings) -> GymSettings:
        """Return settings after novelties, which mean the same as when the trial was made."""
        for name in names:
            settings = self.novelty_in(settings, name).change(settings)
        return settings

    def novelty_in(self, settings: GymSettings, name: str) -> Novelty[GymSettings]:
        """Return the novelty of a name; one of a suite of the user's changes what it did when the trial was made."""
        text, process = (name, None) if name in settings.suite else split_process(name)
        kept = settings.suite.get(text)
        if kept is None:
            return super().novelty_in(settings, name)
        return Novelty(text, *RULES, kept, join_changes(kept), process=process)

    def blend(self, usual: GymSettings, changed: GymSettings) -> Blend[GymSettings]:
        """Return the way from some settings to others, with the attributes of the environment among the numbers."""
        return GymBlend(self, usual, changed)

    def trials(
        self, count: int = 5, seed: int = 0, novelty: str | None = None, red_light: RedLight = False, **settings: Any
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
        self._turn_to(keep_arguments(self._text, given.make))
        entry = self._entry
        chosen = msgspec.structs.replace(given, make=self._arguments, derived={**entry.derived, **given.derived})
        if not chosen.allow_drift:
            self._refuse_drift(chosen, self._text)
        scale = chosen.scale or self._find_scale(chosen)
        names = self.novelty_names(novelty)
        own = {each.id: each.change for each in entry.novelties} if self._has_own_suite else {}
        kept = {
            "make": chosen.make,
            "derived": chosen.derived,
            "suite": {name: own[name] for name in bare_names(names) if name in own},
            "return": scale,
            "reuse": entry.reuse if chosen.reuse is None else chosen.reuse,
        }
        others = {name: value for name, value in settings.items() if name.partition(".")[0] not in kept}
        made = super().trials(count, seed, novelty, red_light, **others, **kept)
        if not chosen.allow_drift:
            for name in bare_names(names):
                self._refuse_drift(self._apply([name], chosen), f"Novelty '{name}'")
            self.warn_of_no_effect(chosen, bare_names(names))
        files = digest_wrappers(list_trial_code(made))
        return with_changes(made, lambda trial: msgspec.structs.replace(trial, files=files)) if files else made

    def check_novelties(self, settings: GymSettings, names: Sequence[str]) -> None:
        """Refuse novelties that the environment does not have, and those that change its spaces."""
        super().check_novelties(settings, names)
        novelties = [find_novelty(self.novelties, name) for name in names]
        check_order(novelties, settings)
        for novelty in novelties:
            if novelty.process is not None and novelty.process.unit == "turns":
                check_turnwise(novelty.id, settings, novelty.change(settings))
        self._check_spaces(settings, apply_novelties(self.novelties, names, settings), "+".join(names))

    def check_moment(self, usual: GymSettings, settings: GymSettings) -> None:
        """Refuse settings that the environment cannot have, or with which its spaces are others."""
        bare = msgspec.structs.replace(settings, attributes=usual.attributes)  # those on their way are no texts
        super().check_moment(usual, bare)
        self._check_spaces(usual, bare, "the change")

    def _check_spaces(self, settings: GymSettings, other_settings: GymSettings, name: str) -> None:
        usual, changed = self.probe(settings), self.probe(other_settings)
        for what, same, one, other in (
            ("action", usual.actions == changed.actions, usual.gym_actions, changed.gym_actions),
            (
                "observation",
                usual.observations == changed.observations,
                usual.gym_observations,
                changed.gym_observations,
            ),
        ):
            if not same:
                text = f"Novelty '{name}' changes the {what} space from {one_line(one)} to {one_line(other)}"
                raise InvalidInput(f"{text}; agents could not go on.")

    def warn_of_no_effect(self, settings: GymSettings, names: Sequence[str]) -> None:
        """Warn of a novelty with which random play shows the same: its name or value may mean nothing here."""
        for name in names:
            if name in self.rare_novelties:
                continue
            changed = self._apply([name], settings)
            key = environment_key(settings), environment_key(changed)
            if key[0] == key[1] or key in self._effective or changed.has_effects:
                continue
            makers = partial(self.make_env, settings), partial(self.make_env, changed)
            play = partial(shows_difference, *makers, self.probe(settings).actions)
            if not self._try(play, f"Novelty '{name}'"):
                warnings.warn(
                    f"Novelty '{name}' changed nothing in {EFFECT_STEPS} steps of random play. Does {self._text} know "
                    "it? Compare names and values with its documentation.",
                    UserWarning,
                    stacklevel=3,
                )
            self._effective.add(key)

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the option that every command has which plays."""
        from openfield.domains.gym.options import GymOptions

        return GymOptions

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return what says turns in words for language models and people."""
        from openfield.domains.gym.agents.gym_writer import GymWriter, name_actions

        env = self.make_env(GymSettings(make=self._arguments))
        try:
            return GymWriter(spec, name_actions(env, spec.actions.n) if isinstance(spec.actions, Discrete) else ())
        finally:
            env.close()

    def remark(self, trial: Trial) -> str:
        """Return the scale of a trial in words."""
        scale = self.settings_of(trial).scale
        if scale is None:
            return "returns have no scale here, so there is no performance: set return=LOW,HIGH"
        entry = self._entry
        origin = f" ({entry.source})" if scale == entry.reference and entry.source else ""
        return f"a performance of 0 is a return of {scale[0]:g}, and of 1 a return of {scale[1]:g}{origin}"

    def _probe(self, settings: GymSettings) -> Probe:
        env = self.make_env(settings)
        try:
            return probe_env(env, settings.attributes, settings.instead or self._text)
        finally:
            env.close()

    def _refuse_drift(self, settings: GymSettings, name: str) -> None:
        key = environment_key(settings)
        if key in self._steady:
            return
        step = self._try(lambda: find_drift(partial(self.make_env, settings), self.probe(settings).actions), name)
        if step is not None:
            raise InvalidInput(
                f"{name} does not replay: at step {step} two environments with the same seed differ, so its runs "
                f"could not be resumed or proven. {self.replay_advice}"
            )
        self._steady.add(key)

    def _find_scale(self, settings: GymSettings) -> tuple[float, float] | None:
        """Return published returns, else random play and Gymnasium's threshold above it, else the range of returns."""
        probe = self.probe(settings)
        entry = self._find_entry(probe.id)
        as_published = settings.make.keys() <= {*entry.neutral} and not (settings.attributes or probe.pays_otherwise)
        if entry.reference is not None and as_published:
            return entry.reference
        return self._measure_scale(settings, probe) or (None if probe.pays_otherwise else entry.returns)

    def _measure_scale(self, settings: GymSettings, probe: Probe) -> tuple[float, float] | None:
        if probe.threshold is None:
            return None
        key, limit = environment_key(settings), self.limit(settings, probe.id, probe.steps)
        if (floor_key := key + str(limit).encode()) not in self._floors:
            make = partial(self.make_env, settings)
            self._floors[floor_key] = self._try(lambda: measure_floor(make, probe.actions, limit))
        floor = self._floors[floor_key]
        return (floor, probe.threshold) if floor < probe.threshold else None

    def _try(self, play: Callable[[], Any], name: str = "") -> Any:
        """Play before the first trial is made; an environment that fails is an input that cannot be used."""
        try:
            return play()
        except OpenfieldError:
            raise
        except Exception as error:
            problem = f"{name or self._text} failed in random play: {one_line(describe_error(error))}"
            raise InvalidInput(problem) from error


def from_gymnasium(
    environment: str | Callable[..., Env], suite: str | Path | None = None, /, **arguments: Any
) -> Domain[Any]:
    """Return an environment of Gymnasium as a domain.

    Args:
        environment: An id, `module:ID`, `file.py:NAME`, or what makes an environment: a class or a function.
        suite: A TOML file with novelties of your own.
        **arguments: Arguments of its constructor.
    """
    own, prefix = (None, "") if suite is None else (open_suite(Path(suite)), f"{Path(suite).absolute()}:")
    if isinstance(environment, str):
        domain = GymDomain(environment, find_maker(environment), arguments, own, name_maker(environment))
        place = absolute(environment)
        return use_domain(domain, f"gym:{prefix}{place if makes_by_id(place) else _write_source(place, arguments)}")
    name, module = getattr(environment, "__qualname__", ""), getattr(environment, "__module__", "__main__")
    text = name or type(environment).__name__
    domain = GymDomain(
        text, environment, arguments, own, name_maker(f"{'' if module == '__main__' else module}:{text}")
    )
    found = name and "<" not in name and module != "__main__"
    return use_domain(domain, f"gym:{prefix}{_write_source(f'{module}:{name}', arguments)}" if found else "")


def _write_source(place: str, arguments: Mapping[str, Any]) -> str:
    """Return the source of what makes an environment with these arguments, which may choose one of another name."""
    return write_source(place, msgspec.to_builtins(arguments))


def _lacks_argument(error: InvalidInput) -> bool:
    """Return whether an environment could not be made because its constructor needs an argument."""
    return isinstance(error.__cause__, TypeError) and "required" in str(error.__cause__)


def list_single_numbers(space: Space) -> tuple[str, ...]:
    """Return the keys of observations that are one number, which may well be constant until the world changes."""
    if isinstance(space, Fields):
        return tuple(name for name, part in space.parts.items() if isinstance(part, Discrete))
    return ("observation",) if isinstance(space, Discrete) else ()


def digest_wrappers(sources: Iterable[str]) -> dict[str, str]:
    """Return the digest of each file that holds a wrapper, by its name. Packages have versions of their own."""
    paths = {Path(source.partition(":")[0]) for source in sources}
    found = {path.name: path if path.is_file() else Path(path.name) for path in paths if path.suffix == ".py"}
    return {name: file_digest(path.read_bytes()) for name, path in sorted(found.items()) if path.is_file()}
