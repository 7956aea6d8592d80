"""Values that a shell completes: names of the registries, imported only when a shell asks for them."""


def manifolds(incomplete: str) -> list[str]:
    """Short names of manifolds that begin so."""
    from jaxgeodp.manifolds.names import MANIFOLDS

    return [name for name in MANIFOLDS if name.startswith(incomplete)]


def mechanisms(incomplete: str) -> list[str]:
    """Names of mechanisms, and "auto", that begin so."""
    from jaxgeodp.mechanisms.names import MECHANISMS

    return [name for name in ("auto", *MECHANISMS) if name.startswith(incomplete)]


def one_of(*names: str):
    """A function that completes one of these."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]
