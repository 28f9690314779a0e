"""The pass `fuse-elementwise`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.kernels.ops import i32_array
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.contraction import is_product_sum, loop_sizes

_MOST_INPUTS = 12
"""Maximum number of a loop's inputs: more pointers do not fit the registers."""

_MOST_OPS = 128
"""Maximum number of ops in a body. Beyond it, fusing another op saves little in proportion, and
LLVM's time grows faster than the body."""


class FuseElementwise(ModulePass):
    """Fuses element-wise `linalg.generic` ops into their only user.

    Conversions to a wider float type are fused into each of their users. A user may be
    element-wise, or a reduction that reads every element once. A value that it reads several times
    becomes one operand. Producers are not fused into GEMMs and windows, which read each element
    many times. Indexing maps are composed.

    ```mlir
    %0 = linalg.generic … ins(%x, %b : …) outs(%e : …) attrs = {doc = "bias_add"} { add }
    %1 = linalg.generic … ins(%0 : …) outs(%e : …) attrs = {doc = "relu"} { maximum }
    // becomes
    %1 = linalg.generic … ins(%x, %b : …) outs(%e : …) attrs = {doc = "bias_add_relu"} { … }
    ```
    """

    name = "fuse-elementwise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            self._fuse(op)

    def _fuse(self, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for inner in in_time(block.ops):
                if isinstance(inner, linalg.GenericOp) and not is_product_sum(inner):
                    _fuse_operands(inner)


def _fuse_operands(consumer: linalg.GenericOp) -> None:
    """Fuses the producers of `consumer` into it; their own producers are fused already."""
    number = 0
    while number < len(consumer.inputs):
        earlier = _first_read(consumer, number)
        if earlier < number:
            _drop_operand(consumer, number, earlier)
            number = earlier  # now it may be read once
            continue
        producer = consumer.inputs[number].owner
        if isinstance(producer, linalg.GenericOp) and _can_fuse(producer, consumer, number):
            _take_in(producer, consumer, number)
        else:
            number += 1


def _first_read(consumer: linalg.GenericOp, number: int) -> int:
    """Returns the first input that reads the same elements as the input `number`."""
    maps = consumer.indexing_maps.data
    reads = list(zip(consumer.inputs, maps, strict=False))
    return reads.index(reads[number])


def _drop_operand(consumer: linalg.GenericOp, number: int, earlier: int) -> None:
    """Drops an input that reads the same elements as an earlier one."""
    block = consumer.body.block
    block.args[number].replace_all_uses_with(block.args[earlier])
    block.erase_arg(block.args[number])
    inputs, maps = list(consumer.inputs), list(consumer.indexing_maps.data)
    del inputs[number], maps[number]
    outputs = consumer.outputs
    consumer.indexing_maps = ArrayAttr(maps)
    consumer.properties["operandSegmentSizes"] = i32_array(len(inputs), len(outputs))
    consumer.operands = [*inputs, *outputs]


def _can_fuse(producer: linalg.GenericOp, consumer: linalg.GenericOp, number: int) -> bool:
    if not _is_elementwise(producer) or producer.parent is not consumer.parent:
        return False
    is_copied = not producer.inputs or _is_widening(producer)
    if not is_copied and producer.results[0].get_user_of_unique_use() is not consumer:
        return False
    if producer.inputs and not _visits_once(producer, consumer):
        return False
    if not _is_elementwise(consumer) and any(_is_product(value) for value in producer.inputs):
        return False  # the GEMM's loops compute it faster
    if len(producer.inputs) + len(consumer.inputs) > _MOST_INPUTS:
        return False
    if len(producer.body.block.ops) + len(consumer.body.block.ops) > _MOST_OPS:
        return False
    return _knows_its_sizes(producer, consumer, number)


def _is_elementwise(op: linalg.GenericOp) -> bool:
    """True if the op has one, new result, and computes each of its elements independently."""
    return (
        len(op.results) == 1
        and all(kind.data is IteratorType.PARALLEL for kind in op.iterator_types)
        and isinstance(op.outputs[0].owner, tensor.EmptyOp)
        and not any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops)
    )


