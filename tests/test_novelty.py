from __future__ import annotations

import re
from typing import Any

import pytest

from openfield.errors import InvalidInput, UnknownName
from openfield.novelty import HIERARCHY, Novelty, apply_novelties, check_effect, find_novelty
from openfield.registry import find_domain

DOUBLE = Novelty[int]("double", 1, "objects", "twice as many", lambda n: 2 * n)
MORE = Novelty[int]("more", 2, "rules", "some more", lambda n: n + 1, "easy")
MUCH_MORE = Novelty[int]("more", 2, "rules", "many more", lambda n: n + 10, "hard")
ALL = (DOUBLE, MORE, MUCH_MORE)


def test_ids_are_what_the_command_line_takes() -> None:
    assert [novelty.id for novelty in ALL] == ["double", "more:easy", "more:hard"]


def test_novelties_are_found_by_name_and_difficulty() -> None:
    assert find_novelty(ALL, "double") is DOUBLE
    assert find_novelty(ALL, "more") is MORE
    assert find_novelty(ALL, "more:hard") is MUCH_MORE


@pytest.mark.parametrize(("wanted", "near"), [("doubel", "double"), ("more:hart", "more:hard")])
def test_an_unknown_one_suggests_the_nearest(wanted: str, near: str) -> None:
    with pytest.raises(UnknownName) as told:
        find_novelty(ALL, wanted)
    assert str(told.value) == (
        f"Unknown novelty '{wanted}'. Did you mean '{near}'? Declared: double, more:easy, more:hard."
    )


def test_novelties_compose_in_order() -> None:
    assert apply_novelties(ALL, ["double", "more"], 5) == 11
    assert apply_novelties(ALL, ["more", "double"], 5) == 12
    assert apply_novelties(ALL, [], 5) == 5


HALF = Novelty[int]("half", 1, "objects", "half as many", lambda n: n // 2)
ZERO = Novelty[int]("zero", 1, "objects", "none at all", lambda n: 0)


def take_nine(number: int) -> int:
    if number < 10:
        raise InvalidInput("nine cannot be taken from so few")
    return number - 9


FEWER = Novelty[int]("fewer", 1, "objects", "nine less", take_nine)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["more:easy", "zero"], "Novelty 'more:easy' changes nothing beside zero; leave it out."),
        (["zero", "zero"], "Novelty 'zero' changes nothing beside zero; leave it out."),
        (["double", "half"], "Novelties double+half change nothing together."),
    ],
)
def test_a_novelty_that_another_undoes_is_refused(names: list[str], told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_effect((*ALL, HALF, ZERO), names, 5)
    assert str(refused.value) == told


@pytest.mark.parametrize("names", [[], ["zero"], ["more:easy", "double"], ["more:hard", "fewer"]])
def test_novelties_with_an_effect_each_are_not(names: list[str]) -> None:
    check_effect((*ALL, ZERO, FEWER), names, 5)


@pytest.mark.parametrize(
    ("domain", "novelty", "settings", "idle"),
    [
        ("doom", "slim:easy+slim:hard", {}, "'slim:easy' changes nothing beside slim:hard"),
        ("doom", "lag:easy+mirrored+mirrored", {}, "'mirrored' changes nothing beside lag:easy+mirrored"),
        ("doom-arena", "103+105", {}, "'103' changes nothing beside 105"),
        ("commai", "feedback:easy+feedback:hard", {}, "'feedback:easy' changes nothing beside feedback:hard"),
        ("ond", "rotation:hard+blur+rotation:easy", {}, "'rotation:hard' changes nothing beside blur+rotation:easy"),
        ("ond", "blur+slant", {"blur": 2}, "'blur' changes nothing beside slant"),
    ],
)
def test_all_domains_refuse_what_another_undoes(domain: str, novelty: str, settings: dict[str, Any], idle: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(idle)):
        find_domain(domain).trials(1, 0, novelty, **settings, unchanged=0)


def test_a_kind_outside_the_hierarchy_is_refused() -> None:
    assert len(set(HIERARCHY)) == 9
    with pytest.raises(UnknownName, match=r"Unknown kind of novelty 'object'\. Did you mean 'objects'\?"):
        Novelty("x", 1, "object", "", lambda n: n)
