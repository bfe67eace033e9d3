"""The command `treeclust`: in this process through `main(argv)`, and as a real process."""

from __future__ import annotations

import gzip
import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans

import treeclust_rs as tc
from cli_tables import CLUSTERS, FIT, fitted, points
from treeclust_rs._kernels.kernels import KERNELS
from treeclust_rs.cli import fitting, main, methods, output
from treeclust_rs.metrics import agreement
from treeclust_rs.tree import format_share

NUMBERS = ["--method", "ex-greedy"]
"""A method that takes complete numbers alone."""

KAURI = [*FIT, "--method", "kauri", "--kernel", "rbf", "--gamma", "0.05"]


def fitted_kauri() -> tc.Kauri:
    model = tc.Kauri(3, max_leaves=4, kernel="rbf", gamma=0.05, random_state=0)
    return model.fit(points().select("x", "y"))


def reference() -> np.ndarray:
    X = points().select("x", "y").to_numpy()
    return KMeans(3, n_init=10, random_state=0).fit(X).labels_


# ---- fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["best", "exkmc", "kauri", "kmeans-tree", "cubt"])
def test_leaves_have_rows_enough_and_lie_no_deeper(
    method: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [*FIT, "--method", method, "--leaves", "6", "-q"]
    assert main([*few, "--min-samples-leaf", "9", "--max-depth", "2"]) == 0
    tree = tc.load("model.json").tree_
    assert tree.n_node_samples[tree.leaves].min() >= 9
    assert tree.max_depth == 2


def test_what_another_method_calls_otherwise(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FIT, "--criterion", "kmedians"]) == 2
    assert "it takes --objective kmedians." in capsys.readouterr().err


def test_a_best_tree_of_labels_has_mistakes_by_leaves(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = points().select("x", "y")
    model = tc.BestTree(3, max_leaves=4, objective="labels", reference=reference()).fit(X)
    model.save("model.json")
    assert main(["info", "model.json"]) == 0
    assert "  mistakes by number of leaves\n" in capsys.readouterr().out
    about_medians = tc.BestTree(3, max_leaves=4, objective="kmedians", random_state=0).fit(X)
    about_medians.save("model.json")
    assert main(["info", "model.json"]) == 0
    assert "  cost at most by number of leaves\n" in capsys.readouterr().out


def test_fit_prints_the_tree_and_writes_what_was_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FIT, "--plot", "tree.png", "--labels-out", "labels.csv"]) == 0

    expected = fitted()
    printed = capsys.readouterr()
    assert str(expected.tree_) in printed.out
    assert f"ratio             {expected.cost_ratio_:.4f}" in printed.out
    kept = agreement(expected.labels_, reference())
    assert f"{format_share(kept)} of the rows are in their reference cluster" in printed.out
    assert "points.csv: 60 rows, 2 columns." in printed.err
    assert tc.load("model.json").tree_ == expected.tree_
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")
    assert pl.read_csv("labels.csv")["cluster"].to_list() == expected.labels_.tolist()


def test_fit_drops_columns_and_takes_other_formats(folder: Path) -> None:
    points().write_parquet("points.parquet")
    points().write_csv("points.tsv", separator="\t")
    for name in ("points.csv", "points.parquet", "points.tsv"):
        out = f"{name}.json"
        arguments = ["-k", "3", "--drop", "id,segment", "--leaves", "4", "-q", "-o", out]
        assert main(["fit", name, *arguments]) == 0
        assert tc.load(out).tree_ == fitted().tree_


def test_spaces_may_follow_the_commas_between_columns(folder: Path) -> None:
    assert (
        main(["fit", "points.csv", "--drop", "id, segment", "-k", "2", "-q", "-o", "t.json"]) == 0
    )
    assert tc.load("t.json").feature_names_in_.tolist() == ["x", "y"]


def test_column_names_may_hold_commas(folder: Path) -> None:
    points().rename({"x": "x, in m"}).write_csv("points.csv")
    assert main(["fit", "points.csv", "-k", "3", "--columns", "x, in m", "-q", "-o", "m.json"]) == 0
    assert tc.load("m.json").feature_names_in_.tolist() == ["x, in m"]


def test_fit_passes_the_options_on(folder: Path) -> None:
    def tree(*options: str) -> tc.ClusterTree:
        common = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-q", "-o", "m.json"]
        assert main([*common, *options]) == 0
        return tc.load("m.json").tree_

    X = points().select("x", "y")
    assert tree("--method", "imm") == tc.IMM(3, random_state=0).fit(X).tree_
    assert tree(
        "--method", "exkmc", "--base-tree", "none", "--cuts", "interval", "--leaves", "5"
    ) == (tc.ExKMC(3, base_tree=None, cuts="interval", max_leaves=5, random_state=0).fit(X).tree_)
    kmedians = ("--method", "exkmc", "--criterion", "kmedians")
    assert tree(*kmedians, "--scale", "standard", "--seed", "7", "--jobs", "1") == (
        tc.ExKMC(3, criterion="kmedians", scale="standard", random_state=7).fit(X).tree_
    )
    assert tree("--objective", "labels", "--effort", "quick", "--max-time", "60") == (
        tc.BestTree(3, objective="labels", effort="quick", max_time=60, random_state=0).fit(X).tree_
    )


def test_fit_passes_the_options_of_baselines_on(folder: Path) -> None:
    X = points().select("x", "y")
    for method, options, expected in (
        ("ex-shallow", ["--depth-factor", "0.5"], tc.ExShallow(3, depth_factor=0.5)),
        ("cubt", ["--leaves", "6", "--min-dist", "0"], tc.CUBT(3, max_leaves=6, min_dist=0)),
        ("cltree", ["--min-y", "0.1", "--min-rd", "0.5"], tc.CLTree(3, min_y=0.1, min_rd=0.5)),
    ):
        common = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-q", "-o", "m.json"]
        assert main([*common, "--method", method, *options]) == 0
        assert tc.load("m.json").tree_ == expected.set_params(random_state=0).fit(X).tree_


