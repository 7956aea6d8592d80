"""Private classification of covariance matrices: balanced accuracy over the budget, against pyriemann's MDM.

    python -m benchmarks.measure.eeg [--quick] [--out eeg.png]

Synthetic EEG of a motor imagery: epochs of 8 channels that mix 8 sources; in each class another source has half its
power. Some people's electrodes differ a little. MDM takes one mean for each class; `PrivateNearestMean` hides records
and labels, `PrivateCovarianceMean` within MDM hides records of which the labels are public; a record is one epoch.
Accuracy is on other epochs of other people. Needs pyriemann. Prints a table in Markdown, draws a picture.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.classification import MDM
from sklearn.metrics import balanced_accuracy_score

from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp.checks import InputError
from jaxgeodp.sklearn import PrivateCovarianceMean, PrivateNearestMean

CHANNELS, TIMES, RADIUS = 8, 200, 2.5
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
MUS = (0.25, 0.5, 1.0, 2.0)
SIZES = (300, 1000, 4000)


def epochs(n, seed):
    """Covariances (n, 8, 8) about the identity's scale, and labels (n,)."""
    generator = np.random.default_rng(seed)
    mixing = np.linalg.qr(np.random.default_rng(0).normal(size=(CHANNELS, CHANNELS)))[0]
    labels = generator.integers(0, 2, n)
    powers = np.tile(np.geomspace(2.0, 0.5, CHANNELS), (n, 1))
    powers[np.arange(n), 3 + labels] *= 0.5
    people = generator.integers(0, 20, n)
    electrodes = np.eye(CHANNELS) + 0.08 * generator.normal(size=(20, CHANNELS, CHANNELS))
    sources = np.sqrt(powers)[:, :, None] * generator.normal(size=(n, CHANNELS, TIMES))
    signals = electrodes[people] @ mixing @ sources
    return signals @ signals.swapaxes(1, 2) / TIMES, labels


def accuracy(model, train, test):
    """Balanced, on other epochs; NaN where the mechanism refuses so small a budget."""
    try:
        return balanced_accuracy_score(test[1], model.fit(*train).predict(test[0]))
    except InputError:
        return float("nan")


def models(parameter, strength):
    """Name and model; all with one budget."""
    own = {parameter: strength, "radius": RADIUS}
    mean = PrivateCovarianceMean(shrinkage=0.0, **own)
    return {
        "PrivateNearestMean": PrivateNearestMean("spd", classes=[0, 1], **own),
        "MDM of PrivateCovarianceMean": MDM(metric={"mean": mean.mean_of, "distance": "riemann"}),
    }


def main():
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one size, one repetition: a test of the script")
    parser.add_argument("--out", default="eeg.png", help="the figure to write")
    arguments = parser.parse_args()
    print_machine()
    sizes, repeats = (SIZES[:1], 1) if arguments.quick else (SIZES, 6)
    budgets = [("epsilon", own) for own in EPSILONS] + [("mu", own) for own in MUS]
    budgets = budgets[:1] if arguments.quick else budgets
    test = epochs(2000, 10**6)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    rows = []
    for color, n in enumerate(sizes):
        trains = [epochs(n, seed) for seed in range(repeats)]
        bare = np.array([accuracy(MDM(), train, test) for train in trains])
        rows.append([str(n), "none", told(bare), told(bare)])
        means = {}
        for parameter, strength in budgets:
            found = {
                name: np.array([accuracy(model, train, test) for train in trains])
                for name, model in models(parameter, strength).items()
            }
            rows.append([str(n), f"{parameter} = {strength:g}", *(told(own) for own in found.values())])
            print("|", " | ".join(rows[-1]), "|", flush=True)
            means[parameter, strength] = found["PrivateNearestMean"]
        for axis, parameter in zip(axes, ("epsilon", "mu"), strict=True):
            own = [(strength, values) for (kind, strength), values in means.items() if kind == parameter]
            errors = [values.std(ddof=1) / np.sqrt(repeats) if repeats > 1 else 0.0 for _, values in own]
            axis.errorbar(
                [strength for strength, _ in own],
                [values.mean() for _, values in own],
                errors,
                fmt="o-",
                color=f"C{color}",
                capsize=3,
                label=f"n = {n:,}",
            )
            axis.axhline(bare.mean(), color=f"C{color}", linestyle=":", linewidth=1)
            axis.set(xscale="log", xlabel=parameter.replace("epsilon", "ε").replace("mu", "μ"))
            axis.set_xticks([x for kind, x in budgets if kind == parameter])
            axis.xaxis.set_major_formatter("{x:g}")
            axis.minorticks_off()
    axes[0].set_ylabel("balanced accuracy on other epochs")
    axes[0].legend(frameon=False, title="dotted: MDM without privacy", loc="lower right")
    axes[0].set_title("pure")
    axes[1].set_title("Gaussian")
    figure.savefig(arguments.out, dpi=110)
    print_table(
        f"Balanced accuracy ± standard error, {repeats} repetitions, r = {RADIUS:g}",
        ["records", "budget", "PrivateNearestMean", "MDM of PrivateCovarianceMean"],
        rows,
    )


def told(values):
    """Mean and standard error."""
    if not np.isfinite(values).all():
        return "refused"
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
