"""Dataclasses that JAX rebuilds without their checks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import GeodesicBall, Sphere
from jaxgeodp.experiments import PolarData
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel, PeriodicMatern, RKHSMean
from jaxgeodp.pytrees import Pytree
from jaxgeodp.surfaces import SyntheticFaces


@dataclasses.dataclass(frozen=True)
class Positive(Pytree, leaves=("size", "weight")):
    name: str
    size: float

    def __post_init__(self):
        if not self.size > 0:
            raise ValueError("size must be above 0.")


@dataclasses.dataclass(frozen=True)
class Weighted(Positive):
    weight: float
    kind: str = "plain"


def test_named_fields_are_leaves_and_the_rest_is_static():
    assert jax.tree.leaves(Positive("a", 1.0)) == [1.0]
    assert jax.tree.leaves(Weighted("a", 1.0, 2.0)) == [1.0, 2.0]
    assert jax.tree.structure(Weighted("a", 1.0, 2.0)) == jax.tree.structure(Weighted("a", 3.0, 4.0))
    assert jax.tree.structure(Weighted("a", 1.0, 2.0)) != jax.tree.structure(Weighted("b", 1.0, 2.0))
    assert jax.tree.structure(Weighted("a", 1.0, 2.0)) != jax.tree.structure(Weighted("a", 1.0, 2.0, "other"))


def test_what_is_rebuilt_is_not_checked():
    turned = jax.tree.map(lambda leaf: -leaf, Weighted("a", 1.0, 2.0, "other"))
    assert (turned.name, turned.size, turned.weight, turned.kind) == ("a", -1.0, -2.0, "other")
    with pytest.raises(ValueError, match="above 0"):
        dataclasses.replace(turned, name="b")
    slope = jax.grad(lambda one: one.size * one.weight)(Weighted("a", 3.0, 4.0))
    assert (slope.size, slope.weight) == (4.0, 3.0)


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        (PeriodicKernel(0.5, 0.75), [0.5, 0.75]),
        (PeriodicMatern(0.5, 2.5), [0.5]),
        (RKHSMean(PeriodicMatern(0.5), 0.01), [0.5, 0.01]),
        (FunctionalGaussianMechanism(PeriodicMatern(0.5), 0.01, 2.0, 3.0, np.ones((1, 16))), [0.5, 0.01, 2, 3, 1]),
        (PolarData(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)), [[0.0, 0.0, 1.0], 0.4]),
        (SyntheticFaces(12), []),
    ],
    ids=lambda value: type(value).__name__ if dataclasses.is_dataclass(value) else None,
)
def test_leaves_of_the_package(value, leaves):
    found = jax.tree.leaves(value)
    assert len(found) == len(leaves)
    for one, expected in zip(found, leaves, strict=True):
        np.testing.assert_array_equal(one, np.broadcast_to(expected, np.shape(one)))
    again = jax.tree.map(jnp.asarray, value)
    assert type(again) is type(value)
    assert jax.tree.structure(again) == jax.tree.structure(value)


def test_the_number_of_curves_is_static():
    mechanism = FunctionalGaussianMechanism(PeriodicMatern(0.5), 0.01, 1.0, mu=[0.6, 0.8])
    assert jax.tree.map(lambda leaf: leaf, mechanism).guarantee == mechanism.guarantee_for(2)
    free = FunctionalGaussianMechanism(PeriodicMatern(0.5), 0.01, 1.0, mu=1.0)
    assert jax.tree.structure(free) != jax.tree.structure(mechanism)
    assert "_known_curves" not in repr(mechanism)
