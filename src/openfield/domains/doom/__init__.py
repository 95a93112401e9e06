"""Doom: step-wise control on the real ViZDoom engine, with a catalogue of novelties and the RabbitMQ wire."""

from __future__ import annotations

from openfield.domains.doom.domain import ARENA, DUEL

__all__ = ["ARENA", "DUEL"]
