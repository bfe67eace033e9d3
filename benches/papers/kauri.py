"""The tables of the Kauri paper again, and Kauri's objective beside the published package's.

    python benches/papers/kauri.py --data ../shared/data

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas": tables 3 (ARI), 4 (cost
over that of k-means) and 5 (WAD), of trees with as many leaves as clusters (the columns of Douglas
are in `douglas.py`); tables 7 (ARI) and 8
(WAES), of trees with four times as many; the tree of figure 3. As in its section 5.1 and appendix E
columns are standardised, categories one-hot (votes: y = 1, n = -1, ? = 0), rows with missing values
left out, and every figure is the mean (standard deviation) over 30 random subsamples of 80 % of the
rows. What the paper does not say was chosen by trial, as what gives the figures of KMeans+Tree:
columns are scaled on the subsample, k-means has 10 starts, and trees are measured on the rows they
were fitted to. Data that are missing are left out by name.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from treeclust_rs.metrics import agreement

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
from common import table
from figures import Cell, mean, value
from peer_gemclus import GemclusPeer
from peer_process import PeerError, peer_or_none
from report import verdict

SHARE = 0.8
MORE_LEAVES = 4
PEER_ROWS = 2_000  # gemclus' memory and time grow with the square of the rows and faster
AVILA_ROWS = 3_000
OURS, GEMCLUS, CART, IMM, EXKMC = "Kauri", "gemclus", "KMeans+Tree", "IMM", "ExKMC"
SHALLOW, RDM = "ExShallow", "RDM"
EXPLAINERS: dict[str, tuple[str, dict[str, Any]]] = {
    SHALLOW: ("ExShallow", {}),
    RDM: ("RandomCuts", {"n_trials": 1}),
    IMM: ("IMM", {}),
    EXKMC: ("ExKMC", {}),
}
"""Trees that explain k-means: class and parameters."""

# ---- data -----------------------------------------------------------------------------------

Arrays = tuple[np.ndarray, np.ndarray]


def _built_in(load: Callable[..., Arrays]) -> Callable[[Path], Arrays]:
    return lambda _: load(return_X_y=True)


def _file(name: str, one_hot: bool = False) -> Callable[[Path], Arrays]:
    def load(folder: Path) -> Arrays:
        frame = pl.read_parquet(folder / name).drop_nulls()
        columns = frame.drop("label")
        if one_hot:
            columns = columns.with_columns(pl.all().cast(pl.String)).to_dummies()
        return columns.to_numpy().astype(np.float64), frame["label"].to_numpy()

    return load


def _hid(folder: Path) -> Arrays:
    X, label = _file("vowel.parquet")(folder)
    return X, label == "hid"


@dataclass(frozen=True)
class DataSet:
    """Where a data set comes from, its number of classes, and the paper's limits on it."""

    name: str
    n_clusters: int
    load: Callable[[Path], Arrays]
    file: str | None = None
    min_samples_split: int = 2
    """20 on avila and poker (appendix E)."""
    scaled: bool = True
    """Whether columns are standardised in the tables."""
    in_tables: bool = True
    objective_rows: int | None = None
    """Rows drawn to compare objectives without a limit of leaves; None is all of them, 0 is no
    comparison at all."""


def stored(name: str, n_clusters: int, file: str, **options: int | None) -> DataSet:
    one_hot = bool(options.pop("one_hot", False))
    return DataSet(name, n_clusters, _file(file, one_hot), file, **options)  # type: ignore[arg-type]


