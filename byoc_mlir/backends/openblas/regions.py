"""Code of regions that call OpenBLAS for each matmul."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.llvm import OrOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import weight_symbol
from byoc_mlir.backends.base import (
    CodegenContext,
    NativeCode,
    OpDetail,
)
from byoc_mlir.backends.inner_buffers import (
    WORKSPACE_SLOT,
    define_open,
    inner_offsets,
    value_addresses,
)
from byoc_mlir.backends.openblas.code import add_load, add_product
from byoc_mlir.backends.openblas.library import (
    load_library,
)
from byoc_mlir.backends.openblas.products import BatchedGemm, product_of
from byoc_mlir.backends.region import nodes_of, outputs_of, source_of
from byoc_mlir.backends.steps import mark_step
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.constant import Array, Weight, derived_array
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.tensors import aligned_empty

_CONTEXT_SLOTS = 1


def generate(region: FuncOp, context: CodegenContext, shared: ModuleBuilder) -> NativeCode:
    """Generates the code of a region; functions of matmuls that other regions use too go to
    `shared`.
    """
    module, symbol = ModuleBuilder(), region.sym_name.data
    offsets, workspace = inner_offsets(region)
    add_load(module, symbol)
    define_open(module, symbol)
    count = len(region.args) + len(outputs_of(region))
    function = module.function(symbol, (POINTER,) * (2 + count))
    _, slots, *tensors = function.parameters
    base = function.pointer(slots, WORKSPACE_SLOT)
    at = value_addresses(function, region, tensors, base, offsets)
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
    sources = [source_of(value, op) for value in op.operands]
    matrix = sources[1]
    if product.block is None or not product.transposes[1] or not isinstance(matrix, Weight):
        return product, sources
    sources[1] = Weight.of(matrix.name, panels(matrix.data, product.block.units))
    return replace(product, transposes=(product.transposes[0], False), has_panels=True), sources


def panels(matrix: Array, width: int) -> Array:
    """Packs `[units, depth]` into panels `[ceil(units / width), depth, width]`, with zeros at the
    end.

    A call then reads one panel contiguously; rows of the whole matrix would be far apart.
    """
    return derived_array(("openblas panels", width), [matrix], lambda: _made(matrix, width))


def _made(matrix: Array, width: int) -> Array:
    units, depth = matrix.shape
    found = aligned_empty((-(-units // width), depth, width), matrix.dtype)
    for number, panel in enumerate(found):
        some = matrix[number * width : (number + 1) * width]
        panel[:, : len(some)] = some.T
        panel[:, len(some) :] = 0
    return found
