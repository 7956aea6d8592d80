"""What a release protects: a record, all records of a person, or those of a person at one site."""

_SEVERAL = {"record": "records", "person": "persons", "person at one site": "persons, each at one site"}
_REST = {"person at one site": "all else, also what other sites have of the same person"}


def unit_of(record: dict) -> str:
    """Return the unit of a release record: "record", "person" or "person at one site"."""
    unit = record.get("unit")
    return unit if isinstance(unit, str) and unit in _SEVERAL else "record"


def several(unit: str) -> str:
    """Return the word for more than one of a unit."""
    return _SEVERAL[unit]


def all_but_one(unit: str) -> str:
    """Return what somebody knows who knows all that is protected but for one of a unit."""
    return _REST.get(unit, f"all other {several(unit)}")
