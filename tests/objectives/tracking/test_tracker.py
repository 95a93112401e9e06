"""A tracker counts what its agent does in an environment, alone or in a vector, and changes nothing."""

import importlib
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from openfield.errors import InvalidInput, MissingExtra
from openfield.objectives import Tracker, VectorTracker, evaluate, evaluate_file, load_table
from openfield.objectives.frames.encode import grey
from openfield.objectives.frames.table_of_episodes import Recipe, build_table, episodes_of_arrays
from openfield.objectives.tracking.life import MIN_BYTES
from support.gym_worlds import FlickerEnv, LineEnv


def play(env, steps, seed=0):
    """Play at random. Return frames, actions and flags of last frames, as recorders of episodes have them."""
    random = np.random.default_rng(seed)
    frames, actions, ends = [env.reset(seed=seed)[0]], [], []
    for _ in range(steps):
        action = int(random.integers(env.action_space.n))
        seen, _, terminated, truncated, _ = env.step(action)
        frames.append(seen)
        actions.append(action)
        ends.append(False)
        if terminated or truncated:
            actions.append(0)
            ends.append(True)
            frames.append(env.reset()[0])
    return np.array(frames), np.array([*actions, 0]), np.array([*ends, True])


def assert_same(one, other):
    for name in ("obs", "action", "next_obs", "count"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.book.words, other.book.words)
    assert np.array_equal(one.book.indices, other.book.indices)
    assert one.meta == other.meta
    assert evaluate(one, num_obs=99999).values == evaluate(other, num_obs=99999).values


@pytest.mark.parametrize("colours", [0, 1, 3, 4])
def test_a_tracked_life_is_the_table_of_its_frames(colours, tmp_path):
    tracker = Tracker(FlickerEnv(colours))
    frames, actions, ends = play(tracker, 400)
    small = np.array([grey(frame) if frame.ndim == 3 else frame for frame in frames]).reshape(len(frames), 21, 34)
    expected = build_table(episodes_of_arrays(small, actions, ends), Recipe())
    assert_same(tracker.table(), expected)
    tracker.save(tmp_path / "life.parquet")
    assert_same(load_table(tmp_path / "life.parquet"), expected)
    again = Tracker(FlickerEnv(colours), thresholds=tmp_path / "life.parquet")
    play(again, 400)
    assert_same(again.table(), expected)


@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_frames_of_other_numbers_take_the_general_way(kind):
    tracker = Tracker(FlickerEnv(0, kind))
    frames, actions, ends = play(tracker, 100)
    assert_same(tracker.table(), build_table(episodes_of_arrays(frames, actions, ends), Recipe()))


def test_an_atari_game_is_tracked_to_the_last_bit():
    pytest.importorskip("ale_py")
    tracker = Tracker(gymnasium.make("ALE/Breakout-v5"))
    frames, actions, ends = play(tracker, 150)
    small = np.array([grey(frame) for frame in frames])
    assert_same(tracker.table(), build_table(episodes_of_arrays(small, actions, ends), Recipe()))
    tracker.close()


def test_the_wrapper_changes_nothing():
    plain, tracked = LineEnv(), Tracker(LineEnv())
    for one, other in zip(play(plain, 200), play(tracked, 200), strict=True):
        assert np.array_equal(one, other)
    assert isinstance(gymnasium.wrappers.TimeLimit(tracked, 5), gymnasium.Env)


def test_measures_come_with_null_and_excess():
    tracker = Tracker(LineEnv(size=4))
    play(tracker, 2000)
    found = tracker.measure()
    assert found.transitions == 2000
    assert found.empowerment.value == found.values["empowerment"]
    assert found.empowerment.excess > 0.1
    assert 0 <= found.empowerment.null < found.empowerment.value
    assert tracker.measure(last=500, draws=0).transitions == 500
    assert tracker.measure(draws=0).empowerment.null is None
    with pytest.raises(InvalidInput, match="The number of draws is -1"):
        tracker.measure(draws=-1)
    with pytest.raises(InvalidInput, match="is said to have 2"):
        tracker.measure(num_obs=2)


def test_an_episode_given_up_leaves_no_transition():
    tracker = Tracker(LineEnv())
    tracker.reset(seed=0)
    tracker.step(1)
    tracker.reset(seed=0)
    tracker.step(1)
    assert tracker.life.transitions == 2
    assert tracker.life.episodes == 2
    assert tracker.table().count.tolist() == [2]


