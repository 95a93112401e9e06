"""An isolated agent as the harness sees it: a factory and an agent like any other, with a process behind them."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from openfield.capabilities import is_oracle
from openfield.clock import outlast_stops
from openfield.core import AgentFactory, Reply, Spec, Turn
from openfield.domain import Domain
from openfield.errors import (
    AgentCrashed,
    AgentFault,
    AgentGone,
    AgentProtocol,
    AgentTimeout,
    InvalidInput,
    OpenfieldError,
)
from openfield.isolation import Isolation
from openfield.parameters import LLM, AgentText, read_agent, strip_parameters
from openfield.processes.channel import Channel
from openfield.processes.child import describe_exit
from openfield.processes.program import ModuleProcess
from openfield.record import MAX_VALUES, has_too_many_values
from openfield.registry import PROCESS_AGENT, WITH_DETECTOR, absolute, check_agent_source, domain_source, load
from openfield.runner.deadline import FACTOR, MIN_SECONDS
from openfield.runner.isolation import messages
from openfield.runner.isolation.messages import pack_turn
from openfield.runner.isolation.sandbox import Sandbox
from openfield.runner.isolation.view import view_of_python
from openfield.trial import Trial

MAX_REPLY, MAX_STATE = 16 << 20, 1 << 30
"""Bytes of a reply and of a saved state; a longer one ends the cell as `agent_protocol`."""
START_SECONDS = 120.0
"""How long Python and the agent's modules may take to start, on a machine that is busy."""
END_SECONDS = 2.0
FAULTS: dict[str, type[AgentFault]] = {
    each.__name__: each for each in (AgentCrashed, AgentFault, AgentGone, AgentProtocol, AgentTimeout)
}


class IsolatedFactory:
    """Starts the process of one agent, which has then found the agent; makes the agent when it is called."""

    def __init__(self, source: str, domain: str, isolation: Isolation, run: Path | None = None) -> None:
        """Start the process.

        Args:
            source: The agent as text: a name, `module:attribute` or `file.py:attribute`.
            domain: Where the domain is found, as text.
            isolation: What the agent may see and use.
            run: The run file, which the agent never sees, if there is one yet.

        Raises:
            InvalidInput: The agent cannot be found.
            OpenfieldError: The process cannot be started.
        """
        self._sandbox = Sandbox(isolation, run, view_of_python(source, domain))
        self._module = ModuleProcess("openfield.runner.isolation.child", self._sandbox)
        self._line = _Line(self._module.channel, self._explain_end)
        try:
            self.stateless = self._find(source, domain)
        except BaseException:
            self.close()
            raise

    def __call__(self, spec: Spec, seed: int) -> IsolatedAgent:
        """Make the agent."""
        return IsolatedAgent(self._line, spec, seed)

    def close(self) -> None:
        """End the process, and everything it started."""
        self._module.end()

    def _find(self, source: str, domain: str) -> bool:
        """Have the agent found, and return whether it says that it has no state. Its process is in another folder."""
        wanted = pickle.dumps((read_agent(source).settle(absolute).text, absolute(domain)))
        try:
            body = self._line.ask(messages.FIND, wanted, messages.READY, START_SECONDS)
        except AgentFault as fault:
            words = self._sandbox.last_words()
            raise OpenfieldError(f"An isolated agent cannot be started. {fault} {words}".strip()) from None
        except _RaisedError as error:
            kind = "" if not error.kind else f"{error.kind}: "
            raise InvalidInput(f"{kind}{error}") from None
        return _ABILITIES.decode(body)[0]

    def _explain_end(self) -> str:
        """Say why the process ended, and how."""
        with suppress(subprocess.TimeoutExpired):
            self._module.process.wait(END_SECONDS)
        status = self._module.process.returncode
        if status is None:
            return self._sandbox.reason or "The agent closed its connection to openfield."
        return self._sandbox.reason or f"The agent ended the process it ran in ({describe_exit(status, wrapped=True)})."


class IsolatedAgent:
    """An agent in a process of its own. It has `save`, `load` and `remember` if the agent there has them."""

    def __init__(self, line: _Line, spec: Spec, seed: int) -> None:
        self._line = line
        self._patience = spec.reply_seconds
        self._long = None if self._patience is None else max(MIN_SECONDS, FACTOR * self._patience)
        made = line.ask(messages.MAKE, pickle.dumps((spec, seed)), messages.READY, self._long)
        self.stateless, saves, remembers = _ABILITIES.decode(made)
        if saves:
            self.save, self.load = self._save, self._load
        if remembers:
            self.remember = self._remember

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        body = self._line.ask(messages.TURN, pack_turn(turn), messages.REPLY, self._patience)
        if has_too_many_values(body):  # they would be made in our process
            raise AgentProtocol(f"The agent's reply has more than {MAX_VALUES:,} values.")
        try:
            return _REPLIES.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AgentProtocol(f"The agent's reply cannot be read: {error}.") from None

    def close(self) -> None:
        """Let the agent free its resources. Its process is ended by its factory."""
        if not self._line.lost:
            self._line.ask(messages.CLOSE, b"", messages.READY, self._long)

    def _save(self) -> bytes:
        return self._line.ask(messages.SAVE, b"", messages.STATE, self._long, MAX_STATE)

    def _load(self, state: bytes) -> None:
        self._line.ask(messages.LOAD, state, messages.READY, self._long)

    def _remember(self, turn: Turn, reply: Reply) -> None:
        self._line.ask(messages.REMEMBER, pickle.dumps((pack_turn(turn), reply)), messages.READY, self._long)


