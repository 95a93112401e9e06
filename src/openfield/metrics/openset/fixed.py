"""The programme's measures M1 to M6 over many tests.

Facts of tests -> numbers. A number that cannot be computed is None.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.metrics.openset.compat import Floats, first_of
from openfield.metrics.performance import ratio
from openfield.metrics.stats import FROM_ZERO, Estimate, estimate_count, estimate_mean, estimate_rate

LAST_SAMPLES = 100
"""The number of samples at the end of a test that its asymptotic performance is measured on."""


class TestFacts(msgspec.Struct, frozen=True):
    """The facts of one test that the programme's measures need."""

    __test__ = False
    length: int
    onset: int | None
    """The first novel sample, counted from 0."""
    detection: int | None
    """The first sample at which a change was declared, counted from 0."""
    last: float | None = None
    """The agent's performance over the last samples of the test, from the onset on, of those it answered."""
    after: float | None = None
    """The same over all samples from the onset on."""
    baseline_before: float | None = None
    baseline_last: float | None = None
    baseline_after: float | None = None

    @property
    def missed(self) -> int | None:
        """Samples from the onset until the change was declared; None where it never was, or too early."""
        if self.onset is None or self.detection is None or self.detection < self.onset:
            return None
        return self.detection - self.onset


def make_facts(
    novel: NDArray[np.bool_], declared: NDArray[np.bool_], hits: Floats | None, baseline: Floats | None = None
) -> TestFacts:
    """Make the facts of a test from the truth and the answers for each sample.

    M3 to M6 are not defined without `hits` and `baseline`.

    Args:
        novel: Which samples are novel.
        declared: At which samples the agent said that the world had changed.
        hits: Which samples the agent got right; NaN for those it did not answer.
        baseline: Which samples the baseline got right.
    """
    onset = first_of(novel)
    after, last = _answered_after(hits, onset)
    base_after, base_last = _answered_after(baseline, onset)
    return TestFacts(
        length=len(novel),
        onset=onset,
        detection=first_of(declared),
        last=mean_hits(last),
        after=mean_hits(after),
        baseline_before=mean_hits(_answered(baseline[:onset])) if baseline is not None and onset else None,
        baseline_last=mean_hits(base_last),
        baseline_after=mean_hits(base_after),
    )


def _answered_after(hits: Floats | None, onset: int | None) -> tuple[Floats, Floats]:
    """Return the answered hits from the onset on, and those among the last samples of the test."""
    after = hits[onset:] if hits is not None and onset is not None else np.zeros(0)
    return _answered(after), _answered(after[-LAST_SAMPLES:])


def _answered(hits: Floats) -> Floats:
    return hits[~np.isnan(hits)]


def program_measures(tests: Iterable[TestFacts], given: bool = False) -> dict[str, Estimate]:
    """Estimate M1 to M6 over tests.

    M1: samples missed until a correct detection. M2: share of tests correctly detected. M2.1: share with a declaration
    before the onset. M3: asymptotic performance over the baseline's before the onset, called M4 if detection was given.
    M5: the agent's share of agent and baseline after the onset. M6: the agent's performance over the baseline's on the
    last samples. M3 to M6 are not defined without a baseline.
    """
    known = list(tests)
    novel = [test for test in known if test.onset is not None]
    quotient = functools.partial(estimate_mean, bounds=FROM_ZERO)
    return {
        "M1": estimate_count(_present(test.missed for test in novel)),
        "M2": estimate_rate([float(test.missed is not None) for test in novel]),
        "M2.1": estimate_rate([float(test.detection is not None and test.missed is None) for test in novel]),
        "M4" if given else "M3": quotient(_present(ratio(test.last, test.baseline_before) for test in novel)),
        "M5": estimate_mean(_present(map(_share_of_both, novel))),
        "M6": quotient(_present(ratio(test.last, test.baseline_last) for test in novel)),
    }


def _share_of_both(test: TestFacts) -> float | None:
    both = None if test.after is None or test.baseline_after is None else test.after + test.baseline_after
    return ratio(test.after, both)


def _present(values: Iterable[float | None]) -> Sequence[float]:
    return [float(value) for value in values if value is not None]


def mean_hits(hits: NDArray[Any]) -> float | None:
    """Return the share of hits, or None if there are no samples."""
    return float(hits.mean()) if len(hits) else None
