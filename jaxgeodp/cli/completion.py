"""Values that a shell completes, those that the command takes: the registries are imported only when a shell asks."""


def manifolds(incomplete: str) -> list[str]:
    """Return short names of manifolds that begin so."""
    from jaxgeodp.manifolds.names import MANIFOLDS

    return [name for name in MANIFOLDS if name.startswith(incomplete)]


def released_names(incomplete: str) -> list[str]:
    """Return names of mechanisms that ``release`` takes, "auto" and "adaptive", that begin so."""
    from jaxgeodp.cli.choice import ADAPTIVE, AUTO, released_mechanisms

    return one_of(AUTO, ADAPTIVE, *released_mechanisms())(incomplete)


def summed_names(incomplete: str) -> list[str]:
    """Return names of mechanisms that may release sums of integers, which begin so."""
    from jaxgeodp.mechanisms.names import names_with

    return one_of(*names_with("prepare"))(incomplete)


def simulated_names(incomplete: str) -> list[str]:
    """Return names of mechanisms that ``simulate`` takes, baselines too, which begin so."""
    from jaxgeodp.experiments.sweep import compared_names

    return one_of(*compared_names())(incomplete)


def audited_names(incomplete: str) -> list[str]:
    """Return names of mechanisms that ``audit`` takes, and "auto", that begin so."""
    from jaxgeodp.mechanisms.names import MECHANISMS

    return one_of("auto", *MECHANISMS)(incomplete)


def papers(incomplete: str) -> list[str]:
    """Return names of papers that begin so."""
    from jaxgeodp.experiments.reproduction import PAPERS

    return one_of(*PAPERS)(incomplete)


def one_of(*names: str):
    """Return a function that completes one of these words."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]
