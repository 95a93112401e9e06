"""Contacts belong to pairs of colliders, and damage, points and death follow from them."""

import math

import pytest

from openfield.domains.birds.game.contacts import ContactLog, Damage, Hit
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, LevelObject

STILL = (0.0, 0.0)
BLOCK = LevelObject(kind="Block", type="RectTiny", material="ice", x=0.0, y=-3.38)
PIG = LevelObject(kind="Pig", type="BasicSmall", x=4.0, y=-3.29)
FLOOR = LevelObject(kind="Platform", x=-6.0, y=-2.0, scale_x=20.0)


def block(type_, material, x=0.0, y=-3.0):
    return LevelObject(kind="Block", type=type_, material=material, x=x, y=y)


def built(*things, profile="phyq", birds=("BirdRed",)):
    return Game(Level(birds=birds, objects=(*things, PIG)), profile)


def only(game, kind="block"):
    return next(body for body in game.bodies if body.kind == kind)


def made(profile):
    game = built(BLOCK, profile=profile)
    return game, *(next(body for body in game.bodies if body.kind == kind) for kind in ("block", "pig"))


@pytest.mark.parametrize("profile", ["sailon", "phyq"])
def test_a_pig_is_hurt_by_a_block_that_breaks_at_something_else_in_the_same_step(profile):
    for order in (1, -1):
        game, block, pig = made(profile)
        hits = [Hit(None, block, STILL, (0.0, -200.0)), Hit(block, pig, (0.0, -200.0), STILL)]
        Damage(game, game.touch).resolve(hits[::order])
        assert (block.gone, pig.gone, game.pigs, game.score) == (True, True, 0, 5500)


def test_each_pair_of_colliders_hurts_by_itself():
    game, ice, _ = made("sailon")
    bird = game.builder.bird("BirdRed", (0.0, 3.0))
    log = ContactLog(game.builder.engine, game.engine_world, game.profile)
    log.events += [Hit(ice, bird, STILL, (0.4, 0.0)), Hit(ice, bird, STILL, (0.1, 0.0))]
    Damage(game, game.touch).resolve(log.take())
    assert log.take() == []
    assert ice.full - ice.life == pytest.approx(0.5 * 1.5), "a red bird's damage to ice"


MASSES = [
    ("Circle", (0.835, 0.835, 0.835)),
    ("CircleSmall", (0.255, 0.255, 0.255)),
    ("SquareHole", (1.28, 2.74, 0.84)),
]


@pytest.mark.parametrize(("type_", "masses"), MASSES)
def test_masses_are_those_of_both_colliders(type_, masses):
    for material, mass in zip(("wood", "stone", "ice"), masses, strict=True):
        assert only(built(block(type_, material))).physical.mass == pytest.approx(mass, abs=0.01)


def test_pigs_and_the_red_bird_weigh_what_published_points_say():
    for type_, mass in (("BasicSmall", 0.441), ("BasicMedium", 1.291), ("BasicBig", 2.061)):
        game = built(LevelObject(kind="Pig", type=type_, x=0.0, y=-3.0))
        assert only(game, "pig").physical.mass == pytest.approx(mass, abs=0.003)
    assert game.builder.bird("BirdRed", (0.0, 3.0)).physical.mass == pytest.approx(0.545, abs=0.001)


def hits_of(game, steps=60, **velocities):
    """Return the contacts of some steps, after kinds of bodies were given velocities."""
    for kind, velocity in velocities.items():
        only(game, kind).physical.linearVelocity = velocity
    log = ContactLog(game.builder.engine, game.engine_world, game.profile)
    log.listen(True)
    for _ in range(steps):
        game.engine_world.Step(0.02, 100, 100)
    log.listen(False)
    return log.take()


