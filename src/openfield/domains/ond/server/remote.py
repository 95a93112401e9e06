"""Where tests are played: the seat of a session's test, and the world at it.

Between the desk, which knows nothing of this domain, and those who ask it for seats.
"""

from __future__ import annotations

import logging

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.testset.answers import Ledger
from openfield.domains.ond.world import TestWorld
from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.serving.remote import Seat
from openfield.serving.sessions import Group, GroupDesk

LOG = logging.getLogger("openfield.ond")


async def find_seat(desk: GroupDesk, group: Group, test: str) -> Seat:
    """The seat of a test.

    Raises:
        Refusal: Its files are gone, or are others than those it was begun with.
    """
    try:
        return await desk.take(group, test)
    except InvalidInput as error:
        LOG.warning("%s: %s", group.id, error)
        raise Refusal("test_id_invalid", f"The test cannot be played: {error}", 500) from None


async def find_ledger(desk: GroupDesk, group: Group, test: str) -> Ledger:
    """What was said of a test; raises as `find_seat` does."""
    return world_of(await find_seat(desk, group, test)).ledger


async def wait_for_disk(written: Receipt[None] | None) -> None:
    """Returns when what was taken is on disk; nothing is where nothing is recorded."""
    if written is not None:
        await written


def world_of(seat: Seat) -> TestWorld:
    """The test that is played at a seat."""
    world = seat.rollout.world
    if not isinstance(world, TestWorld):
        raise OpenfieldError("This seat is not about a test of ond.")
    return world
