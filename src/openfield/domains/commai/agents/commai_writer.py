"""CommAI in words: a language model hears whole questions and answers with text, which is said symbol by symbol."""

from __future__ import annotations

import random
from typing import Any

from openfield.agents.turn_writer import Schema, TurnText, TurnWriter
from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.commai.agents.text_agent import TextListener

MAX_ANSWER = 500
"""Characters of an answer."""
WORDS = ("yes.", "no.", "a.", "hello.")


class CommaiWriter(TurnWriter):
    """Asks when the teacher has ended a question, or waits."""

    task = (
        "Talk to the teacher. Find out what is asked, when to speak and what earns rewards; tasks change unannounced. "
        "An empty line is silence."
    )
    rules = (
        "A teacher talks to you, and you learn from rewards what it wants. You hear what it said since your last "
        "answer, and what that answer earned: 1 is right, -1 is wrong. Words, spelling and rules may be made up. "
        "Often an answer ends with a dot."
    )
    action = "the text that you say; an empty text is silence"

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._listener = TextListener(spec)
        self._asked: tuple[str, int] | None = None

    @property
    def schema(self) -> Schema:
        """The schema of an answer."""
        return {"type": "string"}

    def describe(self, turn: Turn) -> TurnText:
        """Return the question, if the teacher has asked one."""
        self._asked = self._listener.hear(turn)
        if self._asked is None and turn.last is None:
            return TurnText("")
        question, earned = self._asked or ("", 0)
        said = f"The teacher says: {question!r}" if question else "The teacher is silent."
        light = [] if turn.red_light is None else [f"Red light: {'on' if turn.red_light else 'off'}."]
        parts = [f"Your last answer earned {earned:g}.", *light, said] if turn.last is None else ["The lesson is over."]
        return TurnText("\n".join(parts))

    def pass_over(self, turn: Turn) -> Reply | None:
        """Return the next symbol of the current answer; None if the teacher has asked."""
        if turn.ask is not Ask.ACT:
            return super().pass_over(turn)
        return Reply(self._listener.speak()) if self._asked is None else None

    def sample(self, rng: random.Random) -> str:
        """Return something to say."""
        return rng.choice(WORDS)

    def read(self, value: Any) -> int:
        """Begin to say a text, and return its first symbol."""
        text = value if isinstance(value, str) else str(value)
        foreign = next((sign for sign in text if ord(sign) > 255), "")
        if foreign or len(text) > MAX_ANSWER:
            raise ValueError(f"{foreign!r} is not a symbol" if foreign else f"say at most {MAX_ANSWER} characters")
        self._listener.answer(text)
        return self._listener.speak()
