"""The physics: launches, gravity, damage, powers, ends, and the same bits in another process."""

import hashlib
import math
import re
import subprocess
import sys

import pytest

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import SECOND, Game
from openfield.domains.birds.game.level import Camera, Level, LevelObject
from openfield.domains.birds.game.scene import see, zoomed_in, zoomed_out
from openfield.domains.birds.picture.sprites import load_pillow
from openfield.errors import MissingExtra
from openfield.installation import install_line


def level(*things, birds=("BirdRed",), **fields):
    return Level(birds=birds, objects=things, **fields)


def pig(x, y, type_="BasicSmall"):
    return LevelObject(kind="Pig", type=type_, x=x, y=y)


def block(type_, material, x, y):
    return LevelObject(kind="Block", type=type_, material=material, x=x, y=y)


def platform(x, y, wide=3.0):
    return LevelObject(kind="Platform", x=x, y=y, scale_x=wide)


FAR = pig(14.0, -3.29)


@pytest.mark.parametrize(("profile", "speed"), [("sailon", 10.0), ("phyq", 9.75)])
def test_a_full_pull_launches_with_the_speed_of_the_profile_and_gravity_is_that_of_birds(profile, speed):
    game = Game(level(FAR), profile)
    game.shoot(5.0, 5.0)
    velocity = game.flying.physical.linearVelocity
    assert math.hypot(*velocity) == pytest.approx(speed, abs=0.1)
    before = velocity.y
    game.run(0.5)
    assert (before - game.flying.physical.linearVelocity.y) / 0.5 == pytest.approx(0.48 * 9.81, rel=0.02)


def test_a_short_pull_launches_more_slowly():
    game = Game(level(FAR))
    game.shoot(0.3, 0.4)
    assert math.hypot(*game.flying.physical.linearVelocity) == pytest.approx(5.0, abs=0.01)


def test_pixels_map_to_units_and_back():
    view = zoomed_out(Camera(0, -1, 25, 30))
    assert view.scale == pytest.approx(21.33, abs=0.01)
    assert view.pixel(0, -1) == (320, 240)
    for x, y in ((3, 5), (-12, -2.5)):
        assert view.point(*view.pixel(x, y)) == pytest.approx((x, y), abs=1 / view.scale)
    near = zoomed_in(Camera(0, -1, 25, 30))
    assert near.point(0, 240)[0] == pytest.approx(view.point(0, 240)[0])


def test_a_pig_that_is_hit_dies_and_the_level_is_won_with_points_for_birds_left():
    game = Game(level(pig(-8.0, -1.72), platform(-8.0, -2.25), birds=("BirdRed", "BirdRed")))
    game.shoot(1.0, 0.13)
    game.settle()
    assert (game.state, game.pigs, game.score) == ("won", 0, 5000 + 10_000)


def test_a_level_without_birds_left_is_lost_and_one_with_birds_goes_on():
    game = Game(level(FAR, birds=("BirdRed", "BirdRed")))
    game.shoot(0.5, 0.5)
    game.settle()
    assert (game.state, game.bird_ready) == ("playing", True)
    game.shoot(0.5, 0.5)
    game.settle()
    assert (game.state, game.bird_ready, game.shoot(1, 0)) == ("lost", False, False)


def test_some_pigs_go_only_after_hits_by_several_birds():
    target = pig(-8.0, -1.44, "BasicBigTwoShots"), platform(-8.0, -2.25, 5.0)
    game = Game(level(*target, birds=("BirdRed",) * 3))
    game.shoot(1.0, 0.15)
    game.settle()
    assert (game.pigs, game.state) == (1, "playing")
    game.shoot(1.0, 0.15)
    game.settle()
    assert game.state == "won"


def test_no_blast_kills_a_pig_that_counts_birds():
    things = platform(-8.0, -2.25, 6.0), LevelObject(kind="TNT", x=-8.0, y=-1.6), pig(-6.8, -1.44, "BasicBig")
    game = Game(level(*things))
    game.explode((-8.0, -1.6), game.profile.tnt.blast)
    (big,) = (body for body in game.bodies if body.kind == "pig")
    assert (game.pigs, big.full, big.physical.mass) == (1, 1e8, 1.5)


