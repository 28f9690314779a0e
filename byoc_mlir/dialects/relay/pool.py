"""Pools that also tell where the maximum was."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, result_def

from byoc_mlir.dialects.relay.base import Tensor, bool_prop, tensor_of, type_sizes
from byoc_mlir.dialects.relay.window import PoolOp


class MaxPoolWithArgmaxOp(PoolOp, ABC):
    """`data [N, C, ...] -> output [N, C, ...], indices [N, C, ...]` of i64.

    `indices` are positions in the whole of `data`, row-major; with `column_major` the spatial
    dimensions of each plane are counted the other way round.
    """

    column_major = bool_prop(False)
    output = result_def(TensorType)
    indices = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        (output,) = super().infer_types()
        shape = type_sizes(cast("Tensor", output))
        return (output, tensor_of(i64, shape))


@irdl_op_definition
class MaxPoolWithArgmax1DOp(MaxPoolWithArgmaxOp):
    """The maximum of each window of `[N, C, W]`, and where it is."""

    name = "relay.nn.max_pool1d_with_argmax"
    SPATIAL_RANK: ClassVar = 1


@irdl_op_definition
class MaxPoolWithArgmax2DOp(MaxPoolWithArgmaxOp):
    """The maximum of each window of `[N, C, H, W]`, and where it is."""

    name = "relay.nn.max_pool2d_with_argmax"
    SPATIAL_RANK: ClassVar = 2


@irdl_op_definition
class MaxPoolWithArgmax3DOp(MaxPoolWithArgmaxOp):
    """The maximum of each window of `[N, C, D, H, W]`, and where it is."""

    name = "relay.nn.max_pool3d_with_argmax"
    SPATIAL_RANK: ClassVar = 3
