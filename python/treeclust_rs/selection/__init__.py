"""Floor 7: how many clusters, and how wide a kernel? Fits over a range of one parameter.

The gap statistic and the silhouette take any clusterer of this package or of scikit-learn with a
parameter `n_clusters`; the sweep over gamma takes one with a kernel. They fit a clone for every
value, and leave the estimator as it was.
"""

from .fits import Selection
from .gamma import GammaSweep, gamma_sweep
from .gap import gap_statistic
from .silhouettes import silhouette

__all__ = ["GammaSweep", "Selection", "gamma_sweep", "gap_statistic", "silhouette"]
