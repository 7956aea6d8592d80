"""What the registries of manifolds and mechanisms hold, in words for help and refusals."""

from collections.abc import Iterable

from jaxgeodp.manifolds.names import MANIFOLDS
from jaxgeodp.mechanisms.names import MECHANISMS


def listed(names: Iterable[str], last: str = "or") -> str:
    """Return names in words: "a, b or c".

    Args:
        names: at least one.
        last: the word before the last of several.
    """
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end


def with_several(field: str) -> str:
    """Return the names of the mechanisms that have several ``statistics`` or ``calibrations``."""
    return listed([name for name, entry in MECHANISMS.items() if len(getattr(entry, field)) > 1], "and")


def _sizes() -> str:
    """Return in words what the single size of a manifold is, for those that have one."""
    single = [(entry.sizes[0], name) for name, entry in MANIFOLDS.items() if len(entry.sizes) == 1]
    kinds = dict.fromkeys(kind for kind, _ in single)
    return ", ".join(f"{kind} ({', '.join(name for own, name in single if own == kind)})" for kind in kinds)


#: Help of a manifold that no file tells, and of its size.
MANIFOLD_HELP = f"{listed(MANIFOLDS)}; or a product: sphere(2) * spd(3)."
SIZE_HELP = f"Of the manifold, {_sizes()}; or in the name, spd(3) or grassmann(5, 2)."
