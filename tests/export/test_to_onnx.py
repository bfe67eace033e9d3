"""Trees as ONNX models, run by onnxruntime."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris

import treeclust_rs as tc
from float32_trees import float32_rows, mixed_case, numeric_case, oblique_case
from mixed_trees import DAY, KINDS, LEVELS, NAMES, MixedBuilder, random_cells, random_tree
from sizes import repeats
from treeclust_rs.datasets import make_customers
from treeclust_rs.export import to_onnx
from treeclust_rs.tree import ClusterTree
from trees import NAN, Builder, balanced, chain

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install treeclust_rs[onnx]")
pytest.importorskip("onnxruntime")
from onnx_runs import feed_of, run_onnx  # noqa: E402

MANY = repeats(50, 1000)
DTYPES = ("float32", "float64")
IRIS = load_iris().data


# ---- the same labels ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(MANY))
def test_numeric_trees(seed: int) -> None:
    tree, rows = numeric_case(seed)
    for dtype in DTYPES:
        model = to_onnx(tree, dtype=dtype)
        onnx.checker.check_model(model, full_check=True)
        assert run_onnx(model, rows).tolist() == tree.predict(rows).tolist()


@pytest.mark.parametrize("seed", range(MANY))
def test_float64_is_exact_for_all_rows(seed: int) -> None:
    tree, rows = numeric_case(seed)
    rng = np.random.default_rng(seed)
    ends = np.concatenate([tree.threshold, tree.lower, tree.upper])
    ends = ends[np.isfinite(ends)]
    beside = np.concatenate([ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)])
    exact = rng.choice([*beside, 5e-324, 1.7e308, -1.7e308], rows.shape)
    assert run_onnx(to_onnx(tree, dtype="float64"), exact).tolist() == tree.predict(exact).tolist()


@pytest.mark.parametrize("seed", range(MANY))
def test_mixed_trees(seed: int) -> None:
    tree, cells, frame = mixed_case(seed)
    for dtype in DTYPES:
        model = to_onnx(tree, dtype=dtype)
        onnx.checker.check_model(model, full_check=True)
        assert run_onnx(model, frame).tolist() == tree.predict(cells).tolist()


@pytest.mark.parametrize("seed", range(MANY))
def test_sums_are_added_as_in_predict(seed: int) -> None:
    tree, rows = oblique_case(seed)
    assert run_onnx(to_onnx(tree), rows).tolist() == tree.predict(rows).tolist()
    exact = rows + np.random.default_rng(seed).normal(size=rows.shape)
    assert run_onnx(to_onnx(tree, dtype="float64"), exact).tolist() == tree.predict(exact).tolist()


def test_sums_beside_times() -> None:
    cells = random_cells(np.random.default_rng(0), 80, gaps=False)
    builder = MixedBuilder(cells, np.arange(80) % 3)
    left = builder.test(0, 4, at_most=19_800 * DAY)
    builder.oblique(left, {0: 1.0, 1: -0.1}, 1.5)
    builder.oblique(left + 1, {1: 1.0, 5: -1e-14}, -5.0)
    tree = builder.tree(missing_go_to_left=None, has_missing=None)
    frame = pl.DataFrame(
        {
            "income": cells[:, 0],
            "age": cells[:, 1],
            "signup": pl.Series((cells[:, 4] / DAY).astype(np.int32)).cast(pl.Date),
            "seen": pl.Series(cells[:, 5].astype(np.int64)).cast(pl.Datetime("us", "UTC")),
        }
    )
    for dtype in DTYPES:
        assert run_onnx(to_onnx(tree, dtype=dtype), frame).tolist() == tree.predict(cells).tolist()


@pytest.mark.parametrize(
    "model",
    [
        tc.BestTree(4, max_leaves=7, effort="quick", random_state=0),
        tc.ExKMC(4, max_leaves=8, cuts="interval", random_state=0),
        tc.Kauri(4, max_leaves=7),
        tc.ObliqueTree(3, max_depth=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_have_the_method(model: Any) -> None:
    rows = IRIS.astype(np.float32)
    model = model.fit(rows, feature_names=["a", "b", "cluster", "X"])
    model = model.rename_clusters({0: "größe", 1: "b", 2: ""})
    for dtype in DTYPES:
        found = model.to_onnx(dtype=dtype)
        assert run_onnx(found, rows).tolist() == model.predict(rows).tolist()
    (names,) = found.metadata_props
    assert (names.key, json.loads(names.value)) == ("feature_names", ["a", "b", "cluster", "X"])


def test_a_table_as_people_have_it() -> None:
    table = (
        make_customers(3_000).drop("customer_id").with_columns(pl.col(pl.Float64).cast(pl.Float32))
    )
    for model in (
        tc.BestTree(6, max_leaves=12, effort="quick", scale="standard", random_state=0),
        tc.ExKMC(6, max_leaves=12, scale="standard", random_state=0),
    ):
        labels = model.fit(table).predict(table)
        assert run_onnx(model.to_onnx(), table).tolist() == labels.tolist()


# ---- inputs and output ----------------------------------------------------------------------


def session_of(model: Any) -> Any:
    from onnxruntime import InferenceSession

    return InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_columns_are_inputs_of_their_names_and_types() -> None:
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 60), np.arange(60) % 3)
    left = builder.test(0, 2, codes=[2, 3], missing_left=True)
    builder.test(left, 0, at_most=1)
    builder.test(left + 1, 3, codes=[1])
    builder.test(left + 2, 5)
    session = session_of(to_onnx(builder.tree()))
    assert [(given.name, given.type, given.shape) for given in session.get_inputs()] == [
        ("income", "tensor(float)", ["n", 1]),
        ("region", "tensor(string)", ["n", 1]),
        ("newsletter", "tensor(string)", ["n", 1]),
        ("seen", "tensor(double)", ["n", 1]),
    ]
    (output,) = session.get_outputs()
    assert (output.name, output.type, output.shape) == ("cluster", "tensor(int64)", ["n"])


def test_any_names_of_columns_can_be_inputs() -> None:
    names = ["cluster", "", "Cast", 'a "b"', "größe", "select * from x", "<script>", "a\x00b"]
    for seed in range(6):
        tree, cells = random_tree(seed), random_cells(np.random.default_rng(seed), 60)
        cells = cells[~np.isnan(cells).any(axis=1)]
        odd = ClusterTree(**tree.arguments() | {"feature_names": names})
        session = session_of(to_onnx(odd))
        feed = {}
        for given in session.get_inputs():
            feature = [*names, "_"].index(given.name)
            feature = 1 if feature == 8 else feature
            column = cells[:, feature : feature + 1]
            if LEVELS[feature] is not None:
                levels = np.array(LEVELS[feature], dtype=object)
                column = levels[column.astype(int)]
            elif KINDS[feature] == "number":
                column = column.astype(np.float32)
            feed[given.name] = column
        assert session.run(None, feed)[0].tolist() == tree.predict(cells).tolist()
        assert session.get_outputs()[0].name == (
            "cluster_" if 0 in tree.tested_features else "cluster"
        )


def test_levels_that_look_alike() -> None:
    levels = ("", " ", "A", "a", "a ", "a\x00", "ä", "NaN", "null", *map(str, range(246)))
    assert len(levels) == 255
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    left = builder.test(0, 2, codes=range(0, 255, 2))
    builder.test(left, 2, codes=[0, 3, 5], missing_left=True)
    tree = builder.tree(levels=(None, None, levels, ("false", "true"), *[None] * 4))
    cells = np.full((256, 8), NAN)
    cells[:255, 2] = np.arange(255)
    frame = pl.DataFrame({"region": [*levels, None]})
    assert run_onnx(to_onnx(tree), frame).tolist() == tree.predict(cells).tolist()


def test_a_single_leaf() -> None:
    leaf = Builder(np.zeros((3, 2)), [0, 0, 0]).tree(classes=["all"])
    assert run_onnx(to_onnx(leaf), np.zeros((4, 2))).tolist() == ["all"] * 4
    mixed = MixedBuilder(random_cells(np.random.default_rng(0), 5), np.zeros(5, dtype=int)).tree()
    frame = pl.DataFrame({name: [1.0, 2.0] for name in NAMES})
    assert run_onnx(to_onnx(mixed), frame).tolist() == [0, 0]


def test_no_rows() -> None:
    tree, rows = numeric_case(3)
    assert run_onnx(to_onnx(tree), rows[:0]).tolist() == []


def test_old_runtimes_can_read_it() -> None:
    model = to_onnx(numeric_case(3)[0])
    assert model.ir_version == 8
    assert {o.domain: o.version for o in model.opset_import} == {"": 15, "ai.onnx.ml": 3}


# ---- what cannot be -------------------------------------------------------------------------


def beside(threshold: float, below: float, above: float) -> ClusterTree:
    builder = Builder(np.array([[below], [above]]), [0, 1])
    builder.split(0, 0, threshold)
    return builder.tree(below=[below, NAN, NAN], above=[above, NAN, NAN])


def test_values_that_float32_moves_across_a_threshold_are_named() -> None:
    tree = beside(16_777_216.5, 16_777_216.0, 16_777_217.0)
    with pytest.raises(ValueError, match=r"Node 0 .* the ONNX model compares in float32.*float64"):
        to_onnx(tree)
    rows = np.array([[16_777_216.0], [16_777_217.0]])
    assert run_onnx(to_onnx(tree, dtype="float64"), rows).tolist() == [0, 1]


def test_what_is_not_refused_is_exact_on_rows_of_the_fit() -> None:
    refused = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values = rng.choice([0.1, 1.0, 1e7, 1e9]) + rng.normal(size=2) * 10.0 ** -(seed % 10)
        below, above = np.sort(values).tolist()
        if below == above:
            continue
        cut = below + (above - below) * float(rng.random())
        tree = beside(cut if cut < above else below, below, above)
        labels = (np.float32(values) > tree.threshold[0]).astype(int).tolist()
        if labels == tree.predict(values[:, np.newaxis]).tolist():
            assert run_onnx(to_onnx(tree), values[:, np.newaxis]).tolist() == labels
            continue
        refused += 1
        with pytest.raises(ValueError, match="float32"):
            to_onnx(tree)
    assert 20 < refused < 150


def test_trees_too_large_are_refused_with_their_size() -> None:
    assert len(run_onnx(to_onnx(chain(401)), np.zeros((2, 5)))) == 2
    with pytest.raises(
        ValueError, match="depth 401 with 402 leaves is too large for an ONNX model"
    ):
        to_onnx(chain(402))
    rows = float32_rows(
        tree := balanced(1024),
        np.random.default_rng(0).random((500, 5)),
        np.random.default_rng(1),
        gaps=False,
    )
    assert run_onnx(to_onnx(tree), rows).tolist() == tree.predict(rows).tolist()


def test_the_deepest_tree_loads_in_a_thread_with_a_small_stack() -> None:
    code = (
        "import sys, threading, numpy as np\n"
        "sys.path.insert(0, 'tests')\n"
        "from onnx_runs import run_onnx\n"
        "from trees import chain\n"
        "from treeclust_rs.export import to_onnx\n"
        "model = to_onnx(chain(401))\n"
        "threading.stack_size(512 * 1024)\n"
        "thread = threading.Thread(target=run_onnx, args=(model, np.zeros((2, 5))))\n"
        "thread.start()\n"
        "thread.join()\n"
        "print('loaded')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "loaded\n"


def test_too_many_terms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    import treeclust_rs.export.onnx as module

    monkeypatch.setattr(module, "_MAX_TERMS", 10)
    builder = Builder(np.random.default_rng(0).normal(size=(50, 6)), np.arange(50) % 2)
    left = builder.oblique(0, dict.fromkeys(range(6), 1.0))
    to_onnx(builder.tree())
    builder.oblique(left, {0: 1.0})
    with pytest.raises(ValueError, match=r"2 tests on sums of up to 6 terms is too large .* 10 as"):
        to_onnx(builder.tree())


def test_other_types_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"dtype must be 'float32' or 'float64'\. Got 'f4' instead"
    ):
        to_onnx(numeric_case(0)[0], dtype="f4")
    with pytest.raises(TypeError, match="Douglas has no tree"):
        to_onnx(tc.Douglas(2, max_iter=2, random_state=0).fit(IRIS))


def test_onnx_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"to_onnx needs onnx: pip install treeclust_rs\[onnx\]"):
        to_onnx(numeric_case(0)[0])


def test_neither_is_imported_with_the_package() -> None:
    code = (
        "import sys, treeclust_rs as tc\n"
        "assert not {'onnx', 'sklearn.tree', 'sklearn.pipeline'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_share_a_model() -> None:
    tree, rows = numeric_case(4)
    session = session_of(to_onnx(tree))
    feed, expected, found = feed_of(session, rows), tree.predict(rows).tolist(), []
    threads = [
        threading.Thread(target=lambda: found.append(session.run(None, feed)[0].tolist()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
