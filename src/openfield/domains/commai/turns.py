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
from openfield.errors import AgentGone, InvalidInput
from openfield.spaces import Discrete

Answer = Callable[[str, int], str]
"""Told what the teacher said since the last answer and the reward that brought, gives the next answer."""
SILENCE = 32
PAUSE = "  "
"""What a teacher who waits sends: two spaces in a row."""


def turn_agent(answer: Answer, ends: str = ".") -> AgentFactory:
    """A factory for an agent that answers whole questions.

    Args:
        answer: From what was said and what the last answer earned to the next answer.
        ends: The marks after which the teacher is taken to wait for an answer; empty takes every single symbol.
    """
    return lambda spec, seed: TurnAgent(answer, spec, ends)


class TurnAgent:
    """Waits until something was asked, has it answered, says the answer symbol by symbol, is silent otherwise."""

    def __init__(self, answer: Answer, spec: Spec, ends: str = ".") -> None:
        if isinstance(spec.actions, Discrete) and spec.actions.n == 2:
            raise InvalidInput("Whole questions are answered in byte mode only; leave bit_mode out.")
        self._answer, self._ends = answer, ends
        self._heard, self._earned, self._said = "", 0, ""

    def __call__(self, turn: Turn) -> Reply:
        """The next symbol of an answer, or silence."""
        self._heard += chr(turn.observation)
        self._earned += int(turn.reward)
        if turn.ask is Ask.NONE:
            return Reply()
        if not self._said and self._is_asked():
            question, earned = self._heard, self._earned
            self._heard, self._earned = "", 0
            self._said = self._answer(question.strip(), earned)
        if not self._said:
            return Reply(SILENCE)
        symbol, self._said = ord(self._said[0]), self._said[1:]
        return Reply(symbol if symbol < 256 else ord("?"))

    def close(self) -> None:
        """Closes what answers, if it can be closed."""
        close = getattr(self._answer, "close", None)
        if close is not None:
            close()

    def _is_asked(self) -> bool:
        """A question has ended; a mark inside feedback is followed by a semicolon, which cannot be known yet."""
        if not self._ends:
            return True
        text = self._heard
        if text.endswith(PAUSE):
            return bool(text.strip())
        return text.endswith(tuple(self._ends)) and _is_question(text)


class Lines:
    """A program that reads `{"said": ..., "reward": ...}` and writes its answer, a line each."""

    def __init__(self, command: str) -> None:
        self._program = subprocess.Popen(  # noqa: S603 - the user's own command
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

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

    `process:'python -m openfield.domains.commai.turns COMMAND'`
    """
    agent = TurnAgent(Lines(shlex.join(sys.argv[1:])), Spec(domain="commai", task=""))
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


def _is_question(text: str) -> bool:
    """Whether a dot ends a question: in feedback it stands behind praise or blame, and a semicolon follows."""
    last = text.rpartition(";")[2]
    return not last.lstrip().startswith(("good job!", "wrong!", "correct!", "false!")) or ";" in last


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
