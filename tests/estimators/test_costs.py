"""Every cost that an estimator reports, against exact fractions, on data where digits are lost.

Rows beside a far cell, clusters of 1e-4 that are 100 apart, and both far from the origin. The
fractions are those of the doubles as they are given: moved by 1e8, cells are rounded to 1.5e-8 and
have other costs, which are known as exactly. Centers are doubles too: costs about
`cluster_centers_` are compared with those about the rounded centers. So 1e-9 holds everywhere.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treeclust_rs as tc
from treeclust_rs.metrics import cost_ratio, kernel_cost, kmeans_cost, surrogate_cost

LINEAR = {"kernel": "linear", "max_leaves": 8, "base_tree": None}

ESTIMATORS = {
    "IMM": lambda labels: tc.IMM(reference=labels),
    "ExKMC": lambda labels: tc.ExKMC(reference=labels, max_leaves=8, base_tree=None),
    "ExKMC interval": lambda labels: tc.ExKMC(reference=labels, max_leaves=9, cuts="interval"),
    "ExKMC standard": lambda labels: tc.ExKMC(reference=labels, max_leaves=7, scale="standard"),
    "ExKMC kmedians": lambda labels: tc.ExKMC(
        reference=labels, max_leaves=8, base_tree=None, criterion="kmedians"
    ),
    "VoronoiTree": lambda labels: tc.VoronoiTree(reference=labels),
    "KMeansTree": lambda labels: tc.KMeansTree(reference=labels),
    "SpExTree": lambda labels: tc.SpExTree(reference=labels),
    "ObliqueTree": lambda labels: tc.ObliqueTree(reference=labels, random_state=0, max_iter=5),
    "KernelIMM": lambda labels: tc.KernelIMM(reference=labels, kernel="linear"),
    "KernelExKMC": lambda labels: tc.KernelExKMC(reference=labels, **LINEAR),
    "KernelExpand": lambda labels: tc.KernelExpand(reference=labels, **LINEAR),
    "Kauri": lambda labels: tc.Kauri(labels.max() + 1, max_leaves=8),
    "Kauri standard": lambda labels: tc.Kauri(labels.max() + 1, max_leaves=8, scale="standard"),
    "KernelKMeans": lambda labels: tc.KernelKMeans(
        labels.max() + 1, kernel="linear", n_init=2, random_state=0
    ),
    "Douglas": lambda labels: tc.Douglas(
        labels.max() + 1, gemini="mmd2_ova", n_init=1, max_iter=2, random_state=0
    ),
}


class Exact:
    """Costs of clusterings of weighted rows, as fractions."""

    def __init__(self, X, weight=None, scale=None):
        self.cells = [[Fraction(x) for x in column] for column in np.asarray(X).T.tolist()]
        self.weight = [Fraction(w) for w in ([1] * len(X) if weight is None else weight.tolist())]
        self.scale = [Fraction(s) for s in ([1] * X.shape[1] if scale is None else scale.tolist())]

    def sums(self, labels):
        """Weight, weighted sum and sum of squares of each cluster, column by column."""
        found = []
        for column in self.cells:
            of_column = {}
            for x, w, label in zip(column, self.weight, labels, strict=True):
                of_label = of_column.setdefault(label, [Fraction(0)] * 3)
                for power in range(3):
                    of_label[power] += w * x**power
            found.append(of_column)
        return found

    def means(self, labels):
        """The mean of each cluster, column by column."""
        return [{key: s[1] / s[0] for key, s in column.items()} for column in self.sums(labels)]

    def cost(self, labels, centers=None):
        """Squared distances of the rows to the means (or centers) of their clusters."""
        labels = labels.tolist()
        if centers is None:
            centers = self.means(labels)
        total = Fraction(0)
        for of_column, center, scale in zip(self.sums(labels), centers, self.scale, strict=True):
            for key, (weight, first, second) in of_column.items():
                c = center[key]
                total += (second - 2 * c * first + c * c * weight) / scale**2
        return total

    def absolute(self, labels, centers):
        """Absolute differences of the rows from the centers of their clusters."""
        of_columns = zip(self.cells, centers, self.scale, strict=True)
        return sum(
            w * abs(x - center[label]) / scale
            for column, center, scale in of_columns
            for x, w, label in zip(column, self.weight, labels.tolist(), strict=True)
        )


def by_column(centers):
    """Centers as fractions; a cluster without rows has none."""
    return [
        {label: Fraction(x) for label, x in enumerate(column) if not np.isnan(x)}
        for column in np.asarray(centers).T.tolist()
    ]


def assert_near(found, expected, what):
    assert abs(Fraction(float(found)) - expected) <= Fraction(1, 10**9) * expected, (
        f"{what}: {float(found)!r}, not {float(expected)!r}"
    )


def check_costs(model, X, reference, weight=None, path=None):
    """Compare all costs of a fitted model with exact ones."""
    exact = Exact(X, weight, getattr(model, "scale_", None))
    weighted = {} if weight is None else {"sample_weight": weight}
    is_kmedians = getattr(model, "criterion", None) == "kmedians"
    centers = by_column(model.cluster_centers_) if hasattr(model, "cluster_centers_") else None
    if is_kmedians:
        cost, about = exact.absolute(model.labels_, centers), None
        medians = by_column(model_medians(X, reference))
        free = exact.absolute(reference, medians)
    else:
        cost, free = exact.cost(model.labels_), exact.cost(reference)
        about = exact.cost(model.predict(X), centers) if centers is not None else cost
        assert_near(kmeans_cost(X, model.labels_, weight, scale=model), cost, "kmeans_cost")
        assert_near(
            kernel_cost(X, model.labels_, weight, kernel="linear", scale=model),
            cost,
            "kernel_cost",
        )
    assert_near(model.inertia_, cost, "inertia_")
    if hasattr(model, "reference_inertia_"):
        assert_near(model.reference_inertia_, free, "reference_inertia_")
        assert_near(model.cost_ratio_, cost / free, "cost_ratio_")
    if hasattr(model, "kernel_cost_"):
        assert_near(model.kernel_cost_, cost, "kernel_cost_")
        about = cost  # about the rows' own means
    if hasattr(model, "reference_kernel_cost_"):
        assert_near(model.reference_kernel_cost_, free, "reference_kernel_cost_")
        assert_near(model.price_of_explainability_, cost / free, "price_of_explainability_")
    assert_near(-model.score(X, **weighted), cost if about is None else about, "score")
    if hasattr(model, "truncate"):
        check_path(model, X, reference, exact, path)


def model_medians(X, labels):
    """The lower median of each cluster."""
    parts = [np.sort(X[labels == label], axis=0) for label in range(labels.max() + 1)]
    return [part[(len(part) - 1) // 2] for part in parts]


def check_path(model, X, reference, exact, path):
    """Compare the costs by number of leaves, of models from files too, with exact ones."""
    if path is None:
        loaded = None
    else:
        model.save(path)
        loaded = tc.load(path)
    is_kmedians = getattr(model, "criterion", None) == "kmedians"
    frame = getattr(model, "cost_path_", None)
    sizes = range(1, model.n_leaves_ + 1) if frame is None else frame["n_leaves"].to_list()
    centers = by_column(model_medians(X, reference)) if is_kmedians else None
    means = None if is_kmedians else exact.means(reference.tolist())
    for place, n_leaves in enumerate(sizes):
        smaller = model.truncate(n_leaves)
        labels = smaller.predict(X)
        if frame is not None and type(model).__name__ not in ("KernelIMM", "KernelExpand"):
            cost = exact.absolute(labels, centers) if is_kmedians else exact.cost(labels, means)
            assert_near(frame["cost"][place], cost, f"cost_path_ at {n_leaves}")
        if is_kmedians:
            continue
        cost = exact.cost(labels)
        if frame is not None:
            assert_near(frame["inertia"][place], cost, f"inertia of cost_path_ at {n_leaves}")
        assert_near(smaller.inertia_, cost, f"inertia_ of {n_leaves} leaves")
        if loaded is not None:
            again = loaded.truncate(n_leaves)
            assert again.inertia_ == pytest.approx(smaller.inertia_, rel=1e-9)
            if frame is not None:
                assert again.cost_ratio_ == pytest.approx(smaller.cost_ratio_, rel=1e-9)


def fitted(name, X, labels, weight=None):
    model = ESTIMATORS[name](labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*of the rows are nearer")
        return model.fit(X) if weight is None else model.fit(X, sample_weight=weight)


def three_groups(seed, n, apart, deviation):
    """Rows in three groups, and the group of each."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], n // 3)
    corners = apart * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return corners[labels] + rng.normal(scale=deviation, size=(n, 2)), labels


