"""Running a sweep into a folder: every cell once, whatever is killed when, with the same bytes at the end.

manifest.json      the sweep, its cells with sensitivity, scale and support, versions
cells/0003.parquet one row per replicate, written when a cell is done
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
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import matplotlib.figure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.experiments.replicates import Errors, run_replicates
from jaxgeodp.experiments.sweep import Cell, Sweep
from jaxgeodp.files import only_writer, write_atomically
from jaxgeodp.pictures.sweep import draw_sweep
from jaxgeodp.releases.law import PointLaw

_SCHEMA = pa.schema(
    [
        ("cell", pa.int32()),
        ("replicate", pa.int32()),
        ("distance", pa.float64()),
        ("euclidean", pa.float64()),
        ("on_manifold", pa.bool_()),
        ("proposals", pa.int32()),
    ]
)


class SweepResults(NamedTuple):
    """What `run_sweep` leaves."""

    folder: pathlib.Path  #: with the files that docs/sweeps.md lists
    #: one row per cell, with its public numbers, mean errors and their standard errors (``distance``, ``distance_se``,
    #: ...), or why it could not run (``refusal``); empty in all processes but the first
    summary: list[dict[str, Any]]


def run_sweep(sweep: Sweep, folder, progress: Callable[[str, int, int], None] | None = None) -> SweepResults:
    """Run all cells that the folder does not hold yet, and write the results.

    May be killed at any moment and called again: finished cells are kept, none is run twice, and the files are the same
    as without the interruption. Under `jax.distributed` every process calls it; the first one writes.

    Args:
        sweep: what to run.
        folder: created; must hold nothing or the same sweep, made with the same versions.
        progress: called as ``progress(label, replicates done, replicates in all)``.

    Returns:
        The folder, and one row for each cell.

    Raises:
        ValueError: the folder holds something else, another process writes into it, or no mechanism can be calibrated.
    """
    folder = pathlib.Path(folder)
    generator = sweep.generator()
    cells = sweep.cells()
    with jax.enable_x64(True):
        facts = [_facts(sweep, cell, generator.ball) for cell in cells]
    if all("refusal" in fact for fact in facts):
        raise InputError(f"sweep: no cell can run: {facts[0]['refusal']}")
    manifest = {
        "sweep": sweep.as_dict(),
        "fingerprint": sweep.fingerprint(),
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
        done, total = 0, sweep.replicates * sum("refusal" not in fact for fact in facts)
        for index, (cell, fact) in enumerate(zip(cells, facts, strict=True)):
            if "refusal" in fact:
                continue
            path = folder / "cells" / f"{index:04d}.parquet"
            if not _agreed(path.exists()):
                errors = _run(
                    sweep, cell, generator, progress and (lambda k, d=done, c=cell: progress(c.label, d + k, total))
                )
                if first:
                    _write_cell(path, index, errors)
            done += sweep.replicates
            if progress is not None:
                progress(cell.label, done, total)
        summary = _finish(folder, facts, sweep) if first else []
    return SweepResults(folder, summary)


def _facts(sweep, cell: Cell, ball) -> dict[str, Any]:
    """Public numbers of a cell, or why it cannot run."""
    names = {"label": cell.label, "mechanism": cell.mechanism, "calibration": cell.calibration, "n": cell.n}
    names[cell.parameter] = cell.strength
    try:
        mechanism = sweep.mechanism(cell, ball)
        law = mechanism.law(cell.n)
        if isinstance(law, PointLaw):
            law.check()
    except InputError as refusal:
        return {**names, "refusal": str(refusal)}
    names["guarantee"] = mechanism.guarantee.record(law.terms.theorem)["kind"]
    if not isinstance(law, PointLaw):  # these depend on the ball that is found
        return {**names, "sensitivity": None, "scale": None, "support": None}
    return {
        **names,
        "sensitivity": law.terms.sensitivity,
        "scale": float(law.scale),
        "support": None if law.support is None else law.support.radius,
    }


def _run(sweep, cell, generator, progress):
    finished = 0

    def report(count):
        nonlocal finished
        finished += count
        if progress:
            progress(finished)

    mechanism = sweep.mechanism(cell, generator.ball)
    return run_replicates(mechanism, generator, cell.n, sweep.replicates, sweep.seed, cell.label, progress=report)


def _agreed(exists: bool) -> bool:
    """What the first process sees."""
    if jax.process_count() == 1:
        return exists
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(exists)))


def _open_together(folder, manifest, held):
    """`_open` in the first process; all of them refuse if it does, or if their manifests differ."""
    if jax.process_count() == 1:
        _open(folder, manifest, held)
        return
    from jax.experimental import multihost_utils

    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).digest()
    digests = multihost_utils.process_allgather(np.frombuffer(digest, np.uint8))
    if np.any(digests != digests[0]):
        raise InputError("sweep: the processes have different sweeps or versions; start them alike.")
    refusal = None
    if jax.process_index() == 0:
        try:
            _open(folder, manifest, held)
        except (InputError, OSError) as error:
            refusal = error
    if multihost_utils.broadcast_one_to_all(np.asarray(refusal is not None)):
        raise refusal or InputError("sweep: the first process refused its folder; see its message.")


def _open(folder, manifest, held):
    """Make the folder ready, and keep others out of it until ``held`` is closed."""
    folder.mkdir(parents=True, exist_ok=True)
    held.enter_context(only_writer(folder))
    path = folder / "manifest.json"
    for entry in (path, folder / "cells", *folder.glob("cells/*.parquet")):
        if entry.is_symlink():
            raise InputError(f"{entry} is a link, but a sweep writes into its own folder alone; name another folder.")
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            known = None
        if known != json.loads(json.dumps(manifest)):
            raise InputError(f"{folder} holds another sweep, or one of other versions; name another folder.")
    elif any(not entry.name.startswith(".part-") for entry in folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no sweep; name another folder.")
    for leftover in (*folder.glob(".part-*"), *folder.glob("cells/.part-*")):
        leftover.unlink()
    if not path.exists():
        write_atomically(path, json.dumps(manifest, indent=1))
    (folder / "cells").mkdir(exist_ok=True)


def _write_cell(path, index, errors: Errors):
    count = len(errors.distance)
    columns = [np.full(count, index, np.int32), np.arange(count, dtype=np.int32), *errors]
    table = pa.table([pa.array(c, field.type) for c, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    write_atomically(path, sink.getvalue())


def _read_cell(path, index, replicates):
    """The rows of a cell that is done, if they are what `_write_cell` wrote."""
    table = None
    with contextlib.suppress(Exception), pq.ParquetFile(path) as file:  # Arrow raises whatever it meets
        if file.metadata.num_rows == replicates and file.schema_arrow.equals(_SCHEMA):
            table = file.read()
    if table is None or not _is_cell(table, index, replicates):
        raise InputError(f"{path} is damaged, or of another sweep; remove it, and the sweep runs that cell again.")
    return table


def _is_cell(table, index, replicates):
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return (
        not any(column.null_count for column in table.columns)
        and bool(np.all(columns["cell"] == index))
        and np.array_equal(columns["replicate"], np.arange(replicates))
    )


def _finish(folder, facts, sweep):
    """results.parquet, summary.csv and the figure, from the cells' files."""
    rows = []
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        for index, fact in enumerate(facts):
            path = folder / "cells" / f"{index:04d}.parquet"
            if "refusal" in fact:
                rows.append(fact)
                continue
            table = _read_cell(path, index, sweep.replicates)
            writer.write_table(table)
            rows.append({**fact, **_summary(table)})
    write_atomically(folder / "results.parquet", sink.getvalue())
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(folder / "summary.csv", text.getvalue())
    picture = io.BytesIO()
    figure = matplotlib.figure.Figure(figsize=(11.5, 4.6), layout="constrained")
    draw_sweep(rows, _title(sweep), sweep.replicates, figure)
    figure.savefig(picture, format="png", dpi=130, metadata={"Software": None})
    write_atomically(folder / "errors.png", picture.getvalue())
    return rows


def _title(sweep):
    size = "" if sweep.size is None else f"({sweep.size})"
    return f"{sweep.manifold}{size}, public radius {sweep.radius:g}, data: {sweep.data}"


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
