"""Ops that read or write at computed indices: take, gather, scatter, sort, running sums.

Negative indices count from the end. An index outside of its dimension is an error of the model that
is not checked at run time: the index is clamped. Types for which no index can be valid are refused.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.operations import define_op
from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    AlongAxisOp,
    DataOp,
    OneResultOp,
    RelayOp,
    Tensor,
    bool_prop,
    check_addressed,
    int_prop,
    one_size,
    size_prop,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import agreeing, at_most
from byoc_mlir.dims import Size

REDUCTIONS = ("update", "add", "mul", "max", "min")


def check_indices(op: RelayOp, value: SSAValue) -> Tensor:
    """Returns the type of an operand of indices, `i32` or `i64`.

    Raises:
        VerifyException: the operand has another element type.
    """
    type_ = tensor_type(value)
    if not isinstance(type_.element_type, IntegerType) or type_.element_type.width.data < 32:
        raise VerifyException(f"{op.name}: indices must be of i32 or i64, found {type_}")
    return type_


@irdl_op_definition
class TakeOp(AlongAxisOp, OneResultOp):
    """`data [a..., n, b...], indices [i...] -> output [a..., i..., b...]`: slices along `axis`."""

    name = "relay.take"
    data = operand_def(TensorType)
    indices = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data, indices = tensor_type(self.data), check_indices(self, self.indices)
        axis, shape = self.positive_axis, type_sizes(data)
        new = [*shape[:axis], *type_sizes(indices), *shape[axis + 1 :]]
        check_addressed(self, shape[axis : axis + 1], new)
        return (tensor_of(data.element_type, new),)


@irdl_op_definition
class GatherOp(AlongAxisOp, OneResultOp):
    """`output[i, j, k] = data[i, indices[i, j, k], k]` for axis 1, and so on.

    `indices` has the rank of `data` and is not larger on the axes other than `axis`; `output` has
    the shape of `indices`.
    """

    name = "relay.gather"
    data = operand_def(TensorType)
    indices = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data, indices = tensor_type(self.data), check_indices(self, self.indices)
        axis = self.positive_axis
        _check_beside_axis(self, data, indices, axis)
        check_addressed(self, type_sizes(data)[axis : axis + 1], type_sizes(indices))
        return (tensor_of(data.element_type, type_sizes(indices)),)


def _check_beside_axis(op: RelayOp, data: Tensor, indices: Tensor, axis: int) -> None:
    shape, places = type_sizes(data), type_sizes(indices)
    fits = len(shape) == len(places) and all(
        at == axis or DYNAMIC in (place, size) or at_most(place, size)
        for at, (size, place) in enumerate(zip(shape, places, strict=True))
    )
    if not fits:
        raise VerifyException(
            f"{op.name}: indices {indices} must have the rank of {data}, and be no larger on axes"
            f" other than {axis}"
        )


def _coordinates(places: Sequence[Size]) -> int:
    """Returns the number of coordinates in the last dimension of indices; -1 if it is not known."""
    return places[-1] if places and isinstance(places[-1], int) else -1


@irdl_op_definition
class GatherNdOp(OneResultOp):
    """`data [b..., d...], indices [b..., i..., m] -> output [b..., i..., d[m:]...]`.

    The last dimension of `indices` holds the first `m` coordinates into `data` after the
    `batch_dims` leading dimensions that both share.
    """

    name = "relay.gather_nd"
    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    batch_dims = int_prop(0)

    def infer_types(self) -> Sequence[Attribute]:
        data, indices = tensor_type(self.data), check_indices(self, self.indices)
        shape, places, batch = type_sizes(data), type_sizes(indices), self.batch_dims.value.data
        count = _coordinates(places)
        fits = 0 <= batch < len(places) and 0 <= count <= len(shape) - batch
        if not fits or not agreeing(shape[:batch], places[:batch]):
            raise VerifyException(
                f"{self.name}: indices {indices} do not address {data} with {batch} batch"
                " dimensions"
            )
        end = batch + count
        new = [*places[:-1], *shape[end:]]
        check_addressed(self, shape[batch:end], new)
        return (tensor_of(data.element_type, new),)


class ScatterOp(OneResultOp, ABC):
    """`data`, updated at `indices` by `updates`.

    With `reduction = "update"`, an update replaces the element; with `add`, `mul`, `max` or `min`,
    it is combined with the element. With `update`, the last of several values for one element wins.
    """

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    reduction = str_prop("update", REDUCTIONS)

    def checked(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the operand types, after the checks that all scatters have in common."""
        data, updates = tensor_type(self.data), tensor_type(self.updates)
        if data.element_type != updates.element_type:
            raise VerifyException(f"{self.name}: updates {updates} are not of the type of {data}")
        return data, check_indices(self, self.indices), updates


