"""Estimators in JSON files: saving, loading, and checks of the fitted fields."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import estimator_html_repr

from .._data import Scale, n_coordinates, plain_scale
from .._util import (
    FloatArray,
    IntArray,
    check_keys,
    documented,
    dumps,
    estimator,
    float_array,
    loads,
    warn_user,
)
from .._util.arrays import NOISE
from .._util.files import replacing
from .._util.model_json import json_name
from ..tree import ClusterTree
from .display import without_data
from .old_files import upgrade
from .read_as import ReadAs

# Types of the parameters that are written to model files; others (a reference, a random generator)
# are not plain values.
_PLAIN = (type(None), bool, int, float, str)

# Infinity in a file: JSON has no number for it.
_INF = "inf"

_MODELS: dict[str, type[SavedEstimator]] = {}


@estimator
class SavedEstimator(ClusterMixin, BaseEstimator):
    """Base of the estimators that `load` can read; those that are abstract it cannot."""

    # Parameters of all estimators.
    _: KW_ONLY
    scale: Scale = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    # Parameters that the model file could not hold and that were not set since; empty for models
    # not read from a file.
    _not_saved = frozenset[str]()
    # How the command line read columns of the fit, where its user chose it: other files are read
    # the same way.
    _read_as = ReadAs()
    # Whether the fit saw the rows in parts, see `treeclust_rs.parts`, and whether these brought the
    # labels of the reference.
    _is_fitted_in_parts = False
    _had_label_column = False
    # Parameters whose defaults must not stand in for what a file could not hold.
    _defining: ClassVar[tuple[str, ...]] = ()
    # An attribute that every fitted model has, and those that take the rows of the fit, which
    # models read from a file may lack.
    _fitted_by: ClassVar[str]
    _from_rows: ClassVar[tuple[str, ...]]
    # What to use for methods that only others have.
    _instead: ClassVar[str] = ""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        documented(cls)
        if not abstract:
            _MODELS[cls.__name__] = cls

    def __getattr__(self, name: str) -> Any:
        # Python calls this for attributes that it does not find.
        fitted = self._fitted_by in self.__dict__
        if name in ("labels_", "reference_labels_") and self._is_fitted_in_parts:
            raise AttributeError(
                f"This {type(self).__name__} has no {name}: it was fitted in parts, and never had "
                "all rows. Write the labels of any rows by\n"
                "    labels = model.to_polars()\n"
                "    frame.with_columns(labels).sink_parquet('labels.parquet')"
            )
        if name in self._from_rows and fitted:
            raise AttributeError(
                f"This {type(self).__name__} has no {name}: it takes the rows of the fit, and the "
                "model was read from a file or truncated without their sums. Fit it anew to get it."
            )
        # Also called where a property of the class reads what a fit sets.
        of_fit = name in (*self._from_rows, self._fitted_by) or hasattr(type(self), name)
        if of_fit and not fitted:
            raise AttributeError(f"This {type(self).__name__} has no {name} yet: call fit first.")
        has_it = not name.startswith("_") and any(hasattr(cls, name) for cls in _MODELS.values())
        way_out = f": {self._instead}." if has_it and self._instead else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{way_out}")

    @property
    def _names_given(self) -> bool:
        """Whether the columns' names were given with an array, and are not those of a frame."""
        names = getattr(self, self._fitted_by).feature_names
        return names is not None and "feature_names_in_" not in self.__dict__

    @property
    def _needed_features(self) -> IntArray | None:
        """Indices of the columns that `predict` and `explain` read, ascending; None: all."""
        return None

    @property
    def unsaved_params(self) -> frozenset[str]:
        """Parameters that a model file did not hold and that were not set since."""
        return self._not_saved

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return str(without_data(self).__repr__(N_CHAR_MAX))

    def _html_repr(self) -> str:
        """Return the parameters as scikit-learn shows them, and what was fitted."""
        fitted: Any = self.__dict__.get(self._fitted_by)
        result = fitted._repr_html_() if hasattr(fitted, "_repr_html_") else ""
        return f"{estimator_html_repr(without_data(self))}{result}"

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn's estimators do; ValueError if a name is unknown."""
        super().set_params(**params)
        if self._not_saved:
            self._not_saved -= params.keys()
        return self

    def __sklearn_clone__(self) -> Self:
        twin: Self = super().__sklearn_clone__()
        if self._not_saved:
            twin._not_saved = self._not_saved
        return twin

    def _validate_params(self) -> None:
        super()._validate_params()
        self._check_known()
        if "reference" in self._not_saved:
            warn_user(
                f"This {type(self).__name__} was read from a file, which does not hold its "
                "reference, and the fit goes without it. Set what was given by "
                "set_params(reference=...), or None if nothing was."
            )

    def _check_known(self) -> None:
        """Refuse to compute with the default of a parameter that a model file could not hold."""
        lost = [name for name in self._defining if name in self._not_saved]
        if lost:
            values = ", ".join(f"{name}=..." for name in lost)
            raise ValueError(
                f"The model was read from a file, which does not hold its {' and '.join(lost)}. "
                f"Set what it was by set_params({values})."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file, which `load` reads.

        The file replaces an old one at once, or not at all.

        The file holds what predicting, explaining and reading the tree need. It does not hold the
        labels of the training rows, nor parameters that are not plain values (a `reference`, a
        `random_state`, cuts given as `init`): a model read from it has their defaults,
        `unsaved_params` names them, and a fit without its `reference` warns. An objective or a
        kernel that is not a plain value has to be set by `set_params` before such a model can be
        fitted or scored.

        Parameters
        ----------
        path : path-like
            The file.
        """
        self._write(path, self.to_json())

    @staticmethod
    def _write(path: str | os.PathLike[str], text: str) -> None:
        with replacing(path) as temporary, open(temporary, "x", encoding="utf-8") as file:
            file.write(text)

    def to_json(self) -> str:
        """Return the text of the file that `save` writes.

        Returns
        -------
        str
            JSON, as ``docs/model-format.md`` describes it.
        """
        payload = self._payload()
        given = self.get_params(deep=False)
        params = {name: _as_plain(value) for name, value in given.items() if _is_plain(value)}
        params["scale"] = plain_scale(self.scale)
        has_reference = given.get("reference") is not None or self._had_label_column
        if has_reference or "reference" in self._not_saved:
            params.pop("reference", None)
        if has_reference and given["n_clusters"] is None:
            # They were the reference's, which is lost: a new fit is to find as many.
            params["n_clusters"] = int(getattr(self, "n_clusters_"))  # noqa: B009
        if self._names_given:
            payload["names_given"] = True
        if self._read_as != ReadAs():
            payload["read_as"] = self._read_as.to_dict()
        return dumps({"model": type(self).__name__, "params": params, **payload})

    def _payload(self) -> dict[str, Any]:
        """Return what the file holds beside the class and its parameters; raises before a fit."""
        raise NotImplementedError

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        """Make a model of a file's content, of which only the class has been checked."""
        raise NotImplementedError

    @classmethod
    def _with_params(cls, params: Any) -> Self:
        """Make an estimator with the parameters of a file, checked."""
        if not isinstance(params, dict):
            raise ValueError("'params' of the model file is not an object.")
        names = set(cls._get_param_names())
        check_keys(params, (), "params of the model file", names)
        if params.get("reference") is not None:
            raise ValueError("'reference' in params of the model file is not null.")
        if "scale" in params:
            params = params | {"scale": plain_scale(params["scale"])}
        for name, value in params.items():
            if name != "scale" and (isinstance(value, np.generic) or not _is_plain(value)):
                raise ValueError(f"The parameter {name!r} of the model file is not a plain value.")
        model = cls(**{name: _of_file(value) for name, value in params.items()})
        model._validate_params()
        model._not_saved = frozenset(names - set(params))
        return model


def set_columns(
    model: Any, n_features: int, feature_names: Sequence[str] | None, *, given: bool
) -> None:
    """Set what scikit-learn calls the number and the names of the columns seen in fit.

    `given`: whether the names were given with an array. scikit-learn's are a frame's alone.
    """
    model.n_features_in_ = n_features
    if feature_names is not None and not given:
        model.feature_names_in_ = np.asarray(feature_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def relabel(model: Any, old: npt.NDArray[Any], new: npt.NDArray[Any]) -> None:
    """Rename the labels of the rows of a fit; noise stays -1."""
    names = dict(zip(old.tolist(), new.tolist(), strict=True))
    for attribute in ("labels_", "reference_labels_"):
        labels = model.__dict__.get(attribute)
        if labels is not None:
            renamed = [names.get(label, NOISE) for label in labels.tolist()]
            has_noise = NOISE in renamed and new.dtype.kind == "U"
            setattr(model, attribute, np.array(renamed, dtype=object if has_noise else new.dtype))


def _is_plain(value: Any) -> bool:
    """Whether a file holds a parameter: a plain value, or a list of True and False."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return all(isinstance(item, (bool, np.bool_)) for item in value)
    return isinstance(value, (*_PLAIN, np.generic))


def _as_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [bool(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return _INF if value == math.inf else value


def _of_file(value: Any) -> Any:
    return math.inf if value == _INF else value


def load(path: str | os.PathLike[str]) -> SavedEstimator:
    """Read a model that `save` wrote.

    Everything in the file is checked; reading it cannot run code. `labels_` of the training rows
    are not in it.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The fitted estimator, of the class it was saved from.

    Raises
    ------
    ValueError
        If the file is not a valid model file of a known version.
    OSError
        If it cannot be read.
    """
    try:
        return _of_text(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        problem = f"Not a model file: not UTF-8 text ({error.reason})."
    except ValueError as error:
        problem = str(error)
    raise ValueError(f"{os.fspath(path)}: {problem}")


def _of_text(text: str) -> SavedEstimator:
    payload = loads(text, upgrade)
    if "model" not in payload:
        raise ValueError("The model file lacks 'model'.")
    name = payload["model"]
    if not isinstance(name, str) or name not in _MODELS:
        raise ValueError(
            f"The model file holds a {name!r}; known are {', '.join(sorted(_MODELS))}."
        )
    names_given = payload.pop("names_given", False)
    if not isinstance(names_given, bool):
        raise ValueError(
            f"names_given in the model file must be true or false, not {json_name(names_given)}."
        )
    read_as = ReadAs.from_dict(payload.pop("read_as")) if "read_as" in payload else None
    model = _MODELS[name]._from_payload(payload)
    if read_as is not None:
        model._read_as = read_as
    if names_given:
        model.__dict__.pop("feature_names_in_", None)
    return model


class Check(NamedTuple):
    """A condition on the numbers of a field, and the words for a file that breaks it."""

    holds: Callable[[FloatArray], bool]
    problem: str
    """``{name}`` stands for the field."""


POSITIVE = Check(lambda numbers: bool((numbers > 0).all()), "a {name} that is not positive")
NO_NEGATIVE_INERTIA = Check(lambda numbers: bool((numbers >= 0).all()), "a negative inertia")


@dataclass(frozen=True)
class SavedField:
    """A fitted number or array."""

    shape: str = ""
    """Lengths: "k" (clusters), "d" (columns), "c" (encoded columns), "path" (any) or an integer.

    Empty for a number.
    """
    required: bool = False
    check: Check | None = None
    n_entries: Callable[[ClusterTree], int] | None = None
    """The length that "path" must have for a tree; None: any."""

    def read(self, content: Any, name: str, tree: ClusterTree) -> FloatArray | float:
        """Return the numbers of a file, their shape checked."""
        sizes = {
            "k": len(tree.classes),
            "d": tree.n_features,
            "c": n_coordinates(tree.levels, tree.n_features),
            "path": len(content) if isinstance(content, list) else 0,
        }
        shape = tuple(sizes[part] if part in sizes else int(part) for part in self.shape.split())
        array = float_array(content if shape else [content], name, shape or (1,))
        return array if shape else float(array[0])

    def check_values(self, values: FloatArray | float, name: str, tree: ClusterTree) -> None:
        """Raise ValueError if the numbers cannot be those of a fit."""
        numbers = np.asarray(values)
        article = "an" if name.strip("_")[0] in "aeiou" else "a"
        if self.n_entries is not None and len(numbers) != self.n_entries(tree):
            raise ValueError(
                f"The model file has {article} {name} of {len(numbers)} entries; "
                f"{self.n_entries(tree)} were expected."
            )
        if self.check is not None and not self.check.holds(numbers):
            problem = self.check.problem.replace("a {name}", f"{article} {name}")
            raise ValueError(f"The model file has {problem}.")


Fields = Mapping[str, SavedField]


def write_fields(model: object, fields: Fields) -> dict[str, Any]:
    """Return the fields that a fitted model has, as plain values."""
    return {
        name: np.asarray(getattr(model, name), dtype=float).tolist()
        for name in fields
        if getattr(model, name, None) is not None
    }


def read_fields(content: Any, fields: Fields, tree: ClusterTree) -> dict[str, FloatArray | float]:
    """Return the fields of a model file; raises ValueError if they cannot be those of a fit."""
    check_keys(content, (), "fitted of the model file", fields)
    values = {name: fields[name].read(item, name, tree) for name, item in content.items()}
    for name, field in fields.items():
        if field.required and name not in values:
            raise ValueError(f"fitted of the model file lacks {name}.")
    for name, field in fields.items():
        if name in values:
            field.check_values(values[name], name, tree)
    return values
