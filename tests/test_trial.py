from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.trial import Limits, Phase, Trial, derive, file_digest, with_limits
from support.worlds import tiny_trials

names = st.text("abcdefgh", min_size=1, max_size=6)
values = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names
)
trials = st.builds(
    Trial,
    domain=names,
    version=st.integers(1, 9),
    seed=st.integers(0, 2**63 - 1),
    phases=st.lists(
        st.builds(
            Phase, st.sampled_from(["training", "test"]), st.integers(0, 99), st.lists(names, max_size=2).map(tuple)
        ),
        max_size=4,
    ).map(tuple),
    settings=st.dictionaries(names, values | st.lists(values, max_size=3), max_size=4),
    red_light=st.booleans(),
    limits=st.builds(
        Limits, st.none() | st.floats(0.1, 99), st.none() | st.integers(1, 99), st.none() | st.floats(1, 99)
    ),
    after=st.none() | names,
    files=st.dictionaries(names, names, max_size=2),
)
TRIAL = Trial(domain="maze", version=1, seed=7, phases=(Phase("test", 3, ("swap",)),), settings={"b": 2, "a": [1.5]})


@given(trials)
def test_a_trial_keeps_its_id_in_every_form(trial: Trial) -> None:
    turned = msgspec.structs.replace(trial, settings=dict(reversed(trial.settings.items())))
    copies = [
        pickle.loads(pickle.dumps(trial)),
        msgspec.json.decode(msgspec.json.encode(trial), type=Trial),
        msgspec.msgpack.decode(msgspec.msgpack.encode(trial), type=Trial),
        turned,
    ]
    assert {copy.id for copy in copies} == {trial.id}
    assert len(trial.id) == 12
    assert int(trial.id, 16) >= 0


def test_ids_are_the_same_in_another_process_whatever_its_hash_seed() -> None:
    code = (
        "from openfield.trial import *; print(Trial(domain='maze', version=1, seed=7, "
        "phases=(Phase('test', 3, ('swap',)),), settings={'a': [1.5], 'b': 2}).id, derive(7, 'episode', 3))"
    )
    for seed in ("0", "1"):
        output = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        assert output.decode().split() == [TRIAL.id, str(derive(7, "episode", 3))]


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "moze"},
        {"version": 2},
        {"seed": 8},
        {"phases": (Phase("test", 4, ("swap",)),)},
        {"phases": (Phase("training", 3, ("swap",)),)},
        {"phases": (Phase("test", 3),)},
        {"settings": {"b": 2}},
        {"red_light": True},
        {"limits": Limits(reply_seconds=1.0)},
        {"after": "0123456789ab"},
        {"files": {"level.xml": file_digest(b"<level/>")}},
    ],
)
def test_everything_in_a_trial_counts(change: dict[str, Any]) -> None:
    assert msgspec.structs.replace(TRIAL, **change).id != TRIAL.id


def test_other_limits_keep_what_comes_after_what() -> None:
    first = Trial(domain="d", version=1, seed=1, phases=())
    trials = [first, Trial(domain="d", version=1, seed=2, phases=(), after=first.id)]
    before, after = with_limits(trials, lambda limits: msgspec.structs.replace(limits, reply_seconds=1.0))
    assert before.id != first.id
    assert after.after == before.id
    assert (before.limits.reply_seconds, after.limits.reply_seconds) == (1.0, 1.0)


def test_the_novelty_of_a_trial_is_that_of_its_first_changed_phase() -> None:
    assert TRIAL.novelty == ("swap",)
    phases = Phase("training", 1), Phase("test", 1, ("a", "b")), Phase("test", 1, ("c",))
    assert msgspec.structs.replace(TRIAL, phases=phases).novelty == ("a", "b")
    assert msgspec.structs.replace(TRIAL, phases=phases[:1]).novelty == ()


@given(st.integers(0, 2**64), st.lists(names | st.integers(0, 99), max_size=4))
def test_seeds_are_derived_stably_and_fit_every_generator(seed: int, path: list[Any]) -> None:
    child = derive(seed, *path)
    assert child == derive(seed, *path)
    assert 0 <= child < 2**63
    assert child != derive(seed + 1, *path)
    assert child != derive(seed, *path, 0)


def test_limits_are_read_strictly() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"reply_second": 1.0}, Limits)


def test_a_trial_that_is_read_back_keeps_its_id() -> None:
    """Whole seconds were written as such and read back as others: such a run could not be resumed."""
    (trial,) = tiny_trials(1, Limits(reply_seconds=2, trial_seconds=900))
    assert msgspec.json.decode(msgspec.json.encode(trial), type=Trial).id == trial.id
