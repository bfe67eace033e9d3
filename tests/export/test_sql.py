"""SQL of trees: run in databases, and parsed for those that are not here."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import treeclust_rs as tc
from databases import NUMBER, TABLE, DuckDB, SQLite, ordered, postgres_server, quoted
from export_cases import EXTREMES, random_case
from mixed_trees import MixedBuilder, frame_of, random_cells
from sizes import repeats
from treeclust_rs.export import to_sql
from treeclust_rs.export.sql import DIALECTS, _fraction
from treeclust_rs.tree import ClusterTree
from trees import Builder, balanced, chain


@pytest.fixture(scope="module")
def duckdb():
    pytest.importorskip("duckdb")
    return DuckDB()


@pytest.fixture(scope="module")
def sqlite():
    return SQLite()


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def database(request):
    return request.getfixturevalue(request.param)


def clusters(database, tree, frame):
    database.load(frame)
    return database.run(ordered(to_sql(tree, database.dialect, TABLE)))


def frame_named(tree: ClusterTree, X: np.ndarray) -> pl.DataFrame:
    names = tree.feature_names or [f"x{j}" for j in range(X.shape[1])]
    return pl.DataFrame(X, schema=list(names))


# ---- agreement with predict -----------------------------------------------------------------


def test_random_models_agree_with_predict(database):
    for seed in range(repeats(50, 1000)):
        tree, frame, labels = random_case(seed)
        assert clusters(database, tree, frame) == labels, f"seed {seed}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_100_000_rows_agree_with_predict(database, seed):
    tree, frame, labels = random_case(seed, 100_000)
    assert clusters(database, tree, frame) == labels


def test_expressions_need_no_table(database):
    tree, frame, labels = random_case(3)
    database.load(frame)
    path = ".".join(map(quoted, TABLE))
    query = f"SELECT {to_sql(tree, database.dialect)} AS cluster, {quoted(NUMBER)} FROM {path}"
    assert database.run(ordered(query)) == labels
    assert "SELECT" not in to_sql(tree, database.dialect)


def test_the_whole_table_is_kept(duckdb):
    tree, frame, _ = random_case(3)
    duckdb.load(frame)
    columns = duckdb.connection.sql(to_sql(tree, "duckdb", TABLE)).columns
    assert columns == [NUMBER, *frame.columns, "cluster"]


def test_integers_and_decimals_are_compared_as_floats(database):
    # Beyond 2**53 not all integers are floats; exactly compared, the last would go right.
    builder = Builder(np.array([[0.0], [2.0**53], [2.0**54]]), [0, 1, 2])
    builder.split(0, 0, 2.0**53)
    whole = pl.DataFrame({"x0": [0, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2]})
    tree = builder.tree()
    assert clusters(database, tree, whole) == tree.predict(whole.to_numpy()).tolist()


def test_sums_are_added_in_the_order_of_predict(database):
    # The last bits of 1e17 swallow a 3 that comes first.
    X = np.array([[3.0, 1.0], [0.0, 1.0], [-3.0, 1.0]])
    for bias in (1e17, -1e17):
        builder = Builder(X, [0, 1, 1])
        builder.oblique(0, {0: 1.0, 1: -bias}, bias)
        tree = builder.tree()
        assert clusters(database, tree, frame_named(tree, X)) == tree.predict(X).tolist()


def test_sums_that_overflow(database):
    X = np.array([[1e308, 1e308], [-1e308, 1e308], [1.0, 2.0]])
    builder = Builder(X, [0, 1, 1])
    builder.oblique(0, {0: 4.0, 1: -4.0}, 0.0)
    tree = builder.tree()
    if database.dialect == "postgres":
        with pytest.raises(RuntimeError, match="value out of range: overflow"):
            clusters(database, tree, frame_named(tree, X))
    else:
        assert clusters(database, tree, frame_named(tree, X)) == tree.predict(X).tolist()


def test_levels_are_told_apart_in_columns_that_ignore_case(duckdb, sqlite):
    builder = MixedBuilder(random_cells(np.random.default_rng(1), 60), np.arange(60) % 3)
    builder.test(0, 2, codes=[4])  # north
    tree = builder.tree()
    tree = ClusterTree(**tree.arguments() | {"classes": ["in", "out", "z"]})
    left = {tree.classes[tree.leaf_clusters[1]]}
    for database in (duckdb, sqlite):
        database.run("DROP TABLE IF EXISTS places")
        database.run("CREATE TABLE places (region TEXT COLLATE NOCASE)")
        database.run("INSERT INTO places VALUES ('north'), ('North')")
        query = to_sql(tree, database.dialect, "places")
        found = database.run(f"SELECT cluster FROM ({query}) AS q")
        assert found[0] in left and found[1] not in left


def test_times_in_sqlite_are_read_in_all_iso_forms(sqlite):
    noon = 1_710_763_200_000_000  # 2024-03-18 12:00 UTC
    cells = random_cells(np.random.default_rng(1), 60)
    texts = {
        "2024-03-18 12:00:00": noon,
        "2024-03-18T12:00:00Z": noon,
        "2024-03-18 12:00": noon,
        "2024-03-18 13:00:00+01:00": noon,
        "2024-03-18T13:00:00.000001+01:00": noon + 1,
        "2024-03-18T12:00:00.000000+0000": noon,  # as polars writes text files
        "2024-03-18 13:00:00.25 +01:00": noon + 250_000,
        "2024-03-18 17:30:00 +0530": noon,
        "2024-03-18T08:30:00.5-0330": noon + 500_000,
        "2024-03-18 11:59:59.999999": noon - 1,
        "2024-03-18 11:59:59.9999999": noon - 1,  # nanoseconds are floored
        "2024-03-18 12:00:00.5": noon + 500_000,
        "2024-03-18": noon - 43_200_000_000,
    }
    sqlite.run("DROP TABLE IF EXISTS times")
    sqlite.run("CREATE TABLE times (seen, made)")
    sqlite.connection.executemany("INSERT INTO times VALUES (?, ?)", [(t, t) for t in texts])
    for feature in (5, 7):
        for threshold in (noon - 1, noon, noon + 1):
            builder = MixedBuilder(cells, np.arange(60) % 3)
            builder.test(0, feature, at_most=threshold)
            tree = builder.tree(classes=["left", "right", "other"])
            arguments = tree.arguments() | {"cluster": np.array([0, 0, 1])}
            tree = ClusterTree(**arguments)
            found = sqlite.run(f"SELECT cluster FROM ({to_sql(tree, 'sqlite', 'times')})")
            sides = ["left" if time <= threshold else "right" for time in texts.values()]
            assert found == sides


def test_tables_imported_as_text_agree_with_predict_in_sqlite(sqlite):
    """All cells are text, as its import of a text file leaves them: missing ones are empty."""
    for seed in range(3, repeats(80, 800), 4):
        tree, frame, labels = random_case(seed)
        written = frame.with_columns(
            cs.string().fill_null("unknown"),  # one of the levels is the empty text
            cs.float().fill_nan(None),
            cs.datetime(time_zone="*").dt.convert_time_zone("UTC"),
            cs.duration().dt.total_microseconds(),
        )
        text = io.StringIO(written.write_csv())
        rows = [[str(number), *row] for number, row in enumerate(csv.reader(text), -1)]
        path, names = ".".join(map(quoted, TABLE)), [NUMBER, *rows[0][1:]]
        sqlite.run(f"DROP TABLE IF EXISTS {path}")
        # The number of a row has a type, so that rows come in order.
        columns = [f"{quoted(name)} {'INTEGER' if name == NUMBER else 'TEXT'}" for name in names]
        sqlite.run(f"CREATE TABLE {path} ({', '.join(columns)})")
        marks = ", ".join("?" * len(names))
        sqlite.connection.executemany(f"INSERT INTO {path} VALUES ({marks})", rows[1:])
        assert sqlite.run(ordered(to_sql(tree, "sqlite", TABLE))) == labels, f"seed {seed}"


def test_numbers_for_sqlite_are_exact(sqlite):
    rng = np.random.default_rng(0)
    numbers = [*EXTREMES, 1e15, 2.0**53, 2.0**1000, 0.5, 2.45, 123456.789]
    numbers += rng.normal(size=500).tolist() + (10.0 ** rng.uniform(-300, 300, 500)).tolist()
    numbers += np.round(rng.uniform(0, 1000, 500), 2).tolist()
    bits = rng.integers(0, 2**63 - 2**53, 500).view(np.float64)
    for number in [*numbers, *bits[np.isfinite(bits)].tolist()]:
        found = sqlite.connection.execute(f"SELECT {_fraction(number)}").fetchone()[0]
        assert isinstance(found, float) and found == number


# ---- names and texts ------------------------------------------------------------------------


def parts(tree: ClusterTree, dialect: str, **arguments: object):
    """Parse the SQL; give the columns, the texts and the parsed tree."""
    sqlglot = pytest.importorskip("sqlglot")
    parsed = sqlglot.parse_one(to_sql(tree, dialect, **arguments), read=dialect)
    columns = {column.name for column in parsed.find_all(sqlglot.exp.Column)}
    texts = {literal.this for literal in parsed.find_all(sqlglot.exp.Literal) if literal.is_string}
    return columns, texts, parsed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_dialects_are_parsed_with_names_and_texts_as_they_are(dialect):
    exp = pytest.importorskip("sqlglot").exp
    for seed in range(repeats(50, 1000)):
        tree, _, _ = random_case(seed)
        if dialect == "bigquery":  # which refuses the odd names
            names = ("select", "größe", "it's", "<b>", "a b", "1", "-", "%s")[: tree.n_features]
            tree = ClusterTree(**tree.arguments() | {"feature_names": names})
        columns, texts, parsed = parts(tree, dialect, table="a b")
        assert columns <= {tree.feature_names[f] for f in tree.tested_features}
        assert [t.name for t in parsed.find_all(exp.Table)] == ["a b"]
        if dialect != "postgres":  # whose texts with backslashes are no plain ones
            used = {tree.classes[code] for code in tree.leaf_clusters[tree.leaves]}
            assert {text for text in used if isinstance(text, str)} <= texts
        # Nothing compares what a comparison gives: no a < b < c.
        compared = (exp.LT, exp.LTE, exp.GTE, exp.GT)
        for node in parsed.find_all(*compared):
            assert not isinstance(node.left, compared) and not isinstance(node.right, compared)


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake"])
def test_special_characters_are_escaped_where_nothing_is_run(dialect):
    levels = ("'", "\\", "\\'", "a\nb\r", "${spark.app.name}", '"', "`", "%", "''; --")
    tree = one_text_test(levels)
    _, texts, _ = parts(tree, dialect)
    assert texts in ({*levels[:-1]}, {levels[-1]})


def one_text_test(levels, **changes) -> ClusterTree:
    """Return a tree that asks for all levels but the last."""
    cells = random_cells(np.random.default_rng(1), 60)
    cells[:, 2] = np.arange(60) % len(levels)
    builder = MixedBuilder(cells, np.arange(60) % 3)
    builder.test(0, 2, codes=range(len(levels) - 1))
    known = (None, None, levels, ("false", "true"), *[None] * 4)
    return builder.tree(levels=known, **changes)


def test_levels_with_special_characters_are_found(database):
    levels = ("'", "\\", "\\'", "a\nb\r", "${x}", '"', "`", "%", "\\x41", "A", "''; --")
    tree = one_text_test(levels)
    frame = pl.DataFrame({"region": [*levels, None, "x41"]})
    cells = np.full((len(frame), 8), np.nan)
    cells[: len(levels), 2] = np.arange(len(levels))
    assert clusters(database, tree, frame) == tree.predict(cells).tolist()


def test_a_column_that_is_not_there_is_an_error(database):
    tree, frame, _ = random_case(3)
    tested = tree.feature_names[tree.tested_features[0]]
    with pytest.raises((RuntimeError, Exception), match=re.escape(tested.partition("`")[0])):
        clusters(database, tree, frame.drop(tested))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_that_cannot_be_written_are_refused(dialect):
    tree = one_text_test(("a\0", "b"))
    with pytest.raises(ValueError, match=r"cannot have the text 'a\\x00'"):
        to_sql(tree, dialect)
    labels = random_case(1)[0].rename_clusters({})
    labels = ClusterTree(**labels.arguments() | {"classes": ["a\0", "b", "c"]})
    with pytest.raises(ValueError, match="rename the cluster"):
        to_sql(labels, dialect)
    wrong = {"spark": "a${b}", "bigquery": "a.b"}.get(dialect, "a\0")
    tree = ClusterTree(**chain(3).arguments() | {"feature_names": ["a", wrong, "c", "d", "e"]})
    with pytest.raises(
        ValueError, match=f"{dialect} cannot have the name {re.escape(repr(wrong))}"
    ):
        to_sql(tree, dialect)


def test_names_of_other_alphabets_are_told_apart_as_the_database_does(duckdb, sqlite):
    X = np.arange(12.0).reshape(6, 2)
    builder = Builder(X, [0, 1, 2, 0, 1, 2])
    builder.split(builder.split(0, 0, 4), 1, 1)
    tree = builder.tree(feature_names=["Ä", "ä"])
    for database in (duckdb, sqlite):
        assert clusters(database, tree, frame_named(tree, X)) == tree.predict(X).tolist()
        query = to_sql(
            builder.tree(feature_names=["É", "x"]), database.dialect, table=TABLE, name="é"
        )
        database.load(pl.DataFrame(X, schema=["É", "x"]))
        assert database.run(f"SELECT é FROM ({query}) AS q") == tree.predict(X).tolist()
    for dialect in ("spark", "bigquery"):
        with pytest.raises(ValueError, match="Columns 'Ä' and 'ä' are one column"):
            to_sql(tree, dialect)


def test_the_label_takes_no_name_of_a_column(database):
    frame = pl.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "Cluster": [7.0, 7.0, 7.0, 7.0]})
    model = tc.ExKMC(reference=[0, 0, 1, 1]).fit(frame)
    if database.dialect != "postgres":  # which tells them apart
        with pytest.raises(ValueError, match=r"a column 'Cluster' itself.*name='segment'"):
            model.to_sql(database.dialect, TABLE)
    with pytest.raises(ValueError, match=r"a column 'x' itself"):
        model.to_sql(database.dialect, TABLE, name="x")
    assert model.to_sql(database.dialect) == model.to_sql(database.dialect, name="x")
    database.load(frame)
    query = model.to_sql(database.dialect, TABLE, name="its group")
    found = database.run(f"SELECT {quoted('its group')} FROM ({query}) AS q")
    assert sorted(found) == [0, 0, 1, 1]
    for name in ("", 1, None):
        with pytest.raises(ValueError, match=f"name must be that of a column.* Got {name!r}"):
            model.to_sql(database.dialect, TABLE, name=name)
    with pytest.raises(ValueError, match=r"bigquery cannot have the name 'a\.b'"):
        to_sql(chain(3), "bigquery", "t", name="a.b")


def test_columns_of_one_name_are_refused_where_case_does_not_count():
    X = np.arange(12.0).reshape(6, 2)
    builder = Builder(X, [0, 1, 2, 0, 1, 2])
    builder.split(builder.split(0, 0, 4), 1, 1)
    tree = builder.tree(feature_names=["Age", "age"])
    for dialect in ("duckdb", "sqlite", "spark", "bigquery"):
        with pytest.raises(
            ValueError, match=f"Columns 'Age' and 'age' are one column in {dialect}"
        ):
            to_sql(tree, dialect)
    assert '"Age"' in to_sql(tree, "postgres") and '"age"' in to_sql(tree, "snowflake")


# ---- sizes ----------------------------------------------------------------------------------


def test_large_trees_run(database):
    rng = np.random.default_rng(0)
    for tree in (chain(10_000), balanced(8192)):
        X = rng.integers(0, 2500, (300, tree.n_features)).astype(float)
        found = clusters(database, tree, frame_named(tree, X))
        assert found == tree.predict(X).tolist()


def test_sums_of_500_features_run(database):
    X = np.random.default_rng(0).normal(size=(60, 500))
    builder = Builder(X, np.arange(60) % 3)
    node = 0
    for _ in range(12):
        builder.oblique(node, dict(enumerate(X[node])), 0.1)
        node = max(builder.leaves())
    tree = builder.tree()
    assert clusters(database, tree, frame_named(tree, X)) == tree.predict(X).tolist()


def test_the_deepest_nesting_of_times_runs(sqlite):
    """A balanced tree of times in SQLite: its parser has room for 100 symbols."""
    times = np.arange(8192.0) * 7
    cells = np.zeros((8192, 8))
    cells[:, 7] = times
    builder = MixedBuilder(cells, np.arange(8192) % 3)
    level = [(0, 0, 8192)]
    while level:
        deeper = []
        for node, first, end in level:
            if end - first > 1:
                middle = (first + end) // 2
                # What is on the right first: the longer way of writing it.
                left = builder.test(node, 7, at_most=times[middle - 1], missing_left=True)
                deeper += [(left, first, middle), (left + 1, middle, end)]
        level = deeper
    tree = builder.tree()
    assert tree.max_depth == 13
    rows = cells[::97]
    frame = frame_of(rows, np.random.default_rng(0)).select("made")
    assert clusters(sqlite, tree, frame) == tree.predict(rows).tolist()


def test_models_too_large_are_refused_with_the_number():
    with pytest.raises(ValueError, match=r"10,001 leaves .*at most 10,000 leaves"):
        to_sql(chain(10_001))
    X = np.ones((2, 501))
    builder = Builder(X, [0, 1])
    builder.oblique(0, dict.fromkeys(range(501), 1.0))
    with pytest.raises(ValueError, match=r"501 features .*500 features"):
        to_sql(builder.tree())
    names = [f"{'long' * 40}{j}" for j in range(5)]
    wide = ClusterTree(**chain(9_000).arguments() | {"feature_names": names})
    for dialect in ("bigquery", "snowflake"):
        with pytest.raises(
            ValueError, match=rf"bytes, too many for {dialect} \(at most 1,000,000\)"
        ):
            to_sql(wide, dialect)
    assert len(to_sql(wide, "duckdb")) > 1_000_000


# ---- the call -------------------------------------------------------------------------------


def test_readable_sql():
    builder = Builder(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [0, 1, 2])
    builder.split(builder.split(0, 0, 3.1), 1, 2.5)
    directions = {"missing_go_to_left": [False, True, False, False, False]}
    names = {"feature_names": ["age", "income"], "classes": ["young", "poor", "others"]}
    tree = builder.tree(**names, **directions)
    assert to_sql(tree, table=("crm", "customers")) == (
        """\
