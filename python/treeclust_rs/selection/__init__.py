"""Floor 7: how many clusters, and how wide a kernel? Fits over a range of one parameter."""

from .choice import GammaSweep, Selection, gamma_sweep, gap_statistic, silhouette

__all__ = ["GammaSweep", "Selection", "gamma_sweep", "gap_statistic", "silhouette"]
