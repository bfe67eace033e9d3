"""The experiments of the kernel paper again: table 2, figure 4 and figure 6.

    python benches/papers/kernel.py --data ../shared/data

Fleissner, Vankadara, Ghoshdastidar, "Explaining Kernel Clustering via Decision Trees", appendix I:
price of explainability of trees for kernel k-means, and agreement with the true classes. Its
protocol: the kernel (Gaussian or Laplace) and gamma are those with which kernel k-means agrees best
with the truth; then Kernel IMM, with the better of Taylor features (M = 5) and distance features if
the kernel is Gaussian; then Kernel ExKMC and Kernel Expand refine it.

What the paper does not say was settled with kernel k-means and CART alone, before there was a tree
of ours: columns are left as they are, and gamma lies on the grid 1, 2, 5 times powers of ten. With
both, the price of CART is table 2's to the last digit on pathbased, flame and iris, and on cancer
that of the best single cut is table 2's for Kernel IMM. Only the origin of the Taylor features was
found with trees, from table 2's figure for flame. Data that are missing are left out by name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from treeclust_rs.metrics import agreement

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
from common import table
from figures import mean
from report import verdict

GRID = (*(float(f"{m}e{e}") for e in range(-7, 1) for m in (1, 2, 5)), 10.0)
STARTS = 50
ORDER = 5
# Taylor features of x + 1: any origin from -7.8 to -0.5 gives table 2's figure for flame.
ORIGIN = -1.0
NEXT_BEST = 4
IMM, EXKMC, EXPAND, CART = "Kernel IMM", "Kernel ExKMC", "Kernel Expand", "CART"
TREES = (IMM, EXKMC, EXPAND, CART)
TAYLOR, DEFAULT, DISTANCE = "Taylor of x + 1", "Taylor, default origin", "distance"
IMM_DEFAULT = f"{IMM}, {DEFAULT}"
KERNELS = {"rbf": "Gaussian", "laplacian": "Laplace"}

# ---- data and the paper's figures ---------------------------------------------------------------

Arrays = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """A data set, and what table 2 says of it."""

    name: str
    n_clusters: int
    max_leaves: int
    """Of the refined trees; the paper does not give them for iris and cancer: 2 k."""
    kernel: str
    prices: dict[str, float]
    gamma: float | None
    """The paper's, as its prices betray it; None where they do not."""
    load: Callable[[Path], Arrays]
    file: str | None = None


def _shape(name: str) -> tuple[Callable[[Path], Arrays], str]:
    file = f"shape_{name}.parquet"

    def load(folder: Path) -> Arrays:
        frame = pl.read_parquet(folder / file)
        return frame.drop("label").to_numpy().astype(np.float64), frame["label"].to_numpy()

    return load, file


DATA_SETS = (
    DataSet("Pathbased", 3, 6, "rbf", {IMM: 1.06645, CART: 1.07004}, 0.05, *_shape("pathbased")),
    DataSet(
        "Aggregation",
        7,
        10,
        "laplacian",
        {IMM: 1.00125, CART: 1.00125},
        None,
        *_shape("aggregation"),
    ),
    DataSet("Flame", 2, 4, "rbf", {IMM: 1.02256, CART: 1.02732}, 0.1, *_shape("flame")),
    DataSet(
        "Iris",
        3,
        6,
        "laplacian",
        {IMM: 1.00502, CART: 1.00502},
        1.0,
        lambda _: datasets.load_iris(return_X_y=True),
    ),
    DataSet(
        "Cancer",
        2,
        4,
        "rbf",
        {IMM: 1.00179, CART: 0.99330},
        5e-6,
        lambda _: datasets.load_breast_cancer(return_X_y=True),
    ),
)

# ---- reference clusterings ----------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Kernel k-means with one kernel and one gamma."""

    kernel: str
    gamma: float
    labels: np.ndarray
    ari: float
    """Agreement with the true classes."""

    def __str__(self) -> str:
        return f"{KERNELS[self.kernel]}, {self.gamma:g}"


def kernel_kmeans(X: np.ndarray, y: np.ndarray, k: int, kernel: str, gamma: float) -> Setting:
    model = tc.KernelKMeans(
        k, kernel=kernel, gamma=gamma, n_init=STARTS, random_state=0, n_jobs=1
    ).fit(X)
    return Setting(kernel, gamma, model.labels_, adjusted_rand_score(y, model.labels_))


