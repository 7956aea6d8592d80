"""What the arena's methods are called in tables, and how they look in its picture."""

from typing import NamedTuple

import numpy as np


class Look(NamedTuple):
    """Of all methods whose names begin alike."""

    begins: str
    short: str  #: in tables; empty for the name itself
    family: str  #: in the picture; empty where the method is not drawn
    color: str
    marker: str


_SHAPE = ("ours: noise with a shape", "tab:green", "D")
_SYMMETRIC = ("ours: steps, told symmetric", "tab:blue", "v")
_STEPS = ("ours: steps", "tab:blue", "^")
_SEARCH = ("ours: a search, or blocks", "tab:cyan", "o")
_ONCE = ("ours: one release", "tab:blue", ".")
_TUNED = ("others: tuned steps or rounds", "tab:red", "s")
_AMBIENT = ("others: ambient noise", "tab:brown", "x")
_TANGENT = ("others: tangent noise", "tab:orange", "+")
_FLAT = ("others: log-Euclidean", "tab:pink", "x")
_OTHER = ("others: one release", "tab:orange", ".")
_PUBLIC = ("the public centre", "0.6", "1")
_LIMIT = ("limit: the best clip about the mean", "0.4", "|")
_CHAIN = ("not private", "0.6", ".")
_LEFT_OUT = ("", "", "")

#: The first that fits.
LOOKS = tuple(
    Look(begins, short, *look)
    for begins, short, look in (
        ("shape", "", _SHAPE),
        ("AdaptiveMechanism, symmetric", "", _SYMMETRIC),
        ("AdaptiveMechanism", "", _STEPS),
        ("LocatedMechanism", "LocatedMechanism", _SEARCH),
        ("mean of blocks (", "mean of blocks", _SEARCH),
        ("mean of blocks, then", "blocks, then second moment", _SEARCH),
        ("rounds of CoinPress, hull", "rounds, hull noise", _SHAPE),
        ("second moment, clipped, hull", "hull noise", _ONCE),
        ("KNGMechanism", "KNGMechanism", _ONCE),
        ("LaplaceMechanism", "LaplaceMechanism", _ONCE),
        ("DP-RGD, noise", "DP-RGD, pure ε", _TUNED),
        ("DP-RGD", "DP-RGD", _TUNED),
        ("rounds of CoinPress, noise", "rounds, d'Orsi & Novikov", _TUNED),
        ("CoinPress", "CoinPress", _TUNED),
        ("ambient mean", "arithmetic mean, no noise", _LEFT_OUT),
        ("ambient", "", _AMBIENT),
        ("tangent Laplace", "tangent Laplace", _TANGENT),
        ("tangent Gaussian", "tangent Gaussian", _TANGENT),
        ("log-Euclidean", "log-Euclidean", _FLAT),
        ("Riemannian Gaussian of Jiang", "Jiang et al.", _OTHER),
        ("Laplace of the 2021", "Laplace 2021", _OTHER),
        ("KNG of the 2022", "KNG 2022", _OTHER),
        ("second moment, clipped, Analyze", "Analyze Gauss", _OTHER),
        ("second moment, clipped, noise of", "d'Orsi & Novikov", _OTHER),
        ("Dong et al., Sep", "SeparateCov", _OTHER),
        ("Dong et al., Ada", "AdaptiveCov", _OTHER),
        ("AdaptiveCov, radius", "AdaptiveCov, histogram", _OTHER),
        ("Laplace noise on entries", "Laplace on entries", _OTHER),
        ("Amin", "Amin et al.", _OTHER),
        ("mean of logarithms", "mean of logarithms, no noise", _LEFT_OUT),
        ("sample covariance", "sample covariance, not private", _LEFT_OUT),
        ("public centre", "public centre", _PUBLIC),
        ("limit", "limit", _LIMIT),
        ("chain", "chain of 2022", _CHAIN),
    )
)


def look_of(method: str, ours: bool | None) -> Look:
    """Of a method by its name; what is not listed is one release."""
    rest = Look("", "", *{True: _ONCE, False: _OTHER, None: _CHAIN}[ours])
    return next((look for look in LOOKS if method.startswith(look.begins)), rest)


def short(method: str) -> str:
    """The name in tables, without settings."""
    return look_of(method, None).short or method.split(" [")[0]


def picture(found, path) -> None:
    """Draw the error of everybody over that of the best of ours; cells are lists of scores."""
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 0.42 * len(found) + 1.6), layout="constrained")
    for height, scores in enumerate(reversed(found)):
        least = min((own.distance[0] for own in scores if own.ours), default=np.nan)
        for own in scores:
            look = look_of(own.method, own.ours)
            shift = {True: 0.12, False: -0.12, None: 0.0}[own.ours]  # who is even does not hide the other
            if look.family:
                place, kind = (own.distance[0] / least, height + shift), {"color": look.color, "label": look.family}
                axis.plot(*place, look.marker, **kind, alpha=0.75)
    axis.axvline(1.0, color="0.8", zorder=0)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("mean distance over that of the best of ours")
    axis.set_yticks(range(len(found)), [str(scores[0].cell) for scores in reversed(found)], fontsize=8)
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
