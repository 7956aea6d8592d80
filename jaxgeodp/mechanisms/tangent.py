"""The mean of logarithms at the public centre plus noise in that tangent space."""

import dataclasses
from typing import final

from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.domains.records import record_count
from jaxgeodp.domains.shape import Shape
from jaxgeodp.mechanisms.shaped_mean import told_of, unclipped
from jaxgeodp.mechanisms.shaped_mechanism import ShapedMechanism
from jaxgeodp.mechanisms.tangent_vectors import MEAN_OF_LOGARITHMS, MeanOfLogarithms, VectorSums, sum_on_grid, with_grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases.noise import Norm, Normal, RotationInvariant
from jaxgeodp.releases.vector import VectorLaw, vector_law


class _Tangent(ShapedMechanism):
    @property
    @override
    def sums(self) -> VectorSums:
        if self.shape is None:
            return VectorSums(self.ball, type(self).__name__)
        return VectorSums(unclipped(self.ball, self.shaped), type(self).__name__, self.shaped)

    def _law(self, n, noise: RotationInvariant, strength: float) -> VectorLaw:
        n, shape = record_count(n), self.shape
        described = MEAN_OF_LOGARITHMS
        if shape is None:
            formula = "2r/n, diameter of a ball of the tangent space"
            sensitivity = Sensitivity(2.0 * self.ball.radius / n, formula)
            law = vector_law(self, n, MeanOfLogarithms(), noise, sensitivity, strength, described)
        else:
            formula = "2 clip/n, diameter of the shape's ball (Theorem Y)"
            sensitivity, ball = Sensitivity(2.0 * shape.clip / n, formula), unclipped(self.ball, self.shaped)
            described = f"{described}, shortened to the shape"
            law = vector_law(
                self, n, self.shaped, noise, sensitivity, strength, described, ball=ball, more=told_of(shape)
            )
        return with_grid(law, noise, lambda own: sum_on_grid(own, formula))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TangentLaplace(_Tangent):
    """exp_p0( mean of log_p0 x_i + noise ): sensitivity 2r/n whatever the curvature, but biased unless it is 0.

    The noise has the density exp(-|z|/sigma) in the tangent space at the public centre p0, sigma = 2r/(n epsilon): the
    K-norm mechanism of the Euclidean norm (Hardt & Talwar 2010), so that a release is epsilon-DP. The number of
    steps of a release does not depend on the data.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).
        shape: a public ellipsoid about the centre in place of the ball; noise then has its shape (Theorem Y).

    Raises:
        ValueError: see `BallMechanism`; a shape about another point, or of vectors that are not tangent, dependent, or
            of very different lengths.
    """

    epsilon: float
    shape: Shape | None = None

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return Norm().guarantee(self.epsilon)

    def law(self, n, shape=()):
        """Return the law for n records. Refused if noise may exceed double precision (negative curvature)."""
        return self._law(n, Norm(), self.epsilon)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TangentGaussian(_Tangent):
    """exp_p0( mean of log_p0 x_i + normal noise ): mu-Gaussian differential privacy, with sensitivity 2r/n.

    As `TangentLaplace`, with noise of standard deviation 2r/(n mu) in each coordinate of the tangent space.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, inf).
        shape: see `TangentLaplace`.

    Raises:
        ValueError: see `TangentLaplace`.
    """

    mu: float
    shape: Shape | None = None

    @property
    def guarantee(self) -> GaussianDP:
        """Return mu-GDP."""
        return Normal().guarantee(self.mu)

    def law(self, n, shape=()):
        """Return the law for n records. Refused if noise may exceed double precision (negative curvature)."""
        return self._law(n, Normal(), self.mu)
