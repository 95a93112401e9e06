import struct
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from openfield.errors import InvalidInput
from openfield.objectives import compare, dense_indices, discretize, encode, load_table, transitions
from openfield.objectives.formats.convert import read_thresholds
from openfield.objectives.frames import table_of_episodes as episodes_module
from openfield.objectives.frames.episode_files import read_array, read_stretches
from openfield.objectives.frames.table_of_episodes import (
    Recipe,
    build_table,
    episodes_of_arrays,
    find_thresholds,
    open_episode,
)
from support.objectives.save import save_table

RECIPE = Recipe(size=4, levels=4)


def rows(table):
    return sorted(
        zip(table.obs.tolist(), table.action.tolist(), table.next_obs.tolist(), table.count.tolist(), strict=True)
    )


def make_frames(seed, count=60):
    random = np.random.default_rng(seed)
    return random.integers(0, 5, (6, 4, 4)).astype(float)[random.integers(0, 6, count)], random.integers(0, 3, count)


def save_episode(path, seed, **more):
    frames, actions = make_frames(seed)
    np.savez_compressed(path, **{"observ": frames, "action": actions, "reward": np.zeros(len(actions))} | more)
    return path


def literal_table(parts):
    """All episodes through the plain functions, in one go."""
    frames = np.concatenate([frames for frames, _ in parts])
    actions = np.concatenate([actions for _, actions in parts])
    indices = dense_indices(encode(discretize(frames, 4), 4), 1)
    return transitions(indices, actions, np.cumsum([len(actions) for _, actions in parts]) - 1)


def test_files_give_the_same_table_as_the_plain_functions(tmp_path):
    paths = [save_episode(tmp_path / f"{seed}.npz", seed) for seed in range(3)]
    table = build_table([open_episode(path) for path in paths], RECIPE)
    assert rows(table) == rows(literal_table([make_frames(seed) for seed in range(3)]))
    assert table.meta.episodes == 3
    assert table.meta.alignment == "action_leads_to_next"


def test_thresholds_are_those_of_all_frames_together(tmp_path):
    paths = [save_episode(tmp_path / f"{seed}.npz", seed) for seed in range(3)]
    together = np.concatenate([make_frames(seed)[0] for seed in range(3)])
    _, expected = discretize(together, 4, return_bins=True)
    assert np.array_equal(find_thresholds([open_episode(path) for path in paths], RECIPE), expected)


def test_arrays_of_loops_and_data_sets():
    parts = [make_frames(seed, 20) for seed in range(3)]
    frames, actions = (np.concatenate(column) for column in zip(*parts, strict=True))
    ends = np.arange(60) % 20 == 19
    assert rows(build_table(episodes_of_arrays(frames, actions, ends), RECIPE)) == rows(literal_table(parts))
    with pytest.raises(InvalidInput, match="60 frames, 60 actions and 59 flags"):
        episodes_of_arrays(frames, actions, ends[1:])


def test_large_frames_are_scaled_down(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (9, 30, 20)).astype(np.uint8)
    np.savez(tmp_path / "e.npz", observations=frames, actions=np.arange(9) % 2)
    table = build_table([open_episode(tmp_path / "e.npz")], RECIPE)
    assert int(table.count.sum()) == 8


def test_one_action_fewer_than_frames(tmp_path):
    frames, actions = make_frames(0, 10)
    np.savez(tmp_path / "e.npz", observ=frames, action=actions[:9])
    short = build_table([open_episode(tmp_path / "e.npz")], RECIPE)
    assert rows(short) == rows(literal_table([(frames, actions)]))
    np.savez(tmp_path / "e.npz", observ=frames, action=actions[:5])
    with pytest.raises(InvalidInput, match="10 frames and 5 actions"):
        build_table([open_episode(tmp_path / "e.npz")], RECIPE)


def test_alignment_is_an_option(tmp_path):
    frames, actions = make_frames(0, 10)
    np.savez(tmp_path / "e.npz", observ=frames, action=actions)
    late = build_table([open_episode(tmp_path / "e.npz")], Recipe(size=4, alignment="action_led_here"))
    indices = dense_indices(encode(discretize(frames, 4), 4), 1)
    assert rows(late) == rows(transitions(indices, actions, alignment="action_led_here"))


