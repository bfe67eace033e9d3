"""The tables of the Douglas paper again, with its hyper-parameters and with our defaults.

    python benches/papers/douglas.py --data ../shared/data --keep douglas.json

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas": the columns of Douglas
in tables 3 (ARI) and 4 (cost over that of k-means), of the authors' PyTorch code; table 6 (ARI), of
their NumPy code; the active cut points of the votes (section 5.3). Data and subsamples are those of
`kauri.py`: columns are standardised on the subsample, figures are means (standard deviations) over
30 random subsamples of 80 % of the rows. Data that are missing are left out by name. Avila takes
hours; with `--keep` every run is kept in a file, and a later call goes on from there.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from kauri import DATA_SETS, SHARE, DataSet, kmeans_cost, standardised
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from treeclust_rs.estimators.douglas import soft_training as _soft_training
from treeclust_rs.estimators.douglas.estimator import Douglas

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
from common import table
from figures import Cell, mean, runs
from peer_gemclus import GemclusPeer
from peer_process import peer_or_none
from report import verdict

PAPER, LARGE, OURS = "paper's", "paper's, large weights", "ours"
SQUARED = "ours, mmd2_ova"
PRUNED = "ours, prune=0.01"
RANDOM, GEMCLUS = "ours, random cuts", "gemclus"
WHOLE = "ours, prune=0.01, all rows as -1, 0, 1"
WHOLE_SQUARED = "ours, mmd2_ova, prune=0.01, all rows as -1, 0, 1"
WHOLE_MANY = "ours, mmd2_ova, prune=0.01, n_init=20, all rows as -1, 0, 1"

# ---- what the paper says ----------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """How the paper trained on a data set (appendix E), and what it found."""

    batch_size: int
    max_iter: int = 200
    pytorch: tuple[float, float] | None = None
    """ARI in table 3: mean, standard deviation."""
    numpy: tuple[float, float] | None = None
    """ARI in table 6."""
    ratio: tuple[float, float] | None = None
    """Cost over that of k-means, in table 4."""

    @property
    def best(self) -> tuple[float, float]:
        """The better ARI."""
        return max(filter(None, (self.pytorch, self.numpy)))


SETTINGS = {
    "Avila": Setting(256, 50, (0.02, 0.01), None, (1.72, 0.14)),
    "Cancer": Setting(64, 200, (0.84, 0.02), (0.84, 0.03), (1.00, 0.01)),
    "Congress": Setting(128, 200, (0.56, 0.04), (0.02, 0.02), (1.00, 0.01)),
    "Haberman": Setting(64, 200, (0.02, 0.04), (0.00, 0.01), (1.04, 0.02)),
    "Iris": Setting(32, 200, (0.47, 0.12), (0.54, 0.09), (1.49, 0.24)),
    "Vowel": Setting(128, 200, (0.07, 0.05), (0.30, 0.15), (1.04, 0.01)),
    "Wine": Setting(64, 200, (0.54, 0.13), (0.17, 0.09), (1.11, 0.09)),
}
VOTES = "Congress"
# Section 5.3: the features whose cut was most often active, and in how many of the runs.
MOST_ACTIVE = {
    "aid_to_nicaraguan_contras": 0.93,
    "el_salvador_aid": 0.83,
    "mx_missile": 0.63,
}


def paper_model(setting: Setting, k: int, seed: int) -> Douglas:
    """Appendix E; one cut for every feature, and a random start."""
    return Douglas(
        k,
        gemini="wasserstein_ova",
        n_cuts=1,
        temperature=0.1,
        init="random",
        n_init=1,
        solver="adam",
        learning_rate=1e-3,
        batch_size=setting.batch_size,
        warm_up=0,
        max_iter=setting.max_iter,
        tol=None,
        n_jobs=1,
        random_state=seed,
    )


class LargeWeights(Douglas):
    """Starts from weights of standard deviation 1, not 0.1: the paper says nothing of them."""

    def fit(self, X: Any, y: Any = None, affinity: Any = None) -> LargeWeights:
        with mock.patch.object(_soft_training, "_SOFT_START", 1.0):
            return super().fit(X, y, affinity)


def large_model(setting: Setting, k: int, seed: int) -> Douglas:
    """Appendix E again, from larger weights."""
    return LargeWeights(**paper_model(setting, k, seed).get_params())


def our_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Leave everything at its default."""
    return Douglas(k, n_jobs=1, random_state=seed)


