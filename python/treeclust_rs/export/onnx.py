"""The tree as an ONNX model."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._util import FloatArray, documented
from ..tree import LEAF, ClusterTree, Condition, HasTree, ObliqueCondition, as_tree
from .threshold_form import ThresholdForm

if TYPE_CHECKING:
    from onnx import ModelProto

# onnxruntime loads trees by recursion. Measured with onnxruntime 1.32: a chain of 500 tests passes
# in a thread with 512 KiB of stack, the least of common systems, and one of 1,000 crashes there.
_MAX_DEPTH = 400
# A tree of 1,000,000 leaves takes 14 s and 2.6 GB to write and load.
_MAX_LEAVES = 1_000_000
# Sums are added term by term, those of all nodes at once: terms of the longest times nodes.
_MAX_TERMS = 5_000_000

# Of the operators used; runtimes of 2022 have them.
_IR_VERSION, _OPSET, _ML_OPSET = 8, 15, 3


@documented
def to_onnx(tree: ClusterTree | HasTree, *, dtype: str = "float32") -> ModelProto:
    """Return the tree as an ONNX model (extra ``onnx``).

    %(tree_in)s
    dtype : {"float32", "float64"}, default="float32"
        Of numbers. float32: each threshold becomes the largest float32 up to it, which is exact for
        all rows of float32. float64: thresholds stay, and all rows are routed as by `predict`.

    Returns
    -------
    onnx.ModelProto
        Its output ``cluster``, of shape (n,), has the labels as int64 or text. For a table of
        numbers its input is ``X``, of shape (n, n_features), with the columns in the order of the
        fit. For other tables each column that the tree tests is an input of its name, of shape
        (n, 1): numbers of `dtype`; levels as text, flags as ``true`` and ``false``, where any
        other text is a missing cell; times as float64, in microseconds since 1970 or of length,
        NaN where missing. Missing cells go the way of `missing_go_to_left`; in a tree without it
        NaN goes right. Names of inputs and output get underscores where they are empty or taken.

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        If float32 would move a value of the fit across the threshold beside it; the message names
        the node. Trees that do not know these values (`below` and `above`) are only refused for
        thresholds beyond float32. If the tree is deeper than 400 or has more than 1,000,000 leaves,
        its intervals take more than 200,000 nodes, or its sums more than 5 million terms.
    TypeError
        If the model has no tree, as `Douglas`, whose own method makes one of its cells.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64'. Got {dtype!r} instead.")
    form = ThresholdForm.of(as_tree(tree, method="to_onnx"))
    if dtype == "float32":
        form.check_float32("the ONNX model", "use to_onnx(dtype='float64')")
    _check_size(form)
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install treeclust_rs[onnx].") from error
    graph = _Graph(form, dtype)
    graph.write()
    model = onnx.helper.make_model(
        graph.proto(),
        opset_imports=[
            onnx.helper.make_opsetid("", _OPSET),
            onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
        ],
        ir_version=_IR_VERSION,
        producer_name="treeclust_rs",
    )
    if form.tree.feature_names is not None:
        onnx.helper.set_model_props(model, {"feature_names": json.dumps(form.tree.feature_names)})
    return model


def _check_size(form: ThresholdForm) -> None:
    tree = form.tree
    if tree.max_depth > _MAX_DEPTH or tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"A tree of depth {tree.max_depth:,} with {tree.n_leaves:,} leaves is too large for "
            f"an ONNX model (at most depth {_MAX_DEPTH} and {_MAX_LEAVES:,} leaves). Use "
            "model.predict(X) instead, or a smaller tree by truncate(m)."
        )
    sizes = [len(c.features) for c in form.columns if isinstance(c, ObliqueCondition)]
    if len(sizes) * max(sizes, default=0) > _MAX_TERMS:
        raise ValueError(
            f"A tree with {len(sizes):,} tests on sums of up to {max(sizes):,} terms is too large "
            f"for an ONNX model (at most {_MAX_TERMS:,} as their product). Use model.predict(X) "
            "instead, or a sparser tree."
        )


