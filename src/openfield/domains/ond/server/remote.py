"""Where tests are played: the remote of a session's test, and the world at it.

Between the dispatcher, which knows nothing of this domain, and those who ask it for remotes.
"""

from __future__ import annotations

import logging

from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.testset.answers import Ledger
from openfield.domains.ond.world import TestWorld
from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.receipt import Receipt
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import Session, SessionDispatcher

LOG = logging.getLogger("openfield.ond")


async def find_remote(dispatcher: SessionDispatcher, group: Session, test: str) -> RemoteRollout:
    """The remote of a test.

    Raises:
        Refusal: Its files are gone, or are others than those it was begun with.
    """
    try:
        return await dispatcher.take(group, test)
    except InvalidInput as error:
        LOG.warning("%s: %s", group.id, error)
        raise Refusal("test_id_invalid", f"The test cannot be played: {error}", 500) from None


async def find_ledger(dispatcher: SessionDispatcher, group: Session, test: str) -> Ledger:
    """What was said of a test; raises as `find_remote` does."""
    return world_of(await find_remote(dispatcher, group, test)).ledger


async def wait_for_disk(written: Receipt[None] | None) -> None:
    """Returns when what was taken is on disk; nothing is where nothing is recorded."""
    if written is not None:
        await written


def world_of(remote: RemoteRollout) -> TestWorld:
    """The test that is played at a remote."""
    world = remote.rollout.world
    if not isinstance(world, TestWorld):
        raise OpenfieldError("This remote is not about a test of ond.")
    return world
