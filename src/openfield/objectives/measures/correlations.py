"""Correlations between objectives, reward and human similarity over agents and environments, with intervals.

Used by `study`. Few agents make wide intervals, so the intervals are always given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from openfield.objectives.tables.histograms import Array

Kind = Literal["pearson", "spearman"]
Pooling = Literal["environment", "z-scored", "mean"]

NORMAL_QUANTILE = 1.959963984540054
DRAWS = 1000
MIN_POINTS = 4
"""Fisher's interval needs this many points."""


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
    """The environment, if the correlation is within a single one."""
    n: int
    r: float | None = None
    fisher: tuple[float, float] | None = None
    """95 % interval after Fisher; for ranks a little too narrow."""
    bootstrap: tuple[float, float] | None = None
    """95 % interval from agents resampled within each environment."""
    p: float | None = None
    """Share of permutations within environments that correlate at least as strongly."""
    without_one: tuple[float, float] | None = None
    """Lowest and highest value when one agent is left out."""
    note: str = ""


def correlate(
    x: str, y: str, points: Sequence[Observation], kind: Kind = "pearson", *, draws: int = DRAWS
) -> list[Correlation]:
    """Correlate two numbers, named x and y, within each environment, and over all environments in two ways.

    The first way pools all points after z-scoring them within their environment. The second takes the mean of the
    correlations of the environments.
    """
    pooled = Correlation(x=x, y=y, kind=kind, pooling="z-scored", n=len(points))
    found = []
    for name in sorted({point.environment for point in points}):
        inside = [point for point in points if point.environment == name]
        plain = replace(pooled, pooling="environment", environment=name, n=len(inside))
        found.append(_describe(plain, inside, draws))
    return [*found, *(_describe(plain, points, draws) for plain in (pooled, replace(pooled, pooling="mean")))]


def pearson(x: Array, y: Array) -> Array:
    """Compute Pearson's r along the last axis; NaN where a side does not vary or there are fewer than three points."""
    a, b = _centred(x), _centred(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        r: Array = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    clipped: Array = np.clip(r, -1.0, 1.0)
    return clipped if x.shape[-1] >= 3 else np.full(x.shape[:-1], np.nan)


def spearman(x: Array, y: Array) -> Array:
    """Compute Spearman's rho along the last axis: Pearson's r of the ranks, where ties share theirs."""
    return pearson(ranks(x), ranks(y))


def ranks(values: Array) -> Array:
    """Rank values from 1 along the last axis; equal values share the mean of their ranks."""
    one, other = values[..., :, None], values[..., None, :]
    shared: Array = (one > other).sum(-1) + ((one == other).sum(-1) + 1) / 2
    return shared


def fisher_interval(r: float, n: int) -> tuple[float, float] | None:
    """Return Fisher's 95 % interval of a correlation over n points; None if there are too few or |r| is 1."""
    if n < MIN_POINTS or abs(r) >= 1:
        return None
    middle, width = math.atanh(r), NORMAL_QUANTILE / math.sqrt(n - 3)
    return math.tanh(middle - width), math.tanh(middle + width)


_Data = list[tuple[Array, Array]]
"""Both sides of each environment; the last axis runs over agents, the axes before it over draws."""
_Measure = Callable[[_Data], Array]


def _describe(plain: Correlation, points: Sequence[Observation], draws: int) -> Correlation:
    data, measure = _by_environment(points), _measure(plain.kind, plain.pooling)
    r = float(measure(data)) if points else math.nan
    if math.isnan(r):
        return replace(plain, note="fewer than three points, or a side that does not vary")
    random = np.random.default_rng(0)
    return replace(
        plain,
        r=r,
        fisher=fisher_interval(r, len(points)) if plain.pooling != "mean" else None,
        bootstrap=_bootstrap(data, measure, random, draws),
        p=_permute(data, measure, r, random, draws),
        without_one=_leave_out(points, measure),
    )


def _by_environment(points: Sequence[Observation]) -> _Data:
    names = sorted({point.environment for point in points})
    groups = [[point for point in points if point.environment == name] for name in names]
    return [(np.array([point.x for point in group]), np.array([point.y for point in group])) for group in groups]


def _measure(kind: Kind, pooling: Pooling) -> _Measure:
    single = pearson if kind == "pearson" else spearman

    def mean(data: _Data) -> Array:
        found = np.stack([single(x, y) for x, y in data])
        known = ~np.isnan(found)
        with np.errstate(invalid="ignore"):
            average: Array = np.where(known, found, 0).sum(0) / known.sum(0)
        return average

    def pooled(data: _Data) -> Array:
        sides = [np.concatenate([_standardised(side) for side in part], axis=-1) for part in zip(*data, strict=True)]
        return single(sides[0], sides[1])

    return mean if pooling == "mean" else pooled


def _centred(values: Array) -> Array:
    """Subtract the mean; differences that are only rounding become 0."""
    centred = values - values.mean(-1, keepdims=True)
    noise = 1e-12 * np.abs(values).max(-1, keepdims=True, initial=0)
    return np.where(np.abs(centred) > noise, centred, 0.0)


def _standardised(values: Array) -> Array:
    """Return z-scores along the last axis; 0 where the agents of an environment do not differ."""
    centred = _centred(values)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True))
    scores: Array = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return scores


def _bootstrap(data: _Data, measure: _Measure, random: np.random.Generator, draws: int) -> tuple[float, float] | None:
    chosen = [random.integers(0, len(x), (draws, len(x))) for x, _ in data]
    found = measure([(x[at], y[at]) for (x, y), at in zip(data, chosen, strict=True)])
    found = found[~np.isnan(found)]
    if len(found) < draws / 2:
        return None
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def _permute(data: _Data, measure: _Measure, r: float, random: np.random.Generator, draws: int) -> float:
    shuffled = [(np.tile(x, (draws, 1)), random.permuted(np.tile(y, (draws, 1)), axis=1)) for x, y in data]
    stronger = int((np.abs(measure(shuffled)) >= abs(r) - 1e-12).sum())
    return (stronger + 1) / (draws + 1)


def _leave_out(points: Sequence[Observation], measure: _Measure) -> tuple[float, float] | None:
    agents = sorted({point.agent for point in points})
    rests = [[point for point in points if point.agent != agent] for agent in agents]
    found = [float(measure(_by_environment(rest))) for rest in rests if rest]
    known = [r for r in found if not math.isnan(r)]
    return (min(known), max(known)) if known else None