DATA_SETS = (
    stored("Avila", 12, "avila.parquet", min_samples_split=20, objective_rows=AVILA_ROWS),
    stored("Cancer", 2, "breast_cancer_wisconsin_original.parquet"),
    DataSet("Cancer, diagnostic", 2, _built_in(datasets.load_breast_cancer), in_tables=False),
    # The paper's figures are those of one-hot columns left at 0 and 1: scaled ones give k-means a
    # tree of WAD 2.23, not 2.04.
    stored("Car", 4, "car_evaluation.parquet", one_hot=True, scaled=False, objective_rows=0),
    stored("Car, standardised", 4, "car_evaluation.parquet", one_hot=True, in_tables=False),
    stored("Congress", 2, "congressional_votes_1984.parquet"),
    DataSet("Digits", 10, _built_in(datasets.load_digits)),
    stored("Haberman", 2, "haberman.parquet"),
    DataSet("Iris", 3, _built_in(datasets.load_iris)),
    stored("Mice", 8, "mice_protein.parquet"),
    stored(
        "Poker", 10, "poker_hand_partial_125008.parquet", min_samples_split=20, objective_rows=0
    ),
    DataSet("Vowel", 2, _hid, "vowel.parquet"),
    stored("Vowel, 11 classes", 11, "vowel.parquet"),
    DataSet("Wine", 3, _built_in(datasets.load_wine)),
)

# ---- what the paper prints: mean, standard deviation ------------------------------------------

Figures = dict[str, dict[str, tuple[float, float]]]


