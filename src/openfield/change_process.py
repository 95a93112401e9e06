"""How a change comes: a process says how strong it is at each moment, from 0 (normal) to 1 (full).

`gravity=19.6 over 20` is a novelty and its process: the one text that trials keep, read and written here only. A
process is a pure function of a seed and a time, which counts the episodes, or the turns, since the onset.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import cos
from typing import Literal, NamedTuple

import msgspec

from openfield.errors import InvalidInput, UnknownName

__all__ = ["NORMAL", "SHAPES", "THEN", "ChangeProcess", "split_process", "split_stages", "write_stages"]

Unit = Literal["episodes", "turns"]
NORMAL = "none"
"""The stage in which nothing differs from the normal world."""
THEN = " then "
"""What stands between the stages of a world that changes more than once: `swapped then none then swapped`."""
DIGITS = 12
"""Decimals of a strength: the last bits of a sine depend on the machine, and a replay must not."""
SCALE = 10.0**DIGITS
TURN = 2.0 * math.pi
MAX_TIME = 1_000_000_000
"""Episodes or turns: more than any trial has."""
MAX_NUMBER = 1e100
"""Larger numbers of a process run over where they are squared and summed up."""


class Parameter(NamedTuple):
    """A number of a shape, and what it may be."""

    low: float = 0.0
    high: float = math.inf
    open_low: bool = True
    """Whether the lowest value itself is not allowed."""
    usual: float | None = None
    """Where it is left out; None if it must be given."""
    whole: bool = False
    optional: bool = False
    """Whether it may be left out, and then depends on the setting."""

    def check(self, name: str, value: float, text: str) -> float:
        """Return a value that is allowed; refuse others."""
        above = value > self.low if self.open_low else value >= self.low
        most = min(self.high, MAX_TIME) if self.whole else self.high
        if not (above and value <= most and abs(value) <= MAX_NUMBER) or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            low = f"{'above' if self.open_low else 'of at least'} {self.low:g}" if math.isfinite(self.low) else ""
            high = f"up to {self.high:g}" if math.isfinite(self.high) else ""
            high = f"and at most {MAX_TIME if self.whole else MAX_NUMBER:,}" if value > MAX_TIME else high
            raise InvalidInput(f"'{text}': {name} must be {' '.join(filter(None, (kind, low, high)))}, not {value:g}.")
        return value


class Range(NamedTuple):
    """The normal and the full value of the number that a novelty changes."""

    usual: float
    full: float


SHARES = Range(0.0, 1.0)
"""The range of a strength itself."""

Numbers = Mapping[str, float]
Curve = Callable[[int], float]
"""Time -> how far the number is on its way; beyond 0 and 1 for some values."""
MakeCurve = Callable[[Numbers, int, Range], Curve]
"""Makes the curve of the numbers of a shape, a seed, and the range of what changes: it is asked in every turn."""


class ProcessShape(NamedTuple):
    """A kind of process."""

    parameters: dict[str, Parameter]
    curve: MakeCurve
    note: str
    graded: bool = True
    """Whether it has strengths between 0 and 1, so that the novelty must change a number."""
    valued: bool = False
    """Whether it gives the value of one number, in the unit of the setting."""


class ChangeProcess(msgspec.Struct, frozen=True):
    """How a change comes. `ChangeProcess.read("over 20")` makes one, `str` writes it in the same words."""

    shape: str
    """One of `SHAPES`."""
    numbers: tuple[tuple[str, float], ...]
    """The numbers of the shape by name; those of points are pairs of a time and a strength."""
    unit: Unit = "episodes"
    """What time counts."""

    @staticmethod
    def read(text: str) -> ChangeProcess:
        """Return the process that a text such as `over 20` or `as sine(period=30)` stands for.

        Raises:
            InvalidInput: It stands for none.
        """
        return _read(" ".join(text.split()))

    def __str__(self) -> str:
        """Return the process in the words in which it is read."""
        return _write(self)

    @property
    def is_graded(self) -> bool:
        """Whether it has strengths between 0 and 1."""
        return SHAPES[self.shape].graded

    @property
    def is_valued(self) -> bool:
        """Whether it gives the value of a single number."""
        return SHAPES[self.shape].valued

    @property
    def completes_after(self) -> int | None:
        """After what time a ramp is complete; None for other processes."""
        return int(dict(self.numbers)["over"]) if self.shape == "over" else None

    def share(self, seed: int, time: int, range_: Range = SHARES) -> float:
        """Return how far the number is from its normal value to the full one; beyond 0 and 1 for some values.

        Args:
            seed: The source of all chance.
            time: Episodes, or turns, since the onset, from 0 on.
            range_: The normal and the full value, for a process that gives values.
        """
        return self.trace(seed, range_)(time)

    def trace(self, seed: int, range_: Range = SHARES) -> Curve:
        """Return `share` as a function of time."""
        curve = SHAPES[self.shape].curve(dict(self.numbers), seed, range_)

        def share(time: int) -> float:
            """Return `round(value, DIGITS) + 0.0`, mostly in half its time: a quotient of whole numbers is exact."""
            value = curve(time)
            if -1.0 < value < 1.0:
                scaled = value * SCALE
                whole = round(scaled)
                if -0.499 < scaled - whole < 0.499:  # what the product lost cannot have led past the middle
                    return whole / SCALE
            return round(value, DIGITS) + 0.0

        return share

    def strength(self, seed: int, time: int, range_: Range = SHARES) -> float:
        """Return the strength of the change at a time: 0 is normal, 1 is full."""
        return min(1.0, abs(self.share(seed, time, range_)))


def _ramp(numbers: Numbers, seed: int, range_: Range) -> Curve:
    over, step = numbers["over"], int(numbers["step"])
    return lambda time: min(1.0, (time // step + 1) * step / over)


def _come_and_go(numbers: Numbers, seed: int, range_: Range) -> Curve:
    every, stay = numbers["every"], numbers["stay"]
    return lambda time: float(time % every < stay)


def _stay(numbers: Numbers, seed: int, range_: Range) -> Curve:
    stay = numbers["stay"]
    return lambda time: float(time < stay)


def _chance(numbers: Numbers, seed: int, range_: Range) -> Curve:
    """Return what comes by chance each time. The first time is the onset."""
    probability = numbers["probability"]
    return lambda time: float(time == 0 or random.Random(f"{seed}/{time}").random() < probability)


def _bursts(numbers: Numbers, seed: int, range_: Range) -> Curve:
    begins, length = _chance(numbers, seed, range_), int(numbers["length"])
    return lambda time: float(any(map(begins, range(max(0, time - length + 1), time + 1))))


def _sine(numbers: Numbers, seed: int, range_: Range) -> Curve:
    period = numbers["period"]
    return lambda time: (1.0 - cos(TURN * (time + 1) / period)) / 2.0


def _sigmoid(numbers: Numbers, seed: int, range_: Range) -> Curve:
    width = numbers["width"]
    return lambda time: 1.0 / (1.0 + 99.0 ** (1.0 - 2.0 * (time + 1) / width))


def _geometric(numbers: Numbers, seed: int, range_: Range) -> Curve:
    start, growth = numbers["start"], math.log(numbers["ratio"])
    return lambda time: min(1.0, start * math.exp(min(700.0, time * growth)))


def _exponential(numbers: Numbers, seed: int, range_: Range) -> Curve:
    rate = numbers["rate"]
    return lambda time: 1.0 - math.exp(-rate * (time + 1))


def _points(numbers: Numbers, seed: int, range_: Range) -> Curve:
    places = [(float(name), value) for name, value in numbers.items()]

    def curve(time: int) -> float:
        after = next((number for number, (place, _) in enumerate(places) if place >= time), len(places))
        if after in (0, len(places)):
            return places[min(after, len(places) - 1)][1]
        (start, low), (end, high) = places[after - 1 : after + 1]
        return low + (high - low) * (time - start) / (end - start)

    return curve


def _walk(numbers: Numbers, seed: int, range_: Range) -> Curve:
    low, high = numbers.get("low", min(range_)), numbers.get("high", max(range_))
    return _follow(_trace("walk", (numbers["sigma"], low, high), seed, range_), range_)


def _revert(numbers: Numbers, seed: int, range_: Range) -> Curve:
    bounds = numbers.get("low", -math.inf), numbers.get("high", math.inf)
    return _follow(_trace("ornstein_uhlenbeck", (numbers["sigma"], *bounds, numbers["theta"]), seed, range_), range_)


def _follow(path: _Path, range_: Range) -> Curve:
    usual, width = range_.usual, range_.full - range_.usual
    return lambda time: (path.at(time) - usual) / width


class _Path:
    """Values that follow each other by chance. They are the same whenever they are asked for."""

    def __init__(self, numbers: tuple[float, ...], seed: int, range_: Range) -> None:
        self._sigma, self._low, self._high, *self._theta = numbers
        self._rng, self._range = random.Random(f"{seed}/path"), range_
        self._values: list[float] = []

    def at(self, time: int) -> float:
        """Return the value at a time; one step leads from the normal value to the first."""
        while len(self._values) <= time:
            self._values.append(self._step(self._values[-1] if self._values else self._range.usual))
        return self._values[time]

    def _step(self, value: float) -> float:
        # two draws make a normal one; what `random` makes of them may differ between versions of Python
        chance, angle = 1.0 - self._rng.random(), self._rng.random()
        value += self._sigma * math.sqrt(-2.0 * math.log(chance)) * math.cos(2.0 * math.pi * angle)
        if self._theta:
            return min(self._high, max(self._low, value + self._theta[0] * (self._range.full - value)))
        return _reflect(value, self._low, self._high)


def _reflect(value: float, low: float, high: float) -> float:
    """Return a value that was thrown back at the bounds."""
    width = high - low
    place = (value - low) % (2.0 * width)
    return low + min(place, 2.0 * width - place)


@lru_cache(256)
def _trace(kind: str, numbers: tuple[float, ...], seed: int, range_: Range) -> _Path:
    return _Path(numbers, seed, range_)


_LENGTH = Parameter(whole=True, low=1, open_low=False)
_FREE = Parameter(low=-math.inf, optional=True)
_CHANCE = Parameter(high=1.0)
SHAPES: dict[str, ProcessShape] = {
    "over": ProcessShape(
        {"over": _LENGTH, "step": _LENGTH._replace(usual=1)}, _ramp, "grows evenly, or in steps, and is then complete"
    ),
    "every": ProcessShape(
        {"every": _LENGTH._replace(low=2), "stay": _LENGTH}, _come_and_go, "comes and goes", graded=False
    ),
    "for": ProcessShape({"stay": _LENGTH}, _stay, "comes and is gone after a while", graded=False),
    "probability": ProcessShape(
        {"probability": _CHANCE},
        _chance,
        "comes with a probability each time, and with certainty at the onset",
        graded=False,
    ),
    "bursts": ProcessShape(
        {"probability": _CHANCE, "length": _LENGTH},
        _bursts,
        "comes in bursts that begin with a probability and have a length; the first begins at the onset",
        graded=False,
    ),
    "sine": ProcessShape({"period": Parameter(low=2, open_low=False)}, _sine, "swings between normal and full"),
    "sigmoid": ProcessShape(
        {"width": Parameter()}, _sigmoid, "grows slowly, then fast, then slowly: from 0.01 to 0.99 within its width"
    ),
    "geometric": ProcessShape(
        {"ratio": Parameter(low=1), "start": Parameter(high=1.0, usual=0.01)},
        _geometric,
        "begins with a start and is multiplied by a ratio each time, until it is full",
    ),
    "exponential": ProcessShape(
        {"rate": Parameter()}, _exponential, "grows fast at first: what is left to full falls off at a rate"
    ),
    "points": ProcessShape(
        {}, _points, "goes straight from point to point, each a time and a strength: points(0:0.2, 10:1)"
    ),
    "walk": ProcessShape(
        {"sigma": Parameter(), "low": _FREE, "high": _FREE},
        _walk,
        "a random walk of the value, from the normal one on, which is thrown back at low and high; without them at the "
        "normal and the full value",
        valued=True,
    ),
    "ornstein_uhlenbeck": ProcessShape(
        {"theta": Parameter(high=1.0), "sigma": Parameter(open_low=False), "low": _FREE, "high": _FREE},
        _revert,
        "a random walk of the value that is pulled to the full one: theta is the share of the way it is pulled",
        valued=True,
    ),
}
"""All kinds of processes by name. The first four are written in words, the others as `as NAME(...)`."""

_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_WORDS = re.compile(
    rf"over (?P<over>{_NUMBER})(?: (?P<over_unit>turns?|episodes?))?(?: in steps of (?P<step>{_NUMBER}))?"
    rf"|every (?P<every>{_NUMBER})(?: (?P<every_unit>turns?|episodes?))?(?: for (?P<every_stay>{_NUMBER}))?"
    rf"|for (?P<stay>{_NUMBER})(?: (?P<stay_unit>turns?|episodes?))?"
    rf"|with probability (?P<probability>{_NUMBER})(?P<probability_unit> in turns)?"
    r"|as (?P<shape>[a-z_]+)\((?P<inside>[^()]*)\)(?P<shape_unit> in turns)?"
)
_BEGINS = re.compile(r"\s(?=(?:over|every|for|with probability|as)\s)")
_EXAMPLES = (
    "over 20, over 20 in steps of 5, over 500 turns, every 10, every 10 for 3, for 10, with probability 0.3, or as "
    "NAME(...) with one of"
)
MAX_LENGTH = 400
"""Characters of a process: room for forty points."""


def split_process(text: str) -> tuple[str, ChangeProcess | None]:
    """Return the novelty and the process in a text such as `gravity=19.6 over 20`; None if it has no process.

    Raises:
        InvalidInput: What follows the novelty begins like a process, but is not one.
    """
    found = _BEGINS.search(text)
    if found is None:
        return text, None
    return text[: found.start()].rstrip(), ChangeProcess.read(text[found.end() :])


def split_stages(novelty: str) -> tuple[str, ...]:
    """Return the stages of a novelty such as `swapped then none then slip:hard`, in order."""
    return tuple(stage.strip() for stage in novelty.split(THEN))


def write_stages(stages: tuple[tuple[str, ...], ...]) -> str:
    """Return stages, each given by its novelties, as one text."""
    return THEN.join("+".join(stage) or NORMAL for stage in stages)


def _read(text: str) -> ChangeProcess:
    found = _WORDS.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if found is None:
        raise InvalidInput(f"'{text:.100}' is no process. Write {_EXAMPLES} {', '.join(list(SHAPES)[4:])}.")
    given = found.groupdict()
    if given["shape"]:
        return _read_shape(given["shape"], given["inside"], "turns" if given["shape_unit"] else "episodes", text)
    if given["over"]:
        numbers, unit, shape = {"over": given["over"], "step": given["step"] or "1"}, given["over_unit"], "over"
    elif given["every"]:
        half = str((int(min(float(given["every"]), MAX_TIME)) + 1) // 2)
        numbers, unit, shape = (
            {"every": given["every"], "stay": given["every_stay"] or half},
            given["every_unit"],
            "every",
        )
    elif given["stay"]:
        numbers, unit, shape = {"stay": given["stay"]}, given["stay_unit"], "for"
    else:
        numbers, unit, shape = {"probability": given["probability"]}, given["probability_unit"], "probability"
    return _make(shape, numbers, "turns" if "turn" in (unit or "") else "episodes", text)


def _read_shape(shape: str, inside: str, unit: Unit, text: str) -> ChangeProcess:
    if shape not in list(SHAPES)[4:]:
        raise UnknownName("process", shape, list(SHAPES)[4:], label="Known")
    parts = [part.strip() for part in inside.split(",") if part.strip()]
    sign = ":" if shape == "points" else "="
    pairs = [part.partition(sign) for part in parts]
    for part, (_, found, value) in zip(parts, pairs, strict=True):
        if not found or not re.fullmatch(_NUMBER, value.strip()):
            form = "TIME:STRENGTH, such as points(0:0.2, 10:1)" if shape == "points" else "NAME=NUMBER"
            raise InvalidInput(f"'{text}': '{part}' is not of the form {form}.")
    numbers = {name.strip(): value.strip() for name, _, value in pairs}
    if len(numbers) < len(parts):
        raise InvalidInput(f"'{text}': a number is given twice.")
    return _make(shape, numbers, unit, text) if shape != "points" else _make_points(numbers, unit, text)


def _make(shape: str, given: Mapping[str, str], unit: Unit, text: str) -> ChangeProcess:
    known = SHAPES[shape].parameters
    for name in given:
        if name not in known:
            raise UnknownName(f"number of {shape}", name, known, label="Known")
    numbers = []
    for name, parameter in known.items():
        if name in given:
            numbers.append((name, parameter.check(name, float(given[name]), text)))
        elif parameter.usual is not None:
            numbers.append((name, parameter.usual))
        elif not parameter.optional:
            raise InvalidInput(f"'{text}': {name} is missing. {shape}: {SHAPES[shape].note}.")
    _check_together(shape, dict(numbers), text)
    return ChangeProcess(shape, tuple(numbers), unit)


def _check_together(shape: str, numbers: Numbers, text: str) -> None:
    """Refuse numbers that do not fit each other."""
    if shape == "over" and numbers["step"] > numbers["over"]:
        raise InvalidInput(f"'{text}': a step is longer than the whole ramp.")
    if shape == "every" and numbers["stay"] >= numbers["every"]:
        raise InvalidInput(f"'{text}': it would never go, as it stays for its whole period.")
    if shape == "walk" and ("low" in numbers) != ("high" in numbers):
        raise InvalidInput(f"'{text}': low and high are given together, or not at all.")
    if numbers.get("low", -math.inf) >= numbers.get("high", math.inf):
        raise InvalidInput(f"'{text}': low must be below high.")


def _make_points(given: Mapping[str, str], unit: Unit, text: str) -> ChangeProcess:
    points = [(float(time), float(strength)) for time, strength in given.items()]
    times = [time for time, _ in points]
    if not points or times != sorted(set(times)) or times[0] < 0 or times[-1] > MAX_TIME:
        raise InvalidInput(f"'{text}': points have times from 0 to {MAX_TIME:,}, in order, each with a strength.")
    if not all(0.0 <= strength <= 1.0 for _, strength in points):
        raise InvalidInput(f"'{text}': a strength is a number from 0 to 1.")
    if not any(strength for _, strength in points):
        raise InvalidInput(f"'{text}': all its strengths are 0, so that nothing would change.")
    return ChangeProcess("points", tuple((_plain(time), strength) for time, strength in points), unit)


def _write(process: ChangeProcess) -> str:
    numbers = {name: _plain(value) for name, value in process.numbers}
    turns = " turns" if process.unit == "turns" else ""
    match process.shape:
        case "over":
            steps = f" in steps of {numbers['step']}" if numbers["step"] != "1" else ""
            return f"over {numbers['over']}{turns}{steps}"
        case "every":
            half = (int(numbers["every"]) + 1) // 2
            stay = f" for {numbers['stay']}" if int(numbers["stay"]) != half else ""
            return f"every {numbers['every']}{turns}{stay}"
        case "for":
            return f"for {numbers['stay']}{turns}"
    turns = f" in{turns}" if turns else ""
    if process.shape == "probability":
        return f"with probability {numbers['probability']}{turns}"
    sign = ":" if process.shape == "points" else "="
    usual = SHAPES[process.shape].parameters
    parts = [f"{name}{sign}{value}" for name, value in numbers.items() if not _is_usual(usual.get(name), value)]
    return f"as {process.shape}({', '.join(parts)}){turns}"


def _is_usual(parameter: Parameter | None, value: str) -> bool:
    return parameter is not None and parameter.usual is not None and _plain(parameter.usual) == value


def _plain(value: float) -> str:
    """Return a number without the sign that joins novelties."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value).replace("e+", "e")
