"""Correlations between objectives, reward and human similarity over agents and environments, with intervals.

Between `study` and its page. Few agents make wide intervals; they are always given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from openfield.objectives.histograms import Array

Kind = Literal["pearson", "spearman"]
Pooling = Literal["environment", "z-scored", "mean"]

NORMAL_QUANTILE = 1.959963984540054
DRAWS = 1000
FEWEST = 4
"""Points for which Fisher's interval exists."""


class Observation(msgspec.Struct, frozen=True):
    """One agent in one environment, seen through two numbers."""

    environment: str
    agent: str
    x: float
    y: float


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    """A correlation with its intervals; None where it is not defined."""

    x: str
    y: str
    kind: Kind
    pooling: Pooling
    environment: str | None = None
    """Which one, if it is that of a single environment."""
    n: int
    r: float | None
    fisher: tuple[float, float] | None = None
    """95 % interval after Fisher; for ranks a little too narrow."""
    bootstrap: tuple[float, float] | None = None
    """95 % interval from agents drawn anew within each environment."""
    p: float | None = None
    """Share of permutations within environments that correlate at least as strongly."""
    without_one: tuple[float, float] | None = None
    """Lowest and highest value when one agent is left out."""
    note: str = ""


def correlate(
    x: str, y: str, points: Sequence[Observation], *, kind: Kind = "pearson", draws: int = DRAWS, seed: int = 0
) -> list[Correlation]:
    """One correlation per environment, one pooled after z-scoring within environments, and the mean of the former."""
    names = sorted({point.environment for point in points})
    inside = {name: [point for point in points if point.environment == name] for name in names}
    found = [_describe(inside[name], x, y, kind, "environment", draws, seed, name) for name in names]
    return [*found, *(_describe(points, x, y, kind, pooling, draws, seed) for pooling in ("z-scored", "mean"))]


def pearson(x: Array, y: Array) -> float | None:
    """Pearson's r; None where a side does not vary or there are fewer than three points."""
    if len(x) < 3:
        return None
    a, b = x - x.mean(), y - y.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if scale <= 1e-300 or np.ptp(x) <= 1e-12 * abs(x).max() or np.ptp(y) <= 1e-12 * abs(y).max():
        return None
    return max(-1.0, min(1.0, float(a @ b) / scale))


def spearman(x: Array, y: Array) -> float | None:
    """Spearman's rho: Pearson's r of the ranks, ties sharing theirs."""
    return pearson(ranks(x), ranks(y))


def ranks(values: Array) -> Array:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(times)
    return (ends - (times - 1) / 2)[place]


def fisher_interval(r: float, n: int) -> tuple[float, float] | None:
    """The 95 % interval of a correlation over n points."""
    if n < FEWEST or abs(r) >= 1:
        return None
    middle, width = math.atanh(r), NORMAL_QUANTILE / math.sqrt(n - 3)
    return math.tanh(middle - width), math.tanh(middle + width)


_Data = list[tuple[Array, Array]]
"""Both sides, environment by environment."""


def _describe(  # noqa: PLR0913  (a private step of `correlate`, with its settings)
    points: Sequence[Observation],
    x: str,
    y: str,
    kind: Kind,
    pooling: Pooling,
    draws: int,
    seed: int,
    environment: str | None = None,
) -> Correlation:
    data, measure = _by_environment(points), _measure(kind, pooling)
    r = measure(data)
    if r is None:
        note = "fewer than three points, or a side that does not vary"
        return Correlation(
            x=x, y=y, kind=kind, pooling=pooling, environment=environment, n=len(points), r=None, note=note
        )
    random = np.random.default_rng(seed)
    return Correlation(
        x=x,
        y=y,
        kind=kind,
        pooling=pooling,
        environment=environment,
        n=len(points),
        r=r,
        fisher=fisher_interval(r, len(points)) if pooling != "mean" else None,
        bootstrap=_bootstrap(data, measure, random, draws),
        p=_permute(data, measure, r, random, draws),
        without_one=_leave_out(points, measure),
    )


def _by_environment(points: Sequence[Observation]) -> _Data:
    names = sorted({point.environment for point in points})
    groups = [[point for point in points if point.environment == name] for name in names]
    return [(np.array([point.x for point in group]), np.array([point.y for point in group])) for group in groups]


def _measure(kind: Kind, pooling: Pooling) -> Callable[[_Data], float | None]:
    single = pearson if kind == "pearson" else spearman

    def mean(data: _Data) -> float | None:
        found = [r for r in (single(x, y) for x, y in data) if r is not None]
        return math.fsum(found) / len(found) if found else None

    def pooled(data: _Data) -> float | None:
        scaled = [(_standardise(x), _standardise(y)) for x, y in data]
        kept = [pair for pair in scaled if pair[0] is not None and pair[1] is not None]
        if not kept:
            return None
        return single(*(np.concatenate(side) for side in zip(*kept, strict=True)))

    return mean if pooling == "mean" else pooled


def _standardise(values: Array) -> Array | None:
    """Z-scores; None where an environment has too few agents or they do not differ."""
    spread = float(values.std()) if len(values) > 1 else 0.0
    return (values - values.mean()) / spread if spread > 1e-12 * max(1e-300, float(abs(values).max())) else None


def _bootstrap(
    data: _Data, measure: Callable[[_Data], float | None], random: np.random.Generator, draws: int
) -> tuple[float, float] | None:
    found = []
    for _ in range(draws):
        chosen = [random.integers(0, len(x), len(x)) for x, _ in data]
        r = measure([(x[at], y[at]) for (x, y), at in zip(data, chosen, strict=True)])
        if r is not None:
            found.append(r)
    if len(found) < draws / 2:
        return None
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def _permute(
    data: _Data, measure: Callable[[_Data], float | None], r: float, random: np.random.Generator, draws: int
) -> float:
    stronger = 0
    for _ in range(draws):
        other = measure([(x, random.permutation(y)) for x, y in data])
        stronger += other is not None and abs(other) >= abs(r) - 1e-12
    return (stronger + 1) / (draws + 1)


def _leave_out(points: Sequence[Observation], measure: Callable[[_Data], float | None]) -> tuple[float, float] | None:
    agents = sorted({point.agent for point in points})
    found = [measure(_by_environment([point for point in points if point.agent != agent])) for agent in agents]
    known = [r for r in found if r is not None]
    return (min(known), max(known)) if known else None
