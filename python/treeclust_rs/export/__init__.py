"""Writing a tree in other forms: text, polars, SQL, scikit-learn, ONNX, pictures, JSON and more."""

from .._util import SCHEMA_VERSION, documented
from .graphviz import to_graphviz
from .html import to_html
from .json import tree_from_dict, tree_to_dict
from .narwhals import to_narwhals_expr
from .onnx import to_onnx
from .pictures.cost_path import plot_cost_path
from .pictures.partition import plot_partition
from .pictures.tree_drawing import plot_tree
from .polars import to_polars_code, to_polars_expr
from .sklearn import TreeEncoder, to_sklearn
from .sql import to_sql
from .text import explain_rows, export_text

__all__ = [
    "SCHEMA_VERSION",
    "TreeEncoder",
    "explain_rows",
    "export_text",
    "plot_cost_path",
    "plot_partition",
    "plot_tree",
    "to_graphviz",
    "to_html",
    "to_narwhals_expr",
    "to_onnx",
    "to_polars_code",
    "to_polars_expr",
    "to_sklearn",
    "to_sql",
    "tree_from_dict",
    "tree_to_dict",
]

for _name in __all__:
    documented(globals()[_name])
