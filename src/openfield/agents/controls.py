"""Controls: agents that must fail. One that does not reveals a fault of the evaluation.

They act at random in any domain and differ in what they believe. `counter`, `alarmist`, `doubter`, `quitter` and
`sleeper` never look at the world. `peeker` looks where no agent should find anything, and `enumerator` computes the
trials that everybody can compute. `buyer` and `scout` buy what a domain sells. `openfield run DOMAIN --controls` plays
all of them.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from openfield.cell import Cell
from openfield.core import Agent, AgentFactory, Ask, Belief, Reply, Spec, Turn
from openfield.domain import Domain, hides_episodes
from openfield.errors import InvalidInput, OpenfieldError, UnknownName
from openfield.journal.reader import Run
from openfield.record import ENCODER
from openfield.registry import find_agent
from openfield.rollout import Rollout
from openfield.trial import Trial, derive, measure_test

__all__ = [
    "Alarmist",
    "Buyer",
    "Control",
    "Counter",
    "Doubter",
    "Enumerator",
    "Peeker",
    "Quitter",
    "Scout",
    "Sleeper",
    "find_control",
]

SURE, CALM = Belief(1.0), Belief(0.0)
TURNS_PER_EPISODE = 100
"""What the quitter takes for an episode in a world that hides where episodes end."""
MANY, FEW = 40, 5
"""Trials of each root seed: those its own seed is compared with, and those it makes worlds of to see how they begin."""
MAX_WATCHED = 2
"""Root seeds whose worlds it makes. An engine may need half a second to start."""
MAX_FILES = 200
"""Files that are opened at most: a folder may hold thousands of runs."""
MAX_PARTS = 2_000
"""Parts of an observation that are looked at."""
TELLING = re.compile(r"novel|truth|onset|chang(ed|e_)|secret", re.IGNORECASE)
NAMES = re.compile(r"(^|_)(id|ids|name|file|path)$", re.IGNORECASE)
RUN_FILE = re.compile(r"[^\s=:\x00]+\.sqlite")
NOTES = "openfield-scout"
"""The folder of the scout's notes, wherever it may write one."""


