"""Fingerprints of runs, plans and versions of code: one digest that changes when any value of them does.

The fingerprint of a run covers every value a reader uses, times included. It does not depend on the order in which
cells were played, nor on how steps were compressed. The fingerprint of a plan covers its cells and trials, so that it
can be published before anything is played.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from openfield.journal.schema import EPISODES
from openfield.trial import Trial

TABLES = {
    "facts": "SELECT key, value FROM facts ORDER BY rowid",
    "agents": "SELECT name, source FROM agents ORDER BY name",
    "trials": "SELECT id, content FROM trials ORDER BY rowid",
    "cells": "SELECT id, agent, trial, repeat FROM cells ORDER BY rowid",
    "attempts": "SELECT cell, number, outcome, note, seconds FROM attempts ORDER BY cell, number",
    "episodes": EPISODES.format(only=""),
    "states": "SELECT cell, attempt, step, length(data), rowid FROM states ORDER BY cell, attempt",
    "verdicts": "SELECT cell, attempt, number, detected FROM verdicts ORDER BY cell, attempt, number",
    "strengths": "SELECT cell, attempt, number, strength, change FROM strengths ORDER BY cell, attempt, number",
    "players": "SELECT cell, attempt, fingerprint FROM players ORDER BY cell, attempt",
    "sources": "SELECT digest, name, text FROM sources ORDER BY digest",
    "steps": """SELECT cell, attempt, first + count, chain FROM chunks AS latest
        WHERE first = (SELECT max(first) FROM chunks WHERE cell = latest.cell AND attempt = latest.attempt)
        ORDER BY cell, attempt""",
}
"""The tables that a reader uses, in an order of their own where the reader has none. Leases are left out: they end with
the run.

The chain of an attempt's last chunk stands for all its steps. The saved states themselves are read in parts.
"""
_PARTS = {"name": "its class or function", "command": "its command", "code": "its code"}
"""What the parts of a version are called that are neither files, packages nor parameters."""
_ENCODER = msgspec.msgpack.Encoder()


class CodeVersion(msgspec.Struct, frozen=True):
    """The files and packages of an agent or a domain."""

    parts: dict[str, str]
    """Files with their digests, packages with their versions, and the name or command that chooses among them."""

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits, the same as long as no part changes."""
        return hashlib.sha256(msgspec.json.encode(self.parts, order="sorted")).hexdigest()[:16]

    def differences(self, other: CodeVersion) -> list[str]:
        """Return in words which parts are not the same in another version."""
        names = sorted(name for name in {*self.parts, *other.parts} if self.parts.get(name) != other.parts.get(name))
        return [_PARTS.get(name) or name.partition(" ")[2] for name in names]


class Fingerprint:
    """Gathers the rows of a run, table by table."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Add rows of a table. A table without rows leaves no trace."""
        for row in rows:
            self._digest.update(_ENCODER.encode((table, *row)))

    def add_large(self, table: str, row: tuple[object, ...], size: int, parts: Iterable[bytes]) -> None:
        """Add a row whose last value is bytes, in parts: they are not in memory as a whole."""
        values = _ENCODER.encode((table, *row, b""))
        self._digest.update(values[:-2] + _start_bytes(size))
        for part in parts:
            self._digest.update(part)

    def __str__(self) -> str:
        return self._digest.hexdigest()


def _start_bytes(size: int) -> bytes:
    """Return how bytes of a size begin in MessagePack."""
    kind, width = (b"\xc4", 1) if size < 1 << 8 else (b"\xc5", 2) if size < 1 << 16 else (b"\xc6", 4)
    return kind + size.to_bytes(width, "big")


def fingerprint_plan(cells: Iterable[tuple[str, str, int]]) -> str:
    """Return the fingerprint of cells, each given by its agent, the text of its trial and its repeat."""
    plan = Fingerprint()
    plan.add("plan", sorted(cells))
    return str(plan)


def write_trial(trial: Trial) -> str:
    """Return the text by which a trial is kept in a run file."""
    return msgspec.json.encode(trial).decode()
