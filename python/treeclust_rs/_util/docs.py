"""Entries of numpydoc sections that stand in several docstrings.

A line ``%(name)s`` in the docstring of a class or method stands for the entries below ``[name]``.

[grown_kernel_tree_parameters]

Parameters
----------
%(grown_kernel_tree)s
%(kernel_parameters)s
%(kernel_tree)s

Attributes
----------
%(kernel_tree_attributes)s

[kernel_columns_and_errors]
%(kernel_columns)s
%(columns_and_errors)s

[columns_and_errors]
%(columns)s

Raises
------
ValueError, TypeError
    By `fit`: see there.

[columns_in_and_errors]
%(scale_units)s
%(columns_and_errors)s

[columns_in_and_value_error]
%(columns_in)s

Raises
------
ValueError
    By `fit`: see there.

[fitted]

Returns
-------
self
    The fitted estimator.

[feature_names]
feature_names : list of str, default=None
    Names of the columns of an array or a sparse matrix, one a column, which texts, rules, polars
    expressions and files then write. They set no `feature_names_in_`: at `predict` arrays are still
    read by position, frames by name. A frame brings its own names; those given must equal them.
    A Pipeline passes them to its step ``trees`` by ``fit(X, trees__feature_names=...)``. In a
    search use a frame: it slices what is as long as X.

[weight_gram_fitted]
%(weight_and_gram)s
%(feature_names)s

%(fitted)s

[kernel_fit]
%(kernel_rows_and_gram)s
%(feature_names)s

%(fitted)s

[weight_fitted]
%(labels_as_reference)s
%(sample_weight)s
%(feature_names)s

%(fitted)s

[kernel_errors]
TypeError
    If a column is not numbers (but see X), or a callable kernel gives no number.

Warns
-----
UserWarning

[as_for_probabilities]

Raises
------
ValueError
    As for `predict_proba`.

[scored_rows]
%(rows_as_predict)s
y : ignored
    For the API.
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.

[score_errors]

Raises
------
ValueError
    As for `fit`; and if the model was read from a file that does not hold its kernel (a
    callable, `kernel_params`, an approximation).

[labels_tree]
max_depth : int or None, default=None
    Deepest level of leaves.
min_samples_leaf : int, default=1
    Fewest rows in a leaf.
reference : None, estimator or array, default=None
    What the tree explains. None: scikit-learn's KMeans (best of 10 starts). A fitted estimator:
    its `labels_` (or `predict`) and `cluster_centers_`; an unfitted one is cloned and fitted to
    X, without `scale`. A 2-D array: centers in the columns of X. A 1-D array: a label per row,
    integers or strings; -1, a number or a text, marks noise, which is left out of the fit.
%(explaining_common)s

Attributes
----------
%(mean_attributes)s
cost_path_ : polars.DataFrame
    By number of leaves `cost`, the surrogate about the reference's centers, and `inertia`, that
    about the tree's own. Both may rise: growth follows the labels.
feature_importances_ : ndarray of shape (n_features,)
    Share of each column in the decrease of the surrogate cost.
%(columns_in_and_value_error)s

[labels_of_mixed_tables]
Cuts of a column of text are single levels and the levels in the order of a label's share: with
two labels the best of all sets. Where rows lack the cell of a cut, it is tried with them on
either side, and the missing cells against all others; costs and means are of the observed cells.

[mean_attributes]
%(tree_attributes)s
%(center_costs)s

[missing_columns]

Raises
------
ValueError
    If columns are missing, or a cell is NaN, infinite or null.

[predict_errors]

Raises
------
ValueError
    If columns are missing, or a cell is infinite. If one is NaN or null, where the tree has no
    directions for missing cells: with oblique tests, and after loading a file of version 1.
TypeError
    If a column holds another kind of thing than in the fit.

Warns
-----
UserWarning
    Once if cells are missing in columns without gaps in the fit, which take the way of
    `tree_.missing_go_to_left`; and once of levels that the fit did not have: they count as missing.

[explaining_attributes]
%(explaining)s

Attributes
----------
%(tree_attributes)s
%(center_costs)s

[polars]

Returns
-------
polars.Expr
    For instance for ``frame.with_columns(model.to_polars())``.

Raises
------
ValueError

[narwhals]

Returns
-------
narwhals.Expr
    For instance for ``nw.from_native(frame).with_columns(model.to_narwhals()).to_native()``.

Raises
------
ImportError
    If narwhals is not installed.
ValueError

[sql]

Parameters
----------
dialect : {"duckdb", "sqlite", "postgres", "spark", "bigquery", "snowflake"}, default="duckdb"
    The database.
table : str, sequence of str or None, default=None
    The name of a table, or a path such as ``("schema", "table")``, for a SELECT of all its columns
    and of the label as `name`; None for the expression alone.
name : str, default="cluster"
    The name of the label's column in the SELECT. The table must have no such column.

Returns
-------
str
    SQL without a semicolon.

Raises
------
ValueError

[scale]
scale : None, "standard", "robust", mapping or array-like of shape (n_features,), default=None
    Units of the columns where rows are compared; tests stay in the columns' own units. None:
    their own. "standard": their standard deviations. "robust": interquartile ranges / 1.349 (of a
    normal column the standard deviation), which far values hardly move; where that is 0, the
    standard deviation. A mapping from names of columns (x0, x1, ... where they have none) to units
    above 0: those it lacks have 1. An array: a unit above 0 for each column. Constant columns have
    1 unless a unit is given. Of themselves two levels of a column of text are 1 apart, and times
    count in microseconds.

[scale_units]
scale_ : ndarray of shape (n_features,)
    Units of the columns in costs, as `scale` says.

[tree_in]

Parameters
----------
tree : ClusterTree, fitted estimator or tree of scikit-learn
    The tree.

[clustered_rows]
X : array-like, frame or sparse matrix of shape (n_samples, n_features)
    The data. As for `IMM`, cells may be missing, which cost nothing, and columns of frames hold
    text, booleans, dates and times. Sparse rows are taken for k-means and k-medians costs.
labels : array-like of shape (n_samples,)
    Cluster of each row, integers or strings; rows labelled -1 are left out.
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows, not negative; None is 1 for each.

[scale_of_costs]
scale : None, "standard", "robust", array of shape (n_features,) or fitted estimator, default=None
    What the columns are divided by: nothing, their standard deviations or interquartile ranges /
    1.349 (of the rows that count), units, or the `scale_` of a fitted estimator.

[of_value]

Parameters
----------
probabilities, affinity
    As for `value`.

[value_errors]

Raises
------
ValueError
    As for `value`.

[new_labels]
names : mapping
    The new label of each cluster that gets one, by its old label, for example ``{0: "Loyal"}``.
    Labels are strings or integers. Clusters that are not in the mapping keep their labels;
    where others get strings, integers that stay become strings: 1 is then "1".

[label_errors]

Raises
------
ValueError
    If there is no such cluster, two clusters would have the same label, one would be called -1,
    which marks noise, or a label is not valid Unicode.
TypeError
    If `names` is not a mapping, a label is neither a string nor an integer, or some would be
    strings and others integers.

[affinity_as_fit]
y : ignored
    For the API.
affinity : array-like of shape (n_samples, n_samples), default=None
    As for `fit`.

[needs_matplotlib]

Raises
------
ImportError
    If matplotlib is not installed.
ValueError

[center_costs]
cluster_centers_ : ndarray of shape (n_clusters, n_coordinates)
    Means (k-medians: medians) of the tree's clusters, in the columns' own units; an empty cluster
    keeps the reference's. A column of text or booleans has a coordinate for each of its levels:
    the level's share (k-medians: 1 for the most frequent, else 0). All other columns have one.
%(encoded_names)s
%(inertia)s

[columns]
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns, if X had names.

[columns_in]
%(scale_units)s
%(columns)s

[encoded_names]
encoded_names_ : ndarray of shape (n_coordinates,)
    Names of the columns of `cluster_centers_`: ``age``, or ``region=north`` for a level.

[explaining]
reference : None, estimator or array, default=None
    What the tree explains. None: scikit-learn's KMeans (best of 10 starts), or k-medians. A
    fitted estimator: its `labels_` (or `predict`) and `cluster_centers_`; an unfitted one is
    cloned and fitted to X, without `scale`: ``make_pipeline(StandardScaler(), KMeans(3))`` has a
    scale of its own. A 2-D array: centers in the columns of X. A 1-D array: a label per row,
    integers or strings; -1, a number or a text, marks noise, which is left out of the fit.
%(explaining_common)s

[explaining_common]
%(scale)s
%(reference_seed)s
verbose : int, default=0
    Whether to print a line of progress now and then: on stderr, or by the logger
    ``treeclust_rs`` if that has a handler and takes INFO.

[frame_rows]
X : array-like, frame or sparse matrix of shape (n_samples, n_features)
    Rows. Frames are matched by column name: order does not matter, other columns are
    ignored. Sparse matrices are taken by the methods whose `fit` takes them.

[grown_kernel_tree]
%(n_clusters)s
max_leaves : int, inf or None, default=None
    Most leaves, at least `n_clusters`; None means `n_clusters`, ``math.inf`` no limit.
base_tree : {"kernel_imm", None}, default="kernel_imm"
    The tree to grow from: Kernel IMM's, or a single leaf. Kernels without surrogate features
    always grow from a single leaf.
cuts : {"auto", "threshold", "interval"}, default="auto"
    Form of the cuts after the base: ``x <= a``, or ``a <= x <= b`` as well. "auto": intervals
    after Kernel IMM on features that rise and fall (taylor, distance, additive_chi2), whose
    tree may have some; else thresholds.
%(growth)s
kernel : str or callable, default="rbf"
    A kernel's name, "precomputed", or a function of two rows.

[growth]
max_depth : int or None, default=None
    Deepest level of leaves that growth may make; does not limit the base tree.
min_samples_leaf : int, default=1
    Fewest rows in a leaf that growth may make; does not limit the base tree.

[inertia]
inertia_ : float
    Cost of the tree's clusters about their own centers, on standardised columns if
    ``scale="standard"``.
%(reference_inertia)s

[kernel_columns]
gamma_ : float or None
    The kernel's gamma; None for kernels without one.
scale_ : ndarray of shape (n_features,)
    Units of the columns, as `scale` says.

[kernel_parameters]
gamma : float, "scale" or None, default=None
    Of the kernels rbf, laplacian, polynomial and chi2. None: 1 / n_features (chi2: 1).
    "scale": 1 / (n_features * mean variance of the columns).
degree : float, default=3
    Of the polynomial kernel.
coef0 : float, default=1.0
    Of the polynomial kernel.
kernel_params : mapping, default=None
    ``{"epsilon": e}`` of the kernel epsilon, ``{"beta": b}`` of histogram_intersection, or
    keyword arguments of a callable.

[kernel_rows_and_gram]
X : array-like, frame or sparse matrix of shape (n_samples, n_features)
    numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
    numbers: the columns the tree may cut, and the rows the kernel compares.
    %(who_takes_sparse)s
    %(who_takes_mixed)s
%(weight_and_gram)s

[kernel_tree]
approximation : {None, "nystroem", "rpcholesky", "rff"}, default=None
    None: the exact kernel, whose matrix kernel k-means needs (8 n^2 bytes) unless it is linear
    or hellinger. Else features of low rank, in memory O(n_samples * n_components); costs are
    then those of the approximated kernel.
n_components : int, default=100
    Most features of an approximation.
n_init : int, default=10
    Starts of kernel k-means.
features : {"auto", "taylor", "distance", "additive"}, default="auto"
    "taylor" (rbf): terms of the Gaussian's Taylor series, definition 3. "distance" (rbf,
    laplacian): the kernel of the column with anchors, equation (4). "additive" (the others):
    appendix H. "auto": taylor for rbf, distance for laplacian, additive for the others.
order : int, default=5
    M: the last term of "taylor" (the first is 0), the number of features of additive_chi2.
n_anchors : int, "all" or None, default=None
    Anchors of "distance" per column: "all" distinct values, or that many values at even
    quantiles of the rows. None: all up to 256, else 256.
shift : float or array-like of shape (n_features,), default=None
    Origin of "taylor", below all values of the column and in its units; the truncated series
    depends on it. None: 1 % of the column's range below its smallest value.
reference : None, estimator or array, default=None
    What the tree explains. None: `KernelKMeans`. A fitted estimator: its `labels_` (or
    `predict`); an unfitted one is cloned and fitted to X, without the kernel and `scale` given
    here. A 1-D array: a label per row, integers or strings; -1 marks noise, which is left out of
    the fit. A 2-D array: centers in the columns of X; the nearest counts.
%(scale)s
random_state : int, RandomState or None, default=None
    Seed of kernel k-means and of approximations.
%(threads)s

[kernel_tree_attributes]
tree_ : ClusterTree
    The tree; print it.
labels_ : ndarray of shape (n_samples,)
    Cluster of every row, noise included, as the tree predicts it.
%(reference_labels)s
%(numbers)s
classes_ : ndarray of shape (n_clusters,)
    The clusters' labels.
inertia_, reference_inertia_ : float
    The k-means cost of the tree's and of the reference's clusters about their own means in the
    columns, on standardised ones if ``scale="standard"``.
cost_ratio_ : float
    `inertia_` / `reference_inertia_`.
kernel_cost_, reference_kernel_cost_ : float
    Kernel k-means cost of the tree's and of the reference's clusters about their own implicit
    means; computed when first asked for.
price_of_explainability_ : float
    `kernel_cost_` / `reference_kernel_cost_` (definition 4).

[n_clusters]
n_clusters : int or None, default=None
    Number of clusters; None means the reference's, or 8 without a reference.

[n_jobs]
n_jobs : int or None, default=None
    Threads; -1: all cores. None: all cores that the process may use, fewer if
    ``OMP_NUM_THREADS`` says so, and 1 inside joblib workers. The result does not depend on it.

[numbers]
n_clusters_, n_leaves_, n_parameters_ : int
    Numbers of clusters, of leaves, and of the numbers that make up the tree
    (`treeclust_rs.metrics.n_parameters`).

[other_rows_and_gram]
X : array-like, frame or sparse matrix of shape (n_samples, n_features)
    Rows; sparse ones where `fit` takes them.
y : ignored
    For the API.
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.
gram : array-like of shape (n_samples, n_samples), default=None
    Their kernel matrix; with ``kernel="precomputed"``, and only then.

[reference_inertia]
%(reference_labels)s
reference_inertia_ : float
    Cost of the reference's clusters about the reference's centers.
cost_ratio_ : float
    `inertia_` / `reference_inertia_`.

[reference_labels]
reference_labels_ : ndarray of shape (n_samples,)
    Label of every row in the clusters that the tree explains; -1 for rows that the fit left out.

[reference_seed]
random_state : int, RandomState or None, default=None
    Seed of the reference clustering, and of all else that is drawn.
%(n_jobs)s

[rows_as_predict]
X : array-like or frame of shape (n_samples, n_features)
    Rows, as for `predict`.

[rows_as_probabilities]
X : array-like or frame of shape (n_samples, n_features)
    Rows, as for `predict_proba`.

[threads]
%(n_jobs)s
verbose : int, default=0
    Whether to print a line of progress now and then: on stderr, or by the logger
    ``treeclust_rs`` if that has a handler and takes INFO.

[tree_and_labels]
tree_ : ClusterTree
    The tree; print it.
labels_ : ndarray of shape (n_samples,)
    Cluster of every row, noise included, as the tree predicts it.
%(numbers)s

[tree_attributes]
%(tree_and_labels)s
classes_ : ndarray of shape (n_clusters,)
    The clusters' labels.

[labels_as_reference]
y : ignored
    For the API. Labels to be explained are given as the parameter `reference`.

[who_takes_sparse]
`IMM`, `ExKMC`, `BestTree`, `Kauri` (with the kernels linear, cosine and hellinger),
`KernelKMeans` (with these, polynomial and rbf), `KernelExpand` and `KernelExKMC` (with the
kernels of `KernelKMeans`, from ``base_tree=None`` unless the kernel is linear, cosine or
polynomial) and `KernelIMM` (with the linear one), without approximation, take scipy.sparse
matrices too: cells that are not stored are 0, and nothing is made dense.

[who_takes_mixed]
Missing cells and, in frames, columns of text, booleans, dates and times are taken by
`BestTree`, `IMM`, `ExKMC`, `KMeansTree`, `SpExTree`, `KernelExpand` with a reference and
``base_tree=None``, and `Kauri` with ``kernel="linear"``.

[weight]
y : ignored
    For the API.
%(sample_weight)s

[selection_param]
param : str or None, default=None
    The parameter's name; None: `n_clusters`, of a Pipeline that of its last step, as
    ``param="tree__n_clusters"`` says it for a step ``tree``.

[selection_verbose]
verbose : int, default=0
    1: a progress bar on stderr, if that is a terminal. 2: one in any case; elsewhere than on a
    terminal it is a line for each step. With 1 or 2 the lines go to the logger ``treeclust_rs``
    instead if that has a handler and takes INFO.

[sample_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Weight of each row, from 1e-150 to 1e150 or 0. Rows of weight 0 are left out.

[weight_and_gram]
%(weight)s
gram : array-like of shape (n_samples, n_samples), default=None
    The kernel matrix, symmetric; with ``kernel="precomputed"``, and only then.
"""

