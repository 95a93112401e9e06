"""What the player sees: in all colours, beside numbers, on the wire, in the record and in Gymnasium."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from typing import Any

import blosc
import numpy as np
import pytest
from msgspec.structs import replace

import openfield as of
from openfield.core import Belief, Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain, DuelDomain
from openfield.domains.doom.pictures import Image, convert_colours, pack_image, unpack_image
from openfield.domains.doom.world import DoomWorld
from openfield.errors import AgentProtocol, InvalidInput
from openfield.gym import DomainEnv
from openfield.journal.reader import Run
from openfield.journal.replay import resume_rollout
from openfield.rollout import Rollout
from support.doom.worlds import SHORT, TASKS, chance, open_world, play, still

RGB = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def test_colours_are_converted_to_the_bit() -> None:
    """Records have digests of images: these must be the same on every machine and in every version."""
    levels = np.r_[np.arange(0, 256, 5), 254].astype(np.uint8)
    picture = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(53, -1, 3)
    red, green, blue = np.moveaxis(picture.astype(np.int64), -1, 0)
    assert np.array_equal(convert_colours(picture, "grey"), (77 * red + 150 * green + 29 * blue) // 256)
    assert np.array_equal(convert_colours(picture, "bgr"), np.stack([blue, green, red], -1))
    assert convert_colours(picture, "grey").dtype == convert_colours(picture, "bgr").dtype == np.uint8


@pytest.mark.parametrize(
    ("colour", "image", "expected"),
    [("rgb", RGB, RGB[..., ::-1]), ("bgr", RGB, RGB), ("grey", RGB[..., 0], np.stack([RGB[..., 0]] * 3, -1))],
)
def test_images_travel_as_clients_of_the_original_unpack_them(colour: str, image: Image, expected: Image) -> None:
    sent = pack_image(image, colour)
    unpacked = blosc.unpack_array(base64.b64decode(sent))
    assert unpacked.dtype == np.uint8
    assert unpacked.tolist() == expected.tolist() == unpack_image(sent).tolist()
    assert b"numpy._core" not in blosc.decompress(base64.b64decode(sent))  # older versions of NumPy have none
    own = base64.b64encode(blosc.pack_array(np.ascontiguousarray(expected))).decode()
    assert unpack_image(own).tolist() == expected.tolist()


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("boom",))


@pytest.mark.parametrize(
    "sent",
    [
        "no base64!",
        base64.b64encode(b"no blosc").decode(),
        base64.b64encode(blosc.compress(b"no pickle", typesize=1)).decode(),
        base64.b64encode(blosc.compress(pickle.dumps(Bomb()), typesize=1)).decode(),
        base64.b64encode(blosc.compress(pickle.dumps([1, 2]), typesize=1)).decode(),
        base64.b64encode(blosc.compress(bytes(17 << 20), typesize=1)).decode(),
        base64.b64encode(blosc.pack_array(np.zeros(3))).decode(),
    ],
)
def test_what_is_no_image_is_refused_and_calls_nothing(sent: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AgentProtocol, match="the image cannot be read"):
        unpack_image(sent)
    assert not capsys.readouterr().out


@pytest.mark.engine
@TASKS
def test_agents_may_see_what_the_player_sees(domain: DoomDomain) -> None:
    colours = {"observation": "pixels", "image_size": "200x125", "limit": 3}
    seen = {name: open_world(domain, **colours, image_colour=name) for name in ("rgb", "bgr", "grey")}
    first = {name: world.reset().observation for name, world in seen.items()}
    assert {name: image.shape for name, image in first.items()} == {
        "rgb": (125, 200, 3),
        "bgr": (125, 200, 3),
        "grey": (125, 200),
    }
    assert (first["rgb"] == first["bgr"][..., ::-1]).all()
    brightness = first["rgb"].astype(float) @ (0.299, 0.587, 0.114)
    assert np.abs(brightness - first["grey"]).max() < 3
    for name, world in seen.items():
        space = domain.spec(world.trial).observations
        assert space is not None
        assert all(space.contains(turn.observation) for turn in play(world, chance(domain)))
        assert first[name].std() > 10  # something is to be seen, and it stays as it was


@pytest.mark.engine
@TASKS
def test_an_image_may_come_beside_numbers(domain: DoomDomain) -> None:
    plain = [turn.observation for turn in play(open_world(domain, limit=5), chance(domain))]
    world = open_world(domain, limit=5, use_image=True)
    for expected, turn in zip(plain, play(world, chance(domain)), strict=True):
        assert turn.observation["image"].shape == (180, 320, 3)
        assert {**turn.observation, "image": None} == {**expected, "image": None}
    world = open_world(domain, limit=5, use_image=True, observation="array")
    space = domain.spec(world.trial).observations
    assert space is not None
    assert all(space.contains(turn.observation) for turn in play(world, chance(domain)))


@pytest.mark.engine
def test_the_dead_see_what_they_saw_last() -> None:
    deadly = {"enemy_damage": 100, "enemy_pause": 20, "player_health": 1, "episodes": 1, "limit": 500}
    turns = list(play(open_world(DUEL, observation="pixels", image_size="160x120", **deadly), still))
    assert turns[-1].last == "terminated"
    assert turns[-1].observation.tolist() == turns[-2].observation.tolist()


@pytest.mark.engine
@TASKS
def test_images_are_recorded_as_digests_and_drawn_again_by_replay(domain: DoomDomain, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    trials = domain.trials(1, novelty="none", **{**SHORT, "limit": 6}, unchanged=0, use_image=True)
    of.run({"still": still}, trials, path, workers=0)
    assert path.stat().st_size < 300_000  # one image alone has 170 kB
    with Run(path) as run:
        (cell,) = run.cells()
        steps = list(run.raw_steps(cell.id, cell.attempt))
    rollout = resume_rollout(DoomWorld(domain, trials[0]), steps)
    assert rollout.over
    rollout.world.close()
    film = domain.film(trials[0])  # a film is replayed too: it has the size that agents see
    assert film.world.reset().observation["image"].shape == film.world.look("picture").shape
    film.world.close()


def test_a_novelty_cannot_change_what_agents_are_told_to_see() -> None:
    class Seeing(DuelDomain):
        novelties = (of.Novelty("seeing", 1, "objects", "", lambda usual: replace(usual, use_image=True)),)

    with pytest.raises(InvalidInput, match="A novelty cannot change 'use_image'"):
        Seeing().trials(1, novelty="seeing", training=0)


# Gymnasium


@pytest.mark.engine
@pytest.mark.parametrize(
    ("domain", "novelty", "settings"),
    [
        (DUEL, "none", {}),
        (DUEL, "bolts:hard", {"enemies": 4}),
        (DUEL, "buckets:hard", {}),
        (ARENA, "106:hard", {}),
        (ARENA, "201:hard", {"player_health": 200, "player_ammo": 200}),
        (ARENA, "202:hard", {"player_health": 1}),
    ],
)
def test_the_bounds_of_arrays_are_true(domain: DoomDomain, novelty: str, settings: dict[str, Any]) -> None:
    values = {**SHORT, "limit": 80, "observation": "array", **settings}
    (trial,) = domain.trials(1, novelty=novelty, **values, unchanged=0)
    env = DomainEnv(domain.name, trial)
    agent, space = chance(domain), env.observation_space
    assert np.isfinite(space.low).all()  # type: ignore[attr-defined]
    assert space.high.max() == 512  # type: ignore[attr-defined]
    for _ in range(2):
        observation, _ = env.reset()
        ended = False
        while not ended:
            assert space.contains(observation), observation
            action = domain.task.actions.index(agent(Turn()).action)
            observation, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
        assert space.contains(observation), observation
    env.close()


@pytest.mark.engine
@TASKS
def test_arrays_end_with_the_walls(domain: DoomDomain) -> None:
    world = open_world(domain, observation="array", limit=2)
    walls = [[wall.x1, wall.x2, wall.y1, wall.y2] for wall in world._script.layout(0).walls()]
    for turn in play(world, still):
        assert turn.observation[-4 * len(walls) :].reshape(-1, 4).tolist() == walls
    assert len(walls) == {"duel": 4, "arena": 20}[domain.task.name]


def test_giving_up_is_left_out_in_gymnasium_and_refused_where_it_is_left_out() -> None:
    env = DomainEnv("doom-arena")
    assert env.action_space.n == len(ARENA.task.actions) - 1  # type: ignore[attr-defined]
    env.close()
    world = open_world(ARENA, give_up=False)
    world.reset()
    with pytest.raises(AgentProtocol, match="give_up"):
        world.step(Reply("give_up"))
    world.close()


@pytest.mark.engine
def test_gymnasium_shows_pictures_as_observations_and_draws_them() -> None:
    (trial,) = DUEL.trials(1, novelty="none", **SHORT, unchanged=0, observation="pixels", image_size="160x120")
    env = DomainEnv("doom", trial, render_mode="rgb_array")
    observation, _ = env.reset()
    assert env.observation_space.contains(observation)
    assert (env.render() == observation).all()
    env.close()
    env = DomainEnv("doom", DUEL.trials(1, novelty="none", **SHORT, unchanged=0, observation="array")[0])
    assert env.render() is None
    env.close()


@pytest.mark.engine
@TASKS
def test_shaped_rewards_add_up_to_what_was_gained_and_lost(domain: DoomDomain) -> None:
    harsh = {"enemy_damage": (30, 30), "sentry_after": 0} if domain is ARENA else {"enemy_damage": 5}
    agents: dict[str, dict[str, Any]] = {"reference": {}, "still": harsh}
    for name, settings in agents.items():
        values = {**SHORT, "episodes": 1, "before": 0, "limit": 400, "reward": "shaped", **settings}
        (trial,) = domain.trials(1, novelty="none", **values, unchanged=0)
        agent = still if name == "still" else of.registry.find_agent("reference", domain)(domain.spec(trial), 0)
        turns = list(play(DoomWorld(domain, trial), agent))
        first, last = turns[0].observation, turns[-1].observation
        final = turns[-1].feedback["performance"] if turns[-1].reward and not last["enemies"] else 0.0
        left = sum(each["health"] for each in last["enemies"]) / sum(each["health"] for each in first["enemies"])
        own = last["player"]["health"] / first["player"]["health"]
        assert sum(turn.reward for turn in turns) == pytest.approx(own - left + final)
        assert name == "still" or any(turn.reward for turn in turns)


# predictions


@pytest.mark.engine
@TASKS
def test_a_prediction_above_ten_is_refused(domain: DoomDomain) -> None:
    for belief in (Belief(0.9, 11), Belief(0.9, 2**40)):
        rollout = Rollout(open_world(domain))
        rollout.reply(Reply("nothing", Belief(0.9, 10)))
        for action in ("nothing", None):
            with pytest.raises(AgentProtocol, match=r"Turn 1: the novelty prediction is \d+, not a level up to 10"):
                rollout.reply(Reply(action, belief))
            rollout.failed = False
        rollout.world.close()