def _printed(methods: Sequence[str], rows: dict[str, str]) -> Figures:
    """Read lines of "mean deviation" pairs."""
    figures: Figures = {}
    for name, line in rows.items():
        numbers = list(map(float, line.split()))
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        figures[name] = dict(zip(methods, pairs, strict=True))
    return figures


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper."""

    title: str
    measure: str
    leaves: int
    """Leaves per cluster."""
    methods: tuple[str, ...]
    printed: Figures


_AS_MANY = (OURS, CART, SHALLOW, RDM, IMM)
_MORE = (OURS, CART, EXKMC)
TABLES = (
    PaperTable(
        "Table 3: ARI, greater is better; as many leaves as clusters",
        "ari",
        1,
        _AS_MANY,
        _printed(
            _AS_MANY,
            {
                "Avila": "0.02 0.01 0.04 0.01 0.06 0.02 0.05 0.02 0.06 0.01",
                "Cancer": "0.74 0.02 0.73 0.01 0.74 0.01 0.68 0.02 0.73 0.02",
                "Car": "0.06 0.06 0.08 0.07 0.05 0.05 0.07 0.05 0.05 0.05",
                "Congress": "0.49 0.03 0.46 0.04 0.49 0.03 0.39 0.02 0.48 0.03",
                "Digits": "0.26 0.02 0.36 0.05 0.31 0.03 0.16 0.03 0.27 0.03",
                "Haberman": "0.00 0.03 0.00 0.00 0.00 0.00 0.00 0.02 0.00 0.00",
                "Iris": "0.63 0.07 0.60 0.06 0.62 0.06 0.49 0.04 0.59 0.05",
                "Mice": "0.21 0.03 0.18 0.04 0.19 0.03 0.12 0.04 0.16 0.03",
                "Vowel": "0.01 0.01 0.03 0.03 0.05 0.04 0.07 0.03 0.08 0.04",
                "Wine": "0.60 0.10 0.71 0.05 0.74 0.04 0.33 0.05 0.75 0.04",
            },
        ),
    ),
    PaperTable(
        "Table 4: k-means cost of the tree's clusters over that of k-means, lower is better; as "
        "many leaves as clusters",
        "ratio",
        1,
        _AS_MANY,
        _printed(
            _AS_MANY,
            {
                "Avila": "1.22 0.08 1.95 0.07 1.23 0.10 1.30 0.13 1.15 0.07",
                "Cancer": "1.08 0.02 1.08 0.02 1.07 0.02 1.31 0.02 1.07 0.01",
                "Car": "1.00 0.00 1.00 0.00 1.00 0.00 1.02 0.03 1.00 0.00",
                "Congress": "1.05 0.01 1.04 0.01 1.04 0.01 1.13 0.02 1.04 0.01",
                "Digits": "1.13 0.01 1.19 0.02 1.13 0.02 1.24 0.04 1.14 0.02",
                "Haberman": "1.01 0.00 1.01 0.00 1.01 0.00 1.01 0.00 1.01 0.00",
                "Iris": "1.06 0.04 1.07 0.04 1.06 0.05 1.29 0.08 1.07 0.05",
                "Mice": "1.05 0.01 1.09 0.03 1.05 0.01 1.33 0.05 1.11 0.03",
                "Poker": "1.03 0.00 1.07 0.02 1.05 0.00 1.07 0.02 1.12 0.05",
                "Vowel": "1.06 0.00 1.07 0.01 1.07 0.01 1.09 0.01 1.09 0.01",
                "Wine": "1.09 0.05 1.13 0.05 1.05 0.02 1.33 0.05 1.05 0.03",
            },
        ),
    ),
    PaperTable(
        "Table 5: WAD, lower is better; as many leaves as clusters",
        "wad",
        1,
        _AS_MANY,
        _printed(
            _AS_MANY,
            {
                "Avila": "5.47 0.30 4.00 0.13 6.43 0.56 7.81 0.33 9.19 0.10",
                "Car": "2.00 0.00 2.04 0.06 2.05 0.06 2.03 0.08 2.04 0.06",
                "Digits": "3.45 0.22 3.48 0.17 3.98 0.19 5.21 0.83 6.79 0.34",
                "Iris": "1.67 0.02 1.67 0.02 1.67 0.02 1.62 0.03 1.67 0.02",
                "Mice": "3.04 0.07 3.16 0.13 3.23 0.16 3.47 0.39 4.85 0.41",
                "Poker": "3.26 0.00 3.26 0.01 3.38 0.05 3.28 0.11 4.40 0.45",
                "Wine": "1.58 0.07 1.65 0.04 1.69 0.03 1.75 0.03 1.71 0.02",
            },
        ),
    ),
    PaperTable(
        "Table 7: ARI, greater is better; 4 leaves per cluster",
        "ari",
        MORE_LEAVES,
        _MORE,
        _printed(
            _MORE,
            {
                "Avila": "0.04 0.00 0.06 0.01 0.06 0.01",
                "Cancer": "0.86 0.02 0.84 0.03 0.86 0.02",
                "Car": "0.05 0.06 0.07 0.06 0.06 0.07",
                "Congress": "0.50 0.04 0.56 0.04 0.53 0.04",
                "Digits": "0.41 0.03 0.45 0.04 0.44 0.04",
                "Haberman": "0.01 0.05 0.00 0.00 0.00 0.01",
                "Iris": "0.61 0.03 0.62 0.04 0.61 0.03",
                "Mice": "0.19 0.02 0.18 0.02 0.18 0.01",
                "Vowel": "0.13 0.04 0.15 0.02 0.17 0.02",
                "Wine": "0.89 0.03 0.91 0.03 0.90 0.03",
            },
        ),
    ),
    PaperTable(
        "Table 8: WAES, lower is better; 4 leaves per cluster",
        "waes",
        MORE_LEAVES,
        _MORE,
        _printed(
            _MORE,
            {
                "Avila": "8.29 0.32 6.42 0.16 10.77 0.18",
                "Cancer": "2.49 0.18 2.77 0.24 3.20 0.33",
                "Car": "2.00 0.00 2.05 0.11 2.05 0.06",
                "Congress": "1.65 0.33 2.42 0.24 2.65 0.29",
                "Digits": "6.26 0.21 5.74 0.25 9.40 0.46",
                "Haberman": "1.08 0.18 2.03 0.23 2.41 0.47",
                "Iris": "2.49 0.20 2.59 0.25 3.01 0.26",
                "Mice": "5.53 0.23 5.42 0.31 7.22 0.40",
                "Vowel": "3.10 0.20 2.85 0.42 3.61 0.49",
                "Wine": "2.72 0.38 2.87 0.31 3.53 0.50",
            },
        ),
    ),
)

# ---- the runs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clustering:
    """What is measured of a tree."""

    labels: np.ndarray
    wad: float = float("nan")
    waes: float = float("nan")


# (data set, method, leaves per cluster, measure) -> one figure per run
Measured = dict[tuple[str, str, int, str], list[float]]


def run_tables(
    data: DataSet,
    X: np.ndarray,
    y: np.ndarray,
    runs: int,
    explainers: Mapping[str, Any],
    peer: GemclusPeer | None,
) -> Measured:
    """Fit every method to every subsample."""
    measured: Measured = defaultdict(list)
    size = int(SHARE * len(X))
    for run in range(runs):
        rows = np.sort(np.random.default_rng(run).permutation(len(X))[:size])
        sample, classes = standardised(X[rows]) if data.scaled else X[rows], y[rows]
        kmeans = KMeans(data.n_clusters, n_init=10, random_state=run).fit(sample)
        reference = kmeans_cost(sample, kmeans.labels_)
        for method, leaves, found in _trees(data, sample, kmeans, run, explainers, peer):
            figures = {
                "ari": adjusted_rand_score(classes, found.labels),
                "ratio": kmeans_cost(sample, found.labels) / reference,
                "wad": found.wad,
                "waes": found.waes,
            }
            for measure, figure in figures.items():
                measured[data.name, method, leaves, measure].append(figure)
    return measured


def _trees(
    data: DataSet,
    X: np.ndarray,
    kmeans: KMeans,
    run: int,
    explainers: Mapping[str, Any],
    peer: GemclusPeer | None,
) -> Iterator[tuple[str, int, Clustering]]:
    k = data.n_clusters
    split = {"min_samples_split": data.min_samples_split}
    stored = peer.file(X) if peer is not None else ""
    for leaves in (1, MORE_LEAVES):
        model = tc.Kauri(k, max_leaves=leaves * k, n_jobs=1, **split).fit(X)
        yield OURS, leaves, _explained(model.labels_, model.tree_)
        if peer is not None:
            yield (
                GEMCLUS,
                leaves,
                Clustering(peer.fit(stored, max_clusters=k, max_leaves=leaves * k, **split)[2]),
            )
        cart = DecisionTreeClassifier(max_leaf_nodes=leaves * k, random_state=run)
        cart.fit(X, kmeans.labels_)
        yield CART, leaves, _explained(cart.predict(X), cart.tree_)
    for method, explainer in explainers.items():
        leaves = MORE_LEAVES if method == EXKMC else 1
        own = {"max_leaves": leaves * k} if method == EXKMC else {"random_state": run}
        model = clone(explainer).set_params(reference=kmeans, n_jobs=1, **own).fit(X)
        yield method, leaves, _explained(model.labels_, model.tree_)
    if peer is not None:
        peer.forget(stored)


def _explained(labels: np.ndarray, tree: object) -> Clustering:
    """Measure a tree of thresholds with scikit-learn's arrays, ours or its own.

    WAD is the depth of a row's leaf, WAES the number of tightest bounds on its path (one per
    feature and direction), both averaged over the rows.
    """
    left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
    feature, rows = tree.feature, tree.n_node_samples  # type: ignore[attr-defined]
    depth = size = 0
    stack: list[tuple[int, int, frozenset[tuple[int, str]]]] = [(0, 0, frozenset())]
    while stack:
        node, level, bounds = stack.pop()
        if left[node] < 0:
            depth += level * int(rows[node])
            size += len(bounds) * int(rows[node])
        else:
            stack.append((left[node], level + 1, bounds | {(feature[node], "<=")}))
            stack.append((right[node], level + 1, bounds | {(feature[node], ">")}))
    return Clustering(labels, depth / int(rows[0]), size / int(rows[0]))


def standardised(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(StandardScaler().fit_transform(X))


def kmeans_cost(X: np.ndarray, labels: np.ndarray) -> float:
    """Squared distances to the means of the clusters."""
    return sum(
        float(np.square(X[labels == label] - X[labels == label].mean(axis=0)).sum())
        for label in np.unique(labels)
    )


def objective(X: np.ndarray, labels: np.ndarray) -> float:
    """Kauri's objective for the linear kernel of standardised columns (eq. 6)."""
    return float(np.square(X).sum()) - kmeans_cost(X, labels)