@pytest.mark.parametrize(("type_", "contacts"), [("Circle", 2), ("SquareHole", 2), ("RectFat", 1)])
def test_a_bird_has_a_contact_with_each_collider_of_what_it_hits(type_, contacts):
    game = built(FLOOR, block(type_, "stone", -6.0, -1.29 if type_ != "RectFat" else -1.49))
    bird = game.builder.bird("BirdRed", (-7.5, -1.3))
    bird.physical.linearVelocity, bird.physical.gravityScale = (8.0, 0.0), 0.0
    with_bird = [hit for hit in hits_of(game, steps=12) if bird in (hit.first, hit.second)]
    assert len([hit for hit in with_bird if only(game) in (hit.first, hit.second)]) == contacts


def test_pieces_of_a_hollow_block_are_one_collider_and_what_touches_already_does_not_begin():
    game = built(FLOOR, block("SquareHole", "stone", -6.0, -1.26), profile="sailon")
    assert hits_of(game, steps=20) == [], "it stands, and three of its pieces touch the floor"
    hollow = only(game)
    hollow.physical.linearVelocity, hollow.physical.angularVelocity = (0.0, 2.0), 0.0
    landings = [hit for hit in hits_of(game, steps=100) if hollow in (hit.first, hit.second)]
    assert len(landings) == 1


def test_the_other_one_attacks_only_while_both_still_approach():
    game = built(FLOOR, block("RectFat", "wood", -6.0, -1.49))
    beam, floor = only(game), only(game, "platform")
    own, damage = beam.physical.mass, Damage(game, game.touch)
    for after, mass in (((3.0, 0.0), 1.0), ((-1.0, 0.0), own), ((0.0, 0.0), own)):
        beam.physical.linearVelocity = after
        for hit in (Hit(beam, floor, (6.0, 0.0), STILL), Hit(floor, beam, STILL, (6.0, 0.0))):
            assert damage._damage(beam, floor, hit) == pytest.approx(6.0 * mass * 5.61 - 2.5)
    beam.physical.linearVelocity = (3.0, 0.0)
    on_ground = damage._damage(beam, None, Hit(beam, None, (6.0, 0.0), STILL))
    assert on_ground == pytest.approx(6.0 * own * 5.61 - 2.5), "the ground has no body"


def test_a_big_pig_that_is_hit_twice_in_a_step_earns_the_published_points():
    game = built(FLOOR, LevelObject(kind="Pig", type="BasicBig", x=-6.0, y=-1.2))
    big = next(body for body in game.bodies if body.type == "BasicBig")
    bird, hit = game.builder.bird("BirdRed", (0.0, 9.0)), (9.06, 0.0)
    Damage(game, game.touch).resolve([Hit(bird, big, hit, STILL)] * 2)
    assert game.score == pytest.approx(2080, abs=10)
    Damage(game, game.touch).resolve([Hit(bird, big, hit, STILL)])
    assert (game.score == pytest.approx(2080, abs=10), big.gone) == (True, False), "the last hit but one earns nothing"


def test_points_of_a_block_are_its_damage_rounded():
    game = built(FLOOR, block("RectBig", "stone", -6.0, -1.58))
    beam, bird = only(game), game.builder.bird("BirdRed", (0.0, 9.0))
    Damage(game, game.touch).resolve([Hit(bird, beam, (8.0, 0.0), STILL)])
    assert game.score == round(beam.full - beam.life) == round(8.0 * bird.physical.mass * 11.22 - 15)


def test_what_dies_stops_and_stays_solid_with_its_second_collider_until_it_vanishes():
    for type_, solid in (("Circle", True), ("RectFat", False)):
        game = built(FLOOR, block(type_, "ice", -6.0, -1.3))
        body = only(game)
        body.physical.linearVelocity = (2.0, 0.0)
        game.destroy(body)
        assert tuple(body.physical.linearVelocity) == (0.0, 0.0)
        for _ in range(20):
            game.engine_world.Step(0.02, 100, 100)
        assert (body.place[1] > -1.5) is solid
        while game.ghosts:
            game.run(0.1)
        assert game.score == 500


def slope(degrees, length):
    """Return a slope with a stone ball at its upper end, and the middle of its lower end."""
    angle = math.radians(degrees)
    ramp = LevelObject(kind="Platform", x=-4.0, y=2.0, rotation=-degrees, scale_x=length / 0.64)
    away = length / 2 - 0.5
    x, y = -4.0 - away * math.cos(angle), 2.0 + away * math.sin(angle)
    return ramp, block("Circle", "stone", x + 0.71 * math.sin(angle), y + 0.71 * math.cos(angle))


