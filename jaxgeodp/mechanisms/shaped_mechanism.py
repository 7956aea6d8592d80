"""Mechanisms in a public ball that take a shape in its place, if one is given."""

import functools

from typing_extensions import override

from jaxgeodp.domains.shape import Shape
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.shaped_mean import ShapedMean, shaped_mean


class ShapedMechanism(BallMechanism, leaves=("ball", "epsilon", "mu", "shape")):
    """Base of mechanisms with an optional shape, which is checked on construction and excludes persons.

    Raises:
        ValueError: see `BallMechanism`; a shape that `shaped_mean` refuses.
    """

    shape: Shape | None  # a field of each of them

    def __post_init__(self):
        super().__post_init__()
        if self.shape is not None:
            _ = self.shaped  # refuses one that does not fit

    @functools.cached_property
    def shaped(self) -> ShapedMean:
        """Return the mean of records in the shape, if there is one."""
        assert self.shape is not None
        return shaped_mean(type(self).__name__, self.shape, self.ball)

    @property
    @override
    def supports(self):
        # A person's mean would be one of records in the ball, which a shape may reach beyond.
        return super().supports - (set() if self.shape is None else {"persons"})
