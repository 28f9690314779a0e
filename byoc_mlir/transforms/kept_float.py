"""Reasons why nodes stay in `f32` although integers or fewer bits were requested."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr

KEPT_FLOAT = "byoc.kept_float"
"""Attribute of the module: reasons by node name."""


def keep_float(module: ModuleOp, reasons: Mapping[str, str]) -> None:
    """Adds to the module, for each named node, the reason why it stays in `f32`."""
    if reasons:
        known = kept_float(module) | dict(reasons)
        module.attributes[KEPT_FLOAT] = DictionaryAttr(
            {node: StringAttr(reason) for node, reason in known.items()}
        )


def kept_float(module: ModuleOp) -> dict[str, str]:
    """Returns the reason why each node stays in `f32`, by node name."""
    known = module.attributes.get(KEPT_FLOAT)
    if not isinstance(known, DictionaryAttr):
        return {}
    return {node: text.data for node, text in known.data.items() if isinstance(text, StringAttr)}