def paper_table(page: PaperTable, names: Sequence[str], measured: Measured) -> list[Any]:
    """Set the paper's figures (in front) beside ours."""

    def printed(name: str, method: str) -> str:
        figures = page.printed.get(name, {}).get(method)
        return "" if figures is None else f"{figures[0]:.2f} ({figures[1]:.2f})"

    def ours(name: str, method: str) -> Cell:
        found = measured.get((name, method, page.leaves, page.measure), [])
        return "" if not found or np.isnan(found).any() else mean(found)

    header = ["data"]
    for method in page.methods:
        header += [f"{method}: paper", "measured"]
        if method == OURS and page.measure in ("ari", "ratio"):
            header.append(GEMCLUS)
    rows = []
    for name in names:
        row: list[Cell] = [name]
        for method in page.methods:
            row += [printed(name, method), ours(name, method)]
            if method == OURS and page.measure in ("ari", "ratio"):
                row.append(ours(name, GEMCLUS))
        rows.append(row)
    return [f"**{page.title}**", table(header, rows)]


# ---- the objective, and figure 3 --------------------------------------------------------------


def objective_rows(
    data: DataSet,
    X: np.ndarray,
    peer: GemclusPeer | None,
    limit: float,
    missing: common.Missing,
) -> list[list[Cell]]:
    """Ours and gemclus' at equal limits, on all rows; as many leaves as clusters, and no limit."""
    rows = []
    whole = X
    for max_leaves in (data.n_clusters, None):
        name, X = data.name, whole
        most = data.objective_rows
        if max_leaves is None and most is not None and most < len(X):
            # gemclus would take hours.
            name = f"{name}, {most:,} rows"
            X = X[np.random.default_rng(0).permutation(len(X))[:most]]
        X = standardised(X)
        total = float(np.square(X).sum())
        stored = peer.file(X) if peer is not None else ""
        model = tc.Kauri(data.n_clusters, max_leaves=max_leaves or math.inf, n_jobs=1).fit(X)
        ours = objective(X, model.labels_)
        said = f"{max_leaves}" if max_leaves else "no limit"
        row = [
            name,
            str(data.n_clusters),
            said,
            value(ours, format=".4f"),
            model.n_leaves_,
            "",
            "",
            "",
            "",
        ]
        if abs(ours - model.objective_) > 1e-9 * total:
            missing.add(f"{name}: objective_ says {model.objective_}, the labels say {ours}.")
        if peer is not None:
            try:
                _, n_leaves, labels = peer.fit(
                    stored, limit=limit, max_clusters=data.n_clusters, max_leaves=max_leaves
                )
            except PeerError as error:
                missing.add(f"gemclus on {name}, {said}: {error}.")
            else:
                theirs = objective(X, labels)
                row[5:] = [
                    value(theirs, format=".4f"),
                    n_leaves,
                    value((ours - theirs) / total, format="+.5f"),
                    verdict(ours >= theirs - 1e-9 * total),
                ]
            peer.forget(stored)
        rows.append(row)
    return rows


