"""Steps of a region's code, which a profile tells apart."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation

from byoc_mlir.abi import STEP
from byoc_mlir.dialects.locations import nodes_location


def mark_step(call: Operation, nodes: Iterable[str], implementation: str, layout: str = "") -> None:
    """Makes a call in the function `@R` of native code a row of its own in profiles.

    Args:
        call: an `llvm.call`.
        nodes: the ONNX nodes that it computes.
        implementation: what runs, as the report calls it.
        layout: of what it gives.
    """
    call.location = nodes_location(nodes)
    call.attributes[STEP] = DictionaryAttr(
        {"implementation": StringAttr(implementation), "layout": StringAttr(layout)}
    )
