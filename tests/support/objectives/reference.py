"""Slow, literal references with fifty digits, and tables to try them on."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

getcontext().prec = 50
EULER = Decimal("0.57721566490153286060651209008240243104215933593992")
PI = Decimal("3.14159265358979323846264338327950288419716939937511")
MANY = 20_000
"""Beyond this the next terms of Stirling's series are below 10^-38."""
Counts = dict[tuple[int, int, int], int]

small_tables = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6)), st.integers(1, 50), min_size=1, max_size=40
)
"""Tables in which inputs, actions and next inputs meet often."""
wide_ids = st.one_of(st.integers(-5, 300), st.integers(-(2**62), 2**62), st.integers(0, 2**128 - 1))
wide_tables = st.dictionaries(
    st.tuples(wide_ids, st.integers(0, 20), wide_ids),
    st.one_of(st.integers(1, 70_000), st.integers(1, 2**40)),
    min_size=1,
    max_size=30,
)


def sums(table: Counts) -> tuple[Counter[Any], ...]:
    """n(o), n(o,a), n(o,p), n(o,a,p), k(o,a)."""
    found: tuple[Counter[Any], ...] = tuple(Counter() for _ in range(5))
    for (o, a, p), count in table.items():
        for tally, key in zip(found[:4], (o, (o, a), (o, p), (o, a, p)), strict=True):
            tally[key] += count
        found[4][o, a] += 1
    return found


def entropy(table: Counts) -> Decimal:
    counts = sums(table)[0]
    n = Decimal(sum(counts.values()))
    return -sum((c / n * (c / n).ln() for c in map(Decimal, counts.values())), Decimal(0))


def empowerment(table: Counts) -> Decimal:
    """H(A | O) - H(A | O, P), from the definition."""
    o, oa, op, oap, _ = sums(table)
    n = Decimal(sum(o.values()))
    before = -sum((c / n * (Decimal(c) / o[key[0]]).ln() for key, c in oa.items()), Decimal(0))
    after = -sum((c / n * (Decimal(c) / op[key[0], key[2]]).ln() for key, c in oap.items()), Decimal(0))
    return before - after


def digamma(x: int) -> Decimal:
    if x > MANY:
        y = 1 / Decimal(x)
        return Decimal(x).ln() - y / 2 - y**2 / 12 + y**4 / 120 - y**6 / 252 + y**8 / 240
    return -EULER + sum((1 / Decimal(i) for i in range(1, x)), Decimal(0))


def log_gamma(x: int) -> Decimal:
    if x > MANY:
        y = 1 / Decimal(x)
        series = y / 12 - y**3 / 360 + y**5 / 1260 - y**7 / 1680
        return (x - Decimal("0.5")) * Decimal(x).ln() - x + (2 * PI).ln() / 2 + series
    return sum((Decimal(i).ln() for i in range(2, x)), Decimal(0))


def dirichlet_entropy(alphas: list[int], size: int) -> Decimal:
    """Of a Dirichlet distribution over `size` symbols; those not listed have alpha 1."""
    total = sum(alphas) + size - len(alphas)
    log_beta = sum((log_gamma(a) for a in alphas), Decimal(0)) - log_gamma(total)
    return log_beta + (total - size) * digamma(total) - sum(((a - 1) * digamma(a) for a in alphas), Decimal(0))


def gain(table: Counts, size: int, seen: bool = True) -> Decimal:
    """Entropy of the prior less that of the posterior, row by row."""
    rows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (o, a, _), count in table.items():
        rows[o, a].append(2 if seen else 1 + count)
    prior = dirichlet_entropy([], size)
    return sum((prior - dirichlet_entropy(alphas, size) for alphas in rows.values()), Decimal(0))


def root_counts(table: Counts) -> Decimal:
    pairs = sums(table)[1]
    return sum((Decimal(c).sqrt() for c in pairs.values()), Decimal(0)) / sum(table.values())


def log_counts(table: Counts) -> Decimal:
    pairs = sums(table)[1]
    return sum((Decimal(c + 1).ln() for c in pairs.values()), Decimal(0)) / sum(table.values())


def dump(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path
