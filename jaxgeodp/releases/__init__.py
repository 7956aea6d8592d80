"""A release is a domain, a law and a way: where records lie, what is drawn, and how.

`mechanism` walks from data to a record by `drafts`, `add_remove` hides how many records there are, and `groups` makes a
release of each of several; `law` is what a new mechanism writes, with `density` and `vector` as kinds of
laws and `noise`, and `encoding` as the law of a mean of bounded vectors; `ways` holds how a law is released.
"""

from jaxgeodp.releases.encoding import EncodedLaw, EncodedSums, Encoding, encoded_law, shortened
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.releases.law import Law, PointLaw, Terms
from jaxgeodp.releases.mechanism import Mechanism, release_in
from jaxgeodp.releases.states import State, merged

__all__ = [
    "EncodedLaw",
    "EncodedSums",
    "Encoding",
    "Law",
    "Mechanism",
    "PointLaw",
    "State",
    "Terms",
    "encoded_law",
    "merged",
    "release_groups",
    "release_in",
    "shortened",
]