def _is_widening(op: linalg.GenericOp) -> bool:
    """True if the op only converts to a wider float type, which takes less time than to write the
    wider numbers and read them.
    """
    first, *others = op.body.block.ops
    return isinstance(first, arith.ExtFOp) and len(others) == 1


def _is_product(value: SSAValue) -> bool:
    return isinstance(value.owner, linalg.GenericOp) and is_product_sum(value.owner)


def _visits_once(producer: linalg.GenericOp, consumer: linalg.GenericOp) -> bool:
    """True if the consumer iterates at most once for each element of the producer's result."""
    iterations = math.prod(loop_sizes(consumer))
    elements = math.prod(sizes_of(producer.results[0]))
    return iterations == elements or hint(iterations) <= hint(elements)


def _composed_maps(
    producer: linalg.GenericOp, consumer: linalg.GenericOp, number: int
) -> list[AffineMap]:
    """Returns the indexing maps of the producer's inputs in the consumer's loops."""
    reading = consumer.indexing_maps.data[number].data
    maps = [attribute.data for attribute in producer.indexing_maps.data[: len(producer.inputs)]]
    return [
        AffineMap(reading.num_dims, 0, tuple(expr.compose(reading) for expr in map_.results))
        for map_ in maps
    ]


def _knows_its_sizes(producer: linalg.GenericOp, consumer: linalg.GenericOp, number: int) -> bool:
    """True if every loop still has an operand that determines its size after the fusion."""
    maps = [attribute.data for attribute in consumer.indexing_maps]
    kept = [*maps[:number], *maps[number + 1 :], *_composed_maps(producer, consumer, number)]
    known = {
        expr.position for map_ in kept for expr in map_.results if isinstance(expr, AffineDimExpr)
    }
    return len(known) == maps[0].num_dims


def _take_in(producer: linalg.GenericOp, consumer: linalg.GenericOp, number: int) -> None:
    """Fuses the producer into the consumer: the producer's inputs replace the operand `number`."""
    maps, inputs, outputs = consumer.indexing_maps.data, consumer.inputs, consumer.outputs
    composed = [AffineMapAttr(map_) for map_ in _composed_maps(producer, consumer, number)]
    kept = [*inputs[:number], *producer.inputs, *inputs[number + 1 :]]
    is_last_reader = producer.results[0].has_one_use()
    _take_body(producer, consumer, number, is_copied=not is_last_reader)
    consumer.indexing_maps = ArrayAttr([*maps[:number], *composed, *maps[number + 1 :]])
    consumer.doc = _joined_names((producer, consumer))
    consumer.location = fused_location((producer, consumer))
    consumer.properties["operandSegmentSizes"] = i32_array(len(kept), len(outputs))
    consumer.operands = [*kept, *outputs]
    if is_last_reader:
        Rewriter.erase_op(producer)


def _take_body(
    producer: linalg.GenericOp, consumer: linalg.GenericOp, number: int, *, is_copied: bool
) -> None:
    """Inserts the producer's body at the start of the consumer's body.

    The body is moved, not copied, if the producer has no other user.
    """
    region = producer.body.clone() if is_copied else producer.detach_region(producer.body)
    source, target = region.block, consumer.body.block
    *read, _ = source.args  # its output is new, and so not read
    for place, argument in enumerate(read, number + 1):
        argument.replace_all_uses_with(target.insert_arg(argument.type, place))
    end = source.last_op
    assert isinstance(end, linalg.YieldOp)
    target.args[number].replace_all_uses_with(end.arguments[0])
    target.erase_arg(target.args[number])
    source.erase_op(end)
    first = target.first_op
    assert first is not None
    for op in in_time(source.ops):
        op.detach()
        target.insert_op_before(op, first)


def _joined_names(ops: Sequence[linalg.GenericOp]) -> StringAttr:
    named = [op for op in ops if op.inputs] or list(ops)
    words = [op.doc.data for op in named if op.doc is not None]
    return StringAttr("_".join(dict.fromkeys(words)))
