"""All that a run on an accelerator must answer, in one command of a few minutes; on any JAX from 0.9 to 0.11.

    python benchmarks/device.py [--quick] [--out device.json]

Correctness in both precisions (round trips of exp and log, gradients at computed means, in units of rounding), K-norm
gradient replicates (data, mean and exact draw) a second on the sphere, means of many data sets, batched
eigendecompositions by size, memory, and, but for --quick, the whole of `jaxgeodp reproduce kng-2022`. Every task runs
on the default device and, where that is another, on this machine's CPU in the same process: the last column is the
ratio. Without an accelerator there is one column. Prints tables in Markdown; with --out all numbers as JSON, too.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from jaxgeodp.statistics.frechet_mean import frechet_mean

PRECISIONS = {"float32": jnp.float32, "float64": jnp.float64}
SPACES = (jgd.Sphere(2), jgd.Hyperbolic(2), jgd.SPD(3), jgd.SPD(10), jgd.PlanarShapes(50), jgd.Rotations())
MEANS = {jgd.Sphere(2): 5000, jgd.SPD(3): 2000, jgd.SPD(10): 200, jgd.PlanarShapes(50): 500}
RECORDS, LANES = 100, 10_000
TURNS = 3


def kind_of(manifold, dtype):
    return jnp.result_type(dtype, jnp.complex64) if manifold.dtype_kind == "complex" else dtype


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4))
def records(manifold, key, n, spread, dtype):
    """n points about the origin, (n, *shape)."""
    origin = jnp.asarray(manifold.origin, kind_of(manifold, dtype))

    def one(key):
        tangent = manifold.random_tangent(key, origin)
        return manifold.project(manifold.exp(origin, (spread / manifold.dim**0.5) * tangent))

    return jax.vmap(one)(jax.random.split(key, n))


@functools.partial(jax.jit, static_argnums=(0, 2))
def errors(manifold, key, dtype):
    """Of round trips, and of the gradient at a mean, in units of rounding."""
    points = records(manifold, key, 64, 0.5, dtype)
    base = points[0]
    back = jax.vmap(lambda x: manifold.aligned(x, manifold.exp(base, manifold.log(base, x))))(points)
    scale = jnp.max(jnp.abs(points))
    mean = frechet_mean(manifold, points)
    gradient = manifold.log_moments(mean, points, jnp.full(64, 1.0 / 64.0, dtype))[0]
    eps = jnp.finfo(dtype).eps
    return jnp.max(jnp.abs(back - points)) / scale / eps, manifold.norm(mean, gradient) / eps


@functools.partial(jax.jit, static_argnums=(1, 2))
def replicates(keys, dtype, n):
    """Data, clipped, their mean, and one exact draw, for each key."""
    mechanism = jgd.KNGMechanism(jgd.GeodesicBall(jgd.Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), epsilon=1.0)

    def one(key):
        of_data, of_draw = jax.random.split(key)
        return mechanism.simulate(of_draw, records(jgd.Sphere(2), of_data, n, 0.3, dtype), 1)[0]

    return jax.vmap(one)(keys)


@functools.partial(jax.jit, static_argnums=0)
def means(manifold, data):
    return jax.vmap(lambda own: frechet_mean(manifold, own))(data)


@jax.jit
def eigenvalues(matrices):
    return jnp.linalg.eigh(matrices)


def timed(task):
    """Seconds of the first call, and the median of some more."""
    turns = []
    for _ in range(TURNS + 1):
        start = time.perf_counter()
        jax.block_until_ready(task())
        turns.append(time.perf_counter() - start)
    return turns[0], statistics.median(turns[1:])


def tasks(quick):
    """Name -> (items of one call, what makes the call on the current device)."""
    share = 50 if quick else 1
    found = {}
    for name, dtype in PRECISIONS.items():
        lanes = LANES // share
        found[f"KNG replicates on S², n = {RECORDS}, {name}"] = (
            lanes,
            lambda dtype=dtype, lanes=lanes: functools.partial(
                replicates, jax.random.split(jax.random.key(0), lanes), dtype, RECORDS
            ),
        )
        for manifold, sets in MEANS.items():
            count = max(sets // share, 2)
            found[f"means of {RECORDS} records, {manifold}, {name}"] = (
                count,
                lambda manifold=manifold, count=count, dtype=dtype: functools.partial(
                    means, manifold, data_sets(manifold, count, dtype)
                ),
            )
        for size in (3, 5, 10, 16, 32):
            count = max(20_000 // size // share, 4)
            found[f"eigh of {size} x {size}, {name}"] = (
                count,
                lambda size=size, count=count, dtype=dtype: functools.partial(
                    eigenvalues, symmetric(size, count, dtype)
                ),
            )
    return found


def data_sets(manifold, count, dtype):
    flat = records(manifold, jax.random.key(1), count * RECORDS, 0.5, dtype)
    return flat.reshape(count, RECORDS, *manifold.shape)


def symmetric(size, count, dtype):
    noise = jax.random.normal(jax.random.key(2), (count, size, size), dtype)
    return noise + noise.swapaxes(1, 2)


def devices():
    """The default one, and the CPU if that is another."""
    first = jax.devices()[0]
    return [first] if first.platform == "cpu" else [first, jax.devices("cpu")[0]]


def correctness(found):
    print("\n| errors in units of rounding | precision | device | round trip | gradient at the mean |")
    print("|---|---|---|---|---|")
    for manifold in SPACES:
        for name, dtype in PRECISIONS.items():
            for device in devices():
                with jax.default_device(device):
                    trip, gradient = map(float, errors(manifold, jax.random.key(3), dtype))
                found.append({"space": str(manifold), "precision": name, "device": device.platform})
                found[-1] |= {"trip": trip, "gradient": gradient}
                print(f"| {manifold} | {name} | {device.platform} | {trip:.1f} | {gradient:.1f} |", flush=True)


def speed(found, quick):
    names = [device.platform for device in devices()]
    print(f"\n| task | {' | '.join(f'{name}, a second | first call, s' for name in names)} | ratio |")
    print(f"|---|{'---|---|' * len(names)}---|")
    for task, (count, make) in tasks(quick).items():
        cells, rates = [], []
        for device in devices():
            with jax.default_device(device):
                first, warm = timed(make())
            rates.append(count / warm)
            found.append({"task": task, "device": device.platform, "first": first, "warm": warm, "items": count})
            cells.append(f"{count / warm:.3g} | {first:.1f}")
        ratio = f"{rates[0] / rates[1]:.2g}" if len(rates) > 1 else ""
        print(f"| {task} | {' | '.join(cells)} | {ratio} |", flush=True)


def whole_paper():
    """Seconds of all of kng-2022, and what it says last."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "jaxgeodp",
            "reproduce",
            "kng-2022",
            "--out",
            str(pathlib.Path(folder) / "kng"),
        ]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return time.perf_counter() - start, done.returncode, (done.stdout.strip().splitlines() or [done.stderr])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--out", type=pathlib.Path, help="all numbers as JSON")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    start, numbers = time.perf_counter(), {"correctness": [], "speed": []}
    device = jax.devices()[0]
    versions = f"jax {jax.__version__}, numpy {np.__version__}"
    print(f"{device.platform} ({device.device_kind}), {os.cpu_count()} cores, {versions}")
    correctness(numbers["correctness"])
    speed(numbers["speed"], arguments.quick)
    memory = (device.memory_stats() or {}).get("peak_bytes_in_use")
    if memory is not None:
        print(f"\nlargest memory of the device: {memory / 2**30:.2f} GiB")
    if not arguments.quick:
        seconds, code, last = whole_paper()
        numbers["kng-2022"] = {"seconds": seconds, "exit code": code}
        print(f"\njaxgeodp reproduce kng-2022: {seconds:.0f} s, exit code {code}: {last}")
    print(f"\nAll of it: {time.perf_counter() - start:.0f} s.")
    if arguments.out is not None:
        about = {"device": device.device_kind, "jax": jax.__version__, "memory": memory}
        arguments.out.write_text(json.dumps(about | numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