def squared_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Leave everything but the objective at its default."""
    return Douglas(k, gemini="mmd2_ova", n_jobs=1, random_state=seed)


def pruned_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Leave all at its default, but columns out for a hundredth of the objective."""
    return Douglas(k, prune=0.01, n_jobs=1, random_state=seed)


def squared_pruned_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Do so with the objective of Kauri, whose tree section 5.3 compares with."""
    return Douglas(k, gemini="mmd2_ova", prune=0.01, n_jobs=1, random_state=seed)


def many_starts_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Do so from more starts: which columns go is also the luck of the start."""
    return Douglas(k, gemini="mmd2_ova", prune=0.01, n_init=20, n_jobs=1, random_state=seed)


def random_model(_setting: Setting, k: int, seed: int) -> Douglas:
    """Leave all but the start of the cuts at its default.

    Cuts that start at quantiles start active, and most stay so; of random cuts those are active
    that training has a use for.
    """
    return Douglas(k, init="random", n_jobs=1, random_state=seed)


MODELS = {
    PAPER: paper_model,
    LARGE: large_model,
    OURS: our_model,
    SQUARED: squared_model,
    PRUNED: pruned_model,
    RANDOM: random_model,
    WHOLE: pruned_model,
    WHOLE_SQUARED: squared_pruned_model,
    WHOLE_MANY: many_starts_model,
}
# What is tried for the active cuts of the votes only.
OF_VOTES = (RANDOM, WHOLE, WHOLE_SQUARED, WHOLE_MANY)

# ---- the runs ---------------------------------------------------------------------------------


Figures = dict[str, "Found"]
"""By method."""


@dataclass
class Found:
    """Figures of all runs of one method on one data set."""

    ari: list[float] = field(default_factory=list)
    ratio: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    n_clusters: list[int] = field(default_factory=list)
    active: Counter[int] = field(default_factory=Counter)
    commits: list[str] = field(default_factory=list)
    """Of every run; runs kept by older benches have none."""

    def add(self, X: np.ndarray, y: np.ndarray, labels: np.ndarray, reference: float) -> None:
        self.commits.append(common.revision())
        self.ari.append(float(adjusted_rand_score(y, labels)))
        self.ratio.append(kmeans_cost(X, labels) / reference)
        self.n_clusters.append(len(set(labels.tolist())))

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Found:
        """Read what `vars` gave and JSON kept, whose keys are strings."""
        active = Counter({int(feature): times for feature, times in kept["active"].items()})
        return cls(**{**kept, "active": active})


def read_kept(file: Path | None) -> dict[str, Figures]:
    """Return what was measured before, by data set."""
    if file is None or not file.exists():
        return {}
    return {
        name: {method: Found.of(found) for method, found in figures.items()}
        for name, figures in json.loads(file.read_text()).items()
    }


def keep(file: Path | None, name: str, figures: Figures) -> None:
    """Add figures of a data set to the file, which others may have written to since."""
    if file is not None:
        kept = read_kept(file)
        kept[name] = {**kept.get(name, {}), **figures}
        file.write_text(
            json.dumps(
                {
                    of: {method: vars(found) for method, found in by_method.items()}
                    for of, by_method in kept.items()
                }
            )
        )


