"""Check that a wire changes nothing: a trial played over it leaves the same record as one played in process.

Part of the conformance kit. A domain with a wire of its own brings a scripted peer that speaks it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from openfield.agents.legacy import HOST, start_server
from openfield.capabilities import HasScriptedPeer
from openfield.core import Ask, Reply, Turn
from openfield.domain import Domain, spec_of
from openfield.errors import MissingExtra, OpenfieldError
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.record import ENCODER, RawStep
from openfield.registry import AgentSource, find_agent, use_domain
from openfield.serving.dispatch import TrialDispatcher, find_wire, serve_domain
from openfield.serving.jsonlines import PROTOCOL, JsonLinesWire
from openfield.testing.evidence import check_trials, list_playable_agents
from openfield.testing.report import Report, judge, name_checks, skip_check
from openfield.testing.transcript import record_transcript
from openfield.trial import Trial

MAX_REPLIES = 100
"""Each is made durable before it is acknowledged, which takes some milliseconds."""
MAX_SHOWN = 1 << 30
"""Bytes of a line that shows a turn: a large picture as lists. The server is our own."""
Peer = Callable[[str, int, Sequence[Reply]], Awaitable[None]]
"""Plays over a wire at a host and port: gives these replies, one for each turn that asks for something, then leaves."""


def check_wire(
    domain: Domain[Any],
    peer: Peer | None = None,
    agent: AgentSource | None = None,
    trial: Trial | None = None,
    patience: float | None = None,
) -> Report:
    """Compare a domain's wire with the loop in process.

    Args:
        domain: The domain.
        peer: Speaks the wire; by default the domain's `scripted_peer`, or one for JSON lines.
        agent: Whose replies are played; by default the domain's `scripted_agent`, whose replies its wire can carry, or
            the first that can play the domain.
        trial: The trial that is played.
        patience: Seconds for all of it; None is six times what the domain needs for one answer.
    """
    use_domain(domain)
    speaker = peer or (domain.scripted_peer if isinstance(domain, HasScriptedPeer) else None)
    if speaker is None and isinstance(find_wire(domain), JsonLinesWire):
        speaker = play_lines
    if speaker is None:
        return _skip_all("the domain has a wire of its own and no scripted_peer")
    chosen = trial or check_trials(domain)[0]
    known = domain.scripted_agent or list_playable_agents(domain)[0]
    factory = find_agent(agent or known, domain)
    player = factory(spec_of(domain, chosen), 1)  # over a wire it is not asked when a turn asks nothing
    here = record_transcript(domain, chosen, lambda turn: Reply() if turn.ask is Ask.NONE else player(turn)).steps
    seconds = patience or 6 * domain.check_patience
    try:
        evidence = _play(domain, chosen, here, speaker, seconds)
    except MissingExtra as missing:
        return _skip_all(str(missing))
    return judge("wire", CHECKS, evidence, essential=("plays",))


def _skip_all(note: str) -> Report:
    return Report(tuple(skip_check("wire", name, note) for name in CHECKS))


async def play_lines(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Play over JSON lines: give the replies one by one, then leave."""
    reader, writer = await asyncio.open_connection(host, port, limit=MAX_SHOWN)
    script = iter(replies)
    try:
        writer.write(_line(type="hello", protocol=PROTOCOL, name="peer"))
        while line := await reader.readline():
            message = json.loads(line)
            if message["type"] == "bye":
                if message["note"]:
                    raise OpenfieldError(message["note"])
                return
            if message["type"] == "turn" and message["ask"] != Ask.NONE.value:
                reply = next(script, None)
                if reply is None:
                    return
                writer.write(_line(type="reply", action=reply.action, belief=reply.belief))
    finally:
        writer.close()


@dataclass(frozen=True)
class WireEvidence:
    """The evidence for the checks of a wire: what was recorded in process and over it, and what went wrong."""

    here: list[RawStep]
    there: list[RawStep]
    timed: bool
    failure: str = ""


def _play(domain: Domain[Any], trial: Trial, here: list[RawStep], peer: Peer, patience: float) -> WireEvidence:
    asked = [
        step.reply
        for before, step in itertools.pairwise(here)
        if step.reply is not None and (turn := _turn(before)) is not None and turn.ask is not Ask.NONE
    ]
    failure = ""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "wire.sqlite") as journal:
        try:
            asyncio.run(asyncio.wait_for(_serve(domain, trial, journal, peer, asked[:MAX_REPLIES]), patience))
        except MissingExtra:
            raise
        except TimeoutError:
            failure = f"not done within {patience:g} s"
        except (OpenfieldError, OSError, ValueError) as error:
            failure = f"{type(error).__name__}: {error}"
        journal.flush()
        return WireEvidence(here, _read(journal.path), _is_timed(domain, trial), failure)


async def _serve(domain: Domain[Any], trial: Trial, journal: Journal, peer: Peer, replies: Sequence[Reply]) -> None:
    """Serve one trial and let the peer play it."""
    dispatcher = TrialDispatcher(journal, domain, [trial], "peer", None)
    server, port = await start_server(partial(serve_domain, find_wire(domain), dispatcher, HOST, 0))
    try:
        await peer(HOST, port, replies)
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


def _read(path: Path) -> list[RawStep]:
    with Run(path) as run:
        cells = run.cells(with_episodes=False)
        return [step for cell in cells for step in run.raw_steps(cell.id, cell.attempt)]


def _is_timed(domain: Domain[Any], trial: Trial) -> bool:
    world = domain.world(trial)
    world.close()
    return bool(getattr(world, "timed", False))


def _plays(evidence: WireEvidence) -> Iterator[str]:
    """Check that a peer can play."""
    if evidence.failure:
        yield evidence.failure
    elif len(evidence.there) < min(MAX_REPLIES, len(evidence.here)):
        yield f"only {len(evidence.there)} turns are on record"


def _equal_record(evidence: WireEvidence) -> Iterator[str]:
    """Check that the record is the one the loop in process makes."""
    for number, (here, there) in enumerate(zip(evidence.here, evidence.there, strict=False)):
        if ENCODER.encode(here.reply) != ENCODER.encode(there.reply):
            yield f"turn {number}: {there.reply} is on record, {here.reply} was sent"
            return
        ours, theirs = _turn(here), _turn(there)
        if not evidence.timed and ours != theirs:
            yield f"turn {number} differs: {theirs!r:.120} over the wire, {ours!r:.120} in process"
            return


CHECKS = name_checks(_plays, _equal_record)


def _turn(step: RawStep) -> Turn | None:
    return msgspec.msgpack.decode(step.turn, type=Turn | None)


def _line(**message: Any) -> bytes:
    return msgspec.json.encode(message) + b"\n"
