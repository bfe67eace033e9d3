"""The table of rules: printed whole, and a polars frame besides."""

import copy
import pickle
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import treeclust_rs as tc
from mixed_trees import MixedBuilder, random_cells
from treeclust_rs.tree import RuleTable
from trees import chain


def wide_rules():
    """Twenty rules, the last of some 400 characters."""
    tree = chain(20, n_features=19)
    names = [f"a column with a name of some length, {number}" for number in range(19)]
    return type(tree)(**(tree.arguments() | {"feature_names": names})).rules()


def test_print_and_notebook_show_every_word():
    rules = wide_rules()
    longest = max(rules["rule"], key=len)
    assert len(longest) > 400
    with pl.Config(tbl_width_chars=60_000):
        assert all(rule in str(rules) and rule in repr(rules) for rule in rules["rule"])
    html = rules._repr_html_()
    assert all(rule.replace(">", "&gt;").replace("<", "&lt;") in html for rule in rules["rule"])
    # In a narrow terminal they are wrapped.
    with pl.Config(tbl_width_chars=80):
        lines = str(rules).splitlines()
    assert max(map(len, lines)) <= 80
    words = re.findall(r"[\w.]+", " ".join(line.split("┆")[1] for line in lines if "┆" in line))
    assert words.count("some") == sum(rule.count("some") for rule in rules["rule"])


def test_printing_leaves_the_settings_of_polars_alone():
    with pl.Config(fmt_str_lengths=7, tbl_rows=3):
        before = pl.Config.state()
        str(wide_rules()), wide_rules()._repr_html_()
        assert pl.Config.state() == before


def test_it_is_used_as_a_frame():
    rules = wide_rules()
    frame = rules.frame
    assert isinstance(frame, pl.DataFrame)
    assert len(rules) == rules.height == frame.height == 20
    assert rules.filter(pl.col("depth") > 10).equals(frame.filter(pl.col("depth") > 10))
    assert rules["n"].sum() == frame["n"].sum()
    assert rules[:, "rule"].equals(frame["rule"])
    assert [column.name for column in rules] == frame.columns
    assert rules.equals(wide_rules()) and rules.equals(frame)
    assert not rules.equals(frame.head(3))
    assert pl.DataFrame(rules).equals(frame)
    assert pa.table(rules).num_rows == 20
    assert "write_csv" in dir(rules)
    with pytest.raises(AttributeError, match="nothing"):
        rules.nothing  # noqa: B018


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_rule_tables(copied):
    rules = wide_rules()
    twin = copied(rules)
    assert type(twin) is RuleTable
    assert twin.equals(rules)


def test_models_return_it():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert type(tc.IMM(2, random_state=0).fit(X).tree_.rules()) is RuleTable
    assert type(tc.Douglas(2, max_iter=1, n_init=1, random_state=0).fit(X).rules()) is RuleTable


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("and", '"and"'),
        ("10", '"10"'),
        ("−1,5", '"−1,5"'),
        ("", '""'),
        (" a", '" a"'),
        ("a <= b", '"a <= b"'),
        ("sand or gravel", '"sand or gravel"'),
        ("new york", "new york"),
        ("2nd", "2nd"),
        ("brand", "brand"),
    ],
)
def test_names_that_read_as_numbers_or_words_of_rules_are_quoted(name, written):
    X = np.array([[0.0], [1.0], [8.0], [9.0]])
    model = tc.IMM(2, random_state=0).fit(X, feature_names=[name])
    assert model.rules()["rule"].to_list() == [f"{written} <= 4", f"{written} > 4"]
    assert model.explain([[1.0]])[0].endswith(f": {written} = 1 <= 4")
    assert f"─ {written} <= 4" in str(model.tree_)
    frame = pl.DataFrame({name: X[:, 0]})
    assert frame.select(model.to_polars()).to_series().to_list() == model.labels_.tolist()
    douglas = tc.Douglas(2, random_state=0, n_init=1).fit(X, feature_names=[name])
    assert all(rule.startswith(f"{written} ") for rule in douglas.rules()["rule"])


def test_a_path_that_contradicts_itself_is_never_met():
    """Rows without a time take the left branch, where no other row can go on to the right."""
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 20), np.zeros(20, dtype=int))
    left = builder.test(0, 4)
    builder.test(left, 4, at_most=0.0, missing_left=True)
    rules = builder.tree().rules()["rule"].to_list()
    assert rules == ["signup is missing", "never", "signup is not missing"]
