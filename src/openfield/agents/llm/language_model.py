"""An agent that asks a language model: turns become questions in words, answers become replies with a note.

The note of a reply holds the messages, the answer, tokens, seconds and cost. From it a resumed agent rebuilds its
conversation, so that nothing is asked, and paid for, twice.
"""

from __future__ import annotations

import ast
import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openfield.agents.llm.model_endpoint import ModelAnswer, ModelQuestion, QuestionTooLong
from openfield.agents.turn_writer import BELIEF_QUESTION, Schema, TurnText, TurnWriter, object_schema, read_probability
from openfield.core import Ask, Belief, Reply, Turn
from openfield.errors import AgentProtocol

SYSTEM = (
    "You act in a world that is described to you turn by turn. Its rules, its objects or the effects of your actions "
    "may change at some point, or never. Act as well as you can, and watch for such a change."
)
ANSWER = "Answer every turn with one JSON object and nothing else. Its keys:"
REASONING = "one line on why"
NOTES = "what you want to remember; it replaces your notes, and is shown to you each turn"
MAX_NOTES = 4_000
"""Characters of the notes that a model keeps for itself."""
Messages = list[dict[str, Any]]
AskModel = Callable[[ModelQuestion], ModelAnswer]
"""Returns the answer to a question; a recorded one while a cell is resumed."""
MAX_ANSWER = 50_000
"""Characters of an answer that are looked at."""
MAX_TRIES = 50
"""Places of an answer at which an object may begin."""
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",\s*([}\]])")


@dataclass(frozen=True)
class PromptOptions:
    """How a model is asked."""

    history: int = 20
    """Questions and answers before the present one that it is shown."""
    system: str = SYSTEM
    """The beginning of the system message; the task and the form of an answer follow."""
    notes: bool = False
    """Whether it may keep notes for itself."""
    images: bool = True
    """Whether pictures are sent."""
    prices: tuple[float, float] | None = None
    """The prices of a million input tokens and a million output tokens."""