def test_folders_of_images(tmp_path):
    from PIL import Image

    frames = np.random.default_rng(0).integers(0, 256, (5, 12, 9)).astype(np.uint8)
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"{number:03d}.png")
    (tmp_path / "actions.txt").write_text("0 1 0 1 0")
    by_folder = build_table([open_episode(tmp_path)], RECIPE)
    by_array = build_table(episodes_of_arrays(frames, np.array([0, 1, 0, 1, 0]), np.zeros(5, bool)), RECIPE)
    assert rows(by_folder) == rows(by_array)
    (tmp_path / "003.png").write_bytes(b"not an image")
    with pytest.raises(InvalidInput, match=r"003\.png"):
        build_table([open_episode(tmp_path)], RECIPE)


def test_pictures_of_sixteen_bits_keep_them(tmp_path):
    frames = np.random.default_rng(2).integers(0, 2**16, (6, 20, 30), np.uint16)
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"{number}.png")
    np.save(tmp_path / "actions.npy", np.arange(6))
    read = np.concatenate(list(open_episode(tmp_path).frames()))
    assert read.tolist() == frames.tolist()


def test_folders_without_images_or_actions(tmp_path):
    with pytest.raises(InvalidInput, match="no images"):
        open_episode(tmp_path)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(InvalidInput, match="neither actions"):
        open_episode(tmp_path)


def test_tables_with_the_same_thresholds_can_be_compared(tmp_path):
    human = build_table([open_episode(save_episode(tmp_path / "h.npz", 1))], RECIPE)
    save_table(human, tmp_path / "human.parquet")
    bins = read_thresholds(tmp_path / "human.parquet")
    agent = build_table([open_episode(save_episode(tmp_path / "a.npz", 1))], RECIPE, bins)
    other = build_table([open_episode(save_episode(tmp_path / "b.npz", 2))], RECIPE)
    assert compare(load_table(tmp_path / "human.parquet"), agent).jaccard == 1
    with pytest.raises(InvalidInput, match="different thresholds"):
        compare(human, other)


def test_tables_from_frames_can_be_published(tmp_path):
    table = build_table([open_episode(save_episode(tmp_path / "h.npz", 1))], RECIPE)
    save_table(table, tmp_path / "t.pkl")
    back = load_table(tmp_path / "t.pkl")
    assert rows(back) == rows(table)
    assert dict(zip(back.book.codes, back.book.indices.tolist(), strict=True)) == dict(
        zip(table.book.codes, table.book.indices.tolist(), strict=True)
    )
    with pytest.raises(InvalidInput, match="no thresholds"):
        read_thresholds(tmp_path / "t.pkl")


def test_stretches_put_together_are_the_array(tmp_path):
    frames, _ = make_frames(0, 57)
    np.savez(tmp_path / "e.npz", observ=frames)
    assert np.array_equal(np.concatenate(list(read_stretches(tmp_path / "e.npz", "observ", 10))), frames)


def write_member(path, name, raw, size=None):
    """An NPZ member; its directory entry may lie about the size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", raw)
    if size is not None:
        data = path.read_bytes()
        at = data.rindex(b"PK\x01\x02")
        path.write_bytes(data[: at + 24] + struct.pack("<I", size) + data[at + 28 :])


def header(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@contextmanager
def little_memory():
    """Holds what is done to a megabyte: nothing of size was unpacked."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_bombs_are_refused_before_they_unpack(tmp_path):
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("observ.npy", "w", force_zip64=True) as file,
    ):
        file.write(header((2**20, 8, 8)))
        for _ in range(576):
            file.write(bytes(2**20))
    assert path.stat().st_size < 1_000_000
    with little_memory(), pytest.raises(InvalidInput, match=r"bomb\.npz.*refused"):
        next(read_stretches(path, "observ", 100))


