"""The process of an isolated agent: find the agent, make it, and answer for it until the harness hangs up.

Started by `agent` as `python -m openfield.runner.isolation.child SOCKET`. What the agent prints does not come between
the messages: they have a socket of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec

from openfield.core import Reply, Saves
from openfield.errors import AgentFault, AgentProtocol, OpenfieldError, shorten
from openfield.processes.channel import open_channel
from openfield.record import REPLY_ENCODER, UNWRITABLE
from openfield.registry import find_agent, find_domain
from openfield.runner.deadline import adapt_async
from openfield.runner.isolation import messages
from openfield.runner.isolation.messages import unpack_turn, unpickle

MAX_TEXT = 2_000
"""Characters of the text of an agent's exception."""


class AgentProcess:
    """Answers what the harness asks of one agent."""

    def __init__(self) -> None:
        self._factory: Any = None
        self._agent: Any = None
        self._answers: dict[bytes, Callable[[bytes], tuple[bytes, bytes]]] = {
            messages.FIND: self._find,
            messages.MAKE: self._make,
            messages.TURN: self._turn,
            messages.SAVE: self._save,
            messages.LOAD: self._load,
            messages.REMEMBER: self._remember,
            messages.CLOSE: self._close,
        }

    def answer(self, kind: bytes, body: bytes) -> tuple[bytes, bytes]:
        """Return the answer to a message. What the agent raises is an answer too."""
        try:
            return self._answers[kind](body)
        except AgentFault as fault:
            return messages.FAULT, _pack(type(fault).__name__, str(fault)[:MAX_TEXT])
        except BaseException as error:
            known = kind == messages.FIND and isinstance(error, OpenfieldError)
            return messages.RAISED, _pack("" if known else type(error).__name__, str(error)[:MAX_TEXT])

    def _find(self, body: bytes) -> tuple[bytes, bytes]:
        source, domain = unpickle(body)
        self._factory = find_agent(source, find_domain(domain))
        return messages.READY, _pack(*_abilities(self._factory))

    def _make(self, body: bytes) -> tuple[bytes, bytes]:
        spec, seed = unpickle(body)
        self._agent = adapt_async(self._factory(spec, seed), spec.reply_seconds)
        return messages.READY, _pack(*_abilities(self._agent))

    def _turn(self, body: bytes) -> tuple[bytes, bytes]:
        reply = self._agent(unpack_turn(body))
        if type(reply) is not Reply:
            raise AgentProtocol(f"The agent answered {shorten(reply)}; it must return a Reply.")
        try:
            return messages.REPLY, REPLY_ENCODER.encode(reply)
        except UNWRITABLE as reason:
            raise AgentProtocol(f"The reply cannot be recorded: {reason}.") from None

    def _save(self, body: bytes) -> tuple[bytes, bytes]:
        state = self._agent.save()
        if not isinstance(state, bytes):
            raise AgentProtocol(f"save() gave {shorten(state)}; it must give bytes.")
        return messages.STATE, state

    def _load(self, body: bytes) -> tuple[bytes, bytes]:
        self._agent.load(body)
        return messages.READY, b""

    def _remember(self, body: bytes) -> tuple[bytes, bytes]:
        turn, reply = unpickle(body)
        self._agent.remember(unpack_turn(turn), reply)
        return messages.READY, b""

    def _close(self, body: bytes) -> tuple[bytes, bytes]:
        getattr(self._agent, "close", lambda: None)()
        return messages.READY, b""


def _abilities(made: Any) -> list[bool]:
    """Return whether an agent or its factory says it has no state, whether it can be saved, and remembers its past."""
    return [bool(getattr(made, "stateless", False)), isinstance(made, Saves), hasattr(made, "remember")]


def _pack(*values: Any) -> bytes:
    return msgspec.msgpack.encode(values)


def main() -> None:
    """Answer the harness until it hangs up."""
    channel, process, own = open_channel(), AgentProcess(), os.getpid()
    while True:
        try:
            message = channel.receive()
        except (EOFError, OSError):
            return
        kind, body = process.answer(message[:1], message[1:])
        if os.getpid() != own:  # the agent forked, and its child came back here
            os._exit(0)
        channel.send(kind + body)


if __name__ == "__main__":
    main()
