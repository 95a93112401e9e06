"""Places on a grid, drawn for people."""

import openfield as of
from openfield.agents.grid_map import COLOURS, SQUARE, find_grid


def test_places_are_drawn_where_the_observation_says() -> None:
    place = of.Box(0, 4, (2,), "int64")
    grid = find_grid(of.Fields({"at": place, "goal": place, "open": of.Box(0, 1, (4,), "int64")}))
    assert grid is not None
    picture = grid.draw({"at": [1, 3], "goal": [4, 0], "open": [1, 1, 0, 0]})
    assert picture.shape == (5 * SQUARE, 5 * SQUARE, 3)
    middle = SQUARE // 2
    assert tuple(picture[3 * SQUARE + middle, SQUARE + middle]) == COLOURS[0]
    assert tuple(picture[middle, 4 * SQUARE + middle]) == COLOURS[1]


def test_other_observations_have_no_map() -> None:
    assert find_grid(None) is None
    assert find_grid(of.Discrete(4)) is None
    assert find_grid(of.Fields({"at": of.Box(0, 1, (2,))})) is None
    assert find_grid(of.Fields({"at": of.Box(0, 1_000, (2,), "int64")})) is None
