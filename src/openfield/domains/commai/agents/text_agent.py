"""An agent that answers whole questions: it hears the teacher's text, returns a text, and sends it byte by byte.

`TextAgent` wraps any function from text to text, such as a call of a language model. `main` does the same for a program
that reads a question and writes an answer per line; start it as `process:`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from openfield.core import AgentFactory, Ask, Reply, Spec, Turn
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.errors import AgentGone, InvalidInput

Answer = Callable[[str, int], str]
"""From the teacher's text since the last answer, and the reward of that answer, to the next answer."""
SILENCE = 32
PAUSE = " " * 8
"""A teacher who waits sends spaces; micro8 has up to seven of them inside a question."""
BORDER = ";"
"""Stands between feedback and a question, and before the last part of a mini task's question."""


def make_text_agent(answer: Answer, ends: str = ".") -> AgentFactory:
    """Return a factory for an agent that answers whole questions.

    Args:
        answer: Called with the teacher's text and the reward of the last answer; returns the next answer.
        ends: The marks that end a question. If empty, every single symbol is a question.
    """
    return lambda spec, seed: TextAgent(answer, spec, ends)


class TextListener:
    """Recognises a teacher's questions, and says answers symbol by symbol. Otherwise it is silent.

    An answer must begin with the last symbol of its question, so the end of a question is recognised by its form. After
    an answer, the next question ends with the first dot behind a semicolon. Without a semicolon, the teacher falls
    silent and the answer comes late. If that costs a point, a dot alone ends a question, until a dot turns out to be
    inside feedback. If the teacher stays silent after an answer, there is a question with an empty text.
    """

    def __init__(self, spec: Spec, ends: str = ".") -> None:
        if speaks_bits(spec):
            raise InvalidInput("A text agent plays in byte mode only. Leave bit_mode out.")
        self._ends = tuple(ends)
        self._heard, self._earned, self._said = "", 0, ""
        self._plain = self._first = True  # whether a dot alone ends a question, as with the first one
        self._late = False  # whether the last answer came after a pause
        self._silent = False  # whether the last answer was empty

    def hear(self, turn: Turn) -> tuple[str, int] | None:
        """Take a turn; return the question and what the last answer earned if an answer is due, else None."""
        self._listen(chr(turn.observation), int(turn.reward))
        if turn.ask is Ask.NONE or self._said or not self._is_asked():
            return None
        question, earned = self._heard.strip(), self._earned
        self._heard, self._earned = "", 0
        self._plain, self._first = self._plain and not self._first, False
        return question, earned

    def answer(self, text: str) -> None:
        """Take the answer to a question."""
        self._said = text
        self._silent = not text

    def speak(self) -> int:
        """Return the next symbol of the answer, or silence."""
        if not self._said:
            return SILENCE
        symbol, self._said = ord(self._said[0]), self._said[1:]
        return symbol if symbol < 256 else ord("?")

    def _listen(self, symbol: str, reward: int) -> None:
        """Take the teacher's symbol; if the teacher interrupts an answer, drop the rest of it."""
        self._earned += reward
        if self._late and reward:
            self._plain, self._late = self._plain or reward < 0, False
        if symbol == BORDER and not self._heard:
            self._plain = False
        if symbol != " ":
            self._said = ""
        if not self._said:
            self._heard += symbol

    def _is_asked(self) -> bool:
        text = self._heard
        if not self._ends:
            return True
        if text.endswith(self._ends) and (self._plain or BORDER in text):
            self._late = False
            return True
        self._late = text.endswith(PAUSE) and (bool(text.strip()) or not (self._silent or text[: -len(PAUSE)]))
        return self._late


class TextAgent:
    """Waits for a question, has it answered, and says the answer symbol by symbol."""

    def __init__(self, answer: Answer, spec: Spec, ends: str = ".") -> None:
        self._answer, self._listener = answer, TextListener(spec, ends)

    def __call__(self, turn: Turn) -> Reply:
        """Return the next symbol of an answer, or silence."""
        asked = self._listener.hear(turn)
        if turn.ask is Ask.NONE:
            return Reply()
        if asked is not None:
            self._listener.answer(self._answer(*asked))
        return Reply(self._listener.speak())

    def close(self) -> None:
        """Close the answering function if it can be closed."""
        getattr(self._answer, "close", lambda: None)()


class AnsweringProgram:
    """A program that reads `{"said": ..., "reward": ...}` and writes its answer, one line each."""

    def __init__(self, command: str) -> None:
        words = shlex.split(command)
        if not words:
            raise InvalidInput(
                "Name the program that answers: python -m openfield.domains.commai.agents.text_agent COMMAND"
            )
        try:
            self._program = subprocess.Popen(  # noqa: S603 - the user's own command
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        except OSError as error:
            raise InvalidInput(f"'{words[0]}' cannot be started: {error.strerror}.") from None

    def __call__(self, said: str, reward: int) -> str:
        """Return the program's answer."""
        if self._program.stdin is None or self._program.stdout is None:
            raise AgentGone("The program has no pipe.")
        try:
            self._program.stdin.write(json.dumps({"said": said, "reward": reward}) + "\n")
            line = self._program.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise AgentGone(f"The program ended (status {self._program.wait()}).")
        return line.rstrip("\n")

    def close(self) -> None:
        """End the program."""
        self._program.terminate()
        self._program.wait()
        for pipe in (self._program.stdin, self._program.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    """Connect a program that answers whole questions to openfield's process protocol on standard input and output.

    `process:'python -m openfield.domains.commai.agents.text_agent COMMAND'`
    """
    try:
        agent = TextAgent(AnsweringProgram(shlex.join(sys.argv[1:])), Spec(domain="commai", task=""))
    except InvalidInput as error:
        sys.stderr.write(f"openfield: {error}\n")
        sys.exit(2)
    _write({"type": "hello", "protocol": 1})
    try:
        for line in sys.stdin:
            message: dict[str, Any] = json.loads(line)
            if message["type"] == "bye":
                break
            if message["type"] == "turn":
                ask = Ask(message["ask"])
                reply = agent(Turn(ask=ask, observation=message["observation"], reward=message["reward"]))
                if ask is not Ask.NONE:
                    _write({"type": "reply", "action": reply.action})
    finally:
        agent.close()


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