@pytest.mark.parametrize("cell", [1e8, 999999999.0, 1e10])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_costs_beside_a_far_cell(name, cell, tmp_path):
    X, labels = three_groups(0, 300, 5.0, 1.0)
    X[7, 1] = cell
    labels[7] = 3  # of its own
    check_costs(fitted(name, X, labels), X, labels, path=tmp_path / "model.json")


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_costs_of_clusters_far_apart(name, offset):
    for seed in range(36):
        X, labels = three_groups(seed, 30, 100.0, 1e-4)
        X += offset
        check_costs(fitted(name, X, labels), X, labels)


# Douglas takes no weights, and medians of weighted rows have tests of their own.
@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"Douglas", "ExKMC kmedians"}))
def test_costs_of_weighted_rows_beside_a_far_cell(name):
    X, labels = three_groups(1, 90, 100.0, 1e-4)
    X[7, 1] = 1e10
    labels[7] = 3
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0, 3.3], len(X))
    check_costs(fitted(name, X, labels, weight), X, labels, weight)


def test_surrogate_cost_and_cost_ratio_beside_a_far_cell():
    X, labels = three_groups(2, 90, 100.0, 1e-4)
    X[7, 1] = 1e10
    labels[7] = 3
    scale = np.array([3.0, 0.1])
    exact, centers = (
        Exact(X, scale=scale),
        np.array([X[labels == k].mean(axis=0) for k in range(4)]),
    )
    other = np.where(labels == 2, 1, labels)
    found = surrogate_cost(X, labels, centers, scale=scale)
    assert_near(found, exact.cost(labels, by_column(centers)), "surrogate_cost")
    found = surrogate_cost(X, labels, centers, criterion="kmedians", scale=scale)
    assert_near(found, exact.absolute(labels, by_column(centers)), "surrogate_cost")
    found = cost_ratio(X, other, labels, scale=scale)
    assert_near(found, exact.cost(other) / exact.cost(labels), "cost_ratio")


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_rows_cost_nothing(scale, weighted):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels = np.repeat([0, 1, 2], rng.integers(1, 30, 3))
        X = (rng.normal(size=(3, 4)) * [1.0, 1e3, 0.1, 7.0])[labels]
        weight = rng.random(len(X)) + 0.1 if weighted else None
        for make in (tc.ExKMC, tc.SpExTree):
            model = make(reference=labels, scale=scale).fit(X, sample_weight=weight)
            assert (model.inertia_, model.reference_inertia_, model.cost_ratio_) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "model",
    [
        tc.IMM(3, criterion="kmedians", random_state=0),
        tc.KernelKMeans(3, kernel="rbf", random_state=0),
        tc.KernelKMeans(3, kernel="rbf", approximation="rff", n_components=20, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'approximation', '')}",
)
def test_weights_of_1_change_no_bit_of_a_score(model):
    """BLAS would add the weighted costs up in another order, which its processor decides."""
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(997, 3))
        model.fit(X)
        assert model.score(X, sample_weight=np.ones(len(X))) == model.score(X)