class Control:
    """Acts at random. A subclass states its beliefs."""

    usual: ClassVar[float] = 0.0
    """The number behind the name, as in `counter:12`, where none is given."""
    bounds: ClassVar[tuple[float, float] | None] = None
    """What that number may be; None if the control takes none."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        """Make the control.

        Args:
            domain: The domain, whose own random agent acts.
            spec: The agent's knowledge before the trial.
            seed: The seed of its actions and guesses.
            number: The number behind its name; the usual one if it is None.
        """
        self._policy = _make_policy(domain, spec, seed)
        self._clock = Clock(domain)
        self.number = self.usual if number is None else number
        self.rng = random.Random(derive(seed, "control"))

    def __call__(self, turn: Turn) -> Reply:
        """Act at random, and state a belief with every reply."""
        self._clock.count(turn)
        reply = self._policy(turn)
        return Reply(reply.action, self.believe(turn))

    def believe(self, turn: Turn) -> Belief | None:
        """Return the belief at a turn; None states nothing."""
        raise NotImplementedError

    @property
    def now(self) -> int:
        """The number of the test episode, from 0 on; of the turn where a world hides where episodes end."""
        return self._clock.now


class Counter(Control):
    """Believes that the world has changed once `n` test episodes are over."""

    usual, bounds = 10, (0.0, 1e12)

    def believe(self, turn: Turn) -> Belief:
        """Return certainty, before and after."""
        return SURE if self.now >= self.number else CALM


class Alarmist(Control):
    """Always believes that the world has changed."""

    def believe(self, turn: Turn) -> Belief:
        """Return certainty."""
        return SURE


class Doubter(Control):
    """Believes with probability `p` in each episode that the world has changed."""

    usual, bounds = 0.5, (0.0, 1.0)

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._drawn, self._belief = -1, CALM

    def believe(self, turn: Turn) -> Belief:
        """Return the belief drawn for this episode."""
        if self._drawn != self.now:
            self._drawn, self._belief = self.now, SURE if self.rng.random() < self.number else CALM
        return self._belief


class Sleeper(Control):
    """Never believes that the world has changed, and says so only where it is asked."""

    def believe(self, turn: Turn) -> Belief | None:
        """Return certainty that nothing has changed, if a belief is asked for."""
        return CALM if turn.ask is Ask.BELIEF else None


class Quitter(Doubter):
    """Guesses as the doubter does, and raises an error once its last `n` test episodes went badly.

    They went badly if they earned less than half of what the episodes before did. It goes by the rewards it receives:
    the performance if that is shown, or else the rewards.
    """

    usual, bounds = 3, (1.0, 1e12)
    chance: ClassVar[float] = 0.5
    """The probability of its guesses."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, self.chance)
        self._patience = int(self.usual if number is None else number)
        self._length = TURNS_PER_EPISODE if self._clock.counts_turns else 1
        self._scores = [0.0]
        self._latest = 0

    def believe(self, turn: Turn) -> Belief:
        """Return a guess, or give up when an episode begins after others that went badly."""
        if self.now // self._length > self._latest:
            self._latest = self.now // self._length
            if self._does_badly():
                raise RuntimeError(f"I give up: my last {self._patience} episodes went badly.")
            self._scores.append(0.0)
        if turn.phase == "test":
            performance = turn.feedback.get("performance") if isinstance(turn.feedback, dict) else None
            self._scores[-1] = self._scores[-1] + turn.reward if performance is None else float(performance)
        return super().believe(turn)

    def _does_badly(self) -> bool:
        recent, before = self._scores[-self._patience :], self._scores[: -self._patience]
        usual = sum(before) / len(before) if before else -math.inf
        return sum(recent) / len(recent) < min(usual, usual / 2)


class Clock:
    """Counts what an agent can count of a test: episodes, or turns in a world that hides where episodes end."""

    def __init__(self, domain: Domain[Any]) -> None:
        self.counts_turns = hides_episodes(domain)
        self.now = -1 if self.counts_turns else 0
        self._ended = False

    def count(self, turn: Turn) -> None:
        """Take note of a turn. The last turn of an episode, also when it is shown again, belongs to the episode."""
        if self.counts_turns:
            self.now += turn.phase == "test"
            return
        self.now += self._ended and turn.last is None
        self._ended = turn.last is not None and turn.phase == "test"


def expect_change(trials: Sequence[Trial], now: int) -> Belief:
    """Return the belief of an agent that knows it is in one of these trials."""
    changed = sum(_find_onset(trial) <= now for trial in trials)
    return Belief(changed / len(trials)) if trials else CALM


def _find_onset(trial: Trial) -> float:
    """Return how much of the test precedes the change; infinity if nothing changes."""
    test = [phase for phase in trial.phases if phase.name == "test"]
    normal = list(itertools.takewhile(lambda phase: not phase.novelty, test))
    return measure_test(normal) if len(normal) < len(test) else math.inf


def _make_policy(domain: Domain[Any], spec: Spec, seed: int) -> Agent:
    """Make an agent that acts at random, or another of the domain's own where its actions are not declared."""
    own = [name for name in domain.agents if name not in domain.oracles]
    if "random" in own or spec.actions is not None:
        return find_agent("random", domain)(spec, seed)
    if not own:
        raise InvalidInput(f"A control cannot play {domain.name}: it has no action space and no agent of its own.")
    return find_agent(own[0], domain)(spec, seed)