def test_a_ball_wears_out_on_a_long_slope_where_every_contact_counts():
    slope = LevelObject(kind="Platform", x=0.0, y=0.0, rotation=-27.0, scale_x=22.0)
    things = slope, block("Circle", "stone", -5.5, 3.6), FAR
    left = {}
    for profile in ("sailon", "phyq"):
        game = Game(level(*things), profile)
        left[profile] = [body.place[0] for body in game.bodies if body.kind == "block"]
    assert left["sailon"] == []
    assert left["phyq"][0] > 6.0


def test_ice_breaks_where_stone_does_not():
    lives = {}
    for material in ("ice", "stone"):
        game = Game(level(FAR, platform(-8.0, -2.25), block("SquareHole", material, -8.0, -1.5)))
        game.shoot(1.0, 0.15)
        game.settle()
        lives[material] = next((body.life / body.full for body in game.bodies if body.kind == "block"), 0.0)
    assert lives["ice"] == 0 < lives["stone"] < 1


def test_tnt_blows_up_what_is_near():
    things = (platform(-8.0, -2.25, 6.0), LevelObject(kind="TNT", x=-8.0, y=-1.6), pig(-7.0, -1.72))
    game = Game(level(*things))
    game.shoot(1.0, 0.13)
    game.settle()
    assert game.state == "won"


def test_what_went_with_another_blast_is_not_looked_at_again(monkeypatch):
    def remove(game, body, linger=0.0):
        real(game, body, linger)
        body.physical = None  # the engine has freed it: to read it is to read anything

    real = Game.remove
    monkeypatch.setattr(Game, "remove", remove)
    row = [LevelObject(kind="TNT", x=5 + 0.7 * number, y=-3.17) for number in range(4)]
    game = Game(
        level(*row, block("SquareTiny", "ice", 5.0, -2.7), block("SquareTiny", "ice", 7.1, -2.7), FAR), "sailon"
    )
    game.destroy(next(body for body in game.bodies if body.kind == "tnt"))
    assert (game.score, [body.kind for body in game.bodies]) == (1000, ["pig"])
    beyond = (LevelObject(kind="TNT", x=18.3, y=-3.0), block("SquareTiny", "ice", 17.2, -2.0))
    assert Game(level(*beyond, FAR), "sailon").score == 500


@pytest.mark.parametrize("profile", ["sailon", "phyq"])
def test_every_power(profile):
    flights = {}
    for bird in ("BirdRed", "BirdBlue", "BirdYellow", "BirdBlack", "BirdWhite"):
        game = Game(level(FAR, birds=(bird,)), profile)
        game.shoot(math.cos(0.6), math.sin(0.6), tap=0.6)
        before = len(game.bodies)
        game.run(0.7)
        flights[bird] = game, len(game.bodies) - before
    assert [flights[bird][1] for bird in flights] == [0, 2, 0, -1, 1]
    assert flights["BirdYellow"][0].flying.speed > flights["BirdRed"][0].flying.speed + 3
    assert flights["BirdWhite"][0].flying.physical.linearVelocity.y > 3


def test_a_tap_before_the_bird_is_on_its_way_is_ignored():
    game = Game(level(FAR, birds=("BirdBlue",)))
    game.shoot(1.0, 0.2, tap=0.04)
    game.run(0.2)
    assert sum(body.kind == "bird" for body in game.bodies) == 1


def test_a_black_bird_explodes_a_second_after_its_first_contact():
    game = Game(level(FAR, birds=("BirdBlack", "BirdRed")))
    game.shoot(0.6, 0.0)
    while game.flying is not None:
        game.run(0.1)
    touched = game.steps
    while any(body.kind == "bird" for body in game.bodies):
        game.run(0.1)
    assert game.steps - touched == pytest.approx(SECOND, abs=10)


def test_phyq_things_take_no_damage_in_the_first_two_seconds():
    falling = pig(0.0, 1.0), platform(0.0, -1.0)
    assert Game(level(*falling), "phyq").pigs == 1
    assert Game(level(*falling), "sailon").pigs == 0


