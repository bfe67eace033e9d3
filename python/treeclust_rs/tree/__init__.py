"""Floor 3: the tree every method ends in, its nodes, paths, words and printed text."""

from .cluster_tree import ClusterTree, HasTree, as_tree
from .rules import RuleTable

__all__ = ["ClusterTree", "HasTree", "RuleTable", "as_tree"]
