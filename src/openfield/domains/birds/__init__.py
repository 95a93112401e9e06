"""Birds: physical reasoning with a slingshot, under the rules of the Science Birds novelty evaluation.

Start with `domain`, then `world`. `game` is the physics, `picture` what people see of it, `harness` the rules of a
trial, `files` the configuration and level files, `wire` the TCP protocol, and `agents` the agents that come with the
domain. Importing this needs neither the physics engine nor Pillow.
"""

from openfield.domains.birds.domain import DOMAIN, BirdsDomain
from openfield.domains.birds.wire.client import BirdsClient

__all__ = ["DOMAIN", "BirdsClient", "BirdsDomain"]
