"""Private means without a public ball: `LocatedMechanism` finds one with a part of its budget.

`parts` says how a centre is found on which part of a manifold, `schedule` which stages there are and how much noise
each has, `walk` asks one question after another, `law` answers them in releases and simulations, `rounds` where
records are elsewhere.
"""

from jaxgeodp.locating.mechanism import LocatedMechanism
from jaxgeodp.locating.rounds import SearchInRounds

__all__ = ["LocatedMechanism", "SearchInRounds"]
