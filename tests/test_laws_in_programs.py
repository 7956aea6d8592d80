"""A law is the argument of programs: one serves all privacy parameters, radii and centres, for every mechanism."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import cap, exhaustive

from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    LocatedMechanism,
    MetricLaplace,
    RiemannianGaussian,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.releases.vector import VectorLaw
from jaxgeodp.statistics import SmoothedMedian

N, SPHERE = 200, Sphere(2)
CENTERS = ([0.0, 0.0, 1.0], [0.6, 0.0, 0.8], [0.0, -0.6, 0.8])


def balls(radius=0.4):
    return [GeodesicBall(SPHERE, center, radius - 0.03 * k) for k, center in enumerate(CENTERS)]


def laws_of(make, strengths=(1.0, 2.0, 1.5)):
    return [make(ball, strength).law(N) for ball, strength in zip(balls(), strengths, strict=True)]


LAWS = {
    "LaplaceMechanism": lambda: laws_of(LaplaceMechanism),
    "KNGMechanism": lambda: laws_of(KNGMechanism),
    "WrappedGaussian": lambda: laws_of(WrappedGaussian),
    "TangentLaplace": lambda: laws_of(TangentLaplace),
    "GibbsMechanism": lambda: laws_of(GibbsMechanism),
    "AdaptiveMechanism, mu": lambda: laws_of(lambda ball, mu: AdaptiveMechanism(ball, mu=mu)),
    "LocatedMechanism": lambda: [LocatedMechanism(SPHERE, epsilon=own).law(N) for own in (8.0, 9.0, 12.0)],
}
MORE = {
    "KNGMechanism of a median": lambda: laws_of(lambda ball, own: KNGMechanism(ball, own, FrechetMedian())),
    "GibbsMechanism of a median": lambda: laws_of(lambda ball, own: GibbsMechanism(ball, own, SmoothedMedian(0.2))),
    "WrappedLaplace": lambda: laws_of(WrappedLaplace),
    "TangentGaussian": lambda: laws_of(TangentGaussian),
    "RiemannianGaussian": lambda: laws_of(RiemannianGaussian),
    "EuclideanLaplace": lambda: laws_of(EuclideanLaplace),
    "AdaptiveMechanism, epsilon": lambda: laws_of(
        lambda ball, own: AdaptiveMechanism(ball, epsilon=own), (20.0, 10.0, 15.0)
    ),
    "LocatedMechanism, tangent": lambda: [
        LocatedMechanism(SPHERE, "tangent", epsilon=own).law(N) for own in (8.0, 9.0, 12.0)
    ],
}


# They count records, or look at them one by one.
PER_N = ("Adaptive", "Located", "median")


@pytest.mark.parametrize("name", [*LAWS, *exhaustive(*MORE)])
def test_one_program_serves_all_laws_of_a_mechanism(name):
    laws, data = (LAWS | MORE)[name](), cap(SPHERE, jnp.asarray(CENTERS[0]), 0.2, N, 0)
    traces = []

    @jax.jit
    def replicates(law, keys, data):
        traces.append(law)
        return jax.vmap(lambda key: law.simulate(key, data, 1)[0])(keys)

    keys = jax.random.split(jax.random.key(0), 3)
    found = [replicates(law, keys, data) for law in laws]
    assert len(traces) == 1
    one = jnp.stack([laws[1].simulate(key, data, 1)[0] for key in keys])
    np.testing.assert_allclose(found[1], one, atol=1e-6)
    assert not np.allclose(found[0], found[1], atol=1e-6)
    together = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *laws)
    stacked = jax.vmap(lambda law: law.simulate(keys[0], data, 1)[0])(together)
    np.testing.assert_allclose(stacked, jnp.stack([values[0] for values in found]), atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        *(key for key in LAWS if not any(own in key for own in PER_N)),
        *exhaustive(*(key for key in MORE if not any(own in key for own in PER_N))),
    ],
)
def test_one_program_serves_all_n_up_to_the_rows_that_laws_are_padded_to(name):
    (law, *_), data = (LAWS | MORE)[name](), cap(SPHERE, jnp.asarray(CENTERS[0]), 0.2, N + 40, 0)
    unpadded, other = data[:N], data.at[N:].set(jnp.nan)
    traces = []

    @jax.jit
    def draws(law, key, data):
        traces.append(law)
        return law.simulate(key, data, 4)

    fewer = dataclasses.replace(law, rows=150)  # as a law of 150 records that has the same scale
    found = [draws(own.padded(N + 40), jax.random.key(0), data) for own in (law, fewer)]
    assert len(traces) == 1
    assert np.all(np.isfinite(found))
    if isinstance(law, VectorLaw):  # noise does not depend on how many rows there are
        np.testing.assert_allclose(found[0], law.simulate(jax.random.key(0), unpadded, 4), atol=1e-9)
        np.testing.assert_allclose(found[1], fewer.simulate(jax.random.key(0), data[:150], 4), atol=1e-9)
        np.testing.assert_allclose(found[0], draws(law.padded(N + 40), jax.random.key(0), other), atol=1e-9)
        assert law.padded(N + 40).simulate(jax.random.key(0), jnp.asarray(data, jnp.float32), 2).dtype == jnp.float32
        return

    # So is the law of draws, whatever fills the rows: distances from the public centre.
    def lengths(draws):
        return np.asarray(jax.vmap(lambda x: SPHERE.dist(jnp.asarray(CENTERS[0]), x))(draws))

    many = [
        lengths(law.padded(N + 40).simulate(jax.random.key(1), other, 2000)),
        lengths(law.simulate(jax.random.key(2), unpadded, 2000)),
    ]
    assert stats.ks_2samp(*many).pvalue > 1e-6
    single = law.padded(N + 40).simulate(jax.random.key(0), jnp.asarray(data, jnp.float32), 2)
    assert single.dtype == jnp.float32
    # The density is that of the n records, whatever the others are.
    places = jnp.stack([jnp.asarray(CENTERS[0]), data[0], data[5]])
    for rest in (data, other):
        padded = jax.vmap(lambda x, rest=rest: law.padded(N + 40).log_density(x, rest))(places)
        np.testing.assert_allclose(padded, jax.vmap(lambda x: law.log_density(x, unpadded))(places), rtol=1e-9)
    assert not np.allclose(jax.vmap(lambda x: fewer.padded(N + 40).log_density(x, data))(places), padded, rtol=1e-9)


@pytest.mark.parametrize("name", [*LAWS])
def test_a_law_refuses_records_of_another_number_and_says_so(name):
    (law, *_), data = LAWS[name](), cap(SPHERE, jnp.asarray(CENTERS[0]), 0.2, N - 1, 0)
    for call in (law.simulate, jax.jit(lambda key, data, num: law.simulate(key, data, num), static_argnums=2)):
        with pytest.raises(
            InputError, match=rf"arrays of {N} records, got {N - 1}; create one with mechanism.law\({N - 1}\)"
        ):
            call(jax.random.key(0), data, 1)
    with pytest.raises(InputError, match=f"this law is for arrays of {N} records"):
        jax.jit(lambda law, key, data: law.simulate(key, data, 1))(law, jax.random.key(0), data)


@pytest.mark.parametrize("name", [*LAWS, *exhaustive(*MORE)])
def test_draws_have_the_derivatives_of_noise_that_is_added_or_refuse(name):
    law, data, key = (LAWS | MORE)[name]()[0], cap(SPHERE, jnp.asarray(CENTERS[0]), 0.2, N, 0), jax.random.key(0)
    moves = jnp.asarray(np.random.default_rng(0).normal(size=data.shape))

    def drawn(step):
        moved = jax.vmap(lambda x, v: SPHERE.exp(x, step * SPHERE.to_tangent(x, v)))(data, moves)
        return law.simulate(key, moved, 1)[0]

    if not isinstance(law, VectorLaw):
        for derivative in (jax.jacfwd, jax.jacrev):
            with pytest.raises(InputError, match="simulate: draws by rejection or in steps have no derivatives"):
                jax.jit(derivative(drawn))(0.0)
        return
    ahead, behind = (drawn(sign * 1e-5) for sign in (1, -1))
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.jit(derivative(drawn))(0.0), (ahead - behind) / 2e-5, atol=1e-7)


def test_laws_that_cannot_be_padded_say_why():
    search, law = LocatedMechanism(SPHERE, epsilon=8.0).law(N), laws_of(LaplaceMechanism)[0]
    median = MORE["KNGMechanism of a median"]()[0]
    one = MetricLaplace(SPHERE, 1.0).law(1)
    for own in (search, LAWS["AdaptiveMechanism, mu"]()[0], median, one):
        with pytest.raises(InputError, match="compile this one for each n"):
            own.padded(300)
    with pytest.raises(InputError, match="padded already"):
        law.padded(N).padded(300)
    with pytest.raises(InputError, match="pad them to 300 rows"):
        law.padded(np.int64(300)).simulate(jax.random.key(0), jnp.zeros((200, 3)), 1)
    for rows in (N - 1, 300.0, True):
        with pytest.raises(InputError, match="at least n = 200"):
            law.padded(rows)


def test_laws_of_curves_are_arguments_too():
    traces, curves = [], jnp.zeros((6, 1, 16))

    @jax.jit
    def released(law, key):
        traces.append(law)
        return law.simulate(key, curves, 1)[0]

    for mu in (1.0, 2.0):
        mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, mu, np.zeros((1, 16)))
        assert np.all(np.isfinite(released(mechanism.law(6, (1, 16)), jax.random.key(0))))
    assert len(traces) == 1


def test_searches_without_end_are_arguments_too():
    traces, plane = [], Euclidean(2)

    @jax.jit
    def released(law, key, data):
        traces.append(law)
        return law.simulate(key, data, 1)[0]

    data = cap(plane, jnp.zeros(2), 1.0, 900, 0)
    for budget, domain in ((1.0, 10.0), (2.0, 30.0)):
        law = LocatedMechanism(plane, mu=budget, domain=domain).law(900)
        released(law, jax.random.key(0), data)
    assert len(traces) == 1


def test_the_scale_of_integers_is_no_integer_of_single_precision():
    data = cap(SPHERE, jnp.asarray(CENTERS[0]), 0.2, 2000, 0, "float32")
    with jax.enable_x64(False):
        data = jnp.asarray(np.asarray(data), jnp.float32)
        values = LocatedMechanism(SPHERE, "tangent", epsilon=1.0).simulate(jax.random.key(0), data, 2)
    assert values.dtype == jnp.float32 and np.all(np.isfinite(values))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: LaplaceMechanism(balls()[0], x).law(N).scale,
        lambda x: GeodesicBall(SPHERE, CENTERS[0], x).radius,
        lambda x: AdaptiveMechanism(balls()[0], mu=x).law(N).scale,
        lambda x: LocatedMechanism(SPHERE, epsilon=x).law(N).scale,
        lambda x: GibbsMechanism(balls()[0], x).scale(N),
    ],
)
def test_numbers_that_are_traced_are_refused_by_the_way_out(call):
    for transformed in (jax.jit(call), jax.grad(call), lambda x: jax.vmap(call)(jnp.ones(2))):
        with pytest.raises(InputError, match=r"mechanism\.law\(n\)"):
            transformed(0.3)


def test_a_mechanism_that_is_an_argument_is_refused_by_the_way_out():
    data = cap(SPD(2), jnp.eye(2), 0.3, 8, 0)
    mechanism = TangentLaplace(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0)
    with pytest.raises(InputError, match=r"mechanism\.law\(n\)"):
        jax.jit(lambda own, data: own.simulate(jax.random.key(0), data, 2))(mechanism, data)
    with pytest.raises(InputError, match=r"mechanism\.law\(n\)"):
        jax.jit(lambda own, x, data: own.log_density(x, data))(mechanism, data[0], data)
