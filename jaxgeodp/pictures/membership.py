"""ROC curves of membership tests."""

import io

import numpy as np

_WIDTH, _HEIGHT = 9.0, 5.2


def picture_of_membership(found) -> bytes:
    """Return a PNG of the result of `jaxgeodp.privacy.membership`; see `draw_membership`.

    Args:
        found: `jaxgeodp.privacy.Membership`.

    Returns:
        The bytes of the file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    draw_membership(found, figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()


def draw_membership(found, figure) -> None:
    """Draw receiver operating characteristics on an empty Matplotlib figure.

    On the left records as they come, on the right the record that is told best. A dashed line is guessing.

    Args:
        found: `jaxgeodp.privacy.Membership`.
        figure: a `matplotlib.figure.Figure`.
    """
    for axes, name, title in zip(
        figure.subplots(1, 2, sharey=True),
        ("told", "exposed"),
        (f"a record of {found.n}, as they come", "the record that is told best"),
        strict=True,
    ):
        axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1.0)
        for place, test in enumerate(found.tests):
            told = getattr(test, name)
            style = {"linestyle": ":"} if "digits" in test.published else {}
            axes.plot(*told.curve, color=f"C{place}", label=f"{test.published}: area {told.area:.2f}", **style)
        axes.set(xlabel="others taken for members", xlim=(0, 1), ylim=(0, 1), title=title)
        axes.set_aspect("equal")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks(np.linspace(0, 1, 5))
    figure.axes[0].set_ylabel("members found")
    figure.suptitle("PRIVATE: not to be published", fontsize=10)
