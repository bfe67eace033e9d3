"""Fits on Ray: the same tree, whatever happens to the workers."""

import os
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import treeclust_rs as tc
from engine_cases import NAMES, example, labels_of, mixed_frame, mixed_model, model_of, same
from treeclust_rs.parts import Fit, on_ray

ray = pytest.importorskip("ray", reason="ray is not installed: pip install treeclust_rs[ray]")
pytest.importorskip("ray.data", reason="ray.data is not installed: pip install treeclust_rs[ray]")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray's own
]


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=200 * 1024 * 1024,
        )
        yield
        ray.shutdown()


def blocks_of(frame, n_blocks=11):
    """Return a dataset of uneven blocks, the second of them empty."""
    ends = np.linspace(0, len(frame), n_blocks).astype(int)
    ends = [0, *ends[1:2], *ends[1:]]
    return ray.data.from_pandas([frame[a:b] for a, b in pairwise(ends)])


def test_blocks_give_the_tree_of_memory_and_its_labels():
    X, centers = example()
    frame = pd.DataFrame(X, columns=NAMES)
    rows = blocks_of(frame)
    found = tc.ray.fit(model_of(centers), rows)
    same(found, model_of(centers).fit(frame))
    labelled = rows.map_batches(
        lambda frame: frame.assign(cluster=found.predict(frame)), batch_format="pandas"
    ).to_pandas()
    labelled = labelled.set_index(NAMES).loc[list(map(tuple, X))]  # in whatever order they come
    np.testing.assert_array_equal(labelled["cluster"], found.predict(frame))


def test_weights_are_a_column_also_beside_blocks_without_columns():
    X, centers = example()
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.0], size=len(X))
    frame = pd.DataFrame(X, columns=NAMES).assign(w=weight)
    expected = model_of(centers).fit(frame[NAMES], sample_weight=weight)
    same(
        tc.ray.fit(model_of(centers), blocks_of(frame[["w", *NAMES]]), sample_weight="w"), expected
    )
    rows = blocks_of(frame.assign(kept=1.0)).union(blocks_of(frame.assign(kept=0.0)))
    kept = rows.filter(lambda row: row["kept"] > 0).drop_columns(["kept"]).materialize()
    blocks = ray.get(kept.to_arrow_refs())
    assert any(len(block) == 0 and not block.column_names for block in blocks)
    in_order = pd.concat([block.to_pandas() for block in blocks if len(block)])
    expected = model_of(centers).fit(in_order[NAMES], sample_weight=in_order["w"].to_numpy())
    same(tc.ray.fit(model_of(centers), kept, sample_weight="w"), expected)


def test_a_dataset_is_executed_once(tmp_path):
    X, centers = example(600)

    def with_noise(frame):
        number = int.from_bytes(os.urandom(8), "little")
        frame = frame + np.random.default_rng(number).normal(size=frame.shape)
        frame.to_pickle(tmp_path / f"{number}.pickle")
        return frame

    rows = blocks_of(pd.DataFrame(X, columns=NAMES), 4)
    rows = rows.map_batches(with_noise, batch_format="pandas", batch_size=None)
    found = tc.ray.fit(model_of(centers), rows)
    read = pd.concat([pd.read_pickle(path) for path in tmp_path.iterdir()])
    assert len(read) == len(X)
    # Rows of up to 1,001 count in any order.
    expected = model_of(centers).fit(read)
    assert found.tree_.threshold.tolist() == expected.tree_.threshold.tolist()


def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch):
    X, centers = example(20_000)
    frame = pd.DataFrame(X, columns=NAMES)
    answer, tell, killed = on_ray._answer, Fit.tell, tmp_path / "killed"
    (round_file := tmp_path / "round").write_text("0")

    def tell_and_count(fit, told):
        tell(fit, told)
        round_file.write_text(str(fit.n_rounds))

    def answer_or_die(question, block, part_id, sample_weight):
        if part_id == 3 and round_file.read_text() == "5" and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return answer(question, block, part_id, sample_weight)

    monkeypatch.setattr(Fit, "tell", tell_and_count)
    monkeypatch.setattr(on_ray, "_answer", answer_or_die)
    same(tc.ray.fit(model_of(centers), blocks_of(frame, 6)), model_of(centers).fit(frame))
    assert int(round_file.read_text()) > 5
    assert int(killed.read_text()) != os.getpid()


def test_tables_with_text_and_missing_cells_give_the_tree_of_memory():
    frame = mixed_frame()
    found = tc.ray.fit(mixed_model(), blocks_of(frame))
    same(found, mixed_model().fit(frame))


def test_a_column_of_labels_is_explained():
    X, _ = example()
    frame = pd.DataFrame(X, columns=NAMES)
    labels = labels_of(X)
    for make in (tc.IMM, tc.ExKMC):
        found = tc.ray.fit(make(), blocks_of(frame.assign(label=labels)), reference="label")
        same(found, make(reference=labels).fit(frame))


def test_errors_are_those_of_other_engines():
    X, centers = example(50)
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(TypeError, match=r"dataset must be a Ray dataset\. Got DataFrame instead"):
        tc.ray.fit(model_of(centers), frame)
    with pytest.raises(ValueError, match="sample_weight='w' is not a column of the rows"):
        tc.ray.fit(model_of(centers), blocks_of(frame), sample_weight="w")
    with pytest.raises(ValueError, match=r"column 'a' has \d+ inf"):
        tc.ray.fit(model_of(centers), blocks_of(frame.assign(a=np.inf), 3))
    with pytest.raises(ValueError, match="no rows"):
        tc.ray.fit(model_of(centers), blocks_of(frame[:0], 3))
    with pytest.raises(ValueError, match="reference has 4 columns, but X has 3"):
        tc.ray.fit(model_of(centers), blocks_of(frame.drop(columns="a"), 3))
