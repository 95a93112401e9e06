"""The catalogue against the published tables, written down a second time: novelties, hints, buckets, sensor ranges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openfield import registry
from openfield.core import Reply
from openfield.domains import doom
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.features import show_state
from openfield.domains.doom.novelty import hints_of
from openfield.errors import InvalidInput
from openfield.novelty import Novelty
from openfield.settings import make_settings
from support.doom import specification

README = Path(doom.__file__).with_name("README.md")
GRADES = ("easy", "medium", "hard")
NORMAL: dict[str, dict[str, Any]] = {
    "doom": {"enemy_radius": 20, "enemies": 1, "buckets": 0, "player_health": 10, "limit": 2000, "enemy_stride": 0},
    "doom-arena": {
        **dict.fromkeys(("enemies",), (2, 4)),
        **dict.fromkeys(("health_packs", "ammo_packs", "traps", "obstacles"), (1, 4)),
        **{"enemy_stride": 16, "enemy_damage": (5, 5), "player_health": 100, "player_ammo": 20, "limit": 2000},
        **{"stride": 16, "behaviour": "random", "sentry_after": -1, "wind": 0, "drain": 0, "toll": 0, "respawn": 0.0},
    },
}
ALIKE: dict[tuple[str, str], dict[str, Any]] = {
    ("doom-arena", "101"): {"health_packs": (10, 20)},
    ("doom-arena", "102"): {"enemy_stride": 32},
    ("doom-arena", "103"): {"behaviour": "approach"},
    ("doom-arena", "104"): {"closeness": 2500},
    ("doom-arena", "105"): {"behaviour": "spread"},
}
GRADED: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("doom", "slim"): [{"enemy_radius": value} for value in (15, 10, 5)],
    ("doom", "tough"): [{"enemy_health": value, "ammo_packs": 4} for value in (20, 30, 40)],
    ("doom", "buckets"): [{"buckets": value} for value in (50, 40, 30)],
    ("doom-arena", "51"): [{"enemy_radius": value} for value in (15, 10, 5)],
    ("doom-arena", "52"): [{"enemy_health": n, "ammo_packs": (4, 4), "ammo_pack": 15} for n in (20, 30, 40)],
    ("doom-arena", "53"): [{"buckets": value} for value in (50, 40, 30)],
    ("doom-arena", "106"): [{"wind": value} for value in (13, 19, 26)],
    ("doom-arena", "107"): [{"behaviour": "hide", "hide_distance": value} for value in (256, 128, 64)],
    ("doom-arena", "108"): [{"drain": n, "drain_period": period} for n, period in ((1, 30), (2, 20), (3, 10))],
    ("doom-arena", "201"): [{"traps": value} for value in ((10, 15), (20, 25), (30, 35))],
    ("doom-arena", "202"): [{"enemy_damage": value} for value in ((14, 17), (19, 21), (24, 26))],
    ("doom-arena", "203"): [{"blink": value} for value in ((300, 400), (500, 600), (700, 800))],
    ("doom-arena", "204"): [{"wall_harm": value} for value in (1, 2, 5)],
    ("doom-arena", "205"): [{"sentry_after": value} for value in (10, 5, 0)],
    ("doom-arena", "206"): [{"toll": value, "toll_period": 50} for value in (1, 2, 5)],
    ("doom-arena", "207"): [{"goal": goal} for goal in ((0, 0, 16), (64, 64, 64), (-128, -128, 128))],
    ("doom-arena", "208"): [
        {"respawn": growth, "respawn_distance": far} for growth, far in ((3.5, 64), (2.5, 128), (1.2, 256))
    ],
}
NAMES = ("objects", "agents", "actions", "relations", "interactions", "rules", "goals", "events")
DOMAINS: dict[str, DoomDomain] = {"doom": DUEL, "doom-arena": ARENA}


def changed(domain: str, novelty: str) -> dict[str, Any]:
    (found,) = [one for one in DOMAINS[domain].novelties if one.id == novelty]
    return msgspec.structs.asdict(found.change(DOMAINS[domain].settings()))


@pytest.mark.parametrize("domain", NORMAL)
def test_what_is_normal(domain: str) -> None:
    found = msgspec.structs.asdict(DOMAINS[domain].settings())
    assert {key: found[key] for key in NORMAL[domain]} == NORMAL[domain]


def test_every_difficulty_has_the_published_numbers() -> None:
    wanted = {(domain, f"{name}:{grade}"): change for (domain, name), changes in GRADED.items()
              for grade, change in zip(GRADES, changes, strict=True)} | ALIKE  # fmt: skip
    for (domain, novelty), change in wanted.items():
        found = changed(domain, novelty)
        assert {key: found[key] for key in change} == change, novelty
    assert {novelty.id for novelty in ARENA.novelties} == {name for domain, name in wanted if domain == "doom-arena"}


def test_arena_levels_are_the_last_digits_and_have_the_published_names() -> None:
    for novelty in ARENA.novelties:
        level = int(novelty.name) % 50
        assert novelty.level == level
        assert novelty.kind == NAMES[level - 1] or novelty.name == "53"  # its level was another one in the first task


HINTS = {
    "101": "health / quantity / decrease",
    "102": "enemy / speed / increase",
    "103": "enemy / direction / toward player",
    "104": "enemy / damage / increasing",
    "105": "enemy / direction / away enemy",
    "107": "enemy / direction / toward obstacle",
    "108": "player / ammo / decreasing",
    "201": "trap / quantity / increase",
    "202": "enemy / damage / increase",
    "203": "enemy / position / shift",
    "204": "player / health / decrease",
    "205": "enemy / angle / toward player",
    "206": "player / health / decreasing",
    "207": "enemy / direction / toward location",
    "208": "enemy / quantity / increasing",
}


@pytest.mark.parametrize("number", HINTS)
def test_hints_tell_one_word_more_with_every_level(number: str) -> None:
    words = [int(number) % 50, *HINTS[number].split(" / ")]
    for level in range(-1, 4):
        (hint,) = hints_of((f"{number}:easy",), level)
        assert list(hint) == ["level", "entity", "attribute", "change"]
        assert list(hint.values()) == [*words[: level + 1], *[None] * (3 - level)]


def test_the_wind_has_five_different_hints() -> None:
    told = [tuple(hint.values()) for hint in hints_of(("106:hard",), 3)]
    assert told == [(6, entity, "position", "shift") for entity in ("enemy", "player", "ammo", "health", "trap")]


@pytest.mark.parametrize("count", [50, 40, 30])
def test_buckets(count: int) -> None:
    """Centres start at -512 and are 1023.9 by their number apart; the nearest one is seen, in four decimals."""
    centres = [-512 + number * 1023.9 / count for number in range(count)]
    settings = msgspec.structs.replace(DUEL.settings(), buckets=count)
    for value in (-448.0, -384.0, -161.0, -7.7, 0.0, 33.3, 64.0, 223.95, 256.0):
        body = Entity(0, value, -value, 3.5, 45.0, 10.0)
        seen = show_state(GameState(body, 1.0, [], {}, []), settings).player
        nearest = [round(min(centres, key=lambda centre, at=at: abs(centre - at)), 4) for at in (value, -value)]
        assert [seen.x, seen.y, seen.z, seen.angle, seen.health] == [*nearest, 3.5, 45.0, 10.0]


def test_the_duels_ranges() -> None:
    sensors = specification.read("duel")["sensors"]
    for body in (sensors["player"], sensors["enemy"], sensors["projectiles"][0]):
        assert [body["id"][key] for key in ("type", "min", "max")] == ["int", 0, 128]
        assert {(body[axis]["min"], body[axis]["max"]) for axis in ("x_position", "y_position")} == {(-500, 500)}
    for body in (sensors["player"], sensors["enemy"]):
        assert [body["health"][key] for key in ("type", "min", "max")] == ["float", 0, 100]
        assert (body["z_position"]["min"], body["z_position"]["max"]) == (-10, 10)


def test_the_arenas_ranges() -> None:
    sensors = specification.read("arena")["sensors"]
    others = [sensors["enemies"][0], *(kind[0] for kind in sensors["items"].values())]
    for body, edge in ((sensors["player"], 512), *((other, 500) for other in others)):
        assert [body["id"][key] for key in ("type", "min", "max")] == ["int", 0, 1024]
        assert {(body[axis]["min"], body[axis]["max"]) for axis in ("x_position", "y_position")} == {(-edge, edge)}
        assert (body["z_position"]["min"], body["z_position"]["max"]) == (0, 0)
        assert (body["angle"]["min"], body["angle"]["max"]) == (0, 359.99)
    counted = [sensors["player"]["health"], sensors["player"]["ammo"], sensors["enemies"][0]["health"]]
    assert {(each["type"], each["min"], each["max"]) for each in counted} == {
        ("float", 0, 200)
    }  # as the original sends them
    assert specification.read("arena")["actions"][-1] == "give_up"


@pytest.mark.parametrize(
    ("domain", "change"),
    [("doom", {"player_health": 3}), ("doom", {"episodes": 4}), ("doom-arena", {"map": "published"})],
)
def test_a_novelty_that_could_have_no_effect_is_refused(
    domain: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All episodes of a trial share one player and one map."""
    own = Novelty("own", 2, "agents", "something else", lambda usual: msgspec.structs.replace(usual, **change))
    monkeypatch.setattr(type(DOMAINS[domain]), "novelties", (own,))
    with pytest.raises(InvalidInput, match=f"cannot change '{next(iter(change))}'"):
        DOMAINS[domain].trials(1, 0, "own", unchanged=0)
    assert DOMAINS[domain].trials(1, 0, "own", **change, unchanged=0)


