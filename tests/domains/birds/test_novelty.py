"""Each of the eight changes does what its law says, in the right direction, to a matched shot."""

import math

import pytest
from msgspec.structs import replace

from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.ground_truth import classify, ground_truth
from openfield.domains.birds.game.level import Level, LevelObject
from openfield.domains.birds.game.scene import load_palette, see, zoomed_out
from openfield.domains.birds.novelty import CHANGES, NOVELTIES, change_level, family_of
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import UnknownName
from openfield.novelty import apply_novelties

PIG = LevelObject(kind="Pig", type="BasicSmall", x=4.0, y=-1.47)
STAND = LevelObject(kind="Platform", x=4.0, y=-2.0, scale_x=3.0)
LEVEL = Level(birds=("BirdRed", "BirdRed"), objects=(STAND, PIG))
WINDY = replace(
    LEVEL,
    objects=(
        *LEVEL.objects,
        LevelObject(kind="Novelty", type="NonNovelAirTurbulence", x=-7, y=1, scale_x=7, scale_y=10),
    ),
)


def flight(level, angle=35.0, shots=1, side=1):
    """The dots of the last of some equal shots, and the game."""
    game = Game(level)
    for _ in range(shots):
        game.shoot(side * math.cos(math.radians(angle)), math.sin(math.radians(angle)))
        game.settle()
    return game.trajectory, game


def height(dots):
    return max(y for _, y in dots)


def test_a_new_colour_changes_nothing_but_what_is_seen():
    changed = change_level(LEVEL, ["colour"])
    (before, game), (after, other) = flight(LEVEL), flight(changed)
    assert before == after
    assert game.score == other.score
    looks = []
    for level in (LEVEL, changed):
        (collection,) = ground_truth(see(Game(level), zoomed_out(level.camera)))
        looks.append([classify(feature["properties"]["colormap"]) for feature in collection["features"][2:]])
    assert (looks[0].count("pig"), looks[1].count("pig"), looks[1].count("novel")) == (1, 0, 1)
    assert not set(load_palette()["novel"].colours) & set(load_palette()["pig"].colours)


@pytest.mark.parametrize("material", ["wood", "stone", "ice"])
def test_what_is_coloured_keeps_its_life_and_mass(material):
    things = tuple(
        LevelObject(kind="Block", type=type_, material=material, x=x, y=-3.0)
        for x, type_ in ((0.0, "Circle"), (2.0, "RectFat"), (4.0, "SquareHole"))
    )
    level = replace(LEVEL, objects=(*LEVEL.objects, *things))
    facts = [
        [(body.full, body.physical.mass) for body in Game(made).bodies if body.kind == "block"]
        for made in (level, change_level(level, ["colour"]))
    ]
    assert facts[0] == facts[1]
    ball = LevelObject(kind="Novelty", type="PinkCircle", x=0.0, y=-3.12)
    (pink,) = (body for body in Game(replace(LEVEL, objects=(ball, PIG, STAND))).bodies if body.kind == "block")
    assert (pink.full, pink.physical.mass) == (23.4, pytest.approx(1.125)), "as the original file names it"


@pytest.mark.parametrize("change", CHANGES)
def test_no_normal_level_that_ships_looks_or_behaves_as_before_under_any_change(change):
    pool = LevelPool()
    levels = [pool.level(name) for type_ in pool.types(0) for name in pool.names(0, type_)]
    assert len(levels) >= 160
    assert [level.name for level in levels if change_level(level, [change]) == level] == []


@pytest.mark.parametrize(("type_", "shots"), [("BasicBig", 3), ("BasicBigTwoShots", 2), ("BasicBigFourShots", 4)])
def test_a_coloured_big_pig_takes_as_many_birds_as_before(type_, shots):
    level = replace(LEVEL, birds=("BirdRed",) * 5, objects=(STAND, replace(PIG, type=type_, y=-1.19)))
    coloured = change_level(level, ["colour"])
    assert coloured.objects[1].type.startswith("Pink")
    results = []
    for played in (level, coloured):
        game = Game(played)
        (pig,) = (body for body in game.bodies if body.kind == "pig")
        results.append((pig.birds, pig.physical.mass, pig.physical.gravityScale))
        assert see(game, zoomed_out(level.camera)).items[0].look == ("novel" if played is coloured else "pig")
    assert results == [(shots, 1.5, 0.5)] * 2


def test_a_fan_pushes_birds_back():
    fan = LevelObject(kind="Novelty", type="Fan", x=-6.0, y=0.0)
    level = replace(LEVEL, objects=(*LEVEL.objects, fan))
    speeds = []
    for played in (LEVEL, level):
        game = Game(played)
        game.shoot(1.0, 0.55)
        while game.flying is not None and game.flying.place[0] < -6.5:
            game.run(0.1)
        speeds.append(game.trajectory[-1][0] - game.trajectory[-2][0])
    assert speeds[1] < speeds[0] - 0.1
    assert any(thing.type == "Fan" for thing in change_level(LEVEL, ["fan"]).objects)


def test_the_wind_lifts_more_and_then_presses_down():
    mild, strong, down = (
        flight(level)[0] for level in (WINDY, change_level(WINDY, ["wind"]), change_level(WINDY, ["downdraft"]))
    )
    assert height(strong) > height(mild) + 0.3
    assert height(down) < height(mild) - 0.3
    calm, _ = flight(LEVEL)
    assert height(mild) > height(calm)
    assert height(flight(change_level(LEVEL, ["wind"]))[0]) > height(calm), "where there was none there is one"
    looks = {item.look for level in (WINDY, change_level(WINDY, ["downdraft"])) for item in _winds(level)}
    assert looks == {"wind"}, "they all look alike"


