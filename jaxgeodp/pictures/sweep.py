"""The picture of a sweep: mean errors against n, drawn with Matplotlib."""

from typing import NamedTuple

import numpy as np

from jaxgeodp.pictures.colors import ERROR_BARS, color_of

_STYLES, _MARKERS = ("-", "--", ":"), "osD^vPX*"
# Numbers nearer than this factor are not both written.
_APART = 1.25
_PANELS = {
    "distance": "mean geodesic distance from the Fréchet mean\n(values on the manifold)",
    "euclidean": "mean Euclidean distance from the Fréchet mean\n(all values)",
}


class Line(NamedTuple):
    """Style of a line of cells."""

    mechanism: str  #: by whose name it has its colour (`color_of`)
    legend: str
    style: int  #: a number for each style of lines
    marker: int  #: the same of markers


def draw_sweep(rows, lines_of: list[Line], title: str, replicates: int, figure) -> None:
    """Draw the rows of a summary on an empty Matplotlib figure: a panel for each of the two distances.

    Bars are two standard errors over the replicates.

    Args:
        rows: of `experiments.SweepResults.summary`.
        lines_of: the line of each row.
        title: what is swept.
        replicates: per cell.
        figure: empty.
    """
    lines: dict[Line, list] = {}
    for row, line in zip(rows, lines_of, strict=True):
        if "refusal" not in row:
            lines.setdefault(line, []).append(row)
    sizes = sorted({row["n"] for cells in lines.values() for row in cells})
    for axes, (column, label) in zip(figure.subplots(1, 2, sharex=True), _PANELS.items(), strict=True):
        for line, cells in lines.items():
            n = np.array([row["n"] for row in cells])
            mean, error = (np.array([row[name] for row in cells], float) for name in (column, f"{column}_se"))
            if column == "distance" and any(row["on_manifold"] < 1.0 for row in cells):
                continue
            axes.errorbar(
                n,
                mean,
                2.0 * error,
                linestyle=_STYLES[line.style % len(_STYLES)],
                marker=_MARKERS[line.marker % len(_MARKERS)],
                color=color_of(line.mechanism),
                label=_plain(line.legend),
                **ERROR_BARS,
            )
        axes.set(xscale="log", yscale="log", xlabel="records n", ylabel=label)
        axes.set_xticks(sizes, _labels(sizes))
        if not axes.containers:
            axes.text(0.5, 0.5, "no value is on the manifold", transform=axes.transAxes, ha="center")
        axes.minorticks_off()
        _number_errors(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    bars = "bars: ± 2 standard errors over them" if replicates > 1 else "one has no standard error, and no bars"
    figure.suptitle(f"{title}\n{replicates:,} replicates; {bars}", fontsize=10)


def _plain(text):
    """Return words with Matplotlib's special characters disabled: dollars, and a leading underscore."""
    return f"{' ' if text.startswith('_') else ''}{text}".replace("$", r"\$")


def _labels(sizes):
    """Return the numbers, without those that would overlap the one before."""
    labels, last = [], 0.0
    for n in sizes:
        apart = n > last * _APART
        labels.append(f"{n:,}" if apart else "")
        last = n if apart else last
    return labels


def _number_errors(axes):
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
