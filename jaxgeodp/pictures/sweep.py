"""The picture of a sweep: mean errors against n, drawn with Matplotlib."""

import numpy as np

from jaxgeodp.pictures.colors import ERROR_BARS, color_of

# Of calibrations, and of privacy parameters.
_STYLES, _MARKERS = ("-", "--", ":"), "osD^vPX*"
# Numbers nearer than this factor are not both written.
_APART = 1.25
_PANELS = {
    "distance": "mean geodesic distance from the Fréchet mean\n(values on the manifold)",
    "euclidean": "mean Euclidean distance from the Fréchet mean\n(all values)",
}


def draw_sweep(rows, title: str, replicates: int, figure) -> None:
    """Draw the rows of a summary on an empty Matplotlib figure: a panel for each of the two distances.

    A mechanism has its colour (`color_of`), a calibration its style of lines, a value of the privacy parameter its
    marker. Bars are two standard errors over the replicates.

    Args:
        rows: of `experiments.SweepResults.summary`.
        title: what is swept.
        replicates: per cell.
        figure: empty.
    """
    lines: dict[tuple[str, str], list] = {}
    for row in rows:
        if "refusal" not in row:
            mechanism, _, setting = row["label"].replace(f", n={row['n']}", "").partition(", ")
            lines.setdefault((mechanism, setting), []).append(row)
    calibrations, parameters = (
        list(dict.fromkeys(setting.partition(", ")[part] for _, setting in lines)) for part in (0, 2)
    )
    sizes = sorted({row["n"] for cells in lines.values() for row in cells})
    for axes, (column, label) in zip(figure.subplots(1, 2, sharex=True), _PANELS.items(), strict=True):
        for (mechanism, setting), cells in lines.items():
            n = np.array([row["n"] for row in cells])
            mean, error = (np.array([row[name] for row in cells], float) for name in (column, f"{column}_se"))
            if column == "distance" and any(row["on_manifold"] < 1.0 for row in cells):
                continue
            calibration, _, parameter = setting.partition(", ")
            axes.errorbar(
                n,
                mean,
                2.0 * error,
                linestyle=_STYLES[calibrations.index(calibration) % len(_STYLES)],
                marker=_MARKERS[parameters.index(parameter) % len(_MARKERS)],
                color=color_of(mechanism),
                label=", ".join(filter(None, (mechanism, setting))),
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


def _labels(sizes):
    """The numbers, but for those that would be written over the one before."""
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
