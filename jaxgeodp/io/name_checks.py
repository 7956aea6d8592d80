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
    "sd std stdev stddev se sem stderr log ln logm sqrt chol cholesky fisher fisherz fz zr rz zscore atanh arctanh "
    "pval pvalue sq rsq squared rsquared dist distance".split()
)
# The same, where correlations are read: transforms, and p values.
_NO_CORRELATIONS = frozenset("p z".split())
_MATRIX = r"(cov|covar|covariance|cor|corr|correlation|var|sigma|omega)"
_GLUED = re.compile(rf"(l|u|ln|log|sqrt|chol|fisher|fz|z|a?r?c?tanh){_MATRIX}|{_MATRIX}(log|ln|sqrt|chol|sd|se|z)")
_SQUARED = re.compile(r"r(\^?2[\W_]|\u00b2).*|r[\W\d_]*(\^2|\u00b2)")
_FACTOR = re.compile(r"[\W\d_]*([lu])[\W\d_]*")
# With which entries may be counted, as programs name columns; and what may stand before: run1_f1, run1_f2.
_PLAIN = frozenset("x v c f col column field feature entry element el value val data number spd matrix unnamed".split())
_RUNS = frozenset("run sub subj subject ses sess session visit id".split())
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# The last number, and none before it but behind letters.
_COUNTED = re.compile(r"((?:.*[^\W\d_]\W*_*|[\W_]*))(\d{1,9})([\W_]*)")


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
    others = common & (_OTHERS | _NO_CORRELATIONS if correlations and not common & _COVARIANCES else _OTHERS)
    if scales := [*_factor(names, common), *sorted(others), *filter(_GLUED.fullmatch, sorted(common))]:
        raise InputError(
            f"its columns {', '.join(names[:7])} are by their names ({scales[0]}) not entries of {what} matrices: "
            "transform them; or, if they are entries, name them otherwise or say --triangle."
        )
    if only_count(names) or any(entries_of(labels) is not None for labels in plain_readings(names)):
        return
    found = next((own for some in (without_units(names), names) for own in reversed(list(moments(some)))), [])
    if not correlations:
        _check_covariances(names, found)
    elif _are_covariances(names, common, found):
        raise InputError(
            f"its columns {', '.join(names[:7])} are covariances by their names: say --as covariance, which scales "
            "each matrix; or, if they are correlations, name them otherwise or say --triangle."
        )


def _factor(names, common) -> list[str]:
    """Return the letter of a triangular factor, if it stands alone in all names, or before a matrix: Stan's L_Omega."""
    alone = {own[1] for name in names if (own := _FACTOR.fullmatch(name.lower())) is not None}
    of_matrix = {"l", "u"} & common if any(re.fullmatch(_MATRIX, word) for word in common) else set()
    squared = ["r^2"] if all(_SQUARED.fullmatch(name.strip().lower()) for name in names) else []
    return squared + sorted(of_matrix or (alone if all(map(_FACTOR.fullmatch, map(str.lower, names))) else set()))


def _are_covariances(names, common, found: list[Moment]) -> bool:
    """Return whether names are of covariances; not cor_var1_var2, of two variables."""
    if not common & set(_CORRELATIONS):
        return bool(_COVARIANCES & (common | {own.word for own in found}))
    parts = [[part.lower() for part in _PART.findall(name)] for name in names]
    return any(all(own.count(word) == 1 for own in parts) for word in _COVARIANCES & common)


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
    """Return whether names are a, b, c, ..., or count as programs do: V1, V2; S[0], S[1]; run1_f1, run1_f2.

    From 0, 1 or 2, as where a column before them counts, too. Not with another word, as numbers may mean something
    else then: var1, var2; L1, L2, L3; s1, ..., s6; upper_1; x1_var.
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
    *runs, last = re.findall(r"[^\W\d_]+", before) or ["x"]
    return by_one and (last in _PLAIN or before == "s[") and set(runs) <= _RUNS | _PLAIN
