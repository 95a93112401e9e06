"""Scalars go to the writer that the user hands over: tags, values and steps."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import ObjectivesCallback, Tracker, evaluate, transitions
from openfield.objectives.tracking.inputs import FunctionInputs, PictureInputs
from openfield.objectives.tracking.life import Life
from openfield.objectives.tracking.measured import ScalarLog
from support.gym_worlds import LineEnv


class Writer:
    """What torch and tensorboardX call a SummaryWriter."""

    def __init__(self):
        self.found = []

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.found.append((tag, scalar_value, global_step))


@pytest.mark.parametrize("log", ["runs/folder", 3])
def test_a_log_that_cannot_be_written_to_is_one_line(log):
    with pytest.raises(InvalidInput, match=r"setting log is .* add_scalar, such as SummaryWriter\(FOLDER\)"):
        Tracker(LineEnv(size=4), log=log)


def test_a_log_may_be_a_function():
    found = []
    log = ScalarLog(make_life(), every=5, draws=0, log=lambda *scalar: found.append(scalar))
    assert {name: value for name, value, _ in found} == {}
    assert log.write() == {name: value for name, value, _ in found}
    assert {step for _, _, step in found} == {20}


def make_life():
    life = Life(FunctionInputs(int), window=10)
    life.begin(0)
    for step in range(20):
        life.step(step % 2, step % 3, over=False)
    return life


def test_a_tracker_logs_its_life_and_its_window():
    writer = Writer()
    tracker = Tracker(LineEnv(size=4), log=writer, every=100, window=50)
    random = np.random.default_rng(0)
    tracker.reset(seed=0)
    for _ in range(250):
        if tracker.step(int(random.integers(2)))[2]:
            tracker.reset()
    tracker.close()
    found = writer.found
    assert {step for _, _, step in found} == {100, 200}
    entropies = [value for tag, value, _ in found if tag == "objectives/life/input_entropy"]
    assert len(entropies) == 2
    assert {tag.split("/")[1] for tag, _, _ in found} == {"life", "window"}


def test_a_long_life_is_measured_as_a_whole_less_often():
    life = Life(FunctionInputs(int), window=10)
    log = ScalarLog(life, every=10, draws=0)
    life.begin(0)
    whole = []
    for step in range(1, 401):
        life.step(0, step % 7, False)
        if life.transitions >= log.due:
            found = log.scalars()
            assert "objectives/window/input_entropy" in found
            whole += [step] if "objectives/life/input_entropy" in found else []
    assert whole[:4] == [10, 20, 30, 40]
    assert len(whole) < 25
    assert all(later >= 1.1 * earlier for earlier, later in pairwise(whole))


def test_the_callback_counts_what_a_model_does():
    """A stand-in for stable-baselines3: the local variables of its loops, with two environments that reset at once."""
    random = np.random.default_rng(0)
    frames, actions = random.integers(0, 5, (201, 2)), random.integers(0, 3, (200, 2))
    dones = random.random((200, 2)) < 0.1
    last = random.integers(5, 7, (200, 2))  # what the last step of an episode showed, before the reset
    logged, writer = {}, Writer()
    model = SimpleNamespace(_last_obs=frames[0], logger=SimpleNamespace(record=logged.__setitem__))
    callback = ObjectivesCallback(int, every=100, window=60, log=writer)
    for step in range(200):
        infos = [{"terminal_observation": last[step, slot]} if dones[step, slot] else {} for slot in (0, 1)]
        found = {"self": model, "actions": actions[step], "new_obs": frames[step + 1], "dones": dones[step]}
        assert callback({**found, "infos": infos}, {})
        model._last_obs = frames[step + 1]
    inputs, taken, ends = [], [], []
    for slot in (0, 1):
        for step in range(200):
            inputs.append(frames[step, slot])
            taken.append(actions[step, slot])
            ends.append(False)
            if dones[step, slot] or step == 199:
                inputs.append(last[step, slot] if dones[step, slot] else frames[200, slot])
                taken.append(0)
                ends.append(True)
    expected = evaluate(transitions(np.array(inputs), np.array(taken), np.array(ends)), num_obs=7).values
    assert callback.measure().values == expected
    assert logged["objectives/life/input_entropy"] == expected["input_entropy"]
    assert {tag for tag, _, _ in writer.found} == logged.keys()


def test_the_callback_takes_named_parts_and_pictures_with_colours_first():
    random = np.random.default_rng(0)
    pictures = random.integers(0, 256, (31, 1, 3, 24, 20)).astype(np.uint8)
    places = random.integers(0, 4, (31, 1))
    named, coloured = ObjectivesCallback(lambda seen: int(seen["place"])), ObjectivesCallback()
    life = Life(PictureInputs())
    life.begin(np.moveaxis(pictures[0, 0], 0, 2))
    for step in range(30):
        rest = {"actions": [step % 2], "dones": [False], "infos": [{}]}
        for callback, before, after in (
            (named, {"place": places[step]}, {"place": places[step + 1]}),
            (coloured, pictures[step], pictures[step + 1]),
        ):
            callback({**rest, "self": SimpleNamespace(_last_obs=before), "new_obs": after}, {})
        life.step(step % 2, np.moveaxis(pictures[step + 1, 0], 0, 2), over=False)
    assert named.measure().inputs == len(set(places[:-1, 0].tolist()))
    assert np.array_equal(coloured.life.table().book.words, life.table().book.words)
    assert np.array_equal(coloured.life.table().obs, life.table().obs)
    with pytest.raises(InvalidInput, match="is not a picture"):
        ObjectivesCallback().life.begin(np.zeros((4, 24, 20), np.uint8))  # a stack of frames
