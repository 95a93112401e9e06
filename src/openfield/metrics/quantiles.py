"""Quantiles of the beta and of Student's t distribution, without SciPy, whose import costs over a second."""

from __future__ import annotations

import math
from functools import lru_cache

MAX_DEGREES = 10**6
"""Above this many degrees of freedom two terms about the normal distribution are exact to 10^-12. The fraction would
take a time that grows with their root, and lose digits."""


@lru_cache(maxsize=4096)
def t_quantile(degrees: float, level: float = 0.95) -> float:
    """Return the half-width, in standard errors, of a two-sided interval at this level."""
    if degrees > MAX_DEGREES:
        from statistics import NormalDist  # 30 ms that few need

        normal = NormalDist().inv_cdf((1 + level) / 2)
        return normal + (normal**3 + normal) / (4 * degrees)
    tail = beta_quantile(1 - level, degrees / 2, 0.5)
    return math.sqrt(degrees * (1 - tail) / tail)


@lru_cache(maxsize=4096)
def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the point below which this share of a beta distribution lies, by bisection to one rounding step."""
    low, high = 0.0, 1.0
    middle = 0.5
    while low < middle < high:
        low, high = (middle, high) if beta_share(middle, a, b) < share else (low, middle)
        middle = (low + high) / 2
    return middle


def beta_share(point: float, a: float, b: float) -> float:
    """Return the share of a beta distribution below a point: the regularised incomplete beta function."""
    if point <= 0 or point >= 1:
        return float(point >= 1)
    if point > (a + 1) / (a + b + 2):  # the fraction converges fast only on this side of the mean
        return 1 - beta_share(1 - point, b, a)
    log_front = a * math.log(point) + b * math.log1p(-point) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / (a * _fraction(point, a, b))


def _fraction(point: float, a: float, b: float) -> float:
    """Return the continued fraction 1 + d1/(1 + d2/(1 + ...)) of DLMF 8.17.22, from its far end inwards."""
    value = 1.0
    for m in range(20 + int(2 * math.sqrt(max(a, b))), 0, -1):  # error below 1e-13 for a, b up to 10,000
        odd = -(a + m) * (a + b + m) * point / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * point / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + even / (1 + odd / value)
    return 1 - (a + b) * point / (a + 1) / value
