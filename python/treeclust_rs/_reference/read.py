"""What the user gave as `reference=`: an estimator, centers, labels, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._data import Encoding, SparseTable, Table
from .._util import BoolArray, FloatArray, IntArray, distinct, format_count, is_noise, listed
from .._util.words import MAX_NAME_LENGTH, shorten


@dataclass(frozen=True)
class ReferenceInput:
    """Clusters, labels and centers of a reference, before anything is computed from X.

    `labels` has an entry per row, -1 for noise; with `centers` alone the nearest counts.
    """

    classes: list[int] | list[str] | None = None
    labels: IntArray | None = None
    centers: FloatArray | None = None

    @property
    def n_clusters(self) -> int | None:
        if self.classes is not None:
            return len(self.classes)
        return None if self.centers is None else len(self.centers)

    def check_n_clusters(self, n_clusters: int | None) -> None:
        """Raise ValueError if the parameter `n_clusters` is not the reference's number."""
        if None not in (n_clusters, self.n_clusters) and n_clusters != self.n_clusters:
            raise ValueError(
                f"n_clusters={n_clusters}, but the reference has {self.n_clusters} clusters. Leave "
                "n_clusters out, or give another clustering as reference=."
            )

    def take(self, mask: BoolArray) -> ReferenceInput:
        """Return the reference of some of the rows."""
        labels = None if self.labels is None else self.labels[mask]
        return ReferenceInput(self.classes, labels, self.centers)


def read_reference(
    reference: Any, X: Any, table: Table | SparseTable, counted: BoolArray | None
) -> ReferenceInput:
    """Read `reference=`: None, an estimator, an array of centers (2-D) or of labels (1-D).

    `X`: what the user gave, for estimators that are fitted to it; no LazyFrame. `counted`: mask of
    the rows that count, those of positive weight with an observed cell; None: all.
    """
    if reference is None:
        return ReferenceInput()
    if hasattr(reference, "fit") and not isinstance(reference, type):
        return _read_estimator(reference, X, table, counted)
    if isinstance(reference, (str, type)):
        shown, way = repr(reference), f"labels in a column are given as frame[{reference!r}]."
        if isinstance(reference, type):
            shown = reference.__name__
            way = "an estimator is given as an instance, for example KMeans(5)."
        raise TypeError(
            "reference must be None, an estimator, or an array of centers or labels. Got "
            f"{shown}; {way}"
        )
    array = label_array(reference)
    is_column = array.ndim == 2 and array.shape == (table.n_samples, 1)
    if is_column and table.n_features > 1:
        way = "give the column itself" if hasattr(reference, "columns") else "reference.ravel()"
        raise ValueError(
            f"reference has the shape {array.shape}. Labels are given in one dimension: {way}."
        )
    if array.ndim == 2:
        return ReferenceInput(centers=read_centers(array, table, "reference"))
    if array.ndim == 1:
        return read_labels(array, table, counted, "reference")
    raise ValueError(
        "reference must be None, an estimator, an array of centers of shape (n_clusters, "
        f"n_features) or an array of labels of shape (n_samples,). Got an array of "
        f"{array.ndim} dimensions."
    )


def _read_estimator(
    estimator: Any, X: Any, table: Table | SparseTable, counted: BoolArray | None
) -> ReferenceInput:
    name = type(estimator).__name__
    own, is_fitted_here = _own_coordinates(table), False
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        if not isinstance(estimator, BaseEstimator):
            raise
        if own is not None:
            X = _complete_matrix(own, table, name)
        estimator = clone(estimator).fit(X)
        is_fitted_here = True
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"reference is a {name}, which is not a scikit-learn estimator (it lacks "
            "__sklearn_tags__). Give an array: its labels, for example "
            "reference=clusterer.fit(X).labels_, or its centers."
        ) from error
    labels = getattr(estimator, "labels_", None)
    if labels is None or len(labels) != table.n_samples:
        if not hasattr(estimator, "predict"):
            n_labels = "no" if labels is None else str(len(labels))
            raise ValueError(
                f"The reference {name} has {n_labels} labels_ for the {table.n_samples} rows of "
                "X, and no predict. Fit it on the same rows, or give its labels as an array."
            )
        labels = estimator.predict(X)
    given = read_labels(np.asarray(labels), table, counted, f"labels_ of the reference {name}")
    centers = getattr(estimator, "cluster_centers_", None)
    width = table.n_features if own is None else own.n_coordinates
    if centers is None or np.ndim(centers) != 2 or np.shape(centers)[1] != width:
        return given
    centers = np.asarray(centers)
    if own is not None and is_fitted_here:
        centers = centers * own.scale
    elif own is not None and not _has_coordinates(estimator, own, table.feature_names):
        return given
    k = len(centers)
    codes = np.asarray(labels)
    if codes.dtype.kind not in "iu" or codes.max() >= k:
        return given
    # The labels are rows of the centers.
    centers = read_centers(centers, table, f"cluster_centers_ of the reference {name}")
    return ReferenceInput(classes=list(range(k)), labels=codes.astype(np.int64), centers=centers)


