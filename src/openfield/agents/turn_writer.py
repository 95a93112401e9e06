"""Turns in words and pictures, and actions read from JSON or a typed line: for language models and for people.

`TurnWriter` does it for any `Spec`. A domain that says it better brings a subclass (`capabilities.WritesTurns`). A
model is asked by `llm/language_model.py`, a person at a terminal by `human.py`, and both in the same words at the same
moments what they believe. Agents that are programs state a belief when they like; one that talks must be asked.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.capabilities import WritesTurns
from openfield.core import Ask, AskMoment, Reply, Spec, Turn
from openfield.domain import Domain
from openfield.record import is_picture
from openfield.spaces import Box, Choice, Discrete, Fields, Sequence, Space, Text, Tuple

HELP = "Type an action; '? 0.7' says how sure you are that the world has changed; QUIT stops (and can be resumed)."
MAX_NUMBERS = 64
"""Numbers of an array that are written out."""
MAX_BOUNDS = 16
"""How many bounds are listed one by one, where they differ."""
MAX_TEXT = 6_000
"""Characters of the description of one observation."""
Schema = dict[str, Any]
SHADES = " .:-=+*#%@"
"""Signs for pixels, from dark to bright. Each is printed twice, because a sign is about twice as high as wide."""
MAX_PIXELS = 32
"""Pixels of a drawn row; larger pictures are thinned out."""
GAP, MAX_COLUMNS = 4, 80
"""Blanks between pictures side by side, and how wide they are together."""
BELIEF_QUESTION = "How likely is it that your world has changed? 0: it has certainly not changed. 1: it certainly has."
_PERCENT = re.compile(r"\s*([\d.]+)\s*%\s*")


class TurnText(NamedTuple):
    """A turn in words."""

    text: str
    """Empty if there is nothing to say."""
    images: tuple[Any, ...] = ()
    """Pictures beside it: bytes of (height, width) or (height, width, 3)."""


class TurnWriter:
    """Describes turns in words, and reads actions from JSON values.

    It may keep a state. All turns of a trial are shown to it in order, those that nothing is asked about too.
    """

    rules = ""
    """Advice to a player beside the task."""
    help = HELP
    """The words that a person at a terminal may type."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def task(self) -> str:
        """The task as a person reads it."""
        return self.spec.task

    @property
    def schema(self) -> Schema | None:
        """The JSON schema of an action; None if it can be anything."""
        return None if self.spec.actions is None else schema_of(self.spec.actions)

    @property
    def action(self) -> str:
        """A description of actions, in words."""
        return "anything" if self.spec.actions is None else describe_space(self.spec.actions)

    def describe(self, turn: Turn) -> TurnText:
        """Return a turn in words. It is called once for every turn."""
        seen = self.describe_observation(turn.observation)
        parts = [f"[{turn.phase}] A new episode begins." if turn.first else ""]
        follows = not turn.first and turn.ask is not Ask.READY
        parts += [f"Reward: {turn.reward:g}"] if turn.reward or follows else []
        parts += [self.describe_feedback(turn.feedback)] if turn.feedback is not None else []
        parts += [describe_light(turn.red_light)] if turn.red_light is not None else []
        parts += [seen.text]
        parts += [self.describe_end(turn)] if turn.last is not None else []
        return TurnText("\n".join(part for part in parts if part), seen.images)

    def describe_observation(self, observation: Any) -> TurnText:
        """Return an observation in words."""
        images: list[Any] = []
        text = write_plain(observation, images)
        return TurnText(_title("Observation", text), tuple(images))

    def describe_feedback(self, feedback: Any) -> str:
        """Return what the last reply earned beside the reward, in words."""
        return _title("Feedback", write_plain(feedback, []))

    def describe_end(self, turn: Turn) -> str:
        """Return in words how an episode ended."""
        return f"The episode is over ({turn.last})."

    def pass_over(self, turn: Turn) -> Reply | None:
        """Return the reply to a turn about which the player need not be asked; None if it must be asked."""
        unasked = turn.ask in (Ask.NONE, Ask.READY) and not self.asks_belief(turn)
        return Reply() if unasked else None

    def asks_belief(self, turn: Turn) -> bool:
        """Return whether the player is asked here for its belief."""
        return asks_belief(turn, self.spec.ask)

    def sample(self, rng: random.Random) -> Any:
        """Return a random JSON value that stands for an action, to try turns without a player."""
        return None if self.spec.actions is None else self.spec.actions.sample(rng)

    def read(self, value: Any) -> Any:
        """Return the action that a JSON value stands for.

        Raises:
            ValueError: It is not an action here; the message says what would be one.
        """
        if self.spec.actions is None:
            return value
        action = fit_value(self.spec.actions, value)
        if not self.spec.actions.contains(action):
            raise ValueError(f"{_short(value)} is not an action here; it must be {describe_space(self.spec.actions)}")
        return action

    def show(self, turn: Turn) -> str:
        """Return a turn as a terminal shows it: described, with pictures drawn as text."""
        shown = self.describe(turn)
        drawn = draw_beside({f"picture {number}": draw_as_text(image) for number, image in enumerate(shown.images, 1)})
        return f"{shown.text}\n{drawn}" if drawn else shown.text

    def prompt(self, turn: Turn) -> str:
        """Return what asks a person for a line; empty if this turn needs none. It is called after `show`."""
        if turn.ask is not Ask.ACT:
            return "Ready? Press Enter: " if turn.ask is Ask.READY else ""
        match self.spec.actions:
            case Choice(options):
                return f"{' | '.join(options)}: "
            case Discrete(n, start):
                return f"{start} .. {start + n - 1}: "
            case _:
                return "action (JSON): "

    def explain(self, line: str) -> str:
        """Return the answer to a line that asks for something, as ? does for help; empty if it does not."""
        return self.help if line == "?" else ""

    def read_line(self, line: str) -> Any:
        """Return the action that a person typed; None if further lines belong to it.

        Raises:
            ValueError: It is not an action here; the message says what would be one.
        """
        text = line.strip()
        value = text if isinstance(self.spec.actions, Choice) else decode_line(text)
        if not text or value is None:
            raise ValueError(f"an action must be {self.action}")
        return self.read(value)


