"""The pass `keep-channels-last`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.base import Tensor, rank_of, sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.contraction import fill_value, loop_sizes
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    Read,
    dims,
    slice_offsets,
    slice_sizes,
    static_ints,
)

T = TypeVar("T")

_LAST, _FIRST = "channels_last", "channels_first"
"""Names of the transposing ops."""


def channels_last(b: LinalgBuilder, value: SSAValue) -> SSAValue:
    """Transposes `[N, C, spatial...]` to `[N, spatial..., C]`."""
    rank = rank_of(value)
    read = Read(value, dims((0, rank - 1, *range(1, rank - 1))))
    return b.generic([read], last_type(value), lambda s, x: x, name=_LAST)


def channels_first(b: LinalgBuilder, value: SSAValue) -> SSAValue:
    """Transposes `[N, spatial..., C]` to `[N, C, spatial...]`."""
    batch, *sizes, channels = sizes_of(value)
    type_ = tensor_of(tensor_type(value).element_type, [batch, channels, *sizes])
    read = Read(value, with_last(dims(range(len(sizes) + 2))))
    return b.generic([read], type_, lambda s, x: x, name=_FIRST)


def last_type(value: SSAValue) -> Tensor:
    """Returns the type of `channels_last(value)`."""
    return tensor_of(tensor_type(value).element_type, with_last(sizes_of(value)))


def with_last(values: Iterable[T]) -> Sequence[T]:
    """Reorders values that belong to the axes `N, C, spatial...`, so that the channels' value comes
    last.
    """
    batch, channels, *spatial = values
    return (batch, *spatial, channels)


def before_channels_first(value: SSAValue) -> SSAValue | None:
    """Returns `x` if the value is `channels_first(x)`, else None."""
    return _operand(value, _FIRST)


def before_channels_last(value: SSAValue) -> SSAValue | None:
    """Returns `x` if the value is `channels_last(x)`, else None."""
    return _operand(value, _LAST)


def _operand(value: SSAValue, name: str) -> SSAValue | None:
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or op.doc is None or op.doc.data != name:
        return None
    return op.operands[0]


class KeepChannelsLast(ModulePass):
    """Computes the ops after a convolution's kernel in NHWC, the layout that the kernel writes.

    Element-wise ops, pools, slices and insertions are computed in NHWC; the transpose to NCHW moves
    after them. Before the next kernel, it meets the opposite transpose, and both are removed. A
    reduction that reads each element once reads the tensor in NHWC.

    ```mlir
    %1 = linalg.generic … ins(%0 : tensor<1x8x8x64xf32>) … attrs = {doc = "channels_first"} …
    %2 = linalg.generic … ins(%1 : tensor<1x64x8x8xf32>) … attrs = {doc = "tanh"} …
    // becomes
    %1 = linalg.generic … ins(%0 : tensor<1x8x8x64xf32>) … attrs = {doc = "tanh"} …
    %2 = linalg.generic … ins(%1 : tensor<1x8x8x64xf32>) … attrs = {doc = "channels_first"} …
    ```
    """

    name = "keep-channels-last"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            for block in host_blocks(op):
                if any(_is_transposed(value) for one in block.ops for value in one.results):
                    _sink(block)


def _is_transposed(value: SSAValue) -> bool:
    return before_channels_first(value) is not None


def _sink(block: Block) -> None:
    """Moves the transposes of a block after all ops that can be computed in NHWC."""
    for op in in_time(block.ops):
        match op:
            case linalg.GenericOp():
                _sink_behind_generic(op)
            case tensor.ExtractSliceOp() if _is_transposed(op.source):
                _sink_behind_slice(op)
            case tensor.InsertSliceOp():
                _sink_behind_insertion(op)
            case _:
                pass
    for op in reversed(tuple(block.ops)):
        is_pure = isinstance(op, linalg.GenericOp | tensor.EmptyOp)
        if is_pure and not any(result.first_use for result in op.results):
            block.erase_op(op)


def _replace(op: Operation, transposed: SSAValue) -> None:
    """Replaces the only result of an op with `channels_first` of a value."""
    found = channels_first(LinalgBuilder(op), transposed)
    Rewriter.replace_op(op, (), [found])


def _sink_behind_generic(op: linalg.GenericOp) -> None:
    back = before_channels_last(op.results[0])
    if back is not None:
        kernel_result = before_channels_first(back)
        if kernel_result is not None:
            op.results[0].replace_all_uses_with(kernel_result)
        return
    transposed = [number for number, value in enumerate(op.inputs) if _is_transposed(value)]
    if not transposed or _is_transposed(op.results[0]):
        return
    follows = _follows(op, transposed[0])
    if not follows and not _reads_once(op, transposed):
        return
    for number in transposed:
        _read_as_written(op, number)
    if follows:
        _write_channels_last(op)


def _follows(op: linalg.GenericOp, number: int) -> bool:
    """True if the axes of the op's only, new result are those of input `number`, and may be
    reordered.
    """
    if len(op.results) != 1 or not _is_background(op.outputs[0]):
        return False
    if any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops):
        return False
    reading = op.indexing_maps.data[number].data.results
    writing = op.indexing_maps.data[-1].data.results
    return len(reading) == len(writing) and all(
        isinstance(written, AffineDimExpr) and written.position in read.used_dims()
        for read, written in zip(reading, writing, strict=True)
    )


def _reads_once(op: linalg.GenericOp, numbers: Sequence[int]) -> bool:
    """True if an op iterates no more often than the smallest of the inputs `numbers` has
    elements.
    """
    elements = (hint(math.prod(sizes_of(op.inputs[number]))) for number in numbers)
    return hint(math.prod(loop_sizes(op))) <= min(elements)


def _read_as_written(op: linalg.GenericOp, number: int) -> None:
    """Replaces an operand that is `channels_first(x)` with `x`."""
    source = before_channels_first(op.operands[number])
    assert source is not None
    maps = list(op.indexing_maps.data)
    map_ = maps[number].data
    maps[number] = AffineMapAttr(AffineMap(map_.num_dims, 0, tuple(with_last(map_.results))))
    op.properties["indexing_maps"] = ArrayAttr(maps)
    op.operands[number] = source


def _write_channels_last(op: linalg.GenericOp) -> None:
    """Rewrites an op to compute its result in NHWC, with loops in that order."""
    *reading, writing = (attribute.data for attribute in op.indexing_maps)
    written = with_last(writing.results)
    order = [expr.position for expr in written if isinstance(expr, AffineDimExpr)]
    order += [loop for loop in range(writing.num_dims) if loop not in order]
    loops = [AffineDimExpr(order.index(loop)) for loop in range(writing.num_dims)]

    def reordered(exprs: Sequence[AffineExpr]) -> AffineMapAttr:
        results = tuple(expr.replace_dims_and_symbols(loops, ()) for expr in exprs)
        return AffineMapAttr(AffineMap(len(loops), 0, results))

    maps = [*(reordered(map_.results) for map_ in reading), reordered(written)]
    kinds = [op.iterator_types.data[loop] for loop in order]
    made = linalg.GenericOp.create(
        operands=[*op.inputs, _transposed_background(LinalgBuilder(op), op.outputs[0])],
        result_types=[last_type(op.results[0])],
        properties={
            **op.properties,
            "indexing_maps": ArrayAttr(maps),
            "iterator_types": ArrayAttr(kinds),
        },
        regions=[op.detach_region(op.body)],
    )
    _replace(op, LinalgBuilder(op).emit(made))


def _sink_behind_slice(op: tensor.ExtractSliceOp) -> None:
    source = before_channels_first(op.source)
    assert source is not None
    offsets, sizes = with_last(slice_offsets(op)), with_last(slice_sizes(op))
    strides = with_last(static_ints(op.static_strides))
    _replace(op, LinalgBuilder(op).extract(source, offsets, sizes, strides))


def _sink_behind_insertion(op: tensor.InsertSliceOp) -> None:
    """Computes an insertion in NHWC if its source or destination was transposed from NHWC."""
    is_transposed = _is_transposed(op.source) or _is_transposed(op.dest)
    if not is_transposed or not _is_background(op.dest):
        return
    b = LinalgBuilder(op)
    source = before_channels_first(op.source)
    if source is None:
        source = channels_last(b, op.source)
    offsets, strides = with_last(slice_offsets(op)), with_last(static_ints(op.static_strides))
    _replace(op, b.insert(source, _transposed_background(b, op.dest), offsets, strides))


def _is_background(value: SSAValue) -> bool:
    """True if the initial value of a result is undefined, one value everywhere, or a tensor
    transposed from NHWC.
    """
    op = value.owner
    is_filled = isinstance(op, linalg.GenericOp) and fill_value(op) is not None
    return isinstance(op, tensor.EmptyOp) or is_filled or _is_transposed(value)


def _transposed_background(b: LinalgBuilder, value: SSAValue) -> SSAValue:
    """Returns an initial value for which `_is_background` holds, in NHWC."""
    known = before_channels_first(value)
    if known is not None:
        return known
    empty, fill = b.empty(last_type(value)), value.owner
    if not isinstance(fill, linalg.GenericOp):
        return empty
    return b.emit(
        linalg.GenericOp.create(
            operands=[empty],
            result_types=[empty.type],
            properties=dict(fill.properties),
            regions=[fill.body.clone()],
        )
    )