def run(
    data: DataSet,
    X: np.ndarray,
    y: np.ndarray,
    number: int,
    method: str,
    found: Found,
    peer: GemclusPeer | None,
) -> None:
    """Fit a method to a subsample."""
    setting = SETTINGS[data.name]
    if method in (WHOLE, WHOLE_SQUARED, WHOLE_MANY):  # as section 5.3 says
        sample, classes = np.ascontiguousarray(X, dtype=float), y
    else:
        rows = np.sort(np.random.default_rng(number).permutation(len(X))[: int(SHARE * len(X))])
        sample, classes = standardised(X[rows]), y[rows]
    kmeans = KMeans(data.n_clusters, n_init=10, random_state=number).fit(sample)
    reference = kmeans_cost(sample, kmeans.labels_)
    start = time.perf_counter()
    if method == GEMCLUS:
        assert peer is not None
        stored = peer.file(sample)
        labels = peer.douglas(stored, **_peer_parameters(setting, data, number))[2]
        peer.forget(stored)
    else:
        model = MODELS[method](setting, data.n_clusters, number)
        with warnings.catch_warnings():
            # Clusters that stayed empty are counted below.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(sample)
        labels = model.labels_
        found.active.update(model.active_cut_points_.tolist())
    found.seconds.append(time.perf_counter() - start)
    found.add(sample, classes, labels, reference)


def _peer_parameters(setting: Setting, data: DataSet, seed: int) -> dict[str, Any]:
    return {
        "n_clusters": data.n_clusters,
        "gemini": "wasserstein_ova",
        "n_cuts": 1,
        "temperature": 0.1,
        "solver": "adam",
        "learning_rate": 1e-3,
        "batch_size": setting.batch_size,
        "max_iter": setting.max_iter,
        "random_state": seed,
    }


# ---- pages ------------------------------------------------------------------------------------


def _pair(figures: tuple[float, float] | None) -> str:
    return "" if figures is None else f"{figures[0]:.2f} ({figures[1]:.2f})"


def _measured(found: list[float]) -> Cell:
    return mean(found) if found else ""


def _n_runs(found: Figures, methods: list[str]) -> str:
    return ", ".join(str(len(found[method].ari)) for method in methods)


def ari_table(measured: dict[str, Figures], methods: list[str]) -> list[Any]:
    """Set ARI beside tables 3 and 6."""
    header = ["data", "runs", "table 3 (PyTorch)", "table 6 (NumPy)", *methods]
    rows: list[list[Cell]] = []
    for name, found in measured.items():
        setting = SETTINGS[name]
        mean, deviation = setting.best
        row: list[Cell] = [
            name,
            _n_runs(found, methods),
            _pair(setting.pytorch),
            _pair(setting.numpy),
        ]
        row += [_measured(found[method].ari) for method in methods]
        if OURS in methods:
            row.append(verdict(float(np.mean(found[OURS].ari)) >= mean - deviation))
        rows.append(row)
    if OURS in methods:
        header.append(f"{OURS} >= the better of both less one deviation")
    return ["**Tables 3 and 6: ARI, greater is better**", table(header, rows)]


def ratio_table(measured: dict[str, Figures], methods: list[str]) -> list[Any]:
    """Set costs beside table 4."""
    header = ["data", "table 4", *methods]
    if OURS in methods:
        header.append(f"{OURS} <= table 4 plus one deviation")
    rows = []
    for name, found in measured.items():
        printed = SETTINGS[name].ratio
        row: list[Cell] = [
            name,
            _pair(printed),
            *(_measured(found[method].ratio) for method in methods),
        ]
        if OURS in methods and printed is not None:
            row.append(verdict(float(np.mean(found[OURS].ratio)) <= sum(printed)))
        rows.append(row)
    title = "**Table 4: k-means cost of the clusters over that of k-means, lower is better**"
    return [title, table(header, rows)]


def run_table(measured: dict[str, Figures], methods: list[str]) -> list[Any]:
    """How long the fits took, and how many clusters have rows."""
    header = ["data", "k"]
    for method in methods:
        header += [f"{method}: seconds a fit", "clusters with rows"]
    rows = []
    for name, found in measured.items():
        row: list[Cell] = [
            name,
            str(next(data.n_clusters for data in DATA_SETS if data.name == name)),
        ]
        for method in methods:
            row += [
                runs(found[method].seconds) if found[method].seconds else "",
                mean(found[method].n_clusters, format=".1f") if found[method].n_clusters else "",
            ]
        rows.append(row)
    return ["**The fits**: seconds, means of clusters", table(header, rows)]