@irdl_op_definition
class ScatterElementsOp(AlongAxisOp, ScatterOp):
    """`output[i, indices[i, j, k], k] = updates[i, j, k]` for axis 1, and so on."""

    name = "relay.scatter_elements"

    def infer_types(self) -> Sequence[Attribute]:
        data, indices, updates = self.checked()
        axis = self.positive_axis
        _check_beside_axis(self, data, indices, axis)
        check_addressed(self, type_sizes(data)[axis : axis + 1], type_sizes(indices))
        if not agreeing(type_sizes(indices), type_sizes(updates)):
            raise VerifyException(
                f"{self.name}: updates {updates} must have the shape of indices {indices}"
            )
        return (data,)


@irdl_op_definition
class ScatterNdOp(ScatterOp):
    """`output[indices[i]...] = updates[i]`: `indices [i..., m], updates [i..., d[m:]...]`."""

    name = "relay.scatter_nd"

    def infer_types(self) -> Sequence[Attribute]:
        data, indices, updates = self.checked()
        shape, places = type_sizes(data), type_sizes(indices)
        count = _coordinates(places)
        if not 0 <= count <= len(shape):
            raise VerifyException(f"{self.name}: indices {indices} do not address {data}")
        if not agreeing(type_sizes(updates), (*places[:-1], *shape[count:])):
            raise VerifyException(
                f"{self.name}: updates {updates} do not fit indices {indices} into {data}"
            )
        check_addressed(self, shape[:count], type_sizes(updates))
        return (data,)


@irdl_op_definition
class UpdateSliceOp(AlongAxisOp, OneResultOp):
    """`data [b..., n, d...], update [b..., m, d...], starts [b] -> output`: `data`, updated.

    In entry `i` of the first dimension, `update` is written from `starts[i]` on along `axis`, which
    is not the first one. A start that leaves no room for it is clamped. With `is_circular`, starts
    and the elements after the end wrap around to the beginning.
    """

    name = "relay.update_slice"
    data = operand_def(TensorType)
    update = operand_def(TensorType)
    starts = operand_def(TensorType)
    axis = int_prop(1)
    is_circular = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        data, update = tensor_type(self.data), tensor_type(self.update)
        starts, axis = check_indices(self, self.starts), self.positive_axis
        _check_beside_axis(self, data, update, axis)
        shape, new = list(type_sizes(data)), list(type_sizes(update))
        fits = at_most(new[axis], shape[axis])
        new[axis] = shape[axis]
        if axis == 0 or not fits or data.element_type != update.element_type:
            raise VerifyException(
                f"{self.name}: update {update} does not fit into {data} along axis {axis}; accepted"
                " is an update that is no larger along one axis but the first, and equal elsewhere"
            )
        if not agreeing(new, shape) or not agreeing(type_sizes(starts), shape[:1]):
            raise VerifyException(
                f"{self.name}: update {update} and starts {starts} must have the entries of {data}"
            )
        return (data,)


class ScanOp(AlongAxisOp, DataOp, ABC):
    """Running result along `axis`, excluding the element itself if `exclusive`, from the end if
    `reverse`.
    """

    exclusive = bool_prop(False)
    reverse = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        _ = self.positive_axis
        return (self.data.type,)


CumsumOp = define_op(ScanOp, "relay.cumsum", "Running sum.")
CumprodOp = define_op(ScanOp, "relay.cumprod", "Running product.")


@irdl_op_definition
class TopkOp(AlongAxisOp):
    """`k` largest values along `axis` in descending order, and their indices (`i64`).

    With `is_ascend`, the `k` smallest in ascending order. Equal values keep their order; NaN counts
    as larger than any number.
    """

    name = "relay.topk"
    data = operand_def(TensorType)
    k = size_prop(1)
    is_ascend = bool_prop(False)
    values = result_def(TensorType)
    indices = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data, axis, k = tensor_type(self.data), self.positive_axis, one_size(self.k)
        shape = list(type_sizes(data))
        fits = at_most(0, k) and (shape[axis] == DYNAMIC or at_most(k, shape[axis]))
        if not fits:
            raise VerifyException(
                f"{self.name}: k is {k}, accepted range is [0, {shape[axis]}] along axis {axis} of"
                f" {data}"
            )
        shape[axis] = k
        return (tensor_of(data.element_type, shape), tensor_of(i64, shape))
