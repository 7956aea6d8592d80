"""A record, a description or a ledger may be anybody's file: no string of it becomes markup, a script or a formula."""

import base64
import copy
import functools
import hashlib
import html.parser
import io
import json
import operator
import shutil
import sqlite3
import xml.etree.ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from jaxgeodp import GeodesicBall, PureDP, Sphere, TangentLaplace
from jaxgeodp.cli import app
from jaxgeodp.inference import Description, describe
from jaxgeodp.pictures import draw_record, page_of
from jaxgeodp.pictures.elements import Element, element, image, page
from jaxgeodp.privacy.ledger import add_budget
from jaxgeodp.privacy.release import record_digest

PLANTED = (
    "<script>alert(1)</script>\"><img src=x onerror=alert(1)></pre>' onload=x </style></title><!--$\\frac{&lt;"
    "[bold]x[/bold][link=http://x]y[/link]\x1b[31m\r\n\u202e\ud800"
)
# How a terminal shows it: on one line, as it stands.
SHOWN = PLANTED.encode("unicode_escape").decode().replace("\\\\", "\\")
# All that pages consist of: tags and the names of their attributes.
OWN = {
    ("html", ("lang",)),
    ("meta", ("charset",)),
    ("meta", ("http-equiv", "content")),
    ("meta", ("name", "content")),
    ("h2", ("id",)),
    ("img", ("alt", "src")),
    ("canvas", ("id", "width", "height", "data-lines")),
    ("canvas", ("id", "width", "height", "data-mesh")),
    ("p", ("id",)),
    *((tag, ()) for tag in "head title style body h1 h2 p code pre table tr td script".split()),
}
ONCE = ("html", "head", "title", "style", "body", "h1")
BALL = GeodesicBall(Sphere(2), Sphere(2).origin, 0.5)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class Page(html.parser.HTMLParser):
    """What a browser finds in a page: tags, their attributes, and the text in them."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.declarations = [], [], {}, []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))
        self.texts.setdefault(tag, []).append("")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data

    def handle_comment(self, data):
        raise AssertionError("a comment")

    def handle_decl(self, decl):
        self.declarations.append(decl)


def check_page(text: str) -> Page:
    """Only the template's own tags, attributes, style and script are there, and its policy allows nothing else."""
    found = Page(text)
    assert {(tag, tuple(name for name, _ in attrs)) for tag, attrs in found.tags} <= OWN
    assert found.declarations == ["doctype html"] and all(len(found.texts[tag]) == 1 for tag in ONCE)
    (policy,) = [dict(attrs)["content"] for _, attrs in found.tags if "http-equiv" in dict(attrs)]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    scripts = found.texts.get("script", [])
    assert len(scripts) <= 1 and "alert" not in "".join(scripts + found.texts["style"])
    for rule, parts in (("style-src", found.texts["style"]), ("script-src", scripts)):
        digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
        assert rules[rule] == (f"'sha256-{digests[0]}'" if digests else "'none'")
    for tag, attrs in found.tags:
        assert tag != "img" or dict(attrs)["src"].startswith("data:image/png;base64,")
    return found


def check_terminal(output: str) -> bool:
    """Whether a planted string was shown; if so, as it stands."""
    assert all(c.isprintable() for c in output.replace("\n", ""))
    assert output.count("<script>") == output.count(SHOWN)
    return SHOWN in output


def places(document, path=()):
    """Paths to all keys and values of a JSON document; of a list of numbers to the first."""
    if isinstance(document, dict):
        yield "key", (*path, PLANTED)
        for key, value in document.items():
            yield "rename", (*path, key)
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        few = document[:1] if not any(isinstance(part, str | dict) for part in document) else document
        for place, value in enumerate(few):
            yield from places(value, (*path, place))
    yield "value", path


def planted(document, kind, path):
    """The document with the planted string at a path."""
    if not path:
        return PLANTED
    document = copy.deepcopy(document)
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    value = inner.pop(path[-1]) if kind == "rename" else PLANTED
    inner[PLANTED if kind == "rename" else path[-1]] = value
    return document


def test_pages_are_made_of_their_own_tags():
    text = str(element("p", PLANTED, element("code", PLANTED), id=PLANTED))
    assert [tag for tag, _ in Page(text).tags] == ["p", "code"]
    assert str(element("td", "a\nb\x00é")) == "<td>a\nb\\x00é</td>"
    assert str(image(b"a", '"')) == '<img alt="&quot;" src="data:image/png;base64,YQ==">'
    found = check_page(page(PLANTED, element("h1", ""), element("p", PLANTED), style="p{color:red}"))
    assert found.texts["title"] == found.texts["p"]
    wrong = (
        ("script", (), {}),
        ("style", ("p{}",), {}),
        ("a", (), {"href": "x"}),
        ("img", (), {"onerror": "x"}),
        ("img", (), {"src": "x.png"}),
        ("img", ("x",), {}),
        ("p", (), {'id="x" onload': "x"}),
    )
    for tag, children, attributes in wrong:
        with pytest.raises(ValueError, match=r"pages here|in the page"):
            Element(tag, children, attributes)
    for style in ("</style>", "<!--"):
        with pytest.raises(ValueError, match="what ends them"):
            page("", style=style)