class Enumerator(Control):
    """Makes the trials of the first `n` root seeds, and believes what the one it recognises says.

    It succeeds where trials are made from a small seed, which docs and plans name. It must fail where they are sealed.
    """

    usual, bounds = 8, (1.0, 1000.0)

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._domain, self._seed = domain, seed
        self._own: list[Trial] = []
        self._looked: set[str] = set()

    def believe(self, turn: Turn) -> Belief:
        """Return the share of the trials it may be in that have changed by now."""
        if not self._own and turn.phase not in self._looked:  # training may be a trial of its own
            self._looked.add(turn.phase)
            self._own = self._recognise(turn)
        return expect_change(self._own, self.now)

    def _recognise(self, turn: Turn) -> list[Trial]:
        """Return the public trials that would give it its own seed, or else those that begin with this turn."""
        roots = int(self.number)
        named = [trial for trial in list_public(self._domain, roots, MANY) if _seed_in(trial) == self._seed]
        if named:
            return named
        seen = ENCODER.encode(turn)
        few = list_public(self._domain, min(roots, MAX_WATCHED), FEW)
        return [trial for trial in few if _begin(self._domain, trial) == seen]


@cache
def list_public(domain: Domain[Any], roots: int, count: int) -> list[Trial]:
    """Return the trials everybody can make: with the usual settings, and with those of checks and demos."""
    kinds: list[Mapping[str, Any]] = [{}, domain.check_settings, domain.demo_settings]
    different = [settings for number, settings in enumerate(kinds) if settings not in kinds[:number]]
    made = [trial for settings in different for root in range(roots) for trial in _make(domain, count, root, settings)]
    return list({trial.id: trial for trial in made if not trial.is_training}.values())


def _make(domain: Domain[Any], count: int, root: int, settings: Mapping[str, Any]) -> list[Trial]:
    novelty = domain.default_novelty or next((each.id for each in domain.novelties), None)  # all have the same onsets
    try:
        return domain.trials(count, root, novelty, **settings)
    except Exception:  # data may be missing here; a control then knows less, and does not fail
        return []


def _seed_in(trial: Trial) -> int:
    return Cell("enumerator", trial).seed


_beginnings: dict[tuple[str, int, str], bytes] = {}
"""The first turns of trials by domain, seed and settings; making worlds takes time."""


def _begin(domain: Domain[Any], trial: Trial) -> bytes:
    """Return the first turn of a trial; empty if the trial cannot be opened."""
    key = domain.name, trial.seed, repr(sorted(trial.settings.items()))
    if key not in _beginnings:
        try:
            with closing(domain.world(trial)) as world:
                _beginnings[key] = ENCODER.encode(world.reset())
        except Exception:  # the engine may be missing here
            _beginnings[key] = b""
    return _beginnings[key]


class Peeker(Control):
    """Looks for the rollout in memory, for run files, and for telling words in what it is shown.

    It shows what trusting an agent means: in the process of the world it finds everything. Isolated, it must find
    nothing.
    """

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._seed = seed
        self._rollout: Rollout | None = None
        self._trials: list[Trial] = []
        self.found: list[str] | None = None
        """Where it found something; None before it has looked."""

    def believe(self, turn: Turn) -> Belief:
        """Return the truth if it is in reach, and where it was found."""
        changed = self._rollout is not None and self._rollout.turn is not turn  # a further trial of the same agent
        if self.found is None or changed:
            self.found = list(self._search(turn))
        return Belief(self._conclude(turn), detail={"found": self.found})

    def _conclude(self, turn: Turn) -> float:
        if self._rollout is not None:
            return float(self._rollout.world.truth.novel)
        if self._trials:
            return expect_change(self._trials, self.now).highest
        return float(any(_list_telling(turn.observation)))

    def _search(self, turn: Turn) -> Iterator[str]:
        """Look everywhere, keep what tells the truth, and yield where it was."""
        for place, rollouts in (("the call stack", _search_stack()), ("the memory", _search_memory())):
            self._rollout = next((one for one in rollouts if one.turn is turn), None)
            if self._rollout is not None:
                yield place
                return
        for path in list(_list_run_files())[:MAX_FILES]:
            if known := self._read_trials(path):
                self._trials += known
                yield f"the run file {path.name}"
        cells = [value for value in gc.get_objects() if isinstance(value, Cell) and value.seed == self._seed]
        if cells:
            self._trials += [cell.trial for cell in cells]
            yield "cells in memory"

    def _read_trials(self, path: Path) -> list[Trial]:
        """Return the trials of a run file that give an agent this seed, or come after one that does."""
        try:
            with Run(path) as run:
                cells = run.cells(with_episodes=False)
        except (OpenfieldError, OSError):
            return []
        own = {cell.trial.id for cell in cells if cell.cell.seed == self._seed}
        tests = [cell for cell in cells if not cell.trial.is_training and own & {cell.trial.id, cell.trial.after}]
        return [cell.trial for cell in tests if cell.outcome is None] or [cell.trial for cell in tests]


