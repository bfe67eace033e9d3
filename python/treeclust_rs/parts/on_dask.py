"""Fits of the rows of a Dask collection, where they are."""

from __future__ import annotations

from operator import add
from typing import Any

from ..estimators.exkmc import ExKMC
from .protocol import Answer, Fit, Question

# Answers that one task adds up.
_FAN_IN = 8


def fit(model: ExKMC, rows: Any, *, sample_weight: str | None = None) -> ExKMC:
    """Fit a model to the rows of a Dask DataFrame or Array, partition by partition.

    The tree is that of ``model.fit`` with all rows in memory, to the bit. The partitions answer
    every question where they are; what is sent is the question and the sums. A worker that is lost
    is Dask's business: its tasks are computed again.

    Parameters
    ----------
    model : ExKMC
        With ``base_tree=None``; `reference`: centers, or None: see `Fit`.
    rows : dask DataFrame or Array
        Columns of numbers without gaps. It is read once in every round: `persist` it if the cluster
        has the memory, or read files.
    sample_weight : str, default=None
        The column of the DataFrame that holds the weights of the rows; it is not fitted to.

    Returns
    -------
    ExKMC
        The model, fitted. It has no `labels_`: ``rows.map_partitions(model.predict)`` gives those
        of each partition.

    Raises
    ------
    TypeError
        If `rows` is no Dask collection.
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
    names = list(rows.columns) if hasattr(rows, "columns") else None
    if sample_weight is not None:
        if sample_weight not in (names or []):
            raise ValueError(f"sample_weight={sample_weight!r} is no column of the rows.")
        names = [name for name in names or [] if name != sample_weight]
    if names is None and rows.ndim == 2 and rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})
    parts = rows.to_delayed().ravel().tolist() if names is None else rows.to_delayed()
    n_features = None if names is not None or rows.ndim != 2 else int(rows.shape[1])
    asking = Fit(model, feature_names=names, n_features=n_features)
    while (question := asking.question()) is not None:
        shared = delayed(question, traverse=False)
        answers = [
            delayed(_answer)(shared, part, part_id, sample_weight)
            for part_id, part in enumerate(parts)
        ]
        while len(answers) > 1:
            answers = [
                delayed(_sum)(answers[start : start + _FAN_IN])
                for start in range(0, len(answers), _FAN_IN)
            ]
        asking.tell(answers[0].compute())
    return asking.result()


def _answer(question: Question, part: Any, part_id: int, sample_weight: str | None) -> Answer:
    """Answer for a partition, on one thread: the cluster says how many tasks run at a time."""
    weight = None
    if sample_weight is not None:
        weight = part[sample_weight].to_numpy()
        part = part.drop(columns=sample_weight)
    return question.answer(part, part_id=part_id, sample_weight=weight, n_jobs=1)


def _sum(answers: list[Answer]) -> Answer:
    total = answers[0]
    for answer in answers[1:]:
        total = add(total, answer)
    return total
