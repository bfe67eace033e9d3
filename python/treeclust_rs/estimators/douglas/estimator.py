"""Douglas: soft bins of every feature, trained end to end on a generalised mutual information."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ... import _engine
from ..._base import AT_LEAST_1, COMMON, NO_NEGATIVE_INERTIA, Constraints, SavedEstimator
from ..._base.saving import relabel, set_columns
from ..._data import (
    Table,
    Units,
    WeightedRows,
    check_feature_names,
    check_finite,
    check_sample_weight,
    read_table,
    warn_of_columns,
    with_names,
)
from ..._reference.centers import cost_about
from ..._reference.checks import DEFAULT_N_CLUSTERS, check_enough_rows, warn_of_empty
from ..._util import (
    FloatArray,
    IntArray,
    Interval,
    StrOptions,
    at_least,
    check_keys,
    effective_n_jobs,
    estimator,
    float_array,
    one_blas_thread,
    progress_text,
)
from ...gemini import GEMINIS, Gemini, make_gemini
from .cell_table import CellTable
from .column_bins import ColumnBins
from .prediction import LOWEST_TEMPERATURE, BinsModel, BinsPredictor, bins_from_dict, bins_to_dict
from .search import continued_trainer, prune, search
from .soft_training import Plan
from .training_rows import TrainingRows, make_training_rows

# Most rows of a batch with ``batch_size=None``: the larger of this and so many per cluster.
_MIN_BATCH_SIZE = 64
_ROWS_PER_CLUSTER = 10

_SECONDS_BETWEEN_LINES = 1.0


@estimator
class Douglas(BinsPredictor, SavedEstimator):
    """Cut every feature into soft bins, and cluster by combinations of bins.

    A row belongs to every bin of a feature a little, by a softmax of its distance to the cuts. A
    cell is one bin of every feature, and each cell has a weight per cluster. Cuts and weights are
    trained together, by gradient steps that make the clusters as different as possible: the
    objective is a generalised mutual information (GEMINI) of clusters and rows, with no other
    clustering before it. For many rows and few columns: there are (n_cuts + 1)^m cells of m
    columns.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means 8. At most so many: fewer result if fewer are better.
    gemini : str or Gemini, default="wasserstein_ova"
        The objective: a name of `treeclust_rs.gemini.GEMINIS`, or an object of that module, which
        may have another kernel or distance. "_ova" compares each cluster with all rows, "_ovo" each
        with each. "mmd2_ova" is the objective of k-means but for constants, and quicker on many
        rows.
    n_cuts : int, default=1
        Cuts of each column; one more is the number of its bins (the paper's T).
    temperature : float, default=0.1
        Softness of the bins, in standard deviations of each column: a row this far beyond a single
        cut is in the near bin by 0.73. At least 1e-6.
    feature_mask : array-like of bool of shape (n_features,), default=None
        True for the columns to cut; None: all. The objective takes all columns in any case.
        Columns that do not vary are never cut.
    init : {"quantile", "random"} or array-like of shape (n_features, n_cuts), default="quantile"
        First cuts: quantiles that make bins of nearly equal numbers of rows; random ones, normal
        about the mean, as in the paper; or the cuts themselves in the columns' own units, NaN
        allowed in columns that are not cut.
    n_init : int, default=5
        Number of starts; the model of the greatest objective is kept. Weights start small and
        random; every other start assigns a random cluster to each cell instead. With more than
        10,000 rows the starts use 10,000 of them, and the best continues with all.
    solver : {"adam", "sgd"}, default="adam"
        Adam, or plain gradient steps.
    learning_rate : float or None, default=None
        Length of a step; None: 0.05 for Adam, 1 for plain steps. Gradients are divided by the mean
        size of the distances or kernel values, so it does not depend on the columns' units.
    batch_size : int or None, default=None
        Most rows of a step; None: 64, or 10 per cluster if that is more. All rows are split into
        batches of all but equal size.
    warm_up : int, default=50
        Most epochs with the energy distance (`EnergyDistance`) in place of a Wasserstein objective,
        before the training with it, on at most 10,000 rows; `tol` ends them too. Without them, a
        Wasserstein objective stays near its random start. Other objectives have no warm-up.
    max_iter : int, default=200
        Most epochs. An epoch uses every row once: of a million rows one or two are enough.
    tol : float or None, default=0.001
        Training ends when the objective does not rise by this share of its best value for
        `n_iter_no_change` epochs. None: after `max_iter` epochs.
    n_iter_no_change : int, default=10
        Epochs without a rise that end the training.
    prune : float, default=0.0
        After the training, as many columns as possible are dropped, one after the other, for at
        most this share of the objective. Cells that differ in them alone become one, and the
        training continues. 0: none is dropped; 0.01 left 4 of the 16 columns of the congressional
        votes on average. `partial_fit` ignores it. `predict` needs all columns in any case;
        `to_polars` needs those that are left.
    %(scale)s
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and random cuts.
    n_jobs : int or None, default=None
        Threads that read the columns. None: all cores that the process may use, fewer if
        ``OMP_NUM_THREADS`` says so, and 1 inside joblib workers.
        Training takes one. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line of progress now and then.

    Attributes
    ----------
    table_ : CellTable
        The hard rules; printable. Its bins have sharp edges, and a cell has the cluster of its
        greatest weight.
    n_clusters_, n_leaves_, n_parameters_ : int
        Numbers of clusters, of cells with rows, and of the numbers that make up the hard rules: two
        for each cut, one for each cell with rows.
    labels_ : ndarray of shape (n_samples,)
        Most probable cluster of every row; after `partial_fit`, of its rows. Clusters
        without rows have the last numbers after `fit`.
    loss_curve_ : ndarray of shape (n_iter_,)
        The objective, which training raises: mean of the batches of each epoch (of the best start;
        of the last stage with more than 10,000 rows, or with `prune`).
    n_iter_ : int
        Number of epochs.
    objective_ : float
        Mean objective of batches of rows at the end, by which starts are compared. See `objective`
        for that of all rows at once.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the rows with each label in `labels_`, in the columns' own units; NaN for clusters
        without rows.
    inertia_ : float
        The k-means cost of `labels_`: squared distances to `cluster_centers_`, on standardised
        columns if ``scale="standard"``.
    cut_points_ : ndarray of shape (n_features, n_cuts)
        Cuts in the columns' own units, ascending, rounded to as few digits as move them by at most
        a hundredth of the temperature. NaN in columns that are not cut.
    active_cut_points_ : ndarray of shape (n_active,)
        Columns with at least one cut strictly between their least and greatest value (section 4 of
        the paper). The rules do not depend on the others.
    weights_ : ndarray of shape (n_cells, n_clusters)
        Weights of the cells of all columns that are cut, the last column's bin running fastest.
    rule_agreement_ : float
        Share of the rows of the fit whose cluster by the hard rules is that of `predict`.
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1.
    scale_ : ndarray of shape (n_features,)
        Units of the columns in the objective and in costs, as `scale` says.
    %(columns_and_errors)s

    See Also
    --------
    Kauri : A tree that makes its own clusters, for many columns too.

    Notes
    -----
    `predict` is the most probable cluster of the soft model (the argmax of `predict_proba`), which
    is what is trained and what the paper scores. The rules (`table_`, `rules`, `to_polars`) are
    that model as its temperature goes to 0: a row counts for the one cell it lies in. They differ
    from `predict` for some rows near cuts: `rule_agreement_` is the share of the fit that agrees,
    the column `purity` of `rules` that of each cell, and `explain` notes it for each row. The rules
    ignore cuts beyond which no row of the fit lies; rows outside of the fit's range may therefore
    differ too.

    A step with b rows takes 6 b L k operations for the model, L = (n_cuts + 1)^m cells, and memory
    of O(L k + b sqrt(L) k), not of b L; the Wasserstein objective takes k transport problems of b
    rows, one-vs-one k (k - 1) / 2, which is most of the time unless L is thousands. `prune` tries
    m (m + 1) / 2 models, each on at most eight batches, and trains once more. Memory beside
    the table is 8 n (m + d) bytes, the affinity that of one batch.

    References
    ----------
    Ohl et al. End-to-end training of unsupervised trees: Kauri and Douglas. Sections 2.3, 4 and 5,
    appendices E and G.
    Yang, Garcia Morillo, Hospedales. Deep neural decision trees. 2018.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> rng = np.random.default_rng(0)
    >>> centers = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 6.0]], 30, axis=0)
    >>> X = centers + rng.normal(size=(90, 2)) / 4
    >>> model = tc.Douglas(3, random_state=0).fit(X)
    >>> model.active_cut_points_
    array([0, 1])
    >>> sorted(model.rules()["n"])
    [30, 30, 30]
    >>> model.predict([[3.9, 0.2], [0.1, 5.0]]) == model.labels_[[30, 60]]
    array([ True,  True])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_clusters": [AT_LEAST_1, None],
        "gemini": [StrOptions(set(GEMINIS)), Gemini],
        "n_cuts": [AT_LEAST_1],
        "temperature": [Interval(Real, LOWEST_TEMPERATURE, None, closed="left")],
        "feature_mask": ["array-like", None],
        "init": [StrOptions({"quantile", "random"}), "array-like"],
        "n_init": [AT_LEAST_1],
        "solver": [StrOptions({"adam", "sgd"})],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither"), None],
        "batch_size": [at_least(2), None],
        "warm_up": [at_least(0)],
        "max_iter": [AT_LEAST_1],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "n_iter_no_change": [AT_LEAST_1],
        "prune": [Interval(Real, 0.0, 1.0, closed="left")],
        **COMMON,
    }
    _defining: ClassVar[tuple[str, ...]] = ("gemini",)
    _fitted_by: ClassVar[str] = "table_"
    _rules_are: ClassVar[str] = "in `table_`, and given by `rules()` and `to_polars()`"
    _instead: ClassVar[str] = (
        'it has cells and no tree. BestTree(objective="labels", reference=model.predict(X)).fit(X) '
        "is a tree of its clusters"
    )
    _from_rows: ClassVar[tuple[str, ...]] = (
        "labels_",
        "cluster_centers_",
        "inertia_",
        "n_clusters_",
    )

    n_clusters: int | None = None
    _: KW_ONLY
    gemini: str | Gemini = "wasserstein_ova"
    n_cuts: int = 1
    temperature: float = 0.1
    feature_mask: Any = None
    init: Any = "quantile"
    n_init: int = 5
    solver: str = "adam"
    learning_rate: float | None = None
    batch_size: int | None = None
    warm_up: int = 50
    max_iter: int = 200
    tol: float | None = 1e-3
    n_iter_no_change: int = 10
    prune: float = 0.0

    # ---- fit ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        affinity: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit cuts and weights.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers: the columns to cut, and the rows that the objective compares.
            %(who_takes_mixed)s
        y : ignored
            For the API.
        affinity : array-like of shape (n_samples, n_samples), default=None
            Distances (wasserstein_) or kernel values (mmd_, mmd2_) of every two rows, symmetric, in
            place of those that the objective would compute from X.
        %(feature_names)s

        %(fitted)s

        Raises
        ------
        ValueError
            If X, `affinity` or cuts given as `init` hold NaN or inf, there are fewer rows than
            clusters, `feature_mask`, `init` or `affinity` have another shape, `affinity` is not
            symmetric, holds what cannot be a distance (wasserstein_) or is given to an objective
            that does not depend on rows, or there are so many cells that training would take more
            than 4 GiB.
        TypeError
            If a column or `init` is not numbers, or `feature_mask` holds anything but True and
            False.

        Warns
        -----
        ConvergenceWarning
            If not all clusters have rows.
        UserWarning
            If the columns make so many cells that training takes long.
        """
        started = time.perf_counter()
        self._validate_params()
        table, columns, k, names_given = self._read_first(X, feature_names, affinity)
        rows = self._rows(table, columns, affinity)
        rng = check_random_state(self.random_state)
        name, n_rows = type(self).__name__, table.n_samples
        tell = progress_text(self.verbose, name, n_rows, started, _SECONDS_BETWEEN_LINES)
        with one_blas_thread():
            plan = self._plan(k, columns)
            model, curve, objective = search(rows, plan, self.n_init, rng, tell)
            if self.prune and len(columns.features) > 1:
                seed = rng.randint(np.iinfo(np.int32).max)
                kept, rows, model, new, objective = prune(model, rows, plan, self.prune, seed, tell)
                curve, columns = new or curve, columns.only(kept)
            cuts = columns.round_cuts(model)
            labels = model.labels(rows.model)
        sizes = np.bincount(labels, minlength=k)
        # Clusters without rows come last, so that the labels are 0, 1, ...
        order = np.argsort(sizes == 0, kind="stable")
        model.weights[:] = model.weights[:, order]
        labels = np.argsort(order)[labels]
        cells = columns.counted_table(model.weights, cuts, table, labels)
        # Attributes are set last: a fit that fails leaves the estimator unchanged.
        self._set_fitted(BinsModel(model, columns, cuts), cells, names_given)
        self._set_rows(table, labels)
        self.loss_curve_, self.objective_ = np.array(curve), objective
        n_found = int((sizes > 0).sum())
        if n_found < k:
            advice = (
                "Other starts (n_init, random_state), more epochs (max_iter) or more cuts (n_cuts) "
                "may find more."
            )
            if not len(columns.features):
                advice = "No column to cut varies: no cut can tell rows apart."
            warn_of_empty(n_found, k, advice, stacklevel=3)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        affinity: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Continue the training with more rows, which are used once.

        The first call of a model that was not fitted fixes which columns are cut, and their scale,
        from its rows, and searches for a start as `fit` does, by `n_init` starts on 1,024 of these
        rows, or 16 batches if that is more. The first rows should include all clusters: clusters
        that the starts do not find, later calls seldom find. Later calls continue with that model
        and the optimiser's state (a new one if the model was read from a file); changed parameters
        of the model are ignored. Clusters keep their numbers. `table_`, `labels_`,
        `cluster_centers_` and `inertia_` are those of the rows of the last call, `loss_curve_` has
        an entry per call.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as for `fit`. More than `batch_size` make several steps.
        %(affinity_as_fit)s
        feature_names : list of str, default=None
            As for `fit`; of later calls the same.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError, TypeError
            As for `fit`; also if no column varies in the first rows, or the model was read from a
            file that does not hold its objective.

        Warns
        -----
        ConvergenceWarning
            If not all clusters have rows after the first call.
        UserWarning
            If the columns make so many cells that training takes long.
        """
        self._validate_params()
        before: BinsModel | None = self.__dict__.get("_bins")
        if before is None:
            table, columns, k, names_given = self._read_first(X, feature_names, affinity)
            if not len(columns.features):
                raise ValueError(
                    "The first rows of partial_fit fix which columns are cut, their scale and "
                    f"where the cuts start, but in these n_samples={table.n_samples} no column "
                    "varies. Begin with more rows."
                )
        else:
            table, names_given = self._read(X, all_columns=True), self._names_given
            columns, own = before.columns.widen(table), before.columns.feature_names
            if feature_names is not None:
                check_feature_names(feature_names, columns.n_features, own)
            k = before.model.weights.shape[1]
        rows = self._rows(table, columns, affinity)
        plan = self._plan(k, columns if before is None else None)
        with one_blas_thread():
            trainer = continued_trainer(
                None if before is None else before.trainer or before.model,
                rows,
                plan,
                n_init=self.n_init,
                gemini=self.gemini,
                random_state=self.random_state,
            )
            value = trainer.train_epoch(rows, plan.batch_size)
            model = copy.deepcopy(trainer.model)
            cuts = columns.round_cuts(model)
            labels = model.labels(rows.model)
        cells = columns.counted_table(model.weights, cuts, table, labels)
        if before is not None:
            cells = replace(cells, classes=self.table_.classes)
        curve = [] if before is None else self.loss_curve_.tolist()
        self._set_fitted(BinsModel(model, columns, cuts, trainer), cells, names_given)
        self._set_rows(table, labels)
        self.loss_curve_, self.objective_ = np.array([*curve, value]), value
        n_found = len(np.unique(labels))
        if before is None and n_found < k:
            advice = "Begin with more rows, or with other starts (n_init)."
            warn_of_empty(n_found, k, advice, stacklevel=3)
        return self

    def _read_first(
        self, X: Any, feature_names: Any, affinity: Any
    ) -> tuple[Table, ColumnBins, int, bool]:
        """Return the rows of a first fit, the columns to cut and the number of clusters.

        Last, whether the columns' names are those given here.
        """
        n_jobs, name = effective_n_jobs(self.n_jobs), type(self).__name__
        table, names_given = with_names(read_table(X, estimator_name=name), feature_names)
        check_finite(table, n_jobs)
        k = self.n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, self.n_clusters, table.n_samples, name)
        batch_size = min(self._batch_size(k), table.n_samples)
        columns = ColumnBins.of(
            table, self.feature_mask, self.n_cuts, k, batch_size, self.scale, n_jobs
        )
        compares = affinity is None and make_gemini(self.gemini).uses_rows
        warn_of_columns(table, None, columns.units, self.scale, compares_columns=compares)
        return table, columns, k, names_given

    def _batch_size(self, k: int) -> int:
        return self.batch_size or max(_MIN_BATCH_SIZE, _ROWS_PER_CLUSTER * k)

    def _plan(self, k: int, columns: ColumnBins | None) -> Plan:
        """Return the plan of a training; without `columns` it has no first cuts."""
        init = self.init
        if columns is not None and not isinstance(init, str):
            init = columns.first_cuts(init, self.n_cuts)
        return Plan.of(self, k, init, self._batch_size(k))

    @property
    def scale_(self) -> FloatArray:
        """Units that the objective takes the columns in."""
        check_is_fitted(self, "table_")
        return self._bins.columns.units

    def _rows(self, table: Table, columns: ColumnBins, affinity: Any) -> TrainingRows:
        self._check_known()
        return make_training_rows(make_gemini(self.gemini), columns, table, affinity)

    def _set_fitted(self, bins: BinsModel, cells: CellTable, names_given: bool = False) -> None:
        self._bins = bins
        self.table_ = cells
        columns = bins.columns
        set_columns(self, columns.n_features, columns.feature_names, given=names_given)

    def rename_clusters(self, names: Mapping[Any, int | str]) -> Self:
        """Return the model with other labels for its clusters, in everything that it writes.

        Parameters
        ----------
        %(new_labels)s

        Returns
        -------
        Self
            A new fitted estimator; this one stays as it is. Its `labels_`, `classes_` and `table_`
            have the new labels, and so have its predictions, rules, texts, polars expressions and
            files. `partial_fit` keeps them, a new `fit` makes its own.

        %(label_errors)s
        """
        check_is_fitted(self, "table_")
        model = copy.copy(self)
        model.table_ = self.table_.rename_clusters(names)
        relabel(model, self.classes_, model.classes_)
        return model

    def _set_rows(self, table: Table, labels: IntArray) -> None:
        """Set what follows from the rows of a fit and their clusters."""
        of_clusters = self._weighted(table).group_means(
            labels.astype(np.uint32), self.table_.n_clusters
        )
        filled = of_clusters.weight[:, None] > 0
        self.cluster_centers_ = np.where(filled, of_clusters.means, np.nan)
        self.inertia_ = float(of_clusters.spread.sum())
        self.labels_ = self.classes_[labels]

    def _weighted(self, table: Table, weight: FloatArray | None = None) -> WeightedRows[Table]:
        """Return rows with the units of the fit."""
        units = Units(self._bins.columns.shift, self.scale_)
        threads = _engine.Threads(effective_n_jobs(self.n_jobs))
        return WeightedRows(table, weight, units, threads)

    @property
    def n_clusters_(self) -> int:
        """Number of clusters with rows."""
        return int((~np.isnan(self.cluster_centers_[:, 0])).sum())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002
        """Return minus the k-means cost of rows about the centers of the clusters `predict` says.

        Parameters
        ----------
        %(scored_rows)s

        Returns
        -------
        float
            Minus the weighted squared distances to the `cluster_centers_`, on standardised columns
            if ``scale="standard"``. Rows in clusters that had none in the fit count about their own
            mean.

        Raises
        ------
        ValueError
            As for `predict`.
        AttributeError
            If the model was read from a file of version 1, which has no centers.
        """
        table = self._read(X, all_columns=True)
        centers = self.cluster_centers_
        labels = self._probabilities(table).argmax(axis=1).astype(np.uint32)
        rows = self._weighted(table, check_sample_weight(sample_weight, table.n_samples))
        empty = np.isnan(centers)
        if empty.any():
            centers = np.where(empty, rows.group_means(labels, len(centers)).means, centers)
        return -cost_about(rows, centers, labels)

    def objective(self, X: Any, y: Any = None, affinity: Any = None) -> float:  # noqa: ARG002
        """Return the objective of rows, all of them at once, which the fit makes large.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.
        %(affinity_as_fit)s

        Returns
        -------
        float
            The GEMINI of `predict_proba`. Objectives that depend on rows need their n x n affinity;
            the Wasserstein ones take seconds from some thousand rows on.

        Raises
        ------
        ValueError
            As for `predict_proba`; also if the affinity would take more than 4 GiB, or the model
            was read from a file that does not hold its objective.
        """
        table = self._read(X, all_columns=True)
        rows = self._rows(table, self._bins.columns, affinity)
        with one_blas_thread():
            probabilities = self._bins.model.probabilities(rows.model)
            return rows.gemini.value(probabilities, rows.whole_affinity())

    # ---- model files ----------------------------------------------------------------------

    def _payload(self) -> dict[str, Any]:
        check_is_fitted(self, "table_")
        fitted = {"loss_curve_": self.loss_curve_.tolist(), "objective_": self.objective_}
        if "inertia_" in self.__dict__:
            centers = self.cluster_centers_.astype(object)
            centers[np.isnan(self.cluster_centers_)] = None
            fitted |= {"inertia_": self.inertia_, "cluster_centers_": centers.tolist()}
        bins = bins_to_dict(self._bins, self.table_)
        return {"fitted": fitted, "bins": bins}

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        check_keys(payload, ("model", "params", "fitted", "bins"), "The model file")
        estimator = cls._with_params(payload["params"])
        names, of_rows = ("loss_curve_", "objective_"), ("inertia_", "cluster_centers_")
        fitted = check_keys(payload["fitted"], names, "fitted of the model file", of_rows)
        objective = float_array([fitted["objective_"]], "objective_", (1,))
        n_iter = len(fitted["loss_curve_"]) if isinstance(fitted["loss_curve_"], list) else 0
        curve = float_array(fitted["loss_curve_"], "loss_curve_", (n_iter,))
        is_standard = isinstance(estimator.scale, str)  # the only word of older files
        model, cells = bins_from_dict(payload["bins"], estimator.n_cuts, is_standard)
        estimator._set_fitted(model, cells)
        if fitted.keys() & set(of_rows):
            check_keys(fitted, of_rows, "fitted of the model file", names)
            inertia = float_array([fitted["inertia_"]], "inertia_", (1,))
            if not NO_NEGATIVE_INERTIA.holds(inertia):
                raise ValueError(f"The model file has {NO_NEGATIVE_INERTIA.problem}.")
            shape = (cells.n_clusters, model.columns.n_features)
            centers = float_array(fitted["cluster_centers_"], "cluster_centers_", shape, null=True)
            if (np.isnan(centers).any(axis=1) != np.isnan(centers).all(axis=1)).any():
                raise ValueError("cluster_centers_ in the model file has a center with gaps.")
            estimator.inertia_, estimator.cluster_centers_ = float(inertia[0]), centers
        estimator.loss_curve_, estimator.objective_ = curve, float(objective[0])
        return estimator
