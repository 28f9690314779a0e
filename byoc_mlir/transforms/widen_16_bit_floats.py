"""The pass `widen-16-bit-floats`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.base import relay_name, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.constant import ConstantOp, widened
from byoc_mlir.dialects.relay.element_types import HALVES
from byoc_mlir.dialects.relay.elementwise import CastOp, FloatUnaryOp
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.rewriting import place_after

_FOLLOWING = frozenset(
    {
        *("reshape", "transpose", "squeeze", "expand_dims", "broadcast_to", "concatenate", "split"),
        *("strided_slice", "nn.pad", "take", "gather", "gather_nd"),
        *("negative", "abs", "max", "min", "nn.relu"),
        *(
            f"nn.{kind}_pool{rank}d"
            for kind in ("max", "global_max", "avg", "global_avg")
            for rank in (1, 2, 3)
        ),
    }
)
"""Ops that are computed in `f32` if all their inputs are: they return elements of their inputs,
possibly negated, or sums in `f32`, rounded once."""

_CHOOSING = frozenset({"maximum", "minimum", "where"})
"""Ops that are computed in `f32` if an input is `f32` or has been widened: they return one of two
elements."""

_ROUNDED = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "power"),
        *("clip", "sum", "mean", "cumsum", "cumprod", "image.resize"),
        *("nn.leaky_relu", "nn.prelu", "nn.bias_add", "nn.batch_norm", "nn.layer_norm"),
        *("nn.dense", "nn.matmul", "nn.lstm", "nn.gru"),
        *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
    }
)
"""Ops that are computed in `f32`, besides each `FloatUnaryOp`. Ops that separate close values, such
as comparisons, sorting and rounding, are excluded: their inputs stay as precise as in the model."""


class Widen16BitFloats(ModulePass):
    """Computes models of 16-bit floats in `f32`, as ONNX Runtime does.

    The pass widens values after inputs, and rounds them before outputs, before casts of the model,
    and before ops that separate close values. It widens weights at compile time.

    ```mlir
    func.func @main(%x: tensor<4x8xf16>) -> tensor<4x2xf16> {
      %w = relay.constant … : tensor<2x8xf16>
      %0 = relay.nn.dense %x, %w : (tensor<4x8xf16>, tensor<2x8xf16>) -> tensor<4x2xf16>
      %1 = relay.tanh %0 : (tensor<4x2xf16>) -> tensor<4x2xf16>
      func.return %1 : tensor<4x2xf16>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<4x8xf16>) -> tensor<4x2xf16> {
      %w = relay.constant … : tensor<2x8xf32>
      %2 = relay.cast %x {dtype = f32} : (tensor<4x8xf16>) -> tensor<4x8xf32>
      %0 = relay.nn.dense %2, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
      %1 = relay.tanh %0 : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %3 = relay.cast %1 {dtype = f16} : (tensor<4x2xf32>) -> tensor<4x2xf16>
      func.return %3 : tensor<4x2xf16>
    }
    ```
    """

    name = "widen-16-bit-floats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            widener = _Widener()
            for inner in in_time(block.ops):
                widener.visit(inner)


class _Widener:
    def __init__(self) -> None:
        self._types: dict[SSAValue, Attribute] = {}
        """Original element type of each value that is `f32` by now."""
        self._casts: dict[tuple[SSAValue, Attribute], SSAValue] = {}

    def visit(self, op: Operation) -> None:
        if isinstance(op, ConstantOp):
            return
        if isinstance(op, CastOp) and op.dtype == f32:
            return  # of an `f32` it is none, and `simplify` knows
        if self._is_widened(op):
            self._widen(op)
        else:
            for index, value in enumerate(op.operands):
                if value in self._types:
                    op.operands[index] = self._cast(value, self._types[value])

    def _is_widened(self, op: Operation) -> bool:
        halves = [value for value in op.operands if value in self._types or _is_half(value)]
        known = [value for value in halves if not isinstance(value.owner, ConstantOp)]
        if relay_name(op) in _FOLLOWING:
            return bool(known) and all(value in self._types for value in known)
        if relay_name(op) in _CHOOSING:
            return any(value in self._types or (value, f32) in self._casts for value in known)
        is_rounded = isinstance(op, FloatUnaryOp) or relay_name(op) in _ROUNDED
        return bool(halves) and is_rounded

    def _widen(self, op: Operation) -> None:
        for index, value in enumerate(op.operands):
            if _is_half(value):
                op.operands[index] = self._wide(value)
                if isinstance(value.owner, ConstantOp):
                    value.owner.erase_if_unused()
        op.properties.pop("out_dtype", None)
        for result in tuple(op.results):
            if _is_half(result):
                type_ = tensor_type(result)
                wide = tensor_of(f32, type_sizes(type_))
                new = Rewriter.replace_value_with_new_type(result, wide)
                self._types[new] = type_.element_type

    def _wide(self, value: SSAValue) -> SSAValue:
        constant = value.owner
        if not isinstance(constant, ConstantOp):
            return self._cast(value, f32)
        if (value, f32) not in self._casts:
            new = widened(constant)
            Rewriter.insert_op(new, InsertPoint.after(constant))
            self._casts[value, f32] = new.output
        return self._casts[value, f32]

    def _cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        if (value, type_) not in self._casts:
            cast = CastOp(value, dtype=type_)
            Rewriter.insert_op(cast, place_after(value))
            self._casts[value, type_] = cast.output
        return self._casts[value, type_]


def _is_half(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and tensor_type(value).element_type in HALVES
