"""Floor 4: kernels, Gram matrices, low rank, sums over clusters, kernel k-means."""

from .gram import check_gram
from .kernel_data import (
    DeferredKernelData,
    KernelData,
    KernelRows,
    filled_rows,
    kernel_rows,
    make_kernel_data,
)
from .kernels import KERNELS, ORIGIN_FREE, Kernel
from .lloyd import cluster, tell_starts
from .low_rank import APPROXIMATIONS, FeatureMap
from .means import ROUNDING, Means, first_least
from .model_file import check_file, predictor_from_dict, predictor_to_dict
from .parameters import (
    KERNEL_CONSTRAINTS,
    check_gram_argument,
    has_gamma,
    kernel_of,
    make_kernel,
    takes_sparse,
)
from .predictor import Predictor
from .sparse_rows import centered_where_full, table_of
from .surrogate import FEATURES, SurrogateFeatures, choose_features, has_features
