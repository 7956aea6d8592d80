"""Interactive pictures: with plotly, and without."""

import sys

import numpy as np
import pytest

from jaxgeodp.surfaces import interactive_surfaces

TENT = (
    np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1]]),
    np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4]]),
)


def test_surfaces_are_drawn_side_by_side():
    pytest.importorskip("plotly")
    vertices, faces = TENT
    figure = interactive_surfaces([TENT, (2.0 * vertices, faces)], ["one", "two"])
    assert [trace.scene for trace in figure.data] == ["scene", "scene2"]
    np.testing.assert_array_equal(figure.data[1].z, 2.0 * vertices[:, 2])
    np.testing.assert_array_equal(np.stack([figure.data[0][k] for k in "ijk"], axis=1), faces)
    assert [note.text for note in figure.layout.annotations] == ["one", "two"]
    assert figure.layout.scene2.aspectmode == "data"
    assert "Mesh3d".lower() in figure.to_json()


def test_without_plotly_it_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxgeodp\[interactive\]'"):
        interactive_surfaces([TENT])


@pytest.mark.parametrize(
    ("surfaces", "titles", "sentence"),
    [
        ([], None, "at least one"),
        ([(TENT[0], TENT[1][:, :2])], None, "triangles"),
        ([TENT], ["a", "b"], "a title for each"),
    ],
)
def test_wrong_calls_are_refused(surfaces, titles, sentence):
    with pytest.raises(ValueError, match=sentence):
        interactive_surfaces(surfaces, titles)
