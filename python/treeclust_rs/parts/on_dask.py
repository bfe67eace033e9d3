"""Fits of the rows of a Dask collection, where they are."""

from __future__ import annotations

from typing import Any

from ..estimators.exkmc import ExKMC
from .engines import BesideColumns, add_answers, answer_of_part, converse, tree_sum
from .protocol import Answer, Fit, Question


def fit(
    model: ExKMC, rows: Any, *, sample_weight: str | None = None, reference: str | None = None
) -> ExKMC:
    """Fit a model to the rows of a Dask DataFrame or Array, partition by partition.

    The tree is that of ``model.fit`` with all rows in memory, to the bit. The partitions answer
    every question where they are; what is sent is the question and the sums. A worker that is lost
    is Dask's business: its tasks are computed again.

    Parameters
    ----------
    model : ExKMC
        With ``base_tree=None``; `reference`: centers, or None: see `Fit`.
    rows : dask DataFrame or Array
        Columns of all that ``model.fit`` takes: numbers, text, booleans, times; cells may be
        missing. It is read once in every round: `persist` it if the cluster
        has the memory, or read files.
    sample_weight : str, default=None
        The column of the DataFrame that holds the weights of the rows; it is not fitted to.
    reference : str, default=None
        The column that holds the clusters to be explained: see `fit_batches`.

    Returns
    -------
    ExKMC
        The model, fitted. It has no `labels_`: ``rows.map_partitions(model.predict)`` gives those
        of each partition.

    Raises
    ------
    TypeError
        If `rows` is no Dask collection, or a column does not hold the same in all its parts.
    ValueError
        As `Fit` and `Question.answer`.

    See Also
    --------
    treeclust_rs.parts.fit_batches : On one machine, from files.
    """
    from dask.base import is_dask_collection  # the extra "dask"
    from dask.delayed import delayed

    if not is_dask_collection(rows) or not hasattr(rows, "to_delayed"):
        raise TypeError(
            f"rows must be a Dask DataFrame or Array. Got {type(rows).__name__} instead: "
            "tc.parts.fit_batches takes other rows."
        )
    beside = BesideColumns(sample_weight, reference)
    names = beside.others(getattr(rows, "columns", None))
    if names is None and rows.ndim == 2 and rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})
    parts = rows.to_delayed().ravel().tolist() if names is None else rows.to_delayed()
    n_features = None if names is not None or rows.ndim != 2 else int(rows.shape[1])

    def ask(question: Question) -> Answer:
        shared = delayed(question, traverse=False)
        answers = [
            delayed(answer_of_part)(shared, [part], part_id, beside)
            for part_id, part in enumerate(parts)
        ]
        total: Answer = tree_sum(answers, delayed(add_answers)).compute()
        return total

    fit = Fit(model, feature_names=names, n_features=n_features, labels=reference is not None)
    return converse(fit, ask)
