"""A life counts exactly what happened; beyond its cap it keeps a sample of inputs and says so."""

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import evaluate, transitions
from openfield.objectives.measures.entropy import entropy_of
from openfield.objectives.tracking import life as lives
from openfield.objectives.tracking.inputs import FunctionInputs, PictureInputs
from openfield.objectives.tracking.life import Life
from openfield.objectives.tracking.measured import measure_life


def walk(steps, states, seed=0):
    """Inputs, actions and ends of a random walk in episodes."""
    random = np.random.default_rng(seed)
    return random.integers(0, states, steps), random.integers(0, 4, steps), random.random(steps) < 0.02


def live(life, inputs, actions, ends, slot=0):
    for at, number in enumerate(inputs.tolist()):
        if life.is_open(slot):
            life.step(int(actions[at - 1]), number, bool(ends[at]), slot)
        else:
            life.begin(number, slot)
    return life


def cut(inputs, actions, ends):
    """The same steps as `transitions` takes them: flags of the last frames, one-frame episodes removed."""
    flags, begun = np.zeros(len(inputs), bool), False
    for at in range(len(inputs)):
        flags[at] = begun and ends[at]
        begun = not flags[at]
    return inputs, actions, flags


def rows_of(table, names=None):
    """The rows of a table in order, with other names for its inputs."""
    names = names or {number: number for number in range(100)}
    columns = (column.tolist() for column in (table.obs, table.action, table.next_obs, table.count))
    return sorted((names[obs], action, names[then], count) for obs, action, then, count in zip(*columns, strict=True))


def test_a_life_is_the_table_of_its_steps(monkeypatch):
    monkeypatch.setattr(lives, "FOLD", 64)
    steps = walk(3000, 40)
    life = live(Life(FunctionInputs(int)), *steps)
    expected = transitions(*cut(*steps))
    assert rows_of(life.table(), {at + 1: code for at, code in enumerate(life.table().book.codes)}) == rows_of(expected)
    assert measure_life(life, num_obs=40, draws=0).values == evaluate(expected, num_obs=40).values
    assert (life.note, life.sample) == ("", 1.0)


def test_a_window_is_the_table_of_the_last_transitions(monkeypatch):
    monkeypatch.setattr(lives, "FOLD", 64)
    inputs, actions, _ = walk(2000, 12)
    never = np.zeros(2000, bool)
    life = live(Life(FunctionInputs(int), window=300), inputs, actions, never)
    for last in (1, 299, 300):
        expected = transitions(inputs[-last - 1 :], actions[-last - 1 :])
        found = measure_life(life, last, num_obs=12, draws=0)
        assert found.values == evaluate(expected, num_obs=12).values
        assert found.transitions == last
    with pytest.raises(InvalidInput, match="the window has 300"):
        life.table(301)


def test_slots_do_not_mix():
    life = Life(FunctionInputs(str))
    for slot, first in enumerate("ab"):
        life.begin(first, slot)
    life.step(0, "c", False, 0)
    life.step(1, "d", True, 1)
    life.step(0, "a", True, 0)
    assert not life.is_open(0)
    assert life.table().count.tolist() == [1, 1, 1]
    assert life.table().obs.tolist() == [1, 2, 3]


def test_beyond_the_cap_inputs_are_sampled_and_the_estimates_stand(monkeypatch):
    monkeypatch.setattr(lives, "FOLD", 1 << 10)
    monkeypatch.setattr(lives, "MIN_BYTES", 1 << 16)
    random = np.random.default_rng(1)
    inputs = (random.random(40_000) ** 2 * 4000).astype(int)
    actions, never = random.integers(0, 4, 40_000), np.zeros(40_000, bool)
    life = live(Life(FunctionInputs(int), window=500, max_bytes=1 << 20), inputs, actions, never)
    whole = evaluate(transitions(inputs, actions), num_obs=4000).values
    found = measure_life(life, num_obs=4000, draws=0)
    assert life.bits >= 1
    assert life.num_bytes <= life.max_bytes
    assert found.transitions == 39_999
    assert found.kept == life.table().count.sum() == pytest.approx(found.sample * 39_999, rel=0.2)
    assert "sampled by hash: 1 of" in found.note
    assert life.table().notes == (life.note,)
    for name, value in found.values.items():
        assert value == pytest.approx(whole[name], rel=0.15), name
    table = life.table()
    kept = [table.book.codes[at - 1] for at in np.unique(table.obs)]
    visits = np.bincount(table.obs, table.count)
    assert visits[visits > 0].tolist() == np.bincount(inputs[:-1])[kept].tolist()  # what is kept is complete
    assert measure_life(life, 500, draws=0).transitions == 500
    assert entropy_of(life.table(500).counts.inputs) > 0


