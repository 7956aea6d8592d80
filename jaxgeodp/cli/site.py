"""``jaxgeodp site``: a release of records at several sites, none of which shows its sums."""

import os
import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, BallOptions, radius_of
from jaxgeodp.cli.choice import Choice
from jaxgeodp.cli.completion import summed_names
from jaxgeodp.cli.conventions import furnished_as
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.registries import listed
from jaxgeodp.cli.room import numbers_of, record_room
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.files import all_reserved, reserved
from jaxgeodp.io.records import Source
from jaxgeodp.manifolds.described import describe
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.mechanisms.names import mechanism_named, names_with
from jaxgeodp.nested_lists import from_lists, to_lists
from jaxgeodp.privacy.clock import now
from jaxgeodp.releases.mechanism import finished

site_app = typer.Typer(
    help="One release of records at several sites, none of which shows its sums; see docs/scale.md#several-sites.",
    no_args_is_help=True,
    add_completion=False,
)
# Bytes of a masked number as text, and of all else in a masked state.
_NUMBER_ROOM, _WORDS_ROOM = 70, 2**18


@site_app.command()
@furnished_as("site key")
def key(
    name: Annotated[str, typer.Argument(help="Name of this site: letters, digits and _.-")],
    out: Annotated[pathlib.Path, typer.Option(help="Folder for NAME.key, which is secret, and NAME.pub.")],
) -> None:
    """Make the keys of this site, for one release: send NAME.pub to all other sites."""
    with one_sentence_errors():
        from jaxgeodp.sites import SiteKey

        own = SiteKey.new(name)
        paths = out / f"{name}.key", out / f"{name}.pub"
        if not out.is_dir():
            raise InputError(f"--out {out}: is not a folder; create it first.")
        if taken := next((path for path in paths if os.path.lexists(path)), None):
            raise InputError(
                f"--out {out}: {taken.name} exists; name another folder for the new key, or remove that file."
            )
        for path in paths:
            check_writable(path, False, [])
        own.save(paths[0])
        own.public.save(paths[1])
    say(f"Wrote {paths[0]}, which is secret, and {paths[1]}, which all other sites need.")


@site_app.command()
@furnished_as("site prepare")
@reads("Records of this site, as of 'jaxgeodp release'.", "expect_n", "person")
def prepare(
    source: Source,
    key_file: Annotated[pathlib.Path, typer.Option("--key", help="The secret key of this site; it is used up.")],
    sites: Annotated[str, typer.Option(help="The public keys of all sites, this one's too: files with commas.")],
    out: Annotated[pathlib.Path, typer.Option(help="The masked state to write, for who combines.")],
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"{listed(names_with('prepare'))}, the same at all sites; wrapped noise is for flat spaces only.",
            autocompletion=summed_names,
        ),
    ] = "tangent",
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter; the same at all sites.")] = None,
    mu: Annotated[float | None, typer.Option(help="In place of epsilon; the same at all sites.")] = None,
    center: CENTER = None,
    radius: Annotated[str | None, typer.Option(help="Radius of the public ball.")] = None,
    ball: BALL = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
) -> None:
    """Mask what the records of this site come to: nothing of it shows without all other sites."""
    with one_sentence_errors():
        from jaxgeodp.sites import PublicSite, SiteKey, check_sites, masked
        from jaxgeodp.sites.keys import use_up

        choice = Choice(mechanism, epsilon, mu, "mean", "tight", 0.0, "grid")
        if choice.mechanism == "auto":
            raise InputError(f"--mechanism must be {listed(names_with('prepare'))}, the same at all sites.")
        if "auto" in (center, radius):
            raise InputError(
                "--center auto and --radius auto are for a single site; several sites name a public ball, or find one "
                "in Python with jaxgeodp.locating.SearchInRounds (docs/scale.md#several-sites)."
            )
        public = BallOptions(center, radius_of(center, radius, ball, None), ball)
        public.check(source.manifold)
        others = [pathlib.Path(word.strip()) for word in sites.split(",") if word.strip()]
        check_writable(out, overwrite, [*source.inputs, *public.files, key_file, *others])
        everyone, own = [PublicSite.load(path) for path in others], SiteKey.load(key_file)
        with OUTPUT.status("Compiling and adding up ..."), quiet_libraries(), jax.enable_x64(True):
            space, records = source.records(least=1)
            if public.shape(space) is not None:
                raise InputError(
                    "--ball: its file has a shape, which sites do not support; make a ball without --shape."
                )
            persons = source.persons(len(records))
            chosen, _ = choice.made(public.ball(space, source.layout), len(records))
            about = _described(choice, chosen)
            # What can be refused is refused while the key is still of use.
            check_sites(own, everyone)
            state = chosen.prepare(records, persons=persons)
            room = _WORDS_ROOM + _NUMBER_ROOM * (2 + state.sums.size)
            with reserved(out, room, private=True, replace=overwrite) as write:
                result = masked(state, use_up(key_file), everyone, about)
                write(result.to_json())
    say(
        f"Wrote {out}: the masked sums of {result.site}, one of {len(result.sites)} sites, for "
        f"{type(chosen).__name__} on {space}, {choice.parameter} = {choice.strength!r}. Session "
        f"{_spelled(result.session)}: all sites must see the same. The key is used up. The file is for who combines, "
        "and nobody else."
    )


@site_app.command()
@furnished_as("site combine")
def combine(
    states: Annotated[list[pathlib.Path], typer.Argument(help="The masked states of all sites.")],
    out: Annotated[pathlib.Path, typer.Option(help="The release record to write (JSON).")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the mean of all records of all sites, as if they had been in one place."""
    with one_sentence_errors():
        from jaxgeodp.sites import MaskedState, combined

        check_writable(out, overwrite, [*states, *([] if ledger is None else [ledger])])
        found = [MaskedState.load(path) for path in states]
        together = combined(found)
        book = opened_ledger(ledger, dataset)
        with OUTPUT.status("Compiling and sampling ..."), quiet_libraries(), jax.enable_x64(True):
            mechanism = _mechanism(found[0])
            more = {"sites": len(found), "session": found[0].session}
            sizes = {out: record_room(numbers_of(mechanism.ball.manifold))}
            with all_reserved(sizes, replace=overwrite, changed=now()) as write:
                result = finished(mechanism, together, book, more)
                write[out](result.to_json())
    say(
        f"Wrote {out}: {result.record['mechanism']} on {mechanism.ball.manifold}, n = {result.record['n']} at "
        f"{len(found)} sites, scale {result.record['scale']:.4g}. Session {_spelled(found[0].session)}."
    )


def _spelled(session):
    """Return all of it, in groups: two lists of keys that agree in a part could be found by half as many bits."""
    return "-".join(session[place : place + 4] for place in range(0, len(session), 4))


def _described(choice, mechanism) -> dict:
    """Return the words and numbers from which the mechanism is made again."""
    ball = {"center": to_lists(mechanism.ball.center), "radius": mechanism.ball.radius}
    return {
        "mechanism": choice.mechanism,
        "strength": choice.strength,
        "manifold": describe(mechanism.ball.manifold.of_values),
        "ball": ball,
    }


def _mechanism(state):
    """Return the mechanism that the sites have prepared for.

    Raises:
        ValueError: the words describe no mechanism.
    """
    try:
        about = state.public
        manifold = manifold_of(about["manifold"])
        kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
        ball = GeodesicBall(manifold, from_lists(about["ball"]["center"], kind), float(about["ball"]["radius"]))
        return mechanism_named(about["mechanism"], ball, float(about["strength"]))
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("these states do not name their mechanism; combine them in Python.") from None
