"""Concordance of beliefs and changes, by hand and against a slow count of all pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.journal.reader import CellRecord, StatedBeliefs
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.concordance import (
    WAYS,
    BlockShape,
    Panel,
    choose_shape,
    compare_all,
    count_block,
    count_pairs,
    deal_blocks,
    estimate_concordance,
    follow_concordance,
    make_panel,
    mean_pairs,
    trace_beliefs,
)
from openfield.metrics.failures import apply_policy
from openfield.metrics.significance import MAX_ARRANGEMENTS
from openfield.metrics.stats import score_limits
from openfield.trial import Phase
from support.records import make_cell, make_trial


def play(seed: int, onset: int | None, beliefs: Sequence[float | None], length: int = 4, repeat: int = 0) -> CellRecord:
    """A trial of some episodes that changes after `onset` of them, or never."""
    early = length if onset is None else onset
    phases = (Phase("test", early), *([Phase("test", length - early, ("swap",))] if early < length else []))
    trial = make_trial(seed, phases=phases, scenario=("swap",), window=(1, length - 1))
    played = len(beliefs)
    before, after = [0.5] * min(early, played), [0.5] * max(0, played - early)
    return make_cell([], before, after, beliefs, trial=trial, id=f"{seed}-{onset}-{repeat}", repeat=repeat)


def count_slowly(panel: Panel) -> tuple[float, float]:
    wins = pairs = 0.0
    for place in range(panel.positions):
        for one, two in itertools.permutations(range(len(panel.seeds)), 2):
            both = panel.present[one, place] and panel.present[two, place] and panel.seeds[one] != panel.seeds[two]
            changed = panel.courses[panel.kinds]
            if both and changed[one, place] and not changed[two, place]:
                pairs += 1
                valid = panel.valid[one, place] and panel.valid[two, place]
                wins += valid * float(np.heaviside(panel.beliefs[one, place] - panel.beliefs[two, place], 0.5))
    return wins, pairs


def test_by_hand() -> None:
    cells = [play(0, 1, [0.0, 0.8, None, 0.2]), play(1, 2, [0.0, 0.5, 0.5, 0.5]), play(2, None, [0.3, 0.3, 0.3, 0.3])]
    # Episode 1: the first trial beats both. Episodes 2 and 3: the first and the second against the third.
    wins = [1, 1, 1, 1, 0, 1]
    found = estimate_concordance(cells)
    assert found is not None
    assert found.mean == pytest.approx(sum(wins) / len(wins))
    assert (found.n, found.low, found.high) == (3, None, None)


def test_ties_are_half_and_nothing_stated_is_0() -> None:
    found = estimate_concordance([play(0, 2, [None, None, None, 0.4]), play(1, None, [None] * 4)])
    assert found is not None
    assert found.mean == 0.75


def test_of_many_samples_the_highest_speaks() -> None:
    cell = play(0, 2, [0.1] * 4)
    belief = msgspec.structs.replace(cell.episodes[0].belief, novel=(0.2, 0.9, 0.1))  # type: ignore[type-var]
    first = msgspec.structs.replace(cell.episodes[0], belief=belief)
    assert trace_beliefs(msgspec.structs.replace(cell, episodes=(first, *cell.episodes[1:]))).beliefs[0] == 0.9


def test_trials_of_one_seed_are_never_paired() -> None:
    assert estimate_concordance([play(0, 2, [0.0] * 4), play(0, None, [1.0] * 4)]) is None
    again = [play(0, 2, [0.0] * 4), play(0, None, [1.0] * 4, repeat=1), play(1, None, [0.0, 0.0, 0.0, 0.5])]
    found = estimate_concordance(again)
    assert found is not None
    assert found.mean == 0.25


@pytest.mark.parametrize("cells", [[], [play(0, 2, [0.9] * 4), play(1, 2, [0.1] * 4)], [play(0, None, [0.5] * 4)]])
def test_without_a_pair_it_is_not_defined(cells: list[CellRecord]) -> None:
    assert estimate_concordance(cells) is None
    for group in summarise(cells, BUILT_IN).groups:
        assert str(group.estimates["concordance"]) == "–"


def test_a_scenario_without_novelty_does_not_have_it() -> None:
    cells = [make_cell([], [0.9], [], [0.1], trial=make_trial(s, novelty=()), id=str(s)) for s in range(5)]
    assert "concordance" not in summarise(cells, BUILT_IN).groups[0].estimates


trials = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.none() | st.integers(1, 5),
        st.lists(st.none() | st.sampled_from([0.0, 0.3, 0.6, 1.0]), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=9,
)


@given(trials, st.integers(0, 2**30))
@settings(deadline=None)
def test_equals_the_slow_count(drawn: list[tuple[int, int | None, list[float | None]]], mask: int) -> None:
    cells = [play(seed, onset, said, 6, repeat) for repeat, (seed, onset, said) in enumerate(drawn)]
    panel = make_panel(cells)
    assert panel is not None
    failed = np.random.default_rng(mask).random(panel.present.shape) < 0.2
    panel = panel._replace(valid=panel.present & ~failed)
    wins, pairs = count_pairs(panel, [panel.kinds[None]])
    assert (wins[0], pairs[0]) == count_slowly(panel)


def test_a_failed_episode_loses_all_its_pairs() -> None:
    panel = make_panel([play(0, 2, [0.0, 0.0, 1.0, 1.0]), play(1, None, [0.0] * 4), play(2, None, [0.0] * 4)])
    assert panel is not None
    for row, lost in ((0, 2), (1, 1)):
        failed = np.zeros(panel.present.shape, dtype=bool)
        failed[row, 3] = True
        wins, pairs = count_pairs(panel._replace(valid=panel.present & ~failed), [panel.kinds[None]])
        assert (wins[0], pairs[0]) == (4 - lost, 4)


COUNTERS: dict[str, Callable[[int], float]] = {
    "after 10": lambda number: float(number >= 10),
    "always": lambda number: 1.0,
    "slowly": lambda number: number / 20,
    "by turns": lambda number: (number * 7 % 5) / 5,
}


def draw_set(counter: Callable[[int], float], length: int = 20) -> list[CellRecord]:
    random = np.random.default_rng(1)
    said = [counter(number) for number in range(length)]
    cells = [play(seed, int(random.integers(5, 16)), said, length) for seed in range(10)]
    return cells + [play(seed, None, said, length) for seed in range(4)]


@pytest.mark.parametrize("name", COUNTERS)
def test_counting_reaches_exactly_one_half(name: str) -> None:
    found = estimate_concordance(draw_set(COUNTERS[name]))
    assert found is not None
    assert (found.mean, found.p) == (0.5, 1.0)


def test_the_p_value_counts_all_arrangements_of_onsets() -> None:
    said = {1: [0.0, 1.0, 1.0, 1.0], 2: [0.0, 0.0, 1.0, 1.0], 3: [0.0, 0.0, 0.0, 1.0], None: [0.0] * 4}
    cells = [play(seed, onset, said[onset]) for seed, onset in enumerate([1, 2, 3, None, None])]
    found = estimate_concordance(cells)
    assert found is not None
    assert (found.mean, found.p) == (1.0, 1 / 60)  # 5! / 2! arrangements, of which only this one is as good


def test_many_arrangements_are_drawn_from_a_fixed_seed() -> None:
    random = np.random.default_rng(2)
    cells = [
        play(seed, onset, (random.random(12) + (0 if onset is None else np.arange(12) >= onset)).tolist(), 12)
        for seed, onset in enumerate([3, 4, 5, 6, 7, 8, 9, 5, 6, 7, None, None, None, None])
    ]
    found = estimate_concordance(cells)
    assert found == estimate_concordance(cells)
    assert found is not None
    assert found.p == 1 / MAX_ARRANGEMENTS


def test_one_trial_that_differs_proves_nothing_beside_twins() -> None:
    """Twins are never paired, so the observed arrangement has the fewest pairs: that must not make it the best one."""
    onsets = [2 + number % 7 for number in range(28)]
    cells = [
        play(seed, onset, [float(seed == 27 and at >= 8) for at in range(10)], 10) for seed, onset in enumerate(onsets)
    ]
    cells += [play(seed, None, [0.0] * 10, 10) for seed in range(12)]
    found = estimate_concordance(cells)
    assert found is not None
    assert found.mean is not None
    assert found.mean > 0.5
    assert found.p is not None
    assert found.p > 1 / 40


def test_after_a_failure_there_is_no_p_value() -> None:
    cells = [play(seed, 1 + seed % 3, [0.0, 1.0, 1.0, 1.0]) for seed in range(6)] + [play(9, None, [0.0] * 4)]
    quitter = msgspec.structs.replace(cells[0], outcome="agent_error", episodes=cells[0].episodes[:2])
    whole, failed = estimate_concordance(cells), estimate_concordance(apply_policy([quitter, *cells[1:]], "count"))
    assert whole is not None
    assert whole.p is not None
    assert failed is not None
    assert failed.mean < whole.mean  # type: ignore[operator]
    assert failed.p is None


def test_p_values_are_corrected_over_agents_but_not_for_controls() -> None:
    cells = [play(seed, 1 + seed % 3, [0.0, 0.0, 1.0, 1.0]) for seed in range(6)] + [play(9, None, [0.0] * 4)]
    others = [msgspec.structs.replace(cell, agent=name) for name in ("bob", "cid") for cell in cells]
    control = [msgspec.structs.replace(cell, agent="counter", control=True) for cell in cells]
    found = {
        group.agent: group.estimates["concordance"] for group in summarise([*cells, *others, *control], BUILT_IN).groups
    }
    p = found["ada"].p
    assert p is not None
    assert found["ada"].p_holm == found["cid"].p_holm == min(1.0, 3 * p)
    assert (found["counter"].p, found["counter"].p_holm) == (p, None)
    assert summarise(cells, BUILT_IN).groups[0].estimates["concordance"].p_holm is None


def test_the_interval_is_newcombes_with_the_mean_numbers_of_trials() -> None:
    cells = [play(seed, 2, [0.0, 0.0, 0.9, 0.1]) for seed in range(4)] + [play(9, None, [0.5] * 4)]
    found = estimate_concordance(cells)
    assert found is not None
    assert (found.low, found.high) == score_limits(0.5, 4, 1)
    assert summarise(cells, BUILT_IN, "conservative").groups[0].estimates["concordance"] == found
    # Repeats are more pairs and no more trials.
    again = [msgspec.structs.replace(cell, repeat=1, id=f"{cell.id} again") for cell in cells]
    assert estimate_concordance(cells + again) == found


def play_steps(seed: int, onset: int | None, counter: Callable[[int], float], turns: Sequence[int]) -> CellRecord:
    """A trial of 200 steps, in instances of these lengths; the change comes with the instance after `onset` steps."""
    starts = list(itertools.accumulate(turns, initial=0))[:-1]
    change = next((start for start in starts if onset is not None and start >= onset), None)
    steps = (Phase("test", steps=onset or 200), *([Phase("test", 0, ("swap",), 200 - onset)] if onset else []))
    trial = make_trial(seed, phases=steps, scenario=("swap",), window=(50, 150))
    normal = [start for start in starts if change is None or start < change]
    cell = make_cell([], [0.5] * len(normal), [0.5] * (len(starts) - len(normal)), [0.1], trial=trial, id=str(seed))
    episodes = tuple(msgspec.structs.replace(episode, turns=n) for episode, n in zip(cell.episodes, turns, strict=True))
    stated = StatedBeliefs(tuple((step, counter(step)) for step in range(1, 201)), change, 200)
    return msgspec.structs.replace(cell, episodes=episodes, stated=stated)


@pytest.mark.parametrize("name", COUNTERS)
def test_counting_steps_reaches_one_half_however_long_instances_are(name: str) -> None:
    long, short = [40] * 5, [10] * 20
    cells = [play_steps(seed, 60 + 10 * seed, COUNTERS[name], long if seed % 2 else short) for seed in range(8)]
    cells += [play_steps(20 + seed, None, COUNTERS[name], [25] * 8) for seed in range(3)]
    found = estimate_concordance(cells)
    assert found is not None
    assert found.mean == 0.5


def test_steps_are_compared_at_twenty_places() -> None:
    course = trace_beliefs(play_steps(0, 95, lambda step: step / 200, [10] * 20))
    assert course.beliefs == pytest.approx([(number + 1) / 20 for number in range(20)])
    assert course.changed.index(True) == 10  # the change came with step 100, so that 110 is the first place after it


def test_without_single_steps_the_ends_of_instances_speak() -> None:
    cell = msgspec.structs.replace(play_steps(0, 95, lambda step: 0.0, [40] * 5), stated=None)
    course = trace_beliefs(cell)
    assert course.beliefs == [0.0] * 3 + [0.1] * 17
    assert course.changed.index(True) == 12  # the change came with step 120


def test_steps_after_a_failure_are_lost() -> None:
    cell = msgspec.structs.replace(play_steps(0, 95, lambda step: 1.0, [10] * 20), outcome="agent_error")
    quit_early = msgspec.structs.replace(
        cell, episodes=cell.episodes[:5], stated=StatedBeliefs(((1, 1.0),), None, 50)
    )  # 50 steps, before the change
    (filled,) = apply_policy([quit_early], "count")
    course = trace_beliefs(filled)
    assert course.failed == [False] * 5 + [True] * 15
    assert course.changed.index(True) == 9  # where the change was to come
    rivals = [play_steps(seed, None, lambda step: 0.0, [10] * 20) for seed in (1, 2)]
    found = estimate_concordance([filled, *rivals])
    assert found is not None
    assert found.mean == 0.0


class TestMissingTrials:
    """While trials are missing, the interval is that of blocks of trials which are compared with no others."""

    @staticmethod
    def plan(changed: int, unchanged: int) -> list[CellRecord]:
        """Trials that change after the first or second of four episodes, and an agent that always notices."""
        cells = [play(seed, 1 + seed % 2, [0.0] * (1 + seed % 2) + [1.0] * (3 - seed % 2)) for seed in range(changed)]
        return cells + [play(seed, None, [0.0] * 4) for seed in range(unchanged)]

    @pytest.mark.parametrize(
        ("changed", "unchanged", "shape"),
        [(5, 2, BlockShape(2, 1, 2.5)), (10, 10, BlockShape(2, 2, 2.0)), (6, 0, BlockShape(2, 0, 1.0)), (1, 1, None)],
    )
    def test_blocks_have_the_share_of_unchanged_trials_that_is_planned(
        self, changed: int, unchanged: int, shape: BlockShape | None
    ) -> None:
        assert choose_shape([cell.trial for cell in self.plan(changed, unchanged)]) == shape

    def test_no_trial_is_in_two_blocks_and_no_seed_twice_in_one(self) -> None:
        trials = [cell.trial for cell in self.plan(20, 8)]
        dealt = list(deal_blocks(trials, BlockShape(2, 1, 2.5)))
        ways = [[block for blocks in own for block in blocks] for own in zip(*dealt, strict=True)]
        assert len(ways) == WAYS
        assert len(ways[0]) >= 7
        for blocks in ways:
            names = [trial.id for block in blocks for trial in block]
            assert len(set(names)) == len(names)
            assert all(len({trial.seed for trial in block}) == len(block) for block in blocks)
        assert ways[1] != ways[0]

    def test_blocks_are_settled_by_the_plan(self) -> None:
        trials = [cell.trial for cell in self.plan(20, 8)]
        shape = BlockShape(2, 1, 2.5)
        assert list(deal_blocks(trials, shape))[:3] == list(deal_blocks([*trials[:15], *trials[20:26]], shape))
        assert list(deal_blocks(trials, shape)) == list(deal_blocks(trials, shape))

    def test_the_mean_number_of_pairs_is_that_of_drawn_changes(self) -> None:
        rng, shape, length = np.random.default_rng(0), BlockShape(2, 1, 2.5), 20
        onsets = np.append(rng.integers(5, 16, (4000, 2)), np.full((4000, 1), length), axis=1)
        changed = onsets[..., None] <= np.arange(length)
        there = np.ones(changed.shape, dtype=bool)
        tables = compare_all(np.zeros(changed.shape), changed, there, there)
        pairs = count_block(tables, [0, 1, 2], shape)[1]
        assert pairs.mean() == pytest.approx(mean_pairs(length, (5, 15), shape), abs=4 * pairs.std() / 4000**0.5)

    def test_a_change_that_comes_later_than_drawn_is_held_against_the_pairs_that_are_there(self) -> None:
        planned = self.plan(20, 8)
        late = [
            msgspec.structs.replace(
                cell,
                episodes=[msgspec.structs.replace(each, novel=each.novel and at > 2) for at, each in enumerate(own)],
            )
            for cell in planned
            for own in [cell.episodes]
        ]
        usual, other = follow_concordance(planned, planned), follow_concordance(late, late)
        assert other.low is not None
        assert other.low < usual.low

    def test_the_interval_narrows_as_trials_come_in(self) -> None:
        planned = self.plan(40, 16)
        found = [follow_concordance([*planned[:n], *planned[40 : 40 + 2 * n // 5]], planned) for n in (10, 20, 40)]
        assert [each.mean for each in found] == [1.0] * 3
        assert [each.high for each in found] == [1.0] * 3
        assert 0.0 < found[0].low < found[1].low < found[2].low < 1.0
        assert found[2].p < found[1].p < found[0].p

    def test_an_agent_that_never_states_a_belief_is_held_to_chance(self) -> None:
        planned = [play(seed, 1, [None] * 4) for seed in range(20)] + [
            play(seed, None, [None] * 4) for seed in range(8)
        ]
        found = follow_concordance(planned, planned)
        assert (found.mean, found.p) == (0.5, 1.0)
        assert found.low < 0.5 < found.high

    def test_repeats_count_as_one_trial(self) -> None:
        once = self.plan(20, 8)
        twice = [msgspec.structs.replace(cell, id=f"{cell.id}{n}", repeat=n) for cell in once for n in range(2)]
        ours, theirs = follow_concordance(once, once), follow_concordance(twice, twice)
        assert (ours.low, ours.high, ours.p) == pytest.approx((theirs.low, theirs.high, theirs.p))

    def test_an_agent_that_failed_an_episode_has_no_p_value(self) -> None:
        planned = self.plan(20, 8)
        failed = msgspec.structs.replace(planned[0], outcome="agent_error", episodes=planned[0].episodes[:3])
        cells = apply_policy([failed, *planned[1:]], "count")
        found = follow_concordance(cells, cells)
        assert found.low is not None
        assert found.p is None

    def test_people_have_no_interval(self) -> None:
        planned = [msgspec.structs.replace(cell, person=f"p{n}") for n, cell in enumerate(self.plan(20, 8))]
        assert follow_concordance(planned, planned).low is None

    def test_a_summary_takes_it(self) -> None:
        planned = self.plan(20, 8)
        cells = [*planned[:-1], msgspec.structs.replace(planned[-1], outcome=None)]
        (group,) = summarise(cells, BUILT_IN).groups
        assert group.estimates["concordance"] == follow_concordance(planned[:-1], planned)
