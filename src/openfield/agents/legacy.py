"""An agent that is a program for the original system: it is started for one cell and speaks the domain's own wire.

`wire:COMMAND` on the command line, with `{host}` and `{port}` in the command. If the command names no port, the wire
listens on the domain's usual one. Only one cell can have that port, so cells then play one after the other, in all
processes. `wire:@HOST:PORT COMMAND` says where to listen. Without a command it waits there for a program that is
started elsewhere.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from openfield.agents.program import split_command
from openfield.cell import Cell
from openfield.clock import monotonic, monotonic_ns
from openfield.domain import Domain, spec_of
from openfield.errors import AgentGone, AgentTimeout, Cancelled, InvalidInput
from openfield.processes.program import Guard
from openfield.rollout import Rollout
from openfield.serving.dispatch import SingleDispatcher, find_wire
from openfield.serving.listen import check_port
from openfield.serving.remote import RemoteRollout

HOST = "127.0.0.1"
FAREWELL_SECONDS = 2.0
CLOSE_SECONDS = 10.0
POLL_SECONDS = 0.1
"""How often it checks whether a program does nothing, or a stop was requested."""
PORT_SECONDS, PORT_TRIES = 0.2, 150
"""How long a cell waits for a port that another program has: half a minute. It waits for another cell to its end."""
READ_BYTES = 1 << 16


def drive_program(rollout: Rollout, domain: Domain[Any], cell: Cell, command: str, guard: Guard) -> str:
    """Let a program play a rollout over the domain's wire, and return the outcome. The guard is ended with it."""
    remote = RemoteRollout(rollout, spec_of(domain, cell.trial), cell.seed)
    try:
        return asyncio.run(_play(remote, domain, cell, command, guard))
    finally:
        guard.end()


def is_watched(command: str) -> bool:
    """Return whether the program is started here; then its time is watched here and not from outside this process.

    A watchdog outside would count the wait for a port or broker as the program's own. It would also leave the program
    behind when it ends this process.
    """
    return bool(_place(command)[2])


async def _play(remote: RemoteRollout, domain: Domain[Any], cell: Cell, command: str, guard: Guard) -> str:
    host, wanted, command = _place(command)
    wire, dispatcher, asked = find_wire(domain), SingleDispatcher(remote), monotonic_ns()
    if wanted is None:
        wanted = 0 if "{port}" in command or hasattr(wire, "command") else wire.port
    async with _port_alone(wanted):
        server, port = await start_server(partial(wire.serve, dispatcher, host, wanted))
        remote.rollout.guard.excuse(monotonic_ns() - asked)  # it waited for its turn, or for a broker to start
        try:
            if not command:
                return await _wait(dispatcher)
            program = await _start(command, host, port, wire, cell, guard)
            async with forwarding(await asyncio.to_thread(guard.take_port), host, port):
                return await _run(program, guard, dispatcher, wire, server)
        finally:
            await _stop_server(server)
            dispatcher.close()