def column_table(
    measured: dict[str, Figures], widths: dict[str, int], methods: list[str]
) -> list[Any]:
    """How many columns have a cut inside their values."""
    methods = [method for method in methods if method in MODELS]
    rows = []
    for name, found in measured.items():
        active = [f"{found[m].active.total() / len(found[m].ari):.1f}" for m in methods]
        rows.append([name, str(widths[name]), *active])
    title = "**Columns with active cuts**, means; the rules are a table of their combinations"
    return [title, table(["data", "columns", *methods], rows)]


def votes_table(folder: Path, data: DataSet, found: Figures) -> str:
    """How often each vote has a cut inside its values (section 5.3)."""
    names = pl.read_parquet(folder / str(data.file)).drop("label").columns
    sections = [
        "**Active cut points of the votes** (section 5.3). Paper: "
        + ", ".join(f"{name} {share:.0%}" for name, share in MOST_ACTIVE.items())
        + "; average ARI 0.53."
    ]
    for method in filter(found.__contains__, MODELS):
        runs = len(found[method].ari)
        often = found[method].active.most_common()
        said = ", ".join(f"{names[feature]} {times / runs:.0%}" for feature, times in often)
        active = found[method].active
        ranks = [
            1 + sum(times > active[names.index(name)] for times in active.values())
            for name in MOST_ACTIVE
        ]
        sections.append(
            f"{method}: {said}; average ARI {np.mean(found[method].ari):.2f}. The paper's three "
            f"are number {', '.join(map(str, ranks))}; first: {verdict(max(ranks) <= 3)}."
        )
    return "\n\n".join(sections)


NOTES = """\
Where the figures differ:

- Table 6 seems to have the columns of Votes (0.02) and Vowel (0.30) swapped: its text calls the
  NumPy figures slightly below PyTorch's (0.56, 0.07), and with the paper's hyper-parameters ours
  are far above 0.02 on the votes and near 0 on vowel, whatever the start. Swapped, the better
  figures are 0.56 (0.04) and 0.07 (0.05).
- The paper does not say how weights start, and its two codes may differ there: from small weights
  wine is near PyTorch's 0.54, from large ones near NumPy's 0.17.
- A Wasserstein objective with Euclidean distances is not the k-means cost: on cancer the clusters
  of k-means have a lower objective (2.34) than those found (2.38). Its cost there is 1.0103 times
  that of k-means; the printed 1.00 and 0.01, which are rounded, allow 1.01.
- gemclus 1.1.1, the NumPy code of the paper's authors as it is now, with the paper's
  hyper-parameters (`--peer`): 0.02 (0.03) on vowel over 21 runs, where table 6 has 0.02 (0.02)
  for the votes; 0.40 on the votes in one run (seven minutes).
- Nothing reaches 0.15 on vowel that is near k-means, whose own ARI there is 0.144: mmd2_ova, which
  is the objective of k-means but for constants, comes to 0.141.
- Votes: at a learning rate of 0.001 a cut moves by half a standard deviation at most, so that most
  of what is active is so from its random start. Of the paper's three features two are first then,
  the third shares the fourth place. With our defaults and random cuts the three are among the
  first four, beside superfund_right_to_sue.
- With prune=0.01 and section 5.3's data the paper's two most frequent features are first and
  second, about as often as it says and at its ARI. Its third, mx_missile, shares its place with
  crime, which tells the clusters apart as well: with the objective of Kauri, whose tree that
  section compares with (mmd2_ova), and 20 starts mx_missile has 80 % and crime 73 % in the 30 runs
  below, but 53 % and 80 % in 30 more (seeds 30 to 59): 67 % and 77 % of all. El Salvador and
  contras have 95 % and 93 % of these 60.
- One setting of ours, mmd2_ova, holds every figure of tables 3, 4 and 6 but vowel's 0.15.
- Seconds are those of the machine as it was; where it was busy they are several times too long."""


