from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from openfield.errors import InvalidInput, UnknownName
from openfield.settings import Settings, changed_settings, make_settings, setting_rows, write_settings


class Garden(Settings, frozen=True):
    """Settings of every kind a domain may have."""

    size: Annotated[int, msgspec.Meta(ge=1, le=9, description="Metres along each side.")] = 3
    rain: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.5
    fenced: bool = False
    soil: Literal["clay", "sand"] = "clay"
    plants: tuple[str, ...] = ("rose",)
    rows: tuple[int, ...] = ()
    name: str = "1"
    budget: int | None = None


@pytest.mark.parametrize(
    ("values", "made"),
    [
        ({}, Garden()),
        ({"size": "7"}, Garden(size=7)),
        ({"size": 7}, Garden(size=7)),
        ({"rain": "0"}, Garden(rain=0.0)),
        ({"rain": 0}, Garden(rain=0.0)),
        ({"fenced": "true"}, Garden(fenced=True)),
        ({"fenced": True}, Garden(fenced=True)),
        ({"soil": "sand"}, Garden(soil="sand")),
        ({"plants": "oak,elm"}, Garden(plants=("oak", "elm"))),
        ({"plants": ["oak"]}, Garden(plants=("oak",))),
        ({"plants": ""}, Garden(plants=())),
        ({"rows": "1,2"}, Garden(rows=(1, 2))),
        ({"name": "7"}, Garden(name="7")),
        ({"budget": "5"}, Garden(budget=5)),
        ({"budget": None}, Garden(budget=None)),
    ],
)
def test_values_come_as_text_or_as_they_are(values: dict[str, Any], made: Garden) -> None:
    assert make_settings(Garden, values) == made
    assert make_settings(Garden, changed_settings(made)) == made


class Gate(Settings, frozen=True):
    """A list that may be nothing."""

    place: tuple[int, int] | None = (1, 2)


@pytest.mark.parametrize(("text", "made"), [("3,4", Gate(place=(3, 4))), ("null", Gate(place=None))])
def test_a_list_may_be_null_where_its_type_says_so(text: str, made: Gate) -> None:
    assert make_settings(Gate, {"place": text}) == made


def test_a_list_of_so_many_says_what_each_of_them_may_be() -> None:
    with pytest.raises(
        InvalidInput, match=r"^Setting 'place' cannot be '3': .* Allowed: list of integer, integer \| null"
    ):
        make_settings(Gate, {"place": "3"})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"size": "0"}, ["'size'", "'0'", "integer >= 1 <= 9"]),
        ({"size": "many"}, ["'size'", "'many'", "integer >= 1 <= 9"]),
        ({"size": 2.5}, ["'size'", "2.5"]),
        ({"size": True}, ["'size'", "True"]),
        ({"rain": "1"}, ["'rain'", "number >= 0 < 1"]),
        ({"fenced": "perhaps"}, ["'fenced'", "boolean"]),
        ({"soil": "peat"}, ["'soil'", "'peat'", "clay | sand"]),
        ({"rows": "1,x"}, ["'rows'", "list of integer"]),
        ({"name": 7}, ["'name'", "7", "string"]),
        ({"budget": "x"}, ["'budget'", "integer | null"]),
    ],
)
def test_a_value_that_does_not_fit_names_key_and_what_would(values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as told:
        make_settings(Garden, values)
    assert all(word in str(told.value) for word in words)
    assert "$" not in str(told.value)


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName) as told:
        make_settings(Garden, {"siez": 3})
    assert str(told.value).startswith(
        "Unknown setting 'siez'. Did you mean 'size'? Known: ask, budget, fenced, max_delay, min_strength,"
    )


def test_rows_say_all_there_is_to_know() -> None:
    rows = {row.name: row for row in setting_rows(Garden)}
    own = ["size", "rain", "fenced", "soil", "plants", "rows", "name", "budget"]
    assert list(rows) == [*own, *Settings.__struct_fields__]
    size = rows["size"]
    assert (size.type, size.default, size.note) == ("integer >= 1 <= 9", 3, "Metres along each side.")
    assert (rows["soil"].type, rows["plants"].type, rows["budget"].type) == (
        "clay | sand",
        "list of string",
        "integer | null",
    )


def test_only_what_differs_is_kept() -> None:
    assert changed_settings(Garden()) == {}
    assert changed_settings(Garden(size=4, plants=("oak",))) == {"size": 4, "plants": ["oak"]}


class Workshop(Settings, frozen=True):
    """A mapping."""

    make: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("values", "made"),
    [
        ({"make.size": "8"}, {"size": 8}),
        ({"make": {"size": 8}, "make.size": "9"}, {"size": 9}),
        ({"make.size": "9", "make": {"size": 8}}, {"size": 8}),
        ({"make.slip": "no", "make": {"size": 8}, "make.map": "4x4"}, {"slip": "no", "size": 8, "map": "4x4"}),
    ],
)
def test_keys_of_a_mapping_are_joined_in_their_order(values: dict[str, Any], made: dict[str, Any]) -> None:
    assert make_settings(Workshop, values) == Workshop(make=made)


@pytest.mark.parametrize("values", [{"make": "abc", "make.size": "8"}, {"make.size": "8", "make": "abc"}])
def test_a_mapping_that_is_none_is_refused_beside_its_keys(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"'make' cannot be 'abc'.*Allowed: object"):
        make_settings(Workshop, values)


def test_settings_are_written_in_the_words_of_the_command_line() -> None:
    written = write_settings({"size": 4, "make": {"map": "4x4", "slip": False}, "others": {}})
    assert written == ["make.map=4x4", "make.slip=False", "others={}", "size=4"]


class Shed(Garden, frozen=True):
    """Settings with a short form."""

    short = {"size": 1, "rain": 0.0}


class Beds(Settings, frozen=True):
    """Settings of a domain that says nothing about short trials."""

    training: int = 5
    before: int = 10
    after: int = 15


def test_a_preset_stands_for_settings_and_those_that_are_given_win() -> None:
    assert make_settings(Shed, {"preset": "short", "size": "7"}) == Shed(size=7, rain=0.0)
    assert make_settings(Beds, {"preset": "short", "after": 4}) == Beds(training=1, before=3, after=4)
    assert make_settings(Garden, {"preset": "short"}) == Garden()
    assert make_settings(Beds, {"preset": ""}) == Beds()
    with pytest.raises(InvalidInput, match="Setting 'preset' cannot be 'long'"):
        make_settings(Beds, {"preset": "long"})