async def start_server(
    serve: Callable[[Callable[[int], None]], Coroutine[Any, Any, None]],
) -> tuple[asyncio.Task[None], int]:
    """Start a server and wait for its port. Return its task and the port."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve(port.set_result))
    either: list[asyncio.Future[Any]] = [port, server]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        await server  # raises what kept it from starting
    return server, port.result()


def _say(command: str, host: str, port: int, wire: Any, cell: Cell) -> tuple[list[str], list[Path]]:
    """Return the words that start the program and tell it where the wire is, and folders with files made for it."""
    words = [word.replace("{host}", host).replace("{port}", str(port)) for word in split_command(f"wire:{command}")]
    if not hasattr(wire, "command"):
        return words, []
    full = list(wire.command(words, cell))  # a protocol that is configured otherwise than by host and port
    folders = [Path(word.rpartition("=")[2]).parent for word in full if word not in words]
    return full, [*folders, *(link.resolve() for folder in folders for link in folder.iterdir() if link.is_symlink())]


async def _start(command: str, host: str, port: int, wire: Any, cell: Cell, guard: Guard) -> Process:
    """Start a program.

    Args:
        command: What the user wrote behind `wire:`.
        host: Where the wire listens.
        port: On which port.
        wire: The wire.
        cell: The cell to play.
        guard: What surrounds the program.
    """
    words, folders = _say(command, host, port, wire, cell)
    try:
        wrapped = guard.wrap(words, port, folders)
        program = await asyncio.create_subprocess_exec(*wrapped, **guard.options())
    except OSError as error:
        raise AgentGone(f"'{words[0]}' cannot be started: {error.strerror}.") from None
    guard.watch(program.pid)
    return program


async def _run(
    program: Process, guard: Guard, dispatcher: SingleDispatcher, wire: Any, server: asyncio.Task[None]
) -> str:
    """Wait until a program has played, and end it."""
    try:
        outcome = await _watch(dispatcher, program, guard)
        if hasattr(wire, "finished"):  # a protocol that goes on after the last turn: the model is to be saved
            await _first(wire.finished(), program.wait())
        return outcome
    finally:
        server.cancel()  # a program that is hung up on may end by itself
        await _end(program, guard)


async def _stop_server(server: asyncio.Task[None]) -> None:
    """Cancel a server once and wait for it to end: some libraries never end if they are cancelled again."""
    if not server.cancelling():
        server.cancel()
    await asyncio.wait({server}, timeout=CLOSE_SECONDS)


def check_program(source: str, domain: Domain[Any]) -> None:
    """Check that `wire:...` says what to start or where to wait, and that the protocol accepts the command."""
    _, port, command = _place(source.removeprefix("wire:"))
    if command or port is None:
        words = split_command(f"wire:{command}")
        wire = find_wire(domain)
        if hasattr(wire, "check_command"):
            wire.check_command(words)


def _place(command: str) -> tuple[str, int | None, str]:
    """Split `@HOST:PORT COMMAND` into host, port and command; the port is None if it is not named."""
    if not command.startswith("@"):
        return HOST, None, command
    place, _, command = command[1:].partition(" ")
    host, _, port = place.rpartition(":")
    if not port.isdigit():
        raise InvalidInput(f"'wire:@{place}' does not say where to listen; for instance wire:@127.0.0.1:5556")
    check_port(int(port), f"The port of 'wire:@{place}'")
    return host or HOST, int(port), command


async def _wait(dispatcher: SingleDispatcher) -> str:
    """Wait until a program that connects has played the trial, has failed, or has left and stays away."""
    patience, gone = dispatcher.current.spec.reply_seconds, None
    while not (remote := dispatcher.current).rollout.over and remote.fault is None:
        with suppress(TimeoutError):
            await asyncio.wait_for(remote.left.wait(), POLL_SECONDS)
            remote.left.clear()
            gone = monotonic()
        _check_stop(remote)
        if remote.taken:
            gone = None
        elif gone is not None and patience is not None and monotonic() - gone > patience:
            if remote.leave():
                break
            raise AgentGone(f"The program left and did not come back within {patience:g} s.")
    return _end_of(remote)


def _end_of(remote: RemoteRollout) -> str:
    """Return how a trial ended, or raise what its agent did wrong."""
    if remote.fault is not None:
        raise remote.fault
    return remote.rollout.outcome


def _check_stop(remote: RemoteRollout) -> None:
    """Raise `Cancelled` if a stop was requested while no reply was being taken."""
    if remote.rollout.guard.stopping and not remote.rollout.over and remote.fault is None:
        raise Cancelled("Stopped on request.")


@asynccontextmanager
async def _port_alone(port: int) -> AsyncIterator[None]:
    """Keep other cells, also those of other processes, from using this port.

    The lock is the name of a socket that only this machine sees. It ends with its process, and leaves no file behind.
    """
    if not port:
        yield
        return
    with socket.socket(socket.AF_UNIX) as lock:
        while not _bind(lock, f"\0openfield-port-{port}"):
            await asyncio.sleep(PORT_SECONDS)
        await _wait_for_port(port)
        yield


def _bind(probe: socket.socket, address: str | tuple[str, int]) -> bool:
    """Bind a socket and return whether the address was free."""
    try:
        probe.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


async def _wait_for_port(port: int) -> None:
    """Wait for a port that another program has, and give up after a while: it may keep the port for good."""
    for _ in range(PORT_TRIES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if _bind(probe, (HOST, port)):
                return
        await asyncio.sleep(PORT_SECONDS)
    raise InvalidInput(f"Port {port}, where the program looks for the world, is taken by another program.")


async def _watch(dispatcher: SingleDispatcher, program: Process, guard: Guard) -> str:
    """Wait until the trial is over, the agent fails, or the program ends too early."""
    ended = asyncio.create_task(program.wait())
    turns, since, patience = dispatcher.current.rollout.turns, monotonic(), dispatcher.current.spec.reply_seconds
    while not (remote := dispatcher.current).rollout.over and remote.fault is None:
        left = asyncio.create_task(remote.left.wait())
        done, _ = await asyncio.wait([ended, left], timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if ended in done and remote.taken:  # it may have said its last words and left
            with suppress(TimeoutError):
                await asyncio.wait_for(remote.left.wait(), FAREWELL_SECONDS)
        _check_stop(remote)  # a program may end because the harness asked it to
        if ended in done and not remote.rollout.over and remote.fault is None:
            if program.returncode == 0 and remote.leave():
                break
            how = f"The program ended (status {program.returncode}) before the trial was over."
            raise AgentGone(guard.reason or f"{how} {guard.last_words()}".strip())
        if remote.rollout.turns != turns:
            turns, since = remote.rollout.turns, monotonic()
        elif patience is not None and monotonic() - since > patience:
            raise AgentTimeout(f"The program did nothing for {patience:g} s.")
        if left in done:
            remote.left.clear()
    return _end_of(remote)


async def _first(*things: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of these is done."""
    tasks = [asyncio.create_task(thing) for thing in things]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


async def _end(program: Process, guard: Guard) -> None:
    """Give the program a moment to end by itself, then end it and all processes it started."""
    with suppress(TimeoutError):
        await asyncio.wait_for(program.wait(), FAREWELL_SECONDS)
    guard.end()  # it may have ended and left others behind
    await program.wait()


@asynccontextmanager
async def forwarding(listening: socket.socket | None, host: str, port: int) -> AsyncIterator[None]:
    """Accept connections on a socket that was opened inside the sandbox; None forwards nothing.

    Args:
        listening: The socket, see `listener`.
        host: Where the server is.
        port: On which port.
    """
    if listening is None:
        yield
        return
    talks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(begun := asyncio.ensure_future(_talk(reader, writer, host, port)))
        begun.add_done_callback(talks.discard)

    server = await asyncio.start_server(begin, sock=listening)
    try:
        yield
    finally:
        server.close()
        for begun in talks:
            begun.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Pass on everything in both directions."""
    try:
        answers, questions = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(_pass_on(reader, questions), _pass_on(answers, writer))
        finally:
            questions.close()
    except OSError:  # the server takes no more connections, or one side broke off
        pass
    finally:
        writer.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(READ_BYTES):
        target.write(data)
        await target.drain()
    with suppress(OSError):
        target.write_eof()
