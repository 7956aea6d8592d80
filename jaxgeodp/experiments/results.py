"""Resumable sweeps in a folder: every cell runs once, with the same bytes after any interruption.

manifest.json      the sweep, its cells with sensitivity, scale and support, versions
cells/0003.parquet one row per replicate with the cell's names, written when a cell is done
results.parquet    all cells, when all are done
summary.csv        one line per cell: mean errors with standard errors
errors.png         mean errors against n, geodesic and Euclidean
"""

import contextlib
import csv
import hashlib
import importlib.metadata
import io
import json
import math
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import matplotlib.figure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.experiments.plans import Plan, planned_cells, planned_sweep
from jaxgeodp.experiments.replicates import Errors
from jaxgeodp.experiments.sweep import Sweep
from jaxgeodp.files import only_writer, write_atomically
from jaxgeodp.pictures.sweep import draw_sweep

_NAMES = ("label", "mechanism", "calibration", "n", "epsilon", "mu")
_SCHEMA = pa.schema(
    [
        ("label", pa.dictionary(pa.int32(), pa.string())),
        ("mechanism", pa.dictionary(pa.int32(), pa.string())),
        ("calibration", pa.dictionary(pa.int32(), pa.string())),
        ("n", pa.int32()),
        ("epsilon", pa.float64()),
        ("mu", pa.float64()),
        ("replicate", pa.int32()),
        ("distance", pa.float64()),
        ("euclidean", pa.float64()),
        ("on_manifold", pa.bool_()),
        ("proposals", pa.int32()),
    ]
)


class SweepResults(NamedTuple):
    """Result of `run_sweep`."""

    folder: pathlib.Path  #: with the files that docs/sweeps.md lists
    #: one row per cell, with its public numbers, mean errors and their standard errors (``distance``, ``distance_se``,
    #: ...), or why it could not run (``refusal``); empty in all processes but the first
    summary: list[dict[str, Any]]


def run_sweep(
    cells: Sweep | Iterable[tuple],
    folder,
    replicates: int | None = None,
    seed: int | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> SweepResults:
    """Run all cells that the folder lacks, and write the results.

    May be killed at any moment and called again: finished cells are kept, none is run twice, and the files are the same
    as without the interruption. Under `jax.distributed` every process calls it; the first one writes.

    Args:
        cells: a `Sweep`, or cells of one's own: tuples (label, mechanism, generator, n) or with the manifold as fifth
            entry. ``mechanism`` is a `Mechanism` for the Frechet mean, or a function ``draw(key, points) -> value`` of
            points (n, \\*shape); ``generator`` is a `Generator`, or a function ``generator(key, n) -> points``. Both
            are traced by JAX. Replicate j depends on seed, label, n and j alone, its data on seed and j. Rows have the
            mechanism's epsilon or mu; of a function its attributes of these names, if there are any.
        folder: created; must hold nothing or the same cells, which compute the same with the same versions.
        replicates: independent data sets per cell; a `Sweep` has its own.
        seed: all numbers follow from it, 0 by default; a `Sweep` has its own.
        progress: called as ``progress(label, replicates done, replicates in all)``.

    Returns:
        The folder, and one row for each cell.

    Raises:
        ValueError: the folder holds something else, another process writes into it, no mechanism can be calibrated, a
            cell is none, or its values are not finite.
    """
    if isinstance(cells, Sweep):
        if replicates is not None or seed is not None:
            raise InputError("run_sweep: a Sweep states its own replicates and seed; leave them out.")
        plan = planned_sweep(cells)
    elif replicates is None:
        raise InputError("run_sweep: replicates is needed, the number for each cell.")
    else:
        plan = planned_cells(cells, replicates, 0 if seed is None else seed)
    folder = pathlib.Path(folder)
    facts = [cell.facts for cell in plan.cells]
    if all("refusal" in fact for fact in facts):
        raise InputError(f"sweep: no cell can run: {facts[0]['refusal']}")
    manifest = {
        "sweep": plan.description,
        "versions": {
            "jaxgeodp": __version__,
            **{name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scikit-learn")},
            "platform": jax.default_backend(),
        },
        "cells": facts,
    }
    first = jax.process_index() == 0
    with contextlib.ExitStack() as held:
        _open_together(folder, manifest, held)
        done, total = 0, plan.replicates * sum("refusal" not in fact for fact in facts)
        for index, cell in enumerate(plan.cells):
            if "refusal" in cell.facts:
                continue
            report = _Report(progress, cell.name, done, total)
            path = folder / "cells" / f"{index:04d}.parquet"
            if not _agreed(path.exists()):
                with jax.enable_x64(True):
                    errors = cell.run(report.more)
                if first:
                    _write_cell(path, cell.facts, errors)
            done += plan.replicates
            report.all(done)
        summary = _finish(folder, plan) if first else []
    return SweepResults(folder, summary)


class _Report:
    """Progress report of replicates done in a cell."""

    def __init__(self, progress, label, before, total):
        self.progress, self.label, self.done, self.total = progress, label, before, total

    def more(self, count):
        self.all(self.done + count)

    def all(self, count):
        self.done = count
        if self.progress is not None:
            self.progress(self.label, count, self.total)


def _agreed(exists: bool) -> bool:
    """Return the first process's value in all processes."""
    if jax.process_count() == 1:
        return exists
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(exists)))


