"""Private means without a public ball: `LocatedMechanism` finds one with a part of its budget.

`parts` says how a centre is found on which part of a manifold, `schedule` which stages there are and how much noise
each has, `law` walks them, in releases and in simulations.
"""

from jaxgeodp.locating.mechanism import LocatedMechanism

__all__ = ["LocatedMechanism"]
