"""The birds world: a trial's harness and the level in play, as turns.

Stands between rollout and game. A trial, set or level begins: READY; a level is on: ACT; a question: BELIEF; a level
ended: NONE. A reply to "a level begins" may choose one (`Load`); any other loads the next available.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal

import msgspec

from openfield.core import Ask, Ending, Reply, Truth, Turn
from openfield.domains.birds.actions import (
    Action,
    Load,
    Restart,
    Shot,
    SlingshotLaunch,
    Stay,
    Wait,
    Watch,
    Zoom,
    read_action,
)
from openfield.domains.birds.evaluation.harness import RESTING, Harness, HarnessOptions, HarnessState
from openfield.domains.birds.evaluation.script import EvaluationScript
from openfield.domains.birds.files.pool import LevelPool, is_novel
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.novelty import change_level
from openfield.domains.birds.queries import LOOKS
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import AgentProtocol, UnknownName
from openfield.trial import Trial, derive

BEGINS = {
    HarnessState.NEW_TRIAL: "trial",
    HarnessState.NEW_TRAINING_SET: "training set",
    HarnessState.NEW_TEST_SET: "test set",
    HarnessState.RESUME_TRAINING: "training goes on",
}
PATIENCE = 1.0
"""Seconds that pass when a shot is refused while things move: who only shoots would else wait for ever."""
STATUS = {"won": "Pass", "lost": "Fail", "playing": "Playing"}
Shown = Literal["set", "menu", "level", "belief", "end"]


class Place(msgspec.Struct, frozen=True):
    """Which level is in play, and where it stands in the trial."""

    index: int
    name: str
    testing: bool

    @property
    def novel(self) -> bool:
        """Whether it differs from a normal level."""
        return "#" in self.name or is_novel(self.name)


class BirdsWorld:
    """A trial of birds."""

    timed = True
    harness: Harness
    arena: LevelInPlay | None
    place: Place | None
    result: int
    """What the last command came to: 1 or 0, or the number of the level that was loaded."""

    def __init__(self, trial: Trial, script: EvaluationScript, pool: LevelPool, settings: BirdsSettings) -> None:
        self._trial, self._pool, self.settings = trial, pool, settings
        self._script = msgspec.structs.replace(script, informed=script.informed or trial.red_light)
        self._options = HarnessOptions(
            count_loads=settings.count_loads,
            checkpoint_policy=settings.checkpoint_policy,
            repeat_unlimited=settings.repeat_unlimited,
            finish_levels=settings.finish_levels,
        )
        self.truth = Truth()

    @property
    def over(self) -> bool:
        """Whether the trial has ended."""
        return self.harness.over

    @property
    def lingers(self) -> bool:
        """Whether a level has ended and what comes next waits for the agent, be it the end of the trial."""
        return self._shown == "end" and self._wanted is None and self._ended is not None

    def stays(self, reply: Reply) -> bool:
        """Whether a reply only says something of the level that has ended, which is shown again then."""
        return self.lingers and isinstance(self._read(reply.action), Stay)

    def reset(self) -> Turn:
        """Announces the trial."""
        self.harness = Harness(self._script, self._options)
        self.arena, self.place = None, None
        self.result = 0
        self._shown: Shown = "set"
        self._ended: Ending | None = None
        self._wanted: Load | Restart | None = None  # what the agent left a level for, until that level is booked
        self._first = False
        self._loads = self._interactions = 0
        return self._turn(0.0)

    def step(self, reply: Reply) -> Turn:
        """Takes a reply; who stays where a level has ended is shown its end again."""
        action = self._read(reply.action)
        self.harness.spend(reply.took)
        if self.stays(reply):
            return self._latest
        if self._shown != "end":  # there nothing was asked for: what was done before it stands
            self.result = 0
        score = self.arena.game.score if self.arena is not None else 0
        if not self._too_late():
            self._take(action)
        self._keep_books()
        same = self._shown == "level" and self.arena is not None and not self._first
        return self._turn(float(self.arena.game.score - score) if same and self.arena is not None else 0.0)

    def look(self, query: str) -> Any:
        """Reads something: a state, a score, ground truth, a picture; `LOOKS` lists the queries."""
        if query not in LOOKS:
            raise UnknownName("thing to look at", query, LOOKS, label="Known")
        return LOOKS[query](self)

    def close(self) -> None:
        """Leaves the last level as it is: agents look at it when all is over, and it goes with the world."""

    def _read(self, action: Any) -> Action | None:
        """An action where one counts; where something begins or a level ended any reply will do."""
        if action is None or self._shown == "belief":
            return None
        if self._shown == "level":
            return read_action(action)
        with suppress(AgentProtocol):
            return read_action(action)
        return None

    def _too_late(self) -> bool:
        """Whether the time ran out while the agent thought, so that there is nothing left to act on."""
        stage = self.harness.stage
        if self._shown in ("level", "menu"):
            self.harness.update()
        return self.harness.stage is not stage

    def _take(self, action: Action | None) -> None:
        match self._shown:
            case "belief":
                self.harness.report()
            case "set" if not isinstance(action, Stay):
                self.harness.ready()
                self.arena = self.place = None
            case "menu":
                self._choose(action)
            case "end":
                self._go_on()
            case "level" if action is not None:
                self._act(action)

    def _choose(self, action: Action | None) -> None:
        """Between levels: loads the one that is wanted, or whatever comes next."""
        match action:
            case Restart():
                self._start(self.harness.restart())
            case Load() if action.level:
                self._start(self.harness.load(action.level - 1))
            case Stay() | Zoom() | Wait() | Watch():
                pass
            case _:
                self._start(self.harness.load())

    def _act(self, action: Action) -> None:
        """In a level. Leaving it for another ends it first; the other is loaded when that is booked."""
        match action:
            case Load():
                if self.harness.find(action.level - 1 if action.level else None) is not None:
                    self._wanted, self._ended = action, "truncated"
                else:
                    self.harness.load(action.level - 1 if action.level else None)
            case Restart():
                if self.harness.may_restart:
                    self._wanted, self._ended = action, "truncated"
                else:
                    self.harness.restart()
            case Stay():
                pass
            case _:
                self._play(action)

    def _play(self, action: Shot | SlingshotLaunch | Zoom | Wait | Watch) -> None:
        arena = self.arena
        if arena is None:
            return
        start = arena.game.seconds
        self.result = 1
        match action:
            case Shot() | SlingshotLaunch():
                self.result = int(self.harness.may_shoot and arena.shoot(action))
                if self.result:
                    self.harness.interact()
                elif arena.moving:
                    arena.wait(PATIENCE)
            case Zoom():
                arena.zoom(action.way)
            case Wait():
                arena.wait(action.seconds)
            case Watch():
                arena.watch(action.every, action.frames)
        self.harness.spend(arena.game.seconds - start)

    def _go_on(self) -> None:
        """After a level was booked: loads what it was left for."""
        wanted, self._wanted, self._ended = self._wanted, None, None
        if wanted is not None:
            self._choose(wanted)

    def _start(self, index: int | None) -> None:
        if index is None:
            return
        name, _, changes = self.harness.level_name.partition("#")
        level = change_level(self._pool.level(name), changes.split("+") if changes else [])
        self._loads += 1
        self.arena = LevelInPlay(level, self.settings, derive(self._trial.seed, "level", self._loads))
        self.place = Place(index, self.harness.level_name, self.harness.current.testing)
        self.result, self._first = index + 1, True
        self.harness.spend(self.arena.game.seconds)

    def _keep_books(self) -> None:
        """Tells the harness how the level went, and notes if it ended or was cut short."""
        harness, playing = self.harness, self.harness.stage is HarnessState.PLAYING
        if playing:
            self._interactions = harness.current.interactions  # of the set this level is in: it may move on now
        if self._wanted is not None:
            return
        if playing and self.arena is not None and self.arena.game.state != "playing":
            harness.end_level(self.arena.game.state == "won", self.arena.game.score)
            self._ended = "terminated"
        was_playing = playing or self._shown == "level"
        harness.update()
        if was_playing and harness.stage is not HarnessState.PLAYING and self._ended is None:
            self._ended = "truncated"

    def _turn(self, reward: float) -> Turn:
        harness = self.harness
        if harness.report_pending:
            return self._show("belief", Ask.BELIEF, self._observation(), reward)
        if self._ended is not None or harness.over:
            return self._show("end", Ask.NONE, self._observation(), reward)
        if harness.stage in BEGINS:
            return self._show("set", Ask.READY, {"begins": BEGINS[harness.stage], **harness.current.facts}, 0.0)
        if harness.stage in RESTING:
            return self._show("menu", Ask.READY, {"begins": "level", **harness.current.menu}, 0.0)
        return self._show("level", Ask.ACT, self._observation(), reward)

    def _show(self, shown: Shown, ask: Ask, observation: Any, reward: float) -> Turn:
        self._shown = shown
        first, self._first = self._first, False
        cut_short_between = shown == "end" and self._ended is None  # the time ran out while no level was on
        in_level = shown in ("level", "belief", "end") and self.place is not None and not cut_short_between
        testing = self.place.testing if in_level and self.place is not None else self.harness.current.testing
        novel = self.place.novel if in_level and self.place is not None else False
        ended = shown == "end"
        self.truth = Truth(
            novel=novel,
            episode_over=ended,
            performance=self._performance() if in_level else None,
            detail=self._detail() if in_level else None,
        )
        self._latest = Turn(
            ask=ask,
            observation=observation,
            reward=reward,
            feedback=self._feedback() if in_level else None,
            phase="test" if testing else "training",
            first=first,
            last=(self._ended or "truncated") if ended else None,
            red_light=novel if self._script.informed else None,
        )
        return self._latest

    def _observation(self) -> Any:
        return None if self.arena is None else self.arena.observation()

    def _feedback(self) -> dict[str, Any] | None:
        if self.arena is None:
            return None
        return {"accepted": self.result, "score": self.arena.game.score, "state": self.arena.game.state}

    def _performance(self) -> float:
        return float(self.arena is not None and self.arena.game.state == "won")

    def _detail(self) -> dict[str, Any]:
        """What is kept of a level."""
        if self.arena is None or self.place is None:
            return {}
        game = self.arena.game
        novel = {"novel": self.arena.novel_ids} if self.place.novel else {}
        return {
            **novel,
            "level": self.place.name,
            "index": self.place.index,
            "score": game.score,
            "status": STATUS[game.state],
            "birds": [len(game.queue), self.arena.birds_at_start],
            "pigs": [game.pigs, game.pigs_at_start],
            "interactions": self._interactions,
        }