class LanguageModel:
    """Answers turns by asking a model. It is asked once more if its answer cannot be read."""

    may_leave = True  # an endpoint that does not answer leaves the cell to be resumed

    def __init__(self, writer: TurnWriter, ask: AskModel, prompt: PromptOptions = PromptOptions()) -> None:  # noqa: B008
        """Begin a conversation.

        Args:
            writer: Says turns in words, and reads actions.
            ask: Asks the model.
            prompt: How it is asked.
        """
        self._writer, self._ask, self._prompt = writer, ask, prompt
        self._past: list[tuple[str, str]] = []  # questions and answers
        self._unsaid: list[TurnText] = []  # turns about which nothing was asked
        self._notes = ""
        self.on_wait: Callable[[int], None] = lambda _: None
        """Called with the nanoseconds in which it waited for a busy endpoint."""

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        return self._answer(turn, self._ask)

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of a recorded turn: the note of its reply holds the model's answer."""
        recorded = _read_recorded(reply.note)

        def ask(question: ModelQuestion) -> ModelAnswer:
            answer = next(recorded, None)
            if answer is None:
                raise AgentProtocol("the record of an answer is missing")
            return answer

        self._answer(turn, ask)

    def _answer(self, turn: Turn, ask: AskModel) -> Reply:
        self._unsaid.append(self._writer.describe(turn))
        reply = self._writer.pass_over(turn)
        if reply is not None:
            return reply
        exchange = _Exchange(self._prompt, self._past, self._instructions)
        keys = self._list_keys(turn)
        shown, self._unsaid = [each for each in self._unsaid if each.text or each.images], []
        text = "\n\n".join([*(each.text for each in shown if each.text), self._write_request(turn, keys)])
        images = [image for each in shown for image in each.images] if self._prompt.images else []
        answer = exchange.ask(ask, text, images, object_schema(keys) if self._is_strict(keys) else None)
        try:
            reply = self._read(turn, answer, keys)
        except ValueError as error:
            answer = exchange.ask_again(ask, str(error))
            reply = self._read_again(turn, answer, keys, exchange)
        self._past.append((text, answer))
        del self._past[: -max(self._prompt.history, 0) or len(self._past)]
        return Reply(reply.action, reply.belief, note=exchange.note)

    def _read_again(self, turn: Turn, answer: str, keys: Schema, exchange: _Exchange) -> Reply:
        """Read the second answer to a question. What the model did is on record, readable or not."""
        try:
            return self._read(turn, answer, keys)
        except ValueError as error:
            fault = AgentProtocol(f"The model's answer cannot be read, and it was asked twice: {error}.")
            fault.reply_note = exchange.note
            raise fault from None

    @property
    def _instructions(self) -> str:
        """The system message, which a model reads before the first turn."""
        writer = self._writer
        lines = [f'- "reasoning": {REASONING}', f'- "action": what you do, {writer.action}']
        lines += ['- "world_changed": only where you are asked for it, a number from 0 to 1']
        lines += [f'- "notes": {NOTES}'] if self._prompt.notes else []
        task = "\n\n".join(
            part for part in (self._prompt.system, f"Your task: {writer.spec.task}", writer.rules) if part
        )
        return f"{task}\n\n{ANSWER}\n" + "\n".join(lines)

    def _list_keys(self, turn: Turn) -> Schema:
        """Return the schema of each key that the answer to a turn must have."""
        keys: Schema = {"reasoning": {"type": "string", "description": REASONING}}
        if turn.ask is Ask.ACT:
            keys["action"] = self._writer.schema or {}
        if self._writer.asks_belief(turn):
            keys["world_changed"] = {"type": "number", "minimum": 0, "maximum": 1, "description": BELIEF_QUESTION}
        if self._prompt.notes:
            keys["notes"] = {"type": "string", "description": NOTES}
        return keys

    def _is_strict(self, keys: Schema) -> bool:
        """Return whether a schema can describe every answer."""
        return all(keys.values())

    def _write_request(self, turn: Turn, keys: Schema) -> str:
        parts = [f"Your notes: {self._notes or 'none'}"] if self._prompt.notes else []
        if "world_changed" in keys:
            parts.append(BELIEF_QUESTION)
        named = ", ".join(f'"{key}": ...' for key in keys)
        return "\n".join([*parts, f"Answer with {{{named}}}"])

    def _read(self, turn: Turn, answer: str, keys: Schema) -> Reply:
        """Return the reply in an answer.

        Raises:
            ValueError: It cannot be read, or something in it is missing or wrong.
        """
        wanted = [key for key in keys if key in ("action", "world_changed")]
        values = parse_answer(answer, wanted)
        for key in wanted:
            if values.get(key) is None:
                raise ValueError(f'"{key}" is missing')
        stated = values.get("world_changed")
        belief = None if stated is None else Belief(read_probability(stated))
        action = self._writer.read(values["action"]) if "action" in keys else None
        if self._prompt.notes and isinstance(values.get("notes"), str):
            self._notes = values["notes"][:MAX_NOTES]
        return Reply(action, belief)