def test_an_environment_that_resets_itself():
    tracker = Tracker(gymnasium.wrappers.Autoreset(LineEnv(size=3)))
    tracker.reset(seed=0)
    over = 0
    for _ in range(60):
        over += tracker.step(1)[2]
    assert tracker.life.episodes == over + 1
    assert tracker.life.transitions == 60 - over
    assert set(zip(tracker.table().obs.tolist(), tracker.table().next_obs.tolist(), strict=True)) == {(1, 2), (2, 3)}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vectors_count_every_environment_alone(mode):
    """However a vector resets, its life is that of its environments one after the other, but for names of inputs."""
    vector = Tracker(SyncVectorEnv([lambda: LineEnv(size=5, drift=True)] * 3, autoreset_mode=mode), codes=int)
    random = np.random.default_rng(0)
    shadow, waiting, seen = [Tracker(LineEnv(size=5, drift=True), codes=int) for _ in range(3)], [False] * 3, []
    vector.reset(seed=[7, 8, 9])
    for number, one in enumerate(shadow):
        one.reset(seed=7 + number)
    for _ in range(300):
        actions = random.integers(0, 2, 3)
        _, _, terminated, truncated, _ = vector.step(actions)
        for slot, one in enumerate(shadow):
            if waiting[slot]:
                one.reset()
                waiting[slot] = False
                continue
            seen.append(one.step(int(actions[slot])))
            if seen[-1][2] or seen[-1][3]:
                assert terminated[slot] or truncated[slot]
                waiting[slot] = mode is AutoresetMode.NEXT_STEP
                if not waiting[slot]:
                    one.reset()
        over = np.logical_or(terminated, truncated)
        if mode is AutoresetMode.DISABLED and over.any():
            vector.reset(options={"reset_mask": over})
    assert isinstance(vector, VectorTracker)
    together = sorted(row for one in shadow for row in named_rows(one.table()))
    assert spread(named_rows(vector.table())) == spread(together)
    assert vector.life.transitions == len(seen)
    assert vector.life.episodes == sum(one.life.episodes for one in shadow)
    vector.close()


def named_rows(table):
    codes = table.book.codes
    columns = (column.tolist() for column in (table.obs, table.action, table.next_obs, table.count))
    return [(codes[obs - 1], action, codes[then - 1], count) for obs, action, then, count in zip(*columns, strict=True)]


def spread(rows):
    return sorted(row[:3] for row in rows for _ in range(row[3]))


def test_tables_of_functions_compare_across_processes(tmp_path):
    trackers = []
    for seed in (0, 1):
        tracker = Tracker(LineEnv(size=6), codes=lambda seen: ("place", int(seen)))
        play(tracker, 300, seed)
        tracker.save(tmp_path / f"{seed}.pkl")
        trackers.append(tracker)
    first, second = (load_table(tmp_path / f"{seed}.pkl") for seed in (0, 1))
    assert sorted(first.book.codes) == sorted(second.book.codes)
    assert evaluate_file(tmp_path / "0.pkl", num_obs=6).values == trackers[0].measure(num_obs=6, draws=0).values


def test_every_command_reads_a_saved_life(run, tmp_path):
    for name in ("one", "two"):
        tracker = Tracker(FlickerEnv(3), thresholds=np.tile([60.0, 120.0, 180.0], (8, 8, 1)))
        play(tracker, 60, seed=len(name))
        tracker.save(tmp_path / f"{name}.parquet")
    assert run(tmp_path / "one.parquet", "--num-obs", "4000")[0] == 0
    status, said, _ = run("similarity", tmp_path / "one.parquet", tmp_path / "two.parquet", "--json")
    assert status == 0
    assert '"jaccard"' in said


def test_a_sampled_life_says_so_in_its_file(run, tmp_path):
    tracker = Tracker(LineEnv(size=20_000, drift=True), window=0, max_bytes=MIN_BYTES, codes=int)
    tracker.reset(seed=0)
    count = iter(range(10**9))
    for _ in range(24_000):
        tracker.life.step(next(count) % 3, next(count), False)
    assert tracker.measure(draws=0).sample < 1
    tracker.save(tmp_path / "life.parquet")
    assert "sampled by hash" in run(tmp_path / "life.parquet", "--only", "input_entropy")[1]
    with pytest.raises(InvalidInput, match=r"only \.parquet can say"):
        tracker.save(tmp_path / "life.pkl")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Tracker(gymnasium.make("CartPole-v1")), "are not pictures"),
        (lambda: Tracker(3), "wraps a Gymnasium environment"),
        (lambda: VectorTracker(LineEnv()), "wraps a vector environment"),
        (lambda: Tracker(LineEnv(), caps=3), "no setting 'caps'. It has codes, size"),
        (lambda: Tracker(LineEnv(), max_bytes=0), "The cap of memory is 0 bytes"),
        (lambda: Tracker(LineEnv(), codes=3), "must be a function"),
        (lambda: Tracker(FlickerEnv(3), levels=0), "must be positive"),
        (lambda: Tracker(FlickerEnv(3), thresholds=np.zeros((4, 4, 3))), "do not fit"),
        (lambda: Tracker(LineEnv(), every=0), "setting every is 0"),
        (lambda: Tracker(LineEnv()).save("nowhere/x.parquet"), "does not exist"),
        (lambda: Tracker(LineEnv()).save("x.csv"), "must end in"),
    ],
)
def test_mistakes_are_one_line(make, said):
    with pytest.raises(InvalidInput, match=said) as error:
        make()
    assert "\n" not in str(error.value)


def test_without_gymnasium_a_line_says_what_to_install(monkeypatch):
    for name in ("gymnasium", "gymnasium.vector", "gymnasium.vector.utils"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "openfield.objectives.tracking.tracker")
    with pytest.raises(MissingExtra, match="Tracker needs an optional part"):
        importlib.import_module("openfield.objectives.tracking.tracker")
