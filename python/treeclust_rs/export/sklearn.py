"""The tree as a fitted classifier of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from .._data import (
    Table,
    column_of,
    level_codes,
)
from .._engine import MISSING_LEVEL
from .._util import BoolArray, FloatArray, IntArray, documented, effective_n_jobs
from ..tree import (
    LEAF,
    ClusterTree,
    Condition,
    HasTree,
    ObliqueCondition,
    add_up,
    as_tree,
    read_rows,
)
from .threshold_form import ThresholdForm

# SHAP refuses leaves without weight: those without rows have this share of the whole.
_EMPTY_LEAF = 1e-6

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier


@documented
def to_sklearn(tree: ClusterTree | HasTree) -> DecisionTreeClassifier | Pipeline:
    """Return the tree as a fitted classifier of scikit-learn, whose classes are the clusters.

    Thresholds stay as they are, and intervals become two thresholds each (see
    `ClusterTree.to_threshold`; a tree without them keeps its node ids). NaN takes the way of
    `missing_go_to_left`. What reads trees of scikit-learn reads this one: ``export_text``, SHAP,
    dtreeviz, skl2onnx (1.20 of which sends NaN right at every test: `to_onnx` does not).

    %(tree_in)s

    Returns
    -------
    DecisionTreeClassifier or Pipeline
        A classifier if the table has only numbers, and the tree no weighted sums. Else a pipeline
        of a `TreeEncoder`, which takes the table, and such a classifier. The shares in a node, and
        so `predict_proba`, are those of the tree's own clusters: 1 and 0 in leaves. Rows of a node
        that an interval made two of are divided between them; leaves without rows have a millionth
        of the weight.

    Raises
    ------
    ValueError
        If scikit-learn, which compares numbers in float32, would send a value of the fit beside a
        threshold to the other side; the message names the node. Trees that do not know these values
        (`below` and `above`) are only refused for thresholds beyond float32. If the intervals take
        more than 200,000 nodes.
    TypeError
        If the model has no tree, as `Douglas`, whose own method makes one of its cells.

    Notes
    -----
    Labels are those of `predict` for all rows that float32 holds. Where the tree has no
    `missing_go_to_left`, NaN goes right in the classifier, and is refused by the encoder.

    Examples
    --------
    >>> import treeclust_rs as tc
    >>> from sklearn.tree import export_text
    >>> model = tc.ExKMC(reference=[0, 0, 1, 1]).fit([[1.0], [2.0], [7.0], [9.0]])
    >>> text = export_text(tc.export.to_sklearn(model), feature_names=["age"])
    >>> print(text.rstrip())
    |--- age <= 4.00
    |   |--- class: 0
    |--- age >  4.00
    |   |--- class: 1
    """
    names_given = getattr(tree, "_names_given", False)
    tree = as_tree(tree, method="to_sklearn")
    form = ThresholdForm.of(tree)
    form.check_float32("scikit-learn", "use `predict` of the model")
    classifier = _classifier(form)
    if form.has_table_columns:
        if tree.feature_names is not None and not names_given:
            classifier.feature_names_in_ = np.array(tree.feature_names, dtype=object)
        return classifier
    from sklearn.pipeline import Pipeline

    return Pipeline([("encoder", TreeEncoder(tree, names_given)), ("tree", classifier)])


def _classifier(form: ThresholdForm) -> DecisionTreeClassifier:
    from sklearn.tree import DecisionTreeClassifier

    tree = form.tree
    classes = np.asarray(tree.classes)
    order = np.argsort(classes)  # classifiers have their classes sorted
    classifier = DecisionTreeClassifier().fit([[0.0]], [0])
    make_tree, _, state = classifier.tree_.__reduce__()
    weight, n_rows = _consistent_counts(tree, form.has_copies)
    value = _own_shares(tree, weight)
    nodes = np.zeros(tree.n_nodes, dtype=state["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = form.children_left, form.children_right
    nodes["feature"], nodes["threshold"] = form.column, form.threshold
    nodes["missing_go_to_left"] = form.missing_go_to_left
    nodes["impurity"] = 1.0 - np.square(value).sum(axis=1)
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = n_rows, weight
    n_columns = max(len(form.columns), 1)
    classifier.tree_ = make_tree(n_columns, np.array([len(classes)], dtype=np.intp), 1)
    classifier.tree_.__setstate__(
        {
            "max_depth": tree.max_depth,
            "node_count": tree.n_nodes,
            "nodes": nodes,
            "values": np.ascontiguousarray(value[:, np.newaxis, order]),
        }
    )
    classifier.classes_, classifier.n_classes_ = classes[order], np.intp(len(classes))
    classifier.n_features_in_ = classifier.max_features_ = n_columns
    return classifier


def _consistent_counts(tree: ClusterTree, has_copies: bool) -> tuple[FloatArray, IntArray]:
    """Return weights and rows of the nodes, such that those of children add up to their parent's.

    They do but in trees with copies, which `to_threshold` makes of nodes. Weights are above 0.
    """
    weight, n_rows = tree.weighted_n_node_samples.copy(), tree.n_node_samples.copy()
    for node, left in enumerate(tree.children_left.tolist() if has_copies else []):
        if left < 0:
            continue
        for counts in (weight, n_rows):
            both = counts[left] + counts[left + 1]
            share = counts[left] / both if both > 0 else 0.5
            counts[left] = counts[node] * share
            counts[left + 1] = counts[node] - counts[left]
    is_empty = (tree.kind == LEAF) & (weight <= 0)
    if is_empty.any():
        weight[is_empty] = _EMPTY_LEAF * (weight[0] or 1.0)
        add_up(tree.children_left, weight)
    return weight, n_rows


def _own_shares(tree: ClusterTree, weight: FloatArray) -> FloatArray:
    """Return by node the shares of the clusters of its leaves, of shape (n_nodes, n_clusters)."""
    leaves = np.flatnonzero(tree.kind == LEAF)
    sums = np.zeros((tree.n_nodes, len(tree.classes)))
    sums[leaves, tree.leaf_clusters[leaves]] = weight[leaves]
    add_up(tree.children_left, sums)
    return np.asarray(sums / sums.sum(axis=1, keepdims=True))


class TreeEncoder(TransformerMixin, BaseEstimator):
    """Make of a table the columns that a tree of `to_sklearn` compares.

    Numbers stay as they are. Every other test of the tree (of levels, times, missing cells of such
    columns, weighted sums) is a column of zeros and ones: whether its condition holds. Tests on the
    same levels share a column; one on a single level is that of the level in a one-hot encoding. A
    whole set is one column because a tree on one column for each level needs a copy of a branch for
    each level.

    Parameters
    ----------
    tree : ClusterTree
        The tree. It has all there is to know: `fit` does nothing.
    names_given : bool, default=False
        Whether tables may lack the names of the tree's columns.
    """

    def __init__(self, tree: ClusterTree, names_given: bool = False) -> None:
        self.tree = tree
        self.names_given = names_given

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return self.tree.n_features

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Return the encoder: the tree says how to encode."""
        return self

    def get_feature_names_out(
        self,
        input_features: Any = None,  # noqa: ARG002
    ) -> npt.NDArray[np.object_]:
        """Return the names of the columns made: ``age``, ``region=north``, ``stay > 3d``.

        Parameters
        ----------
        input_features : object
            Not used: the tree has the names.

        Returns
        -------
        ndarray of str
        """
        return np.array(ThresholdForm.of(self.tree).names() or ["nothing"], dtype=object)

    def transform(self, X: Any) -> FloatArray:
        """Return the columns that the tree compares.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            As for `predict` of the model; only columns that the tree tests are read.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)

        Raises
        ------
        TypeError, ValueError
            As `predict` of the model does.
        """
        columns = ThresholdForm.of(self.tree).columns
        table = self._read(X)
        made = np.zeros((table.n_samples, max(len(columns), 1)))
        for place, column in enumerate(columns):
            if isinstance(column, int):
                made[:, place] = column_of(table, column)
            else:
                made[:, place] = _holds(column, table)
        return made

    def _read(self, X: Any) -> Table:
        return read_rows(
            self.tree,
            X,
            estimator_name="TreeEncoder",
            needed=self.tree.tested_features,
            names_given=self.names_given,
            n_jobs=effective_n_jobs(None),
        )


def _holds(condition: Condition | ObliqueCondition, table: Table) -> BoolArray:
    """Return the rows of a table that meet a condition."""
    if isinstance(condition, ObliqueCondition):
        score = condition.score(lambda f: column_of(table, f).astype(np.float64, copy=False))
        return np.asarray((score < 0) == condition.negative)
    if condition.codes is not None:
        holds = np.zeros(MISSING_LEVEL + 1, dtype=bool)
        holds[list(condition.codes)] = True
        holds[MISSING_LEVEL] = condition.missing
        return holds[level_codes(table, condition.feature)]
    cells, span = column_of(table, condition.feature), condition.span
    inside = (cells > span.lower) & (cells <= span.upper)
    return inside | np.isnan(cells) if condition.missing else inside