class _Exchange:
    """The calls about one turn, and the note that is kept of them."""

    def __init__(self, prompt: PromptOptions, past: Sequence[tuple[str, str]], system: str) -> None:
        self._prompt, self._past, self._system = prompt, list(past), system
        self._new: Messages = []
        self._schema: Schema | None = None
        self._answers: list[ModelAnswer] = []
        self._transcript: Messages = [] if past else [{"role": "system", "content": system}]

    def ask(self, ask: AskModel, text: str, images: Sequence[Any], schema: Schema | None) -> str:
        """Ask about the turn, and return the answer."""
        self._schema = schema
        content: Any = text
        if images:
            content = [{"type": "text", "text": text}, *map(_encode_image, images)]
        shown = f"{text}\n[{len(images)} pictures]" if images else text
        return self._send(ask, {"role": "user", "content": content}, shown)

    def ask_again(self, ask: AskModel, reason: str) -> str:
        """Ask for an answer that can be read."""
        text = f"Your answer could not be used: {reason}. Answer again with one JSON object, and nothing else."
        return self._send(ask, {"role": "user", "content": text}, text)

    @property
    def note(self) -> dict[str, Any]:
        """The record of the calls."""
        tokens_in = sum(answer.tokens_in for answer in self._answers)
        written = sum(answer.tokens_out for answer in self._answers)
        note: dict[str, Any] = {
            "calls": len(self._answers),
            "tokens_in": tokens_in,
            "tokens_out": written,
            "seconds": round(sum(answer.seconds for answer in self._answers), 6),
            "transcript": self._transcript,
        }
        if self._prompt.prices is not None:
            note["cost"] = (tokens_in * self._prompt.prices[0] + written * self._prompt.prices[1]) / 1e6
        if failures := [each for answer in self._answers for each in answer.failures]:
            note["failures"] = failures
        if not all(answer.counted for answer in self._answers):
            note["estimated"] = True
        return note

    def _send(self, ask: AskModel, message: dict[str, Any], shown: str) -> str:
        self._new.append(message)
        self._transcript.append({"role": "user", "content": shown})
        answer = self._ask_shortening(ask)
        self._answers.append(answer)
        self._new.append({"role": "assistant", "content": answer.text})
        kept: dict[str, Any] = {"role": "assistant", "content": answer.text}
        kept |= {"thinking": answer.thinking} if answer.thinking else {}
        self._transcript.append(kept)
        return answer.text

    def _ask_shortening(self, ask: AskModel) -> ModelAnswer:
        """Ask the model; halve the history each time that it is too long for it."""
        while True:
            try:
                return ask(ModelQuestion(self._messages, self._schema))
            except QuestionTooLong as error:
                if not self._past:
                    raise AgentProtocol(f"One turn is longer than the model can read: {error}") from None
                self._past = self._past[len(self._past) // 2 + 1 :]

    @property
    def _messages(self) -> Messages:
        messages: Messages = [{"role": "system", "content": self._system}]
        for question, answer in self._past:
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return messages + self._new


def _read_recorded(note: Any) -> Iterator[ModelAnswer]:
    """Yield the answers that a note holds."""
    transcript = note.get("transcript", []) if isinstance(note, dict) else []
    for message in transcript:
        if isinstance(message, dict) and message.get("role") == "assistant":
            yield ModelAnswer(str(message.get("content", "")))


def _encode_image(picture: Any) -> dict[str, Any]:
    """Return a picture as a part of a message."""
    data = base64.b64encode(write_png(np.asarray(picture))).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def write_png(picture: Any) -> bytes:
    """Return a picture of bytes as PNG: (height, width), or with one, three or four channels."""
    pixels = picture[:, :, 0] if picture.ndim == 3 and picture.shape[2] == 1 else picture
    kind = {2: 0, 3: {3: 2, 4: 6}.get(pixels.shape[-1], 2)}[pixels.ndim]
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(data, 6)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def parse_answer(text: str, keys: Collection[str]) -> dict[str, Any]:
    """Return the last object in an answer that has one of some keys, with its keys in small letters.

    Args:
        text: What the model wrote.
        keys: The keys that are asked for.

    Raises:
        ValueError: There is no such object.
    """
    cleaned = _THINKING.sub("", text[:MAX_ANSWER]) if "<" in text else text[:MAX_ANSWER]
    found: dict[str, Any] | None = None
    for value in _objects(cleaned):
        named = {str(key).strip().casefold(): one for key, one in value.items()}
        if any(key in named for key in keys):
            found = named
    if found is None:
        raise ValueError(f"there is no JSON object with {' or '.join(keys)} in it")
    return found


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text, outermost first: the whole text, or what begins with a curly bracket."""
    at, tries = text.find("{"), 0
    while at >= 0 and tries < MAX_TRIES:
        tries += 1
        end = _find_end(text, at)
        value = None if end is None else _read_object(text[at:end])
        if value is not None:
            yield value
        at = text.find("{", end if value is not None and end is not None else at + 1)


def _find_end(text: str, start: int) -> int | None:
    """Return where the bracket at a place is closed; brackets in quotes do not count."""
    depth, quoted, at = 0, False, start
    while at < len(text):
        sign = text[at]
        if sign == "\\" and quoted:
            at += 1
        elif sign == '"':
            quoted = not quoted
        elif not quoted and sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return at + 1
        at += 1
    return None


def _read_object(text: str) -> dict[str, Any] | None:
    for read in (json.loads, _read_loosely, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _read_loosely(text: str) -> Any:
    """Read JSON with commas before closing brackets and line ends in texts."""
    return json.loads(_TRAILING_COMMA.sub(r"\1", text), strict=False)
