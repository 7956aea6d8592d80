"""The picture of a plan: expected errors against the radius, n and the budget, drawn with Matplotlib."""

import io

import numpy as np

from jaxgeodp.pictures.colors import color_of

_MARKERS = "osD^vPX<>*"
# Between the logarithms of numbers that are written beside each other.
_APART = 0.2


def picture_of_plan(curves) -> bytes:
    """Return a PNG of a plan; see `draw_plan`.

    Args:
        curves: what `jaxgeodp.mechanisms.plan_curves` gives.

    Returns:
        The bytes of the file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.4), layout="constrained")
    draw_plan(curves, figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()


def draw_plan(curves, figure) -> None:
    """Draw `mechanisms.PlanCurves` on an empty Matplotlib figure, in three panels with the same axis of errors.

    A mechanism has the same colour in all of them; those of Gaussian mechanisms are dashed, as they promise something
    else, and those whose errors are distances in the ambient space are dotted. Points where one refuses are missing.

    Args:
        curves: what `jaxgeodp.mechanisms.plan_curves` gives.
        figure: a `matplotlib.figure.Figure`.
    """
    panels = {
        "radius of the public ball\n(no record is clipped)": curves.radius,
        "n, number of records": curves.n,
        _strength_in_words(curves): curves.strength,
    }
    for axes, (label, panel) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        axes.axvline(panel.given, color="0.7", linewidth=1.2, label="as given")
        for number, errors in enumerate(panel.errors):
            axes.errorbar(panel.values, errors, 2.0 * panel.standard_errors[number], **_line(curves, number))
        axes.set(xscale="log", yscale="log", xlabel=label)
        _number_axes(axes, panel)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
    first = figure.axes[0]
    first.set_ylabel("expected error (distance)")
    given, *lines = first.get_legend_handles_labels()[0]
    figure.legend(handles=[*lines, given], loc="outside right center", frameon=False, fontsize=9)
    budget = [f"{name} = {value:g}" for name, value in (("epsilon", curves.epsilon), ("mu", curves.mu)) if value]
    words = [str(curves.ball.manifold), f"radius {curves.radius.given:g}", f"n = {curves.n.given:,}", *budget]
    figure.suptitle(f"{', '.join(words)}\nbars: ± 2 standard errors of the simulation", fontsize=11)


def _strength_in_words(curves):
    if curves.epsilon is None:
        return "mu, privacy parameter"
    words = "epsilon, privacy parameter"
    return words if curves.mu is None else f"{words}\n(dashed: mu = {curves.mu / curves.epsilon:.3g} epsilon)"


def _line(curves, number):
    label, style = curves.mechanisms[number], "-"
    if curves.parameters[number] == "mu":
        label, style = f"{label} (mu)", "--"
    if not curves.on_manifold[number]:
        label, style = f"{label}, ambient distance", ":"
    # Hollow, and smaller from one to the next, so that those at the same place are seen.
    size = 11.0 - 8.0 * number / max(len(curves.mechanisms) - 1, 1)
    return {
        "label": label,
        "color": color_of(curves.mechanisms[number]),
        "linestyle": style,
        "linewidth": 1.3,
        "elinewidth": 1.0,
        "capsize": 2.0,
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": size,
        "markerfacecolor": "none",
    }


def _number_axes(axes, panel):
    """Put ticks at every other value, the given one included, and plain numbers on the error axis."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

    first = int(np.flatnonzero(panel.values == panel.given)[0]) % 2
    ticks = [x for x in panel.values[first::2] if x == panel.given or abs(np.log(x / panel.given)) > _APART]
    axes.set_xticks(ticks, [f"{x:.3g}" if x < 100.0 else f"{x:,.0f}" for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
