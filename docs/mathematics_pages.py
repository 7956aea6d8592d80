"""The site's page for each section of mathematics.md: one with 3,000 formulas takes a browser twenty seconds.

The file stays the one source, and is read in the repository as it is. While the site is built its sections lie in a
folder of pages; links to it, and within it, lead to them.
"""

import pathlib
import re
import shutil

_HEADING = re.compile(r"^(#{2,4}) +(.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
_TO_IT = re.compile(r"\]\(((?:\.\./)*(?:docs/)?)mathematics\.md(#[^)\s]*)?\)")
_FOLDER = "mathematics-pages"


def setup(app):
    """Registers the pages with a build."""
    app.connect("builder-inited", _written)
    app.connect("source-read", _linked)
    app.connect("build-finished", _removed)


def _written(app):
    folder = _folder(app)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = (folder.parent / "mathematics.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    titles = [section.partition("\n")[0].lstrip("#0123456789. ") for section in sections]
    names = [f"{number:02}-{_slug(title)[:40].strip('-')}" for number, title in enumerate(titles, 1)]
    places = {
        _slug(heading[2]): name
        for name, section in zip(names, sections, strict=True)
        for heading in _HEADING.finditer(section)
    }
    app.mathematics_places = places

    def own(text):
        def moved(link):
            if link[1]:
                return f"](../{link[1]}{link[2] or ''})"
            return f"]({places[link[2][1:]]}.md{link[2]})" if link[2] and link[2][1:] in places else link[0]

        return _LINK.sub(moved, text)

    for name, section in zip(names, sections, strict=True):
        (folder / f"{name}.md").write_text(own(re.sub(r"^#(?=#+ )", "", section, flags=re.MULTILINE)), encoding="utf-8")
    tree = "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```"])
    (folder / "index.md").write_text(f"{own(head)}\n{tree}\n", encoding="utf-8")


def _linked(app, name, source):
    """Links to the file lead to its pages."""

    def moved(link):
        page = app.mathematics_places.get((link[2] or "#")[1:])
        return f"]({link[1]}{_FOLDER}/{page or 'index'}.md{link[2] if page else ''})"

    if not name.startswith(f"docs/{_FOLDER}/"):
        source[0] = _TO_IT.sub(moved, source[0]).replace("\nmathematics\n", f"\n{_FOLDER}/index\n")


def _removed(app, failed):
    shutil.rmtree(_folder(app), ignore_errors=True)


def _folder(app):
    return pathlib.Path(app.confdir) / _FOLDER


def _slug(title: str) -> str:
    """As MyST names headings."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower().replace(" ", "-"))