def _winds(level):
    return [item for item in see(Game(level), zoomed_out(level.camera)).items if item.rank == "wind"]


def test_a_magnet_pulls_birds_and_looks_like_wood():
    changed = change_level(LEVEL, ["magnet"])
    magnet = next(thing for thing in changed.objects if thing.type == "Magnet")
    normal, pulled = (flight(level, 38.0)[0][11] for level in (LEVEL, changed))
    assert math.dist(pulled, (magnet.x, magnet.y)) < math.dist(normal, (magnet.x, magnet.y)) - 0.3
    items = see(Game(changed), zoomed_out(changed.camera)).items
    assert next(item for item in items if item.sprite.startswith("Magnet")).look == "wood"


@pytest.mark.parametrize("bird", ["BirdRed", "BirdBlue", "BirdYellow", "BirdBlack", "BirdWhite"])
def test_a_magnet_lets_go_of_whatever_touches_it(bird):
    magnet = LevelObject(kind="Novelty", type="Magnet", material="wood", x=2.0, y=-3.12)
    game = Game(replace(LEVEL, birds=(bird,), objects=(*LEVEL.objects, magnet)))
    (push,) = game.forces
    body = game.builder.bird(bird, (0.0, -2.9))
    game.bodies.append(body)
    for _ in range(100):
        push(game)
        game.engine_world.Step(0.02, 8, 3)
        if any(edge.contact.touching for edge in body.physical.contacts if edge.other.userData):
            break
    else:
        pytest.fail("it was never pulled to the magnet")
    push(game)
    body.physical.awake = False
    push(game)
    assert not body.physical.awake, "nothing pulls it any more"


def test_no_magnet_that_is_added_reaches_a_block_before_anything_is_shot():
    pool = LevelPool()
    for type_ in pool.types(0):
        for name in pool.names(0, type_):
            level = change_level(pool.level(name), ["magnet"])
            blocks = [thing for thing in level.objects if thing.kind == "Block"]
            *_, magnet = level.objects
            assert min((math.dist((magnet.x, magnet.y), (each.x, each.y)) for each in blocks), default=9.0) > 4, name
    game = Game(change_level(pool.level(pool.names(0, "010204")[0]), ["magnet"]))
    assert (game.score, [body.type for body in game.bodies if body.kind == "block"]) == (0, ["RectFat"])


def test_a_magnet_pulls_stone_and_pushes_wood():
    for material, pushed in (("stone", False), ("wood", True)):
        floor = LevelObject(kind="Platform", x=4.0, y=-2.0, scale_x=20.0)
        magnet = LevelObject(kind="Novelty", type="Magnet", material="wood", x=4.0, y=-1.3)
        ball = LevelObject(kind="Block", type="Circle", material=material, x=6.0, y=-1.3)
        far = replace(PIG, x=14.0, y=-3.29)
        wall = LevelObject(kind="Platform", x=7.2, y=-1.0, scale_y=9.0)
        game = Game(replace(LEVEL, objects=(floor, wall, far, magnet, ball)))
        pushed_away = any(body.kind == "block" and body.place[0] > 6.2 for body in game.bodies)
        assert pushed_away is pushed, material


def test_the_slingshot_stands_on_the_right_and_nothing_else_is_moved():
    changed = change_level(LEVEL, ["sling"])
    assert (changed.sling, changed.objects) == ((12.0, -2.5), LEVEL.objects)
    dots, _ = flight(LEVEL)
    mirrored, _ = flight(changed, side=-1)
    assert [-x for x, _ in mirrored[:10]] == pytest.approx([x + 0.3 for x, _ in dots[:10]], abs=1e-3), (
        "a bird rests a bit left"
    )
    assert [y for _, y in mirrored[:10]] == pytest.approx([y for _, y in dots[:10]], abs=1e-3)
    aimed = observe_level(ground_truth(see(Game(changed), zoomed_out(changed.camera)))).aim(pixel_of(PIG))
    game = Game(changed)
    game.shoot(*aimed)
    game.settle()
    assert aimed[0] < 0
    assert game.state == "won", "a planner that looks where the slingshot is hits all the same"


def pixel_of(thing):
    return zoomed_out(LEVEL.camera).pixel(thing.x, thing.y)


def test_gravity_upwards_makes_birds_rise_and_things_stay_at_the_ceiling():
    changed = change_level(LEVEL, ["gravity"])
    dots, _ = flight(changed)
    assert dots[10][1] > flight(LEVEL)[0][10][1]
    pig = next((body for body in Game(changed).bodies if body.kind == "pig"), None)
    assert pig.place[1] == pytest.approx(2 * 3.4 + 1.47, abs=0.05)
    assert any(thing.kind == "Platform" and thing.y > 10 for thing in changed.objects)


def test_a_storm_comes_when_the_first_bird_is_gone():
    changed = change_level(LEVEL, ["storm"])
    assert flight(LEVEL, 60, 1)[0] == flight(changed, 60, 1)[0]
    calm, stormy = flight(LEVEL, 60, 2)[0], flight(changed, 60, 2)
    assert stormy[0][15][0] > calm[15][0] + 0.5
    assert see(stormy[1], zoomed_out(changed.camera)).storm


def test_changes_compose_and_belong_to_their_level_of_the_hierarchy():
    settings = apply_novelties(NOVELTIES, ["storm", "colour"], BirdsSettings())
    assert settings.changes == ("storm", "colour")
    assert family_of(settings.changes) == 8
    assert [novelty.level for novelty in NOVELTIES] == list(range(1, 9))
    assert [novelty.name for novelty in NOVELTIES] == list(CHANGES)
    with pytest.raises(UnknownName, match="Did you mean 'storm'"):
        change_level(LEVEL, ["strom"])