@pytest.fixture(scope="module")
def record():
    """A record with all entries that a page or a terminal tells of, though no release has all of them."""
    made = TangentLaplace(BALL, 1.0).release(np.tile(Sphere(2).origin, (40, 1))).record
    return json.loads(json.dumps(made)) | {
        "unit": "person",
        "prepared": {"by": "Procrustes", "template": [[0.0, 0.0]]},
        "chosen": {"by": "error", "expected_errors": {"laplace": 0.5}},
        "count": {"left": {"epsilon": 0.5}, "least": 3},
        "last": {"mechanism": "TangentLaplace", "strength": 0.5},
        "group": {"name": "a", "of": ["a", "b"]},
        "search": {"stage": 1, "radii": [0.1, 0.2]},
        "stages": [{"radius": 0.5}, {"center": [0.0, 0.0, 1.0]}],
        "expected_error": {"mean": 0.1, "radius": 0.2, "level": 0.95, "of": "reference records"},
        "barrier": {"radius": 1.0, "wall": 2.0, "regularizer": 3.0},
        "guarantee": made["guarantee"] | {"metric": {"epsilon": 1.0, "per": "unit"}},
        "sensitivity": made["sensitivity"] | {"formula": "supposed: one"},
        "caption": "red: the value",
        "region": 0.3,
    }


def test_no_string_of_a_record_becomes_markup(record, tmp_path):
    usual = check_page(page_of(record, record_digest(record)))
    pages, told, refused = 0, set(), 0
    for kind, path in places(record):
        own = planted(record, kind, path)
        (tmp_path / "release.json").write_text(json.dumps(own))
        (tmp_path / "page.html").unlink(missing_ok=True)
        done = run("show", tmp_path / "release.json", "--html", tmp_path / "page.html")
        if check_terminal(done.stdout):
            told.add(path)
        if done.exit_code:
            assert done.exit_code == 2 and "release record" in " ".join(done.output.split()), (path, done.output)
            refused += 1
            continue
        found = check_page((tmp_path / "page.html").read_text())
        assert json.loads(found.texts["pre"][0]) == own
        assert found.texts.get("script", usual.texts["script"]) == usual.texts["script"]
        pages += 1
    assert pages > 100 and refused > 20
    wanted = [("mechanism",), ("manifold", "name"), ("n",), ("created",), ("statistic",), ("group", "of", 0)]
    wanted += [("guarantee", name) for name in ("adjacency", "theorem")] + [("guarantee", "metric", "per")]
    assert told >= set(wanted)


def test_markup_of_two_strings_is_no_markup_together(record, tmp_path):
    """What stands alone as it is could begin a tag that another ends."""
    own = record | {"mechanism": "[bold", "manifold": record["manifold"] | {"name": "Sphere]"}, "created": "a\\"}
    (tmp_path / "release.json").write_text(json.dumps(own))
    done = run("show", tmp_path / "release.json")
    assert done.exit_code == 0 and done.stdout.startswith("[bold on Sphere], n = 40 places for persons, a\\\n")


