"""Doom in a browser: what a key does, and what the player is told."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from openfield.agents.key_page import KeyPage
from openfield.core import Reply, Turn
from openfield.domains.doom import DUEL
from openfield.domains.doom.play_page import describe_player
from openfield.view.play.messages import Hold
from openfield.view.play.play_session import PlayClock


def test_a_tap_counts_and_a_held_key_fires_at_the_pace_of_the_weapon() -> None:
    page = cast("KeyPage", DUEL.play_page(DUEL.trials(1, training=0)[0]))
    keys = {each.action: number for number, each in reversed(list(enumerate(page.actions)))}
    done: list[Any] = []

    class Played:
        def answer(self, reply: Reply) -> None:
            done.append(reply.action)

        def show(self) -> dict[str, Any]:
            return {}

    clock = PlayClock(cast("Any", Played()), page, cast("Any", None), cast("Any", None))

    def press(*holds: int | None) -> None:
        for act in holds:
            asyncio.run(clock._take_live(Hold(act)))
        clock._tick()

    press(keys["left"], None)  # let go before the next turn
    press()
    assert done == ["left", "nothing"]
    done.clear()
    press(keys["shoot"])
    for _ in range(27):
        clock._tick()
    assert [number for number, action in enumerate(done) if action == "shoot"] == [0, 14]


@pytest.mark.parametrize(
    ("turn", "result"),
    [
        (Turn(observation={"player": {"health": 5.0}, "enemies": []}, last="terminated"), "won"),
        (Turn(observation={"player": {"health": 0.0}, "enemies": [1]}, last="terminated"), "lost: you died"),
        (Turn(observation={"player": {"health": 5.0}, "enemies": [1]}, last="truncated"), "lost: time is up"),
        (Turn(observation=None, reward=0.5, last="terminated"), "won"),
        (Turn(observation=None), None),
    ],
)
def test_the_player_of_doom_is_told_who_won(turn: Turn, result: str | None) -> None:
    assert describe_player(turn).get("result") == result
