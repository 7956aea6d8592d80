"""The picture of a sweep: mean errors against n, drawn with Matplotlib."""

import numpy as np

from jaxgeodp.pictures.colors import ERROR_BARS, color_of

# Of different lengths, so that twelve pairs differ.
_STYLES, _MARKERS = ("-", "--", ":", "-."), "osD"
_PANELS = {
    "distance": "mean geodesic distance from the Fréchet mean\n(values on the manifold)",
    "euclidean": "mean Euclidean distance from the Fréchet mean\n(all values)",
}


def draw_sweep(rows, title: str, replicates: int, figure) -> None:
    """Draw the rows of a summary on an empty Matplotlib figure: a panel for each of the two distances.

    A mechanism has its colour (`color_of`); what else a line's name says, its calibration and its privacy parameter, is
    the style of the line and its marker, the same in all colours. Bars are two standard errors over the replicates.

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
    settings = list(dict.fromkeys(setting for _, setting in lines))
    sizes = sorted({row["n"] for cells in lines.values() for row in cells})
    for axes, (column, label) in zip(figure.subplots(1, 2, sharex=True), _PANELS.items(), strict=True):
        for (mechanism, setting), cells in lines.items():
            n = np.array([row["n"] for row in cells])
            mean, error = (np.array([row[name] for row in cells], float) for name in (column, f"{column}_se"))
            if column == "distance" and any(row["on_manifold"] < 1.0 for row in cells):
                continue
            number = settings.index(setting)
            axes.errorbar(
                n,
                mean,
                2.0 * np.nan_to_num(error),
                linestyle=_STYLES[number % len(_STYLES)],
                marker=_MARKERS[number % len(_MARKERS)],
                color=color_of(mechanism),
                label=f"{mechanism}, {setting}",
                **ERROR_BARS,
            )
        axes.set(xscale="log", yscale="log", xlabel="records n", ylabel=label)
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axes.minorticks_off()
        _number_errors(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle(f"{title}\n{replicates:,} replicates; bars: ± 2 standard errors over them", fontsize=10)


def _number_errors(axes):
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
