"""A release record in the words of OpenDP (https://docs.opendp.org): a measurement, its spaces and its privacy map."""

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY, GaussianDP
from jaxgeodp.privacy.release import Release

# The version whose words these are; others read them with a warning.
_OPENDP = "0.16.0"
_MEASURES = {
    "pure": "max_divergence",
    "approx": "fixed_smoothed_max_divergence",
    "gdp": "zero_concentrated_divergence",
    "zcdp": "zero_concentrated_divergence",
}


def opendp_measurement(release: Release) -> dict:
    """The record of a release as OpenDP would write a measurement of a user's own, ready for ``json.dumps``.

    Functions and modules are OpenDP's: ``opendp.prelude.deserialize`` reads metrics and measures as they stand. OpenDP
    has no manifolds, so the domain of a record is named in words, and what computed the value is this library's
    mechanism, which OpenDP can neither call nor check: the privacy map is the record's theorem.

    - Replace-one adjacency is ``change_one_distance`` on a vector domain of known size, add-remove is
      ``symmetric_distance`` on one of unknown size. In a release for persons, one unit of distance is a whole person.
    - Pure epsilon-DP is ``max_divergence``, (epsilon, delta) ``fixed_smoothed_max_divergence``, zCDP
      ``zero_concentrated_divergence``. OpenDP has no measure of Gaussian DP: mu-GDP is written as the mu^2/2-zCDP that
      it implies, and mu beside it.

    Args:
        release: a release, or one that `Release.load` has read.

    Returns:
        A dictionary with ``__function__``, ``__module__``, ``__kwargs__`` (``input_domain``, ``input_metric``,
        ``output_measure``, ``function``, ``privacy_map``: pairs of ``d_in`` and ``d_out``), ``release``, the value, and
        ``record``, the rest of the record, with the theorem that the privacy map stands on.

    Raises:
        ValueError: the record promises nothing that is proven, or for neighbours that OpenDP has no metric for.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import SPD, GeodesicBall, TangentLaplace
        >>> from jaxgeodp.privacy import opendp_measurement
        >>> mechanism = TangentLaplace(GeodesicBall(SPD(2), SPD(2).origin, 1.0), epsilon=0.5)
        >>> document = opendp_measurement(mechanism.release(np.tile(np.eye(2), (9, 1, 1))))
        >>> document["__kwargs__"]["output_measure"]["__function__"], document["__kwargs__"]["privacy_map"]
        ('max_divergence', [{'d_in': 1, 'd_out': 0.5}])
    """
    record = release.record
    promised, unit = record["guarantee"], record.get("unit", "record")
    kind, relation = promised["kind"], promised.get("adjacency", "").partition(" (")[0]
    if kind not in _MEASURES:
        raise InputError(f"opendp_measurement: the record's guarantee is '{kind}', which OpenDP has no measure for.")
    if relation not in (ADJACENCY, ADD_REMOVE):
        raise InputError(f"opendp_measurement: OpenDP has no metric for neighbours that are '{relation}'.")
    known_size = relation == ADJACENCY
    d_out, more = _distance(kind, promised)
    manifold = record.get("manifold", {})
    domain = {
        "atom_domain": {"description": f"{unit}s on {manifold.get('name', 'their space')}", **manifold},
        "size": record.get("n") if known_size else None,
    }
    arguments = {
        "input_domain": _written("vector_domain", "domains", domain),
        "input_metric": _written("change_one_distance" if known_size else "symmetric_distance", "metrics", {}),
        "output_measure": _written(_MEASURES[kind], "measures", {}),
        "function": f"jaxgeodp.{record['mechanism']}",
        "privacy_map": [{"d_in": 1, "d_out": d_out, **more}],
    }
    return _written("make_user_measurement", "measurements", arguments) | {
        "release": record["value"],
        "record": {name: entry for name, entry in record.items() if name != "value"},
    }


def _distance(kind, promised):
    """The output distance, and what the record says more."""
    if kind == "pure":
        return promised["epsilon"], {}
    if kind == "approx":
        return [promised["epsilon"], promised["delta"]], {}
    if kind == "zcdp":
        return promised["rho"], {}
    implied = GaussianDP(promised["mu"]).to_zcdp()
    return implied.rho, {"mu": promised["mu"]}


def _written(function, module, arguments):
    return {"__function__": function, "__module__": module, "__kwargs__": arguments, "__version__": _OPENDP}