def isolate_agent(source: str, domain: str, isolation: Isolation, run: Path | None = None) -> AgentFactory:
    """Return the factory of an isolated agent. If it has a `close`, that must be called in the end."""
    agent = read_agent(source)
    if agent.place.startswith("process:"):
        confine = partial(Sandbox, isolation, run)
        factory: AgentFactory = load(PROCESS_AGENT)(agent.place.removeprefix("process:"), confine)
        return factory if agent.detector is None else load(WITH_DETECTOR)(factory, agent.detector)
    return IsolatedFactory(source, domain, isolation, run)


def plays_here(source: Any, domain: Domain[Any]) -> bool:
    """Return whether an agent plays in the process of its world also in isolated runs.

    An oracle is part of the domain, and is shown the world itself. Of a language model only code of openfield runs
    here, which sends words and reads answers.
    """
    return is_oracle(source, domain) or (isinstance(source, str | AgentText) and str(source).startswith(LLM))


def check_isolated(source: str, domain: Domain[Any], isolation: Isolation, trial: Trial | None = None) -> None:
    """Check that an agent can be found in isolation, before anything starts. Its code does not run in this process.

    Args:
        source: The agent.
        domain: The domain it plays.
        isolation: Its rights.
        trial: The first trial it plays, to check that it fits; None leaves that to the cell.
    """
    if source.startswith(LLM) and not isolation.network:
        raise InvalidInput(
            f"'{strip_parameters(source)}' asks an endpoint, and isolated agents have no network. Add --network."
        )
    if source.startswith(("process:", "wire:")) or plays_here(source, domain):
        check_agent_source(source, domain, trial)
        if source.startswith("wire:@") and " " not in source:
            raise InvalidInput(f"'{source}' waits for a program that is started elsewhere; it cannot be isolated.")
        return
    IsolatedFactory(source, domain_source(domain.name) or domain.name, isolation).close()


class _Line:
    """Asks one thing at a time."""

    def __init__(self, channel: Channel, explain_end: Callable[[], str]) -> None:
        self._channel = channel
        self.lost = False
        """Whether a question was left without an answer; then no further one can be asked."""
        self._explain_end = explain_end

    def ask(
        self, kind: bytes, body: bytes, expected: bytes, patience: float | None, max_bytes: int = MAX_REPLY
    ) -> bytes:
        """Return the answer to a question, or raise its error.

        Args:
            kind: The kind of the question.
            body: The question.
            expected: The kind of a good answer.
            patience: Seconds to wait; None waits for ever.
            max_bytes: The longest answer that is taken.
        """
        before, self.lost = self.lost, True
        if before:
            raise AgentGone("The agent left a question without an answer.")
        try:
            self._channel.wait_at_most(patience)
            self._channel.send(kind + body)
            answer = outlast_stops(lambda: self._channel.receive(1 + max_bytes))
        except TimeoutError:
            raise AgentTimeout(f"No answer within {patience:g} s.") from None
        except (EOFError, OSError):
            raise AgentCrashed(self._explain_end()) from None
        except ValueError as error:
            raise AgentProtocol(f"The agent sent {error}.") from None
        if self._channel.waiting:
            raise AgentProtocol("The agent sent more than one answer.")
        self.lost = False
        if answer[:1] != expected:
            _refuse(answer[:1], answer[1:])
        return answer[1:]


class _RaisedError(Exception):
    """An error that an agent raised. A subclass made for it has the name of that error."""

    kind = ""


def _refuse(answer: bytes, body: bytes) -> NoReturn:
    """Raise the error in an answer."""
    try:
        name, text = _PAIR.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AgentProtocol("The agent sent an answer that cannot be read.") from None
    if answer == messages.RAISED:
        raise type(name if name.isidentifier() else "Error", (_RaisedError,), {"kind": name})(text)
    if answer == messages.FAULT:
        raise FAULTS.get(name, AgentFault)(text)
    raise AgentProtocol(f"The agent sent an answer of the kind {answer!r}.")


_REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_PAIR: msgspec.msgpack.Decoder[tuple[str, str]] = msgspec.msgpack.Decoder(tuple[str, str])
_ABILITIES: msgspec.msgpack.Decoder[tuple[bool, bool, bool]] = msgspec.msgpack.Decoder(tuple[bool, bool, bool])
