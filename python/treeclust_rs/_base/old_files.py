"""Model files of older versions of the schema, brought to the one that is written now."""

from typing import Any

_KERNEL_TREES = ("KernelIMM", "KernelExKMC", "KernelExpand")
_WITHOUT_REFERENCE = ("CLTree", "CUBT", "Douglas", "Kauri", "KernelKMeans")


def upgrade(payload: dict[str, Any], version: int) -> None:
    """Rename in place what a file of an older version calls by other names.

    Nothing is checked here: what is not as a file of that version would have it stays.
    """
    if version == 1:
        _from_version_1(payload)


def _from_version_1(payload: dict[str, Any]) -> None:
    """Version 1: kernel costs were called inertia, and Kauri's parameters differed."""
    model, params, fitted = (payload.get(key) for key in ("model", "params", "fitted"))
    if not (isinstance(params, dict) and isinstance(fitted, dict)):
        return
    if model not in _WITHOUT_REFERENCE:
        params.setdefault("reference", None)  # whether there was one is not known
    if model in _KERNEL_TREES:
        _rename(fitted, "_inertia", "_kernel_cost")
        _rename(fitted, "_reference_inertia", "_reference_kernel_cost")
    if model == "Kauri":
        _rename(params, "max_clusters", "n_clusters")
        if params.get("max_leaves", "") is None:
            params["max_leaves"] = "inf"
        if params.get("kernel") == "linear" and params.get("approximation") is None:
            fitted.setdefault("_kernel_cost", fitted.get("inertia_"))
        else:
            _rename(fitted, "inertia_", "_kernel_cost")


def _rename(fields: dict[str, Any], old: str, new: str) -> None:
    if old in fields and new not in fields:
        fields[new] = fields.pop(old)
