"""Queries on regions for code generators, and rules that many backends share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.nn import BatchNormOp, BiasAddOp, DenseOp
from byoc_mlir.dialects.relay.window import Conv2DOp


def constants_of(region: FuncOp) -> Sequence[ConstantOp]:
    """Returns the constants of a region, including those in composites, in the order of its
    body.
    """
    return [op for op in region.walk() if isinstance(op, ConstantOp)]


def nodes_of(region: FuncOp) -> Sequence[Operation]:
    """Returns the ops and composites of a region, operands before users, without constants."""
    return [op for op in region.body.block.ops if not isinstance(op, ConstantOp | ReturnOp)]


def kind_of(op: Operation) -> str:
    """Returns the name of a composite, `npu.conv2d_relu`, or the Relay name of another op,
    `nn.conv2d`.
    """
    return op.composite_name.data if isinstance(op, CompositeOp) else relay_name(op)


def source_of(value: SSAValue, op: Operation) -> SSAValue | Weight:
    """Returns a constant, or a value of the region, for an operand in an op or its composite."""
    if isinstance(value, BlockArgument) and isinstance(op, CompositeOp):
        return source_of(op.inputs[value.index], op) if value.block is op.body.block else value
    return value.owner.weight if isinstance(value.owner, ConstantOp) else value


def outputs_of(region: FuncOp) -> Sequence[SSAValue]:
    """Returns the values that a region returns."""
    terminator = region.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    return tuple(terminator.operands)


def only_f32(op: Operation) -> str | None:
    """Accepts ops whose operands and results are all float32 tensors."""
    for value in (*op.operands, *op.results):
        if tensor_type(value).element_type != f32:
            return f"only float32 is supported, found {value.type}"
    return None


def elementwise_f32(op: Operation) -> str | None:
    """Accepts ops whose operands and results are all float32 tensors of one shape."""
    shapes = {shape_of(value) for value in (*op.operands, *op.results)}
    if len(shapes) > 1:
        return "operands of different shapes would have to be broadcast"
    return only_f32(op)


def product_f32(op: Operation) -> str | None:
    """Accepts a float32 convolution with one group, or a float32 dense layer on data of rank 2."""
    data = op.operands[0]
    if isinstance(op, Conv2DOp) and op.groups.value.data != 1:
        return f"only one group is supported, found {op.groups.value.data}"
    if isinstance(op, DenseOp) and len(shape_of(data)) != 2:
        return f"only data of rank 2 is supported, found {data.type}"
    return only_f32(op)


def on_channels(op: Operation) -> str | None:
    """Accepts a bias or a batch norm whose axis is 1, the channels."""
    if isinstance(op, BiasAddOp | BatchNormOp) and op.positive_axis != 1:
        return f"only axis 1 is supported, found {op.positive_axis}"
    return None