def settings(data: DataSet, X: np.ndarray, y: np.ndarray) -> list[Setting]:
    """All of the grid, best agreement first; ties go to the Gaussian, then to the smaller gamma."""
    found = [
        kernel_kmeans(X, y, data.n_clusters, kernel, gamma)
        for kernel, gamma in product(KERNELS, GRID)
    ]
    return sorted(found, key=lambda setting: -round(setting.ari, 12))


def kernel_matrix(X: np.ndarray, kernel: str, gamma: float) -> np.ndarray:
    """Return scikit-learn's matrix: costs are taken from it, not from our models."""
    matrix = rbf_kernel if kernel == "rbf" else laplacian_kernel
    return matrix(X, gamma=gamma)


def kernel_cost(gram: np.ndarray, labels: np.ndarray) -> float:
    """Squared distances in feature space to the means of the clusters (Lemma 1)."""
    total = float(np.trace(gram))
    for label in np.unique(labels):
        member = (labels == label).astype(np.float64)
        total -= float(member @ (gram @ member)) / float(member.sum())
    return total


# ---- trees --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explained:
    """The trees of one reference clustering."""

    setting: Setting
    reference: float
    """Kernel cost of the reference."""
    trees: dict[str, tuple[np.ndarray, float, int]]
    """Labels, kernel cost and leaves; where features of x + 1 are taken, of Kernel IMM with those
    of our default origin too."""
    features: str
    """Of Kernel IMM: the better of Taylor (of x + 1 where that is positive) and distance."""
    by_features: dict[str, float]
    """Price of Kernel IMM by its features."""
    best_cut: float
    """Least price of any threshold test with two clusters; NaN for more."""
    wrong: list[str]
    """Where a model's price is not that of its labels."""

    def price(self, method: str) -> float:
        return self.trees[method][1] / self.reference


def explain(data: DataSet, X: np.ndarray, setting: Setting, *, refine: bool = True) -> Explained:
    """Fit the trees to the labels of a setting."""
    gram = kernel_matrix(X, setting.kernel, setting.gamma)
    reference = kernel_cost(gram, setting.labels)
    wrong = []

    def fit(estimator: type, **options: object) -> tuple[np.ndarray, float, int]:
        model = estimator(
            kernel=setting.kernel,
            gamma=setting.gamma,
            reference=setting.labels,
            n_anchors="all",
            order=ORDER,
            n_jobs=1,
            **options,
        )
        with warnings.catch_warnings():
            # Rows nearer to another mean than their label's; features that underflow.
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X)
        cost = kernel_cost(gram, model.labels_)
        said = model.price_of_explainability_
        if abs(said * reference - cost) > 1e-9 * cost + 1e-12 * len(X):
            wrong.append(f"{setting}, {estimator.__name__}: price {said}, not {cost / reference}.")
        return model.labels_, cost, model.n_leaves_

    kinds: dict[str, dict[str, object]] = {DISTANCE: {"features": "distance"}}
    if setting.kernel == "rbf":
        taylor = {"features": "taylor"}
        kinds = {DEFAULT: taylor, **kinds}
        if X.min() > ORIGIN:
            kinds = {TAYLOR: {**taylor, "shift": ORIGIN}, **kinds}
    imm = {kind: fit(tc.KernelIMM, **options) for kind, options in kinds.items()}
    choice = [kind for kind in kinds if kind != DEFAULT or TAYLOR not in kinds]
    best = min(choice, key=lambda kind: imm[kind][1])
    trees = {IMM: imm[best]}
    if best == TAYLOR:
        trees[IMM_DEFAULT] = imm[DEFAULT]
    if refine:
        for name, estimator in ((EXKMC, tc.KernelExKMC), (EXPAND, tc.KernelExpand)):
            trees[name] = fit(estimator, max_leaves=data.max_leaves, cuts="interval", **kinds[best])
    cart = DecisionTreeClassifier(max_leaf_nodes=data.n_clusters, random_state=0)
    predicted = cart.fit(X, setting.labels).predict(X)
    trees[CART] = (predicted, kernel_cost(gram, predicted), int(cart.get_n_leaves()))
    return Explained(
        setting,
        reference,
        trees,
        best,
        {kind: cost / reference for kind, (_, cost, _) in imm.items()},
        best_cut(X, gram) / reference if data.n_clusters == 2 else float("nan"),
        wrong,
    )


