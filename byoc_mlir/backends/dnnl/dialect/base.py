"""Common parts of all `dnnl` ops: layouts in types, post-ops, the syntax of `relay` ops."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.backends.dnnl.dialect.attributes import BinaryAttr, EltwiseAttr, LayoutAttr, SumAttr
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.dialects.relay.base import RelayOp, Tensor, bool_prop, ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes

POST_OPS = (BinaryAttr, EltwiseAttr, SumAttr)


def layout_of(value: SSAValue) -> str:
    """Returns the layout string of a tensor value; row-major if the type names none."""
    encoding = tensor_type(value).encoding
    if isinstance(encoding, LayoutAttr):
        return encoding.layout.data
    return layouts.plain(len(shape_of(value)))


def with_layout(type_: Tensor, layout: str) -> Tensor:
    """Returns the tensor type in another layout; a row-major type has no layout attribute."""
    shape = type_.get_shape()
    plain = layout == layouts.plain(len(shape))
    return TensorType(type_.element_type, shape, NoneAttr() if plain else LayoutAttr.of(layout))


class DnnlOp(RelayOp, ABC):
    """Base of every `dnnl` op; `dnnl` ops are built, printed and checked like `relay` ops."""

    def verify_(self) -> None:
        super().verify_()
        for value in (*self.operands, *self.results):
            rank = len(shape_of(value))
            if not layouts.is_valid(layout_of(value), rank):
                raise VerifyException(
                    f"{self.name}: '{layout_of(value)}' is no layout of a tensor of rank {rank}"
                )


class ExecutedOp(DnnlOp, ABC):
    """Base of the executable ops: oneDNN's primitives, and built-in code.

    Passes record their decisions and findings in the op's properties:

    - `threads`: the OpenMP threads that run it; by default, all threads of the run.
    - `concurrent`: it runs at the same time as the op before it, each on one thread.
    - `milliseconds`: its latency on one thread, estimated or measured.
    - `implementation`: the name of its implementation, oneDNN's or ours.
    - `scratchpad_bytes`: the memory that it needs besides operands and results.
    - `offsets`: the offsets of its results in the region's workspace, in bytes; -1 for results in
      other memory, such as an output of the region or an operand.
    - `scratchpad_offset`: the offset of its scratchpad in the workspace.
    """

    threads = opt_prop_def(IntegerAttr.constr(i64))
    concurrent = bool_prop(False)
    milliseconds = opt_prop_def(FloatAttr.constr(f64))
    implementation = opt_prop_def(StringAttr)
    scratchpad_bytes = opt_prop_def(IntegerAttr.constr(i64))
    offsets = opt_prop_def(DenseArrayBase.constr(i64))
    scratchpad_offset = opt_prop_def(IntegerAttr.constr(i64))

    @property
    def own_threads(self) -> int | None:
        """Returns the number of threads that run the op, or `None` for all."""
        return None if self.threads is None else self.threads.value.data

    def verify_(self) -> None:
        super().verify_()
        threads, milliseconds = self.own_threads, self.milliseconds
        if threads is not None and threads < 1:
            raise VerifyException(
                f"{self.name}: threads is {threads}, accepted are 1 and more; by default, it is all"
            )
        if milliseconds is not None and not 0 <= milliseconds.value.data < math.inf:
            raise VerifyException(
                f"{self.name}: milliseconds is {milliseconds.value.data}, accepted are numbers from"
                " 0 on"
            )
        if self.concurrent.value.data:
            self._check_concurrent()
        self._check_memory()

    def _check_memory(self) -> None:
        offsets = () if self.offsets is None else ints(self.offsets)
        if self.offsets is not None and len(offsets) != len(self.results):
            raise VerifyException(
                f"{self.name}: {len(offsets)} offsets, expected one for each of"
                f" {len(self.results)} results"
            )
        scratchpad = self.scratchpad_offset
        starts = (*offsets, 0 if scratchpad is None else scratchpad.value.data)
        if any(start != -1 and (start < 0 or start % ARENA_ALIGNMENT) for start in starts):
            raise VerifyException(
                f"{self.name}: offsets are {list(offsets)} and {starts[-1]}, accepted are multiples"
                f" of {ARENA_ALIGNMENT}, and -1 for results that lie elsewhere"
            )

    def _check_concurrent(self) -> None:
        group: list[Operation] = [self]
        while isinstance(group[-1], ExecutedOp) and group[-1].concurrent.value.data:
            before = group[-1].prev_op
            if before is None:
                break
            group.append(before)
        serial = [isinstance(one, ExecutedOp) and one.own_threads == 1 for one in group]
        if len(serial) == 1 or not all(serial):
            raise VerifyException(
                f"{self.name}: it is concurrent, so it and the op before it must have threads = 1"
            )
        if any(operand.owner in group for operand in self.operands):
            raise VerifyException(
                f"{self.name}: it is concurrent with an op whose result it reads; only independent"
                " ops run at the same time"
            )


class LikeSourceOp(ExecutedOp, ABC):
    """Base of ops whose result has the shape and the element type of the first operand."""

    source = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        return (like(self.source, shape_of(self.source)),)


class PostOpsOp(ExecutedOp, ABC):
    """Base of ops whose results pass through a chain of post-ops.

    The operands are the primitive's operands, then one operand for each binary or sum post-op.
    """

    arguments = var_operand_def(TensorType)
    output = result_def(TensorType)
    post_ops = prop_def(ArrayAttr[Attribute], default_value=ArrayAttr[Attribute](()))

    @property
    def post_op_count(self) -> int:
        """Returns the number of post-ops that have an operand."""
        return sum(type(post_op) is not EltwiseAttr for post_op in self.post_ops.data)

    @property
    def primary(self) -> Sequence[SSAValue]:
        """Returns the operands of the primitive itself."""
        return self.operands[: len(self.operands) - self.post_op_count]

    @property
    def post_op_operands(self) -> Sequence[SSAValue]:
        """Returns the operands of the post-ops, in their order."""
        return self.operands[len(self.operands) - self.post_op_count :]

    def check_primary(self, least: int, most: int) -> Sequence[SSAValue]:
        """Checks the number of the primitive's operands and returns them.

        Raises:
            VerifyException: the number of operands is wrong.
        """
        if not least <= len(self.arguments) - self.post_op_count <= most:
            raise VerifyException(
                f"{self.name}: {len(self.arguments)} operands, of which {self.post_op_count} belong"
                f" to post-ops; the primitive takes {least} to {most}"
            )
        return self.primary

    def verify_(self) -> None:
        super().verify_()
        for post_op in self.post_ops:
            if not isinstance(post_op, POST_OPS):
                raise VerifyException(f"{self.name}: {post_op} is not a post-op")
        self._check_post_op_operands()

    def _check_post_op_operands(self) -> None:
        readers = [one for one in self.post_ops if not isinstance(one, EltwiseAttr)]
        for post_op, operand in zip(readers, self.post_op_operands, strict=True):
            shape = shape_of(operand)
            same = shape == shape_of(self.output)
            if isinstance(post_op, SumAttr) and not (same and self._shares_layout(operand)):
                raise VerifyException(
                    f"{self.name}: a sum takes over {operand.type}, which is not {self.output.type}"
                )
            if broadcast_shapes(shape, shape_of(self.output)) != shape_of(self.output):
                raise VerifyException(
                    f"{self.name}: post-op operand {operand.type} does not broadcast to"
                    f" {self.output.type}"
                )

    def _shares_layout(self, operand: SSAValue) -> bool:
        return layout_of(operand) == layout_of(self.output)


class ProductOp(PostOpsOp, ABC):
    """Base of matmuls and convolutions of a source and weights of one type, accumulated in
    `f32`.

    `element` is the type of the result, if it differs from the source's.
    """

    element = opt_prop_def(Attribute)

    @property
    def bias(self) -> SSAValue | None:
        """Returns the bias, if there is one."""
        primary = self.primary
        return primary[2] if len(primary) == 3 else None

    def written(self, source: SSAValue, shape: Sequence[int]) -> Tensor:
        """Returns the type of the result."""
        return written(source, shape, self.element)


def written(source: SSAValue, shape: Sequence[int], element: Attribute | None) -> Tensor:
    """Returns a row-major type of the given shape.

    Its element type is `element`, or by default the source's.
    """
    return like(source, shape) if element is None else TensorType(element, shape)


def like(value: SSAValue, shape: Sequence[int]) -> Tensor:
    """Returns a row-major type of shape `shape` and the element type of `value`."""
    return TensorType(cast(Tensor, value.type).element_type, shape)


def joined_shape(name: str, sources: Sequence[SSAValue], axis: int) -> list[int]:
    """Returns the shape of the concatenation of `sources` along an axis, for the op `name`.

    Raises:
        VerifyException: there are no sources, or they have no such axis.
    """
    shapes = [shape_of(value) for value in sources]
    if not shapes or not 0 <= axis < len(shapes[0]):
        raise VerifyException(f"{name}: nothing to join along axis {axis}")
    joined = list(shapes[0])
    joined[axis] = sum(shape[axis] for shape in shapes)
    return joined
