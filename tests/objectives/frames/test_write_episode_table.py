import tempfile

import numpy as np
import pytest
from msgspec.structs import asdict

from openfield.errors import InvalidInput
from openfield.objectives import discretize, load_table
from openfield.objectives.formats.parquet import read_header
from openfield.objectives.frames import table_of_episodes as pixels_module
from openfield.objectives.frames.table_of_episodes import (
    PixelValues,
    Recipe,
    Written,
    build_table,
    open_episode,
    write_episode_table,
)
from support.objectives.save import save_table


def save_episodes(folder, lengths, *, size=4, fewer=(), seed=0):
    """Frames of which some occur again and again, within an episode and in others."""
    random = np.random.default_rng(seed)
    known = random.integers(0, 40, (30, size, size)) / 8
    paths = []
    for number, length in enumerate(lengths):
        frames = known[random.integers(0, 30, length)]
        new = random.random(length) < 0.4
        frames[new] = random.integers(0, 40, (int(new.sum()), size, size)) / 8
        paths.append(folder / f"{number}.npz")
        actions = random.integers(-2, 5, length - (number in fewer))
        np.savez(paths[-1], observ=frames, action=actions)
    return paths


@pytest.fixture
def little(monkeypatch):
    """As if memory held next to nothing."""
    for module, name, value in (
        (pixels_module, "MAX_HELD", 200),
        (pixels_module, "WAITING", 160),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("openfield.objectives.frames.table_of_episodes.STRETCH", 23)


def assert_same(one, other):
    """Every row, code, number and remark of two Parquet tables."""
    tables = [load_table(path) for path in (one, other)]
    for name in ("obs", "action", "next_obs", "count"):
        assert np.array_equal(*(getattr(table, name) for table in tables)), name
    assert np.array_equal(*(table.book.words for table in tables))
    assert np.array_equal(*(table.book.indices for table in tables))
    headers = [asdict(read_header(path)) for path in (one, other)]
    assert headers[0] == headers[1]


@pytest.mark.parametrize(
    ("recipe", "lengths", "fewer"),
    [
        (Recipe(size=4), [60, 1, 2, 130, 1, 23, 47], ()),
        (Recipe(size=4, alignment="action_led_here"), [60, 50, 40], (1,)),
        (Recipe(size=4, levels=3, start=0), [24, 23, 22, 300], (0, 3)),
        (Recipe(size=8, levels=2), [400], ()),
        (Recipe(size=8, levels=16), [100] * 3, ()),
        (Recipe(size=4, levels=1), [50], ()),
        (Recipe(size=2), [300, 300], ()),
    ],
)
def test_files_hold_the_table_that_memory_holds(tmp_path, little, recipe, lengths, fewer):
    paths = save_episodes(tmp_path, lengths, size=8 if recipe.size == 8 else 4, fewer=fewer)
    table = build_table([open_episode(path) for path in paths], recipe)
    save_table(table, tmp_path / "memory.parquet")
    written = write_episode_table(paths, recipe, tmp_path / "disk.parquet")
    assert_same(tmp_path / "memory.parquet", tmp_path / "disk.parquet")
    assert written == Written(len(table.obs), int(table.count.sum()), table.num_inputs)


def test_given_thresholds_and_pickles(tmp_path, little):
    paths = save_episodes(tmp_path, [80, 90])
    _, bins = discretize(np.random.default_rng(1).integers(0, 40, (50, 4, 4)) / 8, 4, return_bins=True)
    save_table(build_table([open_episode(path) for path in paths], Recipe(size=4), bins), tmp_path / "memory.pkl")
    write_episode_table(paths, Recipe(size=4), tmp_path / "disk.pkl", bins)
    assert (tmp_path / "memory.pkl").read_bytes() == (tmp_path / "disk.pkl").read_bytes()


def test_episodes_of_one_frame_lead_nowhere(tmp_path):
    paths = save_episodes(tmp_path, [1, 1, 1])
    with pytest.raises(InvalidInput, match=r"0\.npz and 2 more: no transition in it"):
        write_episode_table(paths, Recipe(size=4), tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


def test_no_room_for_temporary_files(tmp_path, monkeypatch):
    paths = save_episodes(tmp_path, [20])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(InvalidInput, match=r"t\.parquet: cannot be made: No such file.*temporary files are in .*gone"):
        write_episode_table(paths, Recipe(size=4), tmp_path / "t.parquet")


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5, 16])
@pytest.mark.parametrize("frames", [300, 301, 777])
def test_thresholds_through_the_disk_are_those_of_memory(little, levels, frames):
    random = np.random.default_rng(frames)
    few = random.integers(0, 7, (frames, 2, 1)) / 3
    images = np.concatenate((random.normal(size=(frames, 2, 2)), few), axis=2)  # many values beside pixels of seven
    images[:, 1, 1] = 0.1
    with PixelValues(6) as pixels:
        for part in np.array_split(images.reshape(frames, 6), 12):
            pixels.add(part)
        assert pixels._base
        found = pixels.thresholds(levels)
    assert np.array_equal(found, discretize(images, levels, return_bins=True)[1].reshape(6, levels - 1))
