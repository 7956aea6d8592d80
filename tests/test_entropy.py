"""Where the randomness of releases comes from: all of it from the operating system, nothing used twice."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st
from meshes import surface_design, surface_mechanism
from scipy import stats
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    Euclidean,
    EuclideanLaplace,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    RiemannianGaussian,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.privacy import chacha20, entropy
from jaxgeodp.releases.noise import Norm
from jaxgeodp.surfaces import FaceDesign, FaceMeanMechanism, JointGaussian, PointwiseGaussian

SPHERE = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
PLANE = GeodesicBall(Euclidean(2), np.zeros(2), 0.4)
MATRICES = GeodesicBall(SPD(2), np.eye(2), 1.0)
SQUARE = np.array([1.0, 1.0j, -1.0, -1.0j])
SHAPES = GeodesicBall(PlanarShapes(4), SQUARE / 2.0, 0.3)
CURVES = np.stack([np.cos(np.linspace(0, 6, 16)) for _ in range(3)], axis=1)[None].repeat(2, axis=0)

# Every mechanism that releases, with data; most on the plane, as its programs are small.
RELEASES = {
    "Laplace on the sphere": (LaplaceMechanism(SPHERE, 1.0), np.tile(SPHERE.center, (4, 1))),
    "Laplace on matrices": (LaplaceMechanism(MATRICES, 5.0), np.tile(np.eye(2), (50, 1, 1))),
    "KNG": (KNGMechanism(PLANE, 1.0), np.zeros((4, 2))),
    "KNG on the sphere": (KNGMechanism(SPHERE, 1.0), np.tile(SPHERE.center, (4, 1))),
    "wrapped": (WrappedLaplace(SPHERE, 1.0), np.tile(SPHERE.center, (4, 1))),
    "wrapped Gaussian": (WrappedGaussian(PLANE, 1.0), np.zeros((4, 2))),
    "tangent": (TangentLaplace(PLANE, 1.0), np.zeros((4, 2))),
    "tangent on matrices": (TangentLaplace(MATRICES, 1.0), np.tile(np.eye(2), (4, 1, 1))),
    "Gaussian": (RiemannianGaussian(PLANE, 1.0), np.zeros((4, 2))),
    "Gaussian on the sphere": (RiemannianGaussian(SPHERE, 1.0), np.tile(SPHERE.center, (4, 1))),
    "Gibbs": (GibbsMechanism(PLANE, 1.0), np.zeros((4, 2))),
    "Gibbs on the sphere": (GibbsMechanism(SPHERE, 1.0), np.tile(SPHERE.center, (4, 1))),
    "Euclidean": (EuclideanLaplace(PLANE, 1.0), np.zeros((4, 2))),
    "landmarks": (LandmarkLaplace(SHAPES, 1.0), np.tile(SQUARE / 2.0, (4, 1))),
    "curves": (FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.1, 1.0, 1.0), np.zeros((4, 2, 16))),
    "faces": (FaceMeanMechanism(CURVES, 1.0), np.stack([CURVES] * 4)),
    "smoothed faces": (FaceDesign(FaceMeanMechanism(CURVES, 1.0), np.ones(3)), np.stack([CURVES] * 4)),
    "surfaces": (surface_mechanism(), np.zeros((4, 2, 16, 3))),
    "shrunk surfaces": (surface_design(), np.zeros((4, 2, 16, 3))),
    "points": (PointwiseGaussian(CURVES[0], [1.0, 1.0, 1.0], 1.0), np.stack([CURVES[0]] * 4)),
    "points together": (JointGaussian(CURVES[0], 1.0, 1.0), np.stack([CURVES[0]] * 4)),
}


def words(data: bytes):
    return jnp.asarray(np.frombuffer(data, dtype="<u4").astype(np.uint32))


def reference(key: bytes, counter: int, nonce: bytes, length: int) -> bytes:
    """Bytes of the stream, by the package cryptography."""
    cipher = Cipher(algorithms.ChaCha20(key, counter.to_bytes(4, "little") + nonce), mode=None)
    return cipher.encryptor().update(bytes(length))


def as_bytes(array) -> bytes:
    return np.asarray(array).astype("<u4").tobytes()


def test_the_block_of_rfc_8439():
    """Section 2.3.2."""
    nonce = bytes.fromhex("000000090000004a00000000")
    block = chacha20.chacha20_blocks(words(bytes(range(32))), jnp.array([1], jnp.uint32), words(nonce))
    assert as_bytes(block) == bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


FOUR_BLOCKS = jax.jit(chacha20.chacha20_blocks)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=12, max_size=12), st.integers(0, 2**32 - 5))
def test_blocks_are_those_of_cryptography(key, nonce, counter):
    counters = jnp.asarray(np.arange(counter, counter + 4, dtype=np.uint32))
    assert as_bytes(FOUR_BLOCKS(words(key), counters, words(nonce))) == reference(key, counter, nonce, 256)


def test_keys_and_bits_are_blocks_of_three_nonces():
    raw = bytes(range(7, 39))
    key = jax.random.wrap_key_data(words(raw), impl=chacha20.CHACHA20)
    bits, split, fold = (bytes([purpose]) + bytes(11) for purpose in (0, 1, 2))
    assert as_bytes(jax.random.bits(key, (5, 7), jnp.uint32)) == reference(raw, 0, bits, 140)
    assert np.asarray(jax.random.bits(key, (9,), jnp.uint64)).astype("<u8").tobytes() == reference(raw, 0, bits, 72)
    narrow = np.frombuffer(reference(raw, 0, bits, 40), "<u4") & 0xFF
    np.testing.assert_array_equal(jax.random.bits(key, (10,), jnp.uint8), narrow)
    for j, child in enumerate(jax.random.key_data(jax.random.split(key, (3, 2))).reshape(6, 8)):
        assert as_bytes(child) == reference(raw, j, split, 32)
    assert as_bytes(jax.random.key_data(jax.random.fold_in(key, 12345))) == reference(raw, 12345, fold, 32)
    # The same under vmap and jit, as samplers use them.
    keys = jax.random.split(key, 4)
    together = jax.jit(jax.vmap(lambda k: jax.random.normal(k, (3,))))(keys)
    np.testing.assert_array_equal(together, np.stack([jax.random.normal(k, (3,)) for k in keys]))


def test_a_key_has_fewer_children_than_its_counter_has_numbers():
    key = jax.random.wrap_key_data(words(bytes(32)), impl=chacha20.CHACHA20)
    with pytest.raises(ValueError, match=r"fewer than 2\^32 children"):
        jax.jit(lambda own: jax.random.split(own, 2**32)).lower(key)


def test_the_generator_has_no_seed():
    with pytest.raises(ValueError, match="from the operating system"):
        jax.random.key(0, impl=chacha20.CHACHA20)


def test_normals_are_normal():
    key = jax.random.wrap_key_data(words(bytes(32)), impl=chacha20.CHACHA20)
    normals = np.asarray(jax.random.normal(key, (200_000,), jnp.float64))
    assert stats.kstest(normals, "norm").pvalue > 1e-6
    assert stats.kstest(1.1 * normals, "norm").pvalue < 1e-6
    assert abs(np.corrcoef(normals[:-1], normals[1:])[0, 1]) < 5.0 / np.sqrt(len(normals))


# The same ways where space is curved.
CURVED = [name for name in RELEASES if " on " in name and name != "Laplace on the sphere"]


@pytest.mark.parametrize("name", [*(key for key in RELEASES if key not in CURVED), *exhaustive(*CURVED)])
def test_a_release_is_made_of_the_operating_systems_bytes_and_of_nothing_else(name, monkeypatch):
    """256 fresh bits are read; the same bytes give the same value, whatever other generators are seeded with."""
    mechanism, data = RELEASES[name]
    read = []

    def bytes_of(number):
        def source(size):
            read.append(size)
            return bytes([number]) * size

        return source

    values = []
    for seed, number in ((0, 1), (1, 1), (1, 2)):
        np.random.seed(seed)  # noqa: NPY002 - the legacy global state is what must not matter
        random.seed(seed)
        monkeypatch.setattr(entropy.os, "urandom", bytes_of(number))
        values.append(mechanism.release(data).value)
    assert read == [32, 32, 32]
    np.testing.assert_array_equal(values[0], values[1])
    assert np.all(values[0] != values[2])
    monkeypatch.undo()
    assert np.all(mechanism.release(data).value != mechanism.release(data).value)


class Recorder:
    """Which blocks of which keys served as random bits."""

    def __init__(self, monkeypatch):
        self.blocks = []
        original = chacha20.stream

        def recorded(key, counters, purpose):
            if purpose == chacha20.BITS:
                jax.debug.callback(self.note, key, counters)
            return original(key, counters, purpose)

        monkeypatch.setattr(chacha20, "stream", recorded)
        jax.clear_caches()

    def note(self, key, counters):
        key = np.asarray(key).tobytes()
        self.blocks.extend((key, int(counter)) for counter in np.asarray(counters).reshape(-1))


# One for each way to draw; the others draw in the same ways.
WAYS = (
    "KNG",
    "wrapped",
    "wrapped Gaussian",
    "landmarks",
    "curves",
    "points",
    "points together",
)


@pytest.mark.parametrize("name", [*WAYS, *exhaustive(*(key for key in RELEASES if key not in WAYS))])
def test_no_block_serves_twice(name, monkeypatch):
    """Within a release and between two of them."""
    mechanism, data = RELEASES[name]
    recorder = Recorder(monkeypatch)
    for _ in range(2):
        mechanism.release(data)
        jax.effects_barrier()
    assert len(recorder.blocks) >= 2
    assert len(set(recorder.blocks)) == len(recorder.blocks)
    jax.clear_caches()


def test_a_key_that_serves_twice_is_found(monkeypatch):
    """Planted: the length of the noise from the key of its direction."""

    def noise(self, key, num, dim, dtype):
        normal = jax.random.normal(key, (num, dim), dtype)
        lengths = jnp.sum(jax.random.exponential(key, (num, dim), dtype), axis=1)
        return normal / jnp.linalg.norm(normal, axis=1, keepdims=True) * lengths[:, None]

    monkeypatch.setattr(Norm, "draw", noise)
    recorder = Recorder(monkeypatch)
    mechanism, data = RELEASES["tangent"]
    mechanism.release(data)
    jax.effects_barrier()
    assert len(set(recorder.blocks)) < len(recorder.blocks)
    jax.clear_caches()