def _open_together(folder, manifest, held):
    """Run `_open` in the first process; refuse in all if it refuses, or if manifests differ."""
    if jax.process_count() == 1:
        _open(folder, manifest, held)
        return
    from jax.experimental import multihost_utils

    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).digest()
    digests = multihost_utils.process_allgather(np.frombuffer(digest, np.uint8))
    if np.any(digests != digests[0]):
        raise InputError("sweep: the processes have different sweeps or versions; start all with the same.")
    refusal = None
    if jax.process_index() == 0:
        try:
            _open(folder, manifest, held)
        except (InputError, OSError) as error:
            refusal = error
    if multihost_utils.broadcast_one_to_all(np.asarray(refusal is not None)):
        raise refusal or InputError("sweep: the first process refused its folder; see its message.")


def _open(folder, manifest, held):
    """Prepare and lock the folder until ``held`` is closed."""
    folder.mkdir(parents=True, exist_ok=True)
    held.enter_context(only_writer(folder))
    path = folder / "manifest.json"
    for entry in (path, folder / "cells", *folder.glob("cells/*.parquet")):
        if entry.is_symlink():
            raise InputError(f"{entry} is a link, but a sweep writes only into its own folder; name another folder.")
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            known = None
        if known != json.loads(json.dumps(manifest)):
            raise InputError(f"{folder} holds another sweep, or one made with other versions; name another folder.")
    elif any(not entry.name.startswith(".part-") for entry in folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no sweep; name another folder.")
    for leftover in (*folder.glob(".part-*"), *folder.glob("cells/.part-*")):
        leftover.unlink()
    if not path.exists():
        write_atomically(path, json.dumps(manifest, indent=1))
    (folder / "cells").mkdir(exist_ok=True)


def _write_cell(path, facts, errors: Errors):
    count = len(errors.distance)
    values = [*([facts.get(name)] * count for name in _NAMES), np.arange(count, dtype=np.int32), *errors]
    table = pa.table([pa.array(v, field.type) for v, field in zip(values, _SCHEMA, strict=True)], schema=_SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    write_atomically(path, sink.getvalue())


def _read_cell(path, facts, replicates):
    """Return the rows of a finished cell; refuse a file that `_write_cell` did not write for it."""
    table = None
    with contextlib.suppress(Exception), pq.ParquetFile(path) as file:  # Arrow raises whatever it meets
        if file.metadata.num_rows == replicates and file.schema_arrow.equals(_SCHEMA):
            table = file.read()
    if table is None or not _is_cell(table, facts, replicates):
        raise InputError(
            f"{path} is damaged or belongs to another sweep; remove it, and the sweep runs that cell again."
        )
    return table


def _is_cell(table, facts, replicates):
    numbers = [table[name] for name in table.column_names if name not in _NAMES]
    return (
        not any(column.null_count for column in numbers)
        and all(table[name].unique().to_pylist() == [facts.get(name)] for name in _NAMES)
        and np.array_equal(table["replicate"].to_numpy(), np.arange(replicates))
    )


def _finish(folder, plan: Plan):
    """Write results.parquet, summary.csv and the figure, from the cells' files."""
    rows = []
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        for index, cell in enumerate(plan.cells):
            path = folder / "cells" / f"{index:04d}.parquet"
            if "refusal" in cell.facts:
                rows.append(cell.facts)
                continue
            table = _read_cell(path, cell.facts, plan.replicates)
            writer.write_table(table)
            rows.append({**cell.facts, **_summary(table)})
    write_atomically(folder / "results.parquet", sink.getvalue())
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(folder / "summary.csv", text.getvalue())
    picture = io.BytesIO()
    figure = matplotlib.figure.Figure(figsize=(11.5, 4.6), layout="constrained")
    draw_sweep(rows, [cell.line for cell in plan.cells], plan.title, plan.replicates, figure)
    figure.savefig(picture, format="png", dpi=130, metadata={"Software": None})
    write_atomically(folder / "errors.png", picture.getvalue())
    return rows


def _summary(table):
    distance, euclidean = (table[name].to_numpy() for name in ("distance", "euclidean"))
    inside = table["on_manifold"].to_numpy()
    known = distance[np.isfinite(distance)]
    return {
        "replicates": len(distance),
        "distance": known.mean() if known.size else math.nan,
        "distance_se": known.std(ddof=1) / math.sqrt(known.size) if known.size > 1 else math.nan,
        "euclidean": euclidean.mean(),
        "euclidean_se": euclidean.std(ddof=1) / math.sqrt(euclidean.size) if euclidean.size > 1 else math.nan,
        "on_manifold": inside.mean(),
        "proposals": table["proposals"].to_numpy().mean(),
    }
