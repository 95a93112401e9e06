"""A scripted agent and a client that sends the same as requests, for the conformance kit.

The kit compares the record of the agent, played in this process, with that of the client, played over the REST wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from openfield.core import Agent, Ask, Reply, Turn
from openfield.domains.ond.actions import Buy, Complete, Post, read_action
from openfield.domains.ond.client.rest_client import RestClient
from openfield.domains.ond.server.wire import UNTIMED
from openfield.domains.ond.testset.results import format_rows
from openfield.domains.ond.testset.test import Test


def script_client(test: Test) -> Agent:
    """Return an agent that plays a test as a client does: post results type by type, buy feedback, complete."""
    replies = (Reply(action) for number in range(test.rounds) for action in _round(test, number))

    def agent(turn: Turn) -> Reply:
        return Reply() if turn.ask is Ask.NONE else next(replies, Reply(Complete(UNTIMED)))

    return agent


async def play_replies(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Send the requests that stand for replies, in a new session."""
    await asyncio.to_thread(_play, f"http://{host}:{port}", replies)


def _play(url: str, replies: Sequence[Reply]) -> None:
    with RestClient(url) as client:
        (name,) = client.test_ids("OND", "image_classification")
        asked = {"protocol": "OND", "novelty_detector_version": "peer", "detection_threshold": 0.5}
        session, last = client.open(asked, [name]), 0
        for reply in replies:
            match read_action(reply.action):
                case Post() as post:
                    last = post.round
                    client.post(session, name, last, {kind: format_rows(rows) for kind, rows in post.results.items()})
                case Buy() as order:
                    client.feedback(session, name, order.type, order.ids, last)
                case Complete():
                    client.complete(session, name)


def _round(test: Test, number: int) -> list[Post | Buy]:
    """Return the actions of a round that calls everything changed and unknown, so that all feedback can be bought."""
    ids = [test.ids[at] for at in test.span(number)]
    scores = ",".join(["1"] + ["0"] * test.known)
    return [
        Post(number, {"detection": "".join(f"{key},0.9\n" for key in ids)}, UNTIMED),
        Post(number, {"classification": "".join(f"{key},{scores}\n" for key in ids)}, UNTIMED),
        Buy("classification", ids[:2]),
        Buy("detection"),
    ]
