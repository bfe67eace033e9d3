"""KMeansTree: a classification tree on the labels of k-means."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from .._base import Constraints
from .._util import StrOptions, estimator
from .labels_tree import LabelsTree


@estimator
class KMeansTree(LabelsTree):
    """Explain a clustering by a classification tree (CART) on its labels.

    The baseline that explanations of clusterings are compared with: the leaf is split whose best
    cut lowers the weighted impurity of the reference's labels most. Distances to centers play no
    part in growth.

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`,
        ``math.inf`` no limit.
    impurity : {"gini", "entropy"}, default="gini"
        Impurity of the labels of a node.
    %(labels_tree)s

    See Also
    --------
    ExKMC : Follows the cost of the clusters in place of their labels.
    SpExTree : Keeps each label together, in few leaves.

    Notes
    -----
    The tree of scikit-learn's `DecisionTreeClassifier` with `max_leaf_nodes`, up to ties, compared
    in float64 and with thresholds of few digits. A node of one label is not split; others are, even
    without gain. O(n d k) for the sums of the first level and less for each split after it.

    %(labels_of_mixed_tables)s

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees. As a baseline in
    Ohl et al., End-to-end training of unsupervised trees: Kauri and Douglas (KMeans+Tree).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.KMeansTree(n_clusters=3, max_leaves=5, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 3)
    (5, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **LabelsTree._parameter_constraints,
        "impurity": [StrOptions({"gini", "entropy"})],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    impurity: Literal["gini", "entropy"] = "gini"
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None

    def _counts(self) -> str:
        return self.impurity
