"""The built-in metrics give the numbers they declare, within their bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openfield.metrics import BUILT_IN
from openfield.metrics.stats import two_sided
from support.records import make_cell

performances = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8)


beliefs = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=24)


@given(performances, performances, performances, beliefs)
def test_numbers_stay_in_their_bounds(
    training: list[float | None], before: list[float | None], after: list[float | None], said: list[float | None]
) -> None:
    total = len(training) + len(before) + len(after)
    cell = make_cell(training, before, after, said[:total])
    for metric in BUILT_IN:
        found = metric.measure(cell)
        numbers = [number for number in metric.numbers if not number.pooled]
        assert set(found) == {number.name for number in numbers}
        for number in numbers:
            value, bounds = found[number.name], two_sided(number.bounds) or (0, total + 1)
            assert value is None or bounds[0] - 1e-12 <= value <= bounds[1] + 1e-12
