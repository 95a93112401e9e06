"""The measures are the published ones: pass and fail as the papers count them give the numbers the papers print."""

import pytest

from openfield.domains.birds.measures import published
from records import make_cell

TRIALS = 1000
HUMANS = {
    "objects": (0.840, 0.902, 0.918, 1.000, 1.03),
    "agents": (0.744, 0.704, 0.833, 0.950, 1.05),
    "actions": (0.696, 0.604, 0.767, 0.900, 1.19),
    "interactions": (0.809, 0.534, 0.678, 0.949, 1.14),
    "relations": (0.938, 0.919, 0.958, 1.000, 1.02),
    "environments": (0.862, 0.838, 0.900, 0.967, 1.00),
    "goals": (0.683, 0.533, 0.754, 0.918, 1.13),
    "events": (0.893, 0.642, 0.750, 0.967, 1.02),
    "all": (0.808, 0.709, 0.820, 0.956, 1.07),
}
"""People's normal, novel and asymptotic pass rates, correct detections, and delay counted from 1."""
WRONG = 0.033


def people(normal, novel, asymptotic, correct, delay):
    """Trials of one normal and three novel levels with exactly these rates."""
    late = round(asymptotic * TRIALS)
    early = round(novel * 3 * TRIALS) - late
    slow, found = round((delay - 1) * correct * TRIALS), round(correct * TRIALS)
    wrong = min(round(WRONG * TRIALS), TRIALS - found)
    for number in range(TRIALS):
        after = [number < early - TRIALS, number < early, number < late]
        if number < found:
            beliefs = [0.0, 0.0 if number < slow else 1.0, 1.0, 1.0]
        else:
            beliefs = [1.0 if number < found + wrong else 0.0, 0.0, 0.0, 0.0]
        yield make_cell([], [float(number < round(normal * TRIALS))], [float(passed) for passed in after], beliefs)


@pytest.mark.parametrize("novelty", HUMANS)
def test_the_table_of_people(novelty):
    normal, novel, asymptotic, correct, delay = HUMANS[novelty]
    trials, cdt, wdt, late, *_, before, after, end, _ = published(list(people(*HUMANS[novelty])))
    assert trials == TRIALS
    assert (before, after, end) == pytest.approx((normal, novel, asymptotic), abs=0.0005)
    assert cdt == pytest.approx(100 * correct, abs=0.05)
    assert wdt == pytest.approx(min(100 * WRONG, 100 - 100 * correct), abs=0.06)
    assert late == pytest.approx(delay, abs=0.001)
