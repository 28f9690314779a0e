"""Why nodes are computed in `f32` for which integers or fewer bits were asked for."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr

KEPT_FLOAT = "byoc.kept_float"
"""The attribute of the module: reasons by the names of nodes."""


def keep_float(module: ModuleOp, reasons: Mapping[str, str]) -> None:
    """Adds reasons by node to those that a module has."""
    if reasons:
        known = kept_float(module) | dict(reasons)
        module.attributes[KEPT_FLOAT] = DictionaryAttr(
            {node: StringAttr(reason) for node, reason in known.items()}
        )


def kept_float(module: ModuleOp) -> dict[str, str]:
    """The reasons that a module has."""
    known = module.attributes.get(KEPT_FLOAT)
    if not isinstance(known, DictionaryAttr):
        return {}
    return {node: text.data for node, text in known.data.items() if isinstance(text, StringAttr)}