@pytest.mark.parametrize("profile", ["sailon", "phyq"])
def test_a_bird_has_had_its_turn_with_its_first_contact_also_if_what_it_hits_is_gone_with_it(profile):
    game = Game(level(pig(-8.0, -1.72), platform(-8.0, -2.25), FAR, birds=("BirdRed", "BirdRed")), profile)
    game.shoot(1.0, 0.2)
    while game.pigs == 2 and game.flying is not None:
        game._tick()
    assert (game.pigs, game.flying, len(game.queue)) == (1, None, 1)


def test_both_sides_of_a_hit_are_hurt_also_if_one_is_gone_with_it():
    for things in (
        (pig(-8.0, 3.0), block("RectBig", "stone", -8.0, -1.8)),
        (block("RectBig", "stone", -8.0, -1.8), pig(-8.0, 3.0)),
    ):
        game = Game(level(platform(-8.0, -2.25), *things, FAR))
        (beam,) = (body for body in game.bodies if body.kind == "block")
        assert game.pigs == 1, "the fall was too deep for it"
        assert beam.life < beam.full - 4


def test_the_ground_lies_where_the_original_has_it():
    for width, centres in ((2, [-8.75, 8.74]), (1, [0.0])):
        world = Game(level(FAR, width=width)).engine_world
        found = [body.position.x for body in world.bodies if body.position.y == pytest.approx(-5.703448)]
        assert sorted(found) == pytest.approx(centres)


def test_what_is_entirely_beyond_the_edge_is_gone_and_what_still_reaches_in_is_not():
    long_block = block("RectBig", "wood", 18.4, -0.5)
    game = Game(level(FAR, platform(17.0, -1.0, 6.0), long_block))
    (beam,) = (body for body in game.bodies if body.kind == "block")
    assert beam.place[0] > 17.5
    beam.physical.linearVelocity = (3.0, 0.0)
    game.slow_ticks = 0
    game.settle()
    assert (beam.gone, game.score) == (True, 500)


@pytest.mark.parametrize(("profile", "wanted", "seconds"), [("sailon", 0, 60), ("phyq", 0, 20), ("sailon", 90, 90)])
def test_a_bird_that_never_touches_anything_has_had_its_turn_some_time(profile, wanted, seconds):
    game = Game(level(FAR, birds=("BirdRed", "BirdRed")), profile, wanted)
    game.shoot(1.0, 0.0)
    game.flying.physical.gravityScale, game.flying.physical.linearVelocity = 0.0, (0.001, 0.0)
    start = game.seconds
    while game.flying is not None:
        game.run(1.0)
    assert game.seconds - start == pytest.approx(seconds, abs=1.1)
    assert (len(game.queue), game.state) == (1, "playing")


def test_a_shot_is_waited_for_as_long_as_birds_may_fly():
    game = Game(level(FAR, birds=("BirdRed", "BirdRed")), "sailon", 90)
    game.shoot(1.0, 0.0)
    game.flying.physical.gravityScale, game.flying.physical.linearVelocity = 0.0, (0.001, 0.0)
    game.settle()
    assert game.bird_ready


def test_what_is_destroyed_lingers_in_one_profile_and_nothing_touches_it():
    sight = {}
    for profile in ("sailon", "phyq"):
        game = Game(level(platform(-8.0, -2.25), pig(-8.0, -1.7), birds=("BirdRed", "BirdRed")), profile)
        game.shoot(1.0, 0.15)
        while game.pigs:
            assert game.moving, "the pig was not hit"
            game.run(0.1)
        died, view = game.steps, zoomed_out(game.level.camera)
        seen = [item.rank for item in see(game, view).items]
        while game.ghosts:
            game.run(0.1)
        sight[profile] = "pig" in seen, (game.steps - died) / SECOND
        assert "pig" not in [item.rank for item in see(game, view).items]
    assert sight["sailon"] == (False, 0.0)
    assert sight["phyq"][0]
    assert 0.2 <= sight["phyq"][1] <= 0.5


def test_a_bird_is_reported_as_a_polygon_of_eleven_corners_nine_pixels_wide():
    game = Game(level(FAR, camera=Camera(0, -1, 25, 30)))
    (bird,) = [item for item in see(game, zoomed_out(game.level.camera)).items if item.rank == "bird"]
    xs, ys = zip(*bird.ring, strict=True)
    assert (len(bird.ring), max(xs) - min(xs), max(ys) - min(ys)) == (11, 9, 9)


