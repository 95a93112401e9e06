import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from openfield.errors import InvalidInput
from openfield.objectives import (
    code_book,
    dense_indices,
    discretize,
    downscale,
    encode,
    encode_frames,
    encode_packed,
    input_entropy,
    transitions,
)
from openfield.objectives.frames.encode import index_words
from openfield.objectives.tables.codes import integers_of, to_words


def literal_downscale(images, size):
    """Sample a size^2 x size^2 grid bilinearly, edges clamped, then average blocks; one number at a time."""
    count, height, width = images.shape
    grid = size * size
    result = np.zeros((count, size, size))
    for t in range(count):
        for i in range(grid):
            for j in range(grid):
                result[t, i // size, j // size] += sample(images[t].astype(np.float32), i, j, grid, height, width)
    return result / grid


def sample(image, i, j, grid, height, width):
    def place(k, length):
        at = (k + 0.5) * length / grid - 0.5
        low = int(np.floor(at))
        part = at - low
        if low < 0:
            return 0, 0, 0.0
        if low >= length - 1:
            return length - 1, length - 1, 0.0
        return low, low + 1, part

    top, bottom, down = place(i, height)
    left, right, across = place(j, width)
    upper = image[top, left] * (1 - across) + image[top, right] * across
    lower = image[bottom, left] * (1 - across) + image[bottom, right] * across
    return float(upper * (1 - down) + lower * down)


def random_frames(shape, kind=np.uint8):
    return np.random.default_rng(0).integers(0, 256, shape).astype(kind)


@pytest.mark.parametrize("shape", [(2, 210, 160), (2, 64, 64), (1, 8, 8), (1, 3, 5), (1, 1, 1), (2, 17, 100)])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_downscale_is_exact_for_bytes_and_powers_of_two(shape, size):
    images = random_frames(shape)
    small = downscale(images, size)
    assert small.dtype == np.float64
    assert np.array_equal(small, literal_downscale(images, size))


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64, np.int16])
def test_downscale_is_close_elsewhere(size, kind):
    images = random_frames((2, 31, 44), kind)
    assert np.allclose(downscale(images, size), literal_downscale(images, size), rtol=0, atol=1e-4)


def test_downscale_handles_many_frames_alike():
    images = random_frames((100, 20, 30))
    assert np.array_equal(downscale(images, 4), np.concatenate([downscale(image[None], 4) for image in images]))
    assert downscale(images[:0], 4).shape == (0, 4, 4)


def test_exact_values_are_multiples_of_a_power_of_two():
    small = downscale(random_frames((5, 210, 160)), 8)
    assert np.array_equal(small * 2**20, np.round(small * 2**20))


@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 4, 3), (2, 0, 4)])
def test_downscale_refuses_other_shapes(shape):
    with pytest.raises(InvalidInput, match="H, W"):
        downscale(np.zeros(shape), 2)


def test_downscale_refuses_what_is_not_a_number():
    with pytest.raises(InvalidInput, match="real numbers"):
        downscale(np.zeros((1, 2, 2), complex), 2)
    with pytest.raises(InvalidInput, match="positive"):
        downscale(np.zeros((1, 2, 2)), 0)


def literal_discretize(images, count):
    levels = np.zeros(images.shape, np.int64)
    bins = np.zeros((*images.shape[1:], count - 1))
    for i, j in np.ndindex(images.shape[1:]):
        values = np.unique(images[:, i, j])
        bins[i, j] = np.percentile(values, [100 * step / count for step in range(1, count)])
        for t in range(len(images)):
            levels[t, i, j] = sum(threshold <= images[t, i, j] for threshold in bins[i, j])
    return levels, bins


@given(arrays(np.float64, (7, 2, 3), elements=st.integers(0, 4).map(float)), st.sampled_from([2, 3, 4, 8, 16]))
@settings(deadline=None)
def test_discretize_agrees_with_the_definition(images, count):
    levels, bins = discretize(images, count, return_bins=True)
    expected, thresholds = literal_discretize(images, count)
    assert levels.dtype == np.int64
    assert np.array_equal(bins, thresholds)
    assert np.array_equal(levels, expected)
    assert np.array_equal(discretize(images, color_bins=bins), levels)
    assert np.array_equal(discretize(images, 99, color_bins=bins), levels)


