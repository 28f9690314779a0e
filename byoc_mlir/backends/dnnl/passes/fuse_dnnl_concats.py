"""The pass `fuse-dnnl-concats`: batch norms that read the inputs of a concatenation directly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.normalizations import factors_of, normalized_join
from byoc_mlir.backends.dnnl.primitives.shared_memory import is_overwritten
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.limits import in_time

_CHANNELS = 1
"""Axis of the channels."""


class FuseDnnlConcats(RegionPass):
    """Removes concatenations whose users are only batch norms and further concatenations.

    Each batch norm reads the parts in place, so the concatenation's copy is avoided. The parts are
    concatenated along the channels, which are innermost or, in a single image, in whole blocks. The
    parameters of the norms are constants, and no part is overwritten before a norm reads it.

    ```mlir
    %2 = dnnl.concat %0, %1 {axis = 1} : …
    %3 = dnnl.batch_normalization %2, %mean, %variance, %scale, %shift {relu = true, …} : …
    ```
    becomes
    ```mlir
    %3 = dnnl.normalized_concat %0, %1, %factors {relu = true} : …
    ```
    """

    name = "fuse-dnnl-concats"

    def change(self, region: FuncOp) -> None:
        for op in in_time(region.body.block.ops):
            if isinstance(op, dnnl.ConcatOp) and _has_channels(op):
                _fuse(op)


def _fuse(concat: dnnl.ConcatOp) -> None:
    """Replaces a concatenation by its parts in all its users, if all of them can read the parts."""
    if any(map(is_overwritten, concat.sources)):
        return
    readers = [use.operation for use in concat.output.uses]
    norms = [op for op in readers if isinstance(op, dnnl.BatchNormalizationOp)]
    concats = [op for op in readers if isinstance(op, dnnl.ConcatOp) and _has_channels(op)]
    factors = [_factors(norm, concat) for norm in norms]
    known = [array for array in factors if array is not None]
    if not norms or len(known) + len(concats) < len(readers):
        return
    for norm, array in zip(norms, known, strict=True):
        _replace(norm, concat, array)
    for further in concats:
        _flatten(further, concat)
    Rewriter.erase_op(concat)


def _has_channels(concat: dnnl.ConcatOp) -> bool:
    return concat.axis.value.data == _CHANNELS


def _factors(norm: dnnl.BatchNormalizationOp, concat: dnnl.ConcatOp) -> NDArray[np.float32] | None:
    """Returns the scales and shifts of a norm, if the built-in kernel can read the parts instead of
    their concatenation.
    """
    is_written = normalized_join(concat.sources, norm.output, relu=bool(norm.relu.value.data))
    return None if is_written is None else factors_of(norm)


def _replace(
    norm: dnnl.BatchNormalizationOp, concat: dnnl.ConcatOp, array: NDArray[np.float32]
) -> None:
    constants = [value.owner for value in norm.operands[1:]]
    factors = ConstantOp.of(norm.mean.name_hint or "factors", array)
    joined = dnnl.NormalizedConcatOp(
        concat.sources, factors.output, relu=norm.relu, result_types=[norm.output.type]
    )
    for new in (factors, joined):
        new.location = fused_location([concat, norm])
    Rewriter.replace_op(norm, (factors, joined))
    for constant in dict.fromkeys(constants):
        if isinstance(constant, ConstantOp):
            constant.erase_if_unused()


def _flatten(further: dnnl.ConcatOp, concat: dnnl.ConcatOp) -> None:
    """Replaces the operand `concat` of a further concatenation by the parts of `concat`."""
    parts: list[SSAValue] = []
    for source in further.sources:
        parts += concat.sources if source is concat.output else [source]
    further.operands = parts
