"""What the library has only reference code for, on the machine at hand: correct, and slow."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.codegen.own_code import own_code
from byoc_mlir.backends.dnnl.layout_choices import ways
from byoc_mlir.backends.dnnl.primitives import primitive
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import CompilationError


def is_reference(implementation: str) -> bool:
    """Whether the library names its reference code so."""
    return implementation.startswith("ref")


def only_reference(op: Operation) -> str | None:
    """The library's name for what it has for a `dnnl` op, if that is reference code in all layouts;
    `None` where it has anything else, or where the op needs no primitive.
    """
    found: list[str] = []
    for layout in ways(op):
        described = primitive(op, layout)
        if described is None:
            return None
        descriptor = api().find(described.call)
        if descriptor is not None and not is_reference(descriptor.implementation):
            return None
        found += [] if descriptor is None else [descriptor.implementation]
    return found[0] if found else "nothing"


def refuse_reference(func: FuncOp) -> None:
    """Looks at a planned region for reference code that nothing could be done about.

    Raises:
        CompilationError: there is some; the host is faster.
    """
    for op in func.body.block.ops:
        if own_code(op, threads=1, is_serial=True) is not None:
            continue
        described = primitive(op)
        descriptor = None if described is None else api().find(described.call)
        if descriptor is not None and is_reference(descriptor.implementation):
            nodes = ", ".join(node_names(op)) or op.name
            raise CompilationError(
                f"oneDNN has only reference code ({descriptor.implementation}) for {nodes}, which"
                " is slower than the host"
            )
