"""Floor 3: the tree every method ends in, its nodes, paths, words and printed text."""

from .._util.words import format_share
from .any_tree import HasTree, as_tree
from .build import (
    GrownTree,
    add_up,
    column_arguments,
    node_arguments,
    tests_of,
    values_beside,
    with_directions,
)
from .cluster_tree import ClusterTree, NonFiniteError
from .from_sklearn import from_sklearn, is_sklearn_tree
from .html import cluster_colors, cluster_html, html_table, lighten
from .nodes import (
    FLOAT_ARRAYS,
    INT_ARRAYS,
    INTERVAL,
    LEAF,
    LEVELS,
    MISSING,
    MOVES,
    OBLIQUE,
    THRESHOLD,
    TreeNodes,
)
from .paths import (
    EVERYTHING,
    MISSING_CELLS,
    Condition,
    ObliqueCondition,
    Span,
    branch_condition,
    walk_leaves,
)
from .reading import are_of_fit, read_rows
from .reshape import kept_ancestor, order_by_gain, reordered_tests, splits_by_gain
from .rules import RuleTable
from .sketch import TreeSketch, threshold_tests
from .text import MAX_INDENT, tree_text
from .words import (
    MAX_TERMS,
    branch_lines,
    format_weight,
    row_text,
    rule_text,
    split_text,
)

__all__ = ["ClusterTree", "HasTree", "RuleTable", "as_tree", "from_sklearn"]
