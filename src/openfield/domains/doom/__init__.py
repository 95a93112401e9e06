"""Doom: step-wise control on the real ViZDoom engine, with a catalogue of novelties and the RabbitMQ wire.

`domain` has the two domains; `settings`, `novelty` and `trials` describe the trials. `world` plays a trial; start
there. It plays one `episode` after the other, which applies the `rules` of novelties and shows `features` or `arrays`.
`engine` runs the game, `maps` builds its levels, `agents` has the agents, and `wire` serves the original ones.
"""

from __future__ import annotations

from openfield.domains.doom.domain import ARENA, DUEL

__all__ = ["ARENA", "DUEL"]
