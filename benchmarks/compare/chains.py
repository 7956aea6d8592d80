"""Independent draws per second from the law of KNG: exact sampler, our chains, NUTS, BlackJAX, a NumPy loop.

    python -m benchmarks.compare.chains [--quick] [--out chains.png]

For chains a draw is an effective one: the smallest bulk effective sample size over tangent coordinates and log density,
over the seconds of the run after compilation and warm-up. NUTS and BlackJAX work in tangent coordinates at the mean,
with the volume of exp in the density, as without this library. BlackJAX is left out where it is not installed.

The second table is about the chains that Soto et al. 2022 print (supplement 2.3.2, 2.4.2, 2.5.1): mean distance from
the mean, over that of exact draws, with accepted moves only and with repeated states.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from numpyro.infer import MCMC, NUTS

from benchmarks.compare.draws import exponential, gradient_norm
from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp import SPD, GeodesicBall, KNGMechanism, PlanarShapes, Sphere
from jaxgeodp.experiments import paper_chain
from jaxgeodp.samplers import Chains, diagnose, metropolis

# Manifold, radius, n, the chain of the paper, draws per chain, random walks side by side (NUTS has 4, which wait).
CASES = {
    "S^2, n = 100": (Sphere(2), np.pi / 8, 100, "sphere", 100, 256),
    "SPD(2), n = 100": (SPD(2), 1.0, 100, "matrices", 100, 256),
    "shapes k = 50, n = 400": (PlanarShapes(50), 0.19, 400, "shapes", 10, 16),
}


class Problem:
    """A mechanism, data around the origin, the law's log density and its tangent coordinates at the mean."""

    def __init__(self, manifold, radius, n, chains):
        self.chains = chains
        self.manifold, origin = manifold, jnp.asarray(manifold.origin)
        self.mechanism = KNGMechanism(GeodesicBall(manifold, manifold.origin, radius), 1.0)
        keys = jax.random.split(jax.random.key(0), n)
        spread = 0.5 * radius / manifold.dim**0.5
        self.data = jax.jit(jax.vmap(lambda key: manifold.exp(origin, spread * manifold.random_tangent(key, origin))))(
            keys
        )
        self.scale = self.mechanism.scale(n)
        self.mean = self.mechanism.law(len(self.data)).center(self.mechanism.ball.clip(self.data))
        self.frame = manifold.frame(self.mean)
        self.log_density = lambda x: self.mechanism.log_density(x, self.data)

    def point(self, z):
        return self.manifold.exp(self.mean, self.manifold.combine(z, self.frame))

    def potential(self, z):
        """In tangent coordinates."""
        tangent = self.manifold.combine(z, self.frame)
        return -self.log_density(self.manifold.exp(self.mean, tangent)) - self.manifold.log_det_exp(self.mean, tangent)

    def effective(self, coordinates):
        """Bulk effective sample size of chains of tangent coordinates (chains, draws, dim)."""
        points = jax.jit(jax.vmap(jax.vmap(self.point)))(coordinates)
        values = jax.jit(jax.vmap(jax.vmap(self.log_density)))(points)
        chains = Chains(points, values, jnp.ones(len(points)), jnp.ones(len(points)))
        return diagnose(self.manifold, chains, self.mean).bulk_ess


def timed(task):
    """Seconds of a second call, and its result."""
    jax.block_until_ready(task())
    start = time.perf_counter()
    result = jax.block_until_ready(task())
    return time.perf_counter() - start, result


def exact(problem, size):
    seconds, _ = timed(lambda: problem.mechanism.simulate(jax.random.key(1), problem.data, 10 * size))
    return 10 * size / seconds


def walk(problem, size):
    manifold, density, dim = problem.manifold, problem.log_density, problem.manifold.dim
    warm = metropolis(jax.random.key(1), manifold, density, problem.mean, 1, 500, 1, problem.scale, problem.chains)
    step, starts = float(jnp.median(warm.step_size)), warm.points[:, -1]
    seconds, chains = timed(
        lambda: metropolis(jax.random.key(2), manifold, density, starts, size, 0, dim, step, problem.chains)
    )
    return diagnose(manifold, chains, problem.mean).bulk_ess / seconds


