"""Birds: physical reasoning with a slingshot, training and test sets, checkpoints, and the agents that already play it.

Importing this needs neither the physics engine nor Pillow.
"""

from openfield.domains.birds.domain import DOMAIN, BirdsDomain
from openfield.domains.birds.wire.client import BirdsClient

__all__ = ["DOMAIN", "BirdsClient", "BirdsDomain"]