SELECT
  *,
  CASE
    WHEN NOT COALESCE(CAST("age" AS DOUBLE) <= 3.1e0, FALSE) THEN 'others'
    WHEN CAST("income" AS DOUBLE) IS NULL OR isnan(CAST("income" AS DOUBLE)) \
OR CAST("income" AS DOUBLE) <= 2.5e0 THEN 'young'
    ELSE 'poor'
  END AS "cluster"
FROM "crm"."customers\""""
    )


def test_tests_are_negated_in_few_words(database):
    rng = np.random.default_rng(1)
    cells = random_cells(rng, 60)
    builder = MixedBuilder(cells, np.arange(60) % 3)
    left = builder.test(0, 2, codes=[0, 1], missing_left=True)
    deeper = builder.test(left, 0, at_most=1, missing_left=True)
    builder.test(deeper, 1, at_most=23)
    tree = builder.tree()
    text = to_sql(tree)
    assert "COALESCE(NOT" not in text and 'COALESCE(CAST("income" AS DOUBLE) IS' not in text
    assert text.count("NOT (") == 1 and text.count("region") == 1
    assert clusters(database, tree, frame_of(cells, rng)) == tree.predict(cells).tolist()


def test_a_tree_of_one_leaf(database):
    tree = Builder(np.zeros((3, 2)), [0, 0, 0]).tree(classes=["it's"])
    assert to_sql(tree) == "'it''s'"
    assert clusters(database, tree, pl.DataFrame({"a": [1, 2]})) == ["it's"] * 2


