"""Layout of records in files, as the call states it: public, never inferred from the numbers."""

import dataclasses
import itertools
import numbers
import re

from jaxgeodp.checks import InputError, short
from jaxgeodp.io.charts import OF_AXES, OF_DIRECTIONS, PERIODS, TURNED, angles_in, chart_named

# Column names that denote no coordinate, unless --columns lists them.
_NO_COORDINATE = re.compile(
    r"|(row|rec|record|row[ _.]?)?(id|ids|no|nr|num|index|names?)|unnamed.*|.+[ _.-](id|name|index|label|date|time)"
    r"|__index.*"
    r"|(patient|subject|person|participant|specimen|sample|case|individual|site|station|study|visit|session)s?(id)?"
    r"|groups?|class|classes|labels?|species|genus|sex|gender|age|treatment|type|kind|category|date|time|year|month|day"
    r"|timestamp|number|seq(uence)?|count|rank|frame|fold|batch|split|subset|source|region|country|strain|animal"
    r"|chain|residue|resid|res[ _.-]?(name|num|seq|nr|no)|atom|model|segment|pdb",
    re.IGNORECASE,
)
_ANGLE = re.compile(
    r"(?:.*[ _.-])?(lat(?:itude)?|lon(?:gitude)?|long|lng|decl?(?:ination)?|incl?(?:ination)?|ra"
    r"|right[ _.-]?asc(?:ension)?|trend|plunge|strike|dip(?:[ _.-]?dir(?:ection)?)?|azimuth|elevation)"
    r"(?:[ _.-]?(?:deg(?:rees)?|j2000|°))?(?:\s*[\[(].*)?",
    re.IGNORECASE,
)
# Names of torus angles: if some columns match, the others are no angles.
_OF_A_TORUS = re.compile(
    r"(?:.*[ _.-])?(phi|psi|chi|omega|torsion|dihedral)[ _.-]?\d*(?:[ _.-]?(?:deg(?:rees)?|rad(?:ians)?|°))?"
    r"(?:\s*[\[(].*)?",
    re.IGNORECASE,
)
_DIP_DIRECTION = re.compile(r"dip[ _.-]?azimuth", re.IGNORECASE)
# An azimuth takes its meaning from the other column.
_AZIMUTH, _BESIDE = "azimuth", {"plunge": "trend", "inc": "dec", "dip": "dipdir"}
_IN_HOURS = re.compile(r"ra[ _.-]?h(?:rs?|ours?|ms)?", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_WORDS = "lat,lon, lon,lat, dec,inc, inc,dec or ra,dec; of axes trend,plunge, strike,dip or dipdir,dip, too"
_WHOLE = numbers.Integral, "a whole number"
_KINDS = {"header": (bool, "True or False"), "size": _WHOLE, "expect_n": _WHOLE}  # all others are text
_WORDS_FOR_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " "}


