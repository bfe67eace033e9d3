"""Fits of the rows of a Ray dataset, where they are."""

from __future__ import annotations

from typing import Any

from ..estimators.exkmc import ExKMC
from .engines import BesideColumns, add_answers, answer_of_part, converse, tree_sum
from .protocol import Answer, Fit, Question


def fit(
    model: ExKMC, dataset: Any, *, sample_weight: str | None = None, reference: str | None = None
) -> ExKMC:
    """Fit a model to the rows of a Ray dataset, block by block.

    The tree is that of ``model.fit`` with all rows in memory, in the order of the blocks, to the
    bit. The blocks answer every question where they are; what is sent is the question and the sums.
    A worker that is lost is Ray's business: its tasks are run again.

    Parameters
    ----------
    model : ExKMC
        With ``base_tree=None``; `reference`: centers, or None: see `Fit`.
    dataset : ray.data.Dataset
        Columns of all that ``model.fit`` takes: numbers, text, booleans, times; cells may be
        missing. It is executed once (``materialize``), unless it is
        materialized already: another execution may give other blocks. Ray's object store, which
        spills to disk, holds all blocks in Arrow's format until the fit is over.
    sample_weight : str, default=None
        The column of the dataset that holds the weights of the rows; it is not fitted to.
    reference : str, default=None
        The column that holds the clusters to be explained: see `fit_batches`.

    Returns
    -------
    ExKMC
        The model, fitted. It has no `labels_`: ``dataset.map_batches(lambda frame:
        frame.assign(cluster=model.predict(frame)), batch_format="pandas")`` adds a column of them.

    Raises
    ------
    TypeError
        If `dataset` is no Ray dataset, or a column does not hold the same in all its parts.
    ValueError
        As `Fit` and `Question.answer`.

    See Also
    --------
    treeclust_rs.parts.fit_batches : On one machine, from files.

    Notes
    -----
    Ray does not keep the order of the blocks unless ``ray.data.DataContext.get_current()
    .execution_options.preserve_order`` is True. Without it the last digits of costs may differ
    between two executions of a dataset.
    """
    import ray  # the extra "ray"
    import ray.data

    if not isinstance(dataset, ray.data.Dataset):
        raise TypeError(
            f"dataset must be a Ray dataset. Got {type(dataset).__name__} instead: "
            "tc.parts.fit_batches takes other rows."
        )
    held = dataset.materialize()
    beside = BesideColumns(sample_weight, reference)
    names = beside.others(held.columns())
    fit = Fit(model, feature_names=names, labels=reference is not None)
    blocks = held.to_arrow_refs()
    answer, add_up = ray.remote(_answer), ray.remote(add_answers)

    def ask(question: Question) -> Answer:
        shared = ray.put(question)
        answers = [
            answer.remote(shared, block, part_id, beside) for part_id, block in enumerate(blocks)
        ]
        try:
            total: Answer = ray.get(tree_sum(answers, add_up.remote))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None  # without the traceback of the worker
        return total

    return converse(fit, ask)


def _answer(question: Question, block: Any, part_id: int, beside: BesideColumns) -> Answer:
    """Answer for a block: Ray resolves references only where they are arguments themselves."""
    return answer_of_part(question, [block], part_id, beside)
