"""The two Doom domains: the duel of the first published task, and the larger arena.

The registry finds them by name; plans ask for trials, rollouts for worlds.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace

from openfield.core import Belief, Reply, Spec, World, says_novel
from openfield.domain import Domain
from openfield.domains.doom import episode
from openfield.domains.doom import novelty as catalogue
from openfield.domains.doom.settings import MAX_EPISODES, ArenaSettings, DoomSettings, DuelSettings, check_shared
from openfield.domains.doom.trials import compose
from openfield.errors import InvalidInput
from openfield.record import observation_key
from openfield.settings import make_settings, trial_settings
from openfield.spaces import Box, Choice, Fields, Space
from openfield.trial import Limits, Phase, RedLight, Trial, bare_names, derive, draw_set, place_change

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.capabilities import Film
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.wire import Dispatcher, Serving, Wire

_AGENTS = "openfield.domains.doom.agents"
KEEPS_TIME = (
    "death_counts is false: agents are told the published score of the duel, by which a lost episode keeps the share "
    "of time left and an early death scores high; its performance is 0 here"
)


class DoomDomain(Domain[Any]):
    """What both tasks share."""

    version = 8
    """Raised whenever the same trial shows something else than before."""
    exports = {"seed": "openfield.domains.doom.exports:write_seed"}
    task: ClassVar[episode.DoomTask]
    words: ClassVar[str]
    """The task, for agents."""
    agents = {
        "reference": f"{_AGENTS}.reference:ReferenceAgent",
        "watchful": f"{_AGENTS}.watchful:WatchfulAgent",
        "learner": f"{_AGENTS}.learner:LearningAgent",
    }
    metrics = ("performance", "winning", "detection", "adaptation", "programme", "baseline", "characterisation")
    baseline = "reference"
    abrupt_settings = ("fog", "buckets", "bolt_speed", "closeness", "sentry_after", "respawn")
    extra, modules = "doom", ("vizdoom",)
    demo_agents = ("watchful", "learner")
    scripted_agent = "random"
    """An agent whose replies protocol 0.8 can carry: no belief before an episode's end."""
    gym_settings: Mapping[str, Any] = {"observation": "array", "training": 0, "episodes": MAX_EPISODES}
    gym_endless = True
    gym_vector = "openfield.gym.vector_env:ThreadedVectorEnv"
    limits = Limits(reply_seconds=60.0)

    def spec(self, trial: Trial) -> Spec:
        """Return the agent's knowledge: the task, the actions, and its observations unless they are feature vectors."""
        settings = self.settings_of(trial)
        names = episode.actions_of(self.task, settings)
        actions = Box(0, 1, (len(episode.buttons_of(names)),), "int8") if settings.buttons else Choice(names)
        return Spec(domain=self.name, task=self.words, actions=actions, observations=self._observations(settings))

    def _observations(self, settings: DoomSettings) -> Space | None:
        """Return the space of observations; None for feature vectors, whose lists have no fixed length."""
        from openfield.domains.doom.arrays import array_space, normalised_space
        from openfield.domains.doom.pictures import is_pictured, picture_spaces

        seen: dict[str, Space] = dict(picture_spaces(settings)) if is_pictured(settings) else {}
        if settings.observation == "features":
            return None
        if settings.observation == "pixels":
            return Fields(seen) if settings.buffers else seen["image"]
        array = array_space(getattr(settings, "map", self.task.name), settings.limit)
        array = normalised_space(array) if settings.normalised else array
        return Fields({"features": array, **seen}) if seen else array

    def phases(self, settings: DoomSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Compose the test phases of a trial whose order is not drawn."""
        return compose(settings, novelty, 0)

    def trials(
        self, count: int = 5, seed: int = 0, novelty: str | None = None, red_light: RedLight = False, **settings: Any
    ) -> list[Trial]:
        """Make the training trial, if there is training, and the test trials that start from the trained agent."""
        chosen = make_settings(self.settings, settings)
        names = self.novelty_names(novelty)
        training = self.training_trial(chosen, seed)
        roots = [derive(seed, self.name, number) for number in range(count)]
        blind = draw_set(chosen, settings, chosen.episodes, names, roots)
        tests = []
        for draw in blind.draws:
            phases = compose(chosen, draw.novelty, draw.seed, draw.onset)
            phases = place_change(phases, draw) if draw.later else phases
            trial = self.test_trial(chosen, draw.seed, phases, red_light, training)
            tests.append(replace(trial, scenario=blind.scenario, window=blind.window, windows=blind.windows))
        if chosen.share < 1 and any(trial.has_course for trial in tests):
            raise InvalidInput(
                f"A share of {chosen.share:g} and '{'+'.join(names)}' both say which episodes are novel: leave out "
                "'share'. A novelty may come 'with probability 0.5'."
            )
        self.check_courses(tests)
        return tests if training is None else [training, *tests]

    def training_trial(self, settings: DoomSettings, seed: int, phases: tuple[Phase, ...] = ()) -> Trial | None:
        """Make the trial of labelled episodes that every agent starts with; return None without training."""
        if not settings.training:
            return None
        chosen = phases or (Phase("training", settings.training),)
        return self.test_trial(settings, derive(seed, self.name, "training"), chosen, False, None)

    def test_trial(
        self, settings: DoomSettings, seed: int, phases: tuple[Phase, ...], red_light: RedLight, training: Trial | None
    ) -> Trial:
        """Make a trial with these phases, after a training trial if there is one.

        Raises:
            InvalidInput: A phase's settings leave too little room, or its novelty changes a setting that it may not
                or is undone by another.
        """
        trial = Trial(
            domain=self.name,
            version=self.version,
            seed=seed,
            phases=phases,
            settings=trial_settings(settings),
            red_light=red_light,
            limits=self.limits,
            after=None if training is None else training.id,
        )
        for phase in {phase.novelty: phase for phase in phases}.values():
            self.check_novelties(settings, phase.novelty)
            self.check_moment(settings, self.settings_in(trial, phase))
        return trial

    def check_moment(self, usual: DoomSettings, settings: DoomSettings) -> None:
        """Refuse settings that no episode can have, or not all episodes of a trial."""
        super().check_moment(usual, settings)
        check_shared(usual, settings)
        self.task.check_room(settings)

    def world(self, trial: Trial) -> World:
        """Make the world of a trial."""
        from openfield.domains.doom.world import DoomWorld

        return DoomWorld(self, trial)

    def expect(self, trials: Iterable[Trial]) -> None:
        """Plan one WAD for the maps of all these trials, so that one engine plays them."""
        from openfield.domains.doom.engine.shared_wad import expect_trials

        expect_trials(self, trials)

    def film(self, trial: Trial) -> Film:
        """Make a film of what the player saw, every other tick."""
        from openfield.domains.doom.world import film_trial

        return film_trial(self, trial)

    def detected(self, belief: Belief) -> bool:
        """Decide by the agent's own threshold if it names one, else by its level, else by one half."""
        threshold = belief.detail.get("threshold") if isinstance(belief.detail, dict) else None
        if isinstance(threshold, (int, float)) and isinstance(belief.novel, float):
            return belief.novel >= threshold
        return belief.level > 0 if belief.level is not None else says_novel(belief)

    def encode(self, observation: Any) -> Any:
        """Round positions to squares, by the same rule for features and for arrays, and leave out the time."""
        from openfield.domains.doom.arrays import ARRAY_SIZES
        from openfield.domains.doom.encode import coarse_array, coarse_features

        if isinstance(observation, dict) and "features" in observation:
            observation = observation["features"]  # beside an image
        if isinstance(observation, dict) and "player" in observation:
            return coarse_features(observation)
        sizes = [size for name, size in ARRAY_SIZES.items() if (name == "duel") is (self.task is episode.DUEL)]
        if isinstance(observation, list | np.ndarray) and len(observation) in sizes:
            return coarse_array(list(observation), self.task.name)
        return observation_key(observation)

    def characterise(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the published words for what these novelties change."""
        return [hint for name in bare_names(names) for hint in catalogue.classify_novelty(name)]

    def options(self, command: str) -> type[CommandOptions] | None:
        """Return the options of `serve`; other commands have none."""
        from openfield.domains.doom.options import DoomServeOptions, DuelServeOptions

        kind = DuelServeOptions if self.task is episode.DUEL else DoomServeOptions
        return kind if command == "serve" else None

    def remark(self, trial: Trial) -> str:
        """Say that dying keeps the time left, where it does."""
        return "" if self.settings_of(trial).death_counts else KEEPS_TIME

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return what says turns in words for language models and people."""
        from openfield.domains.doom.agents.doom_writer import DoomWriter

        return DoomWriter(spec)

    def play_page(self, trial: Trial) -> PlayPage:
        """Let a person play with keys and pictures, at the pace of the game."""
        from openfield.domains.doom.play_page import make_doom_page

        settings = self.settings_of(trial)
        return make_doom_page(episode.actions_of(self.task, settings), settings.buttons)

    def diagnose(self) -> str:
        """Say whether the memory layout of the installed vizdoom is not known, which makes ticks slower."""
        from openfield.domains.doom.engine.state_source import KNOWN_VERSIONS, describe_unknown

        try:
            known = metadata.version("vizdoom") in KNOWN_VERSIONS
        except metadata.PackageNotFoundError:
            known = True  # the table of extras says that it is missing
        return "" if known else describe_unknown()

    def wire(self) -> Wire:
        """Make the wire: protocol 0.8 over RabbitMQ."""
        from openfield.domains.doom.wire.amqp import AmqpWire

        return AmqpWire()

    def open_dispatcher(self, journal: Journal, trials: Sequence[Trial], serving: Serving) -> tuple[Wire, Dispatcher]:
        """Open the wire the options of `serve` ask for; the broker decides who may play."""
        from openfield.serving.dispatch import TrialDispatcher

        if serving.token is not None:
            raise InvalidInput("Protocol 0.8 has no place for a token: the broker's user and password let agents in.")
        return serving.options or self.wire(), TrialDispatcher(journal, self, trials, serving.agent, None)

    @property
    def scripted_peer(self) -> Callable[[str, int, Sequence[Reply]], Awaitable[None]] | None:
        """A client for the conformance kit that speaks the wire; None if there is no broker."""
        from openfield.domains.doom.wire.client import play_replies
        from openfield.domains.doom.wire.private_broker import has_broker, need_broker

        if not has_broker() and "OPENFIELD_AMQP" not in os.environ:
            return None
        url = need_broker()
        return lambda host, port, replies: play_replies(url, replies)


class DuelDomain(DoomDomain):
    """The first published task."""

    gym_name = "DoomDuel"
    name, title, settings, task = "doom", "Doom duel: kill one enemy fast", DuelSettings, episode.DUEL
    words = "Kill the enemy as fast as you can. You look along x; an enemy in your line of fire is hit."
    novelties = catalogue.DUEL
    default_novelty = "moving:medium"
    check_settings = {"training": 0, "episodes": 4, "before": 1, "limit": 60}
    demo_settings = {"training": 3, "episodes": 10, "limit": 400}
    demo_novelty = "mirrored"


class ArenaDomain(DoomDomain):
    """The larger task of the later phases."""

    gym_name = "DoomArena"
    agents = {**DoomDomain.agents, "random": f"{_AGENTS}.random:PersistentRandomAgent"}
    version = 9
    gym_settings = {**DoomDomain.gym_settings, "give_up": False}
    name, title, settings, task = "doom-arena", "Doom arena: kill all enemies", ArenaSettings, episode.ARENA
    words = "Kill all enemies as fast as you can; take packs, avoid traps. Turning is by 45 degrees."
    novelties = catalogue.ARENA
    default_novelty = "203:easy"
    check_settings = {"training": 0, "episodes": 2, "before": 1, "limit": 120}
    demo_settings = {"training": 8, "episodes": 12, "limit": 400}
    demo_novelty = "201:hard"


DUEL = DuelDomain()
"""The domain `doom`: one enemy."""
ARENA = ArenaDomain()
"""The domain `doom-arena`: several enemies and items."""
