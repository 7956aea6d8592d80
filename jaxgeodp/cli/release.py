"""``jaxgeodp release``: a data file in, a private mean or median and its record out."""

import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, DOMAIN, RADIUS_OR_AUTO, BallOptions, radius_of
from jaxgeodp.cli.choice import AUTO, Choice, released_mechanisms, stated_error
from jaxgeodp.cli.cluster import prepared_on
from jaxgeodp.cli.completion import one_of, released_names
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_picture, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.group_options import ADJACENCY_OPTION, GROUPS, GROUPS_PER_PERSON, GroupOptions
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger, what_is_left
from jaxgeodp.cli.registries import listed, with_several
from jaxgeodp.cli.room import PICTURE_ROOM, numbers_of, record_room
from jaxgeodp.cli.streams import STANDARD, room_for
from jaxgeodp.cli.told import how_far, worth
from jaxgeodp.domains.persons import person_places
from jaxgeodp.io.records import Source
from jaxgeodp.io.tables import read_weights
from jaxgeodp.mechanisms.names import MECHANISMS, names_with
from jaxgeodp.privacy.clock import now
from jaxgeodp.privacy.silence import silent
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.releases.mechanism import check_finish, finished, release_in
from jaxgeodp.releases.ways import way_of
from jaxgeodp.releases.weights import checked_weights
from jaxgeodp.units import several, unit_of

_FILES = (
    "Records: .npy/.npz/.csv/.parquet (a line or row is a record), .tps/.nts; landmarks as (n,k,2), with --template "
    "also (n,k,3); SPD as (n,k,k) or vech rows. With --numerics grid also 'part-*.parquet', which need not fit into "
    "memory. A table of text may come from the standard input, '-'."
)