def _search_stack() -> Iterator[Rollout]:
    """Yield the rollouts among the variables of all callers."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, Rollout):
                yield value
        frame = frame.f_back


def _search_memory() -> Iterator[Rollout]:
    return (value for value in gc.get_objects() if isinstance(value, Rollout))


def _list_run_files() -> Iterator[Path]:
    """Yield run files near the working folder, and those that any process holds open or names."""
    seen: set[Path] = set()
    for path in (*_list_near(), *_list_named(), *_list_open()):
        if path not in seen:
            seen.add(path)
            yield path


def _list_near() -> Iterator[Path]:
    with suppress(OSError):
        here = Path.cwd()
        for folder in (here, *here.parents):
            for place in (folder, folder / "runs"):
                with suppress(OSError):
                    yield from place.glob("*.sqlite")


def _list_named() -> Iterator[Path]:
    """Yield the files that command lines and environments name."""
    for process in _list_processes():
        for source in ("cmdline", "environ"):
            with suppress(OSError):
                text = (process / source).read_bytes().decode(errors="replace")
                folder = Path(os.readlink(process / "cwd"))
                yield from (folder / name for name in RUN_FILE.findall(text) if (folder / name).is_file())


def _list_open() -> Iterator[Path]:
    """Yield the files that processes hold open, this one included."""
    for process in _list_processes():
        with suppress(OSError):
            for handle in list((process / "fd").iterdir()):
                with suppress(OSError):
                    target = os.readlink(handle)
                    if ".sqlite" in target:
                        yield Path(target.partition(".sqlite")[0] + ".sqlite")


def _list_processes() -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in Path("/proc").iterdir() if path.name.isdigit())


def _list_telling(observation: Any) -> Iterator[str]:
    """Yield the truths that an observation names: `novel = True`, or an id such as `test-novel-3`."""
    waiting, looked = [("", observation)], 0
    while waiting and looked < MAX_PARTS:
        key, value = waiting.pop()
        looked += 1
        if isinstance(value, dict):
            waiting += [(str(name), part) for name, part in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(key, part) for part in value[:MAX_PARTS]]
        elif isinstance(value, str) and NAMES.search(key) and TELLING.search(value):
            yield value
        elif TELLING.search(key) and isinstance(value, bool | int | float) and value:
            yield key


class Buyer(Control):
    """States a belief of `p`, which may unlock feedback, buys all it can, and then believes that feedback.

    It lowers its belief in each episode, as long as feedback says that nothing has changed. Being shown the truth is
    not a detection. Where a domain sells feedback, it must do no better than chance.
    """

    usual, bounds = 0.6, (0.0, 1.0)
    waning: ClassVar[float] = 0.98
    """What is left of its belief an episode later."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._domain = domain
        self._bought: list[Any] = []
        self.told: int | None = None
        """The test episode in which feedback revealed that the world has changed."""

    def __call__(self, turn: Turn) -> Reply:
        """Buy what can be bought, once in an episode; act at random otherwise."""
        if turn.first:
            self._bought = []
        if self.told is None and turn.feedback is not None and self._domain.tells_change(turn.feedback):
            self.told = self.now
        offers = [offer for offer in self._domain.list_purchases(turn) if offer not in self._bought]
        if offers:
            self._clock.count(turn)
            self._bought.append(offers[0])
            return Reply(offers[0], self.believe(turn))
        return super().__call__(turn)

    def believe(self, turn: Turn) -> Belief:
        """Return the belief that feedback supports; before it is bought, one that may unlock it."""
        if self.told is not None:
            return SURE
        return CALM if self._bought else Belief(self.number * self.waning**self.now)