@pytest.mark.engine
def test_the_novelty_of_the_readme_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_domains", dict(registry._domains))
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    file = tmp_path / "mine.py"
    file.write_text(code, encoding="utf-8")
    domain = registry.find_domain(str(file))
    world = domain.world(domain.trials(1, 0, "sloth", training=0, episodes=1, unchanged=0)[0])
    start, later = (turn.observation["player"] for turn in (world.reset(), world.step(Reply("forward"))))
    world.close()
    assert later["x_position"] - start["x_position"] == pytest.approx(2.0)


def test_novelties_that_stand_beside_each_other_are_not() -> None:
    assert DOMAINS["doom"].trials(1, 0, "fog:easy+buckets:hard+mirrored", unchanged=0)
    assert DOMAINS["doom-arena"].trials(1, 0, "203:hard+205:hard+106:easy", unchanged=0)


@pytest.mark.parametrize(
    ("domain", "change", "allowed"),
    [
        ("doom", {"lag": -3}, "integer >= 0 <= 35"),
        ("doom-arena", {"behaviour": "dance"}, "approach | hide"),
        ("doom-arena", {"enemies": (2, 9)}, "`int` <= 4"),
    ],
)
def test_a_novelty_that_changes_a_setting_to_what_it_may_not_be_is_refused(
    domain: str, change: dict[str, Any], allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Novelty("own", 2, "agents", "something else", lambda usual: msgspec.structs.replace(usual, **change))
    monkeypatch.setattr(type(DOMAINS[domain]), "novelties", (own,))
    with pytest.raises(InvalidInput, match=f"Novelty 'own' .* '{next(iter(change))}' cannot be .*{re.escape(allowed)}"):
        DOMAINS[domain].trials(1, 0, "own", unchanged=0)


def test_a_march_to_nowhere_is_refused() -> None:
    with pytest.raises(InvalidInput, match="need a 'goal'"):
        make_settings(ARENA.settings, {"behaviour": "march"})
