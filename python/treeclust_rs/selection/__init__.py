"""Floor 7: how many clusters, how wide a kernel, which method? Fits over what can be chosen.

The gap statistic and the silhouette take any clusterer of this package or of scikit-learn with a
parameter `n_clusters`; the sweep over gamma takes one with a kernel. They fit a clone for every
value, and leave the estimator as it was. `compare` fits several methods to the same rows.
"""

from .comparison import Comparison, compare
from .fits import Selection
from .gamma import GammaSweep, gamma_sweep
from .gap import gap_statistic
from .silhouettes import silhouette

__all__ = [
    "Comparison",
    "GammaSweep",
    "Selection",
    "compare",
    "gamma_sweep",
    "gap_statistic",
    "silhouette",
]
