"""The options of `openfield serve doom`: which broker, and which experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from cyclopts import Parameter

from openfield.options import CommandChanges, changed_fields


@dataclass(frozen=True, kw_only=True)
class DoomServeOptions:
    """Options of `serve`, with the names the wire has for them.

    Example:
        openfield serve doom-arena --amqp amqp://user:pass@host:5672/
    """

    amqp: Annotated[str | None, Parameter(metavar="URL")] = None
    """The address of the broker: amqp://user:pass@host:port/"""
    config: Annotated[str | None, Parameter(metavar="FILE")] = None
    """A server's INI file with the experiment."""
    lease: Annotated[float | None, Parameter(metavar="SECONDS")] = None
    """Seconds of silence after which an agent's trial is free again [1200]."""
    benchmark: bool = False
    """Ask agents for the speed of their machine first, and record it."""

    def prepare(self) -> CommandChanges:
        """Return the wire with these options; an INI file lists the trials itself."""
        from openfield.domains.doom.wire.amqp import AmqpWire

        return CommandChanges(
            serving=AmqpWire(**changed_fields(self)), trials_from=self.config or "", usual_settings={"map": "published"}
        )


@dataclass(frozen=True, kw_only=True)
class DuelServeOptions(DoomServeOptions):
    """Options of `serve` for the duel.

    Example:
        openfield serve doom --amqp amqp://user:pass@host:5672/ --trials 10
    """

    def prepare(self) -> CommandChanges:
        """Return the wire, and the published formula for lost episodes unless the user sets another."""
        return replace(super().prepare(), usual_settings={"death_counts": False})