def test_sizes_that_lie_are_noticed(tmp_path):
    path = tmp_path / "e.npz"
    write_member(path, "observ", header((1000, 8, 8)) + bytes(512))
    with pytest.raises(InvalidInput, match=r"e\.npz"):
        list(read_stretches(path, "observ", 100))
    write_member(path, "observ", header((1000, 8, 8)) + bytes(512), size=10_000_000)
    with pytest.raises(InvalidInput, match=r"e\.npz"):
        list(read_stretches(path, "observ", 100))
    write_member(path, "observ", header((10**30, 8, 8)) + bytes(512))
    with pytest.raises(InvalidInput, match="does not fit"):
        list(read_stretches(path, "observ", 100))


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "e.npz", observ=np.array([{"a": 1}], object), action=np.zeros(1, int))
    with pytest.raises(InvalidInput, match="not numbers"):
        list(read_stretches(tmp_path / "e.npz", "observ", 10))


@pytest.mark.parametrize("raw", [b"", b"hello", b"PK\x03\x04rubbish"])
def test_other_files_are_refused(tmp_path, raw):
    (tmp_path / "e.npz").write_bytes(raw)
    with pytest.raises(InvalidInput, match="not an NPZ file"):
        open_episode(tmp_path / "e.npz")
    with pytest.raises(InvalidInput, match="not an NPZ file"):
        open_episode(tmp_path / "missing.npz")


def test_missing_arrays_are_named(tmp_path):
    np.savez(tmp_path / "e.npz", frames=np.zeros((2, 2, 2)))
    with pytest.raises(InvalidInput, match="no array 'action'; it has frames"):
        open_episode(tmp_path / "e.npz")
    with pytest.raises(InvalidInput, match="no array 'x'"):
        read_array(tmp_path / "e.npz", "x")
    np.savez(tmp_path / "e.npz", frames=np.zeros((2, 2, 2)), action=np.zeros(2))
    with pytest.raises(InvalidInput, match="whole numbers"):
        open_episode(tmp_path / "e.npz")


def test_images_come_in_the_order_of_their_numbers(tmp_path):
    for number in range(12):
        Image.fromarray(np.full((4, 4), 20 * number, np.uint8)).save(tmp_path / f"frame{number}.png")
    (tmp_path / "actions.txt").write_text(" ".join(map(str, range(12))))
    table = build_table([open_episode(tmp_path)], Recipe(size=1, levels=12))
    assert rows(table) == [(number + 1, number, number + 2, 1) for number in range(11)]


def test_episodes_without_frames_have_none(tmp_path):
    np.savez(tmp_path / "e.npz", observ=np.zeros((0, 8, 8)), action=np.zeros(0, int))
    assert read_array(tmp_path / "e.npz", "action").dtype == np.int64
    with pytest.raises(InvalidInput, match="no frames"):
        build_table([open_episode(tmp_path / "e.npz")], Recipe())


@pytest.mark.parametrize(
    ("name", "raw"), [("actions.txt", b"0 1 two"), ("actions.txt", b"\xff"), ("actions.npy", b"x")]
)
def test_actions_of_a_folder_that_cannot_be_read(tmp_path, name, raw):
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "0.png")
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InvalidInput, match=rf"{name}: actions cannot be read"):
        open_episode(tmp_path)