import inspect
import re
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Documented = TypeVar("Documented")
Estimator = TypeVar("Estimator")

_MARKER = re.compile(r"(?m)^( *)%\((\w+)\)s$")
_TEXTS = re.split(r"(?m)^\[(\w+)\]\n", __doc__ or "")[1:]
_ENTRIES = {name: text.strip("\n") for name, text in zip(_TEXTS[::2], _TEXTS[1::2], strict=True)}


def documented(cls: Documented) -> Documented:
    """Expand the markers in the docstrings of a function, or of a class and what it defines."""
    for item in (cls, *getattr(cls, "__dict__", {}).values()):
        text = getattr(item, "__doc__", None)
        if isinstance(text, str) and "%(" in text:
            item.__doc__ = _expanded(text)
    return cls


def _expanded(text: str) -> str:
    return _MARKER.sub(_entry, text)


def _entry(marker: re.Match[str]) -> str:
    """Return the text of a marker at its indentation."""
    lines = _expanded(_ENTRIES[marker[2]]).splitlines()
    return "\n".join(marker[1] + line if line else line for line in lines)


@dataclass_transform(eq_default=False)
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """Make a class with fields an estimator: its parameters are those of its bases too.

    The signature has them in the order of the docstring.
    """
    made = dataclass(eq=False, repr=False)(cls)
    text, init = made.__doc__ or "", vars(made)["__init__"]
    signature = inspect.signature(init)
    parameters = sorted(
        signature.parameters.values(),
        key=lambda parameter: (parameter.kind, text.find(f"\n    {parameter.name} : ")),
    )
    init.__signature__ = signature.replace(parameters=parameters)
    return made
