"""The documentation site: ``sphinx-build -W -c docs . build/site``, from the folder above.

The pages are those that one reads in the repository, so that there is one source of each: pages of docs/, the
notebooks as they were executed, benchmarks/README.md and the project's own pages. Sphinx, because docstrings become
the reference; MyST, because pages are Markdown; formulas are set by a copy of MathJax that lies in the site, so that it
can be read where there is no network. The theme is that of NumPy, SciPy and pandas (pydata), which readers know: a
tree at the left, contents of the page at the right, a search box, light and dark, and menus that fold on a phone.
"""

import pathlib
import re
import sys

from jaxgeodp import __version__

sys.path.insert(0, str(pathlib.Path(__file__).parent))

project = "jaxgeodp"
author = "The jaxgeodp authors"
copyright = "the jaxgeodp authors, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
    "mathematics_pages",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "notebooks/*.ipynb",
    "benchmarks/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["docs/*.py", "docs/mathematics.md"]

# Notebooks are shown as they were executed; tests see to it that their outputs are those of their code.
nb_execution_mode = "off"
nb_merge_streams = True

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_dmath_allow_labels = False
myst_heading_anchors = 4

default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = f"jaxgeodp {version}"
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(pathlib.Path(__file__).with_name("templates") / "search_order.js")
templates_path = ["templates"]
html_sidebars = {"**": ["all-pages"]}
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_center": [],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_prev_next": True,
    # Pages that are one wide table need the room.
    "secondary_sidebar_items": {"**": ["page-toc"], "docs/reference/index": []},
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}

linkcheck_timeout = 10


def _escape_bars(app, what, name, thing, options, lines):
    """Docstrings write lengths as |v|, which reStructuredText would take for a substitution."""
    in_code = False
    for number, line in enumerate(lines):
        in_code = line.startswith("    >>>") or line.lstrip().startswith(">>>") or (in_code and bool(line.strip()))
        if not in_code:
            parts = re.split(r"(``.*?``)", line)
            lines[number] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def _array_like(app, what, name, thing, options, signature, returns):
    """Signatures name `jax.typing.ArrayLike`, not the ten types that it stands for."""
    if signature:
        signature = re.sub(r"((?:~?\w+\.)*)Array \| [^,=)]*?TypedNdArray", "ArrayLike", signature)
    return signature, returns


def setup(app):
    """Registers what mends docstrings and signatures."""
    app.connect("autodoc-process-signature", _array_like)
    app.connect("autodoc-process-docstring", _escape_bars)
