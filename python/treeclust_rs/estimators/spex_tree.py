"""SpExTree: threshold trees that keep each label together."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from .._util import estimator
from .labels_tree import LabelsTree


@estimator
class SpExTree(LabelsTree):
    """Explain any labels by a threshold tree that separates as few of their pairs as it can (SpEx).

    A part S of the rows costs phi(S): of the pairs of rows that share a label and have a row in S,
    the share whose other row lies outside S. The leaf is split whose best cut adds least,
    phi(left) + phi(right) - phi(leaf).

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`,
        ``math.inf`` no limit.
    %(labels_tree)s

    See Also
    --------
    KMeansTree : A classification tree on the labels.
    KernelExpand : Reproduces any labels with the fewest mistakes.

    Notes
    -----
    The clique form of SpEx, which needs no centers and no distances. With l_c the rows of label c
    in S and G_c all rows of label c, phi(S) is the sum of l_c (G_c - l_c) over the labels, divided
    by that of l_c (G_c - 1); 0 / 0 is 0. A node of one label is not split; growth ends at
    `max_leaves`. A row of weight w counts as w rows. O(n d k) for the sums of the first level and
    less for each split after it.

    %(labels_of_mixed_tables)s

    References
    ----------
    SpEx: A Spectral Approach to Explainable Clustering. NeurIPS 2025. SpEx-Clique.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.SpExTree(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 3)
    (3, 1.037)
    """

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None

    def _counts(self) -> str:
        return "clique"