@pytest.mark.parametrize("method", ["cubt", "cltree"])
def test_trees_of_joined_leaves_are_told_and_not_cut_down(
    folder: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", "--method", method, "-k", "3", "-o", "m.json"]
    assert main(fit) == 0
    told = capsys.readouterr().out
    assert "3 clusters" in told and "cost" in told
    assert ("sparse" in told) == (method == "cltree")
    assert main(["info", "m.json", "--leaves", "2"]) == 2
    assert "m.json has leaves that were joined to clusters" in capsys.readouterr().err


def test_fit_passes_the_options_of_kauri_on(folder: Path) -> None:
    def model(*options: str) -> tc.Kauri:
        common = ["fit", "points.csv", "--columns", "x,y", "--method", "kauri", "-q"]
        assert main([*common, *options, "-o", "m.json"]) == 0
        loaded = tc.load("m.json")
        assert isinstance(loaded, tc.Kauri)
        return loaded

    X = points().select("x", "y")
    plain = tc.Kauri(random_state=0).fit(X)
    assert model().get_params() == plain.get_params()
    assert model().tree_ == plain.tree_
    unlimited = model("--leaves", "inf")
    assert unlimited.max_leaves == math.inf
    assert unlimited.tree_ == tc.Kauri(max_leaves=math.inf, random_state=0).fit(X).tree_
    assert unlimited.n_leaves_ > 8
    expected = tc.Kauri(
        4,
        max_leaves=7,
        kernel="rbf",
        gamma=0.02,
        approximation="nystroem",
        n_components=20,
        moves="all",
        scale="standard",
        random_state=7,
        n_jobs=1,
    ).fit(X)
    given = model(
        *("-k", "4", "--leaves", "7", "--kernel", "rbf", "--gamma", "0.02", "--moves", "all"),
        *("--approximation", "nystroem", "--n-components", "20", "--scale", "standard"),
        *("--seed", "7", "--jobs", "1"),
    )
    assert given.get_params() == expected.get_params()
    assert given.tree_ == expected.tree_
    assert model("--kernel", "laplacian", "--gamma", "scale").gamma_ == (
        tc.Kauri(kernel="laplacian", gamma="scale").fit(X).gamma_
    )
    assert model("-k", "5").n_leaves_ == 5


def test_fit_passes_the_options_of_kernel_trees_on(folder: Path) -> None:
    def model(method: str, *options: str) -> tc.KernelIMM | tc.KernelExKMC | tc.KernelExpand:
        common = ["fit", "points.csv", "--columns", "x,y", "--method", method, "-q"]
        assert main([*common, *options, "-o", "m.json"]) == 0
        loaded = tc.load("m.json")
        assert isinstance(loaded, (tc.KernelIMM, tc.KernelExKMC, tc.KernelExpand))
        return loaded

    def check(found: tc.KernelIMM | tc.KernelExKMC | tc.KernelExpand, expected: Any) -> None:
        assert type(found) is type(expected)
        assert found.get_params() == expected.get_params()
        expected.fit(points().select("x", "y"))
        assert found.tree_ == expected.tree_
        assert found.gamma_ == expected.gamma_
        assert found.inertia_ == expected.inertia_
        assert found.reference_inertia_ == expected.reference_inertia_

    rbf = ("-k", "3", "--gamma", "0.05")
    check(model("kernel-imm", *rbf), tc.KernelIMM(3, gamma=0.05, random_state=0))
    check(model("kernel-exkmc", *rbf), tc.KernelExKMC(3, gamma=0.05, random_state=0))
    check(
        model("kernel-expand", *rbf, "--leaves", "5"),
        tc.KernelExpand(3, gamma=0.05, max_leaves=5, random_state=0),
    )
    check(
        model(
            *("kernel-exkmc", "-k", "4", "--kernel", "laplacian", "--gamma", "scale"),
            *("--leaves", "6", "--base-tree", "none", "--cuts", "interval", "--seed", "7"),
            *("--approximation", "nystroem", "--n-components", "20", "--scale", "standard"),
            *("--jobs", "1"),
        ),
        tc.KernelExKMC(
            4,
            kernel="laplacian",
            gamma="scale",
            max_leaves=6,
            base_tree=None,
            cuts="interval",
            random_state=7,
            approximation="nystroem",
            n_components=20,
            scale="standard",
            n_jobs=1,
        ),
    )
    assert model("kernel-imm", "--gamma", "0.1").n_leaves_ == 8


def test_fit_explains_a_given_clustering_by_kernels(folder: Path) -> None:
    common = ["fit", "points.csv", "--reference", "segment", "--drop", "id", "-q", "-o", "m.json"]
    for method, make in (
        ("kernel-imm", tc.KernelIMM),
        ("kernel-exkmc", tc.KernelExKMC),
        ("kernel-expand", tc.KernelExpand),
    ):
        assert main([*common, "--method", method, "--gamma", "0.05"]) == 0
        expected = make(gamma=0.05, reference=points()["segment"].to_numpy())
        expected.fit(points().select("x", "y"))
        loaded = tc.load("m.json")
        assert type(loaded) is make
        assert loaded.tree_ == expected.tree_
        # Quiet or not, the costs are in the file.
        assert loaded.inertia_ == expected.inertia_


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=lambda method: method.name)
def test_a_row_of_the_table_names_parameters_of_its_estimator(method: methods.Method) -> None:
    known = method.estimator().get_params()
    assert {"n_clusters", *method.settings(3)} <= known.keys()
    for option in method.options:
        assert {"--leaves": "max_leaves"}.get(option, option[2:].replace("-", "_")) in known
    assert methods.method_of(method.estimator()) is method


def test_every_kernel_of_the_command_can_be_fitted(folder: Path) -> None:
    assert set(methods.KERNELS) < set(KERNELS)
    points().select(pl.col("x", "y").abs()).write_csv("positive.csv")
    for kernel in methods.KERNELS:
        for method in ("kauri", "kernel-expand"):
            arguments = ["--method", method, "--kernel", kernel, "-k", "3", "-q"]
            assert main(["fit", "positive.csv", *arguments]) == 0


def rows_by_cluster(model: tc.BestTree | tc.Kauri | tc.KernelExpand) -> str:
    rows = np.bincount(model.labels_)
    return ", ".join(f"{k}: {n} ({100 * n / rows.sum():.1f} %)" for k, n in enumerate(rows))


def test_fit_prints_what_a_kernel_tree_explains(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FIT, "--method", "kernel-expand", "--gamma", "0.05"]) == 0
    expected = tc.KernelExpand(3, max_leaves=4, gamma=0.05, random_state=0)
    expected.fit(points().select("x", "y"))
    out = capsys.readouterr().out
    tree, _, numbers = out.rpartition("\n\n")
    assert tree == str(expected.tree_)
    kept = agreement(expected.labels_, expected.reference_labels_)
    leaves = f"{expected.n_leaves_}"
    if expected.n_leaves_ < 4:
        leaves += " (4 asked for: no further cut lowers the cost)"
    assert [line.split(maxsplit=1) for line in numbers.splitlines()] == [
        ["clusters", "3"],
        ["leaves", f"{leaves}, at most {expected.tree_.max_depth} deep"],
        ["rows", f"by cluster   {rows_by_cluster(expected)}"],
        ["kernel", "rbf, gamma 0.05"],
        ["kernel", f"cost       {expected.kernel_cost_:,.6g}"],
        ["of", f"the reference  {expected.reference_kernel_cost_:,.6g}"],
        ["price", f"{expected.price_of_explainability_:.4f}"],
        ["cost", f"{expected.inertia_:,.6g}"],
        ["of", f"the reference  {expected.reference_inertia_:,.6g}"],
        ["ratio", f"{expected.cost_ratio_:.4f}"],
        ["agreement", f"{format_share(kept)} of the rows are in their reference cluster"],
    ]
    # The file has the rows' costs, but not those of smaller trees.
    assert main(["info", "model.json"]) == 0
    facts, _, path = capsys.readouterr().out.rpartition("\n\n")
    assert f"{facts}\n" == out.replace(" (4 asked for: no further cut lowers the cost)", "")
    mistakes = [f"{cost:g}" for cost in expected.cost_path_["cost"]]
    title, *lines = path.splitlines()
    assert title == "  mistakes by number of leaves"
    assert [line.split() for line in lines] == [
        ["leaves", "mistakes"],
        ["3", mistakes[0]],
        ["4", mistakes[1]],
    ]
    expected = tc.KernelExKMC(3, max_leaves=6, gamma=0.05, approximation="rpcholesky", scale=None)
    expected.fit(points().select("x", "y")).save("grown.json")
    assert main(["info", "grown.json", "--leaves", "3"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(str(expected.truncate(3).tree_))
    assert "approximation     rpcholesky, at most 100 features" in out
    assert "price" not in out  # kernel costs of smaller trees take the rows
    assert f"ratio             {expected.truncate(3).cost_ratio_:.4f}" in out
    assert "agreement" in out


def test_costs_of_many_rows_are_not_computed_to_be_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ["fit", "points.csv", "--reference", "segment", "--drop", "id", "-o", "m.json"]
    fit += ["--method", "kernel-expand"]
    monkeypatch.setattr(fitting, "_MAX_COST_ROWS", 59)
    assert main(fit) == 0
    assert "price" not in capsys.readouterr().out
    with pytest.raises(AttributeError, match="has no kernel_cost_"):
        _ = tc.load("m.json").kernel_cost_
    monkeypatch.setattr(fitting, "_MAX_COST_ROWS", 60)
    assert main(fit) == 0
    assert "price" in capsys.readouterr().out


def test_fit_prints_what_kauri_maximised(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*KAURI, "--plot", "tree.svg", "--labels-out", "labels.csv"]) == 0
    expected = fitted_kauri()
    out = capsys.readouterr().out
    tree, _, numbers = out.rpartition("\n\n")
    assert tree == str(expected.tree_)
    moves = expected.gains_["move"].to_list()
    assert set(moves) == {"star", "switch"}
    assert [line.split(maxsplit=1) for line in numbers.splitlines()] == [
        ["clusters", "3"],
        ["leaves", f"4, at most {expected.tree_.max_depth} deep"],
        ["rows", f"by cluster   {rows_by_cluster(expected)}"],
        ["moves", f"{moves.count('star')} star, {moves.count('switch')} switch"],
        ["kernel", "rbf, gamma 0.05"],
        ["objective", f"{expected.objective_:,.6g}"],
        ["kernel", f"cost       {expected.kernel_cost_:,.6g}"],
        ["cost", f"{expected.inertia_:,.6g}"],
    ]
    assert pl.read_csv("labels.csv")["cluster"].to_list() == expected.labels_.tolist()
    assert main(["info", "model.json"]) == 0
    assert capsys.readouterr().out == out

    options = ["--method", "kauri", "--approximation", "rpcholesky"]
    assert main(["fit", "points.csv", "--columns", "x,y", *options]) == 0
    assert "approximation     rpcholesky, at most 100 features" in capsys.readouterr().out


def test_fit_tells_of_kauri_what_was_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("x\n1\n1\n9\n9\n")
    fit = ["fit", "t.csv", "--method", "kauri"]
    assert main([*fit, "-k", "5", "--leaves", str(10**30), "-o", "m.json"]) == 0
    out = capsys.readouterr().out
    assert "asked for         at most 5 clusters" in out
    assert f"leaves            2 ({sys.maxsize:,} asked for: no further split gains)" in out
    assert main([*fit, "-k", "2", "--leaves", "2"]) == 0
    assert "asked for" not in capsys.readouterr().out
    assert main(["info", "m.json", "--leaves", "1"]) == 0
    assert "moves             none" in capsys.readouterr().out


def test_fit_explains_a_given_clustering(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--reference", "segment", "--drop", "id", "-o", "m.json"]
    assert main(["fit", "points.csv", *arguments]) == 0
    assert "asked for" not in capsys.readouterr().out
    model = tc.load("m.json")
    assert model.feature_names_in_.tolist() == ["x", "y"]
    expected = tc.BestTree(reference=points()["segment"].to_numpy(), random_state=0)
    expected.fit(points().select("x", "y"))
    assert model.tree_ == expected.tree_
    assert model.classes_.tolist() == sorted(CLUSTERS)


def test_fit_is_quiet_when_told_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_fit_tells_progress_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "-v"]) == 0
    assert "[BestTree] 60 rows, 4 leaves" in capsys.readouterr().err


