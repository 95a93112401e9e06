from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from openfield.metrics.quantiles import beta_quantile, beta_share, t_quantile


@pytest.mark.parametrize("degrees", [1, 1.5, 2, 3, 4, 9, 29, 99, 1000, 20_000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_t_quantile_equals_scipy(degrees: float, level: float) -> None:
    assert t_quantile(degrees, level) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=1e-10)


@pytest.mark.parametrize("degrees", [1e6, 1e6 + 1, 1e7, 99_954_555.0, 1e12, 2.0**63, 2.0**70])
def test_t_quantile_of_any_number_of_degrees_equals_scipy_in_a_moment(degrees: float) -> None:
    expected = stats.norm.ppf(0.975) if degrees > 1e15 else stats.t.ppf(0.975, degrees)
    assert t_quantile(degrees) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("share", [0.025, 0.5, 0.975])
@pytest.mark.parametrize("a", [0.5, 1, 3.5, 30.5, 500.5, 5000.0])
@pytest.mark.parametrize("b", [0.5, 2, 5.5, 70.5, 3000.5])
def test_beta_quantile_equals_scipy(share: float, a: float, b: float) -> None:
    assert beta_quantile(share, a, b) == pytest.approx(stats.beta.ppf(share, a, b), abs=1e-12)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(0.5, 300), st.floats(0.5, 300))
def test_beta_share_equals_scipy(point: float, a: float, b: float) -> None:
    # Not nearer to 1: at 1 - 1e-16 and a = b = 0.5 SciPy is off by 3e-9 from the arcsine law.
    assert beta_share(point, a, b) == pytest.approx(special.betainc(a, b, point), abs=1e-11)


def test_beta_share_at_and_beyond_the_ends() -> None:
    assert [beta_share(point, 2.0, 3.0) for point in (-1.0, 0.0, 1.0, 2.0)] == [0, 0, 1, 1]
    assert 1 - beta_share(1 - 2**-53, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(2**-26.5), rel=1e-6)
