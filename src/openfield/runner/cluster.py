"""Say where the cells of a run are played: here, side by side or not, in worker processes, or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from openfield.errors import InvalidInput

PROCESSES, RAY = "processes", "ray"
MAX_CONCURRENCY = 1_000
"""Cells at a time in one process; each has a thread."""


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster."""

    address: str | None = None
    """Where its head is, as HOST:PORT or `auto`; None starts one on this machine and stops it in the end."""


@dataclass(frozen=True)
class SideBySide:
    """Cells that are played at the same time in this process, for agents that wait."""

    cells: int


Players = int | Cluster | SideBySide
"""What plays cells: so many processes (0 is this one, a cell after the other), a cluster, or threads."""


def choose_workers(workers: int, executor: str = PROCESSES, concurrency: int | None = None) -> Players:
    """Return what plays the cells.

    Args:
        workers: How many processes play here; a cluster plays as many cells as it has processors.
        executor: `processes`, `ray`, or `ray=ADDRESS`.
        concurrency: How many cells are played at the same time in this process; then no worker plays.

    Raises:
        InvalidInput: There is no such executor.
    """
    if concurrency is not None:
        if executor != PROCESSES:
            raise InvalidInput(f"Cells are played either in this process (--concurrency) or by --executor {executor}.")
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise InvalidInput(f"From 1 to {MAX_CONCURRENCY} cells can be played at once here, not {concurrency}.")
        return SideBySide(concurrency)
    kind, sign, address = executor.partition("=")
    if kind == RAY and bool(sign) == bool(address):
        if address.startswith("ray://"):
            raise InvalidInput(
                f"{address} is an address of Ray's client. Start openfield on a machine of the cluster, with the "
                "address of its head: --executor ray=HOST:6379"
            )
        return Cluster(address or None)
    if executor != PROCESSES:
        raise InvalidInput(f"There is no executor '{executor}'. Use processes, ray, or ray=HOST:PORT.")
    return workers