def main() -> None:
    parser = common.parser(__doc__, data=True, only="only the data sets whose name holds this")
    parser.add_argument("--runs", type=int, default=30, help="subsamples of every data set")
    parser.add_argument("--skip", nargs="+", default=[], help="data sets to leave out")
    parser.add_argument("--keep", type=Path, help="file of what is measured, JSON")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=[name for name in MODELS if name not in OF_VOTES],
        default=[PAPER, LARGE, OURS, SQUARED, PRUNED],
    )
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no fit after these")
    parser.add_argument("--peer", action="store_true", help="fit gemclus' Douglas as well: slow")
    arguments = common.parse(parser)
    common.one_thread()

    ends = time.monotonic() + 60 * arguments.minutes
    missing = common.Missing()
    methods = list(arguments.methods)
    peer = peer_or_none(GemclusPeer, "gemclus", missing.add) if arguments.peer else None
    if peer is not None:
        methods.append(GEMCLUS)
    measured: dict[str, Figures] = {}
    widths: dict[str, int] = {}
    votes = ""
    for data in DATA_SETS:
        if data.name not in SETTINGS or arguments.only not in data.name:
            continue
        if data.name in arguments.skip:
            missing.add(f"{data.name}: left out by --skip.")
            continue
        if data.file and missing.unless_there(data.name, arguments.data / data.file):
            continue
        kept = read_kept(arguments.keep).get(data.name, {})
        asked = [*methods, *OF_VOTES] if data.name == VOTES else methods
        X, y = data.load(arguments.data)
        print(f"... {data.name}: {len(X):,} x {X.shape[1]}", file=sys.stderr, flush=True)
        for number, method in itertools.product(range(arguments.runs), asked):
            found = kept.setdefault(method, Found())
            if len(found.ari) == number and time.monotonic() < ends:
                run(data, X, y, number, method, found, peer)
                keep(arguments.keep, data.name, {method: found})
        for method in asked:
            if len(kept[method].ari) < arguments.runs:
                missing.add(
                    f"{data.name}, {method}: {len(kept[method].ari)} of {arguments.runs} runs, the "
                    "rest for lack of time."
                )
        if not all(kept[method].ari for method in asked):
            continue
        measured[data.name], widths[data.name] = kept, X.shape[1]
        if data.name == VOTES:
            votes = votes_table(arguments.data, data, kept)
    sections: list[Any] = [
        "Mean (standard deviation) over subsamples of 80 % of the rows. "
        f"{PAPER}: its hyper-parameters (appendix E), fitted by treeclust_rs from random cuts and "
        f"weights, of standard deviation 0.1 ({LARGE}: 1); {OURS}: treeclust_rs with its defaults; "
        f"{SQUARED}: with this objective; {PRUNED}: without the columns that hardly matter to it. "
        "Vowel is the class hid against the rest, k = 2, as the paper's figures of k-means show.",
        ari_table(measured, methods),
        ratio_table(measured, methods),
        NOTES,
        column_table(measured, widths, methods),
        votes,
        run_table(measured, methods),
    ]
    commits = Counter(
        commit
        for figures in measured.values()
        for found in figures.values()
        for commit in (found.commits or ["unknown"] * len(found.ari))
    )
    counts = (f"{commit} ({times})" for commit, times in commits.items())
    sections.append(f"Fits by the commit that they were made at: {', '.join(counts)}.")
    if any(commit.endswith("-dirty") for commit in commits) and not arguments.allow_dirty:
        parser.error(f"{arguments.keep} holds fits of uncommitted changes: leave it out")
    if peer is not None:
        sections.append(f"gemclus, with the paper's hyper-parameters: {peer.how}; one thread.")
        peer.close()
    common.publish("Douglas: the paper's tables", sections, missing, arguments)


if __name__ == "__main__":
    main()
