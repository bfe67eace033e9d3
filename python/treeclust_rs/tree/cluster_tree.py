"""ClusterTree: a binary tree whose inner nodes hold a readable test and whose leaves a cluster.

The tree is a set of arrays with one entry per node, named as in scikit-learn: `children_left`,
`children_right`, `feature`, `threshold` and so on; -1 marks the missing children of a leaf, -2 its
undefined feature and threshold. Nodes are numbered in order of creation: the root is 0, and the two
children of a split follow each other, so that the first 2m - 1 nodes are the tree of m leaves.

Nothing here recurses: a tree as deep as it has leaves is printed, cut and pickled like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from .. import _engine
from .._data.frames import count_rows
from .._util import IntArray, documented, format_count
from . import checks
from .checks import check_moves, own_shares
from .html import tree_html
from .labels import renamed
from .nodes import (
    BESIDE_ARRAYS,
    COLUMN_ARGUMENTS,
    FLOAT_ARRAYS,
    INT_ARRAYS,
    INTERVAL,
    LEVELS,
    OBLIQUE,
    OBLIQUE_ARRAYS,
    OTHER_ARGUMENTS,
    THRESHOLD,
    TreeNodes,
)
from .paths import Condition, ObliqueCondition, path_to
from .reshape import expand_intervals, truncate_nodes
from .rules import RuleTable
from .text import leaf_rules, tree_text

# Starting threads takes longer than routing fewer rows than this.
_MIN_ROWS_FOR_THREADS = 256


class NonFiniteError(ValueError):
    """A cell is NaN or infinite."""


@documented
class ClusterTree(TreeNodes):
    """A binary tree that assigns rows to clusters.

    Estimators build it, or users from arrays, which are copied and checked. The arrays of a tree
    are read-only.

    Parameters
    ----------
    children_left, children_right : array-like of int, shape (n_nodes,)
        Node ids of the children; -1 at leaves. A right child's id is its left sibling's plus 1, and
        children come after their parent.
    feature : array-like of int, shape (n_nodes,)
        Index of the tested feature; -2 at leaves and oblique nodes.
    threshold : array-like of float, shape (n_nodes,)
        At threshold nodes, rows with ``x <= threshold`` go left; NaN at other tests, -2.0 at
        leaves. Of times in microseconds since 1970.
    lower, upper : array-like of float, shape (n_nodes,)
        At interval nodes, rows with ``lower <= x <= upper`` go left; NaN at all others.
    kind : array-like of int, shape (n_nodes,)
        0 leaf, 1 threshold, 2 interval, 3 oblique, 4 levels, 5 missing.
    impurity : array-like of float, shape (n_nodes,)
        Cost of the node per unit of weight: the surrogate cost under its own best label; in a tree
        with moves the kernel cost as a cluster of its own, negative only for indefinite kernels.
    n_node_samples : array-like of int, shape (n_nodes,)
        Rows of the fit that reach the node.
    weighted_n_node_samples : array-like of float, shape (n_nodes,)
        Their weight.
    value : array-like of float, shape (n_nodes, 1, n_clusters), or None
        Share of each reference cluster in the weight of the node; all 0 in an empty node. In a tree
        with moves, which has no reference, the share of each of the tree's own clusters; None
        computes it from the leaves below.
    cluster : array-like of int, shape (n_nodes,)
        Code of the cluster of the node as a leaf. In a tree with moves the cluster it got when it
        was made; codes are in order of creation, and the root has 0.
    base_cluster : array-like of int, shape (n_nodes,)
        Code of the cluster of a leaf of the base tree; -1 at all other nodes.
    mistakes : array-like of float, shape (n_nodes,)
        At leaves the weight of the rows whose reference cluster is not the leaf's; at splits of an
        IMM base the weight of the rows the cut separates from their center; else NaN. NaN in a tree
        with moves.
    n_features : int
        Number of features of the data.
    classes : sequence of int or sequence of str
        The cluster labels as the user gave them, one per code.
    n_base_leaves : int, default=0
        Number of leaves of the base tree; 0 for a tree grown from a single leaf. The leaves of a
        tree of exactly this many leaves have the labels `base_cluster`.
    feature_names : sequence of str or None, default=None
        Names of the features; None stands for x0, x1, ...
    move : array-like of int, shape (n_nodes,), or None, default=None
        In a tree grown by Kauri how each split placed its children, whose rows had the cluster of
        their parent before: 0 star (one stays, one is a new cluster), 1 double star (both are
        new), 2 switch (one stays, one joins an existing cluster), 3 reallocation (both join
        different existing ones), 4 mixed (one is new, one joins an existing one); -1 at leaves.
        Such a tree has threshold tests only, no base and no empty nodes, and all of its clusters
        have rows.
    gain : array-like of float, shape (n_nodes,), or None, default=None
        Increase of Kauri's objective by each split, above 0; NaN at leaves. Only with `move`.
    oblique_indptr : array-like of int, shape (n_nodes + 1,), or None, default=None
        The terms of node i are ``oblique_indptr[i]`` to ``oblique_indptr[i + 1]``, as in a sparse
        matrix by rows; oblique nodes have at least one, the others none. At oblique nodes rows
        with a score below 0 go left; the score is the bias, plus the terms weight * x, added one
        after the other.
    oblique_indices : array-like of int, shape (n_terms,), or None, default=None
        Index of the feature of each term, ascending within a node.
    oblique_weights : array-like of float, shape (n_terms,), or None, default=None
        Weight of each term, in the unit of its feature; not 0.
    oblique_bias : array-like of float, shape (n_nodes,), or None, default=None
        Bias of oblique nodes; NaN at all others. A tree without oblique nodes has None of these
        four arrays.
    feature_scale : array-like of float, shape (n_features,), or None, default=None
        Standard deviation of each column among the rows of the fit, by their weights. Texts write
        the terms of an oblique test by their share, |weight| x standard deviation, the largest
        first; with None, as after loading a file of an older version, by |weight|. None in a tree
        without oblique nodes.
    levels_indptr : array-like of int, shape (n_nodes + 1,), or None, default=None
        The codes of node i are ``levels_indptr[i]`` to ``levels_indptr[i + 1]``; nodes that test
        levels have at least one, the others none.
    levels_codes : array-like of int, shape (n_codes,), or None, default=None
        Codes of the levels that go left, ascending within a node. A tree without tests on levels
        has None of these two arrays.
    missing_go_to_left : array-like of bool, shape (n_nodes,), or None, default=None
        Whether a row whose tested cell is missing goes left; False at leaves, True at nodes that
        test for missing cells. A level that its column does not have goes the same way. None: the
        tree refuses missing cells, as those with oblique nodes and of model files of version 1 do.
    below, above : array-like of float, shape (n_nodes,), or None, default=None
        Of the rows of the fit that reach a threshold or interval node the largest value up to its
        threshold or `upper`, and the least beyond; NaN at other nodes, and where there is none or
        it is not known. None: not known anywhere.
    below_lower, above_lower : array-like of float, shape (n_nodes,), or None, default=None
        Of the rows that reach an interval node the largest value below its `lower`, and the least
        that is not; NaN and None as for `below`.
    column_kinds : sequence of str or None, default=None
        What each column holds: "number", "levels", "flag", "date", "datetime[zone]" (with nothing
        in the brackets for times without a zone) or "duration". None: numbers.
    levels : sequence of (sequence of str or None) or None, default=None
        The levels of each column of kind "levels" or "flag", in the order of their codes, at most
        255; those of a flag are false and true. None for other columns, or without any such.
    has_missing : sequence of bool or None, default=None
        Whether each column had missing cells in the fit: texts then say where they go. None: no.

    Attributes
    ----------
    n_nodes, n_leaves, n_features, max_depth : int
        Sizes; the depth of the root is 0.
    leaves : ndarray of shape (n_leaves,)
        Node ids of the leaves, from left to right.
    leaf_clusters : ndarray of shape (n_nodes,)
        Code of the cluster of each leaf; -1 at inner nodes.
    node_depth : ndarray of shape (n_nodes,)
        Depth of each node.
    parent : ndarray of shape (n_nodes,)
        Parent of each node; -1 at the root.
    n_node_features : ndarray of shape (n_nodes,)
        Number of features that each node's test uses; 0 at leaves.

    Raises
    ------
    ValueError
        If the arrays are not such a tree; the message names the first wrong node.

    Examples
    --------
    >>> nan = float("nan")
    >>> tree = ClusterTree(
    ...     children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[0, -2, -2],
    ...     threshold=[41.5, -2.0, -2.0], lower=[nan, nan, nan], upper=[nan, nan, nan],
    ...     kind=[1, 0, 0], impurity=[2.0, 0.0, 0.0], n_node_samples=[10, 4, 6],
    ...     weighted_n_node_samples=[10.0, 4.0, 6.0],
    ...     value=[[[0.4, 0.6]], [[1.0, 0.0]], [[0.0, 1.0]]], cluster=[1, 0, 1],
    ...     base_cluster=[-1, -1, -1], mistakes=[nan, 0.0, 0.0], n_features=1,
    ...     feature_names=["income"], classes=["low", "high"],
    ... )
    >>> tree
    ClusterTree(n_leaves=2, max_depth=1, n_features=1, n_clusters=2)
    >>> tree.rules()["rule"].to_list()
    ['income <= 41.5', 'income > 41.5']
    """

    def __init__(
        self,
        *,
        children_left: npt.ArrayLike,
        children_right: npt.ArrayLike,
        feature: npt.ArrayLike,
        threshold: npt.ArrayLike,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        kind: npt.ArrayLike,
        impurity: npt.ArrayLike,
        n_node_samples: npt.ArrayLike,
        weighted_n_node_samples: npt.ArrayLike,
        value: npt.ArrayLike | None,
        cluster: npt.ArrayLike,
        base_cluster: npt.ArrayLike,
        mistakes: npt.ArrayLike,
        n_features: int,
        classes: Sequence[int] | Sequence[str],
        n_base_leaves: int = 0,
        feature_names: Sequence[str] | None = None,
        move: npt.ArrayLike | None = None,
        gain: npt.ArrayLike | None = None,
        oblique_indptr: npt.ArrayLike | None = None,
        oblique_indices: npt.ArrayLike | None = None,
        oblique_weights: npt.ArrayLike | None = None,
        oblique_bias: npt.ArrayLike | None = None,
        feature_scale: npt.ArrayLike | None = None,
        levels_indptr: npt.ArrayLike | None = None,
        levels_codes: npt.ArrayLike | None = None,
        missing_go_to_left: npt.ArrayLike | None = None,
        below: npt.ArrayLike | None = None,
        above: npt.ArrayLike | None = None,
        below_lower: npt.ArrayLike | None = None,
        above_lower: npt.ArrayLike | None = None,
        column_kinds: Sequence[str] | None = None,
        levels: Sequence[Sequence[str] | None] | None = None,
        has_missing: Sequence[bool] | None = None,
    ) -> None:
        given = dict(locals())
        if (move is None) != (gain is None):
            raise ValueError("A tree has both move and gain, or neither.")
        if value is None and move is None:
            raise ValueError(
                "A tree without moves needs its value; only with moves can it be None."
            )
        self.n_features = checks.check_int(n_features, "n_features", minimum=1)
        self.n_base_leaves = checks.check_int(n_base_leaves, "n_base_leaves", minimum=0)
        self.classes = checks.check_classes(classes)
        self.feature_names = checks.check_names(feature_names, self.n_features)
        self.column_kinds, self.levels, self.has_missing = checks.check_columns(
            column_kinds, levels, has_missing, self.n_features
        )
        n_nodes: int | None = None
        for name in (*INT_ARRAYS, *FLOAT_ARRAYS):
            array = checks.check_node_array(name, given[name], n_nodes, is_int=name in INT_ARRAYS)
            n_nodes = len(array)
            setattr(self, name, array)
        self.move = self.gain = None
        if move is not None and gain is not None:
            self.move = checks.check_node_array("move", move, n_nodes, is_int=True)
            self.gain = checks.check_node_array("gain", gain, n_nodes, is_int=False)
        if value is not None:
            self.value = checks.check_value_array(value, self.n_nodes, len(self.classes))
        oblique = checks.check_oblique_arrays(
            {name: given[name] for name in OBLIQUE_ARRAYS}, self.n_nodes
        )
        self._set_oblique(oblique)
        self.feature_scale = checks.check_feature_scale(feature_scale, self.n_features)
        runs = checks.check_level_arrays(levels_indptr, levels_codes, self.n_nodes)
        self.levels_indptr, self.levels_codes = runs or (None, None)
        self.missing_go_to_left = checks.check_directions(missing_go_to_left, self.n_nodes)
        for name in BESIDE_ARRAYS:
            values = given[name]
            if values is not None:
                values = checks.check_node_array(name, values, n_nodes, is_int=False)
            setattr(self, name, values)
        checks.check_structure(self)
        checks.check_tests(self)
        checks.check_statistics(self)
        checks.check_labels(self)
        if self.move is not None:
            check_moves(self)
            shares = own_shares(self)
            if value is None:
                self.value = shares
            checks.at_all(
                (np.abs(self.value - shares) <= 1e-6).all(axis=(1, 2)),
                "has a value that is not the shares of its leaves' clusters",
            )
            self.move = self.move.astype(np.int8)
        checks.check_value(self)
        self.kind = self.kind.astype(np.int8)
        if not (self.kind == OBLIQUE).any():
            self._set_oblique(None)
            self.feature_scale = None
        if not (self.kind == LEVELS).any():
            self.levels_indptr = self.levels_codes = None
        if not (self.kind == INTERVAL).any():
            self.below_lower = self.above_lower = None
            if not (self.kind == THRESHOLD).any():
                self.below = self.above = None
        for name in self.array_names:
            getattr(self, name).setflags(write=False)
        self._is_built = True

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a tree that was built."""
        if "_is_built" in self.__dict__ and name in (*self.array_names, *OTHER_ARGUMENTS):
            way_out = {
                "classes": "rename_clusters({old: new}) of the tree or the model returns one with "
                "other labels",
                "feature_names": "give the names to fit, in a frame or as feature_names=[...]",
            }.get(name, "build another one by ClusterTree(...)")
            raise AttributeError(f"A tree cannot be changed: its {name} are fixed. {way_out}.")
        super().__setattr__(name, value)

    def _set_oblique(self, arrays: _engine.ObliqueArrays | None) -> None:
        for name, array in zip(OBLIQUE_ARRAYS, arrays or (None,) * 4, strict=True):
            setattr(self, name, array)

    # ---- prediction -----------------------------------------------------------------------

    def apply(
        self, data: Any, n_jobs: int | _engine.Threads = 1, *, missing: bool = True
    ) -> IntArray:
        """Return the leaf that each row reaches.

        Parameters
        ----------
        data : ndarray or sparse matrix of shape (n_samples, n_features), or list of ndarray
            The features, of a dtype the core reads; a list holds one array of shape (n_samples,)
            per feature, or a `LevelColumn`. Cells of columns of levels are codes, those of times
            microseconds since 1970; NaN is a missing cell. Sparse matrices are read by rows and
            never made dense.
        n_jobs : int, default=1
            Number of threads.
        missing : bool, default=True
            Whether missing cells take the directions of their nodes; False refuses them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node ids of leaves.

        Raises
        ------
        ValueError
            If the data have another number of features or of dimensions.
        NonFiniteError
            If a cell is infinite in a column that the tree tests, or NaN where `missing` is False
            or `missing_go_to_left` is None; other columns are not read.
        """
        # One row takes a microsecond or two: what is asked here counts.
        is_list = isinstance(data, list)
        if not is_list and data.ndim != 2:
            raise ValueError(f"The data have {format_count(data.ndim, 'dimension')}, not 2.")
        n_rows, n_columns = (None, len(data)) if is_list else data.shape
        if n_columns != self.n_features:
            features = format_count(self.n_features, "feature")
            raise ValueError(f"The tree has {features}; the data have {n_columns}.")
        if n_rows is None:
            n_rows = count_rows(data)
        if n_rows < _MIN_ROWS_FOR_THREADS and isinstance(n_jobs, int):
            n_jobs = min(n_jobs, 1)
        router = self.router if missing else self._router_of_complete_rows
        if not (is_list or isinstance(data, np.ndarray)) and issparse(data):
            by_rows = data.tocsr()
            stored = (
                by_rows.indptr.astype(np.int64, copy=False),
                by_rows.indices.astype(np.int64, copy=False),
                by_rows.data.astype(np.float64, copy=False),
                n_columns,
            )
            leaves = router.apply_sparse(stored, n_jobs)
        else:
            leaves = router.apply(data, n_jobs)
        if leaves is None:
            takes_missing = missing and self.missing_go_to_left is not None
            what = "inf" if takes_missing else "NaN or inf"
            raise NonFiniteError(f"The data contain {what}.")
        return leaves

    @cached_property
    def router(self) -> _engine.Router:
        """The tests in the core's form; the arrays are read-only. Pickles and copies have none."""
        return _engine.Router(self.test_arrays, self.n_features, self.oblique_arrays)

    @cached_property
    def _router_of_complete_rows(self) -> _engine.Router:
        """As `router`, but missing cells are refused."""
        return self.router.of_complete_rows()

    @cached_property
    def leaf_labels(self) -> npt.NDArray[Any]:
        """Label of the cluster of each leaf, by node id, as the user named it."""
        labels = np.asarray(self.classes)[self.leaf_clusters]
        labels.setflags(write=False)
        return labels

    def predict(self, data: Any, n_jobs: int = 1) -> npt.NDArray[Any]:
        """Return the label of each row's cluster, as the user named it; data as for `apply`."""
        return self.leaf_labels[self.apply(data, n_jobs)]

    # ---- reading --------------------------------------------------------------------------

    def path_conditions(self, node: int) -> list[Condition | ObliqueCondition]:
        """Return the conditions on the path from the root to a node, merged per feature.

        Of the bounds on one feature in one direction only the tightest counts, and of the outsides
        of intervals those that no bound implies; sets of levels are merged to one. Oblique tests
        are not merged.

        Parameters
        ----------
        node : int
            Node id.

        Returns
        -------
        list of Condition and ObliqueCondition
            In the order in which the path first tests their features.
        """
        self.check_node(node)
        return path_to(self, int(node)).conditions()

    def rules(self, max_terms: int | None = None) -> RuleTable:
        """Return the tree as one rule per leaf.

        Redundant conditions are merged: ``x <= 9`` then ``x <= 5`` is ``x <= 5``. The numbers are
        exactly those of the model. Oblique tests are not merged; their terms are written by share,
        |weight| x standard deviation of the column, the largest first (see `feature_scale`).

        Parameters
        ----------
        max_terms : int, default=None
            Most terms of an oblique test to write, those of the largest shares; if it has at least
            two more, followed by the number of the others; None writes all.

        Returns
        -------
        RuleTable
            A polars frame (`frame`, and all its methods) that is printed whole. One row per leaf,
            from left to right: `cluster` (the user's label), `rule`, `n` (rows of
            the fit), `share` (of all rows), `purity` (share of the leaf's weight that the reference
            puts in the leaf's cluster; null in an empty leaf) and `depth`. A tree with moves has no
            reference and no `purity`, but, after `depth`, `move` (of the split above the leaf) and
            `from_cluster` (the label of the leaf's rows before that split); both are null if the
            tree has no split.

        Raises
        ------
        ValueError
            If the rules would repeat the weights of oblique tests more than 2 million times.
        """
        if max_terms is not None:
            max_terms = checks.check_int(max_terms, "max_terms", minimum=1)
        return RuleTable(leaf_rules(self, max_terms))

    def __str__(self) -> str:
        return tree_text(self)

    def __repr__(self) -> str:
        return (
            f"ClusterTree(n_leaves={self.n_leaves}, max_depth={self.max_depth}, "
            f"n_features={self.n_features}, n_clusters={len(self.classes)})"
        )

    def _repr_html_(self) -> str:
        return tree_html(self)

    # ---- new trees from this one ----------------------------------------------------------

    def truncate(self, max_leaves: int) -> ClusterTree:
        """Undo the last splits.

        Parameters
        ----------
        max_leaves : int
            Number of leaves to keep; the tree itself is returned if it has no more.

        Returns
        -------
        ClusterTree
            The tree as it was when it had this many leaves. A tree with moves loses the clusters
            that later splits made; its `value` is that of the leaves it has.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1 or than the leaves of the base tree.
        """
        max_leaves = checks.check_int(max_leaves, "max_leaves", minimum=1)
        if max_leaves < self.n_base_leaves:
            raise ValueError(
                f"The tree cannot be cut: max_leaves={max_leaves} is less than the "
                f"{self.n_base_leaves} leaves of the base tree. One that was grown with "
                "base_tree=None can be cut to any size."
            )
        if max_leaves >= self.n_leaves:
            return self
        return ClusterTree(**truncate_nodes(self, 2 * max_leaves - 1))

    def rename_clusters(self, names: Mapping[Any, int | str]) -> ClusterTree:
        """Return the tree with other labels for its clusters.

        Parameters
        ----------
        %(new_labels)s

        Returns
        -------
        ClusterTree

        %(label_errors)s
        """
        return ClusterTree(**self.arguments() | {"classes": renamed(self.classes, names)})

    def to_threshold(self) -> ClusterTree:
        """Return a tree of threshold tests only that sends every row to the same cluster.

        An interval node becomes two threshold nodes: ``x <= v`` with v the largest float below
        `lower` sends the rows below the interval to a copy of the outside subtree, and
        ``x <= upper`` separates the inside from the outside above it. The outside subtree is
        therefore *duplicated*, except for tests whose answer is already known: the tree can grow
        exponentially with the number of intervals on one path. The rows, shares and costs of a copy
        are those of the node it was copied from, so that sums over the leaves count them twice.
        The result has no base tree, and its nodes are numbered level by level, so that `truncate`
        does not undo splits in their order: truncate first.

        Returns
        -------
        ClusterTree
            This tree itself if it has no interval nodes.

        Raises
        ------
        ValueError
            If the result would have more than 200,000 nodes, or the tree has oblique nodes, which
            thresholds cannot replace.
        """
        if self.oblique_indptr is not None:
            node = int(np.argmax(self.kind == OBLIQUE))
            raise ValueError(
                f"Node {node} of the tree is oblique: thresholds cannot send every row to the same "
                "side."
            )
        if not (self.kind == INTERVAL).any():
            return self
        return ClusterTree(**expand_intervals(self))

    # ---- equality and pickling ------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClusterTree):
            return NotImplemented
        return (
            self.n_nodes == other.n_nodes
            and self.n_features == other.n_features
            and self.n_base_leaves == other.n_base_leaves
            and self.feature_names == other.feature_names
            and self.classes == other.classes
            and all(getattr(self, name) == getattr(other, name) for name in COLUMN_ARGUMENTS)
            and self.array_names == other.array_names
            and all(
                np.array_equal(
                    getattr(self, name),
                    getattr(other, name),
                    equal_nan=getattr(self, name).dtype.kind == "f",
                )
                for name in self.array_names
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return self.arguments()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.clear()  # nothing computed from other arrays stays
        self.__init__(**state)  # type: ignore[misc]
