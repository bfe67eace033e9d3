"""Floor 5: what estimators share: rows of a fit, saving, leaf sums, truncation."""

from .center_model import CenterModel, ReferenceModel
from .clusterer import TreeClusterer
from .counterfactual import Counterfactual
from .fit_rows import AT_LEAST_1, COMMON, EXPLAINING, LIMITS, MAX_LEAVES, Constraints, FitRows
from .growth import Growth, Limits, check_max_leaves, grow_tree, most_leaves
from .kernel_model import GAMMA, KernelModel
from .read_as import ReadAs
from .saving import NO_NEGATIVE_INERTIA, POSITIVE, Check, Fields, SavedEstimator, SavedField, load
from .truncation import (
    COST_PATH,
    INERTIA_PATH,
    CostTree,
    GrownClusterer,
    LeafMeans,
    TrainingState,
    feature_importances,
    normalised,
)
