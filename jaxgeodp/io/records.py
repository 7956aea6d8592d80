"""Records in files, as points of a manifold.

What is refused is the format alone, which is public; see `tables`. The functions behind `read` name options as the
command line does, which calls them, too.
"""

import contextlib
import dataclasses
import functools
import glob
import os
import pathlib
import re
from collections.abc import Callable, Iterator

import numpy as np

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError, many
from jaxgeodp.io.charts import NAMES, PERIODS, chart_named, in_its_size
from jaxgeodp.io.column_names import check_names
from jaxgeodp.io.csv_files import TABLES
from jaxgeodp.io.layout import Layout, option_of
from jaxgeodp.io.orders import OF_MATRICES
from jaxgeodp.io.parquet import claimed, parquet_blocks
from jaxgeodp.io.preparing import Preparation, preparation
from jaxgeodp.io.tables import (
    Numbers,
    about,
    arranged,
    check_manifold,
    columns_of,
    kind_of,
    read_labels,
    read_numbers,
    readable,
    wanted_columns,
)
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import points_on, records_in

# So many rows, and more columns, are records side by side.
_MOST_TURNED = 4
# By their words for --delimiter.
_MARKS = ((";", ";"), ("tab", "\t"), ("space", " "), ("|", "|"))
# Whose records are never single numbers.
_OF_SEVERAL = ("rotations", "rigidmotions", "shapes", "shapes3d", "grassmann", "hyperbolic")
# Numbers that are triangular, of one size, and square, of another.
_OF_TWO_SIZES = {36: (8, 6), 1225: (49, 35)}
_AN_ANGLE = "if it is an angle, say --manifold circle and its unit, --as degrees."
_OF_ONE_COLUMN = {
    "euclidean": "if a record is one number, say --size 1.",
    "torus": _AN_ANGLE,
    "sphere": _AN_ANGLE,
    "axes": "of an axis in the plane give the two coordinates.",
}
_KEYWORDS = (*(field.name for field in dataclasses.fields(Layout)), "manifold", "template", "missing")
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(map(option_of, _KEYWORDS))})\b")


def read(
    path: str | os.PathLike,
    manifold: Manifold | str,
    *,
    template: str | os.PathLike | None = None,
    missing: str = "center",
    **options,
) -> np.ndarray | RecordBlocks:
    """Read the records of a file as ``jaxgeodp release`` does: points of a manifold, as mechanisms take them.

    What is public may be refused: how the file is laid out. What a record says never is. A cell that is no number is
    NaN, a line of another width a record of NaN, and such a record counts as the centre of the ball in a release.

    Args:
        path: of a file: .npy, .npz, .csv, .tsv, .txt (also .csv.gz), .parquet, .tps, .nts, .dta, and with
            ``pip install "jaxgeodp[files]"`` .xlsx, .mat, .h5; or a folder with a file for each record, .npy, .csv,
            .mrk.json, .fcsv, .pp and others; or a pattern of Parquet files, ``"part-*.parquet"``, whose records are
            read block by block, as often as a release with ``numerics="grid"`` needs them.
        manifold: a `Manifold`, or its name on the command line: ``"spd"``, whose size the file says, ``"sphere(2)"``,
            ``"sphere(2) * spd(3)"``.
        template: a file with public landmarks (k, 2) or (k, 3). On Euclidean space every record is superimposed on
            them and scaled to their centroid size.
        missing: what a record counts as that misses landmarks: ``"center"``, or ``"template"`` to take them from the
            template, laid over those that are there.
        **options: those of the command line that say how the file is laid out, with the same words:
            ``array``, the name of one in a .npz, .mat or .h5 file, or of a sheet; ``header=True``, the first line of a
            table names columns; ``delimiter``, a character, ``"tab"`` or ``"space"``; ``decimal``, ``"."`` or ``","``;
            ``columns``, those that make a record, ``"3-18"`` or ``"x1,y1,x2,y2"``; ``size``, which a name leaves out
            and records must have; ``triangle``, ``"lower"`` or ``"upper"``, that rows of symmetric matrices hold;
            ``chart``, how points are written other than in the manifold's own coordinates, see `from_chart`, or the
            unit of angles on a circle or torus, ``"degrees"``, ``"radians"``, ``"hours"`` or ``"turns"``;
            ``degrees``, the same for directions, two angles in the order of their columns, ``"lat,lon"``;
            ``expect_n``, how many records there must be; ``person`` and ``group``, columns of labels, which are no
            coordinates.

    Returns:
        (n, \\*shape), as float64 or complex128; `RecordBlocks` for a pattern.

    Raises:
        ValueError: unreadable file, unknown manifold, an option that does not exist or fit, or a shape that is no
            record's.

    Example:
        >>> import pathlib
        >>> _ = pathlib.Path("tensors.csv").write_text("id,xx,xy,yy\\n7,2.0,0.1,1.0\\n8,1.0,0.0,3.0\\n")
        >>> read("tensors.csv", "spd", header=True, columns="xx,xy,yy").shape
        (2, 2, 2)
    """
    with in_python_words():
        return Source.of(path, manifold, layout_of(options), template, missing).records()[1]