def nuts(problem, size):
    sampler = MCMC(
        NUTS(potential_fn=problem.potential, max_tree_depth=6),
        num_warmup=300,
        num_samples=4 * size,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    starts = 0.1 * problem.scale * jax.random.normal(jax.random.key(2), (4, problem.manifold.dim))
    sampler.warmup(jax.random.key(3), init_params=starts)
    sampler.run(jax.random.key(4))
    sampler.post_warmup_state = sampler.last_state
    start = time.perf_counter()
    sampler.run(jax.random.key(5))
    samples = jax.block_until_ready(sampler.get_samples(group_by_chain=True))
    return problem.effective(samples) / (time.perf_counter() - start)


def blackjax_walk(problem, size):
    try:
        import blackjax
    except ImportError:
        return np.nan
    dim = problem.manifold.dim
    # 2.4/sqrt(d) standard deviations of the law.
    width = 2.4 * problem.scale * jnp.ones(dim)
    sampler = blackjax.additive_step_random_walk(
        lambda z: -problem.potential(z), blackjax.mcmc.random_walk.normal(width)
    )

    # At the mode every move of this width would be refused.
    starts = problem.scale * jnp.sqrt(dim) * jax.random.normal(jax.random.key(7), (problem.chains, dim))

    @jax.jit
    def run(keys, starts):
        def chain(key, start):
            def thinned(state, key):
                state = jax.lax.fori_loop(0, dim, lambda j, s: sampler.step(jax.random.fold_in(key, j), s)[0], state)
                return state, state.position

            return jax.lax.scan(thinned, sampler.init(start), jax.random.split(key, size))[1]

        return jax.vmap(chain)(keys, starts)

    seconds, samples = timed(lambda: run(jax.random.split(jax.random.key(6), problem.chains), starts))
    return problem.effective(samples) / seconds


def numpy_loop(problem, size):
    """A random walk in NumPy, on the sphere: 4 chains, one after the other."""
    if not isinstance(problem.manifold, Sphere):
        return np.nan
    generator, points, mean = np.random.default_rng(0), np.asarray(problem.data), np.asarray(problem.mean)
    frame, support = np.asarray(problem.frame), problem.mechanism.support(len(points))
    length, start = 20 * size, time.perf_counter()
    chains = np.empty((4, length, 3))
    for states in chains:
        x = mean
        potential = gradient_norm(x[None], points)[0]
        for step in range(length):
            normal = generator.normal(size=3)
            candidate = exponential(x, problem.scale * (normal - (normal @ x) * x))
            if candidate[2] >= np.cos(support.radius):
                proposed = gradient_norm(candidate[None], points)[0]
                if np.log1p(-generator.random()) <= (potential - proposed) / problem.scale:
                    x, potential = candidate, proposed
            states[step] = x
    seconds = time.perf_counter() - start
    logs = jax.vmap(jax.vmap(lambda x: problem.manifold.log(problem.mean, x)))(jnp.asarray(chains))
    return problem.effective(logs @ frame.T) / seconds


METHODS = {
    "exact sampler": exact,
    "metropolis": walk,
    "NumPyro NUTS": nuts,
    "BlackJAX random walk": blackjax_walk,
    "NumPy loop": numpy_loop,
}


def paper_report(problem, name, size):
    """Mean distance of each chain over that of exact draws, with its standard error."""

    # Printed without rejections: where no move is accepted the chain never ends.
    pilot = paper_chain(jax.random.key(3), name, problem.mechanism, problem.data, 1, 16, False, burnin=199, thin=1)
    if not np.any(np.asarray(pilot.acceptance)):
        return ["-", "-", "none of 3,200 moves from the mean"]

    def distances(points):
        return np.asarray(jax.jit(jax.vmap(lambda x: problem.manifold.dist(problem.mean, x)))(points))

    reference = distances(problem.mechanism.simulate(jax.random.key(1), problem.data, 4 * size))
    cells = []
    for as_printed in (True, False):
        # As many chains as draws, so that draws are independent; thinning would only cost time.
        chains = paper_chain(
            jax.random.key(2), name, problem.mechanism, problem.data, 1, size, as_printed, burnin=2000, thin=1
        )
        values = distances(chains.points[:, 0])
        error = values.std() / np.sqrt(size) / reference.mean()
        cells.append(f"{values.mean() / reference.mean():.3f} +- {2 * error:.3f}")
    return [*cells, f"{float(np.mean(chains.acceptance)):.2f}"]


def draw(cases, speeds, out):
    """A bar for each method, by case."""
    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    width = 0.8 / len(METHODS)
    for j, name in enumerate(METHODS):
        axis.bar(np.arange(len(cases)) + (j - 2) * width, [row[j] for row in speeds], width, label=name)
    axis.set(yscale="log", ylabel="independent draws per second", title="KNG, epsilon = 1")
    axis.set_xticks(range(len(cases)), cases)
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(out, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one case, short chains: a test of the script")
    parser.add_argument("--out", default="chains.png", help="the figure to write")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    cases = dict(list(CASES.items())[: 1 if arguments.quick else None])
    speeds, laws = [], []
    for title, (manifold, radius, n, chain, size, chains) in cases.items():
        problem = Problem(manifold, radius, n, chains)
        speeds.append([])
        for name, method in METHODS.items():
            speeds[-1].append(method(problem, 10 if arguments.quick else size))
            print(f"{title}: {name} {speeds[-1][-1]:,.3g}/s", flush=True)
        laws.append([title, *paper_report(problem, chain, 100 if arguments.quick or n > 100 else 1000)])
        print(laws[-1], flush=True)
        jax.clear_caches()
    rows = [
        [name, *("-" if np.isnan(row[j]) else f"{row[j]:,.3g}" for row in speeds)] for j, name in enumerate(METHODS)
    ]
    print_table("independent draws per second", ["", *cases], rows)
    heads = ["mean distance over the exact one", "accepted moves only (as printed)", "repeated states", "acceptance"]
    print_table("the chains of Soto et al. 2022", heads, laws)
    draw(list(cases), speeds, arguments.out)
    print(f"\nwrote {arguments.out}")


if __name__ == "__main__":
    main()