def test_a_part_of_a_bird_that_lands_late_does_not_end_the_flight_of_the_next():
    game = Game(level(FAR, birds=("BirdRed", "BirdRed")))
    part = game.add(game.builder.bird("BirdBlue", (0.0, 20.0)))
    game.shoot(math.cos(1.3), math.sin(1.3))
    red = game.flying
    while not part.touched:
        game.run(0.1)
    assert (game.flying, len(game.queue)) == (red, 2)


@pytest.mark.parametrize("degrees", [-20, 10, 70, 85])
def test_a_bird_that_was_shot_is_gone_when_everything_rests(degrees):
    game = Game(level(platform(14.0, 3.0), pig(14.0, 3.53), birds=("BirdRed", "BirdRed")))
    game.shoot(math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
    game.settle()
    assert (game.birds_removed, [body.kind for body in game.bodies]) == (1, ["platform", "pig"])


def test_a_level_is_over_only_when_everything_has_come_to_rest():
    pool, ended = LevelPool(), 0
    for name in [pool.names(0, f"0101{scenario:02d}")[0] for scenario in range(1, 6)]:
        for degrees in range(0, 80, 8):
            game = Game(pool.level(name))
            while game.bird_ready:
                game.shoot(math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
                game.settle()
            ended += game.state != "playing"
            awake = [body for body in game.bodies if body.moves and body.physical.awake]
            assert not any(body.speed > 0 or body.physical.angularVelocity != 0 for body in awake)
    assert ended == 50


def test_a_shot_is_waited_for_until_the_level_is_over_also_where_something_never_rests():
    wind = LevelObject(kind="Novelty", type="NovelAirTurbulence", x=-5.0, y=0.0, scale_x=9.0, scale_y=12.0)
    game = Game(level(FAR, wind, block("RectTiny", "ice", -5.0, -3.3)))
    game.shoot(1.0, 0.4)
    game.settle()
    assert (game.state != "playing", game.flying) == (True, None)
    pool = LevelPool()
    game = Game(pool.level("novelty_level_2/type010203/Levels/00002_0_3_010203_2_3.xml"))
    game.shoot(math.cos(1.355), math.sin(1.355))
    game.settle()
    assert game.bird_ready or game.state != "playing"


def test_hits_that_a_big_pig_survives_give_points_too():
    game = Game(level(pig(-8.0, -1.44, "BasicBig"), platform(-8.0, -2.25, 5.0), birds=("BirdRed",) * 4))
    game.shoot(1.0, 0.15)
    game.settle()
    assert game.pigs == 1
    assert game.score >= 100


def test_what_leaves_the_world_is_gone():
    game = Game(level(FAR, birds=("BirdRed", "BirdRed")))
    game.shoot(-1.0, 0.5)
    game.settle()
    assert not any(body.kind == "bird" for body in game.bodies)
    assert game.bird_ready


def test_a_block_nobody_knows_is_stood_in_for_with_a_warning():
    with pytest.warns(UserWarning, match="'novel_object_3' is unknown; SquareSmall replaces it"):
        game = Game(level(FAR, block("novel_object_3", "novel_material_3", 0.0, -3.3)))
    assert [body.type for body in game.bodies if body.kind == "block"] == ["SquareSmall"]


def shots_of_a_level():
    pool = LevelPool()
    game = Game(pool.level(pool.names(0, "010104")[0]))
    game.shoot(math.cos(0.9), math.sin(0.9))
    game.settle()
    places = [(body.kind, body.place, body.physical.angle) for body in game.bodies]
    return hashlib.sha256(repr((game.score, game.steps, places)).encode()).hexdigest()


def test_the_same_shots_give_the_same_bits_in_another_process():
    code = "from domains.birds.game.test_game import shots_of_a_level; print(shots_of_a_level())"
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, 'tests'); " + code]
    other = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert other == shots_of_a_level()


@pytest.mark.parametrize(
    ("module", "use"), [("Box2D", lambda: Game(level(FAR))), ("PIL.Image", lambda: load_pillow("Image"))]
)
def test_a_missing_part_is_named_with_the_line_that_installs_it(monkeypatch, module, use):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=re.escape(install_line("birds"))):
        use()
