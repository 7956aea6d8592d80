"""A release record in lines: for ``jaxgeodp show``, and for those who check outputs."""

from collections.abc import Iterator

from jaxgeodp.cli.told import how_far, worth
from jaxgeodp.units import several, unit_of

# How many numbers a value has at most that is told in a line.
_SHOWN = 12


def record_lines(record: dict) -> Iterator[str]:
    """Yield lines on what a release record promises, why, and how far off its value may be.

    Raises:
        KeyError, TypeError, ValueError: it is no whole record.
    """
    promised = record["guarantee"]
    whose = "" if (unit := unit_of(record)) == "record" else f" {several(unit)}"
    whose = f" places{' for' if whose else ''}{whose}" if "count" in record else whose
    yield f"{record['mechanism']} on {record['manifold']['name']}, n = {record['n']}{whose}, {record['created']}"
    yield f"promise: {promise(record)}"
    yield f"because: {promised.get('theorem', '')}"
    yield from worth(record)
    yield from _value(record)
    yield from _under(record)
    yield from how_far(record)


def promise(record: dict) -> str:
    """Return the guarantee of a record with its parameters, such as "pure, epsilon = 0.3, replace-one"."""
    promised = record["guarantee"]
    names = [name for name in ("epsilon", "delta", "mu", "rho") if name in promised]
    return ", ".join((promised["kind"], *(f"{name} = {promised[name]:g}" for name in names), promised["adjacency"]))


def row_of(record: dict):
    """Return the value of a record as a row of its file's layout."""
    from jaxgeodp.io.values import row_of_value  # JAX, and all manifolds

    return row_of_value(record)


def _value(record):
    """Yield the value in the file's layout, if the record names one."""
    if "as" in record and (row := row_of(record)).size <= _SHOWN:
        yield f"value:   {', '.join(f'{number:.6g}' for number in row)} ({record['as']})"


def _under(record):
    """Yield what a guarantee depends on, and what of the law is not in its name."""
    if "supposed" in (formula := record["sensitivity"]["formula"] or ""):
        yield f"of:      {record['statistic']}; {formula}"
    if metric := record["guarantee"].get("metric"):
        yield f"metric:  epsilon = {metric['epsilon']:g} per {metric['per']}"
    if barrier := record.get("barrier"):
        named = ", ".join(
            f"{name} {barrier[name]:.6g}" for name in ("radius", "wall", "regularizer") if name in barrier
        )
        yield f"barrier: {named}"
