"""What the hits of one step of the engine do, where several come at once."""

import pytest

from openfield.domains.birds.game.contacts import ContactLog, Damage, Hit
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, LevelObject

STILL = (0.0, 0.0)
BLOCK = LevelObject(kind="Block", type="RectTiny", material="ice", x=0.0, y=-3.38)
PIG = LevelObject(kind="Pig", type="BasicSmall", x=4.0, y=-3.29)


def made(profile):
    game = Game(Level(birds=("BirdRed",), objects=(BLOCK, PIG)), profile)
    return game, *(next(body for body in game.bodies if body.kind == kind) for kind in ("block", "pig"))


@pytest.mark.parametrize("profile", ["sailon", "phyq"])
def test_a_pig_is_hurt_by_a_block_that_breaks_at_something_else_in_the_same_step(profile):
    for order in (1, -1):
        game, block, pig = made(profile)
        hits = [Hit(None, block, STILL, (0.0, -200.0)), Hit(block, pig, (0.0, -200.0), STILL)]
        Damage(game, game.touch).resolve(hits[::order])
        assert (block.gone, pig.gone, game.pigs, game.score) == (True, True, 0, 5500)


def test_of_several_contacts_of_a_pair_in_a_step_the_first_counts_which_nothing_has_slowed_down_yet():
    game, block, _ = made("sailon")
    bird = game.builder.bird("BirdRed", (0.0, 3.0))
    log = ContactLog(game.builder.engine, game.engine_world)
    log.events += [Hit(block, bird, STILL, (0.4, 0.0)), Hit(block, bird, STILL, (0.1, 0.0))]
    Damage(game, game.touch).resolve(log.take())
    assert block.full - block.life == pytest.approx(0.4 * 1.5), "that of a red bird against ice"
    assert log.take() == []
