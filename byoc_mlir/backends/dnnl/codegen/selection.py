"""Selection of each op's implementation: oneDNN's choice, or built-in code."""

from __future__ import annotations

from dataclasses import dataclass, replace

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.codegen.nan_safe import NanSafe, nan_safe
from byoc_mlir.backends.dnnl.codegen.own_code import OwnCode, own_code
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.calls import Argument, MemoryDescriptor
from byoc_mlir.backends.dnnl.library.objects import descriptor as described_by
from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.partition.reference_code import reference_name
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, Operand
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import CompilationError
from byoc_mlir.onednn.engine import openmp_threads
from byoc_mlir.onednn.primitives import PrimitiveDescriptor


@dataclass(frozen=True)
class Instead:
    """NaN-safe replacement of an op."""

    bare: SelectedPrimitive
    nan_safe: NanSafe


@dataclass(frozen=True)
class SelectedPrimitive:
    """Op with its primitive and the implementation that oneDNN chooses for it."""

    op: dnnl.ExecutedOp
    primitive: DescribedPrimitive
    descriptor: PrimitiveDescriptor
    instead: Instead | None = None

    @property
    def scratchpad_bytes(self) -> int:
        """Returns the bytes of scratchpad, which also suffice for the NaN-safe replacement."""
        nan_safe = 0 if self.instead is None else self.instead.bare.scratchpad_bytes
        return max(self.descriptor.scratchpad_bytes, nan_safe)

    @property
    def implementation(self) -> str:
        """Returns the name of the implementation in the report."""
        return self.descriptor.implementation


def select(op: dnnl.ExecutedOp, threads: int) -> SelectedPrimitive | OwnCode:
    """Selects the implementation of an op, for the layouts of its types and its algorithm.

    Args:
        threads: the OpenMP threads of ops that run on all threads.

    Raises:
        CompilationError: oneDNN has no implementation but its reference code, so the host is
            faster.
    """
    threads = op.own_threads or threads
    own = own_code(op, threads)
    if own is not None:
        return own
    described = primitive(op)
    assert described is not None
    with openmp_threads(threads):
        descriptor = find(described.call)
        name = reference_name(described)
        if descriptor is None or name is not None:
            nodes = ", ".join(node_names(op)) or op.name
            raise CompilationError(
                f"oneDNN has only reference code ({name}) for {nodes}, which is slower than the"
                " host"
            )
        primitive_, descriptor = _pinned(described, descriptor)
    return SelectedPrimitive(op, primitive_, descriptor, _instead(op, threads))


def _instead(op: dnnl.ExecutedOp, threads: int) -> Instead | None:
    found = nan_safe(op)
    if found is None:
        return None
    bare = found.bare
    described = primitive(bare)
    assert described is not None
    operands = tuple(
        replace(one, value=op.results[0]) if one.value is bare.results[0] else one
        for one in described.operands
    )
    bare.erase()
    described = replace(described, operands=operands)
    with openmp_threads(threads):
        descriptor = find(described.call)
        if descriptor is None:
            return None
        return Instead(SelectedPrimitive(op, *_pinned(described, descriptor)), found)


def _pinned(
    described: DescribedPrimitive, descriptor: PrimitiveDescriptor
) -> tuple[DescribedPrimitive, PrimitiveDescriptor]:
    """Describes the weights as they are stored, if oneDNN then runs the same code without
    packing.

    Other requirements, such as the scratchpad, may differ.
    """
    packed = [operand for operand in described.operands if operand.packed]
    if not packed or not all(_is_wanted(one, descriptor) for one in packed):
        return described, descriptor
    stored = {operand.descriptor.dims: operand.descriptor for operand in packed}
    arguments: list[Argument] = [
        stored[argument.dims]
        if isinstance(argument, MemoryDescriptor) and argument.layout == layouts.ANY
        else argument
        for argument in described.call.arguments
    ]
    call = replace(described.call, arguments=tuple(arguments))
    found = find(call)
    if found is None or found.implementation != descriptor.implementation:
        return described, descriptor
    return DescribedPrimitive(
        call, tuple(replace(one, packed=False) for one in described.operands)
    ), found


def _is_wanted(operand: Operand, by: PrimitiveDescriptor) -> bool:
    """True if a primitive reads the operand exactly as it is described."""
    return by.descriptor(operand.argument).is_same(described_by(operand.descriptor))
