"""Explanations as frames and of pairs of rows."""

import numpy as np
import polars as pl
import pytest

import mixed_trees
import treeclust_rs as tc
import trees
from treeclust_rs.export import explain_rows
from treeclust_rs.export.explanations import explain_pairs, explanation_frame, pair_frame

X = np.array([[1.0, 1.0], [2.0, 5.0], [9.0, 1.0], [8.0, 2.0]])


@pytest.fixture
def model():
    return tc.IMM(3, reference=[0, 1, 2, 2]).fit(X, feature_names=["age", "income"])


def test_a_frame_has_a_line_for_each_condition(model):
    found = model.explain(X, as_frame=True)
    assert found.columns == ["row", "cluster", "column", "value", "condition"]
    assert found["row"].unique().to_list() == [0, 1, 2, 3]
    first = found.filter(row=0)
    assert first["cluster"].unique().to_list() == [0]
    for column, value, condition in first.select("column", "value", "condition").rows():
        assert value == "1"
        assert condition.startswith(column)


def test_pairs_are_together_or_part_at_a_test(model):
    lines = model.explain(X[[2, 0, 0]], X[[3, 1, 2]])
    assert lines[0].startswith("both in cluster 2: age > ")
    assert "(9 and 8)" in lines[0]
    assert lines[1].startswith("cluster 0 and cluster 1: income <= ")
    assert "(1) against income > " in lines[1]
    assert "both age <= " in lines[1]
    assert "against age > " in lines[2]
    frame = model.explain(X[[2, 0]], X[[3, 1]], as_frame=True)
    assert frame.filter(row=0)["parts"].to_list() == [False] * frame.filter(row=0).height
    assert frame.filter(row=1)["parts"].to_list()[-1] is True
    last = frame.filter(row=1).row(-1, named=True)
    assert (last["value"], last["other_value"]) == ("1", "5")
    with pytest.raises(ValueError, match="X has 1 rows and other 2: give a row"):
        model.explain(X[:1], X[:2])


def test_of_random_mixed_trees_the_texts_are_those_of_the_path():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = mixed_trees.random_tree(seed)
        cells = mixed_trees.random_cells(rng, 30)
        leaves = tree.apply(cells)
        frame = explanation_frame(tree, leaves, cells)
        counts = frame.filter(pl.col("column").is_not_null()).group_by("row").len()
        wanted = {row: len(tree.path_conditions(int(leaf))) for row, leaf in enumerate(leaves)}
        assert dict(counts.rows()) == {row: n for row, n in wanted.items() if n}
        assert len(explain_rows(tree, leaves, cells)) == 30
        both = (leaves[:15], leaves[15:]), (cells[:15], cells[15:])
        pairs = pair_frame(tree, *both)
        lines = explain_pairs(tree, *both)
        for row in range(15):
            of_pair = pairs.filter(row=row)
            is_same = leaves[row] == leaves[15 + row]
            assert of_pair["parts"].sum() == (not is_same)
            assert ("against" in lines[row]) == (not is_same)
            labels = [
                tree.classes[tree.leaf_clusters[leaf]] for leaf in (leaves[row], leaves[15 + row])
            ]
            assert lines[row].startswith("both in") == (labels[0] == labels[1])


def test_of_weighted_sums_the_values_are_scores():
    tree, rows = trees.random_mixed(3, 8, n_features=4)
    leaves = tree.apply(rows)
    frame = explanation_frame(tree, leaves, rows)
    assert frame["condition"].str.contains(" [<>]=? ").all()
    half = len(rows) // 2
    both = (leaves[:half], leaves[half : 2 * half]), (rows[:half], rows[half : 2 * half])
    assert len(explain_pairs(tree, *both)) == half


def test_a_tree_of_one_leaf_says_always():
    model = tc.IMM(1).fit(X)
    assert model.explain(X[:1], X[1:2]) == ["both in cluster 0: always"]
    assert model.explain(X[:2], as_frame=True)["column"].to_list() == [None, None]