def option_of(field: str) -> str:
    """Return the command-line option of a keyword; ``chart`` is ``--as``, a reserved word in Python."""
    return "as" if field == "chart" else field.replace("_", "-")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Options of the command line, and keywords of `read`, that describe a file.

    Raises:
        ValueError: an option that no file could have.
    """

    array: str | None = None
    header: bool = False
    delimiter: str | None = None
    decimal: str = "."
    columns: str | None = None
    size: int | None = None
    triangle: str | None = None
    degrees: str | None = None
    chart: str | None = None
    expect_n: int | None = None
    person: str | None = None
    group: str | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value, (kind, words) = getattr(self, field.name), _KINDS.get(field.name, (str, "text"))
            if not (isinstance(value, kind) or value is field.default is None):
                raise InputError(f"--{option_of(field.name)} must be {words}, got {short(value)}.")
        if self.delimiter is not None:
            mark = _WORDS_FOR_DELIMITERS.get(self.delimiter, self.delimiter)
            if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '+-."\r\n\0':
                raise InputError(
                    "--delimiter must be a character that does not occur in numbers: ',', ';', 'tab', 'space', '|'."
                )
            object.__setattr__(self, "delimiter", mark)
        if self.decimal not in (".", ","):  # commas may be both where cells stand in quotes
            raise InputError("--decimal must be '.' or ','.")
        if self.triangle not in (None, "lower", "upper"):
            raise InputError("--triangle must be lower or upper.")
        if self.degrees is not None:
            if angles_in(self.degrees) is None:
                raise InputError(f"--degrees must be {_WORDS}; in the order of the two columns.")
            if self.chart not in (None, ",".join(self.angles or ())):
                raise InputError("--degrees and --as mean the same: give only one of them.")
        if self.angles is not None:
            object.__setattr__(self, "chart", ",".join(self.angles))
        if self.chart is not None:
            chart_named(self.chart)

    def having(self, **fields) -> "Layout":
        """Return the layout with other fields; a new ``chart`` clears ``degrees``."""
        return dataclasses.replace(self, **({"degrees": None} if "chart" in fields else {}), **fields)

    @property
    def angles(self) -> tuple[str, str] | None:
        """Name of the angle in each of the two columns."""
        return angles_in(self.chart if self.degrees is None else self.degrees)

    @property
    def of_axes(self) -> bool:
        """True if the angles describe axes rather than directions."""
        return any(sorted(self.angles or ()) == sorted(pair) for pair in OF_AXES)


def chosen_columns(layout: Layout, names: tuple[str, ...] | None, width: int) -> list[int] | None:
    """Return the places of the columns that make a record; None for all.

    Args:
        layout: of the call.
        names: those of the columns, if the file has them.
        width: how many columns there are.

    Raises:
        ValueError: a column that is not there or is named twice; or, without ``--columns``, a name that is no
            coordinate's.
    """
    labels = label_columns(layout, names, width)
    if layout.columns is not None:
        words = [word.strip() for word in layout.columns.split(",")]
        chosen = [place for word in words for place in _places(word, names, width)]
        if len(set(chosen)) < len(chosen):
            raise InputError(f"--columns {layout.columns} names a column twice.")
        for option, place in labels.items():
            if place in chosen:
                raise InputError(
                    f"--columns {layout.columns} holds the column of --{option}, which is not a coordinate; leave it "
                    "out."
                )
        return chosen
    taken = set(labels.values())
    left = [place for place in range(width) if place not in taken] if taken else None
    if names is None:
        return left
    names = tuple("x" if place in taken else name for place, name in enumerate(names))
    hours = [name for name in names if _IN_HOURS.fullmatch(name.strip())]
    if hours:
        raise InputError(f"its column '{hours[0]}' is in hours by its name: write degrees, 15 to an hour.")
    if layout.angles is not None:
        if len(left or names) == 2:
            return left
        pair = [name for word in layout.angles for name in names if _is(_angle(name), word)]
        if len(pair) == 2:
            raise InputError(
                f"has {width} columns, and --{_word(layout)} {','.join(layout.angles)} is of two: say --columns "
                f"{','.join(pair)}."
            )
    said = layout.chart in PERIODS  # of angles, then: their names are of such
    odd = [name for name in names if _NO_COORDINATE.fullmatch(name.strip()) and not (said and len(left or names) == 1)]
    angles = [name for name in names if _angle(name) is not None and not said]
    if angles:
        raise InputError(
            f"its columns {_listed(angles)} are angles by their names: say --degrees {_order(names)} for "
            f"{_kind_of_angles(names)} (and --columns, if there are more), or name them with --columns if they are "
            "coordinates."
        )
    of_torus = [name for name in names if _OF_A_TORUS.fullmatch(name.strip())]
    if said and of_torus and len(of_torus) < len(left or names):
        raise InputError(
            f"its columns {_listed(of_torus)} are angles by their names, but there are others: say which make a "
            f"record, such as --columns {','.join(of_torus)}."
        )
    if odd:
        good = [str(k) for k, name in enumerate(names, 1) if name not in odd and k - 1 not in taken]
        raise InputError(
            f"its columns {_listed(odd)} have names that coordinates rarely have: say with --columns which columns "
            f"make a record, such as --columns {_ranges(good)}."
        )
    return left


def label_columns(layout: Layout, names: tuple[str, ...] | None, width: int) -> dict[str, int]:
    """Return the places of the ``--person`` and ``--group`` columns, keyed by option.

    Raises:
        ValueError: there is no such column.
    """
    places = {}
    for option in ("person", "group"):
        wanted = getattr(layout, option)
        if wanted is None:
            continue
        try:
            found = _places(wanted, names, width)
        except InputError as error:
            raise InputError(str(error).replace("--columns", f"--{option}", 1)) from None
        if len(found) != 1:
            raise InputError(f"--{option} must be one column.")
        places[option] = found[0]
    return places


def check_angles(layout: Layout, names: tuple[str, ...]) -> None:
    """Refuse ``--degrees`` that contradicts the names of the two columns."""
    if layout.angles is None or len(names) != 2:
        return
    known = [_angle(name) for name in names]
    if not all(own is None or _is(own, said) for own, said in zip(known, layout.angles, strict=True)):
        raise InputError(
            f"--{_word(layout)} {','.join(layout.angles)} contradicts the names of the columns, {_listed(names)}: say "
            f"--degrees {_order(names)}."
        )


def _word(layout):
    return "as" if layout.degrees is None else "degrees"


def _is(own, said) -> bool:
    """Return whether a parsed name denotes the stated angle."""
    return own == said or (own == _AZIMUTH and said in TURNED)


def _angles(names) -> list[str | None]:
    """Return the angle each name denotes; an azimuth is resolved by the other column."""
    words = [_angle(name) for name in names]
    beside = next((_BESIDE[word] for word in words if word in _BESIDE), "lon")
    return [beside if word == _AZIMUTH else word for word in words]


def _listed(names):
    return ", ".join(f"'{name}'" for name in names[:4]) + (", ..." if len(names) > 4 else "")


def _order(names):
    """Return the pair of angles that the names denote; if they do not fit, a pair with the first."""
    words = _angles(names)
    known = [word for word in words if word is not None]
    pairs = (*OF_DIRECTIONS, *OF_AXES)
    if any(sorted(known[:2]) == sorted(pair) for pair in pairs):
        return ",".join(known[:2])
    pair = next(pair for pair in pairs if known[0] in pair)
    last = len(words) == 2 and words[0] is None  # it stands second
    return ",".join(pair if (pair[0] == known[0]) != last else pair[::-1])


def _kind_of_angles(names):
    return "axes" if any(word in pair for word in _angles(names) for pair in OF_AXES) else "directions"


def _angle(name) -> str | None:
    """Return the angle that a name denotes; None for no angle."""
    found = _ANGLE.fullmatch(name.strip())
    if found is None:
        return None
    word = found[1].lower()
    if word.startswith("dip") or _DIP_DIRECTION.search(name):
        return "dip" if word == "dip" else "dipdir"
    if word == "azimuth":
        return _AZIMUTH
    starts = {
        "ra": "ra",
        "right": "ra",
        "elev": "lat",
        **{own: own for own in ("lat", "dec", "inc", "trend", "plunge")},
    }
    starts["strike"] = "strike"
    return next((own for start, own in starts.items() if word.startswith(start)), "lon")


def _ranges(places):
    """Return the first run of consecutive numbers in the form of --columns."""
    numbers = [int(place) for place in places] or [1, 2]
    last = next((n for n, m in itertools.pairwise(numbers) if m != n + 1), numbers[-1])
    return f"{numbers[0]}-{last}" if last > numbers[0] else ",".join(map(str, numbers[:4]))


def _places(word, names, width):
    if names is not None and word in names:
        if names.count(word) > 1:
            raise InputError(f"--columns: several columns are called '{word}'; use their numbers.")
        if word.isdigit() and names.index(word) != int(word) - 1:
            raise InputError(f"--columns: '{word}' is the name of one column and the number of another; use ranges.")
        return [names.index(word)]
    ends = [(word[:place], word[place + 1 :]) for place, sign in enumerate(word) if sign == "-"]
    known = names or ()
    named = [pair for pair in ends if known.count(pair[0]) == known.count(pair[1]) == 1]
    if len(named) == 1:  # from one name to another
        first, last = (known.index(name) for name in named[0])
        if first > last:
            raise InputError(f"--columns: {word}: '{named[0][1]}' stands before '{named[0][0]}'.")
        return list(range(first, last + 1))
    found = _RANGE.fullmatch(word)
    if found is None:
        known = "has no names without --header" if names is None else "has no column of that name"
        raise InputError(f"--columns: '{word}' is neither a number, nor a range such as 3-18, and the file {known}.")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 1 <= first <= last <= width:
        other = "; if its cells have another delimiter, say it with --delimiter" if width == 1 else ""
        raise InputError(f"--columns: {word} must lie within 1-{width}, the columns of the file{other}.")
    return list(range(first - 1, last))