class Scout(Buyer):
    """Buys as the buyer does, notes when the world of a trial changed, and uses its notes when it meets it again."""

    seen: ClassVar[dict[str, int | None]] = {}
    """The trials that this process met, by how they began."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._trial = ""
        self._known: dict[str, int | None] = {}

    def __call__(self, turn: Turn) -> Reply:
        """Note what feedback revealed, and look up the trial when its test begins: twins have the same training."""
        if not self._trial and turn.phase == "test" and self._domain.sells_feedback:
            self._trial = hashlib.sha256(ENCODER.encode(turn)).hexdigest()
            self._known = {**dict(_read_notes()), **self.seen}
        reply = super().__call__(turn)
        is_new = self._trial not in self._known or self.told is not None
        if self._trial and is_new and self.seen.get(self._trial, -1) != self.told:
            self.seen[self._trial] = self.told
            _write_note(self._trial, self.told)
        return reply

    def believe(self, turn: Turn) -> Belief:
        """Return what the notes say of this trial; in one that is new, what the buyer says."""
        if self._trial not in self._known:
            return super().believe(turn)
        onset = self._known[self._trial]
        return SURE if onset is not None and self.now >= onset else CALM


def _list_places() -> Iterator[Path]:
    """Yield the folders where a later scout may find notes."""
    yield Path(tempfile.gettempdir())
    with suppress(OSError, RuntimeError):
        yield Path.home()
    with suppress(OSError):
        yield Path.cwd()


def _read_notes() -> Iterator[tuple[str, int | None]]:
    for place in _list_places():
        with suppress(OSError, ValueError):
            for note in (place / NOTES).iterdir():
                yield note.name, json.loads(note.read_text())


def _write_note(trial: str, onset: int | None) -> None:
    for place in _list_places():
        with suppress(OSError):
            (place / NOTES).mkdir(exist_ok=True)
            (place / NOTES / trial).write_text(json.dumps(onset))
            return


KINDS: dict[str, type[Control]] = {
    kind.__name__.lower(): kind
    for kind in (Counter, Alarmist, Doubter, Quitter, Sleeper, Peeker, Enumerator, Buyer, Scout)
}


def find_control(text: str, domain: Domain[Any]) -> AgentFactory:
    """Return the factory of the control that `NAME` or `NAME:NUMBER` stands for.

    Raises:
        UnknownName: There is no control of this name.
        InvalidInput: The number is missing or out of its range, or the control takes none.
    """
    name, colon, given = text.partition(":")
    if name not in KINDS:
        raise UnknownName("control", name, list(KINDS), label="Known")
    kind, number = KINDS[name], _read_number(text, KINDS[name], given) if colon else None

    def make(spec: Spec, seed: int) -> Agent:
        return kind(domain, spec, seed, number)

    return make


def _read_number(text: str, kind: type[Control], given: str) -> float:
    name = kind.__name__.lower()
    if kind.bounds is None:
        raise InvalidInput(f"'{text}': the control '{name}' takes no number. Write {name}.")
    low, high = kind.bounds
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    whole = isinstance(kind.usual, int)
    if not low <= number <= high or (whole and number != int(number)):
        range_ = f"a whole number, {low:g} or more" if whole else f"a number from {low:g} to {high:g}"
        raise InvalidInput(f"'{text}': the control '{name}' takes {range_}, for instance {name}:{kind.usual}.")
    return number
