"""Work in blocks equals work at once, and needs little memory beside the data."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import GeodesicBall, KNGMechanism, Sphere, blocks

MEMORY = """
import numpy as np, jax, jax.numpy as jnp
from jaxgeodp import GeodesicBall, KNGMechanism, Sphere

def status(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) * 1024

ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.39)
mechanism = KNGMechanism(ball, 1e-3)
points = np.random.default_rng(0).normal(size=(10_000_000, 3)).astype(np.float32)
points *= np.float32(0.1)
points[:, 2] += 1
data = jnp.asarray(points)
del points
mechanism.simulate(jax.random.key(0), data[: 3_000_000], 1)  # the libraries' own memory
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # forget the peak
draw = mechanism.simulate(jax.random.key(0), data, 1)
assert bool(jnp.all(jnp.isfinite(draw)))
print((status("VmHWM") - before + data.nbytes) / data.nbytes)
"""


@pytest.mark.parametrize("count", [2048, 2049, 5000])
def test_blocks_give_what_the_whole_gives(count, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 1)  # 1024 records at a time
    records = jnp.asarray(np.random.default_rng(0).normal(size=(count, 3)))
    weights = jnp.linspace(0.0, 1.0, count)
    np.testing.assert_array_equal(blocks.map_in_blocks(lambda x: x / jnp.linalg.norm(x), records),
                                  jax.vmap(lambda x: x / jnp.linalg.norm(x))(records))  # fmt: skip
    first, second = blocks.sum_in_blocks(lambda x, w: (w @ x, jnp.sum(w)), records, weights)
    np.testing.assert_allclose(first, weights @ records, atol=1e-10)
    assert float(second) == pytest.approx(float(jnp.sum(weights)))


def test_a_release_of_ten_million_points_is_compiled_for_at_most_three_times_their_own_memory(monkeypatch):
    """What the compiled program says that it will take; in one block it would take more."""
    mechanism = KNGMechanism(GeodesicBall(Sphere(2), Sphere(2).origin, 0.39), 1e-3)

    def share(count):
        data = jax.ShapeDtypeStruct((count, 3), jnp.float32)
        program = jax.jit(lambda key, points: mechanism.simulate(key, points, 1)).lower(jax.random.key(0), data)
        memory = program.compile().memory_analysis()
        return (memory.argument_size_in_bytes + memory.temp_size_in_bytes) / memory.argument_size_in_bytes

    assert share(10_000_000) < 3.0
    monkeypatch.setattr(blocks, "BLOCK", 10**9)
    assert share(9_999_999) > 3.0


@pytest.mark.exhaustive  # the program says what it takes, in the test before
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="reads the peak memory as Linux tells it")
def test_ten_million_points_need_at_most_three_times_their_own_memory():
    # Optimized, unlike the other tests: most of the time is arithmetic.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", MEMORY], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 3.0
