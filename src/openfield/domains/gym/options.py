"""The option of `openfield run`, `play` and `serve` for environments of Gymnasium."""

from __future__ import annotations

from dataclasses import dataclass

from openfield.options import CommandChanges


@dataclass(frozen=True, kw_only=True)
class GymOptions:
    """Options of all commands that play.

    Example:
        openfield COMMAND gym:CartPole-v1 --novelty force_mag=20
    """

    allow_drift: bool = False
    """Play an environment that does not replay. Its runs cannot be resumed or proven."""

    def prepare(self) -> CommandChanges:
        """Return the setting that allows it."""
        return CommandChanges({"settings": {"allow_drift": True}}) if self.allow_drift else CommandChanges()
