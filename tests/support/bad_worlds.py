"""Worlds that break one promise each; the conformance kit must name the promise."""

from __future__ import annotations

import random
import time
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

import openfield as of
from openfield.errors import AgentProtocol
from openfield.trial import derive
from support.walks import Walk, Walks, WalkSettings


class BadWalks(Walks):
    """A domain without a declared observation space, so that only the promise in question is broken."""

    def __init__(self, name: str, play: Any = Walk) -> None:
        self.name, self.play = name, play  # type: ignore[misc]

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Walk.", actions=of.spaces.Discrete(2))


class IgnoresSeed(Walk):
    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        super().__init__(settings, random.Random(7))


class Unseeded(Walk):
    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        super().__init__(settings, random.Random())


class Hashes(Walk):
    def see(self) -> Any:
        return hash(f"step {self.moves}") % 1000


class ReadsClock(Walk):
    def see(self) -> Any:
        return super().see() | {"time": time.monotonic_ns() // 1000}


class ReadsDeadline(Walk):
    """Reads a clock to no effect as long as it goes on as usual."""

    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        self.started = time.monotonic()
        super().__init__(settings, rng)

    def see(self) -> Any:
        return super().see() | {"late": time.monotonic() - self.started > 600}


class ReadsCalendar(Walk):
    def see(self) -> Any:
        return super().see() | {"hour": datetime.now().isoformat()}


class ReadsYear(Walk):
    """Reads a calendar that only another year would show."""

    def see(self) -> Any:
        return super().see() | {"year": time.localtime().tm_year, "day": time.strftime("%j")}


class GlobalRandom(Walk):
    def see(self) -> Any:
        return super().see() | {"more": random.random()}


class GlobalNumpyRandom(Walk):
    def see(self) -> Any:
        return super().see() | {"more": float(np.random.random())}


class Crashes(Walk):
    def move(self, action: Any) -> None:
        super().move(action)
        if self.moves == 5:
            raise ZeroDivisionError("out of luck")


class Hangs(Walk):
    def move(self, action: Any) -> None:
        super().move(action)
        while self.moves == 5:
            pass


class Unrecordable(Walk):
    def see(self) -> Any:
        return super().see() | ({"thing": object()} if self.moves == 3 else {})


class OverflowingPerformance(Walk):
    def move(self, action: Any) -> None:
        super().move(action)
        self.performance = 2.0


class ShowsName(Walk):
    def see(self) -> Any:
        return super().see() | {"map": "level backwards 3" if self.settings.stride < 0 else "level"}


class ShowsFlag(Walk):
    def see(self) -> Any:
        return super().see() | {"parts": [1, self.settings.stride != 1]}


class ShowsKey(Walk):
    def see(self) -> Any:
        return super().see() | {"novelty": 0}


class ShowsOneFlag(Walk):
    """Says yes or no, and only to one of the novelties."""

    def see(self) -> Any:
        return super().see() | {"mirrored": self.settings.stride < 0}


class ShowsSpareKey(Walk):
    def see(self) -> Any:
        return super().see() | ({"spare": 0} if self.settings.stride < 0 else {})


class ShowsOrder(Walk):
    """Shows the same keys in another order."""

    def see(self) -> Any:
        shown = list((super().see() | {"a": 1, "b": 2}).items())
        return dict(reversed(shown) if self.settings.stride < 0 else shown)


class ShowsLength(Walk):
    """Says nothing, but more often."""

    def see(self) -> Any:
        return super().see() | {"hints": [{"at": None}] * (5 if self.settings.stride < 0 else 1)}


class ShowsSmallArray(Walk):
    def see(self) -> Any:
        return super().see() | {"sensors": np.full(3, float(self.settings.stride < 0))}


class ShowsPixel(Walk):
    """Draws noise, but for one pixel in its corner."""

    def see(self) -> Any:
        picture = np.frombuffer(self.rng.randbytes(400), dtype=np.uint8).reshape(20, 20).copy()
        picture[19, 19] = 255 if self.settings.stride != 1 else 17
        return {"picture": picture}


class ShowsWord(Walk):
    """Says the same word for every novelty."""

    def see(self) -> Any:
        return super().see() | {"mode": "b" if self.settings.stride != 1 else "a"}


class ShowsAtStart(Walk):
    """Says it in the first turn of an episode and never again."""

    def see(self) -> Any:
        return super().see() | {"hello": not self.moves and self.settings.stride != 1}


class Effects(Walk):
    """Shows what its novelties do, which is no leak: a measure, a new thing, a wall in a map, a colour."""

    def see(self) -> Any:
        backwards = self.settings.stride < 0
        thing = {"thing": {"at": self.rng.randrange(9), "alive": True}} if backwards else {}
        plan = [[1, 1, 1], [1, int(backwards), 1], [1, 0, 1]]
        colour = "red" if backwards else "blue"
        return super().see() | {"stride": self.settings.stride, "map": plan, "colour": colour} | thing


class SharesList(Walk):
    """Shows its own memory instead of a copy."""

    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        self.places: list[int] = []
        super().__init__(settings, rng)

    def see(self) -> Any:
        self.places.append(self.at)
        return {"places": self.places[-3:], "sum": sum(self.places), "all": self.places}


class SharesGlobal(Walk):
    """Shows every agent the same legend."""

    legend: dict[str, list[int]] = {"ways": [0, 1]}

    def see(self) -> Any:
        return super().see() | {"legend": self.legend}


class AltersTurns(Walk):
    """Draws everything onto one canvas."""

    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        self.canvas = np.zeros(100)
        super().__init__(settings, rng)

    def see(self) -> Any:
        self.canvas[:] = self.at + self.rng.randrange(1000)
        return self.canvas


class KeepsActions(Walk):
    """Shows what was said before, from the agent's own lists."""

    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        self.said: list[list[int]] = []
        super().__init__(settings, rng)

    def move(self, action: Any) -> None:
        if not isinstance(action, list) or action not in ([0], [1]):
            raise AgentProtocol(f"{action!r} is neither [0] nor [1]")
        self.said.append(action)
        super().move(action[0])

    def see(self) -> Any:
        return super().see() | {"said": [list(action) for action in self.said]}


class Altering(of.EpisodicWorld[WalkSettings]):
    """Alters turns or their truth."""

    def _turn(self, first: bool = False) -> of.Turn:
        turn = super()._turn(first)
        novel = self.truth.novel
        match self._domain.name:
            case "shows_detail":
                self.truth = msgspec.structs.replace(self.truth, detail={"map": "ravine"})
                return msgspec.structs.replace(turn, observation=["the ravine", turn.observation])
            case "shows_phase" if novel:
                return msgspec.structs.replace(turn, phase="post")
            case "shows_red_light":
                return msgspec.structs.replace(turn, red_light=novel)
            case "lying_red_light" if self._trial.red_light:
                return msgspec.structs.replace(turn, red_light=True)
            case "pays_early" if turn.phase == "training":
                return msgspec.structs.replace(turn, reward=1.0)
            case "always_novel":
                self.truth = msgspec.structs.replace(self.truth, novel=True)
        return turn


class Altered(BadWalks):
    def world(self, trial: of.Trial) -> of.World:
        return Altering(self, trial, self.play)


class PaysEarly(Altered):
    """Pays nothing after the onset of a novelty that would change what is paid."""

    novelties = (*Walks.novelties, of.Novelty("double", 5, "goals", "pays twice", lambda s: s))


class KnowsBefore(BadWalks):
    """Draws from a seed that knows of the novelty to come."""

    def world(self, trial: of.Trial) -> of.World:
        return super().world(msgspec.structs.replace(trial, seed=derive(trial.seed, trial.id)))


class TellingSpec(BadWalks):
    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task=f"Mind {trial.novelty}.", actions=of.spaces.Discrete(2))


