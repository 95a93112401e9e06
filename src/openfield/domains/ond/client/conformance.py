"""What the conformance kit needs to hold the REST wire against the loop in process: an agent and a client that agree.

The agent replies as the wire would have its client's requests recorded; the peer makes the requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from openfield.core import Agent, Ask, Reply, Turn
from openfield.domains.ond.actions import Buy, Complete, Post, read_action
from openfield.domains.ond.client.rest_client import Client
from openfield.domains.ond.server.single_test import UNTIMED
from openfield.domains.ond.testset.sheet import Test


def script_client(test: Test) -> Agent:
    """An agent that does with a test what a client of the protocol does: results posted apart, feedback, completion."""
    replies = (Reply(action) for number in range(test.rounds) for action in _round(test, number))

    def agent(turn: Turn) -> Reply:
        return Reply() if turn.ask is Ask.NONE else next(replies, Reply(Complete(UNTIMED)))

    return agent


async def play_replies(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Makes the requests behind some replies, in a session of its own."""
    await asyncio.to_thread(_play, f"http://{host}:{port}", replies)


def _play(url: str, replies: Sequence[Reply]) -> None:
    with Client(url) as client:
        (name,) = client.test_ids("OND", "image_classification")
        asked = {"protocol": "OND", "novelty_detector_version": "peer", "detection_threshold": 0.5}
        session, last = client.open(asked, [name]), 0
        for reply in replies:
            match read_action(reply.action):
                case Post() as post:
                    last = post.round
                    client.post(session, name, last, post.results)
                case Buy() as order:
                    client.feedback(session, name, order.type, order.ids, last)
                case Complete():
                    client.complete(session, name)


def _round(test: Test, number: int) -> list[Post | Buy]:
    """Everything is called changed and unknown: then all feedback is for sale."""
    ids = [test.ids[at] for at in test.span(number)]
    scores = ",".join(["1"] + ["0"] * test.known)
    return [
        Post(number, {"detection": "".join(f"{key},0.9\n" for key in ids)}, UNTIMED),
        Post(number, {"classification": "".join(f"{key},{scores}\n" for key in ids)}, UNTIMED),
        Buy("classification", ids[:2]),
        Buy("detection"),
    ]
