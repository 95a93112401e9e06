from __future__ import annotations

import pytest

from openfield.errors import UnknownName
from openfield.novelty import HIERARCHY, Novelty, apply_novelties, find_novelty

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


def test_a_kind_outside_the_hierarchy_is_refused() -> None:
    assert len(set(HIERARCHY)) == 9
    with pytest.raises(UnknownName, match=r"Unknown kind of novelty 'object'\. Did you mean 'objects'\?"):
        Novelty("x", 1, "object", "", lambda n: n)