@pytest.mark.parametrize(("length", "left"), [(4.0, 1), (14.0, 0)])
def test_a_ball_rolls_and_wears_out_on_a_long_slope_only(length, left):
    game = built(*slope(27.0, length), profile="sailon")
    balls = [body for body in game.bodies if body.kind == "block"]
    assert len(balls) == left
    assert all(ball.rolls and ball.life < ball.full for ball in balls)


def test_a_ball_at_rest_keeps_its_flat_base_and_its_contacts_when_it_begins_to_roll():
    game = built(FLOOR, block("Circle", "stone", -6.0, -1.3), profile="sailon")
    ball = only(game)
    mass, fixture = ball.physical.mass, ball.physical.fixtures[0]
    assert (ball.rolls, type(fixture.shape).__name__) == (False, "b2PolygonShape")
    ball.physical.linearVelocity, life, game.slow_ticks = (2.0, 0.0), ball.life, 0
    game.run(0.2)
    assert (ball.rolls, type(ball.physical.fixtures[0].shape).__name__) == (True, "b2CircleShape")
    assert ball.physical.mass == pytest.approx(mass)
    assert life - ball.life < 2.0, "it has touched the floor all the time: no landing, only wear"


def test_a_ball_that_rolls_keeps_both_its_colliders_and_its_mass():
    game = built(FLOOR, block("Circle", "stone", -6.0, -1.3))
    ball = only(game)
    mass, colliders = ball.physical.mass, {fixture.userData for fixture in ball.physical.fixtures}
    ball.physical.linearVelocity, game.slow_ticks = (2.0, 0.0), 0
    game.run(0.2)
    assert ball.rolls
    assert {fixture.userData for fixture in ball.physical.fixtures} == colliders
    assert len(colliders) == 2
    assert ball.physical.mass == pytest.approx(mass)


def test_a_bird_bounces_off_a_body_with_the_mean_of_both_bounces_and_off_the_ground_with_its_own():
    game = built(FLOOR, block("RectFat", "stone", -6.0, -1.3))
    bird = game.add(game.builder.bird("BirdRed", (-7.0, -1.2)))
    bird.physical.gravityScale = 0.0
    bird.physical.linearVelocity = (4.0, 0.0)
    game.slow_ticks = 0
    while not bird.touched:
        game.run(0.1)
    (contact,) = (
        each
        for each in game.engine_world.contacts
        if bird in (each.fixtureA.body.userData, each.fixtureB.body.userData)
    )
    assert contact.restitution == pytest.approx((0.43 + 0.1) / 2)


@pytest.mark.parametrize(("degrees", "least", "most"), [(0, 0.0, 0.1), (40, 0.0, 0.1), (50, 0.5, 1.0), (90, 0.5, 1.0)])
def test_a_bird_loses_its_speed_along_a_floor_but_not_along_a_wall(degrees, least, most):
    plate = LevelObject(kind="Platform", x=0.0, y=6.0, scale_x=6.0, scale_y=0.5, rotation=degrees)
    game, turn = built(plate), math.radians(degrees)
    along, out = (math.cos(turn), math.sin(turn)), (-math.sin(turn), math.cos(turn))
    game.shoot(1.0, 0.0)
    bird, speeds = game.flying, []
    bird.physical.position = (0.9 * out[0], 6.0 + 0.9 * out[1])
    bird.physical.linearVelocity = (2 * along[0] - 6 * out[0], 2 * along[1] - 6 * out[1])

    def note():
        velocity = bird.physical.linearVelocity
        speeds.append((bird.touched, velocity.x * along[0] + velocity.y * along[1]))

    stop = game.watch(1, note)
    game.run(0.2)
    stop()
    before, after = (next(speed for touched, speed in speeds if touched is side) for side in (False, True))
    assert least <= after / before <= most
