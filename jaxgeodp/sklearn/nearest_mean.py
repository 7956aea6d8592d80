"""The classifier of the nearest private mean."""

import functools
from collections.abc import Hashable, Sequence
from typing import Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.labels import Labels
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy.guarantee import ADD_REMOVE
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.sklearn.class_labels import listed_classes, occurring_labels
from jaxgeodp.sklearn.records import mechanism_for, points_of, tagged
from jaxgeodp.sklearn.repeated_fits import counted_fit

_SUPPOSED = "supposed: which labels occur is public"


@final
class PrivateNearestMean(ClassifierMixin, BaseEstimator):
    """Each record belongs to the class whose private Frechet mean is nearest ("minimum distance to mean").

    One budget pays for the mean and the count of every class: a record has one label and touches one class
    (`jaxgeodp.releases.release_groups`). Labels are as private as records. What is protected is one record, an epoch;
    with ``persons`` in `fit` all that one person contributes, to all classes. Steps before it in a pipeline must treat
    each record by itself. So must the choice of folds: scikit-learn's default for classifiers looks at labels
    (`RepeatedFitWarning`).

    Args:
        manifold, epsilon, mu, mechanism, ledger: see `PrivateFrechetMean`.
        center, radius: of the public ball; the radius is needed.
        classes: the public list of labels, words or numbers as in y (meta-estimators that encode labels, as
            `VotingClassifier`, need ``range(k)``), compared exactly. Labels that no NumPy array holds exactly, such as
            2^53 + 1 beside 0.5, are refused. Without ``classes`` those that occur are taken for public, and the
            records say so: where a class may exist because of one person, list them.
        adjacency: "add-remove" hides whether a record is there at all; "replace-one" hides which one it is, for which
            it may change its class, so that each class has half of epsilon, or mu/sqrt(2).
        classes_per_person: L, public: who has records of more classes is left out. With persons each of K classes has
            epsilon/K, or mu/sqrt(K), as one person may have records of all; with L, as with a diagnosis (1), it has
            epsilon/L, or mu/sqrt(L). Under "replace-one" min(2 L, K) stands in place of L.

    Attributes:
        classes_: the labels, sorted.
        means_: (classes, \\*shape), the released means.
        counts_: released numbers of records, or persons, that the means were made of, with noise.
        releases_: the `Release` of each class.
        budget_: what all of them promise together, as in the records.
        manifold_: of the records.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.sklearn import PrivateNearestMean
        >>> X = np.concatenate([np.tile([1.0, 0.0, 0.0], (300, 1)), np.tile([0.0, 1.0, 0.0], (300, 1))])
        >>> y = np.repeat(["east", "north"], 300)
        >>> center = np.array([0.6, 0.6, 0.5291502622129182])
        >>> model = PrivateNearestMean("sphere", mu=2.0, center=center, radius=0.78, classes=["east", "north"])
        >>> model.fit(X, y).predict([[0.9, 0.1, 0.42]])
        array(['east'], dtype='<U5')
    """

    def __init__(
        self,
        manifold: Manifold | str,
        epsilon: float | None = None,
        mu: float | None = None,
        center: ArrayLike | None = None,
        radius: float | None = None,
        mechanism: str = "auto",
        ledger: Ledger | None = None,
        classes: Sequence[Hashable] | None = None,
        adjacency: str = ADD_REMOVE,
        classes_per_person: int | None = None,
    ):
        """Store the parameters unchecked, as scikit-learn requires."""
        self.manifold = manifold
        self.epsilon = epsilon
        self.mu = mu
        self.center = center
        self.radius = radius
        self.mechanism = mechanism
        self.ledger = ledger
        self.classes = classes
        self.adjacency = adjacency
        self.classes_per_person = classes_per_person

    def fit(self, X: ArrayLike, y: ArrayLike, persons: Labels | None = None) -> Self:
        """Release a mean and a count for each class.

        Args:
            X: (n, features) or (n, \\*shape); see `PrivateFrechetMean.fit`.
            y: (n,), labels. With ``classes`` one that is none of them leaves its record out.
            persons: (n,), whose each record is. What somebody has in one class becomes one record of it. For metadata
                routing: ``set_fit_request(persons=True)``.

        Raises:
            ValueError: see `jaxgeodp.releases.release_groups`; nothing has been charged then.
        """
        name = "PrivateNearestMean"
        if self.radius is None:
            raise InputError(f"{name}: needs the radius of a public ball (and a center, unless it is the origin).")
        if self.classes_per_person is not None and persons is None:
            raise InputError(f"{name}: classes_per_person needs persons; give fit the person of each record, persons=.")
        manifold, points = points_of(self, self.manifold, X, fits=True, least=0)
        own = mechanism_for(name, manifold, self.epsilon, self.mu, self.center, self.radius, self.mechanism)
        classes, labels, more = self._labels(name, y, len(points))
        groups = classes.tolist()
        with counted_fit(self.ledger, self.adjacency, labels_are_private=True):
            found = release_groups(
                own,
                points,
                labels,
                groups,
                self.ledger,
                adjacency=self.adjacency,
                persons=persons,
                groups_per_person=self.classes_per_person,
                more=more,
            )
        self.manifold_, self.classes_ = manifold, classes
        self.releases_ = [found[group] for group in groups]
        self.means_ = np.stack([np.asarray(own.value) for own in self.releases_])
        self.counts_ = np.array([own.record["n"] for own in self.releases_])
        self.budget_ = self.releases_[0].record["guarantee"]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the label of the nearest mean, (n,); of a record that is no point, that of the first class.

        Args:
            X: (n, features) or (n, \\*shape), as for `fit`. Predictions of private records are as private as these.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return scores (n, classes), in proportion to exp(-distance^2): not calibrated probabilities.

        The scores of a record that is no point are all equal.

        Args:
            X: (n, features) or (n, \\*shape), as for `fit`.
        """
        check_is_fitted(self)
        _, points = points_of(self, self.manifold_, X, fits=False)
        with jax.enable_x64(True):
            return np.asarray(_scores(self.manifold_, self.means_, points))

    def _labels(self, name, y, n):
        """Return the classes, sorted as scikit-learn supposes, the labels, and what records say of the classes."""
        if y is None:
            raise InputError(f"{name}: requires y to be passed, but the target y is None.")
        if self.classes is None:
            y = occurring_labels(name, y, n)
            return np.unique(y), y, {"classes": _SUPPOSED}
        one_column = getattr(y, "ndim", 1) == 2 and y.shape[1] == 1
        # As any array: a masked label is a missing one.
        labels: Any = np.asanyarray(y)[:, 0] if one_column else y if hasattr(y, "shape") else list(y)
        return listed_classes(name, self.classes), labels, None

    def __sklearn_is_fitted__(self):
        """Return whether means were released."""
        return hasattr(self, "means_")

    @override
    def __sklearn_tags__(self):
        return tagged(super().__sklearn_tags__())


@functools.partial(jax.jit, static_argnums=0)
def _scores(manifold, means, points) -> Any:
    def one(point):
        valid = manifold.admissible(point)
        point = manifold.project(jnp.where(valid, point, means[0]))
        squares: jax.Array = jax.vmap(lambda mean: manifold.squared_dist(mean, point))(means)
        return jax.nn.softmax(jnp.where(valid, -squares, 0.0))

    return jax.vmap(one)(points)
