"""A backend that runs matmuls with OpenBLAS, from native code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.llvm import OrOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.abi import weight_symbol
from byoc_mlir.backends.base import (
    Backend,
    CodegenContext,
    GeneratedCode,
    NativeCode,
    OpDetail,
    Rule,
    attempt,
)
from byoc_mlir.backends.openblas.choose_openblas_blocks import ChooseOpenBlasBlocks
from byoc_mlir.backends.openblas.code import add_load, add_product
from byoc_mlir.backends.openblas.library import (
    ENVIRONMENT_VARIABLE,
    load_library,
    unavailable_reason,
)
from byoc_mlir.backends.openblas.panels import panels
from byoc_mlir.backends.openblas.products import BatchedGemm, bias_refused, product_of, refused
from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.backends.steps import mark_step
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.constant import ConstantOp, Weight
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard

_WORKSPACE_SLOT, _CONTEXT_SLOTS = 0, 1


class OpenBlasBackend(Backend):
    """Runs dense layers, matmuls and batched matmuls with OpenBLAS."""

    name: ClassVar[str] = "openblas"
    environment: ClassVar[tuple[str, ...]] = (ENVIRONMENT_VARIABLE,)

    def unavailable(self) -> str | None:
        return unavailable_reason()

    def describe(self) -> str:
        library = load_library()
        return f"{library.configuration}, {library.path}"

    def op_rules(self) -> Mapping[str, Rule]:
        return {"nn.dense": refused, "nn.matmul": refused}

    def patterns(self) -> Sequence[CompositePattern]:
        dense = is_op("nn.dense")(wildcard(), wildcard()).named("dense")
        biased = is_op("nn.bias_add")(dense, wildcard()).named("bias")
        return [CompositePattern(f"{self.name}.dense_bias", biased, _check)]

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        return {ChooseOpenBlasBlocks.name: lambda: ChooseOpenBlasBlocks}

    def region_passes(self) -> Sequence[ModulePass]:
        return (ChooseOpenBlasBlocks(),)

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        return _generate(region, context, ModuleBuilder())

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        generate = partial(_generate, shared=ModuleBuilder())
        return [attempt(generate, region, context) for region in regions]


def _check(match: Match) -> str | None:
    return refused(match.op("dense")) or bias_refused(match.op("bias"))


def _generate(region: FuncOp, context: CodegenContext, shared: ModuleBuilder) -> NativeCode:
    """Generates the code of a region; functions of matmuls that other regions use too go to
    `shared`.
    """
    module, symbol = ModuleBuilder(), region.sym_name.data
    offsets, workspace = _places(region)
    add_load(module, symbol)
    _add_open(module, symbol)
    tensors = [*region.args, *outputs_of(region)]
    function = module.function(symbol, (POINTER,) * (2 + len(tensors)))
    _, slots, *addresses = function.parameters
    base = function.pointer(slots, _WORKSPACE_SLOT)
    at = dict(zip(tensors, addresses, strict=True))
    for value, offset in offsets.items():
        at[value] = function.offset(base, function.integer(offset))
    used: dict[Weight, None] = {}

    def address(source: SSAValue | Weight) -> SSAValue:
        if not isinstance(source, Weight):
            return at[source]
        used[source] = None
        return function.address(module.external(weight_symbol(source.digest)))

    status = function.integer(0, i32)
    details: list[OpDetail] = []
    for op in nodes_of(region):
        product, sources = _as_called(op)
        name = add_product(shared, product, context.threads)
        detail = OpDetail(node_names(op), "sgemv" if product.is_vector else "sgemm")
        result = function.call(name, *map(address, (*sources, *op.results)))
        assert isinstance(result.owner, Operation)
        mark_step(result.owner, detail.nodes, detail.implementation)
        status = function.binary(OrOp, status, result)
        details.append(detail)
    function.finish(status)
    return NativeCode(
        module.module,
        context_slots=_CONTEXT_SLOTS,
        workspace_bytes=workspace,
        constants=tuple(used),
        libraries=(load_library().requirement,),
        details=tuple(details),
        shared=shared.module,
    )


def _as_called(op: Operation) -> tuple[BatchedGemm, Sequence[SSAValue | Weight]]:
    """Returns the matmul of an op and its operands.

    If the matmul is split into blocks, a constant operand B that is stored transposed is packed
    into panels.
    """
    product = product_of(op)
    sources = [
        value.owner.weight if isinstance(value.owner, ConstantOp) else value
        for value in op.operands
    ]
    matrix = sources[1]
    if product.block is None or not product.transposes[1] or not isinstance(matrix, Weight):
        return product, sources
    sources[1] = Weight.of(matrix.name, panels(matrix.data, product.block.units))
    return replace(product, transposes=(product.transposes[0], False), has_panels=True), sources


def _places(region: FuncOp) -> tuple[Mapping[SSAValue, int], int]:
    """Returns the workspace offsets of the values between matmuls, and the workspace's size."""
    nodes = list(nodes_of(region))
    inner = [
        (number, op.results[0])
        for number, op in enumerate(nodes)
        if op.results[0] not in outputs_of(region)
    ]
    requests = [
        BufferRequest(4 * math.prod(shape_of(value)), number, _last_use(value, nodes, number))
        for number, value in inner
    ]
    offsets, size = plan_offsets(requests)
    return {value: offset for (_, value), offset in zip(inner, offsets, strict=True)}, size


def _last_use(value: SSAValue, nodes: Sequence[Operation], first: int) -> int:
    users = {use.operation for use in value.uses}
    return max((n for n, op in enumerate(nodes) if op in users), default=first)


def _add_open(module: ModuleBuilder, region: str) -> None:
    """Adds `R_open`, which stores the address of the workspace in the context."""
    function = module.function(f"{region}_open", (POINTER,) * 3)
    _, context, workspace = function.parameters
    function.store(workspace, function.slot(context, _WORKSPACE_SLOT))
    function.finish(function.integer(0, i32))
