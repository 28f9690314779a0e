"""Steps of a region's code, which a profile shows as separate rows."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation

from byoc_mlir.abi import STEP
from byoc_mlir.dialects.locations import nodes_location


def mark_step(call: Operation, nodes: Iterable[str], implementation: str, layout: str = "") -> None:
    """Marks a call in the function `@R` of native code as a separate row in profiles.

    Args:
        call: an `llvm.call`.
        nodes: the ONNX nodes that it computes.
        implementation: name of the implementation in the report.
        layout: layout of the result.
    """
    call.location = nodes_location(nodes)
    call.attributes[STEP] = DictionaryAttr(
        {"implementation": StringAttr(implementation), "layout": StringAttr(layout)}
    )
