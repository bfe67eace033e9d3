"""The estimators as scikit-learn estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import treeclust_rs as tc

# scikit-learn allows its own KMeans the same two failures, for the same reason: its k-means++ draws
# rows at random, so that weights and repeated rows start from different centers. test_threshold.py
# and test_kernel_kmeans.py show that from given ones weights do equal repetition.
RANDOM_START = "k-means++ draws other rows when rows are repeated instead of weighted"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": RANDOM_START,
    "check_sample_weight_equivalence_on_sparse_data": RANDOM_START,
}
# The check puts a NaN into the first of three columns, and asks predict to refuse it.
UNREAD = {"check_estimators_nan_inf": "predict reads only the columns that the tree tests"}
ROUTED = {"check_estimators_nan_inf": "a missing cell goes where the node of the tree says"}


def expected_failures(estimator):
    """Return the checks that an estimator fails on purpose, with the reason."""
    # Kauri, CUBT and CLTree draw no start, Douglas takes no weights.
    starts = isinstance(estimator, (tc.Kauri, tc.CUBT, tc.CLTree, tc.Douglas))
    expected = {} if starts else EXPECTED
    if isinstance(estimator, (tc.Douglas, tc.KernelKMeans, tc.VoronoiTree)):
        return expected
    is_oblique = isinstance(estimator, tc.ObliqueTree) and estimator.splits == "oblique"
    return expected | (UNREAD if is_oblique else ROUTED)


@parametrize_with_checks(
    [
        tc.BestTree(n_clusters=3, max_leaves=5, effort="quick"),
        tc.IMM(n_clusters=3),
        tc.ExKMC(n_clusters=3, max_leaves=5),
        tc.IMM(n_clusters=3, cut_score="emn"),
        tc.ExGreedy(n_clusters=3),
        tc.ExShallow(n_clusters=3),
        tc.RandomCuts(n_clusters=3),
        tc.KMeansTree(n_clusters=3, max_leaves=5),
        tc.KDTreeClusters(n_clusters=3, max_leaves=16),
        tc.XRegressionTree(n_clusters=3, max_leaves=5),
        tc.SpExTree(n_clusters=3, max_leaves=5),
        tc.CUBT(n_clusters=3, min_samples_leaf=1),
        tc.CLTree(n_clusters=3),
        tc.Kauri(),
        tc.Kauri(kernel="rbf"),
        tc.KernelKMeans(n_clusters=3),
        tc.KernelKMeans(n_clusters=3, approximation="nystroem", n_components=20),
        tc.KernelIMM(n_clusters=3),
        tc.KernelExKMC(n_clusters=3, max_leaves=5),
        tc.KernelExpand(n_clusters=3, kernel="polynomial"),
        tc.VoronoiTree(n_clusters=3),
        tc.VoronoiTree(n_clusters=3, exact=False),
        tc.Douglas(n_clusters=3),
        tc.Douglas(n_clusters=3, gemini="mmd2_ovo", solver="sgd", n_cuts=2),
        tc.ObliqueTree(n_clusters=3),
        tc.ObliqueTree(n_clusters=3, splits="axis"),
        tc.ObliqueTree(n_clusters=3, solver="path", leaves="histogram", mu_steps=300),
        tc.ObliqueTree(n_clusters=3, metric="cosine"),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)