@reads(_FILES, "template", "missing", "expect_n", "person", "group")
def release(
    source: Source,
    out: Annotated[pathlib.Path, typer.Option(help="The release record to write (JSON); or '-'.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter, above 0, of all mechanisms but the Gaussian ones.")
    ] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms, above 0.")] = None,
    center: CENTER = None,
    radius: RADIUS_OR_AUTO = None,
    domain: DOMAIN = None,
    ball: BALL = None,
    statistic: Annotated[
        str,
        typer.Option(
            help=f"mean or, with {with_several('statistics')}, median.", autocompletion=one_of("mean", "median")
        ),
    ] = "mean",
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"{listed(released_mechanisms())}; or auto: the one with the least expected error, as 'jaxgeodp plan' "
            "finds it from public numbers, or, where the file --ball has a shape, "
            f"{listed(name for name, entry in MECHANISMS.items() if entry.shaped)} with it; or adaptive: in steps that "
            "fit the records.",
            autocompletion=released_names,
        ),
    ] = AUTO,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Of adaptive: suppose that records lie symmetrically about their mean.")
    ] = False,
    calibration: Annotated[
        str,
        typer.Option(
            help=f"tight or theorem, of {with_several('calibrations')}.", autocompletion=one_of("tight", "theorem")
        ),
    ] = "tight",
    delta: Annotated[
        float,
        typer.Option(
            help=f"Of {listed(names_with('delta'))}: above 0, a fixed number of proposals, so that time tells nothing."
        ),
    ] = 0.0,
    numerics: Annotated[
        str,
        typer.Option(
            help=f"idealized, or, of {listed([*names_with('grid'), 'at --mu adaptive'])}: grid, whose guarantee covers "
            "rounding, too.",
            autocompletion=one_of("idealized", "grid"),
        ),
    ] = "idealized",
    groups: GROUPS = None,
    groups_per_person: GROUPS_PER_PERSON = None,
    adjacency: ADJACENCY_OPTION = None,
    weights: Annotated[
        pathlib.Path | None,
        typer.Option(help="A file with a public, positive number for each record: the mean is weighted by them."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="With several files: the address of a Dask scheduler, 'tcp://...', whose workers read them; or local."
        ),
    ] = None,
    plot: Annotated[pathlib.Path | None, typer.Option(help="Also a picture of the value (.png).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out and --plot if they exist.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the Frechet mean or median of a data file with differential privacy for each record."""
    with one_sentence_errors():
        choice = Choice(mechanism, epsilon, mu, statistic, calibration, delta, numerics, symmetric)
        parted = GroupOptions(source.layout.group, groups, adjacency, groups_per_person)
        parted.check(mechanism, source.layout)
        public = BallOptions(center, radius_of(center, radius, ball, domain), ball, source.center)
        public.check(source.manifold)
        if source.several and numerics != "grid":
            raise InputError(
                f"{source.path}: several files need --numerics grid, whose integer sums are added file by file."
            )
        if source.several and (parted.names or parted.hides_number or weights is not None):
            raise InputError(
                f"{source.path}: several files cannot be combined with --group, --adjacency add-remove or --weights; "
                "give one file."
            )
        if dask is not None and (not source.several or center == "auto"):
            raise InputError("--dask needs several files, such as 'part-*.parquet', and a public ball.")
        inputs = [*source.inputs, *public.files, *(path for path in (weights, ledger) if path is not None)]
        if out == STANDARD and parted.names:
            raise InputError("--out -: each group has a record of its own, which needs a file; name one.")
        for path in parted.files(out).values():
            if path != STANDARD:
                check_writable(path, overwrite, inputs)
        if plot is not None and parted.names:
            raise InputError(
                "--plot is for one release, not for --group; draw each record with 'jaxgeodp show --html'."
            )
        if plot is not None:
            check_picture(plot, overwrite, [out, *inputs])
        if weights is not None and parted.hides_number and not parted.names:
            raise InputError("--weights need a public number of records; leave out --adjacency add-remove.")
        if weights is not None and parted.names:
            raise InputError(
                "--weights and --group exclude each other, as weights disclose the number of records; leave one of "
                "them out."
            )
        book = opened_ledger(ledger, dataset)
        promise = None if center == "auto" or parted.names or parted.hides_number else choice.promise
        if book is not None and promise is not None:
            book.check(promise)  # before the simulations of auto
        heavy = None if weights is None else read_weights(weights)
        # On the standard output: the error stream is closed while compiled code works.
        with OUTPUT.status("Compiling and sampling ...") as status, quiet_libraries(), jax.enable_x64(True):

            def report(done, total):
                status.update(f"Read {done:,} of {total:,} records ...")

            space, records = source.records(0 if parted.hides_number else 2, report)
            persons = source.persons(len(records))
            files = parted.files(out)
            sizes = dict.fromkeys(files.values(), record_room(numbers_of(space), parted.names))
            sizes |= {} if plot is None else {plot: PICTURE_ROOM}
            # The number of persons is public, as that of records is; where it is not, no choice depends on it.
            count = len(records) if persons is None else person_places("--person", persons, len(records))[1]
            # As many equal weights have the sensitivity of these.
            equal = count if heavy is None else checked_weights("--weights", heavy, count).count
            if center == "auto":
                chosen, why = choice.located(space, domain), {}
            else:
                chosen, why = choice.made(
                    public.ball(space, source.layout), equal, public.shape(space), heavy is None and dask is None
                )
            if dask is not None:
                check_finish(chosen, count, space.shape, book)  # before workers read anything
            more = why | source.described
            way = way_of(type(chosen).__name__, delta, numerics)
            if not parted.hides_number:
                more |= stated_error(chosen, equal, way)
            # Before the charge: a value that cannot be written would be lost.
            with room_for(sizes, replace=overwrite, changed=now()) as write:
                if parted.names:
                    words = parted.labels(source, len(records))
                    done = release_groups(
                        chosen,
                        records,
                        words,
                        parted.names,
                        book,
                        adjacency=parted.adjacency,
                        persons=persons,
                        groups_per_person=parted.per_person,
                        delta=delta,
                        numerics=numerics,
                        more=more,
                    )
                elif dask is not None:
                    status.update("Preparing on the workers ...")
                    state = prepared_on(dask, chosen, source)
                    done = {"": finished(chosen, state, book, more)}
                else:
                    result = release_in(
                        chosen,
                        way,
                        records,
                        book,
                        persons=persons,
                        adjacency=parted.adjacency,
                        weights=heavy,
                        more=more,
                    )
                    done = {"": result}
                for name, result in done.items():
                    write[files[name]](result.to_json())
                if plot is not None:
                    write[plot](_picture(done[""].record))
    tell(
        releases={str(files[name]): result.record for name, result in done.items()},
        notes=[line for result in done.values() for line in (*worth(result.record), *how_far(result.record))],
        ledger=None if ledger is None else str(ledger),
    )
    for name, result in done.items():
        _tell(files[name], result.record, choice, space, statistic)
    if book is None:
        say("No ledger was charged: nobody counts what was spent on these records (--ledger).")
    else:
        with one_sentence_errors():
            say(f"Charged to {ledger}, data set '{book.dataset}', which has {what_is_left(book)} left.")


def _picture(record) -> bytes:
    """Return the picture of a release; an empty one where its value cannot be drawn, as it has been paid for."""
    from jaxgeodp.pictures import picture_of  # Matplotlib

    with silent():
        try:
            return picture_of(record)
        except Exception:
            say("The released value cannot be drawn: the picture is empty.")
            return b""


def _tell(path, record, choice, space, statistic):
    own = record["statistic"]  # TangentLaplace has another mean, which auto may take
    what = own if isinstance(own, str) and own.startswith("mean of") else statistic
    whose = "" if (unit := unit_of(record)) == "record" else f" {several(unit)}"
    whose = f" places{' for' if whose else ''}{whose}" if "count" in record else whose
    if record["scale"] is None:
        made = "no ball about the centre that was found, which is released"
    else:
        made = f"sensitivity {record['sensitivity']['value']:.4g}, scale {record['scale']:.4g}"
    if "steps" in record:
        last = record["steps"][-1]
        made = f"in {len(record['steps'])} steps, the last of scale {last['scale']:.4g}"
    if "stages" in record:
        made = f"in a ball of radius {record['ball']['radius']:.4g} that was found, in which {made}"
    guarantee = record["guarantee"]
    also = f", ({guarantee['epsilon']:g}, {guarantee['delta']:g})-DP" if guarantee["kind"] == "approx" else ""
    also = f", {guarantee['rho']:g}-zCDP" if guarantee["kind"] == "zcdp" else also
    say(
        f"Wrote {path}: {what} by {record['mechanism']} on {space}, {choice.parameter} = "
        f"{choice.strength!r}{also}, n = {record['n']}{whose}, {made}."
    )
    for line in (*worth(record), *how_far(record)):
        say(line)
    if "stages" in record:
        say(
            "No expected error is stated, as it depends on the ball that is found and what is clipped there; for "
            "supposed records 'jaxgeodp plan --center auto --radius auto' simulates it."
        )
    if "count" in record and record["n"] == record["count"]["least"]:
        say(f"{record['n']} is the least number of places: there are too few records, at this budget, for more.")