def test_unknown_dialects_are_refused_with_those_there_are():
    tree = random_case(1)[0]
    for wrong in ("oracle", ["duckdb"], None):
        with pytest.raises(
            ValueError, match=rf"duckdb, sqlite, postgres.*Got {re.escape(repr(wrong))}"
        ):
            to_sql(tree, wrong)


@pytest.mark.parametrize("table", ["", (), ("a", ""), [1], 1, {"a"}])
def test_tables_without_a_name_are_refused(table):
    with pytest.raises(ValueError, match="table must be the name of a table, or a path"):
        to_sql(random_case(1)[0], table=table)


def test_models_write_their_tree(duckdb):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(300, 3)), schema=["a", "b", "c d"])
    for model in (tc.ExKMC(3, max_leaves=6), tc.ObliqueTree(3), tc.Kauri(3, max_leaves=5)):
        model.fit(frame).rename_clusters({0: "it's"})
        assert clusters(duckdb, model, frame) == model.predict(frame).tolist()
        assert model.to_sql("sqlite", "t") == to_sql(model, "sqlite", "t")


def test_the_cells_of_douglas(database):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(300, 3)), schema=["a", "b", "c d"])
    model = tc.Douglas(3, n_cuts=2, random_state=0, max_iter=20).fit(frame)
    model = model.rename_clusters({0: "it's", 1: "b", 2: "c"})
    rows = frame.with_columns(pl.when(pl.col("b") > 1).then(None).otherwise(pl.col("b")).alias("b"))
    database.load(rows)
    labels = rows.select(model.to_polars()).to_series().to_list()
    assert database.run(ordered(model.to_sql(database.dialect, TABLE))) == labels
    query = model.to_sql(database.dialect, TABLE, name="own")
    assert sorted(map(str, database.run(f"SELECT own FROM ({query}) AS q"))) == sorted(
        map(str, labels)
    )
