"""Trained models of Douglas, in memory and in model files, and the state of `partial_fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._util.arrays import FloatArray
from ..._util.model_json import check_keys, float_array, int_array
from .cell_table import CellTable
from .column_bins import ColumnBins
from .search import Trainer
from .soft_bins import SoftBins

LOWEST_TEMPERATURE = 1e-6
"""Below, bins are as good as hard, and cuts have no gradient."""

_PER_COLUMN = ("shift", "scale", "lower", "upper")
_PER_CELL = ("occupied", "n_rows", "n_agreeing")


@dataclass(frozen=True, eq=False)
class BinsModel:
    """Trained bins: soft model, columns and readable cuts."""

    model: SoftBins
    columns: ColumnBins
    cuts: FloatArray
    """In the columns' own units."""
    trainer: Trainer | None = None


def bins_to_dict(bins: BinsModel, cells: CellTable) -> dict[str, Any]:
    """Return a model and its hard rules as plain lists and numbers."""
    model, columns = bins.model, bins.columns
    return {
        "n_features": columns.n_features,
        "feature_names": columns.feature_names,
        "n_clusters": cells.n_clusters,
        "temperature": float(model.temperature),
        "features": columns.features.tolist(),
        **{name: getattr(columns, name).tolist() for name in _PER_COLUMN},
        "cut_points": bins.cuts.tolist(),
        "weights": model.weights.tolist(),
        **{name: getattr(cells, name).tolist() for name in _PER_CELL},
    }


def bins_from_dict(content: object, n_cuts: int) -> tuple[BinsModel, CellTable]:
    """Read and check the model of a file.

    `n_cuts` is the number of cuts of a column if no column is cut.
    """
    keys = ("n_features", "feature_names", "n_clusters", "temperature", "features", "cut_points")
    bins = check_keys(
        content, (*keys, "weights", *_PER_COLUMN, *_PER_CELL), "bins of the model file"
    )
    for name in ("n_features", "n_clusters"):
        if type(bins[name]) is not int or bins[name] < 1:
            raise ValueError(f"{name} in the model file must be a positive integer.")
    d, k = bins["n_features"], bins["n_clusters"]
    names = bins["feature_names"]
    if names is not None and not (
        isinstance(names, list)
        and len(names) == d
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == d
    ):
        raise ValueError(f"feature_names in the model file must be null or {d} different strings.")
    features = int_array(bins["features"], "features", None)
    if len(features) and not (
        (np.diff(features) > 0).all() and features[0] >= 0 and features[-1] < d
    ):
        raise ValueError("features in the model file are not ascending columns of it.")
    arrays = {name: float_array(bins[name], name, (d,)) for name in _PER_COLUMN}
    if (arrays["scale"] <= 0).any() or (arrays["lower"] > arrays["upper"]).any():
        raise ValueError("The model file has a scale that is not positive, or an empty range.")
    columns = ColumnBins(n_features=d, feature_names=names, features=features, **arrays)
    temperature = float(float_array([bins["temperature"]], "temperature", (1,))[0])
    if temperature < LOWEST_TEMPERATURE:
        raise ValueError(f"The model file has a temperature below {LOWEST_TEMPERATURE}.")
    rows = bins["cut_points"]
    first = rows[0] if isinstance(rows, list) and rows else None
    n_cuts = len(first) if isinstance(first, list) else n_cuts
    if not n_cuts:
        raise ValueError("cut_points in the model file has a row without cuts.")
    cuts = float_array(rows, "cut_points", (len(features), n_cuts))
    if (np.diff(cuts, axis=1) < 0).any():
        raise ValueError("cut_points in the model file are not ascending.")
    weights = float_array(bins["weights"], "weights", ((n_cuts + 1) ** len(features), k))
    model = SoftBins(columns.in_units(cuts), weights, temperature)
    occupied, n_rows, n_agreeing = (int_array(bins[name], name, None) for name in _PER_CELL)
    cells = columns.cell_table(weights, cuts, (occupied, n_rows, n_agreeing))
    if not len(occupied) == len(n_rows) == len(n_agreeing) > 0:
        raise ValueError("occupied, n_rows and n_agreeing of the model file differ in length.")
    if (np.diff(occupied) <= 0).any() or occupied[0] < 0 or occupied[-1] >= cells.n_cells:
        raise ValueError("occupied in the model file are not ascending cells of it.")
    if (n_rows < 1).any() or (n_agreeing < 0).any() or (n_agreeing > n_rows).any():
        raise ValueError("n_rows or n_agreeing in the model file are no counts.")
    if n_rows.sum(dtype=float) >= 2**53:
        raise ValueError("n_rows in the model file are too many.")
    return BinsModel(model, columns, cuts), cells