def test_levels_are_positive():
    episodes = episodes_of_arrays(np.zeros((3, 8, 8)), np.zeros(3, int), np.zeros(3, bool))
    with pytest.raises(InvalidInput, match="number of levels is 0"):
        build_table(episodes, Recipe(levels=0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [8, 20])
def test_frames_that_are_no_numbers_are_refused_by_file_and_frame(tmp_path, run, value, size):
    frames = np.random.default_rng(0).random((5000, size, size))
    frames[4321, 3, 2] = value
    np.savez(tmp_path / "bad.npz", observ=frames, action=np.zeros(5000, int))
    status, _, said = run("frames", tmp_path / "bad.npz", "-o", tmp_path / "t.parquet")
    assert (status, said) == (2, f"{tmp_path / 'bad.npz'}: frame 4321 holds {value}; pixels are finite numbers.")
    assert not (tmp_path / "t.parquet").exists()


def test_one_frame_makes_no_table(tmp_path, run):
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", observ=np.ones((1, 8, 8)), action=np.zeros(1, int))
    status, _, said = run("frames", tmp_path / "a.npz", tmp_path / "b.npz", "-o", tmp_path / "t.parquet")
    assert status == 2
    assert "a.npz and 1 more: no transition in it; an episode needs two frames at least." in said
    assert not (tmp_path / "t.parquet").exists()
    np.savez(tmp_path / "b.npz", observ=np.ones((2, 8, 8)), action=np.zeros(2, int))
    assert run("frames", tmp_path / "a.npz", tmp_path / "b.npz", "-o", tmp_path / "t.parquet")[0] == 0


def test_actions_of_all_kinds_go_together(tmp_path, run):
    for kind in ("uint64", "int64", "uint8"):
        np.savez(tmp_path / f"{kind}.npz", observ=np.eye(8)[None].repeat(4, 0), action=np.arange(4).astype(kind))
    status, *_ = run("frames", *sorted(tmp_path.glob("*.npz")), "-o", tmp_path / "t.parquet")
    assert status == 0
    assert load_table(tmp_path / "t.parquet").count.tolist() == [3, 3, 3]
    np.savez(tmp_path / "far.npz", observ=np.ones((2, 8, 8)), action=np.array([2**63 + 5, 1], np.uint64))
    status, _, said = run("frames", tmp_path / "far.npz", "-o", tmp_path / "u.parquet")
    assert (status, said) == (2, f"{tmp_path / 'far.npz'}: action {2**63 + 5} is beyond 64 bits.")


def test_actions_are_not_unpacked_if_frames_are_few(tmp_path):
    np.savez_compressed(tmp_path / "e.npz", observ=np.ones((5, 8, 8)), action=np.zeros(20_000_000, int))
    with little_memory(), pytest.raises(InvalidInput, match=r"e\.npz: 5 frames and 20000000 actions"):
        open_episode(tmp_path / "e.npz")


def test_a_giant_frame_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "e.npz", observ=np.zeros((1, 9000, 9000), np.uint8), action=np.zeros(1, int))
    with (
        little_memory(),
        pytest.raises(InvalidInput, match=r"e\.npz: array 'observ' of shape .* has frames of 81,000,000 bytes"),
    ):
        build_table([open_episode(tmp_path / "e.npz")], RECIPE)


@pytest.mark.parametrize("head", ["(" * 60_000, "{'descr': [" + "(" * 300, "{'descr': 3}", "[" * 9000])
def test_a_damaged_head_is_one_line(tmp_path, head):
    raw = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(head)) + head.encode()
    with zipfile.ZipFile(tmp_path / "e.npz", "w") as archive:
        archive.writestr("observ.npy", raw)
        archive.writestr("action.npy", raw)
    with pytest.raises(InvalidInput, match=r"e\.npz: array 'observ' cannot be read"):
        open_episode(tmp_path / "e.npz")


def test_few_names_are_listed(tmp_path):
    np.savez(tmp_path / "e.npz", **{f"other{number}": np.ones(1) for number in range(50)})
    with pytest.raises(InvalidInput, match=r"it has other0, .*other9, \.\.\.\.") as caught:
        open_episode(tmp_path / "e.npz")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("side", [10_000, 15_000])
def test_picture_bombs_are_refused(tmp_path, side):
    Image.new("1", (side, side)).save(tmp_path / "0.png")
    (tmp_path / "actions.txt").write_text("0")
    with pytest.raises(InvalidInput, match=r"0\.png cannot be read as an image"):
        build_table([open_episode(tmp_path)], RECIPE)


def test_colours_become_grey_as_those_of_runs_do(tmp_path):
    for number, colour in enumerate([(0, 255, 0), (255, 255, 0)]):
        Image.new("RGB", (9, 9), colour).save(tmp_path / f"{number}.png")
    (tmp_path / "actions.txt").write_text("0 0")
    (frames,) = open_episode(tmp_path).frames()
    assert frames[:, 0, 0].tolist() == [85, 170]


def test_thresholds_of_many_episodes_are_those_of_all_frames(tmp_path, monkeypatch):
    monkeypatch.setattr(episodes_module, "STRETCH", 64)  # so that values are merged again and again
    frames = np.random.default_rng(0).integers(0, 3000, (2000, 4, 4)) / 7
    parts = [episodes_of_arrays(part, np.zeros(100, int), np.zeros(100, bool))[0] for part in np.split(frames, 20)]
    expected = discretize(frames, 4, return_bins=True)[1]
    assert np.array_equal(find_thresholds(parts, Recipe(size=4, levels=4)), expected)
