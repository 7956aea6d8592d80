"""One colour per mechanism, the same in all pictures."""

import zlib

# By the names of the registry, with the other names that pictures and tables have for the same mechanism. The ten of
# Matplotlib's default cycle come first; the darker ones are of the same mechanism in another form.
_MECHANISMS = {
    "#1f77b4": ("kng", "KNGMechanism", "KNG"),
    "#d62728": ("laplace", "LaplaceMechanism", "Laplace"),
    "#2ca02c": ("wrapped", "WrappedLaplace"),
    "#bcbd22": ("tangent", "TangentLaplace"),
    "#00695c": ("wrapped-gaussian", "WrappedGaussian"),
    "#827717": ("tangent-gaussian", "TangentGaussian"),
    "#9467bd": ("gaussian", "RiemannianGaussian"),
    "#e377c2": ("gibbs", "GibbsMechanism"),
    "#ff7f0e": ("euclidean", "EuclideanLaplace", "Euclidean"),
    "#8c564b": ("euclidean-projected", "EuclideanLaplace (projected)", "Euclidean, projected"),
    "#7f7f7f": ("landmarks", "LandmarkLaplace"),
    "#000000": ("landmarks-unaligned", "LandmarkLaplace (unaligned)"),
    "#17becf": ("located", "LocatedMechanism"),
    "#0b4f6c": ("located-gaussian",),
}
_COLORS = {name: color for color, names in _MECHANISMS.items() for name in names}
#: How a line with error bars is drawn.
ERROR_BARS = {"markersize": 4.5, "linewidth": 1.2, "elinewidth": 1.2, "capsize": 3}
#: Of mechanisms that are not in the table.
OTHERS = ("#393b79", "#637939", "#8c6d31", "#843c39", "#7b4173")


def color_of(mechanism: str) -> str:
    """Return the colour of a mechanism, by any of its names; one of five darker ones if it has none."""
    return _COLORS.get(mechanism) or OTHERS[zlib.crc32(mechanism.encode()) % len(OTHERS)]
