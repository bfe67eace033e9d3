"""Which models are fitted in parts, and what of them a fit needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import Limits
from .._reference.checks import check_distinct
from .._reference.read import ReferenceInput, read_centers
from .._util import FloatArray
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from .columns import columns_alone


def cut_score_of(model: ExKMC | IMM) -> str | None:
    """Return what the cuts of a model's base are worth; None: there is no base."""
    if isinstance(model, IMM):
        return model.cut_score
    return None if model.base_tree is None else "mistakes"


def limits_of(model: ExKMC | IMM) -> Limits:
    """Return the limits of growth; IMM has one leaf for each cluster."""
    return Limits() if isinstance(model, IMM) else Limits.of(model)


def _refusal(name: str) -> str:
    """Return the message for an estimator that is not fitted in parts."""
    start = f"Fits in parts are of ExKMC and IMM. Got {name} instead: "
    if name == "Kauri":
        return (
            f"{start}its gains are products of sums of many rows, rounded on the way, so that "
            "parts would not give the tree of all rows. Fit it to a sample of the rows, or explain "
            'clusters of all rows by ExKMC, with reference="column" for labels that you have.'
        )
    return f"{start}fit it to a sample of the rows."


def centers_of(model: Any) -> FloatArray | None:
    """Return the centers of the reference, checked; None if they are to be found.

    Raises if the fit cannot be one in parts.
    """
    name = type(model).__name__
    if type(model) not in (ExKMC, IMM):
        raise TypeError(_refusal(name))
    model._validate_params()
    reference = model.reference
    if reference is None:
        return None
    centers = getattr(reference, "cluster_centers_", None)
    if centers is None and not hasattr(reference, "fit") and np.ndim(reference) == 2:
        centers = reference
    if centers is None or np.ndim(centers) != 2:
        raise ValueError(
            "A fit in parts takes reference= centers, an array (n_clusters x n_features) or a "
            "fitted estimator with cluster_centers_, to which rows are compared; or None: k-means "
            "of a sample of the rows then finds them. Labels are a column of the rows: see the "
            "argument reference of fit_batches, and Question.answer."
        )
    centers = np.asarray(centers)
    table = columns_alone(centers.shape[1], None)
    own = read_centers(centers, table, what_of(reference))
    own = np.ascontiguousarray(own, dtype=np.float64)
    classes = list(range(len(own)))
    ReferenceInput(classes=classes, centers=own).check_n_clusters(model.n_clusters)
    check_distinct(own, classes)
    return own


def what_of(reference: Any) -> str:
    """Return what messages call the centers of a reference."""
    if hasattr(reference, "cluster_centers_"):
        return f"cluster_centers_ of the reference {type(reference).__name__}"
    return "reference"
