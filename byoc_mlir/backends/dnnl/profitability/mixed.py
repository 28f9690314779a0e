"""Decision to keep a convolution in `f32` on a processor with faster `bf16` arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import Cost, Costs
from byoc_mlir.backends.dnnl.partition.reference_code import only_reference
from byoc_mlir.backends.dnnl.partition.trial import region_of
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import convert_region
from byoc_mlir.backends.dnnl.passes.unfold_dnnl_deconvolutions import can_unfold, unfold
from byoc_mlir.backends.dnnl.primitives.layout_choices import ways
from byoc_mlir.backends.dnnl.primitives.own_kernels import candidates
from byoc_mlir.dialects.relay.base import shape_of, tensor_of
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.onednn.engine import openmp_threads

_CONVERTED_BYTES = 6
"""Bytes of an element that is read in one type and written in the other."""


def faster_in_f32(op: Operation, choices: Choices) -> str | None:
    """Returns why a `relay` op or composite of `f32` is slower in `bf16`; `None` for most ops.

    The reason may be that oneDNN has no `bf16` code for it, or that only `f32` has an algorithm
    with fewer MACs. Times are for one thread; the `f32` time includes the conversions of source and
    result.
    """
    region = region_of(op)
    convert_region(region)
    found = [one for one in region.body.block.ops if isinstance(one, dnnl.WeightedWindowOp)]
    if len(found) != 1:
        return None
    (window,) = found
    with openmp_threads(1):
        exact = None if choices.winograd == "off" else _by_fewer_products(window, choices)
        if isinstance(window, dnnl.DeconvolutionOp) and can_unfold(window):
            window = unfold(window)
        for value in _values(window):
            _retype(value, bf16)
        reason = _not_written(window)
        if reason is not None or exact is None:
            return reason
        return _if_less(exact, best_cost(window, choices).milliseconds)


def _by_fewer_products(op: dnnl.WeightedWindowOp, choices: Choices) -> Cost | None:
    """Returns the `f32` cost of a convolution by a built-in Winograd kernel.

    Returns `None` if no such kernel supports it.
    """
    if not isinstance(op, dnnl.ConvolutionOp):
        return None
    kernels = [one for layout in ways(op) for one in candidates(op, layout)]
    if not any(isinstance(one, Winograd) for one in kernels):
        return None
    best = best_cost(op, choices)
    return replace(best, milliseconds=best.milliseconds + _conversions(op))


def _not_written(op: dnnl.WeightedWindowOp) -> str | None:
    """Returns why oneDNN has no code for a `bf16` op, or `None`.

    The op's result may be `bf16` or `f32`.
    """
    for type_ in (f32, bf16):
        _retype(op.output, type_)
        name = only_reference(op)
        if name is not None:
            return f"oneDNN has only reference code for it in bf16 ({name})"
    return None


def _if_less(exact: Cost, rounded: float) -> str | None:
    if exact.milliseconds >= rounded:
        return None
    return (
        f"{exact.algorithm or 'it'} takes {exact.milliseconds:.3g} ms with conversions,"
        f" {rounded:.3g} in bf16"
    )


def best_cost(op: Operation, choices: Choices) -> Cost:
    """Returns the cost of a `dnnl` op in the fastest layout, with its fastest algorithm."""
    costs = Costs(choices)
    return min(costs.best(op, layout) for layout in ways(op))


def _conversions(op: dnnl.WeightedWindowOp) -> float:
    """Estimates the milliseconds to convert source and result from or to `bf16`."""
    elements = sum(math.prod(shape_of(value)) for value in (op.arguments[0], op.output))
    return _CONVERTED_BYTES * elements / calibration(ConvolutionCalibration).transformed_bytes


def _values(op: dnnl.WeightedWindowOp) -> Iterator[SSAValue]:
    """Yields the values of a `bf16` convolution that are `bf16`.

    The bias and post-op operands of other shapes are not among them.
    """
    yield from (op.arguments[0], op.weights, op.output)
    shape = shape_of(op.output)
    yield from (value for value in op.post_op_operands if shape_of(value) == shape)


def _retype(value: SSAValue, element: Attribute) -> None:
    Rewriter.replace_value_with_new_type(value, tensor_of(element, shape_of(value)))