def votes_tree(folder: Path) -> str:
    """Grow the tree of figure 3: two clusters of the votes, until no gain is left.

    Its last split is one of several columns that part the same six rows alike. The paper shows
    mx_missile; ours is the first of them, so mx_missile is put first.
    """
    frame = pl.read_parquet(folder / "congressional_votes_1984.parquet")
    votes, party = frame.drop("label"), frame["label"].to_numpy()
    as_stored = tc.Kauri(2, max_leaves=math.inf, n_jobs=1).fit(votes)
    first = "mx_missile"
    votes = votes.select(first, pl.exclude(first))
    model = tc.Kauri(2, max_leaves=math.inf, n_jobs=1).fit(votes)
    used, used_as_stored = (
        ", ".join(sorted({found.feature_names_in_[f] for f in found.tree_.feature if f >= 0}))
        for found in (model, as_stored)
    )
    shares = [
        f"cluster {label}: {(model.labels_ == label).sum()} rows, "
        f"{(party[model.labels_ == label] == 'republican').mean():.1%} republican"
        for label in np.unique(model.labels_)
    ]
    same = np.array_equal(model.labels_, as_stored.labels_)
    return (
        "**Figure 3**: votes as -1, 0, 1, k = 2, as many leaves as there are gains. Paper: El "
        "Salvador aid, aid to Nicaraguan contras, MX missile; ARI 0.47, accuracy 84 %; clusters "
        "of up to 73 % Republicans and up to 96 % Democrats.\n\n"
        f"```\n{model.tree_}\n```\n\n"
        f"Columns: {used}. ARI {adjusted_rand_score(party, model.labels_):.3f}, accuracy "
        f"{agreement(model.labels_, party):.1%}; {'; '.join(shares)}. The last split "
        f"is a tie of columns, and {first} was put first; with the columns as stored: "
        f"{used_as_stored}, the same clusters: {verdict(same)}."
    )