def test_warnings_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"x": [1, 1, 1, 2, 2]}).write_csv("few.csv")
    assert main(["fit", "few.csv", "-k", "3"]) == 0
    printed = capsys.readouterr()
    (warning,) = [line for line in printed.err.splitlines() if "warning" in line]
    assert warning.startswith("treeclust: warning: ")
    assert "asked for         3 clusters" in printed.out


# ---- predict, explain, plot, info -------------------------------------------------------------


def test_predict_adds_a_column_and_keeps_the_rest_as_it_was(model: Path) -> None:
    text = Path("points.csv").read_text()
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 0
    labels = fitted().labels_.tolist()
    expected = [
        f"{line},{label}" for line, label in zip(text.splitlines()[1:], labels, strict=True)
    ]
    assert Path("out.csv").read_text().splitlines() == ["id,x,y,segment,cluster", *expected]


def test_predict_writes_to_stdout(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "model.json", "points.csv", "--column", "group"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "id,x,y,segment,group"
    assert len(printed.out.splitlines()) == 61
    assert printed.err == ""


def test_predict_takes_columns_by_name(model: Path) -> None:
    points().select("segment", "y", "x").write_parquet("turned.parquet")
    assert main(["predict", "model.json", "turned.parquet", "-o", "out.parquet"]) == 0
    out = pl.read_parquet("out.parquet")
    assert out.columns == ["segment", "y", "x", "cluster"]
    assert out["cluster"].to_list() == fitted().labels_.tolist()


def test_predict_replaces_a_column_only_when_told_so(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict = ["predict", "model.json", "points.csv", "--column", "segment", "-o", "out.csv"]
    assert main(predict) == 3
    assert "has a column 'segment' already" in capsys.readouterr().err
    assert not Path("out.csv").exists()
    assert main([*predict, "--overwrite"]) == 0
    out = pl.read_csv("out.csv")
    assert out.columns == ["id", "x", "y", "segment"]
    assert out["segment"].to_list() == fitted().labels_.tolist()


def test_predict_with_a_model_that_knows_no_names(folder: Path) -> None:
    X = points().select("x", "y").to_numpy()
    tc.ExKMC(3, random_state=0).fit(X).save("unnamed.json")
    points().select(pl.col("x").alias("a"), pl.col("y").alias("b")).write_csv("xy.csv")
    assert main(["predict", "unnamed.json", "xy.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv").columns == ["a", "b", "cluster"]
    overwritten = ["predict", "unnamed.json", "out.csv", "--overwrite", "-o", "again.csv"]
    assert main(overwritten) == 0
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_explain_prints_a_line_per_row(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = fitted().explain(points())
    assert main(["explain", "model.json", "points.csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{number:>2}  {line}" for number, line in enumerate(lines)
    ]
    assert main(["explain", "model.json", "points.csv", "--rows", "59,0-1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"59  {lines[59]}",
        f" 0  {lines[0]}",
        f" 1  {lines[1]}",
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("tree.png", b"\x89PNG"),
        ("tree.svg", b"<?xml"),
        ("tree.pdf", b"%PDF"),
        ("tree.dot", b"digraph"),
        ("TREE.PNG", b"\x89PNG"),
    ],
)
def test_plot_writes_pictures(model: Path, name: str, start: bytes) -> None:
    assert main(["plot", "model.json", "-o", name]) == 0
    assert Path(name).read_bytes().startswith(start)


def test_plot_of_fewer_leaves(model: Path) -> None:
    assert main(["plot", "model.json", "--leaves", "3", "-o", "small.dot"]) == 0
    assert Path("small.dot").read_text() == fitted().truncate(3).to_graphviz()


def test_plot_for_a_slide(model: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    asked: list[dict[str, object]] = []
    plot = tc.BestTree.plot
    monkeypatch.setattr(tc.BestTree, "plot", lambda model, **how: asked.append(how) or plot(model))
    assert main(["plot", "model.json", "--no-details", "-o", "slide.svg"]) == 0
    assert asked == [{"details": False}]
    assert main(["plot", "model.json", "--no-details", "-o", "slide.dot"]) == 2
    assert "--no-details is for .png, .svg and .pdf" in capsys.readouterr().err


def test_rows_by_cluster_where_a_cluster_has_several_leaves(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "model.json"]) == 0
    assert f"  rows by cluster   {rows_by_cluster(fitted())}\n" in capsys.readouterr().out
    assert main(["info", "model.json", "--leaves", "3"]) == 0
    assert "rows by cluster " not in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rules_as_a_table(model: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"rules.{suffix}"
    read = pl.read_csv if suffix == "csv" else pl.read_parquet
    assert main(["info", "model.json", "--leaves", "3", "--rules-out", name]) == 0
    assert not capsys.readouterr().out
    assert read(name).equals(fitted().truncate(3).rules().frame)
    assert main(["info", "model.json", "--rules"]) == 0
    out = capsys.readouterr().out
    assert "shape:" not in out and "f64" not in out


def test_rename(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rename", "model.json", "0=Loyal", "2=On=Off", "-o", "named.json"]) == 0
    names = np.array(["Loyal", "1", "On=Off"])
    columns = points().select("x", "y")
    expected = names[fitted().labels_].tolist()
    assert tc.load("named.json").predict(columns).tolist() == expected
    assert main(["rename", "named.json", "Loyal=New", "-o", "named.json", "--force"]) == 0
    assert main(["predict", "named.json", "points.csv", "-o", "out.csv"]) == 0
    assert set(pl.read_csv("out.csv")["cluster"]) == {"New", "1", "On=Off"}


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["0"], 2, "must be a cluster, = and a name, 0=Loyal say. Got '0'"),
        (["0=a", "0=b"], 2, "a cluster is named twice."),
        (["9=a"], 3, "There is no cluster '9': the tree's 3 clusters are 0, 1, 2."),
        (["0=a", "1=a"], 3, "would both be called 'a'"),
    ],
)
def test_names_that_cannot_be(
    model: Path, arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rename", "model.json", *arguments, "-o", "named.json"]) == status
    assert said in capsys.readouterr().err
    assert not Path("named.json").exists()


def test_info(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = fitted()
    assert main(["info", "model.json"]) == 0
    out = capsys.readouterr().out
    assert str(expected.tree_) in out
    assert f"ratio             {expected.cost_ratio_:.4f}" in out
    assert main(["info", "model.json", "--leaves", "3"]) == 0
    out = capsys.readouterr().out
    smaller = expected.truncate(3)
    assert str(smaller.tree_) in out
    assert f"cost              {smaller.inertia_:,.6g}\n" in out
    assert f"of the reference  {expected.reference_inertia_:,.6g}\n" in out
    assert f"ratio             {smaller.cost_ratio_:.4f}\n" in out
    assert main(["info", "model.json", "--rules"]) == 0
    out = capsys.readouterr().out
    assert all(rule in out for rule in expected.tree_.rules()["rule"])


DOUGLAS = ["fit", "points.csv", "--columns", "x,y", "--method", "douglas", "-k", "3"]


def test_commands_on_a_model_of_douglas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--gemini", "mmd_ova", "--n-cuts", "2", "--prune", "0.001", "--scale", "standard"]
    assert main([*DOUGLAS, *options, "-o", "model.json", "--labels-out", "labels.csv"]) == 0
    columns = points().select("x", "y")
    expected = tc.Douglas(3, gemini="mmd_ova", n_cuts=2, scale="standard", random_state=0)
    expected.set_params(prune=0.001).fit(columns)
    printed = capsys.readouterr().out
    assert str(expected.table_) in printed
    assert "active columns    x, y" in printed
    assert f"mmd_ova, {expected.objective_:,.6g} in batches" in printed
    assert pl.read_csv("labels.csv")["cluster"].to_list() == expected.labels_.tolist()

    assert main(["info", "model.json"]) == 0
    assert str(expected.table_) in capsys.readouterr().out
    assert main(["info", "model.json", "--rules"]) == 0
    assert expected.rules()["rule"][0] in capsys.readouterr().out
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == expected.labels_.tolist()
    assert main(["explain", "model.json", "points.csv", "--rows", "7"]) == 0
    assert capsys.readouterr().out.strip() == f"7  {expected.explain(columns[[7]])[0]}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*DOUGLAS, "--leaves", "4"], "--leaves goes with --method best, exkmc, kauri"),
        ([*DOUGLAS, "--plot", "a.dot"], "--plot: a model of douglas has no tree"),
        (["fit", "points.csv", "--n-cuts", "2"], "--n-cuts goes with --method douglas"),
        (["fit", "points.csv", "--prune", "0.1"], "--prune goes with --method douglas"),
        (["plot", "model.json", "-o", "a.dot"], "a.dot: a model of douglas has no tree"),
        (["info", "model.json", "--leaves", "2"], "--leaves 2: a model of douglas has no tree"),
    ],
)
def test_douglas_has_no_tree(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DOUGLAS, "-o", "model.json", "-q"]) == 0
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_advice_on_cells_names_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = pl.DataFrame({f"c{j}": [0.0, 1.0, 5.0, 6.0 + j] for j in range(40)})
    wide.write_csv(folder / "wide.csv")
    options = ["--method", "douglas", "-k", "2", "--n-cuts", "2", "-o", "model.json"]
    assert main(["fit", "wide.csv", *options]) == 3
    message = capsys.readouterr().err
    assert "Cut at most 15 columns (--columns or --drop)." in message


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        (
            "oblique",
            ["--alpha", "0.5", "--max-depth", "2", "-k", "3", "--relax"],
            tc.ObliqueTree(3, alpha=0.5, max_depth=2, relax=True, random_state=0),
        ),
        ("voronoi", ["-k", "3"], tc.VoronoiTree(3, random_state=0)),
    ],
)
def test_commands_on_trees_of_weighted_sums(
    method: str,
    options: list[str],
    expected: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", "--method", method, *options]
    outputs = ["-o", "model.json", "--plot", "tree.png", "--labels-out", "labels.csv"]
    assert main([*fit, *outputs]) == 0
    expected.fit(points().select("x", "y"))
    printed = capsys.readouterr().out
    assert str(expected.tree_) in printed
    assert f"parameters        {tc.metrics.n_parameters(expected.tree_)} " in printed
    assert f"ratio             {expected.cost_ratio_:.4f}" in printed
    assert pl.read_csv("labels.csv")["cluster"].to_list() == expected.labels_.tolist()
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == expected.labels_.tolist()
    if method == "voronoi":
        assert main(["info", "model.json", "--leaves", "2"]) == 2
        assert "--leaves 2: model.json has a tree of bisectors" in capsys.readouterr().err
    else:
        assert main(["info", "model.json", "--leaves", "2"]) == 0
        assert "2 leaves" in capsys.readouterr().out
    assert main([*fit, "--cuts", "interval"]) == 2
    error = capsys.readouterr().err
    assert "--cuts goes with --method exkmc, kernel-exkmc or kernel-expand; a" in error
    assert f" {method} tree has " in error


def test_voronoi_of_many_clusters_has_a_leaf_each(folder: Path) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", "--method", "voronoi", "-k", "17", "-q"]
    assert main([*fit, "-o", "model.json"]) == 0
    model = tc.load("model.json")
    assert not model.exact and model.n_leaves_ == 17


def test_commands_on_a_kauri_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*KAURI, "-q"]) == 0
    expected = fitted_kauri()
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == expected.labels_.tolist()
    assert main(["explain", "model.json", "points.csv", "--rows", "7"]) == 0
    assert capsys.readouterr().out == f"7  {expected.explain(points())[7]}\n"
    assert main(["info", "model.json", "--rules"]) == 0
    out = capsys.readouterr().out
    assert "from_cluster" in out
    assert all(rule in out for rule in expected.tree_.rules()["rule"])
    small = expected.truncate(2)
    assert main(["info", "model.json", "--leaves", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(str(small.tree_))
    assert f"objective         {small.objective_:,.6g}" in out
    assert f"cost              {small.inertia_:,.6g}" in out
    assert main(["plot", "model.json", "--leaves", "2", "-o", "small.dot"]) == 0
    assert Path("small.dot").read_text() == small.to_graphviz()
    assert main(["plot", "model.json", "-o", "tree.png"]) == 0
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")


def test_info_of_a_kernel_that_the_file_lacks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = points().select("x", "y")
    tc.Kauri(kernel=lambda x, y: float(x @ y)).fit(X).save("m.json")
    assert main(["info", "m.json"]) == 0
    assert "kernel            a function, which the file does not hold" in capsys.readouterr().out


def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", "some/where"]) == 0
    out = capsys.readouterr().out
    assert "flavanoids <= 1.9" in out
    assert "96.6 % of the wines are with their own" in out
    made = {path.name for path in Path("some/where").iterdir()}
    endings = {"customers": [".parquet", ".json", ".png"], "wine": [".csv", ".json", ".png"]}
    assert made == {name + ending for name in endings for ending in endings[name]}
    customers = pl.read_parquet("some/where/customers.parquet")
    model = tc.load("some/where/customers.json")
    assert all(f"cluster {c}: {rule}" in out for c, rule, *_ in model.rules().iter_rows())
    assert all(line in out for line in model.explain(customers[:3]))
    kinds = {model.tree_.column_kinds[feature] for feature in model.tree_.feature if feature >= 0}
    assert kinds == {"number", "flag", "date"}

    before = tc.load("some/where/wine.json").tree_
    fit, predict, explain = [line.split()[1:] for line in out.splitlines()[-3:]]
    assert main(fit) == main(predict) == main(explain) == 0
    assert tc.load("some/where/wine.json").tree_ == before
    assert pl.read_csv("some/where/out.csv").width == 14


def test_demo_without_matplotlib(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "find_spec", lambda _: None)
    assert main(["demo"]) == 0
    assert "pip install treeclust_rs[plot]" in capsys.readouterr().out
    assert not list(Path("demo").glob("*.png"))


# ---- what can go wrong --------------------------------------------------------------------------

# Exit status, arguments, what is said on stderr.
WRONG: dict[str, tuple[int, list[str], str]] = {
    "no command": (2, [], "required: COMMAND (see treeclust --help)"),
    "unknown command": (2, ["grow"], "invalid choice: 'grow'"),
    "no data": (2, ["fit"], "required: DATA (see treeclust fit --help)"),
    "abbreviated option": (
        2,
        ["fit", "points.csv", "--k", "3"],
        "unrecognized arguments: --k (see treeclust fit --help)",
    ),
    "table behind the options": (
        2,
        ["fit", "points.csv", "-k", "3", "few.csv"],
        "few.csv: files come before the options, commas between columns (see treeclust fit --help)",
    ),
    "no number": (
        2,
        ["fit", "points.csv", "-k", "three"],
        "-k/--clusters: must be a whole number, at least 1. Got 'three'",
    ),
    "no such file": (4, ["fit", "none.csv"], "none.csv: no such file."),
    "no such folder": (4, ["fit", "none/"], "none/: no such file or folder."),
    "pattern of no file": (4, ["fit", "none*.csv"], "none*.csv: no file has such a name."),
    "unknown kind of file": (2, ["fit", "points.xlsx"], "read from a file named .csv, .tsv"),
    "empty file": (3, ["fit", "empty.csv"], "empty.csv is empty."),
    "ragged file": (3, ["fit", "ragged.csv"], "ragged.csv cannot be read: "),
    "no parquet": (4, ["fit", "text.parquet"], "text.parquet cannot be read: "),
    "columns of text": (
        3,
        ["fit", "points.csv", "-k", "3", "--drop", "id", *NUMBERS],
        "points.csv: not numbers: 'segment' (row 0: 'low'); rows count from 0. Leave columns out: "
        "add --drop segment.",
    ),
    "parquet columns of text": (
        3,
        ["fit", "points.parquet", *NUMBERS],
        "points.parquet: not numbers: 'id' (String), 'segment' (String). Leave columns out: "
        "add --drop id,segment.",
    ),
    "options of text for parquet": (
        2,
        ["fit", "points.parquet", "--separator", ";"],
        "points.parquet: the options on how a text is read are not for Parquet.",
    ),
    "chosen columns of text": (
        3,
        ["fit", "points.csv", "--columns", "x,segment", *NUMBERS],
        "'segment' (row 0: 'low'); rows count from 0. Take segment out of --columns.",
    ),
    "unknown column": (
        3,
        ["fit", "points.csv", "--drop", "id,name"],
        "points.csv has no column 'name'; its columns are 'id', 'x', 'y', 'segment'.",
    ),
    "misspelt column": (
        3,
        ["fit", "points.csv", "--drop", "ID,segmnt"],
        "'id', 'x', 'y', 'segment'. It has similar names: 'id', 'segment'.",
    ),
    "unknown reference": (3, ["fit", "points.csv", "--reference", "z"], "has no column 'z'"),
    "both ways to choose": (
        2,
        ["fit", "points.csv", "--columns", "x", "--drop", "y"],
        "not allowed with argument --columns",
    ),
    "nothing left": (
        3,
        ["fit", "points.csv", "--drop", "id,x,y,segment"],
        "no column of points.csv",
    ),
    "nothing left but the reference": (
        3,
        ["fit", "points.csv", "--columns", "x", "--reference", "x"],
        "no column of points.csv, besides the reference, is left to fit.",
    ),
    "missing cells": (
        3,
        ["fit", "holes.csv", "-k", "1", *NUMBERS],
        "holes.csv has empty, NaN or infinite cells: 'x' 1, the first in row 1 (rows count from "
        "0). Fill these cells or remove their rows first; or leave columns out: add --drop x.",
    ),
    "reference with holes": (
        3,
        ["fit", "holes.csv", "--reference", "x"],
        "the column 'x' has 1 empty cell, the first in row 1 (rows",
    ),
    "reference of measures": (
        3,
        ["fit", "points.csv", "--reference", "x"],
        "the column 'x' names no clusters: they are whole numbers or words",
    ),
    "more clusters than rows": (
        3,
        ["fit", "points.csv", "--columns", "x", "-k", "61"],
        "-k 61 is more than the 60 rows of points.csv.",
    ),
    "more clusters of douglas than rows": (
        3,
        ["fit", "points.csv", "--columns", "x", "--method", "douglas", "-k", "99"],
        "-k 99 is more than the 60 rows",
    ),
    "the default is more than the rows": (
        3,
        ["fit", "few.csv"],
        "-k 8, the default, is more than the 1 row of few.csv.",
    ),
    "no clusters": (2, ["fit", "none.csv", "-k", "0"], "-k/--clusters: must be a whole number, at"),
    "seed below 0": (
        2,
        ["fit", "none.csv", "--seed", "-1"],
        "--seed: must be a whole number, from 0",
    ),
    "seed too large": (2, ["fit", "none.csv", "--seed", "4294967296"], "from 0 to 4294967295. Got"),
    "no threads": (
        2,
        ["fit", "none.csv", "--jobs", "0"],
        "--jobs: must be a whole number, at least 1",
    ),
    "fewer leaves than clusters": (
        2,
        ["fit", "none.csv", "-k", "5", "--leaves", "3"],
        "--leaves 3 is less than -k 5: every cluster needs a leaf.",
    ),
    "fewer leaves than the default": (
        2,
        ["fit", "none.csv", "--leaves", "3"],
        "--leaves 3 is less than the 8 clusters that are sought without -k: give -k too.",
    ),
    "fewer leaves than the reference": (
        3,
        ["fit", "points.csv", "--columns", "x,y", "--reference", "segment", "--leaves", "2"],
        "--leaves 2 is less than the 3 clusters of the column 'segment'",
    ),
    "not as many as the reference": (
        3,
        ["fit", "points.csv", "--columns", "x,y", "--reference", "segment", "-k", "4"],
        "-k 4, but the column 'segment' has 3 clusters.",
    ),
    "leaves of imm": (
        2,
        ["fit", "none.csv", "-k", "3", "--method", "imm", "--leaves", "5"],
        "--leaves goes with --method best, exkmc, kauri, cubt, oblique, kernel-exkmc, "
        "kernel-expand, kmeans-tree, spex, kd-tree or x-regression; an imm tree has",
    ),
    "cuts of imm": (
        2,
        ["fit", "points.csv", "--columns", "x", "--method", "imm", "--cuts", "interval"],
        "--cuts goes with --method exkmc, kernel-exkmc or kernel-expand; an imm tree",
    ),
    "kernel of exkmc": (
        2,
        ["fit", "none.csv", "--method", "exkmc", "--kernel", "rbf"],
        "--kernel goes with --method kauri, kernel-imm, kernel-exkmc or kernel-expand; an exkmc "
        "tree explains the clusters of k-means, or of",
    ),
    "moves of imm": (
        2,
        ["fit", "none.csv", "--method", "imm", "--moves", "all"],
        "--moves goes with --method kauri; an imm tree has threshold cuts and one leaf per",
    ),
    "reference of kauri": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--reference", "segment"],
        "--reference goes with --method best, exkmc, imm, ex-greedy, ex-shallow, random-cuts, "
        "oblique, voronoi, kernel-imm, kernel-exkmc, kernel-expand, kmeans-tree, spex, kd-tree or "
        "x-regression; a kauri tree has threshold cuts and makes",
    ),
    "criterion of kauri": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--criterion", "kmeans"],
        "--criterion goes with --method exkmc, imm, ex-greedy, ex-shallow or random-cuts",
    ),
    "cuts of kauri": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--cuts", "interval"],
        "--cuts goes with --method exkmc, kernel-exkmc or kernel-expand; a kauri",
    ),
    "leaves of kernel-imm": (
        2,
        ["fit", "none.csv", "--method", "kernel-imm", "--leaves", "9"],
        "a kernel-imm tree has one leaf per cluster of kernel k-means, or of --reference.",
    ),
    "criterion of kernel-exkmc": (
        2,
        ["fit", "none.csv", "--method", "kernel-exkmc", "--criterion", "kmedians"],
        "--criterion goes with --method exkmc, imm, ex-greedy, ex-shallow or random-cuts; a "
        "kernel-exkmc tree explains the clusters of",
    ),
    "moves of kernel-expand": (
        2,
        ["fit", "none.csv", "--method", "kernel-expand", "--moves", "all"],
        "--moves goes with --method kauri; a kernel-expand tree explains the clusters of kernel",
    ),
    "kernel without features of kernel-imm": (
        2,
        ["fit", "none.csv", "--method", "kernel-imm", "--kernel", "polynomial"],
        "--method kernel-imm goes with --kernel linear, rbf, laplacian, additive_chi2, "
        "histogram_intersection or hellinger; kernel-exkmc and kernel-expand take every kernel.",
    ),
    "gamma of a kernel tree's kernel without": (
        2,
        ["fit", "none.csv", "--method", "kernel-imm", "--kernel", "hellinger", "--gamma", "2"],
        "--gamma goes with --kernel rbf, laplacian, polynomial or chi2; the kernel hellinger has",
    ),
    "random features of a kernel tree's other kernel": (
        2,
        [
            *("fit", "none.csv", "--method", "kernel-expand", "--kernel", "laplacian"),
            *("--approximation", "rff"),
        ],
        "--approximation rff goes with --kernel rbf;",
    ),
    "fewer leaves than clusters of kauri": (
        2,
        ["fit", "none.csv", "--method", "kauri", "-k", "5", "--leaves", "3"],
        "--leaves 3 is less than -k 5: every cluster needs a leaf.",
    ),
    "fewer leaves than the default of kauri": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--leaves", "2"],
        "--leaves 2 is less than the 8 clusters that are sought without -k: give -k too.",
    ),
    "unknown kernel": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--kernel", "quadratic"],
        "argument --kernel: invalid choice: 'quadratic' (choose from",
    ),
    "gamma that is none": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--kernel", "rbf", "--gamma", "nan"],
        "argument --gamma: must be a number above 0, or scale. Got 'nan'",
    ),
    "price that is none": (
        2,
        ["fit", "none.csv", "--method", "oblique", "--alpha", "-1"],
        "argument --alpha: must be a number, at least 0. Got '-1'",
    ),
    "share that is all": (
        2,
        ["fit", "none.csv", "--method", "douglas", "--prune", "1"],
        "argument --prune: must be at least 0 and below 1. Got '1'",
    ),
    "gamma of a kernel without": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--gamma", "2"],
        "--gamma goes with --kernel rbf, laplacian, polynomial or chi2; the kernel linear has none",
    ),
    "features of an exact kernel": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--n-components", "20"],
        "--n-components goes with --approximation; without it the kernel is exact.",
    ),
    "random features of another kernel": (
        2,
        ["fit", "none.csv", "--method", "kauri", "--approximation", "rff"],
        "--approximation rff goes with --kernel rbf; nystroem and rpcholesky take every kernel.",
    ),
    "kernel of cells below 0": (
        3,
        ["fit", "points.csv", "--columns", "x,y", "--method", "kauri", "--kernel", "chi2"],
        "The kernel 'chi2' needs values >= 0, but column 'x' holds",
    ),
    "model of another name": (
        2,
        [*FIT[:-1], "model.txt"],
        "model.txt: the name must end in .json.",
    ),
    "no folder to write to": (4, [*FIT[:-1], "no/model.json"], "there is no folder no."),
    "picture of another kind": (
        2,
        [*FIT, "--plot", "tree.gif"],
        "must end in .png, .svg, .pdf or .dot",
    ),
    "a folder as the model": (4, ["info", "."], ". is a folder."),
    "no model file": (
        4,
        ["info", "none.txt.json"],
        "none.txt.json: Not a model file of treeclust_rs: it lacks",
    ),
    "a base of models in it": (
        4,
        ["predict", "base.json", "points.csv"],
        "base.json: The model file holds a 'CostTree'; known are BestTree, CLTree, CUBT, Douglas,",
    ),
    "parquet without formulas": (
        2,
        ["predict", "model.json", "points.csv", "-o", "o.parquet", "--escape-formulas"],
        "o.parquet: --escape-formulas is for tables in text files.",
    ),
    "missing cells of chosen columns": (
        3,
        ["fit", "holes.csv", "--columns", "x,y", "-k", "1", *NUMBERS],
        "first; or take x out of --columns.",
    ),
    "no model": (4, ["predict", "none.json", "points.csv"], "none.json: no such file."),
    "no model in it": (2, ["info", "points.csv"], "points.csv is named as a table: MODEL is"),
    "other columns": (3, ["predict", "model.json", "few.csv"], "few.csv has no column 'y'; its"),
    "text where numbers were": (
        3,
        ["predict", "model.json", "text.csv"],
        "text.csv: not numbers: 'x' (row 1: 'two'); rows count from 0.",
    ),
    "wrong number of unnamed columns": (
        3,
        ["predict", "unnamed.json", "points.csv"],
        "points.csv has 4 columns; the model, fitted without names, reads 2.",
    ),
    "model and data swapped": (
        2,
        ["predict", "points.csv", "model.json"],
        "points.csv is named as a table, model.json as a model: is the order MODEL DATA?",
    ),
    "model and data swapped in explain": (
        2,
        ["explain", "points.csv", "model.json"],
        "is the order MODEL DATA?",
    ),
    "no name for the new column": (
        2,
        ["predict", "model.json", "points.csv", "--column", ""],
        "--column: the new column needs a name.",
    ),
    "a file as the folder of the demo": (4, ["demo", "-o", "points.csv"], "points.csv is a file"),
    "a folder in a file": (
        4,
        ["demo", "-o", "points.csv/demo"],
        "points.csv/demo is a file or lies",
    ),
    "row out of range": (3, ["explain", "model.json", "points.csv", "--rows", "60"], "row 60"),
    "rows that are none": (2, ["explain", "model.json", "points.csv", "--rows", "-1"], "--rows"),
    "rows backwards": (2, ["explain", "model.json", "points.csv", "--rows", "9-3"], "backwards"),
    "too few leaves": (
        2,
        ["plot", "exkmc.json", "--leaves", "2", "-o", "t.png"],
        "from 3 leaves, those of",
    ),
    "no leaves": (
        2,
        ["info", "model.json", "--leaves", "0"],
        "--leaves: must be a whole number, at",
    ),
    "nowhere to plot": (2, ["plot", "model.json"], "required: -o/--output"),
}


