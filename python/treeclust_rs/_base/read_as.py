"""How the columns of a file were read where a user chose it; in model files beside the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._util import check_keys


class ReadAs(NamedTuple):
    """Columns that were not read as they are."""

    numbers: Mapping[str, str] = {}
    """Columns of text that were read as numbers, with the unit of their cells ("" without one)."""
    levels: tuple[str, ...] = ()
    """Columns of numbers that were read as levels."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a model file."""
        return {"numbers": dict(self.numbers), "levels": list(self.levels)}

    @classmethod
    def from_dict(cls, content: Any) -> ReadAs:
        """Read what `to_dict` wrote; raises ValueError for anything else."""
        what = "read_as of the model file"
        fields = check_keys(content, ("numbers", "levels"), what)
        numbers, levels = fields["numbers"], fields["levels"]
        if not isinstance(numbers, dict) or not isinstance(levels, list):
            raise ValueError(f"{what} must hold an object 'numbers' and a list 'levels'.")
        if not all(isinstance(text, str) for text in (*numbers.values(), *levels)):
            raise ValueError(f"{what} must hold units and names of columns as strings.")
        return cls(numbers, tuple(levels))