def describe_light(light: bool | float) -> str:
    """Return what a red light says."""
    if isinstance(light, bool):
        return f"Red light: the world has {'' if light else 'not '}changed."
    return f"Red light: the world has changed by {light:.0%} of what it may."


def find_writer(domain: Domain[Any], spec: Spec) -> TurnWriter:
    """Return what says the turns of a trial in words: the domain's own writer, or that of any `Spec`."""
    return domain.turn_writer(spec) if isinstance(domain, WritesTurns) else TurnWriter(spec)


def decode_line(text: str) -> Any:
    """Return a line decoded from JSON, or the line itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def schema_of(space: Space) -> Schema:
    """Return the JSON schema of the values of a space."""
    match space:
        case Discrete(n, start):
            return {"type": "integer", "minimum": start, "maximum": start + n - 1}
        case Choice(options):
            return {"type": "string", "enum": list(options)}
        case Box():
            return _box_schema(space)
        case Fields(parts):
            return object_schema({name: schema_of(part) for name, part in parts.items()})
        case Tuple(parts):
            kinds = [schema_of(part) for part in parts]
            unique = [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]]
            items = unique[0] if len(unique) == 1 else {"anyOf": unique}
            return {"type": "array", "items": items, "minItems": len(kinds), "maxItems": len(kinds)}
        case Sequence(part):
            return {"type": "array", "items": schema_of(part)}
        case Text():
            return {"type": "string"}


def object_schema(properties: Schema) -> Schema:
    """Return the schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def describe_space(space: Space) -> str:
    """Describe the values of a space in words."""
    match space:
        case Discrete(n, start):
            return f"a whole number from {start} to {start + n - 1}"
        case Choice(options):
            return f"one of {', '.join(map(repr, options))}"
        case Box(shape=shape):
            bounds = _describe_bounds(space)
            kind = "whole number" if _is_whole(space) else "number"
            return f"a {kind}{bounds}" if not shape else f"{'x'.join(map(str, shape))} {kind}s{bounds}, as a list"
        case Fields(parts):
            return f"an object with {', '.join(f'{name}: {describe_space(part)}' for name, part in parts.items())}"
        case Tuple(parts):
            return f"a list of {'; '.join(map(describe_space, parts))}"
        case Sequence(part):
            return f"a list of any length, each {describe_space(part)}"
        case Text(max_length=longest):
            return f"a text of at most {longest} characters"


def fit_value(space: Space, value: Any) -> Any:
    """Return a JSON value in the form that a space wants; what does not fit is returned as it is.

    Models write `"3"` or `3.0` for 3, and words in another case than the options have.
    """
    match space:
        case Discrete():
            return _read_whole(value)
        case Choice(options):
            word = str(value).strip().casefold()
            return next((option for option in options if option.casefold() == word), value)
        case Box():
            return _read_numbers(value, _read_whole if _is_whole(space) else _read_number)
        case Fields(parts) if isinstance(value, dict):
            return {name: fit_value(parts[name], one) if name in parts else one for name, one in value.items()}
        case Tuple(parts) if isinstance(value, list) and len(value) == len(parts):
            return [fit_value(part, one) for part, one in zip(parts, value, strict=True)]
        case Sequence(part) if isinstance(value, list):
            return [fit_value(part, one) for one in value]
        case Text():
            return value if isinstance(value, str) else str(value)
        case _:
            return value