def layout_of(options: dict) -> Layout:
    """Return the layout with these fields; refuse names that it has not."""
    known = [own.name for own in dataclasses.fields(Layout)]
    for name in options:
        if name not in known:
            raise InputError(f"there is no option {name!r}; the layout of a file has {', '.join(known)}.")
    return Layout(**options)


@dataclasses.dataclass(frozen=True)
class Source:
    """Public description of where records come from and how they become points.

    Args:
        path: a file, or a pattern of Parquet files, which are taken in the order of their names.
        manifold: itself, or a name of `manifolds.names.MANIFOLDS`, with sizes or without, or a product, whose records
            are its flat rows; `manifolds.tables` says which shapes the others have.
        layout: how the numbers of the files are records.
        prepare: what these become, each on its own, before they are points.
        template: the file of landmarks by which they are prepared.
    """

    path: pathlib.Path
    manifold: Manifold | str
    layout: Layout
    prepare: Preparation | None = None
    template: pathlib.Path | None = None

    @classmethod
    def of(
        cls,
        path: str | os.PathLike,
        manifold: Manifold | str,
        layout: Layout,
        template: str | os.PathLike | None,
        missing: str,
    ) -> "Source":
        """Return the source with what ``--template`` and ``--missing`` say; see `preparation`."""
        check_manifold(manifold)
        public = None if template is None else pathlib.Path(template)
        return cls(pathlib.Path(path), manifold, layout, preparation(public, missing, manifold, layout), public)

    @property
    def center(self) -> np.ndarray | None:
        """The template as a record, if there is one."""
        return None if self.prepare is None else self.prepare.center

    @property
    def described(self) -> dict:
        """Return what a release record states about the source."""
        chart = {} if self.layout.chart is None else {"as": self.layout.chart}
        return chart if self.prepare is None else chart | self.prepare.described

    @property
    def several(self) -> bool:
        """True if the path is a pattern with ``*``, ``?`` or ``[``, and no file has that very name."""
        path = self.path
        return path.suffix.lower() == ".parquet" and any(sign in str(path) for sign in "*?[") and not path.exists()

    @property
    def files(self) -> list[pathlib.Path]:
        """The file, or those of the pattern."""
        return sorted(map(pathlib.Path, glob.glob(str(self.path)))) if self.several else [self.path]

    @property
    def inputs(self) -> list[pathlib.Path]:
        """All files that are read."""
        return [*self.files, *([] if self.template is None else [self.template])]

    def table(self) -> np.ndarray:
        """Return the numbers of the file as its layout arranges them: the columns that make a record."""
        kind = kind_of(self.manifold)
        if self.layout.triangle is not None and kind not in OF_MATRICES:
            raise InputError(f"--triangle is for --manifold {', '.join(OF_MATRICES)}, got {self.manifold}.")
        self._check_chart(kind)
        numbers = read_numbers(self.path, self.layout)
        self._check_width(numbers)
        table = arranged(numbers, self.layout, kind)
        with about(self.path):
            _, places, names = columns_of(numbers, self.layout)
            self._check_names(names, numbers.names or (), places)
        return table[:, None] if kind == "circle" and table.ndim == 1 else table

    def _check_width(self, numbers):
        """Refuse tables of one column (probably another delimiter), unless records are single numbers."""
        kind, layout, table = kind_of(self.manifold), self.layout, numbers.table
        said = layout.size is not None or layout.columns is not None or "(" in str(self.manifold) or kind == "circle"
        single = table.shape[1:] == (1,) and suffix_of(self.path) in TABLES and not self.path.is_dir()
        if single and (not said or kind in _OF_SEVERAL):
            way, name = _OF_ONE_COLUMN.get(kind, "a record has more numbers."), (numbers.names or ("",))[0]
            for word, mark in _MARKS:
                if mark in name:
                    raise InputError(f"{self.path}: its header has '{word}' between names: say --delimiter '{word}'.")
            raise InputError(
                f"{self.path}: has one column: if its cells have another delimiter, say it with --delimiter, such as "
                f"'space' or 'tab'; {way}"
            )

    def _check_chart(self, kind):
        """Refuse an ``--as`` that does not fit the manifold, and angles without their unit."""
        given = self.layout.chart
        word = "as" if self.layout.degrees is None else "degrees"
        if self.layout.of_axes and kind == "sphere":
            raise InputError(
                f"--{word} {given} are undirected lines or planes: say --manifold axes; for directions use dec,inc."
            )
        if given is not None and kind not in chart_named(given).kinds:
            known = [name for name in NAMES if kind in chart_named(name).kinds]
            own = f"of it one of {', '.join(known)}" if known else "which has no other way to be written"
            raise InputError(f"--{word} {given} is not for --manifold {self.manifold}, {own}.")
        parts = set() if kind else set(re.findall(r"[a-z]+", str(self.manifold).lower()))
        if parts & {"circle", "torus"}:
            raise InputError(
                f"--manifold {self.manifold}: the unit of angles in a product is not known; convert them to radians "
                "and use jaxgeodp from Python."
            )
        if given is None and kind in ("circle", "torus"):
            raise InputError(f"--as is needed for --manifold {kind}: the unit of its angles, {', '.join(PERIODS)}.")

    def _check_names(self, names, known, places=None):
        """Refuse an order that names contradict, unless the call states it by names."""
        kind, columns = kind_of(self.manifold), self.layout.columns
        if kind == "euclidean" and self.prepare is not None:
            kind = {2: "shapes", 3: "shapes3d"}[self.prepare.template.shape[1]]
        chosen = columns is not None and all(word.strip() in known for word in columns.split(","))
        chosen = chosen or (places is not None and places != sorted(places))  # an order, by numbers
        check_names(kind, names, chosen, self.layout.chart)

    def persons(self, n: int) -> np.ndarray | list | None:
        """Return whose each of the n records is; None without ``--person``; see `read_labels`."""
        return None if self.layout.person is None else read_labels(self.path, self.layout, "person", n)

    def array(self, least: int = 2) -> tuple[Manifold, np.ndarray]:
        """Return the manifold and the records (n, \\*shape) of one file; refuse an unexpected n.

        Args:
            least: how many there must be; 0 where n is private, which then decides nothing.
        """
        path, layout, table = self.path, self.layout, self.table()
        if table.ndim < 2 or table.shape[0] < least or 0 in table.shape[1:]:
            few, shape = (f"at least {least} records", table.shape) if least else ("records", many(table.shape))
            raise InputError(f"{path}: needs {few}, one per row, but holds an array of shape {shape}.")
        self._check_orientation(table, least == 0)
        if layout.expect_n not in (None, len(table)):
            raise InputError(
                f"{path}: holds {len(table)} records, not the {layout.expect_n} of --expect-n: look for a first line "
                "of names (--header), blank lines at the end, or lines that are missing."
            )
        if kind_of(self.manifold) == "euclidean" and table.ndim == 3 and self.prepare is None:
            raise InputError(
                f"{path}: holds an array of shape {many(table.shape)}: landmarks need --template, on which they are "
                "superimposed."
            )
        with about(path):
            return self._points(table)

    def _check_orientation(self, table, hidden):
        """Refuse tables that leave the size ambiguous or, by a public n, look transposed or like one matrix."""
        kind = kind_of(self.manifold)
        if self.layout.size is not None or "(" in str(self.manifold) or table.ndim != 2:
            return
        if kind in OF_MATRICES and not hidden and table.shape[0] == table.shape[1]:
            raise InputError(
                f"{self.path}: has as many rows as columns, as one matrix has: records are rows of a triangle (then "
                "say --size), an array (n, k, k), or a folder with a file for each matrix."
            )
        if kind in OF_MATRICES and table.shape[1] in _OF_TWO_SIZES:
            triangle, whole = _OF_TWO_SIZES[table.shape[1]]
            raise InputError(
                f"{self.path}: rows of {table.shape[1]} numbers are triangles of size {triangle}, or all numbers of "
                f"matrices of size {whole}: say --size."
            )
        if kind in ("sphere", "axes") and not hidden and table.shape[0] <= _MOST_TURNED < table.shape[1]:
            raise InputError(
                f"{self.path}: has {table.shape[0]} rows of {table.shape[1]} numbers: if its columns are the records, "
                f"transpose it; if not, say --size {table.shape[1] - 1}."
            )

    def records(
        self, least: int = 2, report: Callable[[int, int], object] | None = None
    ) -> tuple[Manifold, np.ndarray | RecordBlocks]:
        """Return the manifold and the records of one file, or those of several; see `array` and `blocks`."""
        return self.blocks(least, report) if self.several else self.array(least)

    def blocks(
        self, least: int = 2, report: Callable[[int, int], object] | None = None
    ) -> tuple[Manifold, RecordBlocks]:
        """Return the manifold and the records of all files, read block by block when needed.

        Args:
            least: how many there must be.
            report: told how many records of a pass are read, and of how many.
        """
        layout, paths = self.layout, self.files
        if not paths:
            raise InputError(f"{self.path}: no file matches this pattern; check it.")
        if layout.person is not None or layout.group is not None:
            raise InputError("--person and --group are for one file, not for several.")
        parts = []
        for path in paths:
            if not path.is_file():
                raise InputError(f"{path}: is not a file; the pattern must match files only.")
            with readable(path):
                parts.append((path, *claimed(path, functools.partial(wanted_columns, path, layout))))
        names = parts[0][2]
        for path, _, own in parts:
            if own != names:
                raise InputError(
                    f"{path}: has other columns than {paths[0]}; choose with --columns some that all files have."
                )
        n = sum(rows for _, rows, _ in parts)
        if n < least:
            raise InputError(f"{self.path}: needs at least {least} records, one per row, but holds {n}.")
        if layout.expect_n not in (None, n) and least > 0:
            raise InputError(f"{self.path}: holds {n} records, not the {layout.expect_n} of --expect-n.")

        def points_of(table):
            return self._points(
                arranged(Numbers(paths[0], table, tuple(names), chosen=True), layout, kind_of(self.manifold))
            )

        def blocks():
            done = 0
            for path, rows, own in parts:
                with readable(path):
                    for table in parquet_blocks(path, own, rows):
                        yield np.asarray(points_of(table)[1])
                        done += len(table)
                        if report is not None:
                            report(done, n)

        with about(paths[0]):
            self._check_names(tuple(names), tuple(names))
            space, one = points_of(np.zeros((1, len(names))))
        return space, RecordBlocks(blocks, (n, *one.shape[1:]), one.dtype)

    def _points(self, table):
        table = table if self.prepare is None else self.prepare(table)
        if isinstance(self.manifold, str):
            return records_in(self.manifold, table, self.layout.size)
        if self.layout.size is not None:
            raise InputError(f"--size is for names of manifolds; {self.manifold} has a size already, so leave it out.")
        return self.manifold, in_its_size(self.manifold, points_on(self.manifold, table), self.layout.chart)


def python_words(text: str) -> str:
    """Return a sentence with the options in it as keywords: ``--expect-n`` as ``expect_n``."""
    return _OPTION.sub(lambda found: "chart" if found[1] == "as" else found[1].replace("-", "_"), text)


@contextlib.contextmanager
def in_python_words() -> Iterator[None]:
    """Refuse with `python_words`."""
    try:
        yield
    except InputError as error:
        raise InputError(python_words(str(error))) from None