NOTES = """\
Where the figures differ:

- RDM is one tree of random cuts (`RandomCuts(n_trials=1)`).
- Table 2 of the paper has the columns of Poker hand and Vowel swapped (990 rows; 1,025,010 rows),
  and gives mice protein 4 features; 552 complete rows have 77. Vowel has two classes there: hid
  against the rest gives the ARI of KMeans+Tree and Kauri in tables 3 and 7, no other class does.
- Car: the figures are those of one-hot columns that are not standardised.
- ExKMC in table 8: the published package goes on splitting leaves where nothing is gained, until
  `max_leaves` is reached; ours stops, and explains with fewer conditions. Where all leaves are
  needed (Avila, Digits, Mice) both agree.
- Haberman: a cut of the year (ARI 0) and one of the positive nodes (30 of 244 rows, ARI 0.09 to
  0.15) gain almost the same. Kauri takes the second in 6 of these 30 subsamples if columns are
  scaled on all rows and never if on the subsample; the paper's deviation shows that it took it.
- Poker: an eighth of the rows is measured; the ARI is 0 for all, so table 3 leaves it out."""


def main() -> None:
    parser = common.parser(__doc__, data=True, only="only the data sets whose name holds this")
    parser.add_argument("--runs", type=int, default=30, help="subsamples of every data set")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one fit of gemclus")
    arguments = common.parse(parser)
    common.one_thread()

    missing = common.Missing()
    peer = peer_or_none(GemclusPeer, "gemclus", missing.add)
    explainers = common.estimators(EXPLAINERS, missing)
    measured: Measured = {}
    objectives: list[list[Cell]] = []
    names = []
    for data in common.chosen(DATA_SETS, arguments, missing):
        X, y = data.load(arguments.data)
        print(f"... {data.name}: {len(X):,} x {X.shape[1]}", file=sys.stderr, flush=True)
        if data.in_tables:
            names.append(data.name)
            beside = peer if len(X) <= PEER_ROWS else None
            measured |= run_tables(data, X, y, arguments.runs, explainers, beside)
        if data.objective_rows != 0:
            objectives += objective_rows(data, X, peer, arguments.limit, missing)
    sections: list[Any] = [
        f"Mean (standard deviation) over {arguments.runs} subsamples of 80 % of the rows. Columns "
        "called measured are treeclust_rs and, for KMeans+Tree, scikit-learn. gemclus is the "
        f"published Kauri of today, run on the same subsamples where there are at most "
        f"{PEER_ROWS:,} rows. Vowel is the class hid against the rest, k = 2, as the paper's "
        "figures show.",
        *(paper_table(page, names, measured) for page in TABLES),
        NOTES,
        "**Objective** (eq. 6, linear kernel, all rows standardised, 2 samples to split a node), "
        "greater is better; the difference is a share of the inertia of all rows",
        table(
            (
                "data",
                "k",
                "max_leaves",
                "ours",
                "leaves",
                GEMCLUS,
                "leaves",
                "difference",
                "ours >= gemclus",
            ),
            objectives,
        ),
    ]
    if (arguments.data / "congressional_votes_1984.parquet").exists():
        sections.append(votes_tree(arguments.data))
    else:
        missing.add("figure 3: the votes are not there.")
    if peer is not None:
        sections.append(f"gemclus: {peer.how}; one thread.")
        peer.close()
    common.publish("Kauri: the paper's tables", sections, missing, arguments)


if __name__ == "__main__":
    main()
