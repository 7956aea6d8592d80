"""``jaxgeodp synthesize``: records that are nobody's, of a description; nothing is spent."""

import pathlib
from typing import Annotated

import jax
import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.files import write_atomically

_MOST = 10**8


def synthesize(
    folder: Annotated[pathlib.Path, typer.Argument(help="What 'jaxgeodp describe' wrote.")],
    out: Annotated[pathlib.Path, typer.Option(help="The file to write: .npy, or .csv or .parquet, a row a record.")],
    n: Annotated[int, typer.Option(help="How many records.")] = 1000,
    seed: Annotated[int | None, typer.Option(help="For the same records again; by default they are new.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
) -> None:
    """Draw synthetic records from the law that fits a description: no record is read, and nothing is spent."""
    with one_sentence_errors():
        if out.suffix.lower() not in (".npy", ".csv", ".parquet"):
            raise InputError(f"--out {out}: must end in .npy, .csv or .parquet.")
        if not 1 <= n <= _MOST:
            raise InputError(f"--n must be from 1 to {_MOST}, got {n}.")
        if seed is not None and not 0 <= seed < 2**32:
            raise InputError(f"--seed must be from 0 to {2**32 - 1}, got {seed}.")
        check_writable(out, overwrite, sorted(folder.glob("*.json")))
        from jaxgeodp.inference import Description
        from jaxgeodp.inference import synthesize as drawn_from
        from jaxgeodp.privacy.entropy import system_key

        with OUTPUT.status("Drawing ..."), quiet_libraries(), jax.enable_x64(True):
            found = Description.load(folder)
            records = drawn_from(found, n, system_key() if seed is None else jax.random.key(seed))
        write_atomically(out, _content(out, records), replace=overwrite)
    promise = found.guarantee
    kind = next(name for name in ("epsilon", "rho") if name in promise)
    say(
        f"Wrote {out}: {n} synthetic records on {found.manifold}, drawn from the law that fits {folder}; "
        f"they have its promise, {promise['kind']}, {kind} = {promise[kind]:g}."
    )


def _content(out, records) -> bytes:
    import io

    stream = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(stream, records)
        return stream.getvalue()
    if np.iscomplexobj(records):  # x and y of each landmark in turn
        records = np.stack([records.real, records.imag], axis=-1)
    columns = records.reshape(len(records), -1).T
    if out.suffix.lower() == ".csv":
        names = ",".join(f"x{place}" for place in range(len(columns)))
        rows = (",".join(map(repr, row)) for row in columns.T.tolist())
        return "\n".join([names, *rows, ""]).encode()
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({f"x{place}": column for place, column in enumerate(columns)}), stream)
    return stream.getvalue()
