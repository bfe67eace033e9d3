"""Profiles: figures against their definitions, on mixed tables with weights and gaps."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from every_estimator import ESTIMATORS
from treeclust_rs.datasets import make_customers


@pytest.fixture(scope="module")
def customers():
    frame = make_customers(400).drop("customer_id")
    model = tc.BestTree(3, effort="quick", scale="standard", random_state=0).fit(frame)
    return model, frame


def figures(table, cluster, column, level=None):
    found = table.filter(pl.col("cluster") == cluster, pl.col("column") == column)
    found = found.filter(pl.col("level").is_null() if level is None else pl.col("level") == level)
    assert found.height == 1
    return found.row(0, named=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_figures_are_what_they_are_called(customers, weighted):
    model, frame = customers
    weight = np.random.default_rng(0).integers(0, 4, frame.height).astype(float)
    weight = weight if weighted else np.ones(frame.height)
    labels = model.predict(frame)
    table = model.profile(frame, weight if weighted else None).table
    for cluster in model.classes_.tolist():
        own = labels == cluster
        for name in ("age", "income"):
            cells = frame[name].cast(float).fill_null(np.nan).to_numpy()
            seen = ~np.isnan(cells)
            got = figures(table, cluster, name)
            mean, rest = (
                np.average(cells[part & seen], weights=weight[part & seen]) for part in (own, ~own)
            )
            assert got["rows"] == own.sum()
            assert got["mean"] == pytest.approx(mean)
            assert got["rest"] == pytest.approx(rest)
            unit = model.scale_[frame.columns.index(name)]
            assert got["contrast"] == pytest.approx((mean - rest) / unit)
            assert got["missing"] == pytest.approx(
                weight[own & ~seen].sum() / weight[own].sum(), abs=1e-12
            )
            repeated = np.sort(np.repeat(cells[own & seen], weight[own & seen].astype(int)))
            assert got["median"] == repeated[(len(repeated) - 1) // 2]
        region = frame["region"].to_numpy()
        seen = frame["region"].is_not_null().to_numpy()
        shares = [
            weight[part & (region == "north")].sum() / weight[part & seen].sum()
            for part in (own, ~own)
        ]
        got = figures(table, cluster, "region", "north")
        unit = model.scale_[frame.columns.index("region")]
        assert got["share"] == pytest.approx(shares[0])
        assert got["contrast"] == pytest.approx((shares[0] - shares[1]) / unit / np.sqrt(2))
        assert figures(table, cluster, "newsletter", "true")["share"] is not None
    assert "false" not in table["level"].to_list()


def test_contrasts_are_differences_of_centers(customers):
    model, frame = customers
    # With two clusters the rest is the other center, in the coordinates of cluster_centers_.
    two = tc.BestTree(2, max_leaves=2, scale="standard", random_state=0).fit(frame)
    table = two.profile(frame).table.filter(pl.col("cluster") == two.classes_[0])
    names = two.encoded_names_.tolist()
    for line in table.iter_rows(named=True):
        name = line["column"] if line["level"] is None else f"{line['column']}={line['level']}"
        first, second = two.cluster_centers_[:, names.index(name)]
        unit = two.scale_[frame.columns.index(line["column"])]
        unit *= 1.0 if line["level"] is None else np.sqrt(2)
        assert line["contrast"] == pytest.approx((first - second) / unit, rel=1e-6, abs=1e-9)
    assert model.profile(frame, scale="robust").table["contrast"].drop_nulls().is_finite().all()


def test_times_are_written_as_times_and_gaps_are_null():
    frame = pl.DataFrame(
        {
            "day": [date(2020, 1, 1), date(2020, 1, 3), date(2024, 5, 5)] * 4,
            "at": [datetime(2020, 1, 1, 10, 30, 59), None, None] * 4,
            "x": [1.0, 2.0, 50.0] * 4,
        }
    )
    units = {"day": 86_400e6, "at": 1.0, "x": 1.0}
    model = tc.ExKMC(reference=[0, 0, 1] * 4, scale=units).fit(frame)
    table = model.profile(frame).table
    assert figures(table, 1, "day")["typical"] == "2024-05-05"
    assert figures(table, 0, "at")["typical"] == "2020-01-01 10:30"
    assert figures(table, 0, "at")["missing"] == 0.5
    gap = figures(table, 1, "at")
    assert gap["missing"] == 1.0
    assert [gap[name] for name in ("mean", "median", "contrast", "typical")] == [None] * 4
    one = tc.ExKMC(reference=[0] * 12, scale=units).fit(frame).profile(frame).table
    assert one["rest"].null_count() == one.height


@pytest.mark.parametrize("name", [n for n, case in ESTIMATORS.items() if case.has_rules])
@pytest.mark.filterwarnings("ignore")
def test_every_model_has_one(name):
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    model = ESTIMATORS[name].make().fit(X)
    table = model.profile(X).table
    assert table.height == 3 * len(model.classes_)
    labels, counts = np.unique(model.predict(X), return_counts=True)
    rows = dict(table.filter(column="x0").select("cluster", "rows").rows())
    assert {label: n for label, n in rows.items() if n} == dict(
        zip(labels.tolist(), counts.tolist(), strict=True)
    )


def test_texts_hold_the_lines_that_differ_most(customers):
    model, frame = customers
    profile = model.profile(frame)
    wide = profile.wide()
    assert wide.columns[0] == "column"
    assert wide.width == 1 + len(model.classes_)
    text = profile.wide(5)
    assert text.height == 5
    contrast = profile.table.group_by("column", "level").agg(pl.col("contrast").abs().max())
    assert contrast["contrast"].max() in profile.table["contrast"].abs().to_list()
    assert "age" in repr(profile)
    assert "<table" in profile._repr_html_()


def test_the_heat_map_has_a_line_for_each_column_and_level(pyplot, customers):
    model, frame = customers
    ax = model.profile(frame).plot(max_lines=6)
    assert len(ax.get_yticklabels()) == 6
    assert [label.get_text().split("\n")[0] for label in ax.get_xticklabels()] == [
        str(label) for label in model.classes_
    ]
    assert any("6 of" in text.get_text() for text in ax.texts)
    (image,) = ax.images
    assert image.get_array().shape == (6, len(model.classes_))


def test_names_that_look_alike_stay_apart():
    frame = pl.DataFrame(
        {"a": ["b", "true"] * 6, "a = b": [0.0, 1.0] * 6, "flag": [True, False] * 6}
    )
    model = tc.ExKMC(reference=["column", "line"] * 6).fit(frame)
    wide = model.profile(frame).wide()
    assert wide.columns == ["column or level", "column", "line"]
    assert wide[:, 0].to_list() == ["a = b", "a = true", "a = b", "flag"]
    assert wide["column"].to_list()[0].startswith("100 % (+")
    assert wide.height == 4


def test_many_clusters_are_named_upright_and_of_very_many_some(pyplot):
    for k, first in ((40, ["0, 1", "1, 1", "2, 1"]), (130, ["0", "3", "6"])):
        X = np.arange(float(k))[:, np.newaxis]
        labels = tc.ExKMC(reference=np.arange(k)).fit(X).profile(X).plot().get_xticklabels()
        assert [label.get_text() for label in labels][:3] == first
        assert {label.get_rotation() for label in labels} == {90}


def test_long_names_in_the_heat_map_end_with_the_number_of_their_column(pyplot):
    long = "the same long beginning of a name {} and its end"
    cells = {long.format(i): [0.0, i - 3.0] * 10 for i in range(6)}
    levels = ["a level with a long text " + end for end in ("1, of it", "2, of it")] * 10
    frame = pl.DataFrame(cells | {"a town with a name that is not short at all": levels})
    model = tc.ExKMC(reference=["one of the clusters", "another one"] * 10).fit(frame)
    ax = model.profile(frame).plot(max_lines=7)
    lines = [label.get_text() for label in ax.get_yticklabels()]
    # Columns 2, 3 and 4 differ by -1, 0 and 1, the others by more.
    assert [line[-3:] for line in lines[:5]] == ["[0]", "[1]", "[2]", "[4]", "[5]"]
    assert lines[5:] == [
        "a town with a name th…ort at all = a level wi…of it [0]",
        "a town with a name th…ort at all = a level wi…of it [1]",
    ]
    ax.figure.canvas.draw()
    titles = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert not titles[0].overlaps(titles[1])
    figure = ax.figure.bbox
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        extent = label.get_window_extent()
        assert extent.x0 >= figure.x0 and extent.y1 <= figure.y1


def test_names_that_print_alike_stay_apart():
    X = pl.DataFrame({"a\nb": [0.0, 0, 1, 1], "a\\nb": [0.3, 0.1, 0.4, 0.1]})
    model = tc.ExKMC(reference=[0, 0, 1, 1]).fit(X)
    profile = model.profile(X)
    assert profile.table["column"].to_list() == X.columns * 2
    assert profile.wide()["column"].to_list() == X.columns
    assert "2 clusters, 2 columns" in repr(profile)
    assert r"a\nb" in repr(profile) and "a\nb" not in repr(profile)
    alike = model.rename_clusters({0: "p\nq", 1: "p\\nq"}).profile(X)
    assert alike.wide().columns == ["column", "p\nq", "p\\nq"]
    for text in (repr(alike), alike._repr_html_()):
        assert r"p\nq [0]" in text and r"p\nq [1]" in text
    heads = model.rename_clusters({0: "column", 1: "column or level"}).profile(X).wide()
    assert heads.columns == ["column or level or level", "column", "column or level"]
    assert heads[:, 0].to_list() == X.columns


def test_frames_have_the_names_of_the_columns():
    X = pl.DataFrame({"and": [0.0, 0, 1, 1], "long " * 20 + "\n": [0.3, 0.1, 0.4, 0.1]})
    model = tc.ExKMC(reference=[0, 1, 2, 3]).fit(X)
    tested = {X.columns[feature] for feature in model.tree_.tested_features}
    assert tested == set(X.columns)
    assert set(model.explain(X, as_frame=True)["column"]) == tested
    assert set(model.explain(X[::2], X[1::2], as_frame=True)["column"]) == tested
    assert set(model.drift(X)["column"]) == tested
    changed = model.counterfactual(X[:1], int(model.predict(X[3:])[0]))
    assert set(changed.changes["column"]) <= tested
    assert "\n" not in repr(changed)
    kauri = tc.Kauri(4).fit(X)
    assert set(kauri.gains_["feature"]) <= tested


def test_a_text_column_with_the_one_level_true_is_no_flag():
    X = pl.DataFrame({"t": ["true", "true", None, "true"], "f": [True, True, False, True]})
    model = tc.ExKMC(reference=[0, 0, 1, 0]).fit(X)
    assert model.profile(X).wide()["column"].to_list() == ["t = true", "f"]


@pytest.mark.parametrize("number", [0, -1, 1.5, True])
def test_the_number_of_lines_is_checked(number, customers, pyplot):
    model, frame = customers
    profile = model.profile(frame)
    for call in (profile.wide, lambda max_lines: profile.plot(max_lines=max_lines)):
        with pytest.raises(ValueError, match="max_lines must be"):
            call(number)


def tree_of_labels(labels):
    return tc.BestTree(objective="labels", reference=labels, scale=[1e290])


def test_means_lie_within_their_own_values_beside_clusters_far_away():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = np.repeat([0, 1, 2, 3], 6)
        places = rng.permutation([-0.25, 3.0, 1e300, -1e299])
        x = places[labels] * (1.0 + 1e-3 * rng.random(24))
        model = tree_of_labels(labels).fit(x[:, np.newaxis])
        weight = rng.random(24)
        table = model.profile(x[:, np.newaxis], weight).table
        for line in table.iter_rows(named=True):
            own = labels == line["cluster"]
            assert x[own].min() <= line["mean"] <= x[own].max()
            wanted = np.average(x[own], weights=weight[own])
            assert line["mean"] == pytest.approx(wanted, rel=1e-12)
    # Of the others too, where the cluster itself is the one far away.
    x = np.array([-0.25, -0.75, 3.0, 5.0, 1e300])[:, np.newaxis]
    model = tree_of_labels([0, 0, 1, 1, 2]).fit(x)
    assert figures(model.profile(x).table, 2, "x0")["rest"] == pytest.approx(1.75)
