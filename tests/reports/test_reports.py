"""The report: its figures against their definitions, its names, its page in Chromium."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from browser import chromium
from every_estimator import ESTIMATORS
from treeclust_rs.datasets import make_customers
from treeclust_rs.export.contrasts import MAX_CONTRASTS
from treeclust_rs.export.html.rows import PageRows
from treeclust_rs.reports.costs import changes_of, quality_of
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
    with pytest.raises(TypeError, match="previous must be a fitted model, not str"):
        tc.report(model, frame, path, previous="old.json")
    with pytest.raises(ValueError, match="exemplars must be 0 or more"):
        tc.report(model, frame, path, exemplars=-1)
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
