"""The report: its figures against their definitions, its names, its page in Chromium."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

import treeclust_rs as tc
from browser import chromium
from every_estimator import ESTIMATORS
from treeclust_rs.datasets import make_customers
from treeclust_rs.export.contrasts import MAX_CONTRASTS
from treeclust_rs.export.html.rows import PageRows
from treeclust_rs.reports.costs import changes_of, compared_with, quality_of
from treeclust_rs.reports.names import cluster_names, contrast_words
from treeclust_rs.reports.rows import ReportRows

NAUGHTY = (
    '</style><script>window.hit=1</script><img src=x onerror="window.hit=1">\u202e{{cards}}\'&'
)


class Page(HTMLParser):
    """The tags of a page, which must be closed in order, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def count(self, css_class):
        return sum(css_class in (attrs.get("class") or "").split() for _, attrs in self.tags)


@pytest.fixture(scope="module")
def customers():
    frame = make_customers(400).drop("customer_id")
    model = tc.BestTree(4, max_leaves=6, effort="quick", scale="standard", random_state=0).fit(
        frame
    )
    return model, frame


def written(tmp_path, model, X, **options):
    path = tmp_path / "report.html"
    tc.report(model, X, path, **options)
    return Page(path.read_text(encoding="utf-8"))


def blobs(k=3, d=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, d)) + np.repeat(5.0 * np.arange(k), 60 // k)[:, np.newaxis]


def test_the_page_has_all_parts(tmp_path, customers):
    model, frame = customers
    page = written(tmp_path, model, frame, title="Our customers")
    assert page.count("card") == 4
    assert page.count("leaf") == model.n_leaves_
    assert page.count("curve") == 1
    for text in (
        "Our customers", "400 rows of 11 columns are in 4 clusters", "at most 6 leaves",
        f"{model.cost_ratio_:.4g} times", "standard deviations", f"treeclust_rs {tc.__version__}",
        "effort", "Most typical rows",
    ):  # fmt: skip
        assert text in page.text, text
    sizes = [
        int(n.replace(",", "")) for n in re.findall(r"Cluster \d+ · ([\d,]+) rows?", page.text)
    ]
    assert sizes == np.bincount(model.predict(frame)).tolist()
    assert "Most typical rows" not in written(tmp_path, model, frame, exemplars=0).text


def test_names_have_the_telling_conditions():
    # Young people, and of the others those who earn little and those who earn much.
    cells = [[20.0, 1.0], [25.0, 9.0], [50.0, 1.0], [60.0, 1.0], [50.0, 9.0], [60.0, 9.0]]
    frame = pl.DataFrame(cells * 4, schema=["age", "income"], orient="row")
    model = tc.ExKMC(reference=[0, 0, 1, 1, 2, 2] * 4, base_tree=None).fit(frame)
    assert model.n_leaves_ == 3
    names = cluster_names(ReportRows(model, frame))
    words = [re.sub(r" [\d.]+", "", name) for name in names]
    assert words[0] == "age up to"
    assert sorted(words[1].split(", ")) == ["age above", "income up to"]
    assert sorted(words[2].split(", ")) == ["age above", "income above"]
    assert 25 < float(names[0].split()[-1]) < 50
    one = tc.ExKMC(reference=[0] * 24).fit(frame)
    assert cluster_names(ReportRows(one, frame)) == ["all rows"]


def test_names_speak_of_levels_flags_times_and_gaps(customers):
    model, frame = customers
    names = cluster_names(ReportRows(model, frame))
    assert len(set(names)) == len(names)
    assert not any("{" in name or "<=" in name for name in names)
    flags = pl.DataFrame({"flag": [True, False, None] * 8, "text": ["a", "b", "c"] * 8})
    model = tc.ExKMC(reference=[0, 1, 2] * 8, max_leaves=3).fit(flags)
    names = cluster_names(ReportRows(model, flags))
    assert set(names) <= {
        "flag", "not flag", "flag missing", "text a", "text b", "text c", "text not a",
    }  # fmt: skip


def test_only_leaves_that_are_a_whole_cluster_have_its_name_in_the_tree(tmp_path):
    X = pl.DataFrame({"age": [float(v) for v in range(60)]})
    labels = np.repeat([0, 1, 0], 20)  # a name by age is untrue of one of the two leaves of 0
    text = written(tmp_path, tc.KMeansTree(reference=labels, max_leaves=3).fit(X), X).text
    assert "Cluster 1: age 19.5 to 39.5" in text
    assert text.count("Cluster 0: one of 2 leaves") == 2


def test_typical_rows_are_those_nearest_to_the_mean():
    X = blobs()
    X[:, 1] *= 100
    model = tc.ExKMC(3, max_leaves=4, scale="standard", random_state=0).fit(X)
    rows, labels = ReportRows(model, X), model.predict(X)
    for code, found in enumerate(rows.exemplars(4)):
        own = np.flatnonzero(labels == model.classes_[code])
        far = np.square((X[own] - X[own].mean(axis=0)) / model.scale_).sum(axis=1)
        assert found == own[np.argsort(far, kind="stable")[:4]].tolist()


def test_distances_of_levels_are_those_of_the_fit(customers):
    _, frame = customers
    frame = frame.drop_nulls()
    model = tc.ExKMC(3, scale="standard", random_state=0).fit(frame)
    rows = ReportRows(model, frame)
    assert rows._distances()[0].sum() == pytest.approx(model.inertia_)


def test_quality_is_that_of_the_model(customers):
    model, frame = customers
    quality = quality_of(model, ReportRows(model, frame))
    assert quality.ratio == pytest.approx(model.cost_ratio_)
    assert quality.leaves.tolist() == model.cost_path_["n_leaves"].to_list()
    X = blobs()
    own = tc.Kauri(3, random_state=0).fit(X)
    quality = quality_of(own, ReportRows(own, X))
    assert quality.ratio == pytest.approx(1.0)
    assert not quality.of_fit


REFERENCES = {
    "none": (lambda X: None, "free clusters (k-means), which need no rules"),
    "labels": (lambda X: ["low", "high"] * (len(X) // 2), "the given labels"),
    "centers": (lambda X: X[[0, -1]], "the given centers"),
    "frame": (lambda X: pl.DataFrame(X[[0, -1]]), "the given centers"),
    "estimator": (lambda X: GaussianMixture(2, random_state=0), "the reference (GaussianMixture)"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_costs_are_compared_with_what_the_model_explains(tmp_path, name):
    X = np.random.default_rng(0).normal(size=(60, 3))
    make, words = REFERENCES[name]
    reference = make(X)
    k = 2 if reference is None else None
    model = tc.KMeansTree(k, reference=reference, max_leaves=4, random_state=0).fit(X)
    page = written(tmp_path, model, X)
    assert f"that of {words}" in page.text
    assert ("free clusters" in page.text) == (name == "none")
    plain = words.partition(" (k-means)")[0]
    charts = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg" and "role" in attrs]
    assert len(charts) == 1
    assert charts[0].startswith(f"cost, over that of {plain}, by number of leaves")
    assert re.search(rf"of the rows are where {re.escape(plain)} puts? them\.", page.text)
    model.save(tmp_path / "model.json")
    text = written(tmp_path, tc.load(tmp_path / "model.json"), X).text
    assert "the reference, which the model file does not hold" in text
    assert "free clusters" not in text
    assert re.search(r"reference\s*not in the model file", text)
    again = tc.load(tmp_path / "model.json")
    assert again.unsaved_params == (frozenset() if reference is None else {"reference"})
    again.set_params(reference=None).fit(X)
    assert compared_with(again).name == "free clusters"


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (tc.ExKMC(3, criterion="kmedians"), "k-medians"),
        (tc.KernelExKMC(3, kernel="rbf"), "kernel k-means"),
        (tc.Kauri(3), "k-means"),
    ],
)
def test_free_clusters_are_those_of_the_models_own_cost(model, method):
    X = blobs()
    quality = quality_of(model.set_params(random_state=0).fit(X), ReportRows(model, X))
    assert quality.beside.note == f" ({method}), which need no rules"


def test_figures_of_the_fit_say_so_beside_other_rows(tmp_path):
    X = blobs()
    model = tc.ExKMC(3, max_leaves=5, random_state=0).fit(X)
    assert ReportRows(model, X).are_of_fit
    text = written(tmp_path, model, X).text
    assert "rows of the fit" not in text
    assert "other rows" not in text
    for rows in (X[:30], X[np.arange(60) % 50]):
        text = written(tmp_path, model, rows).text
        assert "fitted to 60 rows, but this report is about other rows" in text
        assert "This is about the rows of the fit, not about those of this report." in text
    kauri = tc.Kauri(3, random_state=0).fit(X)
    assert "on the rows of this report" not in written(tmp_path, kauri, X).text
    text = written(tmp_path, kauri, X[:30]).text
    assert "on the rows of this report." in text
    assert "This is about the rows of the fit" not in text


def test_rows_that_did_not_count_are_told(tmp_path):
    X = blobs()
    labels = np.repeat([0, 1, -1], 20)
    text = written(tmp_path, tc.KMeansTree(reference=labels).fit(X), X).text
    assert "20 rows did not count in the fit" in text


def test_rules_come_by_the_rows_of_the_report(tmp_path):
    X = np.arange(60.0)[:, np.newaxis]
    model = tc.KMeansTree(reference=np.repeat([0, 1, 0], [30, 20, 10]), max_leaves=3).fit(X)
    assert ReportRows(model, X).rules(4)[0] == (["x0 <= 29.5", "x0 > 49.5"], 2)
    assert ReportRows(model, X[40:]).rules(1)[0] == (["x0 > 49.5"], 2)


def test_weights_are_not_called_rows(tmp_path):
    X = blobs()
    X[::7] = X[::-7]
    weight = np.random.default_rng(0).uniform(0.5, 3.0, 60)
    model = tc.ExKMC(3, max_leaves=3, random_state=0).fit(X, sample_weight=weight)
    text = written(tmp_path, model, X).text
    assert "The rows of the fit had weights" in text
    agreement = quality_of(model, ReportRows(model, X)).agreement
    moved = model.labels_ != model.reference_labels_
    assert agreement == pytest.approx(1 - weight[moved].sum() / weight.sum())
    assert "of the weight is where free clusters put it." in text
    assert "rows are where" not in text
    model.to_html(tmp_path / "tree.html")
    page = (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert "Cost per unit of weight" in page
    assert "Cost per row" not in page
    assert "Mistakes, by weight" in page
    assert "the weight of rows whose reference cluster" in str(model.tree_)
    equal = tc.ExKMC(3, max_leaves=3, random_state=0).fit(X)
    text = written(tmp_path, equal, X).text
    assert "had weights" not in text
    assert "of the weight" not in text
    equal.to_html(tmp_path / "tree.html")
    assert "by weight" not in (tmp_path / "tree.html").read_text(encoding="utf-8")


def test_a_model_of_one_leaf_says_what_there_is(tmp_path, customers):
    frame = customers[1]
    model = tc.ExKMC(1, scale="standard", random_state=0).fit(frame)
    page = written(tmp_path, model, frame)
    assert "400 rows of 11 columns are in 1 cluster." in page.text
    assert "There are no rules: all rows are in one cluster." in page.text
    assert "nothing to compare" in page.text
    assert "What it is like" in page.text
    assert f"age{frame['age'].mean():.3g}" in page.text
    for words in ("The tree", "always", "0 % lower", "people can read", "Rule", "sets it apart"):
        assert words not in page.text
    plan, count = frame["plan"].value_counts(sort=True).row(0)
    rows = ReportRows(model, frame)
    place = frame.columns.index("plan")
    known = frame["plan"].drop_nulls().len()
    assert rows.usual(0, place) == f"{plan} ({100 * count / known:.1f} %)"
    shown = rows.shown_features(8)
    assert len(shown) == 8
    assert all(frame.columns[feature] in page.text for feature in shown)


def test_a_cluster_without_rows_has_no_name_of_others(tmp_path):
    X = blobs()
    model = tc.ExKMC(3, random_state=0).fit(X)
    names = cluster_names(ReportRows(model, X[:1]))
    assert sorted(names)[:2] == ["no rows", "no rows"]
    text = written(tmp_path, model, X[:1]).text
    assert "1 row of 3 columns is in 1 of 3 clusters" in text
    one = tc.KMeansTree(3, random_state=0).fit(X).truncate(1)
    text = written(tmp_path, one, X).text
    assert "60 rows of 3 columns are in 1 of 3 clusters" in text
    assert text.count("No rule leads here") == 2


def test_sums_are_rounded_and_durations_too(tmp_path):
    X = blobs()
    model = tc.ObliqueTree(3, random_state=0).fit(X)
    page = written(tmp_path, model, X)
    assert "to three digits" in page.text
    for rule, _ in ReportRows(model, X).rules(4):
        assert all(len(number.replace(".", "").lstrip("0")) <= 3 or "." not in number
                   for text in rule for number in re.findall(r"[\d.]+", text))  # fmt: skip
    hours = pl.Series(np.repeat([10.0, 50.0, 90.0], 20) * 3600e6 + np.arange(60) * 12345678.0)
    frame = pl.DataFrame({"open": hours.cast(pl.Int64).cast(pl.Duration("us"))})
    rows = ReportRows(tc.KMeansTree(3, random_state=0).fit(frame), frame)
    assert sorted(c.here for own in rows.contrasts for c in own) == ["10h 2m", "3d 18h 10m"]


def test_row_numbers_say_where_they_count_from(tmp_path):
    X = blobs()
    text = written(tmp_path, tc.ExKMC(3, random_state=0).fit(X), X).text
    assert text.count("Most typical rows, numbered from 0") == 3


def test_what_changed(tmp_path, customers):
    model, frame = customers
    rows = ReportRows(model, frame)
    same = changes_of(rows, model.rename_clusters({0: "loyal"}), frame)
    assert same.stayed == 1
    assert [str(move.old) for move in same.moves] == ["loyal", "1", "2", "3"]
    assert same.gone == []
    assert same.costs[0] == pytest.approx(same.costs[1])
    older = tc.ExKMC(5, scale="standard", random_state=1).fit(frame)
    changes = changes_of(rows, older, frame)
    assert changes.stayed == pytest.approx(
        tc.metrics.agreement(model.predict(frame), older.predict(frame))
    )
    assert len(changes.gone) == 1
    for move in changes.moves:
        assert sum(n for _, n in move.sources) == rows.sizes[move.code]
    page = written(tmp_path, model, frame, previous=older)
    assert "What changed against the older model" in page.text
    assert f"Without a successor: Cluster {changes.gone[0]}." in page.text


@pytest.mark.parametrize("name", [n for n, case in ESTIMATORS.items() if case.has_rules])
@pytest.mark.filterwarnings("ignore")
def test_every_model_has_a_report(tmp_path, name):
    X = blobs()
    model = ESTIMATORS[name].make().fit(X)
    page = written(tmp_path, model, X)
    assert page.count("card") == len(model.classes_)
    path = tmp_path / "model.json"
    model.save(path)
    assert written(tmp_path, tc.load(path), X[:20]).count("card") == len(model.classes_)


def test_wrong_arguments_are_refused(tmp_path, customers):
    model, frame = customers
    path = tmp_path / "report.html"
    with pytest.raises(TypeError, match="not KernelKMeans"):
        tc.report(tc.KernelKMeans(2).fit(blobs()), blobs(), path)
    with pytest.raises(TypeError, match="previous must be a fitted model, not 'old"):
        tc.report(model, frame, path, previous="old.json")
    with pytest.raises(ValueError, match="exemplars must be 0 or more"):
        tc.report(model, frame, path, exemplars=-1)
    with pytest.raises(TypeError, match="not the class ExKMC"):
        tc.report(tc.ExKMC, frame, path)
    with pytest.raises(TypeError, match="previous must be a fitted model, not the class KMeans"):
        tc.report(model, frame, path, previous=KMeans)
    with pytest.raises(NotFittedError, match="not fitted"):
        tc.report(model, frame, path, previous=tc.ExKMC(3))
    for exemplars in (2.5, "3", True, None):
        with pytest.raises(TypeError, match="exemplars must be an int of 0 or more") as error:
            tc.report(model, frame, path, exemplars=exemplars)
        assert repr(exemplars) in str(error.value)
    with pytest.raises(ValueError, match="age"):
        tc.report(model, frame.drop("age"), path)
    assert not path.exists()


def naughty_model():
    frame = pl.DataFrame(
        {NAUGHTY: [NAUGHTY, "b", "c"] * 8, "x" * 300: np.repeat([0.0, 1e150, -5.0], 8)}
    )
    model = tc.ExKMC(reference=[0, 1, 2] * 8, max_leaves=5).fit(frame)
    return model.rename_clusters({0: NAUGHTY}), frame


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_names_and_values_are_text(tmp_path):
    model, frame = naughty_model()
    page = written(tmp_path, model, frame, title=NAUGHTY, previous=model)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert "<script>window.hit=1</script>" in page.text
    assert "\u202e" not in page.text


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1100])
def test_pages_fit_the_screen(tmp_path, customers, scheme, width):
    X = np.random.default_rng(0).normal(size=(300, 4))
    many = tc.ExKMC(6, max_leaves=60, random_state=0).fit(X)
    with chromium() as browser:
        for model, rows in (customers, naughty_model(), (many, X)):
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme
            )
            page, errors = context.new_page(), []
            page.on("console", lambda message, errors=errors: errors.append(message.text))
            written(tmp_path, model, rows, previous=model)
            page.goto((tmp_path / "report.html").as_uri())
            assert page.evaluate("window.hit") is None
            assert errors == []
            assert page.locator(".card").count() == len(model.classes_)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", shade))) < 200) == (scheme == "dark")
            page.emulate_media(media="print")
            shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert shade == "rgb(255, 255, 255)"
            context.close()


def test_a_deep_tree_fits_a_screen_of_1000_pixels(tmp_path):
    frame = make_customers(400).drop("customer_id")
    limits = {"max_leaves": 9, "max_depth": 4, "effort": "quick"}
    model = tc.BestTree(6, **limits, scale="standard", random_state=0).fit(frame)
    assert model.tree_.max_depth == 4
    written(tmp_path, model, frame)
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        page.goto((tmp_path / "report.html").as_uri())
        wide, room = page.evaluate(
            "[document.querySelector('.tree').scrollWidth, "
            "document.querySelector('.tree').clientWidth]"
        )
        assert wide <= room
        heights = page.evaluate(
            "[...document.querySelectorAll('.answer')].map((e) => e.getBoundingClientRect().height)"
        )
        assert len(heights) == 2 * (model.n_leaves_ - 1)
        assert max(heights) < 24  # one line


def test_report_page_and_profile_agree_on_what_sets_clusters_apart(customers):
    model, frame = customers
    report = ReportRows(model, frame)
    page = PageRows(model.tree_, frame, model.scale_).contrasts()
    largest = (
        model.profile(frame)
        .table.group_by("cluster", "column", maintain_order=True)
        .agg(pl.col("contrast").abs().max())
        .filter(pl.col("contrast") >= 0.1)
        .sort("contrast", descending=True, maintain_order=True)
    )
    for code, label in enumerate(model.classes_.tolist()):
        strongest = largest.filter(pl.col("cluster") == label)["column"].to_list()
        assert [report.names[c.feature] for c in report.contrasts[code]] == strongest
        # The page also says which cells are missing.
        said = [words for words, *_ in page[code] if not words.endswith(" is missing")]
        assert len(page[code]) == min(len(strongest), MAX_CONTRASTS)
        for words, column in zip(said, strongest, strict=False):
            assert words.startswith(column), (words, column)


def test_a_level_true_is_a_level_and_names_that_print_alike_stay_apart():
    levels = {"t": ["true", "false", "it"] * 4, "a\nb": [1.0, 0, 0] * 4, "a\\nb": [0.0, 0, 1] * 4}
    frame = pl.DataFrame(levels)
    rows = ReportRows(tc.ExKMC(reference=[0, 1, 2] * 4).fit(frame), frame)
    words = [
        contrast_words(rows.names[c.feature], c, rows.column(c.feature))
        for of_cluster in rows.contrasts
        for c in of_cluster
    ]
    assert "often t true" in words and "often t" not in words
    assert {c.feature for of_cluster in rows.contrasts for c in of_cluster} == {0, 1, 2}
