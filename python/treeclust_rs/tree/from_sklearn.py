"""Trees of scikit-learn as trees of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._data import (
    Table,
    Units,
    WeightedRows,
    align_table,
    check_feature_names,
    check_finite,
    check_sample_weight,
    read_table,
)
from .._reference.read import read_centers, read_labels
from .._util import FloatArray, IntArray, effective_n_jobs
from .build import Classes, GrownTree, add_up
from .cluster_tree import ClusterTree
from .nodes import LEAF, MISSING, leaf_mistakes, leaves_from_left
from .sketch import threshold_tests


def is_sklearn_tree(tree: Any) -> bool:
    """Whether this is a tree estimator of scikit-learn, without importing its trees."""
    names = {kind.__name__ for kind in type(tree).__mro__ if kind.__module__.startswith("sklearn.")}
    return "BaseDecisionTree" in names


def from_sklearn(
    tree: Any,
    X: Any = None,
    *,
    labels: npt.ArrayLike | None = None,
    centers: npt.ArrayLike | None = None,
    sample_weight: Any = None,
    feature_names: Any = None,
) -> ClusterTree:
    """Return a fitted decision tree of scikit-learn as a tree of clusters.

    Parameters
    ----------
    tree : DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier or ExtraTreeRegressor
        Fitted, of one output if it is a classifier.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Rows that counts, shares and labels are of, where `labels` or `centers` are given. None: the
        tree's own counts.
    labels : array-like of shape (n_samples,), default=None
        A cluster for each row of X, an integer or a string; each leaf gets its most frequent one.
        Rows labelled -1 (noise) are left out.
    centers : array-like of shape (n_clusters, n_features), default=None
        Clusters 0, 1, ...; each leaf gets the one whose center is nearest to its rows, by the sum
        of their squared distances.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows of X; rows of weight 0 are left out.
    feature_names : iterable of str, default=None
        Names of the columns, where neither the tree nor X has them.

    Returns
    -------
    ClusterTree
        Without `labels` and `centers` the clusters are the classes of a classifier; of a regressor
        each leaf is a cluster, 0, 1, ... from left to right.

    Raises
    ------
    TypeError
        If `tree` is not such an estimator.
    ValueError
        If it has several outputs to classify, `labels` and `centers` are both given or come without
        X, or sizes differ.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Notes
    -----
    scikit-learn compares columns in float32, this package in float64: rows within the rounding of a
    threshold may go to the other side. Missing values go to the side that its tree sends them to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import treeclust_rs as tc
    >>> iris = load_iris()
    >>> width, species = iris.data[:, 3:], iris.target_names[iris.target]
    >>> fitted = DecisionTreeClassifier(max_leaf_nodes=3).fit(width, species)
    >>> tree = tc.tree.from_sklearn(fitted, feature_names=iris.feature_names[3:])
    >>> tree.rules()["rule"].to_list()[0]
    'petal width (cm) <= 0.800000011920929'
    """
    if not is_sklearn_tree(tree):
        raise TypeError(
            "from_sklearn takes a DecisionTreeClassifier, a DecisionTreeRegressor or an extra tree "
            f"of scikit-learn. Got {type(tree).__name__} instead."
        )
    check_is_fitted(tree)
    names = getattr(tree, "feature_names_in_", None)
    names = feature_names if names is None else names.tolist()
    if labels is not None and centers is not None:
        raise ValueError("labels and centers are both given: one of them says what leaves are.")
    if labels is None and centers is None and X is not None:
        raise ValueError("X is given without labels or centers: the clusters of its rows.")
    if X is None:
        if not (labels is None and centers is None and sample_weight is None):
            raise ValueError("labels, centers and weights are of rows: give X.")
        return _with_own_counts(tree, names)
    n_features = int(tree.n_features_in_)
    if names is None:
        table = read_table(X, estimator_name="from_sklearn")
        if table.n_features != n_features:
            raise ValueError(
                f"X has {table.n_features} features, but the tree was fitted to {n_features}."
            )
    else:
        by_name = hasattr(tree, "feature_names_in_")
        names = check_feature_names(names, n_features, None)
        table = align_table(
            X, names, n_features, estimator_name="from_sklearn", names_given=not by_name
        )
    check_finite(table, effective_n_jobs(None))
    weight = check_sample_weight(sample_weight, table.n_samples)
    return _with_counts_of(tree, table, weight, labels, centers)


def _structure(tree: Any) -> tuple[_engine.TestArrays, IntArray]:
    """Return the tests with siblings side by side, and scikit-learn's number of each node."""
    nodes = tree.tree_
    order, left = [0], []
    for node in order:  # grows while it is walked
        is_split = nodes.children_left[node] >= 0
        left.append(len(order) if is_split else -1)
        if is_split:
            children = [int(nodes.children_left[node]), int(nodes.children_right[node])]
            # Missing cells against the rest: here they are those that go left.
            order += children[::-1] if np.isinf(nodes.threshold[node]) else children
    number = np.array(order, dtype=np.int64)
    split = np.array(left) >= 0
    feature = np.where(split, nodes.feature[number], -2).astype(np.int64)
    threshold = np.where(split, nodes.threshold[number], -2.0)
    tests = threshold_tests(feature, threshold, np.array(left, dtype=np.int64))
    is_missing = np.isinf(threshold)
    goes_left = split & (is_missing | (nodes.missing_go_to_left[number] != 0))
    return tests._replace(
        kind=np.where(is_missing, MISSING, tests.kind).astype(np.int8),
        threshold=np.where(is_missing, np.nan, threshold),
        missing_go_to_left=goes_left,
    ), number


