"""Processes: read and written in one grammar, pure in seed and time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.change_process import SHAPES, ChangeProcess, Range, split_process, split_stages
from openfield.errors import OpenfieldError

PROCESSES = (
    "over 20",
    "over 20 in steps of 5",
    "over 500 turns",
    "over 500 turns in steps of 50",
    "every 10",
    "every 10 for 3",
    "every 100 turns for 20",
    "for 7",
    "for 7 turns",
    "with probability 0.3",
    "as sine(period=30)",
    "as sine(period=300) in turns",
    "as sigmoid(width=8)",
    "as geometric(ratio=1.5)",
    "as geometric(ratio=1.5, start=0.1)",
    "as exponential(rate=0.2)",
    "as points(0:0.2, 10:1, 12.5:0)",
    "as bursts(probability=0.1, length=3)",
    "as walk(sigma=0.1, low=5, high=20)",
    "as walk(sigma=0.1)",
    "as ornstein_uhlenbeck(theta=0.2, sigma=0.5)",
    "as ornstein_uhlenbeck(theta=0.2, sigma=0.5, low=-3, high=1e25)",
)
GRAVITY = Range(9.8, 19.6)
processes = st.sampled_from([ChangeProcess.read(text) for text in PROCESSES])
seeds = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize("text", PROCESSES)
def test_a_process_is_written_in_the_words_in_which_it_is_read(text: str) -> None:
    assert str(ChangeProcess.read(text)) == text
    assert split_process(f"gravity=19.6  {text}") == ("gravity=19.6", ChangeProcess.read(text))


def test_every_shape_is_among_these() -> None:
    assert {ChangeProcess.read(text).shape for text in PROCESSES} == set(SHAPES)


@given(
    st.builds(lambda over, step: f"over {over} in steps of {step}", st.integers(2, 99), st.integers(2, 2))
    | st.builds(lambda every: f"every {every}", st.integers(2, 999))
    | st.builds(lambda sigma: f"as walk(sigma={sigma!r})", st.floats(1e-9, 1e9))
    | st.builds(lambda period: f"as sine(period={period!r})", st.floats(2, 1e9))
    | st.lists(st.tuples(st.integers(0, 9), st.floats(0.001, 1)), min_size=1, max_size=9, unique_by=lambda p: p[0]).map(
        lambda points: f"as points({', '.join(f'{time}:{value!r}' for time, value in sorted(points))})"
    )
)
def test_any_numbers_come_back(text: str) -> None:
    process = ChangeProcess.read(text)
    assert ChangeProcess.read(str(process)) == process
    assert "+" not in str(process), "it joins novelties"


@given(processes, seeds, st.integers(0, 200))
def test_a_strength_depends_on_seed_and_time_alone_and_is_from_0_to_1(
    process: ChangeProcess, seed: int, time: int
) -> None:
    strength = process.strength(seed, time, GRAVITY)
    assert 0.0 <= strength <= 1.0
    [process.strength(seed + 1, later, GRAVITY) for later in (time + 3, 0)]
    assert process.strength(seed, time, GRAVITY) == strength
    assert ChangeProcess.read(str(process)).strength(seed, time, GRAVITY) == strength


@given(st.floats(1e-15, 1) | st.integers(0, 10**12 - 1).map(lambda number: (number + 0.5) / 1e12))
def test_a_strength_is_rounded_as_python_rounds_a_number(strength: float) -> None:
    process = ChangeProcess.read(f"as points(0:{strength!r})")
    assert process.share(0, 0) == round(strength, 12)


@given(processes, seeds)
def test_the_world_differs_from_the_onset_on(process: ChangeProcess, seed: int) -> None:
    assert process.strength(seed, 0, GRAVITY) > 0


@pytest.mark.parametrize(
    ("text", "strengths"),
    [
        ("over 4", [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]),
        ("over 4 in steps of 2", [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]),
        ("over 5 in steps of 2", [0.4, 0.4, 0.8, 0.8, 1.0, 1.0]),
        ("every 3", [1, 1, 0, 1, 1, 0]),
        ("every 4 for 1", [1, 0, 0, 0, 1, 0]),
        ("for 2", [1, 1, 0, 0, 0, 0]),
        ("as sine(period=4)", [0.5, 1.0, 0.5, 0.0, 0.5, 1.0]),
        ("as geometric(ratio=2, start=0.125)", [0.125, 0.25, 0.5, 1.0, 1.0, 1.0]),
        ("as points(1:0.2, 3:0.6)", [0.2, 0.2, 0.4, 0.6, 0.6, 0.6]),
    ],
)
def test_shapes(text: str, strengths: list[float]) -> None:
    assert [ChangeProcess.read(text).strength(1, time) for time in range(6)] == strengths


def test_smooth_shapes_reach_what_they_promise() -> None:
    sigmoid = [ChangeProcess.read("as sigmoid(width=8)").strength(1, time) for time in range(20)]
    assert sigmoid[3] == 0.5
    assert sigmoid[7] == 0.99
    assert sorted(sigmoid) == sigmoid
    exponential = [ChangeProcess.read("as exponential(rate=0.5)").strength(1, time) for time in range(20)]
    left = [1 - strength for strength in exponential]
    assert left[4] / left[3] == pytest.approx(2.718281828**-0.5)


@given(seeds)
def test_a_walk_stays_within_its_bounds_and_begins_near_the_normal_value(seed: int) -> None:
    walk = ChangeProcess.read("as walk(sigma=1.5, low=5, high=20)")
    values = [9.8 + walk.share(seed, time, GRAVITY) * 9.8 for time in range(300)]
    assert all(5 - 1e-9 <= value <= 20 + 1e-9 for value in values)
    assert len(set(values)) == 300
    assert abs(values[0] - 9.8) < 15


def test_a_walk_takes_steps_of_its_size() -> None:
    walk = ChangeProcess.read("as walk(sigma=0.1, low=-1000, high=1000)")
    values = [walk.share(3, time, Range(0.0, 1.0)) for time in range(4000)]
    steps = [after - before for before, after in itertools.pairwise(values)]
    assert sum(steps) / len(steps) == pytest.approx(0, abs=0.01)
    assert (sum(step**2 for step in steps) / len(steps)) ** 0.5 == pytest.approx(0.1, rel=0.05)


def test_a_value_that_reverts_comes_to_the_full_one() -> None:
    process = ChangeProcess.read("as ornstein_uhlenbeck(theta=0.2, sigma=0)")
    assert [process.share(1, time) for time in range(3)] == pytest.approx([0.2, 0.36, 0.488])
    noisy = ChangeProcess.read("as ornstein_uhlenbeck(theta=0.2, sigma=0.5)")
    assert sum(noisy.share(1, time, GRAVITY) for time in range(500)) / 500 == pytest.approx(1, abs=0.1)


def test_bursts_last_and_come_by_chance() -> None:
    process = ChangeProcess.read("as bursts(probability=0.05, length=4)")
    course = "".join(str(int(process.strength(5, time))) for time in range(2000))
    assert course.startswith("1111")
    assert min(map(len, course.split("0")[:-1]), key=lambda size: size or 99) >= 4
    assert 0.1 < course.count("1") / 2000 < 0.3
    chance = ChangeProcess.read("with probability 0.3")
    assert sum(chance.strength(5, time) for time in range(2000)) / 2000 == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("over twenty", "'over twenty' is no process. Write over 20"),
        ("over 0", "over must be a whole number of at least 1, not 0"),
        ("over 2.5", "over must be a whole number"),
        ("over 4 in steps of 5", "a step is longer than the whole ramp"),
        ("every 1", "every must be a whole number of at least 2, not 1"),
        ("every 4 for 4", "it would never go"),
        ("every 1e400", "at least 2 and at most 1,000,000,000, not inf"),
        ("every 1e20", "of at least 2 and at most 1,000,000,000"),
        ("as points(0:0, 1e400:1)", "points have times from 0 to 1,000,000,000"),
        ("as walk(sigma=1e308)", "sigma must be a number above 0 and at most 1e.100"),
        ("with probability 1.5", "probability must be a number above 0 up to 1, not 1.5"),
        ("as sine(period=0)", "period must be a number of at least 2, not 0"),
        ("as sin(period=5)", "Unknown process 'sin'. Did you mean 'sine'"),
        ("as sine(perod=5)", "Unknown number of sine 'perod'. Did you mean 'period'"),
        ("as sine()", "period is missing. sine: swings between normal and full"),
        ("as sine(period)", "'period' is not of the form NAME=NUMBER"),
        ("as sine(period=3, period=4)", "a number is given twice"),
        ("as geometric(ratio=0.5)", "ratio must be a number above 1, not 0.5"),
        ("as walk(sigma=1, low=5)", "low and high are given together"),
        ("as walk(sigma=1, low=5, high=5)", "low must be below high"),
        ("as points(0:2)", "a strength is a number from 0 to 1"),
        ("as points(3:1, 1:0)", "points have times from 0 to 1,000,000,000, in order"),
        ("as points(0:0, 5:0)", "all its strengths are 0"),
        ("as points(5)", "'5' is not of the form TIME:STRENGTH"),
        ("as points(" + "1:1, " * 200 + "2:1)", "is no process"),
    ],
)
def test_what_is_wrong_with_a_process_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(OpenfieldError, match=message) as caught:
        ChangeProcess.read(text)
    assert "\n" not in str(caught.value)


def test_a_novelty_without_a_process_is_left_alone() -> None:
    for text in ("gravity=19.6", "slip:hard", "file.py:Wrapper", "name=over", "overcast", "as"):
        assert split_process(text) == (text, None)
    assert split_stages("a over 3 then none then b+c") == ("a over 3", "none", "b+c")