class IdleNovelty(BadWalks):
    novelties = (*Walks.novelties, of.Novelty("idle", 1, "objects", "does nothing", lambda s: s))


class NarrowSpace(BadWalks):
    def spec(self, trial: of.Trial) -> of.Spec:
        seen = of.spaces.Fields({"at": of.spaces.Discrete(100), "noise": of.spaces.Discrete(10)})
        return of.Spec(domain=self.name, task="Walk.", actions=of.spaces.Discrete(2), observations=seen)


class WideActions(BadWalks):
    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Walk.", actions=of.spaces.Discrete(3))


class Move(msgspec.Struct):
    way: int


class Struct(Walk):
    def move(self, action: Any) -> None:
        super().move(action.way)


class StructActions(BadWalks):
    agents = {"mover": lambda spec, seed: lambda turn: of.Reply(Move(1))}

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Walk.")


class ListActions(BadWalks):
    agents = {"lister": lambda spec, seed: lambda turn: of.Reply([1])}

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Walk.")


class Declared(BadWalks):
    """Says that agents are meant to see it."""

    shown_effects = ("mirrored",)


class Unhashable(Walk):
    def move(self, action: Any) -> None:
        super().move(action if action in {0, 1} else 0)


UNHASHABLE = BadWalks("unhashable", Unhashable)
IGNORES_SEED = BadWalks("ignores_seed", IgnoresSeed)
UNSEEDED = BadWalks("unseeded", Unseeded)
HASHES = BadWalks("hashes", Hashes)
READS_CLOCK = BadWalks("reads_clock", ReadsClock)
READS_DEADLINE = BadWalks("reads_deadline", ReadsDeadline)
READS_CALENDAR = BadWalks("reads_calendar", ReadsCalendar)
GLOBAL_RANDOM = BadWalks("global_random", GlobalRandom)
GLOBAL_NUMPY_RANDOM = BadWalks("global_numpy_random", GlobalNumpyRandom)
CRASHES = BadWalks("crashes", Crashes)
HANGS = BadWalks("hangs", Hangs)
UNRECORDABLE = BadWalks("unrecordable", Unrecordable)
PERFORMANCE = BadWalks("performance", OverflowingPerformance)
SHOWS_NAME = BadWalks("shows_name", ShowsName)
SHOWS_FLAG = BadWalks("shows_flag", ShowsFlag)
SHOWS_KEY = BadWalks("shows_key", ShowsKey)
SHOWS_DETAIL = Altered("shows_detail")
SHOWS_PHASE = Altered("shows_phase")
SHOWS_RED_LIGHT = Altered("shows_red_light")
LYING_RED_LIGHT = Altered("lying_red_light")
PAYS_EARLY = PaysEarly("pays_early")
ALWAYS_NOVEL = Altered("always_novel")
KNOWS_BEFORE = KnowsBefore("knows_before")
TELLING_SPEC = TellingSpec("telling_spec")
IDLE_NOVELTY = IdleNovelty("idle_novelty")
NARROW_SPACE = NarrowSpace("narrow_space")
WIDE_ACTIONS = WideActions("wide_actions")
STRUCT_ACTIONS = StructActions("struct_actions", Struct)
READS_YEAR = BadWalks("reads_year", ReadsYear)
SHOWS_ONE_FLAG = BadWalks("shows_one_flag", ShowsOneFlag)
SHOWS_SPARE_KEY = BadWalks("shows_spare_key", ShowsSpareKey)
SHOWS_ORDER = BadWalks("shows_order", ShowsOrder)
SHOWS_LENGTH = BadWalks("shows_length", ShowsLength)
SHOWS_SMALL_ARRAY = BadWalks("shows_small_array", ShowsSmallArray)
SHOWS_PIXEL = BadWalks("shows_pixel", ShowsPixel)
SHOWS_WORD = BadWalks("shows_word", ShowsWord)
SHOWS_AT_START = BadWalks("shows_at_start", ShowsAtStart)
SHARES_LIST = BadWalks("shares_list", SharesList)
SHARES_GLOBAL = BadWalks("shares_global", SharesGlobal)
ALTERS_TURNS = BadWalks("alters_turns", AltersTurns)
KEEPS_ACTIONS = ListActions("keeps_actions", KeepsActions)
EFFECTS = BadWalks("effects", Effects)
DECLARED = Declared("declared", ShowsOneFlag)
