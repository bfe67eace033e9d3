"""Origin and unit of every column, in which costs are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import FloatArray
from .table import Table, column_of


@dataclass(frozen=True)
class Units:
    """Origin and unit of every column: a cell counts as ``(x - shift) / scale``."""

    shift: FloatArray
    scale: FloatArray

    def matrix(self, table: Table) -> FloatArray:
        """Give the table in its units, as one C-ordered array."""
        matrix = np.empty((table.n_samples, table.n_features))
        for f in range(table.n_features):
            column = column_of(table, f)
            with np.errstate(over="ignore"):  # overflow is found, and said, where it matters
                np.subtract(column, self.shift[f], out=matrix[:, f], dtype=np.float64)
                matrix[:, f] /= self.scale[f]
        return matrix
