"""Floor 7: how many clusters and leaves, how wide a kernel, which method? Fits of clones.

The gap statistic, the silhouette and the stability take any clusterer of this package or of
scikit-learn with a parameter `n_clusters`, or a Pipeline that ends in one; `choose_leaves` takes
one with a parameter `max_leaves`, the sweep over gamma one with a kernel. They leave the estimator
as it was. `compare` fits several methods to the same rows.
"""

from .._util import documented
from .comparison import Comparison, compare
from .fits import Selection
from .gamma import GammaSweep, gamma_sweep
from .gap import gap_statistic
from .halves import stability
from .leaves import choose_leaves
from .silhouettes import silhouette

__all__ = [
    "Comparison",
    "GammaSweep",
    "Selection",
    "choose_leaves",
    "compare",
    "gamma_sweep",
    "gap_statistic",
    "silhouette",
    "stability",
]

for _name in __all__:
    documented(globals()[_name])