def best_cut(X: np.ndarray, gram: np.ndarray) -> float:
    """Least kernel cost of two clusters that one threshold parts."""
    least = float("inf")
    for column in X.T:
        order = np.argsort(column, kind="stable")
        sorted_gram = gram[np.ix_(order, order)]
        inside = np.cumsum(np.cumsum(sorted_gram, axis=0), axis=1).diagonal()
        first = np.cumsum(sorted_gram.sum(axis=1))
        n_left = np.flatnonzero(np.diff(column[order])) + 1
        left = inside[n_left - 1]
        right = inside[-1] - 2 * first[n_left - 1] + left
        costs = np.trace(gram) - left / n_left - right / (len(X) - n_left)
        least = min(least, float(costs.min(initial=np.inf)))
    return least


# ---- tables -------------------------------------------------------------------------------------


def at_most(price: float, paper: float) -> str:
    """Compare with one of the paper's figures, which are rounded to five digits."""
    return verdict(price < paper + 5e-6)


def price_rows(data: DataSet, explained: Explained) -> list[list[str]]:
    """One row for every tree: its price beside the paper's, agreement and absolute cost."""
    rows = []
    for method, (labels, cost, n_leaves) in explained.trees.items():
        is_imm = method in (IMM, IMM_DEFAULT)
        price, paper = explained.price(method), data.prices.get(IMM if is_imm else method)
        row = [
            data.name,
            str(explained.setting),
            f"{method}, {explained.features}" if method == IMM else method,
            str(n_leaves),
            f"{price:.5f}",
            "" if paper is None else f"{paper:.5f}",
            at_most(price, data.prices[IMM]) if is_imm else "",
            f"{agreement(labels, explained.setting.labels):.3f}",
            f"{adjusted_rand_score(explained.setting.labels, labels):.3f}",
            f"{cost:.3f}",
            f"{explained.reference:.3f}",
        ]
        rows.append(row)
    return rows


PRICE_HEADER = (
    "data",
    "kernel, gamma",
    "tree",
    "leaves",
    "price",
    "paper",
    "at most the paper's",
    "rows as in the reference",
    "ARI with it",
    "kernel cost",
    "of the reference",
)


def truth_row(data: DataSet, X: np.ndarray, y: np.ndarray, explained: Explained) -> list[str]:
    """Agreement of every method with the true classes."""
    kmeans = KMeans(data.n_clusters, n_init=STARTS, random_state=0).fit(X)
    imm = tc.IMM(reference=kmeans, n_jobs=1).fit(X)
    found = [kmeans.labels_, imm.labels_, explained.setting.labels]
    found += [explained.trees[method][0] for method in TREES]
    scores = (
        f"{adjusted_rand_score(y, labels):.3f} / {rand_score(y, labels):.3f}" for labels in found
    )
    return [data.name, str(explained.setting), *scores]


TRUTH_HEADER = ("data", "kernel, gamma", "k-means", "IMM", "kernel k-means", *TREES)


def feature_row(data: DataSet, explained: Explained) -> list[str]:
    """Return Kernel IMM's price by its features."""
    setting, paper = explained.setting, data.prices[IMM]
    own = " (the paper's)" if is_the_papers(data, setting) else ""
    return [
        data.name,
        f"{setting}{own}",
        f"{setting.ari:.3f}",
        *(
            f"{explained.by_features[kind]:.5f}" if kind in explained.by_features else ""
            for kind in (TAYLOR, DEFAULT, DISTANCE)
        ),
        f"{explained.price(CART):.5f}",
        "" if np.isnan(explained.best_cut) else f"{explained.best_cut:.5f}",
        f"{paper:.5f}",
        at_most(explained.price(IMM), paper),
    ]


def is_the_papers(data: DataSet, setting: Setting) -> bool:
    return (setting.kernel, setting.gamma) == (data.kernel, data.gamma)


FEATURE_HEADER = (
    "data",
    "kernel, gamma",
    "ARI of kernel k-means",
    TAYLOR,
    DEFAULT,
    DISTANCE,
    CART,
    "best single threshold",
    "paper's Kernel IMM",
    "at most that",
)