def write_plain(value: Any, images: list[Any]) -> str:
    """Return any value in words; pictures in it are named, and added to a list."""
    if is_picture(value):
        images.append(value)
        return f"picture {len(images)}, {value.shape[1]} x {value.shape[0]} pixels"
    if isinstance(value, dict):
        return "\n".join(f"- {name}: {write_plain(one, images)}" for name, one in value.items())
    if isinstance(value, np.ndarray):
        return _write_array(value)
    if isinstance(value, list | tuple) and any(isinstance(one, np.ndarray | dict) for one in value):
        return "; ".join(write_plain(one, images) for one in value)
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list | tuple):
        shown = ", ".join(write_plain(one, images) for one in value[:MAX_NUMBERS])
        return f"[{shown}{f', ... {len(value)} in all' if len(value) > MAX_NUMBERS else ''}]"
    if value is None or isinstance(value, str | int):
        return "" if value is None else str(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def shorten_text(text: str) -> str:
    """Return a text that is not too long to be read each turn."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ... ({len(text):,} characters)"


def _title(name: str, text: str) -> str:
    """Return a text with its name, on lines of its own if it is a list."""
    return f"{name}:{chr(10) if text.startswith('- ') else ' '}{shorten_text(text)}" if text else ""


def _write_array(array: Any) -> str:
    if array.ndim == 2 and array.size <= MAX_NUMBERS and array.dtype.kind in "iub":
        return "\n" + "\n".join(" ".join(map(str, row)) for row in array.tolist())
    flat = array.ravel()[:MAX_NUMBERS].tolist()
    shown = ", ".join(f"{one:.5g}" if isinstance(one, float) else str(one) for one in flat)
    sizes = "x".join(map(str, array.shape))
    if not array.ndim:
        return shown
    return f"[{shown}]" if array.size <= MAX_NUMBERS and array.ndim < 2 else f"{sizes} numbers [{shown} ...]"


def _describe_bounds(space: Box) -> str:
    """Return the bounds of numbers in words: common ones, or of some numbers those of each."""
    low, high = space.bounds
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    if len(set(pairs)) > 1 and len(pairs) <= MAX_BOUNDS:
        return f" ({'; '.join(f'{least:g} to {most:g}' for least, most in pairs)})"
    return f" from {low.min():g} to {high.max():g}" if pairs else ""


def _box_schema(space: Box) -> Schema:
    low, high = space.bounds
    number: Schema = {"type": "integer" if _is_whole(space) else "number"}
    if low.size and math.isfinite(low.min()):
        number["minimum"] = low.min().item()
    if high.size and math.isfinite(high.max()):
        number["maximum"] = high.max().item()
    for size in reversed(space.shape):
        number = {"type": "array", "items": number, "minItems": size, "maxItems": size}
    return number


def _is_whole(space: Box) -> bool:
    return space.dtype == "bool" or bool(np.issubdtype(space.dtype, np.integer))


def _read_whole(value: Any) -> Any:
    number = _read_number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else value


def _read_number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else value
    except (ValueError, OverflowError):
        return value


def _read_numbers(value: Any, read: Any) -> Any:
    return [_read_numbers(one, read) for one in value] if isinstance(value, list) else read(value)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"


def draw_beside(pictures: Mapping[str, str]) -> str:
    """Return drawn pictures side by side with their titles, in as many rows as the width asks for."""
    blocks = [[title, *text.split("\n")] for title, text in pictures.items()]
    width = max((len(line) for block in blocks for line in block), default=0) + GAP
    beside = max(MAX_COLUMNS // width, 1)
    rows = []
    for at in range(0, len(blocks), beside):
        lines = zip_longest(*blocks[at : at + beside], fillvalue="")
        rows.append("\n".join("".join(text.ljust(width) for text in line).rstrip() for line in lines))
    return "\n\n".join(rows)


def draw_as_text(image: NDArray[Any]) -> str:
    """Draw a picture as text; anything else is printed as numbers."""
    pixels = np.asarray(image, dtype=float)
    pixels = pixels.mean(axis=2) if pixels.ndim == 3 else pixels
    if pixels.ndim != 2:
        return " ".join(f"{value:.3g}" for value in pixels.ravel()[:MAX_PIXELS])
    step = -(-max(pixels.shape) // MAX_PIXELS)
    low, high = float(pixels.min()), float(pixels.max())
    shades = ((pixels[::step, ::step] - low) / ((high - low) or 1.0) * (len(SHADES) - 1)).round().astype(int)
    return "\n".join("".join(SHADES[shade] * 2 for shade in row).rstrip() for row in shades)


def asks_belief(turn: Turn, moment: AskMoment) -> bool:
    """Return whether the question comes with this turn. A world that asks for a belief itself is always answered."""
    if turn.ask is Ask.BELIEF:
        return True
    if turn.phase != "test":
        return False
    return turn.last is not None or (moment == "turn" and turn.ask is Ask.ACT)


def read_probability(value: Any) -> float:
    """Return a probability that a model or a person wrote as a number, as text, or in percent.

    Raises:
        ValueError: It is not a belief.
    """
    number = None
    plain = not isinstance(value, str) or (value.isascii() and "_" not in value)  # Python reads all scripts' digits
    if isinstance(value, str) and plain:
        percent = _PERCENT.fullmatch(value)
        value = float(percent[1]) / 100 if percent else value.strip()
    if plain and not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not 0.0 <= number <= 1.0:
        raise ValueError(f"world_changed is a number from 0 to 1, not {value!r:.40}")
    return number
