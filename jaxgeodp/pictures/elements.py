"""Elements of HTML pages. Text enters a page only through escaping.

A record may be anybody's file, so no string of it may become markup. An `Element` has a tag and attributes out of short
lists, and children: elements, or text, which is escaped like all values of attributes. Style and script of a page are
literal text of this package, which pyright checks (`typing.LiteralString`); the page's Content Security Policy, whose
hashes name these two, makes a browser refuse any other, and whatever would be loaded from elsewhere.
"""

import base64
import dataclasses
import hashlib
import html
import re
from typing import LiteralString

from jaxgeodp.checks import printable

_TAGS = frozenset(
    ("html", "head", "meta", "title", "body", "h1", "h2", "p", "code", "pre", "table", "tr", "td", "img", "canvas")
)
# Without children and end tag.
_EMPTY = frozenset(("meta", "img"))
# With a hyphen for each underscore; none of them makes a browser run its value, or load it from elsewhere than `image`.
_ATTRIBUTES = frozenset(
    (
        "lang",
        "charset",
        "name",
        "http_equiv",
        "content",
        "id",
        "width",
        "height",
        "alt",
        "src",
        "data_lines",
        "data_mesh",
    )
)
_ENDS = re.compile("</|<!--")
_PICTURE = "data:image/png;base64,"


@dataclasses.dataclass(frozen=True)
class Element:
    """An element of a page; `element` makes one.

    Attributes:
        tag: one of those that pages here consist of.
        children: elements, and text as it is to be read: it is escaped when the page is written.
        attributes: values by name, which are escaped, too.

    Raises:
        ValueError: another tag or attribute, children of an element that has none, or a picture that is no data.
    """

    tag: str
    children: tuple["Element | str", ...]
    attributes: dict[str, str]

    def __post_init__(self):
        if self.tag not in _TAGS or not self.attributes.keys() <= _ATTRIBUTES or (self.tag in _EMPTY and self.children):
            raise ValueError(f"Element: pages here have no such element, {self.tag!r}.")
        if not self.attributes.get("src", _PICTURE).startswith(_PICTURE):
            raise ValueError("Element: a picture of a page must be in the page.")

    def __str__(self) -> str:
        own = "".join(f' {name.replace("_", "-")}="{_escaped(value)}"' for name, value in self.attributes.items())
        if self.tag in _EMPTY:
            return f"<{self.tag}{own}>"
        return f"<{self.tag}{own}>{''.join(map(_written, self.children))}</{self.tag}>"


def element(tag: LiteralString, *children: Element | str, **attributes: str) -> Element:
    """Return an element of a page.

    Args:
        tag: such as "p".
        children: elements, and text as it is to be read.
        attributes: by name, with an underscore for a hyphen.

    Raises:
        ValueError: see `Element`.
    """
    return Element(tag, children, attributes)


def image(png: bytes, words: str) -> Element:
    """Return an embedded picture; ``words`` are its alternative text."""
    return element("img", alt=words, src=_PICTURE + base64.b64encode(png).decode())


def page(title: str, *body: Element, style: LiteralString, script: LiteralString = "") -> str:
    """Return a self-contained page that loads nothing and runs nothing but ``script``.

    Args:
        title: of the window.
        body: what is seen.
        style: CSS.
        script: JavaScript, run after the body is there; "" for none.

    Raises:
        ValueError: style or script could end before its end.
    """
    if _ENDS.search(style) or _ENDS.search(script):
        raise ValueError("page: style and script must not hold what ends them, '</' or '<!--'.")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
    )
    run = f"<script>{script}</script>" if script else ""
    return f'<!doctype html>\n<html lang="en">{head}<style>{style}</style>{element("body", *body)}{run}</html>\n'


def _source(text):
    """Return the content-security-policy source of an inline style or script."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'" if text else "'none'"


def _written(child):
    return str(child) if isinstance(child, Element) else _escaped(child)


def _escaped(text):
    """Return text escaped for HTML, with unprintable characters shown as codes."""
    return html.escape("\n".join(map(printable, str(text).split("\n"))))
