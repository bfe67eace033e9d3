"""Functions of trees take fitted estimators too."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from treeclust_rs import metrics
from treeclust_rs.export import (
    explain_rows,
    export_text,
    plot_partition,
    plot_tree,
    to_graphviz,
    to_narwhals_expr,
    to_polars_code,
    to_polars_expr,
    to_sql,
    tree_to_dict,
)
from treeclust_rs.tree import as_tree

mpl.use("agg")

ROWS = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, 0)
MODELS = {
    "IMM": tc.IMM(3, random_state=0),
    "ExKMC": tc.ExKMC(3, max_leaves=5, cuts="interval", random_state=0),
    "Kauri": tc.Kauri(3, max_leaves=4),
    "KernelExpand": tc.KernelExpand(reference=np.repeat([0, 1, 2], 20), max_leaves=4),
    "VoronoiTree": tc.VoronoiTree(3, random_state=0),
    "ObliqueTree": tc.ObliqueTree(3, alpha=0.1, random_state=0),
}
all_models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def pixels(draw):
    """Return a function of a tree whose result is the picture it draws."""

    def drawn(tree):
        figure = draw(tree).figure
        figure.canvas.draw()
        found = np.asarray(figure.canvas.buffer_rgba()).tobytes()
        plt.close(figure)
        return found

    return drawn


FUNCTIONS = {
    "export_text": export_text,
    "explain_rows": lambda tree: explain_rows(tree, as_tree(tree).apply(ROWS), ROWS),
    "to_graphviz": to_graphviz,
    "to_polars_expr": lambda tree: str(to_polars_expr(tree)),
    "to_polars_code": to_polars_code,
    "to_narwhals_expr": lambda tree: str(to_narwhals_expr(tree)),
    "to_sql": to_sql,
    "tree_to_dict": lambda tree: str(tree_to_dict(tree)),  # as text: NaN differs from itself
    "plot_tree": pixels(plot_tree),
    "plot_partition": pixels(lambda tree: plot_partition(tree, ROWS)),
    "weighted_average_depth": metrics.weighted_average_depth,
    "weighted_average_explanation_size": metrics.weighted_average_explanation_size,
    "n_conditions": metrics.n_conditions,
    "n_parameters": metrics.n_parameters,
    "features_per_node": metrics.features_per_node,
}
all_functions = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@all_models
@all_functions
def test_a_model_stands_for_its_tree(function, model):
    if not hasattr(model, "tree_"):
        model.fit(ROWS)
    assert function(model) == function(model.tree_)


@all_functions
def test_a_tree_of_scikit_learn_stands_for_itself(function):
    fitted = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(ROWS, ROWS[:, 0] > 4)
    assert function(fitted) == function(tc.tree.from_sklearn(fitted))


# explain_rows, which reads its leaves first, gets some.
CALLS = FUNCTIONS | {"explain_rows": lambda tree: explain_rows(tree, [1], ROWS[:1])}


@pytest.mark.parametrize("function", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (tc.IMM(3), NotFittedError, "This IMM instance is not fitted yet. Call 'fit'"),
        (tc.ObliqueTree(3), NotFittedError, "This ObliqueTree instance is not fitted yet."),
        (
            tc.Douglas(3),
            TypeError,
            r"^Douglas has no tree: its rules are in `table_`, and given by `rules\(\)` and "
            r"`to_polars\(\)`\.( Use the model's own method to_\w+\.)?$",
        ),
        (tc.KernelKMeans(3), TypeError, "that has one as `tree_`. Got KernelKMeans instead"),
        (KMeans(3), TypeError, "tree must be a ClusterTree, or .* Got KMeans instead"),
        (
            DecisionTreeClassifier(),
            NotFittedError,
            "This DecisionTreeClassifier instance is not fitted yet",
        ),
        (RandomForestClassifier(), TypeError, "Got RandomForestClassifier instead"),
        (tc.IMM, TypeError, "tree must be a ClusterTree, or .* Got type instead"),
        (ROWS, TypeError, "Got ndarray instead"),
        (None, TypeError, "Got NoneType instead"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, (str, type)) else "",
)
def test_what_has_no_tree_is_refused(function, given, error, message):
    with pytest.raises(error, match=message):
        function(given)