def test_a_constant_pixel_is_at_the_top():
    assert (discretize(np.full((3, 2, 2), 7.0), 4) == 3).all()


def test_rare_values_weigh_as_much_as_common_ones():
    images = np.array([0.0] * 97 + [1.0, 2.0, 3.0]).reshape(-1, 1, 1)
    assert discretize(images, 4).ravel()[-3:].tolist() == [1, 2, 3]


def test_discretize_refuses():
    with pytest.raises(InvalidInput, match="no frames"):
        discretize(np.zeros((0, 2, 2)), 4)
    with pytest.raises(InvalidInput, match="bin_count"):
        discretize(np.zeros((2, 2, 2)))
    with pytest.raises(InvalidInput, match="do not fit"):
        discretize(np.zeros((2, 2, 2)), color_bins=np.zeros((3, 3, 3)))
    with pytest.raises(InvalidInput, match="T, H, W"):
        discretize(np.zeros((2, 2)), 4)


@given(
    st.integers(1, 17).flatmap(
        lambda n: st.tuples(st.just(n), arrays(np.int64, (3, 3, 5), elements=st.integers(0, n - 1)))
    )
)
def test_encode_agrees_with_the_definition(case):
    count, levels = case
    expected = [sum(int(digit) * count**i for i, digit in enumerate(frame.ravel())) for frame in levels]
    codes = encode(levels, count)
    assert codes == expected
    assert all(type(code) is int for code in codes)
    assert integers_of(encode_packed(levels, count)) == expected


@pytest.mark.parametrize(
    ("size", "count", "words"), [(8, 4, 2), (8, 3, 2), (8, 16, 4), (16, 4, 8), (4, 256, 2), (2, 2, 2)]
)
def test_codes_of_every_width(size, count, words):
    levels = np.random.default_rng(1).integers(0, count, (9, size, size))
    packed = encode_packed(levels, count)
    assert packed.shape == (9, words)
    assert packed.dtype == np.uint64
    assert integers_of(packed) == [
        sum(int(digit) * count**i for i, digit in enumerate(frame.ravel())) for frame in levels
    ]


def test_the_low_word_holds_the_first_half_of_the_frame():
    levels = np.random.default_rng(1).integers(0, 4, (1, 8, 8))
    low = sum(int(digit) * 4**i for i, digit in enumerate(levels.ravel()[:32]))
    assert int(encode_packed(levels, 4)[0, 0]) == low


@pytest.mark.parametrize("levels", [[[[4]]], [[[-1]]]])
def test_levels_that_collide_are_refused(levels):
    with pytest.raises(InvalidInput, match="levels go from 0 to 3"):
        encode(np.array(levels), 4)
    with pytest.raises(InvalidInput, match="whole numbers"):
        encode(np.array(levels, float), 4)


@pytest.mark.parametrize("count", [2, 3, 4, 16])
def test_the_short_way_gives_the_same_codes(count):
    images = random_frames((3000, 8, 8), float)
    levels, bins = discretize(images, count, return_bins=True)
    assert np.array_equal(encode_frames(images, bins), encode_packed(levels, count))
    assert encode_frames(images[:0], bins).shape == encode_packed(levels[:0], count).shape


@given(st.lists(st.integers(0, 2**130)))
def test_words_and_integers_are_the_same(codes):
    assert integers_of(to_words(codes)) == codes


@given(st.lists(st.integers(0, 5)), st.integers(0, 1))
def test_indices_follow_first_appearance(codes, start):
    indices = dense_indices(codes, start)
    book = code_book(codes, start)
    assert [book[code] for code in codes] == indices
    assert list(book.values()) == list(range(start, start + len(set(codes))))
    packed, distinct = index_words(to_words(codes), start)
    assert packed.tolist() == indices
    assert integers_of(distinct) == list(book)


def test_transitions_stay_within_episodes():
    table = transitions([5, 6, 5, 7, 7], [0, 1, 2, 3, 4], [False, False, True, False, True])
    rows = sorted(
        zip(table.obs.tolist(), table.action.tolist(), table.next_obs.tolist(), table.count.tolist(), strict=True)
    )
    assert rows == [(5, 0, 6, 1), (6, 1, 5, 1), (7, 3, 7, 1)]
    assert table.meta.alignment == "action_leads_to_next"
    late = transitions([5, 6, 5, 7, 7], [0, 1, 2, 3, 4], [2, 4], alignment="action_led_here")
    assert sorted(late.action.tolist()) == [1, 2, 4]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_every_step_but_the_last_of_an_episode_counts(steps):
    inputs, actions, ends = (list(column) for column in zip(*steps, strict=True))
    table = transitions(inputs, actions, ends)
    episodes = sum(ends[:-1]) + 1
    assert int(table.count.sum()) == len(steps) - episodes
    assert len({*zip(table.obs.tolist(), table.action.tolist(), table.next_obs.tolist(), strict=True)}) == len(
        table.obs
    )


