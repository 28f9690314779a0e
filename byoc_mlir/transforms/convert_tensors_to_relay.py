"""The pass `convert-tensors-to-relay`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, func, math, scf, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import COMPILER
from byoc_mlir.dialects.relay import ConstantOp, RelayOp, elementwise, nn, transform
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.control import NUMBER, ForOp
from byoc_mlir.transforms.rewriting import replace_op

_ELEMENTWISE: Mapping[type[Operation], type[RelayOp]] = {
    **dict.fromkeys((arith.AddfOp, arith.AddiOp, linalg.AddOp), elementwise.AddOp),
    **dict.fromkeys((arith.SubfOp, arith.SubiOp, linalg.SubOp), elementwise.SubtractOp),
    **dict.fromkeys((arith.MulfOp, arith.MuliOp, linalg.MulOp), elementwise.MultiplyOp),
    **dict.fromkeys((arith.MaximumfOp, linalg.MaxOp), elementwise.MaximumOp),
    **dict.fromkeys((arith.MinimumfOp, linalg.MinOp), elementwise.MinimumOp),
    **dict.fromkeys((math.ExpOp, linalg.ExpOp), elementwise.ExpOp),
    **dict.fromkeys((math.LogOp, linalg.LogOp), elementwise.LogOp),
    **dict.fromkeys((math.SqrtOp, linalg.SqrtOp), elementwise.SqrtOp),
    linalg.SelectOp: elementwise.WhereOp,
    arith.DivfOp: elementwise.DivideOp,
    arith.NegfOp: elementwise.NegativeOp,
    math.AbsFOp: elementwise.AbsOp,
    math.CeilOp: elementwise.CeilOp,
    math.CosOp: elementwise.CosOp,
    math.ErfOp: elementwise.ErfOp,
    math.FloorOp: elementwise.FloorOp,
    math.RsqrtOp: elementwise.RsqrtOp,
    math.SinOp: elementwise.SinOp,
    math.TanhOp: elementwise.TanhOp,
}


class ConvertTensorsToRelay(ModulePass):
    """Converts upstream MLIR ops on whole tensors of static shapes to `relay`.

    - `arith` and `math`: ops on tensors that `relay` has.
    - `linalg`: `fill`, `matmul`, `transpose` and the element-wise named ops.
    - `tensor`: ops that move elements.
    - `scf.for` with constant bounds that carries tensors.

    Other ops stay.

    ```mlir
    %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = arith.addf %x, %c : tensor<2xf32>
    // becomes
    %c = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = relay.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
    """

    name = "convert-tensors-to-relay"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [one for one in op.ops if isinstance(one, func.FuncOp)]:
            if COMPILER not in function.attributes:
                for block in function.body.blocks:
                    _convert(block, function)


def _convert(block: Block, function: func.FuncOp) -> None:
    for op in tuple(block.ops):
        if isinstance(op, scf.ForOp):
            _convert(op.body.block, function)
        made = _converted(op, function)
        if not made or made[-1].result_types != op.result_types:
            continue
        for one in made:
            one.location = op.location
        replace_op(op, made, made[-1].results)
    for op in reversed(tuple(block.ops)):
        is_scalar = isinstance(op, arith.ConstantOp | tensor.EmptyOp)
        if is_scalar and all(result.first_use is None for result in op.results):
            block.erase_op(op)


def _converted(op: Operation, function: func.FuncOp) -> Sequence[Operation]:
    """Returns the `relay` ops for `op`, the last of which has its results; empty if `op` stays."""
    if isinstance(op, scf.ForOp):
        return _loop(op, function)
    if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
        return ()
    if type(op) in _ELEMENTWISE:
        is_named = isinstance(op, NamedOperation)
        operands = op.inputs if is_named else op.operands
        return [_ELEMENTWISE[type(op)](*operands)]
    rule = _RULES.get(type(op))
    return () if rule is None else rule(op)


def _constant(op: arith.ConstantOp) -> Sequence[Operation]:
    if not isinstance(op.value, DenseIntOrFPElementsAttr):
        return ()
    return [ConstantOp.create(properties={"value": op.value}, result_types=[op.result.type])]


def _fill(op: linalg.FillOp | tensor.SplatOp) -> Sequence[Operation]:
    value, filled = op.operands[0], tensor_type(op.results[0])
    number = _number(value)
    if number is None or value.type != filled.element_type:
        return ()
    scalar: Any = TensorType(filled.element_type, [])
    dense = DenseIntOrFPElementsAttr.from_list(scalar, [cast(Any, number)])
    made = ConstantOp.create(properties={"value": dense}, result_types=[scalar])
    return [made, transform.BroadcastToOp(made, shape=shape_of(op.results[0]))]


def _matmul(op: linalg.MatmulOp) -> Sequence[Operation]:
    if op.properties.get("indexing_maps", op.indexing_maps) != _MATMUL_MAPS:
        return ()
    product = nn.MatmulOp(*op.inputs)
    return [product, elementwise.AddOp(product, op.outputs[0])]


_MATMUL_MAPS = linalg.MatmulOp.get_irdl_definition().properties["indexing_maps"].default_value


def _reshape(op: Operation) -> Sequence[Operation]:
    return [transform.ReshapeOp(op.operands[0], newshape=shape_of(op.results[0]))]


def _slice(op: tensor.ExtractSliceOp) -> Sequence[Operation]:
    starts, sizes, strides = (
        ints(one) for one in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    kept = [[size for size in sizes_ if size != 1] for sizes_ in (sizes, shape_of(op.result))]
    if len(op.operands) > 1 or min(strides, default=1) < 1 or kept[0] != kept[1]:
        return ()
    ends = [
        start + (size - 1) * stride + 1 if size else start
        for start, size, stride in zip(starts, sizes, strides, strict=True)
    ]
    cut = transform.StridedSliceOp(op.source, begin=starts, end=ends, strides=strides)
    return [cut, transform.ReshapeOp(cut, newshape=shape_of(op.result))]


def _pad(op: tensor.PadOp) -> Sequence[Operation]:
    end = op.region.block.last_op
    number = None if end is None or not end.operands else _number(end.operands[0])
    if len(op.operands) > 1 or number is None or float(number) != number:
        return ()
    widths = zip(ints(op.static_low), ints(op.static_high), strict=True)
    padded = transform.PadOp(op.source, pad_width=[*chain(*widths)], pad_value=float(number))
    return [padded]


_RULES: Mapping[type[Operation], Callable[[Any], Sequence[Operation]]] = {
    arith.ConstantOp: _constant,
    linalg.CopyOp: lambda op: [transform.ReshapeOp(op.inputs[0], newshape=shape_of(op.inputs[0]))],
    linalg.FillOp: _fill,
    linalg.MatmulOp: _matmul,
    linalg.TransposeOp: lambda op: [transform.TransposeOp(op.inputs[0], axes=op.permutation)],
    tensor.CollapseShapeOp: _reshape,
    tensor.ConcatOp: lambda op: [transform.ConcatenateOp(op.inputs, axis=op.dim.value.data)],
    tensor.ExpandShapeOp: _reshape,
    tensor.ExtractSliceOp: _slice,
    tensor.PadOp: _pad,
    tensor.ReshapeOp: _reshape,
    tensor.SplatOp: _fill,
}


def _number(value: SSAValue) -> int | float | None:
    """Returns the value of a scalar constant, or `None` for other values."""
    made = value.owner
    constant = made.value if isinstance(made, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, IntegerAttr | FloatAttr) else None


def _loop(op: scf.ForOp, function: func.FuncOp) -> Sequence[Operation]:
    """Returns the loop as `relay.for`; its body becomes a function of the module.

    Raises:
        PassFailedException: the loop carries tensors, and no `relay.for` is equivalent.
    """
    if not op.results or not all(isinstance(type_, TensorType) for type_ in op.result_types):
        return ()
    number, *carried = op.body.block.args
    *inner, end = op.body.block.ops
    read = dict.fromkeys(value for one in (*inner, end) for value in one.operands)
    outside = [value for value in read if value.owner not in (op.body.block, *inner)]
    bounds = [_number(bound) for bound in (op.lb, op.ub, op.step)]
    is_plain = all(isinstance(one, RelayOp) for one in inner) and number.first_use is None
    if None in bounds or not is_plain or not all(isinstance(v.type, TensorType) for v in outside):
        raise PassFailedException(
            f"scf.for at {op.location}: accepted are constant bounds, ops on tensors in the body,"
            " and no use of the induction variable"
        )
    op.body.block.add_op(func.ReturnOp(*end.operands))
    end.detach()
    body = _function([*carried, *outside], [*op.body.block.ops], function)
    first, limit, step = (int(cast(int, bound)) for bound in bounds)
    return [
        ForOp(
            [*op.iter_args, *outside],
            body=SymbolRefAttr(body.sym_name),
            count=len(range(first, limit, max(step, 1))),
            carried=len(op.iter_args),
            result_types=op.result_types,
        )
    ]


def _function(
    arguments: Sequence[SSAValue], ops: Sequence[Operation], caller: func.FuncOp
) -> func.FuncOp:
    """Adds a loop's body to the module, as a function of the values that it uses."""
    module = caller.parent_op()
    assert isinstance(module, ModuleOp)
    block = Block(arg_types=[NUMBER, *(value.type for value in arguments)])
    inside = dict(zip(arguments, block.args[1:], strict=True))
    for op in ops:
        op.detach()
        op.operands = [inside.get(value, value) for value in op.operands]
        block.add_op(op)
    names = {one.sym_name.data for one in module.ops if isinstance(one, func.FuncOp)}
    name = f"{caller.sym_name.data}_for"
    while name in names:
        name += "_"
    type_ = ([*block.arg_types], [*ops[-1].operand_types])
    function = func.FuncOp(name, type_, Region(block), StringAttr("private"))
    module.body.block.add_op(function)
    return function
