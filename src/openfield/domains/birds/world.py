"""The birds world: turns the harness of a trial and the level in play into turns.

A turn asks READY when a trial, a set or a level begins, ACT in a level, BELIEF for a report, and NONE when a level has
ended. A reply to "a level begins" may choose one (`Load`); any other reply loads the next available one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from openfield.capabilities import Film
from openfield.core import Ask, Ending, Reply, Truth, Turn
from openfield.domains.birds.actions import (
    Action,
    Leave,
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
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Laws
from openfield.domains.birds.harness import RESTING, EvaluationScript, Harness, HarnessState
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.novelty import change_level
from openfield.domains.birds.picture.film import FPS, LevelFilm
from openfield.domains.birds.queries import answer_query
from openfield.domains.birds.settings import BirdsSettings
from openfield.domains.birds.trials import LevelMoment
from openfield.errors import AgentProtocol
from openfield.trial import Trial, derive, show_light

BEGINS = {
    HarnessState.NEW_TRIAL: "trial",
    HarnessState.NEW_TRAINING_SET: "training set",
    HarnessState.NEW_TEST_SET: "test set",
    HarnessState.RESUME_TRAINING: "training goes on",
}
PATIENCE = 1.0
"""Seconds that pass when a shot is refused while something moves; else an agent that only shoots would never go on."""
STATUS = {"won": "Pass", "lost": "Fail", "playing": "Playing"}
Shown = Literal["set", "menu", "level", "belief", "end"]


class BirdsWorld:
    """The world of a birds trial."""

    timed = True

    def __init__(
        self,
        trial: Trial,
        script: EvaluationScript,
        pool: LevelPool,
        settings: BirdsSettings,
        moments: Sequence[LevelMoment] = (),
    ) -> None:
        """Prepare a trial.

        Args:
            trial: The trial.
            script: Its levels.
            pool: Where the levels are.
            settings: The settings of the normal world.
            moments: What is true of each level, in the order of the script; nothing of a configured trial.
        """
        self._trial, self._pool, self.settings = trial, pool, settings
        self._moments = moments
        self._script = msgspec.structs.replace(script, informed=script.informed or bool(trial.red_light))
        self.truth = Truth()

    @property
    def over(self) -> bool:
        """True if the trial has ended."""
        return self.harness.over

    @property
    def lingers(self) -> bool:
        """True if a level has ended and the agent has not gone on yet."""
        return self._shown == "end" and self._wanted is None and self._ended is not None

    def stays(self, reply: Reply) -> bool:
        """Return whether a reply only adds words about the level that has ended; its end is shown again then."""
        return self.lingers and isinstance(self._read(reply.action), Stay)

    def reset(self) -> Turn:
        """Announce the trial."""
        self.harness: Harness = Harness(self._script, self.settings)
        self.in_play: LevelInPlay | None = None
        self.result: int = 0
        """The result of the last command: 1 or 0, or the number of the level that was loaded."""
        self._shown: Shown = "set"
        self._ended: Ending | None = None
        self._wanted: Load | Restart | None = None  # why the agent leaves a level, until its end was shown
        self._first = False
        self._loads = self._interactions = 0
        return self._turn(0.0)

    def step(self, reply: Reply) -> Turn:
        """Take a reply and return the next turn."""
        action = self._read(reply.action)
        self.harness.spend(reply.took)
        if self.stays(reply):
            return self._latest
        if self._shown != "end":  # the end of a level asks for nothing, so the result before it stands
            self.result = 0
        score = self.in_play.game.score if self.in_play is not None else 0
        if not self._too_late():
            self._take(action)
        self._update()
        same = self._shown == "level" and self.in_play is not None and not self._first
        return self._turn(float(self.in_play.game.score - score) if same and self.in_play is not None else 0.0)

    def look(self, query: str) -> Any:
        """Read a state, a score, ground truth or a picture; module `queries` lists what there is."""
        return answer_query(self, query)

    def closing_replies(self) -> list[Reply] | None:
        """Return the replies that end the level of an agent that has hung up; None if it may not leave here."""
        if not self.harness.may_leave:
            return None
        left = [Reply(msgspec.to_builtins(Leave()))] if self._shown == "level" else []
        return [*left, Reply()] if self._shown in ("level", "end") else []

    def close(self) -> None:
        """Keep the last level: agents may look at it after the end of the trial."""

    def _read(self, action: Any) -> Action | None:
        """Read an action; outside a level anything else is ignored."""
        if action is None or self._shown == "belief":
            return None
        try:
            return read_action(action)
        except AgentProtocol:
            if self._shown == "level":
                raise
            return None

    def _too_late(self) -> bool:
        """Return whether the time ran out before the reply, so that there is nothing left to act on."""
        stage = self.harness.stage
        if self._shown in ("level", "menu"):
            self.harness.update()
        return self.harness.stage is not stage

    def _take(self, action: Action | None) -> None:
        match self._shown:
            case "belief":
                self.harness.report_pending = False
            case "set" if not isinstance(action, Stay):
                self.harness.ready()
                self.in_play = None
            case "menu":
                self._choose(action)
            case "end":
                wanted, self._wanted, self._ended = self._wanted, None, None
                if wanted is not None:  # the last level was left for another one
                    self._choose(wanted)
            case "level" if action is not None:
                self._act(action)

    def _choose(self, action: Action | None) -> None:
        """Load the level that the agent wants, or the next one."""
        match action:
            case Restart():
                self._start(self.harness.restart())
            case Load() if action.level:
                self._start(self.harness.load(action.level - 1))
            case Stay() | Zoom() | Wait() | Watch() | Leave():
                pass
            case _:
                self._start(self.harness.load())

    def _act(self, action: Action) -> None:
        """Act in a level; a level that is left for another one ends first, the other one is loaded after that."""
        match action:
            case Restart() if self.harness.may_restart:
                self._wanted, self._ended = action, "truncated"
            case Load() if self.harness.find(action.level - 1 if action.level else None) is not None:
                self._wanted, self._ended = action, "truncated"
            case Load() | Restart():
                self._choose(action)
            case Leave():
                self.harness.leave_level()
            case Stay():
                pass
            case _:
                self._play(action)

    def _play(self, action: Shot | SlingshotLaunch | Zoom | Wait | Watch) -> None:
        in_play = self.in_play
        if in_play is None:
            return
        start = in_play.game.seconds
        self.result = 1
        match action:
            case Shot() | SlingshotLaunch():
                self.result = int(self.harness.may_shoot and in_play.shoot(action))
                if self.result:
                    self.harness.interact()
                elif in_play.moving:
                    in_play.wait(PATIENCE)
            case Zoom():
                in_play.zoom(action.way)
            case Wait():
                in_play.wait(action.seconds)
            case Watch():
                in_play.watch(action.every, action.frames)
        self.harness.spend(in_play.game.seconds - start)

    def _start(self, index: int | None) -> None:
        if index is None:
            return
        name, _, changes = self.harness.level_name.partition("#")
        usual = msgspec.structs.replace(self._pool.level(name), laws=Laws(**self.settings.laws))
        level = change_level(usual, changes.split("+") if changes else [])
        self._loads += 1
        self.in_play = LevelInPlay(
            level,
            self.settings,
            derive(self._trial.seed, "level", self._loads),
            name=self.harness.level_name,
            index=index,
            set_number=self.harness.set_number,
        )
        self.result, self._first = index + 1, True
        self.harness.spend(self.in_play.game.seconds)

    def _update(self) -> None:
        """Tell the harness how the level went, and note whether the level ended or was cut short."""
        harness, playing = self.harness, self.harness.stage is HarnessState.PLAYING
        if playing:
            self._interactions = harness.current.interactions  # read now: the harness may go on to another set below
        if self._wanted is not None:
            return
        if playing and self.in_play is not None and self.in_play.game.state != "playing":
            harness.end_level(self.in_play.game.state == "won", self.in_play.game.score)
            self._ended = "terminated"
        was_playing = playing or self._shown == "level"
        harness.update()
        if was_playing and harness.stage is not HarnessState.PLAYING and self._ended is None:
            self._ended = "truncated"

    def _turn(self, reward: float) -> Turn:
        harness = self.harness
        if harness.report_pending:
            return self._show("belief", Ask.BELIEF, reward)
        if self._ended is not None or harness.over:
            return self._show("end", Ask.NONE, reward)
        if harness.stage in BEGINS:
            return self._show("set", Ask.READY, 0.0, {"begins": BEGINS[harness.stage], **harness.current.facts})
        if harness.stage in RESTING:
            return self._show("menu", Ask.READY, 0.0, {"begins": "level", **harness.current.menu})
        return self._show("level", Ask.ACT, reward)

    def _show(self, shown: Shown, ask: Ask, reward: float, announced: dict[str, Any] | None = None) -> Turn:
        """Make the next turn; it shows the level in play, or an announcement."""
        self._shown = shown
        seen = announced if announced or self.in_play is None else self.in_play.observation()
        first, self._first = self._first, False
        cut_short_between = shown == "end" and self._ended is None  # the time ran out between levels
        shows_level = shown in ("level", "belief", "end") and not cut_short_between
        level = self.in_play if shows_level else None
        testing = self.harness.current.testing if level is None else level.set_number > 0
        moment = None if level is None else self._find_moment(level)
        novel = level is not None and (level.novel if moment is None else moment.novel)
        strength, change = (None, "") if moment is None else (moment.strength, moment.change)
        ended, feedback = shown == "end", None
        if level is not None:
            feedback = {"accepted": self.result, "score": level.game.score, "state": level.game.state}
        self.truth = Truth(
            novel=novel,
            episode_over=ended,
            performance=None if level is None else float(level.game.state == "won"),
            detail=None if level is None else self._detail(level),
            strength=strength,
            change=change,
        )
        self._latest = Turn(
            ask=ask,
            observation=seen,
            reward=reward,
            feedback=feedback,
            phase="test" if testing else "training",
            first=first,
            last=(self._ended or "truncated") if ended else None,
            red_light=show_light(self._trial.red_light or self._script.informed, novel, strength),
        )
        return self._latest

    def _find_moment(self, level: LevelInPlay) -> LevelMoment | None:
        """Return what is true of a level if its trial records a strength, else None."""
        training = len(self._script.training.levels)
        place = level.index + (training if level.set_number else 0)
        moment = self._moments[place] if place < len(self._moments) else None
        return None if moment is None or moment.strength is None else moment

    def _detail(self, level: LevelInPlay) -> dict[str, Any]:
        """Return what the record keeps of a level."""
        game = level.game
        return {
            **({"set": level.set_number} if self.settings.config else {}),
            **({"novel": level.novel_ids} if level.novel else {}),
            "level": level.name,
            "index": level.index,
            "score": game.score,
            "status": STATUS[game.state],
            "won": game.state == "won",
            "birds": [len(game.queue), len(game.level.birds)],
            "pigs": [game.pigs, game.pigs_at_start],
            "interactions": self._interactions,
        }


def film_world(world: BirdsWorld) -> Film:
    """Make a film of a world, from the first call of `pictures` on."""
    watched: Game | None = None
    film: LevelFilm | None = None

    def pictures() -> Iterator[Any]:
        nonlocal watched, film
        level, playing = world.in_play, world.harness.stage is HarnessState.PLAYING
        if level is not None and playing and level.game is not watched:
            watched, film = level.game, LevelFilm(level.game)
        return iter(()) if film is None else film.take()

    return Film(world, pictures, 1000 / FPS)
