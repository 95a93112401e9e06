"""A domain is a family of worlds: its settings, novelties, trials and the agents that come with it.

The registry finds domains by name. Plans ask them for trials, rollouts for worlds, reports for words. What else a
domain may have, such as a wire, films or exports, is in `capabilities`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from openfield.change_process import NORMAL, split_stages, write_stages
from openfield.core import Agent, AgentFactory, AskMoment, Belief, Spec, Turn, World, says_novel
from openfield.course import Blend, Course, Moment, check_process
from openfield.errors import InvalidInput
from openfield.novelty import Novelty, apply_novelties, check_effect, find_novelty
from openfield.record import EpisodeEnd, action_key, observation_key
from openfield.settings import Settings, make_settings, trial_settings
from openfield.trial import Limits, Phase, RedLight, Trial, derive, draw_set, measure_test, place_change, stages_of

S = TypeVar("S", bound=Settings)


class Domain(ABC, Generic[S]):
    """A family of worlds. A subclass fills in the names below and writes `spec`, `phases` and `world`."""

    name: str
    version: ClassVar[int] = 1
    """Raise it when the same trial would show other turns than before."""
    older_versions: ClassVar[frozenset[int]] = frozenset()
    """Older versions whose trials are still played as they were."""
    older_defaults: ClassVar[Mapping[int, Mapping[str, Any]]] = {}
    """Version -> the defaults that its trials had, and those of versions before it, where later ones have others."""
    former_names: Sequence[str] = ()
    """Its earlier names, which trials in older run files have."""
    title: str
    """The domain in one line, for lists and reports."""
    settings: type[S]
    novelties: Sequence[Novelty[S]] = ()
    agents: Mapping[str, AgentFactory | str] = {}
    """The agents that come with the domain: factories, or `module:attribute` to import them late."""
    metrics: Sequence[str] = ("performance", "detection", "adaptation")
    baseline: str = "random"
    """The agent that others are compared with unless the user names another."""
    default_novelty: str | None = None
    """The novelty that `openfield run` plays when none is named."""
    limits: Limits = Limits()
    """The default limits of an agent in a trial."""
    extra: str = ""
    """The optional part of openfield that it needs, such as `birds`."""
    modules: tuple[str, ...] = ()
    """What can be imported once that extra is installed."""
    oracles: Sequence[str] = ()
    """Those of its agents that are shown the world itself. They are ceilings, not competitors."""
    loose: Mapping[str, object] = {}
    """The values of settings with which its rules allow scores that nothing was done for; reports show those last."""
    turnwise: bool = False
    """Whether its worlds can change within an episode, as `over 500 turns` asks."""
    abrupt_settings: Collection[str] = ()
    """Settings that change at once even where a change comes gradually: a number such as 0 means never."""
    letters: bool = False
    """Whether whole numbers in observations and actions are the codes of letters, to be shown as such."""
    commands: Mapping[str, str] = {}
    """Commands of its own: `{"visit": "module:function"}` is called as `openfield ond visit`.

    Cyclopts parses the parameters of the function; its docstring is the help."""
    exports: Mapping[str, str] = {}
    """Formats of its own: `{"logs": "module:function"}` for `openfield export --format logs`.

    The function takes a run file, where to write, and a cell's id, and returns a line about what it wrote."""
    demo_agents: Sequence[str] = ()
    """The agents that `openfield demo` plays."""
    demo_novelty: str | None = None
    """The novelty of the demo; if empty, the default one."""
    demo_settings: Mapping[str, Any] = {}
    gym_name: str = ""
    """The name of its Gymnasium environment; if empty, its own name in camel case."""
    gym_settings: Mapping[str, Any] = {}
    """Changes of settings for its Gymnasium environment: `{"observe": "array"}`."""
    gym_endless: bool = False
    """Whether its Gymnasium environment draws new episodes of the unchanged world for ever, unless it gets a trial."""
    gym_vector: str | None = None
    """The class that steps many environments at once, as `module:Class`, for `gymnasium.make_vec`."""
    check_patience: float = 5.0
    """Seconds that a world may need for one answer in the conformance kit."""
    scripted_agent: str | Callable[[Spec, int], Agent] | None = None
    """The agent whose replies its wire can carry, for the conformance kit."""
    shown_detail: Sequence[str] = ()
    """Keys of the truth's detail that agents may see."""
    shown_effects: Sequence[str] = ()
    """Keys of observations that are meant to give the change away."""

    @abstractmethod
    def spec(self, trial: Trial) -> Spec:
        """Return the agent's knowledge before this trial starts."""

    @abstractmethod
    def phases(self, settings: S, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return the phases of a trial with these settings, and with these novelties from the onset on."""

    @abstractmethod
    def world(self, trial: Trial) -> World:
        """Make the world of a trial. It depends on nothing but the trial."""

    def trials(
        self,
        count: int = 5,
        seed: int = 0,
        novelty: str | None = None,
        red_light: RedLight = False,
        **settings: Any,
    ) -> list[Trial]:
        """Make trials that differ in their seeds and in when the world changes, and some in which it does not.

        Args:
            count: How many trials change. The setting `unchanged` says how many come on top.
            seed: The root of all their seeds.
            novelty: `NAME[:difficulty]`, with a process such as `over 20` behind it or not; several joined by `+`, or
                one after the other with ` then ` between them; or `none`. The domain's default if not given.
            red_light: Tell the agents when the world has changed; `how much` tells them how strong the change is.
            **settings: Changes of the domain's settings.

        Raises:
            InvalidInput: A setting has a value it cannot have, a novelty changes a setting that must stay, or one
                novelty undoes another.
        """
        chosen = make_settings(self.settings, settings)
        if novelty is None and self.default_novelty is None and settings.get("preset") == "short":
            novelty = self.demo_novelty  # such trials are blind, so something changes in them
        names = self.novelty_names(novelty)
        for stage in stages_of(names):
            self.check_novelties(chosen, stage)
        phases, roots = self.phases(chosen, names), [derive(seed, self.name, number) for number in range(count)]
        kept = trial_settings(chosen)
        blind = draw_set(chosen, settings, measure_test(phases), names, roots)
        made = [
            Trial(
                domain=self.name,
                version=self.version,
                seed=draw.seed,
                phases=place_change(phases, draw),
                settings=kept,
                red_light=red_light,
                limits=self.limits,
                scenario=blind.scenario,
                window=blind.window,
                windows=blind.windows,
            )
            for draw in blind.draws
        ]
        self.check_courses(made)
        return made

    @property
    def check_settings(self) -> Mapping[str, Any]:
        """The settings with which the conformance kit plays it."""
        return self.demo_settings

    def detected(self, belief: Belief) -> bool:
        """Return whether a belief says that the world has changed."""
        return says_novel(belief)

    def detection_rule(self, trial: Trial) -> Callable[[Belief], bool]:
        """Return the function that says whether a belief is a detection in this trial."""
        return self.detected

    def list_purchases(self, turn: Turn) -> Sequence[Any]:
        """Return the actions that buy feedback at a turn; none in a domain that sells none."""
        return ()

    def tells_change(self, feedback: Any) -> bool:
        """Return whether the feedback of a turn reveals that the world has changed."""
        return False

    @property
    def sells_feedback(self) -> bool:
        """Whether agents can buy feedback in this domain."""
        return type(self).list_purchases is not Domain.list_purchases

    def lists_trials(self, settings: S) -> str:
        """Return why a number of trials makes no sense with these settings, which list them; empty where it does."""
        return ""

    def check_end(self, settings: S, seed: int) -> None:
        """Raise `InvalidInput` if trials with these settings would never end by themselves."""

    def list_code(self, trial: Trial) -> list[str]:
        """Return the code of users that a trial names, as `file.py` or `package.module:NAME`, importing none of it."""
        return []

    def import_module(self, name: str) -> ModuleType:
        """Import a module of agents by its dotted name."""
        return import_module(name)

    def prepare_module(self, module: ModuleType) -> None:
        """Prepare a module of agents that was made from a file, before its code runs."""

    def encode(self, observation: Any) -> Any:
        """Return a hashable key of an observation that measures may count, or a picture: (H, W) or (H, W, 3)."""
        return observation_key(observation)

    def encode_action(self, action: Any) -> Any:
        """Return a hashable key of an action that measures may count."""
        return action_key(action)

    def progress(self, episode: EpisodeEnd) -> str:
        """Return a few words about an episode that ended, to stand beside the progress bar instead of its score."""
        return ""

    def remark(self, trial: Trial) -> str:
        """Return a caution for readers of the numbers of a trial, in a few words."""
        return ""

    def diagnose(self) -> str:
        """Return what `openfield doctor` should say of what the domain needs; empty if all is well."""
        return ""

    def novelty_names(self, novelty: str | None) -> tuple[str, ...]:
        """Return the full names in `a+b:hard over 20`. `none` means no novelty, None the domain's default.

        Novelties that follow each other, as in `a then none then b`, are one name.
        """
        wanted = self.default_novelty or NORMAL if novelty is None else novelty
        if wanted == NORMAL:
            return ()
        stages = [self._name_stage(stage) for stage in split_stages(wanted)]
        if len(stages) == 1:
            return stages[0]
        for first, second in itertools.pairwise(((), *stages)):
            if first == second:
                raise InvalidInput(f"'{wanted}': '{'+'.join(second) or NORMAL}' would change nothing where it comes.")
        return (write_stages(tuple(stages)),)

    def _name_stage(self, stage: str) -> tuple[str, ...]:
        if stage == NORMAL:
            return ()
        return tuple(find_novelty(self.novelties, name).id for name in stage.split("+"))

    def check_novelties(self, settings: S, names: Sequence[str]) -> None:
        """Refuse novelties that take a setting out of its range, of which one undoes another, or with a wrong process.

        Processes must fit what the novelties change; where a course leads is checked when trials are made.
        """
        reached = settings
        for novelty in [find_novelty(self.novelties, name) for name in names]:
            changed = novelty.change(reached)
            if novelty.process is not None:
                if novelty.process.unit == "turns" and not self.turnwise:
                    raise InvalidInput(
                        f"'{novelty.id}': worlds of {self.name} change between episodes only. Count episodes: leave "
                        "out 'turns'."
                    )
                check_process(novelty, self.blend(reached, changed))
            reached = changed
        try:
            make_settings(self.settings, msgspec.to_builtins(reached))
        except InvalidInput as error:
            raise InvalidInput(f"Novelty '{'+'.join(names)}' takes a setting out of its range. {error}") from None
        check_effect(self.novelties, names, settings)

    def settings_in(self, trial: Trial, phase: Phase) -> S:
        """Return the settings of a phase: those of the trial, changed by the novelties of the phase."""
        return apply_novelties(self.novelties, phase.novelty, self.settings_of(trial))

    def course(self, trial: Trial) -> Course[S] | None:
        """Return how strong which change is at each moment of a trial; None where it changes once and at once."""
        if not trial.has_course:
            return None
        settings = self.settings_of(trial)
        return Course(trial, settings, partial(self.novelty_in, settings), self.blend)

    def list_moments(self, trial: Trial) -> list[Moment[S]]:
        """Return what is true of each planned episode of a trial; no strength where it changes once and at once."""
        if (course := self.course(trial)) is not None:
            return course.list_moments()
        found: list[Moment[S]] = []
        for phase in trial.phases:
            found += [Moment(self.settings_in(trial, phase), bool(phase.novelty), None, "")] * phase.episodes
        return found

    def novelty_in(self, settings: S, name: str) -> Novelty[S]:
        """Return the novelty that a trial with these settings calls so."""
        return find_novelty(self.novelties, name)

    def blend(self, usual: S, changed: S) -> Blend[S]:
        """Return the way from some settings to others, for changes that come gradually."""
        return Blend(usual, changed, self.abrupt_settings)

    def check_courses(self, trials: Sequence[Trial]) -> None:
        """Refuse trials in which a change takes a setting out of its range at any time, or is never complete.

        Raises:
            InvalidInput: There is one; the message says when.
        """
        known: set[bytes] = set()
        for trial in trials:
            course = self.course(trial) if trial.is_changed else None
            if course is not None:
                course.check_length(self.longest_episode(self.settings_of(trial)) if course.is_turnwise else None)
            for when, settings in () if course is None else course.preview():
                key = msgspec.json.encode(settings)
                if key in known:
                    continue
                known.add(key)
                try:
                    self.check_moment(self.settings_of(trial), settings)
                except InvalidInput as error:
                    names = "+".join(trial.novelty)
                    raise InvalidInput(f"'{names}' takes a setting out of its range {when}. {error}") from None

    def longest_episode(self, settings: S) -> int | None:
        """Return the turns that an episode has at most with these settings; None where no one knows."""
        return None

    def check_moment(self, usual: S, settings: S) -> None:
        """Refuse settings that a world of a trial cannot have at any moment, given its usual ones."""
        make_settings(self.settings, msgspec.to_builtins(settings))

    def settings_of(self, trial: Trial) -> S:
        """Return the settings of a trial: its own, and the defaults of the version that made it."""
        later = [version for version in sorted(self.older_defaults, reverse=True) if version >= trial.version]
        older = {name: value for version in later for name, value in self.older_defaults[version].items()}
        return make_settings(self.settings, {**older, **trial.settings})

    def describe(self, names: Sequence[str]) -> str:
        """Describe the novelties in words."""
        if len(stages := stages_of(tuple(names))) > 1:
            return "; then ".join(self.describe(stage) if stage else "normal again" for stage in stages)
        return "; ".join(find_novelty(self.novelties, name).note for name in names) or "no novelty"


def spec_of(domain: Domain[Any], trial: Trial) -> Spec:
    """Return the spec of a trial: the domain's, with how long a reply may take and when the agent is asked."""
    ask: AskMoment = "turn" if trial.settings.get("ask") == "turn" else "episode"
    return msgspec.structs.replace(domain.spec(trial), reply_seconds=trial.limits.reply_seconds, ask=ask)


def hides_episodes(domain: Domain[Any]) -> bool:
    """Return whether the changes of a domain's trials are placed by steps, because agents see no episodes."""
    settings = make_settings(domain.settings, {})
    names = tuple(novelty.id for novelty in domain.novelties[:1])
    return any(phase.steps for phase in domain.phases(settings, names))


def make_world(domain: Domain[Any], trial: Trial) -> World:
    """Make the world of a trial, if this version of its domain plays it as it was made."""
    check_version(domain, trial)
    return domain.world(trial)


def check_version(domain: Domain[Any], trial: Trial) -> None:
    """Refuse a trial that was imported, or that another version of its domain made unless both play it the same."""
    if trial.imported is not None:
        raise InvalidInput(
            f"Trial {trial.id} was imported from {trial.imported}: it has results, but nothing to replay or resume."
        )
    if trial.version != domain.version and trial.version not in domain.older_versions:
        raise InvalidInput(
            f"Version {trial.version} of {domain.name} made trial {trial.id}, and this is version {domain.version}, "
            "with other rules. It can be read, reported and verified, but not replayed or resumed."
        )
