"""Checks of names of columns that are read as entries of symmetric matrices: scales, and names that only count."""

import itertools
import re

from jaxgeodp.checks import InputError
from jaxgeodp.io.pair_names import Moment, entries_of, moments, plain_readings, without_units

_DEVIATIONS = ("sd", "std", "stdev")
_CORRELATIONS = ("r", "cor", "corr", "correlation")
_COVARIANCES = frozenset(("var", "variance", "cov", "covar", "covariance"))
# Of what is no entry of the matrix, where it stands in all names.
_OTHERS = frozenset(
    "sd std stdev stddev se sem stderr log ln logm sqrt chol cholesky fisher fisherz atanh pval pvalue dist "
    "distance".split()
)
# Behind which a number does not count entries: variances, eigenvalues, anisotropy's s1, ..., s6 (11, 22, 33, 12, ...).
_OTHER_COUNTS = re.compile(r"var(iance)?|cov(ar(iance)?)?|sd|std|l|lambda|eig(en)?(val(ue)?)?s?|ev|(anisotropy)?s")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# The last number, and none before it but behind letters.
_COUNTED = re.compile(r"((?:.*[^\W\d_]\W*_*|[\W_]*))(\d{1,9})(\D*)")


def check_scales(names: tuple[str, ...], correlations: bool) -> None:
    """Refuse names that tell other numbers than entries: deviations, logarithms, or correlations as covariances.

    Args:
        names: of columns.
        correlations: whether correlation matrices are read, else covariance matrices.

    Raises:
        ValueError: they do.
    """
    if not names:
        return
    what = "correlation" if correlations else "covariance"
    common = set.intersection(*({part.lower() for part in _PART.findall(name)} for name in names))
    if len(names) == 1:  # whose words may be its labels
        return
    factor = ["l"] if "l" in common and common & {"omega", "sigma"} else []  # Stan's L_Omega
    if scales := factor + sorted(common & _OTHERS):
        raise InputError(
            f"its columns {', '.join(names[:7])} are by their names ({scales[0]}) not entries of {what} matrices: "
            "transform them, or say --triangle, if they are entries."
        )
    if only_count(names) or any(entries_of(labels) is not None for labels in plain_readings(names)):
        return
    found = next((own for some in (without_units(names), names) for own in reversed(list(moments(some)))), [])
    if not correlations:
        _check_covariances(names, found)
    elif not common & set(_CORRELATIONS) and _COVARIANCES & (common | {own.word for own in found}):
        raise InputError(
            f"its columns {', '.join(names[:7])} are covariances by their names: say --as covariance, which scales "
            "each matrix; or --triangle, if they are correlations."
        )


def _check_covariances(names, found: list[Moment]):
    pairs = any(len(own.labels) == 2 for own in found)
    related = [own.word in _CORRELATIONS for own in found]
    wrong = [
        name
        for name, own, is_correlation in zip(names, found, related, strict=False)
        if own.word in _DEVIATIONS
        or (is_correlation and not all(related))
        or (pairs and own.word in ("s", "sigma") and len(own.labels) == 1 and not own.squared)
    ]
    if wrong:
        raise InputError(
            f"its columns {', '.join(wrong[:7])} are standard deviations or correlations by their names, not entries "
            "of covariance matrices: square the former, multiply the latter by both deviations; or say --triangle, if "
            "they are entries."
        )


def only_count(names: tuple[str, ...]) -> bool:
    """Return whether names are a, b, c, ..., or words with a number that counts: f1, f2; S[0], S[1]; run1_f1, run1_f2.

    From 0, 1 or 2, as where a column before them counts, too; not where numbers mean something else: var1, var2; L1,
    L2, L3; s1, ..., s6; cov_1_2, cov_1_3.
    """
    words = [name.strip().lower() for name in names]
    if all(len(word) == 1 and word.isalpha() for word in words):
        return words == [chr(ord("a") + place) for place in range(len(words))]
    read = [_COUNTED.fullmatch(word) for word in words]
    parts = {(own[1], own[3]) for own in read if own is not None}
    if None in read or len(parts) != 1:
        return False
    ((before, _),) = parts
    counted = [int(own[2]) for own in read if own is not None]
    by_one = counted[0] in (0, 1, 2) and all(b == a + 1 for a, b in itertools.pairwise(counted))
    return by_one and not _OTHER_COUNTS.fullmatch(re.sub(r"[\d_]+", "", before))
