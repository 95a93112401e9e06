"""The world of a trial: its episodes one after the other, on one engine.

Start here to see how the parts of the domain work together.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openfield.capabilities import Film
from openfield.core import Ask, Belief, PhaseName, Reply, Truth, Turn
from openfield.domains.doom import features, pictures
from openfield.domains.doom.agents.reference import ReferencePolicy
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine.launch import EngineView
from openfield.domains.doom.engine.shared_wad import WadLocation, locate_map
from openfield.domains.doom.episode import ARENA, DoomEpisode, DoomTask
from openfield.domains.doom.maps.scenario import MapLayout, map_name
from openfield.domains.doom.novelty import MAX_LEVEL, hints_of
from openfield.domains.doom.trials import TrialScript
from openfield.errors import AgentProtocol
from openfield.trial import Phase, Trial, derive, show_light

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain
    from openfield.journal.reader import Episode

NO_REWARD = Turn().reward
FILM_SIZE = "320x240"
"""The size of a film's pictures, unless the agent sees pictures itself."""
FILM_TICKS = 2
"""Ticks per picture of a film: an episode of 2,000 ticks fits into one."""
FILM_MILLISECONDS = 60
"""How long a picture is shown: about as fast as the game is."""
PHASES: dict[str, PhaseName] = {"training": "training", "test": "test"}
"""The record leaves out defaults by identity, so a name from another process must become the same object."""


