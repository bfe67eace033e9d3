"""Tables read as `IMM` reads them in the fit and afterwards."""

import numpy as np

from treeclust_rs._data import FittedColumns, align_table, count_gaps
from treeclust_rs._data.table import Table, read_table


def read(X) -> Table:
    return count_gaps(read_table(X, estimator_name="IMM", mixed=True), 1)


def align(X, fitted: Table, needed=None) -> Table:
    return align_table(
        X,
        fitted.feature_names,
        fitted.n_features,
        estimator_name="IMM",
        needed=None if needed is None else np.array(needed),
        fitted=FittedColumns(fitted.kinds, fitted.levels),
    )
