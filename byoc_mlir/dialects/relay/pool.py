"""Pools: windows, or whole images, reduced to one element each, 1-D to 3-D."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    Tensor,
    bool_prop,
    ints_prop,
    tensor_of,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import at_most
from byoc_mlir.dialects.relay.window import SpatialOp, WindowOp, checked_ints, ranked


class PoolOp(WindowOp, ABC):
    """`data [N, C, ...] -> output [N, C, ...]`, one value for each window of `pool_size`."""

    pool_size = ints_prop()
    ceil_mode = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        data = self.checked_data()
        shape, ceil = type_sizes(data), bool(self.ceil_mode.value.data)
        pool = checked_ints(self, "pool_size", self.SPATIAL_RANK, least=1)
        spatial = [
            self.output_size(size, pool[axis], axis, ceil=ceil)
            for axis, size in enumerate(shape[2:])
        ]
        return (tensor_of(data.element_type, [*shape[:2], *spatial]),)


class MaxPoolOp(PoolOp, ABC):
    """Maximum of each window, without padding."""


class AvgPoolOp(PoolOp, ABC):
    """Mean of each window, over the elements in the data.

    With `count_include_pad` the divisor counts padding too (but not elements beyond it, which
    `ceil_mode` can reach).
    """

    count_include_pad = bool_prop(False)


class GlobalPoolOp(SpatialOp, ABC):
    """`data [N, C, ...] -> output [N, C, 1, ...]` over all spatial dimensions."""

    def infer_types(self) -> Sequence[Attribute]:
        data = self.checked_data()
        shape = type_sizes(data)
        if not all(size == DYNAMIC or at_most(1, size) for size in shape[2:]):
            raise VerifyException(f"{self.name}: data {data} has no spatial elements")
        return (tensor_of(data.element_type, [*shape[:2], *[1] * self.SPATIAL_RANK]),)


class MaxPoolWithArgmaxOp(PoolOp, ABC):
    """`data [N, C, ...] -> output [N, C, ...], indices [N, C, ...]` of i64.

    `indices` are positions in the whole of `data`, row-major; with `column_major`, the spatial
    dimensions of each plane are counted in column-major order.
    """

    column_major = bool_prop(False)
    output = result_def(TensorType)
    indices = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        (output,) = super().infer_types()
        shape = type_sizes(cast("Tensor", output))
        return (output, tensor_of(i64, shape))


MAX_POOL = ranked(MaxPoolOp, "relay.nn.max_pool{}d")
MAX_POOL_WITH_ARGMAX = ranked(MaxPoolWithArgmaxOp, "relay.nn.max_pool{}d_with_argmax")
AVG_POOL = ranked(AvgPoolOp, "relay.nn.avg_pool{}d")
GLOBAL_MAX_POOL = ranked(GlobalPoolOp, "relay.nn.global_max_pool{}d")
GLOBAL_AVG_POOL = ranked(GlobalPoolOp, "relay.nn.global_avg_pool{}d")
MaxPool1DOp, MaxPool2DOp, MaxPool3DOp = MAX_POOL.values()
MaxPoolWithArgmax1DOp, MaxPoolWithArgmax2DOp, MaxPoolWithArgmax3DOp = MAX_POOL_WITH_ARGMAX.values()
AvgPool1DOp, AvgPool2DOp, AvgPool3DOp = AVG_POOL.values()
GlobalMaxPool1DOp, GlobalMaxPool2DOp, GlobalMaxPool3DOp = GLOBAL_MAX_POOL.values()
GlobalAvgPool1DOp, GlobalAvgPool2DOp, GlobalAvgPool3DOp = GLOBAL_AVG_POOL.values()
