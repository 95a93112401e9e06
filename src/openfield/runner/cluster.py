"""Say where the cells of a run are played: here, in worker processes, or on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openfield.errors import InvalidInput

PROCESSES, RAY = "processes", "ray"


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster, and what agents need of its machines."""

    address: str | None = None
    """Where its head is, as HOST:PORT or `auto`; None starts one on this machine and stops it in the end."""
    resources: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """For each agent by name: `num_cpus` (1), `num_gpus` (0) and resources of other names."""


def choose_workers(
    workers: int, executor: str = PROCESSES, resources: Mapping[str, Mapping[str, float]] | None = None
) -> int | Cluster:
    """Return what plays the cells.

    Args:
        workers: How many processes play here; a cluster plays as many cells as it has processors.
        executor: `processes`, `ray`, or `ray=ADDRESS`.
        resources: What agents need of the machines of a cluster, by their names.

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
        return Cluster(address or None, resources or {})
    if executor != PROCESSES:
        raise InvalidInput(f"There is no executor '{executor}'. Use processes, ray, or ray=HOST:PORT.")
    return workers