def _own_coordinates(table: Table | SparseTable) -> Encoding | None:
    """Return the coordinates of a table with levels or gaps in its columns' own units, else None.

    Numbers are as they are, and two different levels are 1 apart: what an estimator is fitted to.
    """
    if isinstance(table, SparseTable) or table.is_plain:
        return None
    return Encoding.of(table, np.zeros(table.n_features), np.ones(table.n_features))


def _has_coordinates(estimator: Any, own: Encoding, names: list[str] | None) -> bool:
    """Whether the centers of a fitted estimator lie in these coordinates.

    What the one-hot columns of other estimators stand for is not known; those of this package have
    names.
    """
    if all(known is None for known in own.levels):
        return True
    return list(getattr(estimator, "encoded_names_", [])) == own.names(names)


def _complete_matrix(own: Encoding, table: Table | SparseTable, name: str) -> FloatArray:
    """Return the rows as an estimator is fitted to them; raise ValueError if cells are missing."""
    assert isinstance(table, Table), "sparse rows have no coordinates of their own"
    if table.gaps is not None:
        n_columns = sum(count > 0 for count in table.gaps)
        raise ValueError(
            f"The reference {name} is not fitted, and X has missing cells in "
            f"{format_count(n_columns, 'column')}. Give the labels of its clusters as an array, or "
            "leave reference out: k-means of the observed cells then makes them."
        )
    return own.matrix(table)


def read_centers(array: npt.NDArray[Any], table: Table | SparseTable, what: str) -> FloatArray:
    """Check centers, an array of two dimensions that messages call `what`."""
    try:
        centers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must hold numbers. Got an array of type {array.dtype}.") from None
    k, d = centers.shape
    own = _own_coordinates(table)
    if own is not None and d != own.n_coordinates:
        all_names = own.names(table.feature_names)
        names = listed([repr(shorten(name, MAX_NAME_LENGTH)) for name in all_names], "column")
        raise ValueError(
            f"{what} has {format_count(d, 'column')}, but X has {own.n_coordinates}, of which "
            f"columns of text have one for each level: {names}."
        )
    if own is None and d != table.n_features:
        raise ValueError(f"{what} has {format_count(d, 'column')}, but X has {table.n_features}.")
    if k < 1:
        raise ValueError(f"{what} has {k} rows; at least 1 center is needed.")
    bad = np.flatnonzero(~np.isfinite(centers).all(axis=1))
    if len(bad):
        raise ValueError(f"{what} contains NaN or inf: center {bad[0]} and {len(bad) - 1} more.")
    return centers


def read_labels(
    array: npt.NDArray[Any],
    table: Table | SparseTable,
    counted: BoolArray | None,
    what: str,
) -> ReferenceInput:
    """Check labels, an array of one dimension that messages call `what`, and code them.

    Rows that are not `counted` have no say in what the clusters are.
    """
    n = table.n_samples
    if len(array) != n:
        raise ValueError(f"{what} has {len(array)} labels, but X has {n} rows.")
    array, noise = typed_labels(array, what)
    kept = ~noise if counted is None else ~noise & counted
    if not kept.any():
        n_noise = int(noise.sum())
        others = (
            ""
            if n_noise == n
            else f"; the other {n - n_noise} have weight 0 or no value in any column"
        )
        raise ValueError(
            f"{what} marks {n_noise} of {n} rows as noise (-1){others}. No row is left to fit: "
            "give a clustering in which some rows with a value have a cluster."
        )
    classes, codes = distinct(array[kept])
    labels = np.full(n, -1, dtype=np.int64)
    labels[kept] = codes
    return ReferenceInput(classes=classes.tolist(), labels=labels)


def label_array(labels: Any) -> npt.NDArray[Any]:
    """Return an array in which numbers among strings are still numbers."""
    if isinstance(labels, (list, tuple)) and any(isinstance(item, str) for item in labels):
        return np.array(labels, dtype=object)
    return np.asarray(labels)


_MISSING = ("None", "nan", "NaT", "<NA>")
"""What missing cells of all libraries are as text; such texts are labels themselves."""


def typed_labels(array: npt.NDArray[Any], what: str) -> tuple[npt.NDArray[Any], BoolArray]:
    """Return labels as integers or strings, and the mask of those that mark noise.

    Raises ValueError or TypeError for others, which messages call `what`.
    """
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array) | (array != np.rint(array))
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{what} must hold integers or strings. Row {row} holds {array[row]!r}; mark "
                "noise by -1."
            )
    if array.dtype.kind in "bf":
        array = array.astype(np.int64)
    if array.dtype.kind in "iu":
        noise = array == -1
    else:
        values, noise = array.tolist(), is_noise(array)
        is_text = [isinstance(value, str) for value in values]
        wrong = ~noise & ~np.array(is_text)
        if wrong.any():
            row, both = int(wrong.argmax()), ""
            if str(values[row]) in _MISSING:
                raise TypeError(
                    f"{what} has no label in row {row} (counting from 0). Mark rows that belong to "
                    "no cluster by -1, or leave them out."
                )
            if any(is_text):
                text = is_text.index(True)
                both = f", and not both. Row {text} holds {str(values[text])!r}"
            raise TypeError(
                f"{what} must hold integers or strings{both}. Row {row} holds {values[row]!r}; "
                "mark noise by -1."
            )
        array = np.asarray(values, dtype=np.str_)
    return array, noise
