"""Centres that are drawn see a record only as its clip to the ball of their law, which is what their noise is for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import a_tangent, exhaustive

from jaxgeodp import SPD, Euclidean, GaussianDP, Hyperbolic, PureDP
from jaxgeodp.locating import centers
from jaxgeodp.locating.centers import drawn_center
from jaxgeodp.locating.parts import whole

N, RADIUS = 5, 0.8
# A clip to a ball that is so much wider than that of the law is a mistake.
PLANTED = 1.07 * RADIUS
# So much that there is hardly any noise, 1e-6 of a sensitivity.
PLENTY = 1e6
CASES = [
    (Euclidean(2), PureDP(PLENTY)),
    (Hyperbolic(2), GaussianDP(PLENTY)),
    *exhaustive((Hyperbolic(2), PureDP(PLENTY)), (SPD(2), PureDP(PLENTY)), (SPD(2), GaussianDP(PLENTY))),
]


@pytest.fixture(params=["released", *exhaustive("simulated")])
def centre_of(request, monkeypatch):
    """Of a manifold, a promise, a centre, and a radius, one of `RADIUS` and `PLANTED`: what draws from records."""

    def made(space, promise, center):
        stage = drawn_center(whole(space), promise, [RADIUS, PLANTED], N)
        if request.param == "released":
            key = centers.system_key()
            monkeypatch.setattr(centers, "system_key", lambda: key)
            find = stage.finder("test", jax.ShapeDtypeStruct((N, *space.shape), np.float64))
            return lambda radius, records: np.asarray(find(np.asarray(center), radius, records).center)
        simulated = jax.jit(stage.simulated)
        return lambda radius, records: np.asarray(simulated(jax.random.key(7), center, jnp.asarray(radius), records))

    return made


@pytest.mark.parametrize(("space", "promise"), CASES, ids=str)
def test_a_record_beyond_the_ball_acts_as_its_clip(space, promise, centre_of):
    """Wherever it is beyond; and no record moves a centre by more than 2R/n, for which its noise is."""
    with jax.enable_x64(True):
        origin = jnp.asarray(space.origin)
        center = space.exp(origin, a_tangent(space, origin, 1, 0.4))
        # On a geodesic through the centre all is as on a line: one record moves the mean by its share, and not by less.
        along = jax.jit(functools.partial(_along, space))
        unit = a_tangent(space, center, 2, 1.0)
        others = [along(center, unit, share * RADIUS) for share in (-0.4, 0.1, 0.5, 0.9)]

        def records(share):
            one = along(center, unit, share * RADIUS) if np.isfinite(share) else np.full(space.shape, np.nan)
            return np.asarray(jnp.stack([*others[:2], one, *others[2:]]))

        find = centre_of(space, promise, center)

        def draws(radius):
            return {share: find(radius, records(share)) for share in (0.97, 1.0, 1.03, 1.2, 6.0, -6.0)}

        def apart(first, second):
            return float(space.dist(jnp.asarray(first), jnp.asarray(second)))

        found = draws(RADIUS)
        for beyond in (1.03, 1.2, 6.0):
            assert apart(found[1.0], found[beyond]) < 1e-8 * RADIUS / N, beyond
        assert apart(found[1.0], found[0.97]) > 0.02 * RADIUS / N, "inside, it counts where it is"
        assert apart(find(RADIUS, records(np.nan)), find(RADIUS, records(0.0))) < 1e-8 * RADIUS / N
        moved = apart(found[6.0], found[-6.0]) / (2.0 * RADIUS / N)
        assert 0.999 < moved < 1.0 + 1e-5
        planted = draws(PLANTED)
        assert apart(planted[1.0], planted[1.03]) > 0.02 * RADIUS / N
        assert apart(planted[6.0], planted[-6.0]) / (2.0 * RADIUS / N) > 1.06


def _along(space, center, unit, length):
    return space.project(space.exp(center, length * unit))
