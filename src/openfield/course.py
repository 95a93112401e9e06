"""The course of a trial: how strong which change is at each moment, and the settings in force then.

A trial has a course if one of its novelties has a process, or if its world changes more than once. Worlds ask it for
the settings of an episode or a turn, and put what it says into the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from openfield.change_process import SHARES, ChangeProcess, Curve, Range, split_process
from openfield.errors import InvalidInput
from openfield.novelty import HIERARCHY, Novelty
from openfield.settings import Settings
from openfield.trial import Phase, Trial, derive, stages_of

__all__ = ["Blend", "Course", "Moment"]

S = TypeVar("S", bound=Settings)
CHECKED_SHARES = 100
"""Strengths of a change in turns whose settings are checked."""
MAX_KNOWN = 1_000
"""Moments of a change that are kept. A walk never comes back to one, and must not fill the memory."""


class Blend(Generic[S]):
    """The way from some settings to others: numbers go evenly, everything else changes at once."""

    ranges: tuple[Range, ...]
    """The numbers that change."""

    def __init__(self, usual: S, changed: S, abrupt: Collection[str] = ()) -> None:
        """Find what differs.

        Args:
            usual: The settings at first.
            changed: The settings in the end.
            abrupt: Settings that change at once although they are numbers.
        """
        self._usual, self._changed = usual, changed
        names = [name for name in usual.__struct_fields__ if getattr(usual, name) != getattr(changed, name)]
        self._ends = {name: (getattr(usual, name), getattr(changed, name)) for name in names}
        self._moving = {name: ends for name, ends in self._ends.items() if name not in abrupt}
        self._fixed = {name: ends[1] for name, ends in self._ends.items() if name in abrupt}
        self.ranges = tuple(range_ for ends in self._moving.values() for range_ in list_ranges(*ends))

    def at(self, share: float) -> tuple[S, bool]:
        """Return the settings at a share of the way, beyond 0 and 1 for values outside, and whether they differ.

        Whole numbers are rounded, so that a little change may be none.
        """
        if share in (0.0, 1.0):
            return (self._changed, bool(self._ends)) if share else (self._usual, False)
        values = {name: mix(*ends, share) for name, ends in self._moving.items()}
        settings = replace(self._usual, **self._fixed, **values)
        return settings, settings != self._usual


def list_ranges(usual: Any, changed: Any) -> Iterator[Range]:
    """Yield the numbers that differ between two values, also within lists and mappings of the same form."""
    if _is_number(usual) and _is_number(changed):
        if usual != changed:
            yield Range(usual, changed)
    elif isinstance(usual, Mapping) and isinstance(changed, Mapping):
        for name in usual.keys() & changed.keys():
            yield from list_ranges(usual[name], changed[name])
    elif _are_alike(usual, changed):
        for one, other in zip(usual, changed, strict=True):
            yield from list_ranges(one, other)


def mix(usual: Any, changed: Any, share: float) -> Any:
    """Return a value at a share of the way to another. Whole numbers stay whole; all other values change at once."""
    if type(usual) is float and type(changed) is float:
        return usual + share * (changed - usual)
    if _is_number(usual) and _is_number(changed):
        value = usual + share * (changed - usual)
        return round(value) if isinstance(usual, int) and isinstance(changed, int) else value
    if isinstance(usual, Mapping) and isinstance(changed, Mapping):
        return {name: mix(usual[name], value, share) if name in usual else value for name, value in changed.items()}
    if _are_alike(usual, changed):
        return type(changed)(mix(one, other, share) for one, other in zip(usual, changed, strict=True))
    return changed


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_alike(one: Any, other: Any) -> bool:
    return isinstance(one, tuple | list) and isinstance(other, tuple | list) and len(one) == len(other)


class Moment(msgspec.Struct, Generic[S], frozen=True, gc=False):
    """What is true of a moment. A world that changes in every turn makes one in each: tuples with names take longer."""

    settings: S
    novel: bool
    """Whether the world counts as changed."""
    strength: float | None
    """None where the world changes once and at once, so that no truth tells it."""
    change: str
    """The novelties in force, joined by `+`."""


class _Change(Generic[S]):
    """A novelty in force, and what it makes of the world without it."""

    __slots__ = ("before", "begun", "blend", "by_turns", "ends", "known", "name", "novelty", "seed", "share")

    def __init__(self, name: str, novelty: Novelty[S], seed: int, episodes: int, turns: int) -> None:
        """Begin now, after episodes and turns that were played."""
        process = novelty.process
        self.name, self.novelty, self.seed = name, novelty, seed
        self.by_turns = process is not None and process.unit == "turns"
        self.begun = turns if self.by_turns else episodes
        self.ends = 0.0
        """The turn from which on it stays as it is within an episode."""
        if process is not None and self.by_turns:
            self.ends = math.inf if process.completes_after is None else turns + process.completes_after
        self.before: Moment[S] | None = None

    def follow(self, before: Moment[S], blend: Blend[S]) -> None:
        """Change another world from now on.

        Args:
            before: What is true without it.
            blend: The way from there.
        """
        process = self.novelty.process
        self.before, self.blend = before, blend
        self.share: Curve = lambda _: 1.0
        """How far it is on its way at a time."""
        if process is not None:
            self.share = process.trace(self.seed, blend.ranges[0] if process.is_valued else SHARES)
        self.known: dict[float, Moment[S]] = {}
        """What is true at shares of the way: a ramp that is complete stays at one, and what swings comes back."""


class Course(Generic[S]):
    """Says what is in force at each moment of a trial. Enter its phases in order, and ask for moments."""

    def __init__(
        self,
        trial: Trial,
        settings: S,
        find: Callable[[str], Novelty[S]],
        blend: Callable[[S, S], Blend[S]] = Blend,
    ) -> None:
        """Prepare the course of a trial.

        Args:
            trial: The trial.
            settings: The settings of the normal world.
            find: Returns a novelty by its name.
            blend: Makes the way from some settings to others.
        """
        self._trial, self._settings, self._find, self._blend = trial, settings, find, blend
        self._changes: dict[str, _Change[S]] = {}
        self._moment = self._normal = Moment(settings, False, 0.0, "")
        self._begun: dict[str, int] = {}  # how often each novelty has begun
        self._blends: dict[str, tuple[S, Blend[S]]] = {}
        self._stages = [*stages_of(trial.novelty), *(phase.novelty for phase in trial.phases)]
        processes = (self._find(name).process for stage in self._stages for name in stage)
        self.is_turnwise = any(process is not None and process.unit == "turns" for process in processes)
        """Whether the world changes within episodes, or does so in other trials of its scenario."""
        self._moves_until, self._asked = 0.0, -1  # the last turn at which an episode may change, and the last episode

    def prepare(self) -> None:
        """Make the ways to all changes of the scenario, also in a trial in which nothing changes.

        To make one may take time, as an environment must be asked for its attributes. Made at the onset, it would tell
        an agent that measures time where that is.
        """
        for stage in self._stages:
            self._prepare(stage, self._settings)

    def _prepare(self, stage: Sequence[str], settings: S) -> None:
        """Make the ways of a stage: that of each change from where those before it may have led."""
        for name in stage[:1]:
            novelty = self._find(name)
            blend = self._find_blend(name, novelty, settings)
            for share in (1.0,) if novelty.process is None else (0.0, 1.0):
                self._prepare(stage[1:], blend.at(share)[0])

    def enter(self, phase: Phase, episodes: int, turns: int = 0) -> None:
        """Begin a phase. A novelty that was in force before goes on.

        Args:
            phase: The phase.
            episodes: How many episodes were played before it.
            turns: How many turns were taken before it.
        """
        changes = {}
        for name in phase.novelty:
            if name not in self._changes:
                self._begun[name] = number = self._begun.get(name, -1) + 1
                seed = derive(self._trial.seed, "process", name, number)
                changes[name] = _Change(name, self._find(name), seed, episodes, turns)
            else:
                changes[name] = self._changes[name]
        self._changes, self._asked = changes, -1
        self._moves_until = max((each.ends for each in changes.values()), default=0.0)

    def at(self, episodes: int, turns: int = 0) -> Moment[S]:
        """Return what is true now; the very same moment as long as nothing changes.

        Where nothing moves within an episode it is known at once, in a trial without changes as in the others: what a
        turn takes must not tell them apart.

        Args:
            episodes: How many episodes were played before the one under way.
            turns: How many turns were taken.
        """
        if turns > self._moves_until and episodes == self._asked:
            return self._moment
        self._asked, moment = episodes, self._normal
        for each in self._changes.values():
            if each.before is not moment:
                each.follow(moment, self._find_blend(each.name, each.novelty, moment.settings))
            share = each.share((turns if each.by_turns else episodes) - each.begun)
            known = each.known.get(share)
            moment = self._change(each, moment, share) if known is None else known
        self._moment = moment
        return moment

    def _change(self, change: _Change[S], before: Moment[S], share: float) -> Moment[S]:
        """Return what is true with a change at a share of its way."""
        settings, differs = change.blend.at(share)
        strongest, names = before.strength or 0.0, before.change
        if differs:
            strength = share if 0.0 <= share <= 1.0 else min(1.0, abs(share))
            strongest = strength if strength > strongest else strongest
            names = f"{names}+{change.name}" if names else change.name
        novel = names != "" and strongest >= self._settings.min_strength
        moment = Moment(settings, novel, strongest, names)
        if len(change.known) >= MAX_KNOWN:
            change.known.clear()
        change.known[share] = moment
        return moment

    def list_moments(self) -> list[Moment[S]]:
        """Return what is true of each planned episode of the trial."""
        found: list[Moment[S]] = []
        for phase in self._trial.phases:
            self.enter(phase, len(found))
            found += [self.at(number) for number in range(len(found), len(found) + phase.episodes)]
        return found

    def check_length(self, longest: int | None = None) -> None:
        """Refuse a ramp that takes longer than what is left of the test, wherever the change comes.

        Args:
            longest: Turns that an episode has at most; None where no one knows.
        """
        trial, start, window, before = self._trial, 0, self._trial.window, set[str]()
        for phase in [phase for phase in trial.phases if phase.name == "test" and (phase.episodes or phase.steps)]:
            early = start if window is None or not phase.novelty else min(start, window[0])
            left, start = trial.test_length - early, start + (phase.episodes or phase.steps)
            window = None if phase.novelty else window  # it is that of the first change
            turns = left if phase.steps else None if longest is None else left * longest
            for name in set(phase.novelty) - before:
                process = self._find(name).process
                if process is None or process.completes_after is None:
                    continue
                most = turns if process.unit == "turns" else None if phase.steps else left
                if most is not None and process.completes_after > most:
                    raise InvalidInput(
                        f"'{name}' takes {process.completes_after} {process.unit}, and the test has {most} at most "
                        "from the change on. Make the ramp shorter or the test longer."
                    )
            before = set(phase.novelty)

    def preview(self) -> Iterator[tuple[str, S]]:
        """Yield the settings at each moment of the test with when that is; where no one knows the moments, at some."""
        played = 0
        for phase in self._trial.phases:
            self.enter(phase, played)
            for episode in range(played, played + phase.episodes) if phase.novelty else ():
                yield f"in episode {episode + 1} of the trial", self.at(episode).settings
            played += phase.episodes
            for name, change in self._changes.items():
                process, blend = change.novelty.process, self._find_blend(name, change.novelty, self._settings)
                if process is not None and not phase.episodes:
                    _refuse_unbounded(name, process)
                if not phase.episodes or (process is not None and process.unit == "turns"):
                    for share in sample_shares(process, next(iter(blend.ranges), SHARES)):
                        yield f"at a strength of {min(1.0, abs(share)):g}", blend.at(share)[0]

    def _find_blend(self, name: str, novelty: Novelty[S], settings: S) -> Blend[S]:
        """Return the way from these settings to those with a change; the last one is kept."""
        known = self._blends.get(name)
        if known is None or (known[0] is not settings and known[0] != settings):
            known = self._blends[name] = settings, self._blend(settings, novelty.change(settings))
        return known[1]


class _Planned(Blend[Settings]):
    """A way of which only the text of a trial is known: any strength differs from the normal world."""

    def __init__(self, usual: Settings, changed: Settings) -> None:
        super().__init__(usual, changed)
        self.ranges = (SHARES,)

    def at(self, share: float) -> tuple[Settings, bool]:
        """Return the settings as they are, and whether anything is planned."""
        return self._usual, share != 0.0


def plan_course(trial: Trial) -> list[Moment[Settings]]:
    """Return what the text of a trial plans for each of its episodes; nothing if it has no course, or counts steps.

    Its domain is not asked. So a number that is rounded to its normal value counts as changed, and the strength of a
    process that gives values is that of one from 0 to 1.
    """
    if not trial.has_course or not all(phase.episodes for phase in trial.phases if phase.name == "test"):
        return []

    def find(name: str) -> Novelty[Settings]:
        text, process = split_process(name)
        return Novelty(text, 0, HIERARCHY[0], text, lambda settings: settings, process=process)

    usual = Settings(min_strength=trial.settings.get("min_strength", 0.0))
    return Course(trial, usual, find, _Planned).list_moments()


def check_process(novelty: Novelty[Any], blend: Blend[Any]) -> None:
    """Refuse a process that a novelty cannot have.

    Raises:
        InvalidInput: It has strengths between 0 and 1, and the novelty changes no number; or it gives the value of a
            number, and the novelty changes several, or one that begins outside the bounds.
    """
    process = novelty.process
    if process is None or not process.is_graded:
        return
    name = novelty.id.removesuffix(f" {process}")
    if not blend.ranges:
        raise InvalidInput(
            f"Novelty '{name}' changes no number gradually, so it cannot come '{process}'. It can come and go: every "
            "10, for 10, with probability 0.3, or as bursts(probability=0.1, length=3)."
        )
    if not process.is_valued:
        return
    if len(blend.ranges) > 1:
        raise InvalidInput(
            f"'{process}' gives the value of one number, and novelty '{name}' changes {len(blend.ranges)}. Write a "
            "process that gives a strength, such as over 20 or as sine(period=30)."
        )
    bounds, usual = dict(process.numbers), blend.ranges[0].usual
    if not bounds.get("low", usual) <= usual <= bounds.get("high", usual):
        raise InvalidInput(f"'{name} {process}' begins at the normal value, {usual:g}, which is beyond its bounds.")
    if process.unit == "turns":
        _refuse_unbounded(f"{name} {process}", process)


def _refuse_unbounded(text: str, process: ChangeProcess) -> None:
    """Refuse a value without bounds whose times cannot be gone through."""
    if process.is_valued and process.shape != "walk" and len(dict(process.numbers).keys() & {"low", "high"}) < 2:
        raise InvalidInput(f"'{text}' needs low and high: how long it will last is known only when it is played.")


def sample_shares(process: ChangeProcess | None, range_: Range) -> list[float]:
    """Return how far a change may go whose times cannot be gone through, as no one knows how many there will be."""
    if process is None or not process.is_graded:
        return [1.0]
    if not process.is_valued:
        return [part / CHECKED_SHARES for part in range(CHECKED_SHARES + 1)]
    low, high = (dict(process.numbers).get(name, usual) for name, usual in zip(("low", "high"), range_, strict=True))
    return [(value - range_.usual) / (range_.full - range_.usual) for value in (low, high)]
