"""Predictors of kernel k-means in model files: lists and numbers; everything read is checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from .._data import Units, check_sample_weight
from .._util import FloatArray, check_keys, check_list, float_array, int_array
from .._util.words import check_column_names
from .kernels import PLAIN_KERNELS, Kernel
from .low_rank import MAP_ARRAYS, FeatureMap
from .means import Means
from .parameters import has_gamma, make_kernel
from .predictor import Predictor

MAX_ROW_NUMBERS = 2_000_000
"""Most numbers that the predictor of a model file has of rows of the fit; some 40 MB of text.

Of n rows they are n x (columns + clusters); of landmarks those of the feature map.
"""

# Weights of clusters differ by less, relatively, from the sums of their rows'.
_SAME_WEIGHT = 1e-6

_KERNEL = ("name", "gamma", "degree", "coef0", "params")
_COMMON = ("feature_names", "kernel", "shift", "scale")
_FEATURES = ("origin", "centers")
_COLUMN_MEANS = ("column_means", "column_rest")
_ROWS = ("weight", "stocks", "groups", "row_weights", "rows")


def check_file(predictor: Predictor, *, rows: bool) -> None:
    """Raise ValueError unless a file can hold the predictor; `rows`: with rows of the fit."""
    kernel, feature_map = predictor.kernel, predictor.feature_map
    pickled = "pickle and joblib keep the whole model"
    if kernel is None:
        raise ValueError(
            'A model file cannot hold a fit with kernel="precomputed", whose predict needs the '
            f"kernel with all rows of the fit. It can with a kernel by its name; {pickled}."
        )
    if kernel.function is not None:
        raise ValueError(
            f"A model file cannot hold the kernel {kernel.label!r}, which is a function. It can "
            f"hold a kernel by its name; {pickled}."
        )
    arrays: dict[str, Any] = {} if feature_map is None else dict(feature_map.arrays)
    if predictor.rows is not None and predictor.members is not None:
        arrays = {"rows": predictor.rows, "members": predictor.members}
    if "rows" not in arrays:
        return
    if not rows:
        n_rows = arrays["rows"].shape[0]
        raise ValueError(
            f"predict needs {n_rows:,} rows of the fit, which a model file holds only on request: "
            'save(path, rows=True). approximation="rff" (of the kernel rbf) needs none, nor do the '
            f"kernels linear, cosine and hellinger without approximation; {pickled}."
        )
    _check_size(
        sum(math.prod(array.shape) for array in arrays.values()),
        f"approximation= with few n_components needs fewer; {pickled}.",
    )


def _check_size(n_numbers: int, instead: str) -> None:
    if n_numbers > MAX_ROW_NUMBERS:
        raise ValueError(
            f"predict needs {n_numbers:,} numbers of rows of the fit; a model file may have "
            f"{MAX_ROW_NUMBERS:,}. {instead}"
        )


def predictor_to_dict(predictor: Predictor) -> dict[str, Any]:
    """Return a predictor that `check_file` lets pass as plain lists and numbers."""
    kernel, feature_map, means = predictor.kernel, predictor.feature_map, predictor.means
    units, members = predictor.units, predictor.members
    content: dict[str, Any] = {
        "feature_names": predictor.feature_names,
        "kernel": {name: getattr(kernel, name) for name in _KERNEL},
    }
    if feature_map is not None:
        content["map"] = {"method": feature_map.method} | {
            name: array.tolist() for name, array in feature_map.arrays.items()
        }
    arrays: dict[str, npt.NDArray[Any]] = {"shift": units.shift, "scale": units.scale}
    if members is None:
        assert predictor.origin is not None and means.centers is not None, "has features"
        arrays |= zip(_FEATURES, (predictor.origin, means.centers), strict=True)
        if predictor.column_means is not None:
            arrays |= zip(_COLUMN_MEANS, predictor.column_means, strict=True)
    else:
        assert predictor.rows is not None, "has no features"
        # Rows of no group are of weight 0 in the first.
        rows = predictor.rows.toarray() if issparse(predictor.rows) else predictor.rows
        of_rows = (members.argmax(axis=1), members.max(axis=1), rows)
        arrays |= zip(_ROWS, (means.weight, means.stocks, *of_rows), strict=True)
    return content | {name: array.tolist() for name, array in arrays.items()}


def predictor_from_dict(content: Any) -> Predictor:
    """Build the predictor that `predictor_to_dict` wrote; every part is checked.

    Raises
    ------
    ValueError
        If a key is missing or unknown, a value has the wrong type or size, or the numbers cannot be
        those of a fit.
    """
    where = "means of the model file"
    check_keys(content, _COMMON, where, {*content} if isinstance(content, dict) else ())
    d = len(check_list(content["scale"], "scale", None))
    if d == 0:
        raise ValueError("scale in the model file is empty.")
    units = Units(*(float_array(content[name], name, (d,)) for name in ("shift", "scale")))
    if units.scale.min() <= 0:
        raise ValueError("The model file has a scale that is not positive.")
    names = content["feature_names"]
    if names is not None:
        check_list(names, "feature_names", {str}, d)
        names = check_column_names(names, d, "The model file has a column")
    kernel = _read_kernel(content["kernel"], d)
    has_features = "map" in content or kernel.explicit_features(np.zeros((1, d))) is not None
    if not has_features:
        check_keys(content, (*_COMMON, *_ROWS), where)
        means, members, rows = _read_rows(content, kernel, d)
        return Predictor(kernel, None, None, means, units, names, rows, members)
    feature_map, column_means, also = None, None, tuple[str, ...]()
    if "map" in content:
        feature_map, also = _read_map(content["map"], kernel, d), ("map",)
    elif kernel.name == "linear":
        also = _COLUMN_MEANS
    check_keys(content, (*_COMMON, *_FEATURES, *also), where)
    width = d if feature_map is None else feature_map.features.shape[1]
    origin = float_array(content["origin"], "origin", (width,))
    k = _n_clusters(content, "centers")
    means = Means.of_centers(float_array(content["centers"], "centers", (k, width)))
    if also == _COLUMN_MEANS:
        high, rest = (float_array(content[name], name, (k, d)) for name in _COLUMN_MEANS)
        column_means = high, rest
    return Predictor(kernel, feature_map, origin, means, units, names, column_means=column_means)


def _n_clusters(content: dict[str, Any], name: str) -> int:
    k = len(check_list(content[name], name, None))
    if k == 0:
        raise ValueError(f"{name} in the model file is empty: there are no clusters.")
    return k


def _read_kernel(content: Any, d: int) -> Kernel:
    check_keys(content, _KERNEL, "kernel of the model file")
    name, gamma, params = content["name"], content["gamma"], content["params"]
    if not isinstance(name, str) or name not in PLAIN_KERNELS:
        raise ValueError(f"The model file has the kernel {name!r}, which is not known.")
    if not isinstance(params, dict):
        raise ValueError("params of the kernel in the model file is not an object.")
    if has_gamma(name) != (gamma is not None):
        raise ValueError(f"The model file has the gamma {gamma!r} for the kernel {name!r}.")
    numbers = {"degree": content["degree"], "coef0": content["coef0"], **params}
    if gamma is not None:
        numbers["gamma"] = gamma
    read = {key: float(float_array([item], key, (1,))[0]) for key, item in numbers.items()}
    return make_kernel(
        name,
        gamma=read.get("gamma"),
        degree=read["degree"],
        coef0=read["coef0"],
        kernel_params={key: read[key] for key in params},
        X=np.zeros((1, d)),
    )


def _read_map(content: Any, kernel: Kernel, d: int) -> FeatureMap:
    where = "map of the model file"
    method = content.get("method") if isinstance(content, dict) else None
    if not isinstance(method, str) or method not in MAP_ARRAYS:
        raise ValueError(f"{where} has no known method.")
    if method == "rff" and kernel.name != "rbf":
        raise ValueError(f"{where} is of the kernel rbf, not {kernel.name}.")
    shapes = MAP_ARRAYS[method]
    check_keys(content, ("method", *shapes), where)
    lists = {name: check_list(content[name], name, None) for name in shapes}
    first = next((row for row in lists.get("mixing", ()) if isinstance(row, list)), [])
    sizes = {"d": d, "r": len(lists.get("rows", ())), "w": len(lists.get("offset", first))}
    if "w" in "".join(shapes.values()) and sizes["w"] == 0:
        raise ValueError(f"{where} makes no features.")
    arrays = {
        name: float_array(lists[name], name, tuple(sizes[size] for size in shape.split()))
        for name, shape in shapes.items()
    }
    if "rows" in arrays:
        kernel.check(arrays["rows"])
    if "factor" in arrays and not (arrays["factor"].diagonal() > 0).all():
        raise ValueError("factor in the model file has a diagonal that is not positive.")
    return FeatureMap.of_arrays(kernel, method, arrays)


def _read_rows(
    content: dict[str, Any], kernel: Kernel, d: int
) -> tuple[Means, FloatArray, FloatArray]:
    k, n = _n_clusters(content, "weight"), len(check_list(content["rows"], "rows", None))
    _check_size(n * (d + k), "It is damaged.")
    weight, stocks = (float_array(content[name], name, (k,)) for name in ("weight", "stocks"))
    rows = float_array(content["rows"], "rows", (n, d))
    kernel.check(rows)
    groups = int_array(content["groups"], "groups", n)
    row_weights = float_array(content["row_weights"], "row_weights", (n,))
    check_sample_weight(row_weights, n)
    if groups.min(initial=0) < 0 or groups.max(initial=0) >= k:
        raise ValueError(f"groups in the model file must be from 0 to {k - 1}.")
    members = np.zeros((n, k))
    members[np.arange(n), groups] = row_weights
    if not np.allclose(weight, members.sum(axis=0), rtol=_SAME_WEIGHT, atol=0.0):
        raise ValueError("weight in the model file is not the sum of the weights of the rows.")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if not (np.isfinite(weight * weight) & np.isfinite(stocks / (weight * weight))).all():
            raise ValueError("weight or stocks in the model file are not those of clusters.")
    return Means(None, weight, stocks), members, rows