SHAPE = [[0.5, 0.0], [-0.25, 0.4], [-0.25, -0.4]]
DRAWN = {
    "lines": {"manifold": {"name": "Sphere"}, "value": [0.0, 0.0, 1.0]},
    "shape": {"manifold": {"name": "PlanarShapes"}, "value": SHAPE, "ball": {"center": SHAPE}},
    "matrix": {"manifold": {"name": "SPD"}, "value": [[1.0, 0.0], [0.0, 1.0]]},
    "moment": {"manifold": {"name": PLANTED}, "value": [[1.0, 0.0], [0.0, 1.0]], "frame": []},
    "number": {"manifold": {"name": PLANTED}, "value": [1.0, 2.0]},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_words_and_no_formulas(name):
    figure, file = Figure(), io.BytesIO()
    with matplotlib.rc_context({"text.usetex": True}):
        draw_record(DRAWN[name] | {"caption": PLANTED, "statistic": PLANTED}, figure)
    title = figure.axes[0].title
    assert name == "number" or ("$\\frac{&lt;[bold]" in title.get_text() and not title.get_usetex())
    shown = Figure()
    draw_record(DRAWN[name] | {"caption": PLANTED, "statistic": PLANTED}, shown)
    shown.savefig(file, format="svg")
    tags = {part.tag.rpartition("}")[2] for part in xml.etree.ElementTree.fromstring(file.getvalue()).iter()}
    assert "svg" in tags and not tags & {"script", "img", "image", "foreignObject", "a"} - {"image"}


def test_titles_of_plotly_are_words():
    pytest.importorskip("plotly")
    from jaxgeodp.meshes.interactive import interactive_surfaces

    tent = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]])
    figure = interactive_surfaces([tent], ['<a href="javascript:alert(1)">x</a></script>'])
    assert figure.layout.annotations[0].text.startswith("&lt;a href=")
    assert "x</a>" not in figure.to_html(include_plotlyjs=False)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A folder of `describe`."""
    folder = tmp_path_factory.mktemp("described") / "own"
    data = np.random.default_rng(0).normal(size=(80, 3)) * [0.1, 0.02, 0.0] + [0.0, 0.0, 1.0]
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    describe(data, Sphere(2), mu=20.0, ball=BALL).save(folder)
    return folder


PARTS = ("mean", "variance", "covariance", "description")


def written(documents, folder):
    """The four files of a description, with digests that fit: whoever plants a string can compute them."""
    folder.mkdir(exist_ok=True)
    if isinstance(documents["description"], dict) and "records" in documents["description"]:
        records = {part: record_digest(documents[part]) for part in PARTS[:3]}
        documents = documents | {"description": documents["description"] | {"records": records}}
    for part, document in documents.items():
        (folder / f"{part}.json").write_text(json.dumps(document))


def loads(documents, folder):
    """Whether they are taken for a description; else they are refused in a sentence."""
    written(documents, folder)
    try:
        Description.load(folder)
    except ValueError as error:
        assert "is not a release record" in str(error) or "exactly one description" in str(error)
        return False
    return True


def test_no_string_of_a_description_becomes_markup(described, tmp_path):
    """What is taken for a description is planted all together, and then shown."""
    documents = {part: json.loads((described / f"{part}.json").read_text()) for part in PARTS}
    together, taken = documents, 0
    for part in PARTS:
        for kind, path in places(documents[part]):
            whole = kind == "value" and isinstance(
                functools.reduce(operator.getitem, path, documents[part]), dict | list
            )
            if kind == "rename" or whole or (part, path) == ("mean", ("created",)):
                continue
            more = together | {part: planted(together[part], kind, path)}
            if loads(more, tmp_path / "x"):
                together, taken = more, taken + 1
    assert taken > 30
    written(together, tmp_path / "planted")
    shutil.copytree(described, tmp_path / "usual")
    done = run("show", tmp_path / "planted", "--html", tmp_path / "page.html")
    check_terminal(done.stdout)
    assert done.exit_code == 0, done.output
    found = check_page((tmp_path / "page.html").read_text())
    assert len(found.texts["img"]) > 3
    assert sum("<script>alert(1)</script>" in cell for cell in found.texts["td"]) >= 3
    for name in ("sampler", "created"):
        written(documents | {"mean": planted(documents["mean"], "value", (name,))}, tmp_path / "half")
        half = run("show", tmp_path / "half", "--html", tmp_path / "half.html")
        assert half.exit_code == 2 and "not a complete description" in " ".join(half.output.split()), half.output
    # The name of the one could begin a tag that the other's ends.
    names = tmp_path / "[bold", tmp_path / "x]"
    for folder, name in zip(("planted", "usual"), names, strict=True):
        (tmp_path / folder).rename(name)
    compared = run("compare", *names)
    assert compared.exit_code == 0 and f"{names[0]} and {names[1]}, of 80 and 80" in compared.stdout, compared.output


def test_no_string_of_a_ledger_is_more_than_text(tmp_path):
    add_budget(tmp_path / "usual.db", PureDP(1.0), "a")
    parameters, told = '{"epsilon": 0.5}', 0
    budget = ("b", "pure", '{"epsilon": 1.0}', "now")
    release = ("a", "pure", parameters, "TangentLaplace", "now", "0" * 64)
    # A surrogate is no text in SQLite.
    words = PLANTED.replace("\ud800", "")
    cases = [("budgets", budget, place) for place in range(4)] + [("releases", release, place) for place in range(6)]
    for table, row, place in cases:
        path = tmp_path / f"{table}-{place}.db"
        shutil.copy(tmp_path / "usual.db", path)
        row = [*row[:place], (words * 2)[:64] if (table, place) == ("releases", 5) else words, *row[place + 1 :]]
        names = (
            "dataset, kind, parameters, time"
            if table == "budgets"
            else ("dataset, kind, parameters, mechanism, time, record")
        )
        connection = sqlite3.connect(path)
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
        connection.close()
        done = run("ledger", "show", path)
        assert all(c.isprintable() for c in done.output.replace("\n", ""))
        told += words.encode("unicode_escape").decode().replace("\\\\", "\\") in done.stdout
        if done.exit_code:
            assert isinstance(done.exception, SystemExit) and done.output.startswith("Error: "), done.output
            continue
        for suffix in ("csv", "json"):
            done = run("ledger", "export", path, "--out", tmp_path / f"{table}-{place}.{suffix}")
            assert done.exit_code == 0 and all(c.isprintable() for c in done.output.replace("\n", ""))
    assert told
