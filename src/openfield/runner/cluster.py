"""Say where the cells of a run are played: here, in worker processes, or on the machines of a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from openfield.errors import InvalidInput

PROCESSES, RAY = "processes", "ray"


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster."""

    address: str | None = None
    """Where its head is, as HOST:PORT or `auto`; None starts one on this machine and stops it in the end."""


def choose_workers(workers: int, executor: str = PROCESSES) -> int | Cluster:
    """Return what plays the cells.

    Args:
        workers: How many processes play here; a cluster plays as many cells as it has processors.
        executor: `processes`, `ray`, or `ray=ADDRESS`.

    Raises:
        InvalidInput: There is no such executor.
    """
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
