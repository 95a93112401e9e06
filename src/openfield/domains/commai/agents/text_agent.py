"""Whole questions for agents that think in text: what the teacher said goes in, an answer comes out, bytes are ours.

`TurnAgent` is an agent around any function from text to text, a language model's for instance; `main` makes the same
of a program that reads a question and writes an answer a line, to be started as `process:`.
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
"""Told what the teacher said since the last answer and the reward that brought, gives the next answer."""
SILENCE = 32
PAUSE = " " * 8
"""What a teacher who waits sends; micro8 has up to seven spaces inside a question."""
BORDER = ";"
"""What stands between feedback and a question, and before the last part of a mini task's question."""


def make_text_agent(answer: Answer, ends: str = ".") -> AgentFactory:
    """A factory for an agent that answers whole questions.

    Args:
        answer: From what was said and what the last answer earned to the next answer.
        ends: The marks after which the teacher is taken to wait for an answer; empty takes every single symbol.
    """
    return lambda spec, seed: TextAgent(answer, spec, ends)


class TextAgent:
    """Waits until something was asked, has it answered, says the answer symbol by symbol, is silent otherwise.

    An answer must begin with the last symbol of its question, before anybody can know that it was the last, so this is
    told by form: after an answer, the next question ends with the first dot behind a semicolon. Where there is none,
    the teacher falls silent and the agent answers late; if that costs a point, dots alone will do until one of them
    turns out to have stood inside feedback. A teacher who stays silent after an answer waits for more of it, and the
    agent is asked with an empty text.
    """

    def __init__(self, answer: Answer, spec: Spec, ends: str = ".") -> None:
        if speaks_bits(spec):
            raise InvalidInput("Whole questions are answered in byte mode only; leave bit_mode out.")
        self._answer, self._ends = answer, tuple(ends)
        self._heard, self._earned, self._said = "", 0, ""
        self._plain = self._first = True  # whether a dot alone ends a question, as it does with the first one
        self._late = False  # whether the last answer came after a pause
        self._silent = False  # whether it was none

    def __call__(self, turn: Turn) -> Reply:
        """The next symbol of an answer, or silence."""
        self._listen(chr(turn.observation), int(turn.reward))
        if turn.ask is Ask.NONE:
            return Reply()
        if not self._said and self._is_asked():
            self._ask()
        if not self._said:
            return Reply(SILENCE)
        symbol, self._said = ord(self._said[0]), self._said[1:]
        return Reply(symbol if symbol < 256 else ord("?"))

    def close(self) -> None:
        """Closes what answers, if it can be closed."""
        close = getattr(self._answer, "close", None)
        if close is not None:
            close()

    def _listen(self, symbol: str, reward: int) -> None:
        """Takes what the teacher says; whoever is interrupted by the teacher has said enough."""
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

    def _ask(self) -> None:
        question, earned = self._heard.strip(), self._earned
        self._heard, self._earned = "", 0
        self._plain, self._first = self._plain and not self._first, False
        self._said = self._answer(question, earned)
        self._silent = not self._said


class AnsweringProgram:
    """A program that reads `{"said": ..., "reward": ...}` and writes its answer, a line each."""

    def __init__(self, command: str) -> None:
        words = shlex.split(command)
        if not words:
            raise InvalidInput(
                "Say which program answers: python -m openfield.domains.commai.agents.text_agent COMMAND"
            )
        try:
            self._program = subprocess.Popen(  # noqa: S603 - the user's own command
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        except OSError as error:
            raise InvalidInput(f"'{words[0]}' cannot be started: {error.strerror}.") from None

    def __call__(self, said: str, reward: int) -> str:
        """The program's answer."""
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
        """Ends the program."""
        self._program.terminate()
        self._program.wait()
        for pipe in (self._program.stdin, self._program.stdout):
            if pipe is not None:
                pipe.close()


def main() -> None:
    """Speaks openfield's lines on stdio for a program that answers whole questions.

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