def test_what_is_kept_is_complete_wherever_the_cap_is_reached(monkeypatch):
    """Short episodes, so that the cap is also reached by first observations."""
    monkeypatch.setattr(lives, "MIN_BYTES", 1 << 14)
    for seed in range(8):
        inputs, actions, _ = walk(4000, 1500, seed)
        ends = np.arange(4000) % 3 == 1
        life = live(Life(FunctionInputs(int), window=0, max_bytes=1 << 17), inputs, actions, ends)
        table, expected = life.table(), transitions(*cut(inputs, actions, ends))
        kept = {table.book.codes[at - 1] for at in table.obs}
        assert kept == {code for code in expected.obs.tolist() if life._is_kept(code)}
        assert table.count.sum() == expected.count[np.isin(expected.obs, list(kept))].sum()
        assert life.bits > 0


def test_the_sample_does_not_depend_on_the_order_of_steps(monkeypatch):
    monkeypatch.setattr(lives, "FOLD", 1 << 10)
    monkeypatch.setattr(lives, "MIN_BYTES", 1 << 16)
    inputs = np.arange(20_000) % 5000
    never = np.zeros(len(inputs), bool)

    def kept(order):
        life = live(Life(FunctionInputs(int), window=0, max_bytes=1 << 19), order, np.zeros_like(order), never)
        table = life.table()
        return life.bits, {table.book.codes[at - 1] for at in set(table.obs.tolist())}

    bits, first = kept(inputs)
    assert (bits, first) == kept(np.random.default_rng(0).permutation(5000)[inputs])
    assert len(first) < 5000


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_bytes": 0}, "The cap of memory is 0 bytes"),
        ({"window": -1}, "The window is -1"),
        ({"window": 10**9}, "needs"),
        ({"max_bytes": 1.5}, "must be a whole number"),
    ],
)
def test_a_life_refuses_what_it_cannot_hold(settings, said):
    with pytest.raises(InvalidInput, match=said):
        Life(FunctionInputs(int), **settings)


@pytest.mark.parametrize("codes", [lambda seen: [seen], lambda seen: {}, lambda seen: np.zeros(2)])
def test_codes_that_cannot_be_counted_are_refused_in_one_line(codes):
    with pytest.raises(InvalidInput, match="not hashable") as error:
        Life(FunctionInputs(codes)).begin(1)
    assert "\n" not in str(error.value)


def test_codes_without_a_lasting_form_are_refused_at_once():
    with pytest.raises(InvalidInput, match="codes are numbers"):
        Life(FunctionInputs(lambda seen: object())).begin(1)


@pytest.mark.parametrize("shape", [(), (4,), (4, 4, 2), (2, 3, 4, 3), (0, 3)])
def test_what_is_no_picture_is_refused(shape):
    with pytest.raises(InvalidInput, match="is not a picture"):
        Life(PictureInputs()).begin(np.zeros(shape, np.uint8))


def test_pictures_must_be_of_one_kind_and_finite():
    life = Life(PictureInputs())
    life.begin(np.zeros((10, 10), np.uint8))
    with pytest.raises(InvalidInput, match="all must be of one kind"):
        life.begin(np.zeros((10, 10)))
    with pytest.raises(InvalidInput, match="pixels are finite"):
        Life(PictureInputs()).begin(np.full((10, 10), np.nan))


def test_an_empty_life_has_no_table():
    life = Life(FunctionInputs(int))
    life.begin(1)
    with pytest.raises(InvalidInput, match="no transitions yet"):
        life.table()


def test_actions_that_are_no_numbers_are_numbered():
    life = Life(FunctionInputs(int))
    life.begin(0)
    for action in (np.array([1, 2]), np.array([1, 3]), "left", np.array([1, 2])):
        life.step(action, 0, False)
    assert life.table().action.tolist() == [0, 1, 2]
    assert life.table().count.tolist() == [2, 1, 1]
