"""What a release promises, and under which neighbour relation."""

import dataclasses

from jaxgeodp.checks import positive_number

ADJACENCY = "replace-one"


@dataclasses.dataclass(frozen=True)
class PureDP:
    """Pure epsilon-differential privacy: for all adjacent data sets (one record replaced) the densities of the
    release differ at most by the factor exp(epsilon).

    Raises:
        ValueError: epsilon is not a finite number above 0.
    """

    epsilon: float

    def __post_init__(self):
        positive_number("PureDP", "epsilon", self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def record(self, theorem: str) -> dict:
        """The entry of a release record; a guarantee never appears without its theorem."""
        return {"kind": "pure", "epsilon": self.epsilon, "adjacency": ADJACENCY, "theorem": theorem}
