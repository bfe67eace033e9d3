"""Fits on Dask: the same tree, whatever happens to the workers."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import treeclust_rs as tc
from engine_cases import example, model_of, same
from treeclust_rs.parts import Fit

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own


def test_frames_and_arrays_give_the_tree_of_memory():
    X, centers = example()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    rows = dd.from_pandas(frame, npartitions=7, sort=False)
    with dask.config.set(scheduler="threads"):
        found = tc.dask.fit(model_of(centers), rows)
        same(found, model_of(centers).fit(frame))
        labels = rows.map_partitions(found.predict, meta=np.empty(0, dtype=np.int64)).compute()
        np.testing.assert_array_equal(np.asarray(labels), found.predict(frame))
        blocks = da.from_array(X, chunks=(900, 3))
        same(tc.dask.fit(model_of(centers), blocks), model_of(centers).fit(X))
        weight = np.random.default_rng(2).choice([0.0, 1.0, 2.0], size=len(X))
        weighted = dd.from_pandas(frame.assign(w=weight), npartitions=3, sort=False)
        found = tc.dask.fit(model_of(centers), weighted, sample_weight="w")
        same(found, model_of(centers).fit(frame, sample_weight=weight))


def test_intervals_are_those_of_memory():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 4)).round(1)
    X[rng.random(X.shape) < 0.05] = np.nan
    centers = np.outer([-1.0, 0.0, 1.0], [1.0, 0.3, 0.1, 0.0])
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    options = {"base_tree": None, "cuts": "interval", "max_leaves": 15, "reference": centers}
    expected = tc.ExKMC(**options).fit(frame)
    assert (expected.tree_.kind == 2).any()
    rows = dd.from_pandas(frame, npartitions=5, sort=False)
    with dask.config.set(scheduler="threads"):
        same(tc.dask.fit(tc.ExKMC(**options), rows), expected)


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
def test_mixed_frames_give_the_tree_of_memory(criterion):
    rng = np.random.default_rng(4)
    group = rng.integers(0, 3, size=400)
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.random(400) < 0.2, np.nan, group + rng.normal(size=400)),
            "region": np.array(["north", "south", "east"], dtype=object)[group],
            "size": pd.Categorical(
                np.array(["s", "m", "l"])[(group + (rng.random(400) < 0.3)) % 3]
            ),
            "member": group > 1,
            "seen": pd.Timestamp("2024-01-01", tz="Europe/Berlin")
            + pd.to_timedelta(group * 100 + rng.integers(0, 90, size=400), unit="D"),
        }
    )
    frame.loc[5:9, "region"] = None
    frame["w"] = rng.choice([0.0, 1.0, 2.0], size=400)
    rows = dd.from_pandas(frame, npartitions=5, sort=False)
    options = {"base_tree": None, "max_leaves": 7, "scale": "standard", "random_state": 0}
    options["criterion"] = criterion
    expected = tc.ExKMC(3, **options).fit(frame.drop(columns="w"), sample_weight=frame["w"])
    with dask.config.set(scheduler="threads"):
        same(tc.dask.fit(tc.ExKMC(3, **options), rows, sample_weight="w"), expected)


def test_what_is_no_collection_is_refused():
    X, centers = example(50)
    with pytest.raises(TypeError, match=r"rows must be a Dask DataFrame or Array\. Got ndarray"):
        tc.dask.fit(model_of(centers), X)
    with pytest.raises(ValueError, match="sample_weight='w' is not a column"):
        tc.dask.fit(model_of(centers), da.from_array(X, chunks=25), sample_weight="w")


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(monkeypatch):
    distributed = pytest.importorskip("distributed")
    X, centers = example(20_000)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    expected = model_of(centers).fit(frame)
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        rows = dd.from_pandas(frame, npartitions=6, sort=False)
        same(tc.dask.fit(model_of(centers), rows), expected)
        killed = []
        tell = Fit.tell

        def tell_and_kill(fit, answer):
            tell(fit, answer)
            if fit.n_rounds == 5:
                process_ids = list(client.run(os.getpid).values())
                killed.append(process_ids[0])
                os.kill(process_ids[0], signal.SIGKILL)

        monkeypatch.setattr(Fit, "tell", tell_and_kill)
        same(tc.dask.fit(model_of(centers), rows), expected)
        assert len(killed) == 1


@pytest.mark.slow
def test_when_all_workers_die_dask_says_so(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, centers = example(2_000)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = model_of(centers).fit(frame[:500])
    before = model.to_json()
    is_deadly = tmp_path / "now"

    def read(part):
        if is_deadly.exists():
            os._exit(1)
        return part

    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        rows = dd.from_pandas(frame, npartitions=6, sort=False)
        rows = rows.map_partitions(read, meta=frame.iloc[:0])
        tc.dask.fit(model_of(centers), rows)
        is_deadly.touch()
        with pytest.raises(distributed.KilledWorker):
            tc.dask.fit(model, rows)
    assert model.to_json() == before
