"""Release records in the format of OpenDP (https://docs.opendp.org): measurement, spaces and privacy map."""

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.guarantee import (
    ADD_REMOVE,
    ADJACENCY,
    ApproximateDP,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
)
from jaxgeodp.privacy.release import Release
from jaxgeodp.units import several, unit_of

# Version of this format; other versions read it with a warning.
_OPENDP = "0.16.0"
_METRICS = {
    ADJACENCY: "change_one_distance",
    f"{ADJACENCY} (all of a person)": "change_one_distance",
    ADD_REMOVE: "symmetric_distance",
    f"{ADD_REMOVE} (all of a person)": "symmetric_distance",
}


def opendp_measurement(release: Release) -> dict:
    """Return a release record as a user-defined measurement of OpenDP, ready for ``json.dumps``.

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
        ValueError: not a release, one without a proven guarantee, one of groups, or one for neighbours that
            OpenDP has no metric for.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import SPD, GeodesicBall, TangentLaplace
        >>> from jaxgeodp.privacy import opendp_measurement
        >>> mechanism = TangentLaplace(GeodesicBall(SPD(2), SPD(2).origin, 1.0), epsilon=0.5)
        >>> document = opendp_measurement(mechanism.release(np.tile(np.eye(2), (9, 1, 1))))
        >>> document["__kwargs__"]["output_measure"]["__function__"], document["__kwargs__"]["privacy_map"]
        ('max_divergence', [{'d_in': 1, 'd_out': 0.5}])
    """
    if not isinstance(release, Release):
        raise InputError(
            f"opendp_measurement: needs a Release, got {type(release).__name__}; of a description, give one of its "
            "three releases."
        )
    record, guarantee = release.record, release.guarantee
    relation = record["guarantee"].get("adjacency")
    if isinstance(guarantee, NotProven):
        kind = record["guarantee"]["kind"]
        raise InputError(f"opendp_measurement: the record's guarantee is '{kind}', for which OpenDP has no measure.")
    if not isinstance(relation, str) or relation not in _METRICS:
        what = "groups" if "group" in record else f"neighbours that are '{relation}'"
        raise InputError(f"opendp_measurement: OpenDP has no metric for {what}.")
    measure, d_out, more = _distance(guarantee)
    manifold, units = record.get("manifold", {}), several(unit_of(record))
    known_size = relation.startswith(ADJACENCY)  # under add-remove n is the number of places
    domain = {
        "atom_domain": {"description": f"{units} on {manifold.get('name', 'their space')}", **manifold},
        "size": record.get("n") if known_size else None,
    }
    arguments = {
        "input_domain": _written("vector_domain", "domains", domain),
        "input_metric": _written(_METRICS[relation], "metrics", {}),
        "output_measure": _written(measure, "measures", {}),
        "function": f"jaxgeodp.{record['mechanism']}",
        "privacy_map": [{"d_in": 1, "d_out": d_out, **more}],
    }
    return _written("make_user_measurement", "measurements", arguments) | {
        "release": record["value"],
        "record": {name: entry for name, entry in record.items() if name != "value"},
    }


def _distance(guarantee):
    """Return the measure, the output distance in it, and further entries."""
    match guarantee:
        case PureDP(epsilon=epsilon):
            return "max_divergence", epsilon, {}
        case ApproximateDP(epsilon=epsilon, delta=delta):
            return "fixed_smoothed_max_divergence", [epsilon, delta], {}
        case ZeroConcentratedDP(rho=rho):
            return "zero_concentrated_divergence", rho, {}
        case _:
            return "zero_concentrated_divergence", guarantee.to_zcdp().rho, {"mu": guarantee.mu}


def _written(function, module, arguments):
    return {"__function__": function, "__module__": module, "__kwargs__": arguments, "__version__": _OPENDP}
