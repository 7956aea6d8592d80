"""A way of making a release from a law, and what is chosen by ``delta`` and ``numerics``."""

import abc
from typing import ClassVar

import jax

from jaxgeodp.releases.law import Law, Ready


class Way(abc.ABC):
    """How a release is made.

    Attributes:
        option: which a mechanism must support, a word of `releases.drafts.OPTIONS`; None for what all do.
    """

    option: ClassVar[str | None] = None

    @abc.abstractmethod
    def ready(self, law: Law, shape: jax.ShapeDtypeStruct) -> Ready:
        """Compile for records of this shape; all that can be refused is refused here, and no record is seen.

        Raises:
            ValueError: the law cannot be released in this way, or not for these numbers.
        """