def scaling_row(data: DataSet, X: np.ndarray, y: np.ndarray, raw: list[Setting]) -> list[str]:
    """Tell what standardised columns would have given."""
    Z = np.ascontiguousarray(StandardScaler().fit_transform(X))
    best = settings(data, Z, y)[0]
    explained = explain(data, Z, best, refine=False)
    kmeans, scaled = (
        KMeans(data.n_clusters, n_init=STARTS, random_state=0).fit_predict(table)
        for table in (X, Z)
    )
    return [
        data.name,
        f"{adjusted_rand_score(y, kmeans):.3f}",
        f"{raw[0]}: {raw[0].ari:.3f}",
        f"{adjusted_rand_score(y, scaled):.3f}",
        f"{best}: {best.ari:.3f}",
        f"{explained.price(IMM):.5f}",
        f"{explained.price(CART):.5f}",
    ]


SCALING_HEADER = (
    "data",
    "k-means, raw",
    "kernel k-means, raw",
    "k-means, standardised",
    "kernel k-means, standardised",
    "price of Kernel IMM, standardised",
    "of CART, standardised",
)

# ---- figure 6 -----------------------------------------------------------------------------------

DISTRIBUTIONS = (
    (0.55, 0.35, 0.08, 0.02),
    (0.55, 0.35, 0.02, 0.08),
    (0.35, 0.55, 0.08, 0.02),
    (0.35, 0.55, 0.02, 0.08),
)
INSTANCES, SAMPLES, REPEATS = 5, 100, 100