class DoomWorld:
    """Plays the episodes of a trial."""

    def __init__(self, domain: DoomDomain, trial: Trial, filmed: bool = False) -> None:
        """Prepare a trial; if `filmed`, the engine draws pictures for people, also where agents see none."""
        self._domain = domain
        self._task: DoomTask = domain.task
        self.trial = trial
        """The trial that is played."""
        usual = domain.settings_of(trial)
        self._pictured = pictures.is_pictured(usual)
        size = usual.image_size if self._pictured else FILM_SIZE if filmed else ""
        self._view = EngineView(size, usual.buffers)
        self.image_colour: str = usual.image_colour
        """The colours of the images that agents see."""
        self._images: dict[str, pictures.Image] = {}
        self._script = TrialScript(domain, trial)
        self._engine: engines.Engine | None = None
        self._begin_after = -1, 0, False  # which episode came before, its last tick, and whether one was novel
        self._number, self._ticks, self._onset_passed = self._begin_after
        self.truth = Truth()

    @property
    def over(self) -> bool:
        """True when no episode follows the current one."""
        return self._number + 1 >= len(self._script)

    def reset(self) -> Turn:
        """Start the first episode."""
        if self._engine is None:
            self._engine = engines.take_engine(self._maps.wad, self._view)
        self._number, self._ticks, self._onset_passed = self._begin_after
        return self._next()

    def skip(self, episodes: Sequence[Episode]) -> bool:
        """Let `reset` begin after these recorded episodes: each has its own seed, and only the ticks are counted on."""
        ticks = [each.detail.get("ticks") if isinstance(each.detail, dict) else None for each in episodes]
        known = [count for count in ticks if isinstance(count, int)]
        if len(known) < len(ticks) or len(ticks) >= len(self._script):
            return False
        novel = any(moment.novel for moment in self._script.moments[: len(ticks)])
        self._begin_after = len(ticks) - 1, sum(known), novel
        return True

    def leave_episode(self) -> bool:
        """Let `reset` begin the next episode, on the same engine; return False if there is none."""
        self._begin_after = self._number, self._ticks, self._onset_passed
        return not self.over

    def step(self, reply: Reply) -> Turn:
        """Take an action in the episode, or start the next episode."""
        episode = self._episode
        if episode.ended is not None:
            return self._next()
        before = episode.ticks
        episode.move(reply.action)
        self._ticks += episode.ticks - before
        return self._turn() if episode.ended is None else self._last_turn()

    def check_belief(self, belief: Belief) -> None:
        """Refuse a prediction above the highest level.

        Raises:
            AgentProtocol: The level is too high.
        """
        if belief.level is not None and belief.level > MAX_LEVEL:
            raise AgentProtocol(f"the novelty prediction is {belief.level}, not a level up to {MAX_LEVEL}")

    def look(self, query: str) -> Any:
        """Return what the player sees as an array of red, green and blue, for the query `picture`."""
        if self._engine is None or query != "picture":
            return None
        return self._engine.pictures(("image",)).get("image")

    def close(self) -> None:
        """Release the engine for the next world."""
        if self._engine is not None:
            engines.release_engine(self._engine)
            self._engine = None

    @functools.cached_property
    def _maps(self) -> WadLocation:
        """Where the maps of the current part of the trial are, at first of that with the first episode."""
        return self._locate(self._begin_after[0] + 1)

    def _locate(self, number: int) -> WadLocation:
        self._part = self._script.part(number)
        return locate_map(self._domain, self.trial, self._script, number)

    def _next(self) -> Turn:
        self._number += 1
        number, script = self._number, self._script
        seed, settings, layout = script.seeds[number], script.settings[number], script.layout(number)
        if self._engine is None:
            raise RuntimeError("the world is closed")
        if number not in self._part:  # the next part of a long trial
            self._engine.close()
            self._maps = self._locate(number)
            self._engine = engines.take_engine(self._maps.wad, self._view)
        phase = script.phases[number]
        self._phase = PHASES[phase.name]
        self._moment = moment = script.moments[number]
        self._novel = moment.novel
        self._labelled = self._phase == "training" and not self._novel
        self._onset_passed |= self._novel
        self._light = self._indicator()
        self._settings = settings
        name = map_name(self._maps.first + number)
        self._episode = DoomEpisode(self._task, self._engine, name, seed, settings, layout)
        self._reference = ReferencePolicy(self._task.name, layout.walls(), random.Random(derive(seed, "reference")))
        return self._first_turn(phase, layout)

    def _first_turn(self, phase: Phase, layout: MapLayout) -> Turn:
        """Return the first turn of an episode: with the facts that an arena gives only once, and without feedback."""
        observation = self._observe()
        if self._task is ARENA and self._settings.observation == "features":
            hints = hints_of(phase.novelty if self._novel else (), getattr(self._settings, "hint_level", -1))
            observation.update(features.first_features(layout.walls(), hints))
        self.truth = self._true()
        return Turn(
            observation=observation,
            feedback=self._label() if self._labelled else None,
            phase=self._phase,
            first=True,
            red_light=self._light,
        )

    def _turn(self) -> Turn:
        """Return a turn within an episode. There are many: every line here costs speed."""
        self.truth = self._true()
        feedback: dict[str, Any] = {"performance": self._episode.performance}
        if self._labelled:
            feedback.update(self._label())
        return Turn(
            observation=self._observe(),
            reward=self._episode.reward or NO_REWARD,
            feedback=feedback,
            phase=self._phase,
            red_light=self._light,
        )

    def _last_turn(self) -> Turn:
        """Return the last turn of an episode."""
        episode = self._episode
        detail: dict[str, Any] = {"won": episode.won, "ticks": episode.ticks}
        if not self._settings.death_counts:
            detail["score"] = episode.performance
        self.truth = self._true(episode_over=True, detail=detail)
        return Turn(
            ask=Ask.NONE,
            observation=self._observe(),
            reward=episode.reward or NO_REWARD,
            feedback={"performance": episode.performance},
            phase=self._phase,
            last=episode.ended,
            red_light=self._light,
        )

    def _true(self, **more: Any) -> Truth:
        """Return what is true now."""
        moment, performance = self._moment, 0.0 if self._episode.lost else self._episode.performance
        if moment.strength is None:
            return Truth(novel=moment.novel, performance=performance, **more)
        return Truth(
            novel=moment.novel, performance=performance, strength=moment.strength, change=moment.change, **more
        )

    def _observe(self) -> Any:
        """Return what the agent sees: numbers, a picture, or both."""
        if not self._pictured:
            return self._episode.observe(self._ticks)
        images = self._see()
        if self._settings.observation == "pixels":
            return images if self._view.buffers else images["image"]
        shown = self._episode.observe(self._ticks)
        return {**shown, **images} if isinstance(shown, dict) else {"features": shown, **images}

    def _see(self) -> dict[str, pictures.Image]:
        """Return the player's view; after its death, when the engine draws nothing, its last view."""
        found = {} if self._engine is None else self._engine.pictures()
        for name, picture in found.items():
            coloured = name in ("image", "automap")
            self._images[name] = pictures.convert_colours(picture, self.image_colour) if coloured else picture
        return dict(self._images)

    def _label(self) -> dict[str, Any]:
        """Return what the reference agent would do now."""
        return {"label": {"action": self._reference.choose(self._episode.state)}}

    def _indicator(self) -> bool | float | None:
        """Return the red light: on in novel episodes, or from the onset on if `light_stays` and the change does too."""
        strength = self._script.moments[self._number].strength
        stays = self._script.settings[self._number].light_stays and strength is None
        return show_light(self.trial.red_light, self._onset_passed if stays else self._novel, strength)


def film_trial(domain: DoomDomain, trial: Trial) -> Film:
    """Make a film of a trial: its world on an engine that draws for people, and every other picture."""
    world = DoomWorld(domain, trial, filmed=True)
    ticks = itertools.count()

    def pictures() -> Iterator[Any]:
        if not next(ticks) % FILM_TICKS and not world.truth.episode_over:  # after an episode's end nothing is drawn
            yield world.look("picture")

    return Film(world, pictures, FILM_MILLISECONDS, world.skip)
