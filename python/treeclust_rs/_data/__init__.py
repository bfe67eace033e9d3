"""Floor 2: what users bring, read and checked: frames, arrays, sparse rows, weights, units."""

from .checks import check_finite, check_sample_weight, count_gaps, warn_of_gaps
from .encoding import Encoding, encoded_names, n_coordinates, tiles
from .kinds import is_time
from .levels import LevelNames
from .mixed import FittedColumns
from .scale import (
    ColumnWarning,
    IdentifiersSoFar,
    Scale,
    TextNumbersWarning,
    plain_scale,
    sparse_deviations,
    warn_of_columns,
)
from .sparse import SparseTable, align_sparse, read_sparse
from .sums import sums_by_group
from .table import (
    Table,
    align_table,
    check_feature_names,
    collected,
    column_of,
    columns_of,
    level_codes,
    level_columns,
    missing_cells,
    observed_rows,
    read_table,
    shown_columns,
    take_rows,
    with_names,
)
from .text_to_numbers import text_to_numbers
from .times import next_time, start_in_gap, threshold_in_gap
from .units import (
    Rows,
    Units,
    WeightedRows,
    observed_means,
    shares_of,
    some_rows,
)
