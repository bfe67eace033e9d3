"""Damaged model files of one estimator, loaded and used in a process whose memory is limited."""

from __future__ import annotations

import faulthandler
import json
import resource
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

import treeclust_rs as tc
from every_estimator import ESTIMATORS
from mutations import Mutants, move_entries, mutate, rearrange

SPARE_BYTES = 2**30  # beyond what the process has when it begins
SECONDS = 20  # of one file


def models(name: str) -> Iterator[object]:
    """Fit small models: on a frame in units, on an array, and on words where it explains them."""
    case = ESTIMATORS[name]
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 8)
    X = np.round(codes[:, None] * [4.0, -3.0] + rng.normal(size=(24, 2)), 1)
    if name == "KernelKMeans":
        yield from kernel_clusterings(X)
        return
    yield case.make(2, scale="standard", n_jobs=1).fit(pl.DataFrame(X, schema=["a", "b c"]))
    yield case.make(3, n_jobs=1).fit(X)
    words = {"reference": np.array(["p", "q", "r"])[codes]} if case.explains else {}
    yield case.make(3, n_jobs=1, **words).fit(np.column_stack([X, codes]))


def kernel_clusterings(X: np.ndarray) -> Iterator[object]:
    """Fit kernel k-means in each of the forms that a file may hold."""
    frame, weight = pl.DataFrame(X, schema=["a", "b c"]), np.linspace(0.0, 2.0, len(X))
    for options in (
        {},
        {"kernel": "epsilon", "kernel_params": {"epsilon": 2.0}},
        {"kernel": "linear"},
        {"kernel": "cosine"},
        {"approximation": "rff", "n_components": 5},
        {"approximation": "nystroem", "n_components": 5},
        {"kernel": "polynomial", "approximation": "rpcholesky", "n_components": 5},
    ):
        model = tc.KernelKMeans(3, n_init=1, random_state=0, n_jobs=1, **options)
        with warnings.catch_warnings(action="ignore"):  # epsilon is not positive semidefinite
            yield model.fit(frame, sample_weight=weight)


def use_clustering(model: tc.KernelKMeans, rows: np.ndarray | pl.DataFrame, path: Path) -> None:
    """Do with a clustering what people do with it; far rows may be refused."""

    def told(model: tc.KernelKMeans) -> list[tuple[int, float] | str]:
        found: list[tuple[int, float] | str] = []
        for place in range(len(rows)):
            try:
                row = rows[place : place + 1]
                found.append((int(model.predict(row)[0]), model.score(row)))
            except ValueError as error:
                if "overflow float64" not in str(error):
                    raise
                found.append(str(error))
        return found

    results = told(model)
    assert all(isinstance(r, str) or 0 <= r[0] < model.n_clusters_ for r in results)
    assert all(isinstance(r, str) or np.isfinite(r[1]) for r in results)
    assert repr(model) and model._repr_html_()
    model.save(path, rows=True)
    again = tc.load(path)
    assert told(again) == results
    assert again.get_params() == model.get_params()


def use(model: object, path: Path) -> None:
    """Do with a model what people do with it; everything must work."""
    # Every thread reserves addresses, which the limit counts, and a file may ask for a thousand.
    model.n_jobs = 1
    rows = np.array([[0.0], [-1e300], [3.5]]).repeat(model.n_features_in_, axis=1)
    has_names = hasattr(model, "feature_names_in_")
    names = model.feature_names_in_.tolist() if has_names else range(model.n_features_in_)
    # The names that `to_polars` gives columns without names.
    frame = pl.DataFrame({name if has_names else f"x{name}": rows[:, 0] for name in names})
    rows = frame if has_names else rows
    if isinstance(model, tc.KernelKMeans):
        use_clustering(model, rows, path)
        return
    labels = model.predict(rows).tolist()
    assert set(labels) <= set(model.classes_.tolist())
    try:
        lines = model.explain(rows)
        assert len(lines) == 3 and all(isinstance(line, str) for line in lines)
    except ValueError as error:
        if "overflows float64" not in str(error):  # a weight of 1e308
            raise
    found = frame.select(model.to_polars().alias("cluster"))["cluster"].to_list()
    # Douglas' rules may differ from its model, from which they were made.
    assert found == labels if hasattr(model, "tree_") else set(found) <= set(model.classes_)
    assert repr(model)
    if hasattr(model, "tree_"):
        assert str(model.tree_) and model.tree_._repr_html_() and model.to_graphviz()
        assert model.tree_.rules().height == model.n_leaves_
    else:
        assert str(model.table_)
        assert model.rules().height == len(model.table_.occupied)
        assert np.isfinite(model.predict_proba(rows)).all()
    if hasattr(model, "truncate"):
        assert model.truncate(max(model.tree_.n_base_leaves, 1)).predict(rows).shape == (3,)
    model.save(path)
    again = tc.load(path)
    assert again.predict(rows).tolist() == labels
    assert again.get_params().keys() == model.get_params().keys()


def fuzz(name: str, n_files: int, seed: int = 1) -> None:
    """Load damaged files; print how many loaded, and the length of the longest message."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path, other = Path(folder, "model.json"), Path(folder, "again.json")
        sources = []
        for model in models(name):
            model.save(path, **ESTIMATORS[name].saving)
            sources.append(path.read_text("utf-8"))
            use(tc.load(path), other)
        status = Path("/proc/self/status").read_text().split()
        held = 1024 * int(status[status.index("VmSize:") + 1])
        resource.setrlimit(resource.RLIMIT_AS, (held + SPARE_BYTES, held + SPARE_BYTES))

        def load(text: str) -> object:
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            path.write_text(text, "utf-8", errors="surrogatepass")
            # Kept for whoever looks for the file that an error below came of.
            try:
                return tc.load(path)
            except ValueError as error:
                if not str(error).startswith(f"{path}: "):
                    raise RuntimeError("The message does not name the file.") from error
                raise

        mutants = Mutants(sources, seed, (mutate, move_entries, rearrange), load)
        for number, _, model in mutants.first(n_files):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    use(model, other)
            except Exception as error:
                error.add_note(f"File {number} of {name}: {path.read_text('utf-8')[:20_000]}")
                raise
        faulthandler.cancel_dump_traceback_later()
    print(json.dumps([mutants.n_loaded, mutants.longest_message]))
