"""The Riemannian Laplace mechanism (Reimherr, Bharath & Soto, NeurIPS 2021)."""

import dataclasses

import jax

from jaxgeodp.bounds.rounding import of_computed_mean
from jaxgeodp.mechanisms.density import DensityMechanism
from jaxgeodp.mechanisms.mechanism import Calibration


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class LaplaceMechanism(DensityMechanism):
    """Density exp(-dist(x, s)/sigma) around the statistic s, on the whole manifold.

    sigma = sensitivity/epsilon on a homogeneous manifold, where the normalising constant is the same around
    every point (their Theorem 1); otherwise twice that. On manifolds of negative curvature sigma must be
    below 1/volume growth, else the distribution does not exist and `calibrate` refuses.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).
        statistic: what is summarised.
        calibration: "tight" (default), "theorem", the papers' sensitivity, or "paper", which is "theorem" here but
            makes no claim (see `KNGMechanism`).

    Example:
        >>> import jax
        >>> from jaxgeodp import GeodesicBall, LaplaceMechanism, SPD
        >>> mechanism = LaplaceMechanism(GeodesicBall(SPD(2), SPD(2).origin, 1.5), epsilon=1.0)
        >>> round(mechanism.scale(50), 6)
        0.06
    """

    _radial = True

    def calibrate(self, n: int) -> Calibration:
        """See `Mechanism.calibrate`.

        Raises:
            ValueError: the distribution does not exist; says what would have to change.
        """
        papers = "theorem" if self.calibration == "paper" else self.calibration
        sensitivity = self.statistic.minimizer_sensitivity(self.ball, n, papers)
        if self.calibration != "paper":
            sensitivity = of_computed_mean(sensitivity, self.ball, n)
        homogeneous = self.ball.manifold.homogeneous
        scale = (1.0 if homogeneous else 2.0) * sensitivity.value / self.epsilon
        self._check_existence(n, scale, None)
        reason = "sensitivity/epsilon, homogeneous manifold" if homogeneous else "2 sensitivity/epsilon"
        return Calibration(sensitivity, scale, None, f"Reimherr et al. 2021, Theorem 1: scale = {reason}")

    def _center(self, points) -> jax.Array:
        return self.statistic.minimizer(self.ball, points)

    def _potential(self, x, center, points) -> jax.Array:
        return self.ball.manifold.dist(center, x)

    def _growth(self, center, points, support) -> float:
        return 1.0
