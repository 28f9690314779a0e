"""What the library has only reference code for, on the machine at hand: correct, and slow."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.descriptions import Primitive
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp
from byoc_mlir.backends.dnnl.enums import OWN_CONVOLUTIONS
from byoc_mlir.backends.dnnl.layout_choices import ways
from byoc_mlir.backends.dnnl.primitives import primitive
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import CompilationError


def reference_name(described: Primitive) -> str | None:
    """The name of the reference code that the library has for a primitive, if that is all it has;
    "nothing" if it has not even that.

    Its recurrent layers are called so too, and are fast: products of matrices with vector code.
    """
    descriptor = api().find(described.call)
    if descriptor is None:
        return "nothing"
    name = descriptor.implementation
    return name if name.startswith("ref") and not _is_recurrent(described) else None


def _is_recurrent(described: Primitive) -> bool:
    return described.call.kind.endswith(("lstm_forward", "gru_forward"))


def only_reference(op: Operation) -> str | None:
    """The library's name for what it has for a `dnnl` op, if that is reference code in all layouts;
    `None` where it has anything else, or where the op needs no primitive.
    """
    found: list[str] = []
    for layout in ways(op):
        described = primitive(op, layout)
        name = None if described is None else reference_name(described)
        if name is None:
            return None
        found.append(name)
    return max(found)


def refuse_reference(func: FuncOp) -> None:
    """Looks at a planned region for reference code that nothing could be done about.

    Raises:
        CompilationError: there is some; the host is faster.
    """
    for op in func.body.block.ops:
        if isinstance(op, ConvolutionOp) and op.algorithm.data in OWN_CONVOLUTIONS:
            continue
        described = primitive(op)
        name = None if described is None else reference_name(described)
        if name is not None:
            nodes = ", ".join(node_names(op)) or op.name
            raise CompilationError(
                f"oneDNN has only reference code ({name}) for {nodes}, which"
                " is slower than the host"
            )
