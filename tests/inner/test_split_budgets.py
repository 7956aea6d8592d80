"""Budgets that are split between a count and a release: the parts fit into the whole."""

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgeodp.privacy import GaussianDP, PureDP, compose
from jaxgeodp.privacy.decimals import written
from jaxgeodp.releases.add_remove import _part, _split


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 50.0), st.integers(1, 2))
def test_the_parts_are_never_more_than_the_whole(strength, times):
    own = _part(PureDP(strength), times)
    scale, left = _split(own)
    rest = left.epsilon
    assert times * (Fraction(written(rest)) + Fraction(1, scale)) <= Fraction(written(strength))
    own = _part(GaussianDP(strength), times)
    scale, left = _split(own)
    rest = left.mu
    together = compose([GaussianDP(rest), PureDP(math.nextafter(1 / scale, 1.0)).to_gdp()] * times)
    assert together.mu <= strength * (1 + 1e-12)
    assert rest > 0.9 * own.mu
