"""A user's loss sees one record, or is refused."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import EmpiricalRisk, Euclidean, GeodesicBall, KNGMechanism, LaplaceMechanism, Sphere
from jaxgeodp.checks import InputError
from jaxgeodp.statistics.one_record import check_sees_one_record, of_one_record

POINT, DOUBLE = jnp.array([0.3, -0.2]), jnp.dtype("float64")


def moved_by_one_record(loss):
    """How far the mean gradient moves when the first of 40 records is replaced."""
    statistic = EmpiricalRisk(loss, gradient_bound=1.0, shape=(2,))
    data = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, size=(40, 2)))
    gradients = [statistic.gradient(Euclidean(2), POINT, data.at[0].set(first)) for first in (-40.0, 40.0)]
    return float(jnp.linalg.norm(gradients[1] - gradients[0]))


def check(loss):
    check_sees_one_record(loss, Euclidean(2), (2,), (DOUBLE, DOUBLE))


@jax.custom_batching.custom_vmap
def plain(datum):
    return datum


@plain.def_vmap
def _mean_of_all(size, batched, data):
    return jnp.broadcast_to(jnp.mean(data, axis=0), data.shape), True


def spying(x, datum):
    return x @ jnp.tanh(plain(datum))


def peeping(x, datum):
    """Takes the records out of the object that stands for one of them while JAX traces."""
    seen = datum.val if type(datum).__name__ == "BatchTracer" else datum
    return x @ jnp.tanh(jnp.mean(seen.reshape(-1, 2), axis=0))


def calling(x, datum):
    shape = jax.ShapeDtypeStruct((2,), DOUBLE)
    mean = jax.pure_callback(
        lambda d: np.broadcast_to(np.mean(d, axis=-2, keepdims=True), d.shape),
        shape,
        jax.lax.stop_gradient(datum),
        vmap_method="broadcast_all",
    )
    return x @ jnp.tanh(mean)


def noisy(x, datum):
    """The generator "rbg" takes all numbers of a batch from the key of its first record."""
    key = jax.random.key(jnp.asarray(datum[0], jnp.int32), impl="rbg")
    return x @ jax.random.normal(key, (2,))


ours = jax.extend.core.Primitive("sin")  # the name of one of JAX's
ours.def_impl(jnp.sin)
ours.def_abstract_eval(lambda x: x)


def test_what_looks_at_other_records_is_refused():
    for loss, words in (
        (spying, "calls custom_vmap_call, which may combine several records"),
        (calling, "calls pure_callback, which"),
        (noisy, "random keys of type key<rbg>"),
        (lambda x, d: jax.jit(jax.checkpoint(spying))(x, d), "custom_vmap_call"),
        (lambda x, d: jax.lax.scan(lambda c, _: (spying(x, d), None), 0.0, length=3)[0], "custom_vmap_call"),
        (lambda x, d: jax.lax.cond(d[0] > 0, spying, lambda x, d: x[0], x, d), "custom_vmap_call"),
        (lambda x, d: (jax.debug.print("{}", d), x @ d)[1], "calls debug_|side effects"),
        (lambda x, d: x @ x + jax.lax.stop_gradient(ours.bind(d[0])), "calls sin, which"),
    ):
        for act in (moved_by_one_record, check):
            with pytest.raises(InputError, match=words) as caught:
                act(loss)
            assert str(caught.value).count(". ") == 0


def test_a_loss_cannot_find_the_batch_while_it_is_traced():
    assert moved_by_one_record(peeping) <= 2 / 40 * (1 + 1e-12)


def test_a_derivative_of_its_own_is_looked_into():
    @jax.custom_jvp
    def product(x, d):
        return x @ d

    @product.defjvp
    def _(primals, tangents):
        return product(*primals), tangents[0] @ plain(primals[1])

    with pytest.raises(InputError, match="custom_vmap_call"):
        check(product)


@jax.custom_jvp
def soft(x):
    return jnp.log1p(jnp.exp(x))


soft.defjvps(lambda t, value, x: t * jax.nn.sigmoid(x))


def rich(x, datum):
    """A little of everything that keeps to itself."""
    matrix = jnp.outer(datum, datum) + 2.0 * jnp.eye(2)
    _, logarithm = jnp.linalg.slogdet(matrix)
    solved = jnp.linalg.solve(matrix, x) + jnp.linalg.cholesky(matrix) @ x + jnp.linalg.eigh(matrix)[1] @ x
    scanned = jax.lax.scan(lambda c, row: (c + row @ x, None), 0.0, matrix)[0]
    looped = jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (0.5 * c[0], c[1] + 1), (datum, 0))[0]
    chosen = jax.lax.cond(datum[0] > 0, jnp.sin, jnp.cos, x[0])
    batched = jnp.sum(jax.vmap(lambda row: jax.jit(soft)(row @ x))(matrix))
    noise = jax.random.normal(jax.random.key(7, impl="threefry2x32"), (2,))
    sorted_ = jnp.sort(jnp.concatenate([x, datum]))[1] + jnp.fft.fft(datum).real @ x
    return logarithm + solved @ solved + scanned + looped @ x + chosen + batched + noise @ x + sorted_


def test_an_innocent_loss_passes_and_is_left_alone():
    check(rich)
    assert moved_by_one_record(rich) <= 2 / 40 * (1 + 1e-12)
    data = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, size=(3, 2)))
    found = EmpiricalRisk(rich, gradient_bound=1e3, shape=(2,)).gradient(Euclidean(2), POINT, data)
    gradient = jax.jit(jax.grad(rich))
    np.testing.assert_allclose(found, np.mean([gradient(POINT, d) for d in data], axis=0), rtol=1e-12)


def test_a_loss_of_another_form_is_refused():
    for loss in (lambda x, d: x, lambda x, d: (x @ d, 0.0), lambda x, d: x[0] + 1j * d[0]):
        with pytest.raises(InputError, match="must return one real number"):
            check(loss)


def test_a_statistic_is_checked_without_data():
    sphere = Sphere(2)
    EmpiricalRisk(lambda x, y: 0.5 * sphere.squared_dist(x, y), 1.0).check(sphere)
    with pytest.raises(InputError, match="custom_vmap_call"):
        EmpiricalRisk(spying, 1.0, shape=(2,)).check(Euclidean(2))
    wild = EmpiricalRisk(spying, 1.0, shape=(2,))
    with pytest.raises(InputError, match="custom_vmap_call"):
        KNGMechanism(GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0), 1.0, statistic=wild).release(np.zeros((4, 2)))


def test_a_trace_runs_for_many_records():
    double = of_one_record("double", lambda x: 2.0 * x, jax.ShapeDtypeStruct((2,), DOUBLE))
    np.testing.assert_array_equal(jax.vmap(double)(jnp.ones((5, 2))), 2.0 * np.ones((5, 2)))


@pytest.mark.parametrize("make", [KNGMechanism, LaplaceMechanism])
def test_a_mechanism_is_not_made_with_such_a_loss(make):
    with pytest.raises(InputError, match="may combine several records"):
        make(GeodesicBall(Euclidean(2), jnp.zeros(2), 1.0), 1.0, EmpiricalRisk(spying, gradient_bound=1.0, shape=(2,)))