class _Graph:
    """The nodes of an ONNX graph, in the order of computation."""

    def __init__(self, form: ThresholdForm, dtype: str) -> None:
        import onnx

        self._form, self._tree, self._helper = form, form.tree, onnx.helper
        types = onnx.TensorProto
        self._types = {"float32": types.FLOAT, "float64": types.DOUBLE, "int64": types.INT64}
        self._types |= {"str": types.STRING}
        self._dtype = dtype
        self._taken: set[str] = set()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._by_column: dict[int, str] = {}

    def proto(self) -> Any:
        return self._helper.make_graph(
            self._nodes, "ClusterTree", self._inputs, self._outputs, self._constants
        )

    def write(self) -> None:
        """Write inputs, what tests compare, the tree and the labels."""
        tree = self._tree
        self._write_inputs()
        output = self._name("cluster")
        label_type = self._types["str" if isinstance(tree.classes[0], str) else "int64"]
        self._outputs = [self._helper.make_tensor_value_info(output, label_type, ["n"])]
        if tree.n_nodes == 1:
            rows = self._add("Shape", self._inputs[0].name, end=1)
            label = self._constant(np.asarray(tree.classes)[tree.leaf_clusters])
            self._add("Expand", label, rows, output=output)
            return
        labels = self._constant(np.asarray(tree.classes))
        code = self._add("Cast", self._leaf_codes(self._compared()), to=self._types["int64"])
        flat = self._add("Reshape", code, self._constant(np.array([-1])))
        self._add("Gather", labels, flat, output=output)

    # ---- parts of the graph ---------------------------------------------------------------

    def _write_inputs(self) -> None:
        tree, info = self._tree, self._helper.make_tensor_value_info
        number = self._types[self._dtype]
        if tree.column_kinds is None:
            self._inputs = [info(self._name("X"), number, ["n", tree.n_features])]
            return
        names = tree.feature_names
        for feature in tree.tested_features.tolist() or [0]:
            column = tree.column(feature)
            own = self._name(f"x{feature}" if names is None else names[feature])
            kind = self._types["str"] if column.has_levels else number
            kind = self._types["float64"] if column.is_time else kind
            self._inputs.append(info(own, kind, ["n", 1]))
            self._by_column[feature] = own

    def _compared(self) -> str:
        """Return the matrix of what the tree compares, in the order of the form's columns."""
        form = self._form
        if form.has_table_columns:
            return str(self._inputs[0].name)
        numbers = [column for column in form.columns if isinstance(column, int)]
        sums = [column for column in form.columns if isinstance(column, ObliqueCondition)]
        parts = [self._by_column[column] for column in numbers if self._by_column]
        if numbers and not parts:
            indices = self._constant(np.array(numbers))
            parts = [self._add("Gather", self._inputs[0].name, indices, axis=1)]
        if sums:
            parts.append(self._sums(sums))
        parts += [self._outcome(column) for column in form.columns if isinstance(column, Condition)]
        return self._add("Concat", *parts, axis=1)

    def _sums(self, sums: list[ObliqueCondition]) -> str:
        """Return which sums are at least 0, added in order as in `predict`, in float64.

        Sums with fewer terms than others get terms of weight 0, which change nothing.
        """
        indices = np.zeros((max(len(s.features) for s in sums), len(sums)), dtype=np.int64)
        weights = np.zeros(indices.shape)
        numbers = [f for f in self._by_column if not self._tree.column(f).has_levels]
        places = {feature: place for place, feature in enumerate(numbers)}
        for place, condition in enumerate(sums):
            features = condition.features.tolist()
            indices[: len(features), place] = [places.get(f, f) for f in features]
            weights[: len(features), place] = condition.weights
        given = [self._by_column[feature] for feature in numbers] or [self._inputs[0].name]
        exact = [self._add("Cast", cells, to=self._types["float64"]) for cells in given]
        # One row a column: a term then reads whole rows.
        cells = self._add("Transpose", self._add("Concat", *exact, axis=1), perm=[1, 0])
        score = self._constant(np.array([[condition.bias] for condition in sums]))
        for of_term, its_weights in zip(indices, weights, strict=True):
            values = self._add("Gather", cells, self._constant(of_term), axis=0)
            factors = self._constant(its_weights[:, np.newaxis])
            score = self._add("Add", score, self._add("Mul", values, factors))
        negative = self._add("Less", score, self._constant(np.zeros(1)))
        return self._number(self._add("Transpose", self._add("Not", negative), perm=[1, 0]))

    def _outcome(self, condition: Condition) -> str:
        """Return whether a condition on levels or times holds."""
        cells = self._by_column[condition.feature]
        if condition.codes is not None:
            levels = list(condition.column.levels)
            holds = [float(code in condition.codes) for code in range(len(levels))]
            found = self._add(
                "LabelEncoder",
                cells,
                domain="ai.onnx.ml",
                keys_strings=levels or [""],
                values_floats=holds or [float(condition.missing)],
                default_float=float(condition.missing),
            )
            return found if self._dtype == "float32" else self._number(found)
        if condition.is_empty:
            return self._number(self._add("IsNaN", cells))
        # Comparisons with NaN are false.
        bound = self._constant(np.array([condition.span.lower]))
        if not condition.missing:
            return self._number(self._add("Greater", cells, bound))
        return self._number(self._add("Not", self._add("LessOrEqual", cells, bound)))

    def _leaf_codes(self, compared: str) -> str:
        """Return the code of the cluster of each row, of shape (n, 1), in float32."""
        form, tree = self._form, self._tree
        is_leaf, most = tree.kind == LEAF, float(np.finfo(self._dtype).max)
        threshold = np.where(is_leaf, 0.0, np.minimum(form.threshold, most))
        leaves = np.flatnonzero(is_leaf)
        codes = tree.leaf_clusters[leaves].astype(np.float64)
        values: dict[str, Any] = {"nodes_values": threshold, "target_weights": codes}
        if self._dtype == "float64":
            values = {
                f"{name}_as_tensor": self._tensor(name, array) for name, array in values.items()
            }
        else:
            values = {name: _float32_below(array).tolist() for name, array in values.items()}
        nothing = np.zeros(tree.n_nodes, dtype=np.int64).tolist()
        return self._add(
            "TreeEnsembleRegressor",
            compared,
            domain="ai.onnx.ml",
            n_targets=1,
            nodes_treeids=nothing,
            nodes_nodeids=list(range(tree.n_nodes)),
            nodes_featureids=np.maximum(form.column, 0).tolist(),
            nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            nodes_truenodeids=np.maximum(form.children_left, 0).tolist(),
            nodes_falsenodeids=np.maximum(form.children_right, 0).tolist(),
            nodes_missing_value_tracks_true=form.missing_go_to_left.astype(int).tolist(),
            target_treeids=[0] * len(leaves),
            target_nodeids=leaves.tolist(),
            target_ids=[0] * len(leaves),
            **values,
        )

    # ---- its elements ---------------------------------------------------------------------

    def _number(self, found: str) -> str:
        return self._add("Cast", found, to=self._types[self._dtype])

    def _add(
        self, operator: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """Add a node, and return the name of its output."""
        output = self._name(operator) if output is None else output
        self._nodes.append(self._helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _constant(self, array: npt.NDArray[Any]) -> str:
        name = self._name("constant")
        self._constants.append(self._tensor(name, array))
        return name

    def _tensor(self, name: str, array: npt.NDArray[Any]) -> Any:
        dtype = self._types["str" if array.dtype.kind == "U" else str(array.dtype)]
        values = array.ravel().tolist()
        if dtype == self._types["str"]:
            values = [text.encode() for text in values]  # older versions of onnx take ASCII alone
        return self._helper.make_tensor(name, dtype, array.shape, values)

    def _name(self, wanted: str) -> str:
        """Return a name that is not taken: the one wanted, with underscores if need be."""
        while not wanted or wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted


def _float32_below(numbers: FloatArray) -> npt.NDArray[np.float32]:
    """Return the largest float32 up to each number."""
    nearest = numbers.astype(np.float32)
    return np.where(nearest > numbers, np.nextafter(nearest, np.float32(-math.inf)), nearest)