@pytest.mark.parametrize(("status", "arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_errors_are_one_line_and_leave_nothing(
    model: Path, status: int, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.csv").touch()
    Path("ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    Path("text.parquet").write_text("no parquet")
    Path("holes.csv").write_text("x,y\n1,2\n,4\n")
    Path("few.csv").write_text("x,z\n1,2\n")
    Path("none.txt.json").write_text("{}")
    model = Path("model.json").read_text()
    Path("base.json").write_text(model.replace('"model": "BestTree"', '"model": "CostTree"'))
    Path("text.csv").write_text("x,y\n1,2\ntwo,2\n")
    tc.ExKMC(3, max_leaves=4, random_state=0).fit(points().select("x", "y")).save("exkmc.json")
    points().write_parquet("points.parquet")
    X = points().select("x", "y").to_numpy()
    tc.IMM(reference=points()["segment"].to_numpy()).fit(X).save("unnamed.json")
    Path("points.xlsx").touch()
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert main(arguments) == status
    printed = capsys.readouterr()
    errors = [
        line
        for line in printed.err.splitlines()
        if not line.endswith("columns.") or message in line
    ]
    assert len(errors) == 1, printed.err
    assert errors[0].startswith("treeclust: ")
    assert message in errors[0]
    assert printed.out == ""
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


# Exit status, what a file holds, options of fit beside -k 1, what is said on stderr.
TABLES: dict[str, tuple[int, bytes, list[str], str]] = {
    "header only": (3, b"x,y\n", [], "t.csv: the file has no rows."),
    "blank": (3, b"\n \n", [], "t.csv is empty."),
    "semicolons": (
        3,
        b"x;y\n1;2\n3;4\n",
        [],
        "t.csv seems to be separated by ';': add --separator ';'.",
    ),
    "semicolons and decimal commas": (
        3,
        b"x;y\n1,5;2,5\n3;4\n",
        [],
        "t.csv seems to be separated by ';': add --separator ';' --decimal-comma.",
    ),
    "tabs": (3, b"x\ty\n1\t2\n", [], "t.csv seems to be separated by tabs: add --separator tab."),
    "commas after all": (
        3,
        b"x,y\n1,2\n",
        ["--separator", ";"],
        "t.csv seems to be separated by ',': add --separator ,.",
    ),
    "decimal commas": (
        3,
        b"x;y\n1,5;2\n",
        ["--separator", ";"],
        "t.csv: numbers with decimal commas: 'x' (row 0: '1,5') (rows count from 0). Add "
        "--decimal-comma if all numbers are written so; else write them alike first.",
    ),
    "decimal commas for a method on numbers": (
        3,
        b"x;y\n1,5;2\n",
        ["--separator", ";", *NUMBERS],
        "t.csv: not numbers: 'x' (row 0: '1,5'); rows count from 0. If these are numbers with "
        "decimal commas, add --decimal-comma.",
    ),
    "points for thousands": (
        3,
        b"x;y\n1,5;1.000\n",
        ["--separator", ";", "--decimal-comma", *NUMBERS],
        "t.csv: not numbers: 'y' (row 0: '1.000'); rows count from 0. For numbers add --numbers "
        "y; or leave columns out: add --drop y.",
    ),
    "long lines": (
        3,
        b"x,y\n1,2\n3,4,5\n",
        [],
        "t.csv cannot be read: line 3 has 3 cells, the first line 2.",
    ),
    "open quotes": (
        3,
        b'x,y\n1,"2\n3,4\n',
        [],
        "t.csv cannot be read: the quotes in line 2 do not match.",
    ),
    "a quote inside a cell": (
        3,
        b"x,y\n1,2\n5'7\",4\n",
        [],
        "line 3 has a quote inside a cell without quotes around it: '5\\'7\"'. Write the cell in "
        'quotes, and quotes in it twice: "5\'7""".',
    ),
    "Latin-1": (
        4,
        b"caf\xe9,y\n1,2\n",
        [],
        "t.csv is not UTF-8 text. Name its encoding, for instance --encoding latin-1, or convert "
        "it: iconv -f latin-1 -t utf-8 t.csv > t-utf8.csv",
    ),
    "UTF-16": (4, "x,y\n1,2\n".encode("utf-16"), [], "for instance --encoding utf-16, or"),
    "another encoding": (
        4,
        b"caf\xe9,y\n1,2\n",
        ["--encoding", "ascii"],
        "t.csv is not text in the encoding ascii.",
    ),
    "unknown encoding": (
        2,
        b"x\n1\n",
        ["--encoding", "klingon"],
        "argument --encoding: there is no encoding 'klingon'",
    ),
    "separator of two": (2, b"x\n1\n", ["--separator", ";;"], "must be one character, or tab. Got"),
    "same names": (
        3,
        b"x,y, x\n1,2,3\n",
        [],
        "t.csv has several columns named 'x': give each its own name.",
    ),
    "same numbers as names": (
        3,
        b"5,5,1\n1,2,3\n",
        [],
        "t.csv has several columns named '5': give each its own name; if the file has no header, "
        "add --no-header.",
    ),
    "infinite cells": (
        3,
        b"x,y\n1,2\n-inf,3\n4,5\n",
        [],
        "t.csv has infinite cells: 'x' 1, the first in row 1 (rows count from 0). Empty these "
        "cells; or leave columns out: add --drop x.",
    ),
    "every column has gaps": (
        3,
        b"x,y\n1,\n,3\n4,5\n",
        NUMBERS,
        "Fill these cells or remove their rows first.",
    ),
    "gzip by another name": (
        4,
        gzip.compress(b"x\n1\n"),
        [],
        "t.csv is not text but compressed by gzip: name it .csv.gz, or .tsv.gz with tabs.",
    ),
    "spreadsheet": (
        4,
        b"PK\x03\x04\x14\x00\xff",
        [],
        "t.csv is not text but a spreadsheet or zip file: save it as CSV first.",
    ),
    "words with gaps as the reference": (
        3,
        b"x,kind\n1,a\n2,\n3,b\n",
        ["--reference", "kind"],
        "'kind' has 1 empty cell, the first in row 1 (rows count from 0): write -1 for rows of",
    ),
    "numbers with gaps as the reference": (
        3,
        b"x,kind\n1,4\n2,\n3,5\n",
        ["--reference", "kind"],
        "row 1 (rows count from 0): write -1 for rows of no cluster, or remove their rows first.",
    ),
    "all of it text": (
        3,
        b"x,y\na,b\nc,d\n",
        NUMBERS,
        "t.csv: not numbers: 'x' (row 0: 'a'), 'y' (row 0: 'b'); rows count from 0.",
    ),
    "no names": (3, b"x,,\n1,2,3\n", [], "t.csv: 2 columns have no name."),
    "missing cells": (
        3,
        b"x,y\n1,2\n3,NA\n4,nan\n",
        NUMBERS,
        "t.csv has empty, NaN or infinite cells: 'y' 2, the first in row 1 (rows count from 0).",
    ),
    "text among missing cells": (
        3,
        b"x,y,z\n1,N/A,1\n2,3,b\n3,?,c\n",
        NUMBERS,
        "t.csv: not numbers: 'y' (row 2: '?'), 'z' (row 1: 'b'); rows count from 0. Leave columns "
        "out: add --drop y,z.",
    ),
}


@pytest.mark.parametrize(
    ("status", "content", "options", "message"), TABLES.values(), ids=TABLES.keys()
)
def test_tables_that_cannot_be_used(
    tmp_path: Path,
    status: int,
    content: bytes,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(content)
    assert main(["fit", "t.csv", "-k", "1", *options]) == status
    printed = capsys.readouterr()
    error = printed.err.splitlines()[-1]
    assert message in error
    assert "--drop x,y" not in error  # which would leave nothing
    assert "infer_schema" not in error and "truncate_ragged_lines" not in error
    assert printed.out == ""


@pytest.mark.parametrize("word", ["NA", "N/A", "nan", "NaN", "null", "", '""', " NA "])
def test_words_for_missing_cells(
    folder: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for cells in (["1", "2"], ["1.5", "2"], ["true", "false"]):
        Path("holes.csv").write_text(f"x,y\n{cells[0]},1\n{word},1\n{cells[1]},1\n")
        assert main(["fit", "holes.csv", "-k", "1"]) == 0
        assert "3 rows, 2 columns: " in (said := capsys.readouterr().err)
        assert "; missing cells in 1 column." in said
        assert main(["fit", "holes.csv", "-k", "1", *NUMBERS]) == 3
        assert "infinite cells: 'x' 1, the first in row 1" in capsys.readouterr().err


# ---- tables as they come ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x,y\n1.5,2\n-3,40\n", []),
        (" x , y\n 1.5 , +2\n-3,4e1\n", []),
        ('"x","y"\r\n"1.5",2\r\n-3,"40"\r\n', []),
        ("\n\nx,y\n1.5,2\n-3,40\n\n\n", []),
        ("x,y,\n1.5,2,\n-3,40,\n", []),
        ("\ufeffx,y\n1.5,2\n-3,40", []),
        ("x;y\n1.5;2\n-3;40\n", ["--separator", ";"]),
        ("x;y\n1,5;2\n-3;40,0\n", ["--separator", ";", "--decimal-comma"]),
        ('x,y\n"1,5",2\n-3,40\n', ["--decimal-comma"]),
        ("x\ty\n1.5\t2\n-3\t40\n", ["--separator", "tab"]),
        ("x\ty\n1.5\t2\n-3\t40\n", ["--separator", "\\t"]),
    ],
)
def test_ways_to_write_a_table(folder: Path, text: str, options: list[str]) -> None:
    Path("t.csv").write_bytes(text.encode())
    assert main(["fit", "t.csv", "-k", "2", "-q", "-o", "t.json", *options]) == 0
    model = tc.load("t.json")
    assert model.feature_names_in_.tolist() == ["x", "y"]
    frame = pl.DataFrame({"x": [1.5, -3.0], "y": [2, 40]})
    assert model.tree_ == tc.BestTree(2, random_state=0).fit(frame).tree_


def test_other_encodings(folder: Path) -> None:
    points().rename({"x": "größe"}).write_csv("utf8.csv")
    text = Path("utf8.csv").read_text("utf-8")
    for encoding in ("latin-1", "utf-16", "utf-8"):
        Path("t.csv").write_bytes(text.encode(encoding))
        read = ["t.csv", "--encoding", encoding]
        assert main(["fit", *read, "--columns", "größe,y", "-k", "3", "-q", "-o", "t.json"]) == 0
        assert tc.load("t.json").feature_names_in_.tolist() == ["größe", "y"]
        assert main(["predict", "t.json", *read, "-o", "out.csv"]) == 0
        assert pl.read_csv("out.csv").columns == ["id", "größe", "y", "segment", "cluster"]


def test_predict_writes_what_it_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("x;note\n1,50;NA\n7,25; a,b\n")
    options = ["--separator", ";", "--decimal-comma"]
    assert main(["fit", "t.csv", "--columns", "x", "-k", "2", "-q", "-o", "t.json", *options]) == 0
    labels = tc.load("t.json").predict(pl.DataFrame({"x": [1.5, 7.25]})).tolist()
    assert main(["predict", "t.json", "t.csv", *options]) == 0
    expected = f"x;note;cluster\n1,50;NA;{labels[0]}\n7,25; a,b;{labels[1]}\n"
    assert capsys.readouterr().out == expected
    assert main(["predict", "t.json", "t.csv", *options, "-o", "out.csv"]) == 0
    assert Path("out.csv").read_text() == expected
    assert main(["predict", "t.json", "t.csv", *options, "-o", "out.tsv"]) == 0
    assert Path("out.tsv").read_text() == expected.replace(";", "\t")


def test_tables_without_header(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("1,5\n2,6\n9,7\n")
    assert main(["fit", "t.csv", "-k", "2", "-q", "-o", "t.json"]) == 0
    assert capsys.readouterr().err == (
        "treeclust: warning: the first line of t.csv, '1', '5', was taken for the names of the "
        "columns; if the file has no header, add --no-header.\n"
    )
    assert main(["fit", "t.csv", "-k", "2", "--no-header", "-q", "-o", "t.json"]) == 0
    assert tc.load("t.json").feature_names_in_.tolist() == ["x0", "x1"]
    assert main(["predict", "t.json", "t.csv", "--no-header", "-o", "out.csv"]) == 0
    lines = Path("out.csv").read_text().splitlines()
    assert [line[:4] for line in lines] == ["1,5,", "2,6,", "9,7,"]
    assert main(["predict", "t.json", "t.csv", "--no-header"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == lines
    assert printed.err == ""


def test_numbered_columns_of_pandas_are_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("0,1\n1,5\n2,6\n")
    assert main(["fit", "t.csv", "-k", "2", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_numbered_references_and_truth_values(folder: Path) -> None:
    text = "x,flag,group\n1,True,1\n2,false,1\n7,True,4\n8,False,-1\n9,true,4\n"
    Path("t.csv").write_text(text)
    assert main(["fit", "t.csv", "--reference", "group", "-q", "-o", "t.json"]) == 0
    model = tc.load("t.json")
    assert model.classes_.tolist() == [1, 4]
    assert model.feature_names_in_.tolist() == ["x", "flag"]


def test_the_reference_is_no_feature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [["--columns", "x,y,segment"], ["--drop", "id"], ["--drop", "id,segment"]]
    said = "treeclust: the column 'segment' is the reference, and so no feature."
    for number, columns in enumerate(chosen):
        assert main(["fit", "points.csv", "--reference", "segment", *columns, "-o", "m.json"]) == 0
        assert tc.load("m.json").feature_names_in_.tolist() == ["x", "y"]
        assert (said in capsys.readouterr().err) == (number == 0)


# ---- remarks ------------------------------------------------------------------------------------


def test_fit_tells_what_is_not_saved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def last_remark(*options: str) -> str:
        assert main(["fit", "points.csv", "--columns", "x", "-k", "2", *options]) == 0
        return capsys.readouterr().err.splitlines()[-1]

    assert last_remark() == "treeclust: nothing saved; add -o model.json"
    unsaved = last_remark("--labels-out", "labels.csv")
    assert unsaved == "treeclust: the model is not saved; add -o model.json"
    assert last_remark("-o", "m.json") == "treeclust: model written to m.json"


def test_fit_tells_of_leaves_that_help_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("x\n1\n2\n8\n9\n")
    assert main(["fit", "t.csv", "-k", "2", "--leaves", "20"]) == 0
    out = capsys.readouterr().out
    assert "2 (20 asked for: no further cut lowers the cost), at most 1 deep" in out
    assert main(["fit", "t.csv", "-k", "2", "--leaves", "2"]) == 0
    assert "asked for" not in capsys.readouterr().out


def test_fit_tells_of_a_column_that_outweighs_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = points().select((pl.col("x") * 1000).alias("grams"), "y")
    wide.write_csv("wide.csv")
    hint = (
        "treeclust: warning: Column 'grams' has 99.9 % of the variance and decides almost alone "
        "what is similar. Use --scale standard to let all columns count alike, or --unit 'grams'=1 "
        "if this is meant.\n"
    )

    def remarks(*options: str) -> str:
        assert main(["fit", "wide.csv", "-k", "3", *options]) == 0
        return capsys.readouterr().err

    assert hint in remarks()
    for options in (
        ["--scale", "none"],
        ["--scale", "standard"],
        ["--unit", "grams=1"],
        ["--unit", "y=2", "--unit", "grams=1000"],
        ["--columns", "grams"],
        ["-q"],
    ):
        assert "warning" not in remarks(*options)
    assert main(["fit", "points.csv", "--columns", "x,y", "-k", "3"]) == 0
    assert "warning" not in capsys.readouterr().err
    wide.with_columns(pl.int_range(pl.len()).alias("gramsId")).write_csv("wide.csv")
    found = remarks("--scale", "robust")
    assert "Column 'gramsId' looks like an identifier" in found
    assert "leave it out with --drop." in found


def test_units_of_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-o", "m.json", "--force"]
    X = points().select("x", "y")
    for options, scale in (
        (["--scale", "robust"], "robust"),
        (["--unit", "x=2.5", "--unit", "y=1e3"], {"x": 2.5, "y": 1000.0}),
    ):
        assert main([*fit, *options]) == 0
        expected = tc.BestTree(3, scale=scale, random_state=0).fit(X)
        assert tc.load("m.json").tree_ == expected.tree_
        assert tc.load("m.json").scale == scale
    capsys.readouterr()
    for options, status, message in (
        (["--unit", "x"], 2, "--unit: must be a column, = and a number above 0"),
        (["--unit", "x=0"], 2, "must be a column, = and a number above 0"),
        (["--unit", "x=2", "--scale", "robust"], 2, "--unit does not go with --scale robust"),
        (["--unit", "z=2"], 3, "--unit: 'z' is not among the columns that are fitted"),
    ):
        try:
            found = main([*fit, *options])
        except SystemExit as stop:  # argparse's
            found = stop.code
        assert found == status
        assert message in capsys.readouterr().err


def test_commands_are_named_as_they_were_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin" / "treeclust"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    for started, path, name in (
        ("lib/treeclust_rs/__main__.py", "", "python3 -m treeclust_rs"),
        (str(program), str(program.parent), "treeclust"),
        (str(program), "", str(program)),
        ("pytest", "", "treeclust"),
    ):
        monkeypatch.setattr(sys, "argv", [started])
        monkeypatch.setenv("PATH", path)
        assert main([]) == 2
        assert f"(see {name} --help)" in capsys.readouterr().err


# ---- files that are written --------------------------------------------------------------------


def test_pictures_need_matplotlib_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        output, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    assert main([*FIT, "--plot", "tree.png"]) == 2
    assert "needs matplotlib: pip install treeclust_rs[plot]" in capsys.readouterr().err
    assert not Path("model.json").exists()
    assert main([*FIT, "--plot", "tree.dot"]) == 0


def test_a_file_is_replaced_whole_or_not_at_all(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out.csv").write_text("old")

    def half(frame: pl.DataFrame, file: BinaryIO, **_: object) -> None:
        file.write(b"half of ")
        raise OSError("No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", half)
    before = sorted(Path().iterdir())
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 4
    message = "treeclust: out.csv cannot be written: No space left on device\n"
    assert capsys.readouterr().err == message
    assert Path("out.csv").read_text() == "old"
    assert sorted(Path().iterdir()) == before


def test_interrupted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tc.BestTree, "fit", fit)
    assert main(FIT) == 130
    assert capsys.readouterr().err.endswith("treeclust: interrupted.\n")


# ---- as a process -------------------------------------------------------------------------------


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "treeclust_rs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


@pytest.mark.parametrize(
    "command", ["", "demo", "fit", "compare", "predict", "explain", "plot", "report", "info"]
)
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"] if command else ["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: treeclust {command}".rstrip())
    assert f"For example:\n  treeclust {command}" in out
    assert "exit status: 0 done; 2 the command line is wrong; 3 a table" in out


def test_version() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"treeclust {tc.__version__}\n")


def test_the_commands_of_the_demo_can_be_run(folder: Path) -> None:
    done = process("demo")
    assert done.returncode == 0, done.stderr
    python = Path(sys.executable).name
    fit, predict, explain = done.stdout.splitlines()[-3:]
    for line in (fit, predict, explain):
        assert line.startswith(f"  {python} -m treeclust_rs ")
    assert process(*explain.split()[3:]).returncode == 0


def test_process_writes_and_reports(folder: Path) -> None:
    done = process(*FIT)
    assert done.returncode == 0
    assert str(fitted().tree_) in done.stdout
    done = process("predict", "model.json", "none.csv")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "treeclust: none.csv: no such file.\n"


def test_a_reader_that_stops_early_is_no_error(model: Path) -> None:
    pl.concat([points()] * 200).write_csv("many.csv")
    command = [sys.executable, "-P", "-m", "treeclust_rs", "explain", "model.json", "many.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"    0  cluster ")
        running.stdout.close()
        assert running.stderr.read() == b""
