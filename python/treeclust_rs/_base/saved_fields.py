"""Fields of model files: the fitted numbers beside the tree, declared by the estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._util.arrays import FloatArray
from .._util.model_json import check_keys, float_array
from ..tree.cluster_tree import ClusterTree


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
    """Lengths: "k" (clusters), "d" (columns), "path" (any) or an integer; empty for a number."""
    required: bool = False
    check: Check | None = None
    n_entries: Callable[[ClusterTree], int] | None = None
    """The length that "path" must have for a tree; None: any."""

    def read(self, content: Any, name: str, tree: ClusterTree) -> FloatArray | float:
        """Return the numbers of a file, their shape checked."""
        sizes = {
            "k": len(tree.classes),
            "d": tree.n_features,
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