def mixture(repeats: int) -> list[Any]:
    """Draw histograms of four distributions and cluster them by k-means and the chi^2 kernel."""
    k = len(DISTRIBUTIONS)
    truth = np.repeat(np.arange(k), INSTANCES)
    names = ("k-means", "chi² kernel k-means", f"Kernel IMM, chi², M = {ORDER}")
    rand: dict[str, list[float]] = {name: [] for name in names}
    adjusted: dict[str, list[float]] = {name: [] for name in names}
    prices = []
    for repeat in range(repeats):
        rng = np.random.default_rng(repeat)
        X = np.concatenate([rng.multinomial(SAMPLES, p, INSTANCES) for p in DISTRIBUTIONS])
        X = X / SAMPLES
        kmeans = KMeans(k, n_init=STARTS, random_state=0).fit(X)
        options = {"kernel": "additive_chi2", "n_jobs": 1}
        chi2 = tc.KernelKMeans(k, n_init=STARTS, random_state=0, **options).fit(X)
        tree = tc.KernelIMM(reference=chi2.labels_, order=ORDER, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tree.fit(X)
        prices.append(tree.price_of_explainability_)
        for name, model in zip(names, (kmeans, chi2, tree), strict=True):
            rand[name].append(rand_score(truth, model.labels_))
            adjusted[name].append(adjusted_rand_score(truth, model.labels_))
    rows = [
        [
            name,
            mean(rand[name], format=".3f"),
            *(f"{q:.3f}" for q in np.quantile(rand[name], (0, 0.25, 0.5, 0.75, 1))),
            mean(adjusted[name], format=".3f"),
        ]
        for name in names
    ]
    header = ("", "mean Rand index", "least", "quartile", "median", "quartile", "most", "mean ARI")
    ours, theirs = np.array(rand[names[1]]), np.array(rand[names[0]])
    bins = "; ".join(", ".join(f"{p:g}" for p in row) for row in DISTRIBUTIONS)
    return [
        f"**Figure 6**: four distributions over four bins, {INSTANCES} instances of {SAMPLES} "
        f"samples each, {repeats} repetitions. The paper shows its probabilities in a plot only; "
        f"these are ours, two of the bins rare: {bins}.",
        table(header, rows),
        f"The chi² kernel's Rand index is greater than that of k-means in "
        f"{np.mean(ours > theirs):.0%} of the repetitions, less in {np.mean(ours < theirs):.0%}. "
        f"Price of Kernel IMM: mean {np.mean(prices):.4f}, most {np.max(prices):.4f}; its "
        f"partition is the reference in {np.mean(np.isclose(prices, 1.0)):.0%}.",
    ]


# ---- the page -----------------------------------------------------------------------------------

NOTES = """\
Where the figures agree and differ:

- At the paper's kernel and gamma the price of Kernel IMM is table 2's to the last digit on all four
  data sets where they are known; so is that of CART on three.
- Flame: with Taylor features of x + 1 Kernel IMM makes the paper's cut, 28 of 240 rows on the wrong
  side. That origin was taken because it does; any from -7.8 to -0.5 does, and the paper gives none.
  With our default origin (1 % of the range below the smallest value), and with distance features, a
  cut with fewer such rows is within reach (24 and 23), and it costs more: IMM counts mistakes, not
  cost. With those features alone flame misses the paper's price (the rows *Taylor, default
  origin*).
- Iris: the Gaussian kernel with gamma = 1 agrees better with the truth than the paper's Laplace, so
  the protocol takes it. The price of CART is 1.01141 there too.
- Cancer: no single threshold has a price below 1.00179, so CART's 0.99330 cannot be that of a tree
  with two leaves against this reference; it must be against another, costlier one.
- Aggregation: the paper's gamma is not known. Of 120 starts at each of 17 gammas from 0.01 to 5
  none gave CART the paper's price together with an ARI above 0.5.
- The number of starts matters for the choice: with 20, kernel k-means missed its best solution on
  flame for one of three seeds, and at large gamma (flame 1, aggregation 0.5) even 100 starts differ
  in cost from seed to seed."""


def main() -> None:
    parser = common.parser(__doc__, data=True, only="only the data sets whose name holds this")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of figure 6; 0 leaves it out")
    arguments = common.parse(parser)
    common.one_thread()

    missing = common.Missing()
    prices: list[list[str]] = []
    truths: list[list[str]] = []
    prices_there: list[list[str]] = []
    truths_there: list[list[str]] = []
    features: list[list[str]] = []
    scalings: list[list[str]] = []
    for data in common.chosen(DATA_SETS, arguments, missing):
        X, y = data.load(arguments.data)
        print(f"... {data.name}: {len(X):,} x {X.shape[1]}", file=sys.stderr, flush=True)
        ranked = settings(data, X, y)
        done = [explain(data, X, ranked[0])]
        prices += price_rows(data, done[0])
        truths.append(truth_row(data, X, y, done[0]))
        theirs = [setting for setting in ranked if is_the_papers(data, setting)]
        if theirs and theirs[0] is not ranked[0]:
            done.append(explain(data, X, theirs[0]))
            prices_there += price_rows(data, done[-1])
            truths_there.append(truth_row(data, X, y, done[-1]))
        for setting in ranked[1 : 1 + NEXT_BEST]:
            if setting not in theirs:
                done.append(explain(data, X, setting, refine=False))
        features += [feature_row(data, one) for one in done]
        scalings.append(scaling_row(data, X, y, ranked))
        for line in (line for one in done for line in one.wrong):
            missing.add(f"{data.name}: {line}")
    grid = ", ".join(f"{gamma:g}" for gamma in GRID)
    there = (
        "**The same at the paper's own kernel and gamma**, where they are others and table 2's "
        "prices betray them",
        table(PRICE_HEADER, prices_there),
        table(TRUTH_HEADER, truths_there),
    )
    sections: list[Any] = []
    if prices:
        sections = [
            f"Columns as they are. gamma from {grid}; kernel k-means has {STARTS} starts, and the "
            "setting is the one whose labels have the largest ARI with the truth. Kernel ExKMC and "
            "Kernel Expand refine Kernel IMM with intervals, to at most 6, 10, 4, 6 and 4 leaves; "
            "the last two (2 k) are ours, the paper has none. All costs are from scikit-learn's "
            "kernel matrix. The price alone tends to 1 for any partition as "
            "gamma grows: read it beside the agreement.",
            "**Table 2 and figure 4, price of explainability**",
            table(PRICE_HEADER, prices),
            "**Figure 4, agreement with the true classes**: adjusted Rand index / Rand index",
            table(TRUTH_HEADER, truths),
            *(there if prices_there else ()),
            f"**Price of Kernel IMM by features** (M = {ORDER}): the setting chosen, the paper's, "
            f"and the {NEXT_BEST} next best by agreement",
            table(FEATURE_HEADER, features),
            "**Why columns are not standardised**: ARI with the truth of the best setting of "
            "either, and prices to set beside table 2's",
            table(SCALING_HEADER, scalings),
            NOTES,
        ]
    if arguments.repeats:
        print("... figure 6", file=sys.stderr, flush=True)
        sections.append(mixture(arguments.repeats))
    common.publish("Kernel trees: the paper's tables", sections, missing, arguments)


if __name__ == "__main__":
    main()
