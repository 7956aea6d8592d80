"""One HTML page about a mean with its spread: the mean, its region, and where most of the spread lies."""

import html

from jaxgeodp.pictures.drawn import encoded_picture
from jaxgeodp.pictures.page import STYLE, table


def page_of_description(
    mean: dict, rows: dict[str, str], geodesics: list[tuple[str, list[dict]]], made: dict[str, str] | None = None
) -> str:
    """A page about a released mean with its spread, such as `jaxgeodp.inference.describe` gives both.

    Args:
        mean: the record of the released mean.
        rows: what is said of it, by name.
        geodesics: of some principal geodesics a title, and records whose values are points along each.
        made: how its parts were made and what is supposed of them, by name, if the page is to say it.

    Returns:
        HTML that needs no other file and loads nothing.
    """
    name = html.escape(mean["manifold"]["name"])
    parts = [
        f"<h2>{html.escape(title)}</h2><p>{''.join(_image(record, 'point') for record in records)}</p>"
        for title, records in geodesics
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>A private mean and its spread</title>'
        f"<style>{STYLE} p img{{max-width:32%}}</style><h1>A private mean on {name}, and its spread</h1>"
        f"{_image(mean, 'the released mean')}<h2>In numbers</h2>{table(rows)}{''.join(parts)}"
        f"{f'<h2>How it was made</h2>{table(made)}' if made else ''}</html>\n"
    )


def _image(record, words):
    return f'<img alt="{words}" src="data:image/png;base64,{encoded_picture(record)}">'
