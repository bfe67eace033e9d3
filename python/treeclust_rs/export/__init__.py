"""Writing a tree in other forms: text, polars, SQL, scikit-learn, ONNX, pictures, JSON and more."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._util import SCHEMA_VERSION
from .json import tree_from_dict, tree_to_dict
from .polars import to_polars_code, to_polars_expr
from .text import explain_rows, export_text

if TYPE_CHECKING:
    from .graphviz import to_graphviz
    from .html import to_html
    from .narwhals import to_narwhals_expr
    from .onnx import to_onnx
    from .pictures.cost_path import plot_cost_path
    from .pictures.partition import plot_partition
    from .pictures.tree_drawing import plot_tree
    from .sklearn import TreeEncoder, to_sklearn
    from .sql import to_sql

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

_ON_FIRST_USE = {
    "TreeEncoder": "sklearn",
    "plot_cost_path": "pictures.cost_path",
    "plot_partition": "pictures.partition",
    "plot_tree": "pictures.tree_drawing",
    "to_graphviz": "graphviz",
    "to_html": "html",
    "to_narwhals_expr": "narwhals",
    "to_onnx": "onnx",
    "to_sklearn": "sklearn",
    "to_sql": "sql",
}
"""What no fit needs, by its file: an import of the package does not wait for these."""


def __getattr__(name: str) -> Any:
    """Import a form of the tree on first use."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_ON_FIRST_USE[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return all names, those of the first use too."""
    return sorted({*globals(), *__all__})
