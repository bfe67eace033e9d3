"""Floor 1: words for numbers and names, threads, progress, checks, fields of model files."""

from .arrays import (
    BoolArray,
    Codes,
    FloatArray,
    IntArray,
    as_rows,
    check_size,
    copied,
    distinct,
    is_noise,
    mean_row,
    row_blocks,
    weighted_sum,
)
from .docs import documented, estimator
from .knees import below_chord, knee
from .model_json import SCHEMA_VERSION, check_keys, check_list, dumps, float_array, int_array, loads
from .progress import ProgressBar, ReadingProgress, progress_line, progress_text
from .threads import effective_n_jobs, map_in_order, one_blas_thread
from .validation import INTEGER, Interval, Options, StrOptions, at_least, is_number
from .warning import level_of_user, warn_user
from .words import column_name, format_count, format_number, format_short, listed, quoted_column
