"""A legacy program as an agent: started for one cell against the domain's own wire.

`wire:COMMAND` on the command line, with `{host}` and `{port}` in the command. A program that is not told a port is met
where the domain's agents expect it; one cell after the other, as only one can have that port. `wire:@HOST:PORT COMMAND`
says where to listen; without a command, it waits there for a program that somebody else starts.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from openfield.domain import Domain
from openfield.errors import AgentGone, AgentTimeout, InvalidInput
from openfield.plan import Cell
from openfield.rollout import Rollout
from openfield.serve import Seat, SingleDesk

HOST = "127.0.0.1"
FAREWELL_SECONDS = 2.0
PORT_SECONDS, PORT_TRIES = 0.2, 3000
"""How long a cell waits for a port that another one has: ten minutes."""


def drive_program(rollout: Rollout, domain: Domain[Any], cell: Cell, command: str) -> str:
    """Has a program play a rollout over the domain's wire; returns the outcome."""
    spec = msgspec.structs.replace(domain.spec(cell.trial), reply_seconds=cell.trial.limits.reply_seconds)
    return asyncio.run(_play(Seat(rollout, spec, cell.seed), domain, cell, command))


async def _play(seat: Seat, domain: Domain[Any], cell: Cell, command: str) -> str:
    host, wanted, command = _place(command)
    port, listening = 0, asyncio.Event()

    def ready(number: int) -> None:
        nonlocal port
        port = number
        listening.set()

    desk, wire = SingleDesk(seat), domain.wire()
    if wanted is None:
        wanted = 0 if "{port}" in command or hasattr(wire, "command") else wire.port
    if wanted:
        await _wait_for_port(wanted)
    server = asyncio.create_task(wire.serve(desk, host, wanted, ready))
    opened = asyncio.create_task(listening.wait())
    await asyncio.wait([opened, server], return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        await server  # raises what kept it from starting
    if not command:
        try:
            return await _wait(desk)
        finally:
            server.cancel()
            desk.current.settle()
    words = [word.replace("{host}", host).replace("{port}", str(port)) for word in shlex.split(command)]
    if hasattr(wire, "command"):  # a protocol that is configured otherwise than by host and port
        words = wire.command(words, cell)
    try:
        program = await asyncio.create_subprocess_exec(*words, start_new_session=True)
    except OSError as error:
        server.cancel()
        raise AgentGone(f"'{words[0]}' cannot be started: {error.strerror}.") from None
    try:
        outcome = await _watch(desk, program)
        if hasattr(wire, "finished"):  # a protocol that goes on after the last turn: the model is to be saved
            await _first(wire.finished(), program.wait())
        return outcome
    finally:
        server.cancel()
        await _end(program)
        desk.current.settle()


def _place(command: str) -> tuple[str, int | None, str]:
    """Where to listen, if it says so, and the command behind that."""
    if not command.startswith("@"):
        return HOST, None, command
    place, _, command = command[1:].partition(" ")
    host, _, port = place.rpartition(":")
    if not port.isdigit():
        raise InvalidInput(f"'wire:@{place}' does not say where to listen; for instance wire:@127.0.0.1:5556")
    return host or HOST, int(port), command


async def _wait(desk: SingleDesk) -> str:
    """Waits until whoever comes has played the trial to its end, or failed."""
    while not (seat := desk.current).rollout.over and seat.fault is None:
        await seat.left.wait()
        seat.left.clear()
    if seat.fault is not None:
        raise seat.fault
    return seat.rollout.outcome


async def _wait_for_port(port: int) -> None:
    """Waits while another cell has the port; a program that is not ours may keep it for good."""
    for _ in range(PORT_TRIES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
                return
            except OSError:
                pass
        await asyncio.sleep(PORT_SECONDS)


async def _watch(desk: SingleDesk, program: asyncio.subprocess.Process) -> str:
    """Waits until the trial is over, the agent fails, or the program ends before its time."""
    ended = asyncio.create_task(program.wait())
    first_turns, patience = desk.current.rollout.turns, desk.current.spec.reply_seconds
    while not (seat := desk.current).rollout.over and seat.fault is None:
        left = asyncio.create_task(seat.left.wait())
        done, _ = await asyncio.wait([ended, left], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if ended in done and seat.taken:  # it may have said its last words and left
            with suppress(TimeoutError):
                await asyncio.wait_for(seat.left.wait(), FAREWELL_SECONDS)
        if ended in done and not seat.rollout.over and seat.fault is None:
            raise AgentGone(f"The program ended (status {program.returncode}) before the trial was over.")
        if not done and seat.rollout.turns == first_turns:
            raise AgentTimeout(f"The program did nothing for {patience:g} s.")
        first_turns = seat.rollout.turns
        if left in done:
            seat.left.clear()
    if seat.fault is not None:
        raise seat.fault
    return seat.rollout.outcome


async def _first(*things: Coroutine[Any, Any, Any]) -> None:
    """Waits for whatever happens first."""
    tasks = [asyncio.create_task(thing) for thing in things]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


async def _end(program: asyncio.subprocess.Process) -> None:
    """Gives the program a moment to end by itself, then ends it and all it started."""
    with suppress(TimeoutError):
        await asyncio.wait_for(program.wait(), FAREWELL_SECONDS)
    if program.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        await program.wait()