def _with_own_counts(tree: Any, names: Any) -> ClusterTree:
    tests, number = _structure(tree)
    nodes = tree.tree_
    leaves = np.flatnonzero(tests.kind == LEAF)
    classes: Classes
    if hasattr(tree, "classes_"):
        if tree.n_outputs_ > 1:
            raise ValueError(f"The tree has {tree.n_outputs_} outputs: one is needed.")
        classes = _plain_classes(tree.classes_)
        value = nodes.value[number, 0, :]
        value = value / value.sum(axis=1, keepdims=True)
    else:
        classes = list(range(len(leaves)))
        value = np.zeros((len(number), len(leaves)))
        ordered = leaves_from_left(tests.children_left, tests.children_right)
        value[ordered, np.arange(len(ordered))] = 1.0
        weighted = value * nodes.weighted_n_node_samples[number][:, None]
        add_up(tests.children_left, weighted)
        value = weighted / weighted.sum(axis=1, keepdims=True)
    cluster = value.argmax(axis=1)
    weight = nodes.weighted_n_node_samples[number]
    rows = nodes.n_node_samples[number]
    mistakes = np.full(len(number), np.nan)
    own = value[leaves, cluster[leaves]]
    mistakes[leaves] = leaf_mistakes(weight[leaves], rows[leaves], own)
    return ClusterTree(
        **tests._asdict(),
        n_node_samples=rows,
        weighted_n_node_samples=weight,
        cluster=cluster,
        base_cluster=np.full(len(number), -1),
        impurity=nodes.impurity[number],
        value=value[:, None, :],
        mistakes=mistakes,
        n_features=int(tree.n_features_in_),
        classes=classes,
        feature_names=names,
    )


def _plain_classes(classes: npt.NDArray[Any]) -> Classes:
    """Return the classes of a classifier as integers, or else as strings."""
    is_whole = classes.dtype.kind == "f" and np.array_equal(classes, np.rint(classes))
    if classes.dtype.kind in "iu" or is_whole:
        return [int(name) for name in classes]
    return [str(name) for name in classes]


def _with_counts_of(
    tree: Any,
    table: Table,
    weight: FloatArray | None,
    labels: npt.ArrayLike | None,
    centers: npt.ArrayLike | None,
) -> ClusterTree:
    tests, _ = _structure(tree)
    threads = _engine.Threads(effective_n_jobs(None))
    is_kept = np.ones(table.n_samples, dtype=bool) if weight is None else weight > 0
    if labels is not None:
        given = read_labels(_array("labels", labels, 1), table, is_kept, "labels")
        assert given.classes is not None and given.labels is not None
        classes, codes, is_kept = given.classes, given.labels, given.labels >= 0
    else:
        assert centers is not None
        points = read_centers(_array("centers", centers, 2), table, "centers")
        classes = list(range(len(points)))
        rows = WeightedRows(table, None, Units.own(table.n_features), threads)
        regrets, nearest, _ = rows.label_costs(points)
        codes = nearest.astype(np.int64)
    leaf_of_row = _engine.Router(tests, table.n_features).apply(table.data, threads)
    assert leaf_of_row is not None, "the rows are finite"
    leaf_of_row, codes = leaf_of_row[is_kept], codes[is_kept]
    weight = None if weight is None else weight[is_kept]
    weights = np.ones(len(codes)) if weight is None else weight
    costs = np.zeros((len(tests.kind), len(classes)))
    if labels is not None:
        np.add.at(costs, (leaf_of_row, codes), weights)
        costs = costs.sum(axis=1, keepdims=True) - costs
    else:
        np.add.at(costs, leaf_of_row, weights[:, None] * regrets[is_kept])
    add_up(tests.children_left, costs)
    grown = GrownTree.of_rows(
        tests,
        None,
        leaf_of_row,
        codes,
        len(classes),
        weight,
        feature_scale=None,
        cost=costs.min(axis=1),
        cluster=costs.argmin(axis=1),
    )
    return grown.build(classes, table)


def _array(name: str, given: npt.ArrayLike, n_dimensions: int) -> npt.NDArray[Any]:
    """Return an argument as an array of so many dimensions."""
    array = np.asarray(given)
    if array.ndim != n_dimensions:
        shape = "(n_samples,)" if n_dimensions == 1 else "(n_clusters, n_features)"
        raise ValueError(f"{name} must have the shape {shape}. Got {array.shape} instead.")
    return array
