"""Data sharded over devices and hosts: the same mean and gradient as on one device."""

import functools
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxgeodp import FrechetMean, PlanarShapes, Sphere, SPD, frechet_mean

processes, process, port, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if processes > 1:
    jax.distributed.initialize(f"127.0.0.1:{port}", processes, process)
jax.config.update("jax_enable_x64", True)
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("records",)), PartitionSpec("records"))
results = [np.array([jax.device_count(), jax.process_count()])]
for manifold in (Sphere(2), SPD(2), PlanarShapes(4))[: int(sys.argv[5])]:
    origin = jnp.asarray(manifold.origin)
    keys = jax.random.split(jax.random.key(0), 80)
    tangents = jax.vmap(lambda key: 0.1 * manifold.random_tangent(key, origin))(keys)
    whole = np.asarray(jax.vmap(lambda v: manifold.exp(origin, v))(tangents))
    mine = whole[process * 80 // processes : (process + 1) * 80 // processes]
    points = jax.make_array_from_process_local_data(sharding, mine, whole.shape)
    for work in (lambda x: frechet_mean(manifold, x), lambda x: FrechetMean().gradient(manifold, origin, x)):
        program = jax.jit(work).lower(points).compile()
        lines = program.as_text().splitlines()
        assert len(lines) > 10
        gathered = [line for line in lines if " all-gather" in line and "[80," in line.split("=")[1]]
        assert not gathered, gathered  # sums are added up, records stay where they are
        results.append(np.asarray(program(points).addressable_data(0)).ravel())
if process == 0:
    np.save(out, np.concatenate(results))
"""


def run(out, devices, processes, spaces):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLA_FLAGS": flags}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(processes), str(k), port, str(out), str(spaces)],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for k in range(processes)
    ]  # fmt: skip
    for worker in workers:
        errors = worker.communicate(timeout=240)[1]
        assert worker.returncode == 0, errors
    return np.load(out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return functools.cache(lambda spaces: run(tmp_path_factory.mktemp("alone") / "numbers.npy", 1, 1, spaces))


@pytest.mark.parametrize(
    ("devices", "processes", "spaces"),
    # That processes find each other, and give the numbers of one, has a test in test_sweeps.py.
    [
        pytest.param(4, 1, 1, id="four devices, the sphere"),
        pytest.param(4, 1, 3, id="four devices", marks=pytest.mark.exhaustive),
        pytest.param(1, 2, 3, id="two processes", marks=pytest.mark.exhaustive),
    ],
)
def test_means_and_gradients_of_sharded_data(alone, tmp_path, devices, processes, spaces):
    numbers = run(tmp_path / "numbers.npy", devices, processes, spaces)
    assert numbers[:2].tolist() == [devices * processes, processes]
    np.testing.assert_allclose(numbers[2:], alone(spaces)[2:], atol=1e-13)
