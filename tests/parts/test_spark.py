"""Fits on Spark: the same tree, with more partitions than slots, and whatever happens to them."""

import os
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest

import treeclust_rs as tc
from engine_cases import NAMES, example, labels_of, mixed_frame, mixed_model, model_of, same
from treeclust_rs.parts import Fit, on_spark

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install treeclust_rs[spark]")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip(
        "Java is not installed (Debian: apt install openjdk-17-jre)", allow_module_level=True
    )

from pyspark.sql import SparkSession, functions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Spark's own
]


@pytest.fixture(scope="module")
def spark():
    """A session with two slots; a task may be lost three times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        options = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "150",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.shuffle.partitions": "3",
            "spark.ui.enabled": "false",
        }
        builder = SparkSession.builder.master("local[2, 4]")
        session = builder.config(map=options).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def partitions_of(spark, frame, n_partitions=7):
    """Return a DataFrame in uneven partitions, one of them empty, that keeps its rows."""
    rows = spark.createDataFrame(frame).repartition(n_partitions)
    part = functions.spark_partition_id()
    return rows.filter((part != 2) & ((part != 3) | (rows[0] < 0.5))).persist()


def test_partitions_give_the_tree_of_memory_and_its_labels(spark):
    nw = pytest.importorskip("narwhals")
    X, centers = example()
    rows = partitions_of(spark, pd.DataFrame(X, columns=NAMES))
    sizes = rows.rdd.glom().map(len).collect()
    assert len(sizes) == 7 and sizes[2] == 0 and len(set(sizes)) > 2 and max(sizes) > 150
    found = tc.spark.fit(model_of(centers), rows)
    frame = rows.toPandas()
    same(found, model_of(centers).fit(frame))
    expected = found.predict(frame).tolist()
    assert len(set(expected)) > 1
    labelled = nw.from_native(rows).with_columns(found.to_narwhals()).to_native().toPandas()
    assert labelled["cluster"].tolist() == expected
    labelled = rows.mapInPandas(
        lambda frames: (frame.assign(cluster=found.predict(frame)) for frame in frames),
        "a double, b double, c double, d double, cluster long",
    ).toPandas()
    assert labelled["cluster"].tolist() == expected


def test_weights_are_a_column(spark):
    X, centers = example()
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.0], size=len(X))
    frame = pd.DataFrame(X, columns=NAMES).assign(w=weight)
    rows = partitions_of(spark, frame[["a", "w", "b", "c", "d"]])
    frame = rows.toPandas()
    expected = model_of(centers).fit(frame[NAMES], sample_weight=frame["w"].to_numpy())
    same(tc.spark.fit(model_of(centers), rows, sample_weight="w"), expected)


def test_files_need_not_be_held(spark, tmp_path):
    X, centers = example()
    frame = pd.DataFrame(X, columns=NAMES)
    spark.createDataFrame(frame).repartition(3).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows"))
    same(tc.spark.fit(model_of(centers), rows), model_of(centers).fit(rows.toPandas()))


def test_a_killed_worker_changes_nothing(spark, tmp_path, monkeypatch):
    X, centers = example()
    rows = partitions_of(spark, pd.DataFrame(X, columns=NAMES))
    answer, tell, killed = on_spark._answer, Fit.tell, tmp_path / "killed"
    (round_file := tmp_path / "round").write_text("0")

    def tell_and_count(fit, told):
        tell(fit, told)
        round_file.write_text(str(fit.n_rounds))

    def answer_or_die(question, batches, sample_weight):
        from pyspark import TaskContext

        is_chosen = TaskContext.get().partitionId() == 4 and round_file.read_text() == "5"
        if is_chosen and not killed.exists():
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return answer(question, batches, sample_weight)

    monkeypatch.setattr(Fit, "tell", tell_and_count)
    monkeypatch.setattr(on_spark, "_answer", answer_or_die)
    same(tc.spark.fit(model_of(centers), rows), model_of(centers).fit(rows.toPandas()))
    assert int(round_file.read_text()) > 5
    assert int(killed.read_text()) != os.getpid()


def test_rows_that_change_are_refused(spark):
    X, centers = example(600)

    def with_noise(frames):
        for frame in frames:
            number = int.from_bytes(os.urandom(8), "little")
            yield frame + np.random.default_rng(number).normal(size=frame.shape)

    rows = spark.createDataFrame(pd.DataFrame(X, columns=NAMES))
    noisy = rows.mapInPandas(with_noise, rows.schema)
    with pytest.raises(ValueError, match=r"has other rows than the first .* Persist the rows, or"):
        tc.spark.fit(model_of(centers), noisy)
    noisy = noisy.persist()
    found = tc.spark.fit(model_of(centers), noisy)
    same(found, model_of(centers).fit(noisy.toPandas()))


def test_tables_with_text_and_missing_cells_give_the_tree_of_memory(spark):
    rows = partitions_of(spark, mixed_frame())
    found = tc.spark.fit(mixed_model(), rows)
    same(found, mixed_model().fit(rows.toPandas()))


def test_a_column_of_labels_is_explained(spark):
    X, _ = example()
    rows = partitions_of(spark, pd.DataFrame(X, columns=NAMES).assign(label=labels_of(X)))
    frame = rows.toPandas()
    for make in (tc.IMM, tc.ExKMC):
        found = tc.spark.fit(make(), rows, reference="label")
        same(found, make(reference=frame["label"].to_numpy()).fit(frame[NAMES]))


def test_errors_are_those_of_other_engines(spark):
    X, centers = example(50)
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(TypeError, match=r"sdf must be a Spark DataFrame\. Got DataFrame instead"):
        tc.spark.fit(model_of(centers), frame)
    with pytest.raises(ValueError, match="sample_weight='w' is not a column of the rows"):
        tc.spark.fit(model_of(centers), spark.createDataFrame(frame), sample_weight="w")
    with pytest.raises(ValueError, match=r"column 'a' has \d+ inf"):
        tc.spark.fit(model_of(centers), spark.createDataFrame(frame.assign(a=np.inf)))
    with pytest.raises(ValueError, match="no rows"):
        tc.spark.fit(model_of(centers), spark.createDataFrame(frame).filter("a > 1000"))
    with pytest.raises(ValueError, match="no rows"):
        tc.spark.fit(model_of(centers), spark.createDataFrame(frame).filter("false"))
