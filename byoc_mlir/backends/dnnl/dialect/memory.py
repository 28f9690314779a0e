"""Ops that move elements, or only change the description of their memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import check_name
from byoc_mlir.backends.dnnl.dialect.base import (
    DnnlOp,
    ExecutedOp,
    LikeSourceOp,
    joined_shape,
    layout_of,
    like,
    with_layout,
)
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.algorithms import CONVERSIONS
from byoc_mlir.dialects.relay.base import (
    Tensor,
    int_prop,
    ints,
    ints_prop,
    shape_of,
    str_prop,
    tensor_type,
)


@irdl_op_definition
class ConcatOp(ExecutedOp):
    """Concatenation of tensors along `axis`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_concat.html
    """

    name = "dnnl.concat"
    sources = var_operand_def(TensorType)
    axis = int_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        return (_joined(self),)


@irdl_op_definition
class JoinOp(DnnlOp):
    """`sources`, which are contiguous in memory, as one tensor; no element is moved.

    All sources have the layout of the result, in which each part along `axis` is contiguous. A
    value is the source of at most one join.
    """

    name = "dnnl.join"
    sources = var_operand_def(TensorType)
    axis = int_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        return (_joined(self),)

    def verify_(self) -> None:
        super().verify_()
        for source in self.sources:
            layout = layout_of(source)
            is_piece = layouts.is_piece(shape_of(source), layout, self.axis.value.data)
            if layout != layout_of(self.output) or not is_piece:
                raise VerifyException(
                    f"{self.name}: {source.type} is no piece of {self.output.type} along axis"
                    f" {self.axis.value.data}"
                )
            if sum(isinstance(use.operation, JoinOp) for use in source.uses) > 1:
                raise VerifyException(f"{self.name}: {source.type} is joined more than once")


def _joined(op: ConcatOp | JoinOp) -> Tensor:
    """Returns the row-major type of the concatenation."""
    return like(op.sources[0], joined_shape(op.name, op.sources, op.axis.value.data))


@irdl_op_definition
class ShuffleOp(LikeSourceOp):
    """`source`, with dimension `axis` split to `[C / group_size, group_size]`, transposed and
    merged again.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_shuffle.html
    """

    name = "dnnl.shuffle"
    axis = int_prop()
    group_size = int_prop()

    def infer_types(self) -> Sequence[Attribute]:
        size, group = shape_of(self.source)[self.axis.value.data], self.group_size.value.data
        if group < 1 or size % group:
            raise VerifyException(f"{self.name}: {size} elements are not groups of {group}")
        return super().infer_types()


@irdl_op_definition
class PixelShuffleOp(ExecutedOp):
    """Shuffle of `source [N, C, ...]`, whose channels are `[*block, C / places]`, to blocks of
    pixels.

    ONNX calls it `DepthToSpace`, with mode `DCR`. It is a reorder between two views.
    """

    name = "dnnl.pixel_shuffle"
    source = operand_def(TensorType)
    block = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        images, channels, *sizes = shape_of(self.source)
        block = ints(self.block)
        places = math.prod(block)
        if len(block) != len(sizes) or places < 1 or channels % places:
            raise VerifyException(
                f"{self.name}: {channels} channels of {len(sizes)} spatial dimensions are no blocks"
                f" of {list(block)}"
            )
        large = (size * step for size, step in zip(sizes, block, strict=True))
        return (like(self.source, [images, channels // places, *large]),)


@irdl_op_definition
class ReorderOp(LikeSourceOp):
    """Copy of `source` in the layout of the result.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_reorder.html
    """

    name = "dnnl.reorder"


@irdl_op_definition
class ConvertOp(ExecutedOp):
    """Copy of `source` with another element type; integers are only widened.

    `algorithm` is `direct` (oneDNN's), or `interleave`: NCHW to NHWC by a built-in kernel.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_reorder.html
    """

    name = "dnnl.convert"
    source = operand_def(TensorType)
    element = prop_def(Attribute)
    algorithm = str_prop("direct")
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        check_name(f"{self.name}: algorithm", self.algorithm.data, CONVERSIONS)
        return (TensorType(self.element, shape_of(self.source)),)


@irdl_op_definition
class ViewOp(DnnlOp):
    """The memory of `source` with another shape or layout; no element is moved.

    Either both tensors are row-major, or the shape is the same and both layouts give every element
    the same offset.
    """

    name = "dnnl.view"
    source = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        old, new = shape_of(self.source), shape_of(self.output)
        if math.prod(old) != math.prod(new):
            raise VerifyException(f"{self.name}: {self.source.type} and {self.output.type} differ")
        return (like(self.source, new),)

    def verify_(self) -> None:
        super().verify_()
        old, new = shape_of(self.source), shape_of(self.output)
        before, after = layout_of(self.source), layout_of(self.output)
        row_major = layouts.same_bytes(old, before, layouts.plain(len(old))) and (
            layouts.same_bytes(new, after, layouts.plain(len(new)))
        )
        if not row_major and not (old == new and layouts.same_bytes(old, before, after)):
            raise VerifyException(
                f"{self.name}: {tensor_type(self.source)} lies otherwise than"
                f" {tensor_type(self.output)}"
            )


@irdl_op_definition
class SliceOp(DnnlOp):
    """A part of the memory of `source`, from the element `begin` on; no element is moved.

    Source and result are row-major, and the part is contiguous: at most one dimension is cut to
    more than one element, and all later dimensions are whole.
    """

    name = "dnnl.slice"
    source = operand_def(TensorType)
    begin = ints_prop()
    output = result_def(TensorType)

    @property
    def offset(self) -> int:
        """Returns the offset of the first element, in elements."""
        shape = shape_of(self.source)
        steps = layouts.strides(shape, layouts.plain(len(shape)))
        return sum(place * step for place, step in zip(ints(self.begin), steps, strict=True))

    def infer_types(self) -> Sequence[Attribute]:
        return (like(self.source, shape_of(self.output)),)

    def verify_(self) -> None:
        super().verify_()
        whole, part, begin = shape_of(self.source), shape_of(self.output), ints(self.begin)
        fits = len(whole) == len(part) == len(begin) and all(
            first >= 0 and first + size <= most
            for first, size, most in zip(begin, part, whole, strict=True)
        )
        if not fits or not is_run(whole, part):
            raise VerifyException(
                f"{self.name}: {self.output.type} from {list(begin)} on is no run of elements of"
                f" {self.source.type}"
            )
        for value in (self.source, self.output):
            if layout_of(value) != layouts.plain(len(whole)):
                raise VerifyException(f"{self.name}: {value.type} is not row-major")


def is_run(whole: Sequence[int], part: Sequence[int]) -> bool:
    """True if a part of a row-major tensor is contiguous."""
    cut = next((axis for axis, size in enumerate(part) if size != 1), len(part))
    return tuple(part[cut + 1 :]) == tuple(whole[cut + 1 :])


@irdl_op_definition
class PermuteOp(DnnlOp):
    """A view of `source` whose dimension `i` is the source's dimension `axes[i]`.

    No element is moved: for a row-major source, the result is not row-major.
    """

    name = "dnnl.permute"
    source = operand_def(TensorType)
    axes = ints_prop()
    output = result_def(TensorType)

    @classmethod
    def of(cls, source: SSAValue, axes: Sequence[int]) -> PermuteOp:
        """Returns the op; its result type has the layout that follows from `axes`."""
        shape = shape_of(source)
        type_ = like(source, [shape[axis] for axis in axes])
        layout = layouts.permuted(layout_of(source), axes)
        return cls(source, axes=list(axes), result_types=[with_layout(type_, layout)])

    def infer_types(self) -> Sequence[Attribute]:
        shape, axes = shape_of(self.source), ints(self.axes)
        if sorted(axes) != list(range(len(shape))):
            raise VerifyException(f"{self.name}: axes {list(axes)} is no permutation")
        return (like(self.source, [shape[axis] for axis in axes]),)

    def verify_(self) -> None:
        super().verify_()
        old, new = layout_of(self.source), layout_of(self.output)
        if layouts.blocks(old) or new != layouts.permuted(old, ints(self.axes)):
            raise VerifyException(
                f"{self.name}: layout '{old}' permuted by {list(ints(self.axes))} is not '{new}'"
            )
