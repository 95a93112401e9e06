"""Settings at the edge of what is allowed: nobody leaves the room, and every episode has a first tick."""

from __future__ import annotations

import random
from typing import Any

import pytest

from openfield.core import Reply
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.errors import WorldFault
from support.doom.worlds import open_world, play

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("domain", "settings"),
    [
        (ARENA, {"stride": 31, "enemy_stride": 39, "enemy_damage": (0, 0)}),
        (ARENA, {"wind": 31, "enemy_damage": (0, 0)}),
        (DUEL, {"stride": 31, "enemy_stride": 9, "enemy_radius": 5, "enemy_damage": 0}),
    ],
    ids=["steps", "wind", "duel"],
)
def test_nobody_goes_through_a_wall(domain: DoomDomain, settings: dict[str, Any]) -> None:
    rng, world, seen = random.Random(1), open_world(domain, limit=300, **settings), 0
    walk = "forward"

    def wander(turn: object) -> Reply:
        nonlocal walk
        if rng.random() < 0.1:
            walk = rng.choice([name for name in domain.task.actions if name not in ("give_up", "shoot", "nothing")])
        return Reply(walk)

    for _ in play(world, wander):
        room, state = world._script.layout(world._number).room, world._episode.state
        loose = [body for bodies in state.items.values() for body in bodies]
        for body in (state.player, *state.enemies, *loose):
            assert room.left < body.x < room.right
            assert room.bottom < body.y < room.top
            seen += 1
    assert seen > 500


def test_a_player_who_is_killed_before_the_first_tick_has_another_try() -> None:
    """Enemies may fire before it: by this seed and the next one, one of them kills who has little health."""
    world = open_world(ARENA, player_health=5, episode_seed=685255877, limit=5)
    turn = world.reset()
    assert turn.observation["player"]["health"] == 5
    assert world._engine is not None
    assert world._engine._episode[1] == 685255879
    assert world.step(Reply("nothing")).feedback is not None
    world.close()


def test_a_player_who_never_lives_is_one_clear_error() -> None:
    world = open_world(DUEL, player_health=1, enemy_pause=1, enemy_damage=2000)
    with pytest.raises(WorldFault, match="never lives to see the first tick"):
        world.reset()
    world.close()