def test_transitions_refuse():
    with pytest.raises(InvalidInput, match="one action per frame"):
        transitions([1, 2], [0])
    with pytest.raises(InvalidInput, match="flags or positions"):
        transitions([1, 2], [0, 0], [5])
    with pytest.raises(InvalidInput, match="Alignment"):
        transitions([1, 2], [0, 0], alignment="sideways")


def test_the_published_snippets_run_as_written():
    human_images = agent_images = images = np.zeros((10, 210, 160), np.uint8)
    downscaled = downscale(images, 8)
    discretized = discretize(downscaled, 4)
    encodings = encode(discretized, 4)
    human_discretized, bins = discretize(downscale(human_images, 8), 4, return_bins=True)
    agent_discretized = discretize(downscale(agent_images, 8), color_bins=bins)
    indices = dense_indices(encodings)
    transition_table = {(1524, 4, 56213): 16}
    assert downscaled.shape == (10, 8, 8)
    assert encodings == [2**128 - 1] * 10
    assert np.array_equal(human_discretized, agent_discretized)
    assert indices == [0] * 10
    assert input_entropy(transition_table) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_pixels_are_finite(value):
    images = np.ones((2000, 3, 3))
    images[1500, 1, 1] = value
    with pytest.raises(InvalidInput, match="frame 1500 holds"):
        downscale(images, 2)
    with pytest.raises(InvalidInput, match="frame 1500 holds"):
        discretize(images, 4)
    with pytest.raises(InvalidInput, match="frame 1500 holds"):
        encode_frames(images, np.zeros((3, 3, 1)))
    with pytest.raises(InvalidInput, match="Thresholds must be finite"):
        discretize(np.ones((2, 3, 3)), color_bins=np.full((3, 3, 1), value))


def test_pixels_fit_what_frames_are_computed_in():
    with pytest.raises(InvalidInput, match=r"frame 1 holds 1e\+39"):
        downscale(np.array([[[1.0]], [[1e39]]]), 2)
    assert discretize(np.array([[[1.7e308]], [[1.6e308]]]), 2).tolist() == [[[1]], [[0]]]


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32])
def test_zeros_and_ones_are_flags(kind):
    ends = np.array([0, 0, 0, 1, 0, 1], kind)
    table = transitions([0, 1, 2, 3, 4, 5], [0] * 6, ends)
    assert sorted(zip(table.obs.tolist(), table.next_obs.tolist(), strict=True)) == [(0, 1), (1, 2), (2, 3), (4, 5)]
    assert len(transitions([0, 1], [0, 0], [0, 1]).obs) == 1


@pytest.mark.parametrize("ends", [[2, 1], [1, 1], [-1], [6], [0.5], [[1]], ["a"]])
def test_ends_are_flags_or_positions_that_rise(ends):
    with pytest.raises(InvalidInput, match="flags or positions below 6 that rise"):
        transitions(range(6), [0] * 6, ends)


@pytest.mark.parametrize("odd", [[0.5, 1, 2], ["x", "y", "z"], [None, 1, 2], [2**70, 1, 2]])
def test_transitions_are_of_whole_numbers(odd):
    with pytest.raises(InvalidInput, match="Inputs must be whole numbers"):
        transitions(odd, [0, 0, 0])
    with pytest.raises(InvalidInput, match="Actions must be whole numbers"):
        transitions([0, 0, 0], odd)


def test_sizes_and_levels_are_whole():
    images = np.ones((2, 4, 4))
    with pytest.raises(InvalidInput, match=r"The size is 2\.5"):
        downscale(images, 2.5)
    with pytest.raises(InvalidInput, match=r"The number of levels is 2\.5"):
        discretize(images, 2.5)
    with pytest.raises(InvalidInput, match=r"The number of levels is '4'"):
        encode(np.ones((2, 4, 4), int), "4")
