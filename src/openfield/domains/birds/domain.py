"""The birds domain: its settings, novelties, agents, options and wire under one name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from openfield.core import Reply, Spec
from openfield.domain import Domain
from openfield.domains.birds.novelty import FOLDER_OF_LEVEL, NOVELTIES, describe_folders, family_of
from openfield.domains.birds.settings import BirdsSettings
from openfield.domains.birds.trials import (
    candidates,
    check_levels,
    level_files,
    list_trials,
    open_pool,
    refuse_endless,
    script_of,
)
from openfield.domains.birds.wire.server import BirdsWire
from openfield.errors import InvalidInput
from openfield.novelty import apply_novelties
from openfield.record import EpisodeEnd, action_key, observation_key
from openfield.settings import make_settings
from openfield.spaces import Box
from openfield.trial import Limits, Phase, RedLight, Trial, bare_names, refuse_blinding

if TYPE_CHECKING:
    from openfield.agents.play_page import PlayPage
    from openfield.agents.turn_writer import TurnWriter
    from openfield.capabilities import Film
    from openfield.domains.birds.world import BirdsWorld
    from openfield.journal.writer import Journal
    from openfield.options import CommandOptions
    from openfield.serving.dispatch import TrialDispatcher
    from openfield.serving.wire import Serving

_AGENTS = "openfield.domains.birds.agents"
TASK = (
    "Destroy all pigs of each level with the birds you have. A shot is a pixel to pull the bird to, or three numbers "
    "from -1 to 1: to the right, upwards, and when to use the bird's power."
)


class BirdsDomain(Domain[BirdsSettings]):
    """Physical reasoning with a slingshot."""

    name, version = "birds", 7
    title = "Birds shot at pigs, with laws of nature that may change"
    settings = BirdsSettings
    novelties = NOVELTIES
    agents = {
        "random": f"{_AGENTS}:RandomShooter",
        "naive": f"{_AGENTS}:NaiveShooter",
        "planner": f"{_AGENTS}:Planner",
        "detector": f"{_AGENTS}:make_passive_detector",
        "fall-detector": f"{_AGENTS}:make_fall_detector",
    }
    metrics = ("performance", "winning", "sets", "detection", "adaptation", "passive")
    default_novelty = demo_novelty = "gravity"
    extra, modules = "birds", ("Box2D", "defusedxml")
    demo_agents = ("planner", "detector")
    demo_settings = {"family": 1, "scenario": "single", "before": 8, "after": 8, "onset": "5-11"}
    check_settings = {"before": 5, "after": 7}
    shown_detail = ("novel",)  # the agent may see ids, but not which of them are novel
    scripted_agent = "naive"
    gym_settings = {"observe": "features"}
    gym_vector = "openfield.gym.process_vector_env:ProcessVectorEnv"
    limits = Limits(reply_seconds=600.0)
    commands = {
        "generate": "openfield.domains.birds.commands:generate",
        "import": "openfield.domains.birds.commands:import_results",
    }
    exports = {
        "logs": "openfield.domains.birds.exports:write_logs",
        "measures": "openfield.domains.birds.exports:write_measures",
        "detectors": "openfield.domains.birds.exports:write_detectors",
    }

    def spec(self, trial: Trial) -> Spec:
        """Return the agent's knowledge before the trial starts."""
        from openfield.domains.birds.game.ground_truth import FEATURE_ROWS, FEATURES
        from openfield.domains.birds.picture.thumbnail import SIDE

        settings = self.settings_of(trial)
        width, height = settings.screen_size
        spaces = {
            "image": Box(0, 255, (height, width, 3), "uint8"),
            "thumbnail": Box(0, 255, (SIDE, SIDE, 3), "uint8"),
            "features": Box(0, 1, (FEATURE_ROWS, FEATURES)),
        }
        seen = spaces.get(settings.observe)
        return Spec(domain=self.name, task=TASK, actions=Box(-1, 1, (3,)), observations=seen)

    def phases(self, settings: BirdsSettings, novelty: tuple[str, ...]) -> tuple[Phase, ...]:
        """Return training, then a test with an onset; the phases of configured trials are in their files."""
        script = [Phase("training", settings.training), Phase("test", settings.before)]
        script.append(Phase("test", settings.after, novelty))
        return tuple(phase for phase in script if phase.episodes)

    def trials(
        self, count: int = 5, seed: int = 0, novelty: str | None = None, red_light: RedLight = False, **settings: Any
    ) -> list[Trial]:
        """Draw trials by their seeds, or return those of a configuration; each has a digest of its levels."""
        chosen = make_settings(self.settings, settings)
        if chosen.config:
            refuse_blinding(chosen, f"The configuration {chosen.config}")
            if novelty not in (None, "none"):
                raise InvalidInput("A configuration defines its own novelties: use either --novelty or --config.")
            made = list_trials(chosen, seed, self.name, self.version)
            return [replace(trial, red_light=red_light or trial.red_light, limits=self.limits) for trial in made]
        if chosen.trial or chosen.trial_list or chosen.told != "all":
            raise InvalidInput("Only the trials of a configuration can be chosen: add --config.")
        changes = apply_novelties(NOVELTIES, bare_names(self.novelty_names(novelty)), BirdsSettings()).changes
        chosen = replace(chosen, family=chosen.family or family_of(changes) or 1, endless=False)
        given = {name: getattr(chosen, name) for name in {*settings, "family", "endless"} - {"preset"}}
        given |= {name: value for name, value in settings.items() if name == "preset"}
        made = super().trials(count, seed, novelty, red_light, **given)
        pool = open_pool(chosen)
        if chosen.levels:
            check_levels(pool, candidates(chosen, pool))
        files = level_files(chosen, pool)
        return [replace(trial, files=files) for trial in made]

    def options(self, command: str) -> type[CommandOptions]:
        """Return the options of the original game and its servers."""
        from openfield.domains.birds.options import BirdsOptions, BirdsServeOptions

        return BirdsServeOptions if command == "serve" else BirdsOptions

    def lists_trials(self, settings: BirdsSettings) -> str:
        """Return why a number of trials cannot be given beside a configuration; empty without one."""
        problem = "lists its trials: use either --trials or --config. To play some of them: --trial 0, or --trial 0-4."
        return f"{settings.config} {problem}" if settings.config else ""

    def check_end(self, settings: BirdsSettings, seed: int) -> None:
        """Raise `InvalidInput` if a trial never ends; only wires and people may play such a trial."""
        refuse_endless(settings, seed)

    def world(self, trial: Trial) -> BirdsWorld:
        """Return the world of a trial."""
        from openfield.domains.birds.world import BirdsWorld

        settings = self.settings_of(trial)
        pool, moments = open_pool(settings), [] if settings.config else self.list_moments(trial)
        return BirdsWorld(trial, script_of(trial, settings, pool, moments), pool, settings, moments)

    def turn_writer(self, spec: Spec) -> TurnWriter:
        """Return what says turns in words for language models and people."""
        from openfield.domains.birds.agents.birds_writer import BirdsWriter

        return BirdsWriter(spec)

    def play_page(self, trial: Trial) -> PlayPage:
        """Let a person pull the sling in a browser."""
        from openfield.domains.birds.play_page import SlingPage

        return SlingPage()

    def film(self, trial: Trial) -> Film:
        """Return a film of the levels, thirty pictures a second."""
        from openfield.domains.birds.world import film_world

        return film_world(self.world(trial))

    async def scripted_peer(self, host: str, port: int, replies: Sequence[Reply]) -> None:
        """Play given replies over the wire, for the conformance kit."""
        from openfield.domains.birds.wire.remote_agent import play_replies

        await play_replies(host, port, replies)

    def wire(self) -> BirdsWire:
        """Return the wire protocol of the original game."""
        return BirdsWire()

    def open_dispatcher(
        self, journal: Journal, trials: Sequence[Trial], serving: Serving
    ) -> tuple[BirdsWire, TrialDispatcher]:
        """Return the wire, which checks the token because agents send it as their team number, and the dispatcher."""
        from openfield.serving.dispatch import TrialDispatcher

        wire = BirdsWire(agent=serving.agent, token=serving.token, **(serving.options or {}))
        return wire, TrialDispatcher(journal, self, trials, serving.agent, None)

    def describe(self, names: Sequence[str]) -> str:
        """Describe novelties; those of a configuration by the folders of their levels."""
        folders = [name for name in names if name.startswith(FOLDER_OF_LEVEL)]
        own = [name for name in names if name not in folders]
        return "; ".join([*([super().describe(own)] if own or not folders else []), *describe_folders(folders)])

    def encode(self, observation: Any) -> Any:
        """Return ground truth and its compact form as classes and squares; other observations as they are."""
        from openfield.domains.birds.encode import coarse_table, coarse_truth

        if isinstance(observation, np.ndarray) and observation.dtype == np.float32:
            return coarse_table(observation)
        return coarse_truth(observation) if isinstance(observation, list) else observation_key(observation)

    def encode_action(self, action: Any) -> Any:
        """Return a shot by its direction and tap; other actions as they are."""
        from openfield.domains.birds.encode import coarse_action

        return coarse_action(action) or action_key(action)

    def progress(self, episode: EpisodeEnd) -> str:
        """Return the result and the score of the last level."""
        detail = episode.detail or {}
        return f"{detail.get('status', '')} {detail.get('score', 0):,}"


DOMAIN = BirdsDomain()
"""The domain `birds`, as `openfield.registry.find_domain("birds")` returns it."""
