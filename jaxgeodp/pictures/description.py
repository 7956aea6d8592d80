"""HTML page about a mean with its spread."""

from jaxgeodp.pictures.drawn import picture_of
from jaxgeodp.pictures.elements import element, image, page
from jaxgeodp.pictures.page import table
from jaxgeodp.pictures.style import STYLE

# Of three pictures beside each other.
_SMALL = 0.5


def page_of_description(
    mean: dict, rows: dict[str, str], geodesics: list[tuple[str, list[dict]]], made: dict[str, str] | None = None
) -> str:
    """Return a page about a released mean and its spread, as `jaxgeodp.inference.describe` gives them.

    Args:
        mean: the record of the released mean.
        rows: what is said of it, by name.
        geodesics: of some principal geodesics a title, and records whose values are points along each.
        made: how its parts were made and what is supposed of them, by name, if the page is to say it.

    Returns:
        HTML that needs no other file and loads nothing.
    """
    parts = [
        (element("h2", title), element("p", *(image(picture_of(record, _SMALL), "point") for record in records)))
        for title, records in geodesics
    ]
    title = f"Mean on {mean['manifold']['name']} with its spread, released with differential privacy"
    return page(
        title,
        element("h1", title),
        image(picture_of(mean), "the released mean"),
        element("h2", "In numbers"),
        table(rows),
        *(part for both in parts for part in both),
        *((element("h2", "How it was made"), table(made)) if made else ()),
        style=STYLE,
    )
