"""RandomCuts: random thresholds between centers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from .. import _engine
from .._base import AT_LEAST_1, Constraints, FitRows, Growth
from .._data import Table, column_of
from .._reference.centers import Centers, Criterion
from .._reference.kmeans import Reference
from .._util import BoolArray, FloatArray, IntArray, estimator
from ..tree import GrownTree, TreeSketch
from .centers_tree import CentersTree, labelled_tree


@estimator
class RandomCuts(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster and random cuts between centers.

    At every node a column and a threshold are drawn that part its centers: for k-medians uniformly
    over the ranges of the centers, for k-means the likelier the farther the threshold lies from the
    centers. Of several such trees the one is kept whose leaves cost least about their centers.

    Parameters
    ----------
    %(n_clusters)s
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians; also how cuts are drawn.
    n_trials : int, default=10
        Number of trees drawn.
    include_greedy : bool, default=False
        Whether the tree of `ExGreedy` competes too, so that the result costs no more.
    %(explaining_attributes)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the reference's centers, and `inertia`, that
        about the tree's own: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    ExGreedy : The cut that costs least, without chance.
    IMM : The cut with the fewest mistakes.

    Notes
    -----
    With coordinates of the alive centers along a column in order, the gap from a to b is drawn with
    a weight of b - a (k-medians) or (b - a)^2 / 2 (k-means), and in it a threshold uniformly
    (k-medians) or with a density like the distance to the nearer end (k-means). The expected cost
    of one tree about the reference's centers is, times the reference's, at most 1 + 1/1 + 1/2 + ...
    + 1/(k - 1) for k-medians (Gupta et al.) and O(k log k log log k) for k-means (Makarychev,
    Shan). Thresholds are then moved within the gap between neighbouring rows and centers.
    `random_state` seeds the draws and the reference. A tree takes O(n) for each of its levels.

    References
    ----------
    Makarychev, Shan (2021). Near-optimal Algorithms for Explainable k-Medians and k-Means.

    Gamlath, Jia, Polak, Svensson (2021). Nearly-Tight and Oblivious Algorithms for Explainable
    Clustering.

    Gupta, Pittu, Svensson, Yuan (2023). The Price of Explainability for Clustering.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.RandomCuts(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 6)
    (3, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        "n_trials": [AT_LEAST_1],
        "include_greedy": ["boolean"],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    criterion: Criterion = "kmeans"
    n_trials: int = 10
    include_greedy: bool = False
    reference: Any = None

    _lost_advice = "ExKMC with more leaves may give them rows."

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base="imm", cut_score="cost")

    def _grow(self, fit_rows: FitRows[Table], reference: Reference, growth: Growth) -> GrownTree:
        rng = check_random_state(self.random_state)
        # The reference has drawn from an int's stream already.
        rng = np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
        best, least = _Cuts(), np.inf
        for _ in range(self.n_trials):
            cuts = _draw(rng, reference.centers, self.criterion)
            leaf_of_row = _engine.Router(cuts.tests(), fit_rows.rows.n_features).apply(
                fit_rows.rows.data, fit_rows.threads
            )
            assert leaf_of_row is not None, "the rows are finite"
            own = cuts.own()[leaf_of_row]
            cost = float(reference.regrets[np.arange(len(own)), own].sum())
            if cost < least:
                best, least = cuts, cost
        if self.include_greedy:
            greedy = super()._grow(fit_rows, reference, growth)
            if greedy.base_cost.sum() <= least:
                return greedy
        return labelled_tree(fit_rows, reference, *_placed(best, fit_rows, reference.centers))


@dataclass
class _Cuts(TreeSketch):
    """A tree of thresholds between centers, as they were drawn."""

    alive: list[IntArray] = field(default_factory=list)
    """The centers of each node."""

    def part(self, node: int, feature: int, threshold: float, goes_left: BoolArray) -> None:
        """Split a leaf; `goes_left`: of its centers."""
        # Between neighbouring doubles the threshold is the lower one.
        self.split(node, feature, threshold, float(np.nextafter(threshold, np.inf)))
        alive = self.alive[node]
        self.alive += [alive[goes_left], alive[~goes_left]]

    def own(self) -> IntArray:
        """Return the cluster of each leaf, -1 at inner nodes."""
        pairs = zip(self.left, self.alive, strict=True)
        return np.array([alive[0] if left < 0 else -1 for left, alive in pairs], dtype=np.int64)


def _draw(rng: np.random.Generator, centers: Centers, criterion: Criterion) -> _Cuts:
    """Draw a tree whose leaves have one center each."""
    own, in_units = centers.high, centers.in_units
    cuts = _Cuts(alive=[np.arange(len(own))])
    for node, alive in enumerate(cuts.alive):  # grows while it is walked
        if len(alive) < 2:
            continue
        order = np.argsort(in_units[alive], axis=0, kind="stable")
        gaps = np.diff(np.take_along_axis(in_units[alive], order, axis=0), axis=0)
        # No double parts centers that are one double in the columns' own units.
        gaps[np.diff(np.take_along_axis(own[alive], order, axis=0), axis=0) <= 0] = 0.0
        largest = gaps.max()
        weight = gaps / largest if criterion == "kmedians" else (gaps / largest) ** 2
        place = int(rng.choice(weight.size, p=(weight / weight.sum()).ravel()))
        below, feature = divmod(place, own.shape[1])
        sorted_own = own[alive[order[:, feature]], feature]
        low, high = float(sorted_own[below]), float(sorted_own[below + 1])
        share = rng.random() if criterion == "kmedians" else rng.triangular(0.0, 0.5, 1.0)
        threshold = min(low + share * (high - low), float(np.nextafter(high, low)))
        cuts.part(node, feature, threshold, own[alive, feature] <= threshold)
    return cuts


def _placed(
    cuts: _Cuts, fit_rows: FitRows[Table], centers: Centers
) -> tuple[_engine.TestArrays, None, IntArray]:
    """Return the tests, each threshold of few digits between its neighbours, and leaf clusters."""
    sketch, rows_of = TreeSketch(), [np.arange(fit_rows.rows.n_samples)]
    for node, left in enumerate(cuts.left):
        rows = rows_of[node]
        if left < 0:
            continue
        feature, threshold = cuts.feature[node], cuts.below[node]
        values = column_of(fit_rows.rows, feature)[rows].astype(np.float64)
        goes_left = values <= threshold
        neighbours: FloatArray = np.concatenate([values, centers.high[cuts.alive[node], feature]])
        is_below = neighbours <= threshold
        below, above = float(neighbours[is_below].max()), float(neighbours[~is_below].min())
        sketch.split(node, feature, below, above)
        rows_of += [rows[goes_left], rows[~goes_left]]
    return sketch.tests(), None, cuts.own()
