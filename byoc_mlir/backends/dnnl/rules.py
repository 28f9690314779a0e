"""What oneDNN runs, op by op, and why it refuses the rest. Functions of the IR and of
what the library has code for on the machine at hand.

See `docs/dnnl.md` for the policy behind the element-wise rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from typing import TypeVar

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import Commutative

from byoc_mlir.backends.base import Rule
from byoc_mlir.backends.dnnl import enums
from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.resampling import is_between_centres
from byoc_mlir.backends.dnnl.trial import slow_here
from byoc_mlir.backends.onednn import unavailable_reason
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    image,
    nn,
    pool,
    qnn_window,
    reduce,
    transform,
    window,
)
from byoc_mlir.dialects.relay.base import DYNAMIC, ints, relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.qnn import BYTES, LookupOp, RequantizeOp

LARGE_ACTIVATION = 1 << 12
"""Elements from which on an element-wise op on its own goes to oneDNN."""

MAX_RANK = 6
"""oneDNN's element-wise and matrix primitives have fast code up to this rank."""

FEW_OUTPUTS = 8
"""Output channels from which on a convolution is as fast as on the host; timed with AVX-512."""

MUCH_WORK = 1_000_000
"""Products of a convolution below which it stays where its neighbours are."""

Op = TypeVar("Op", bound=RelayOp)


@cache
def op_rules() -> Mapping[str, Rule]:
    """The rules of all ops that oneDNN has a primitive for."""
    table: dict[str, Rule] = {}
    for classes, rule in (
        (window.CONV.values(), _guarded(convolution)),
        (window.CONV_TRANSPOSE.values(), _guarded(convolution)),
        ((nn.DenseOp, nn.MatmulOp), _guarded(matrix)),
        (pool.MAX_POOL.values(), _or_of_bytes(pooling)),
        (pool.AVG_POOL.values(), _guarded(pooling)),
        (pool.GLOBAL_AVG_POOL.values(), _guarded(anything)),
        (pool.GLOBAL_MAX_POOL.values(), _guarded(anything)),
        (qnn_window.AVG_POOL.values(), quantized_pooling),
        (qnn_window.GLOBAL_AVG_POOL.values(), quantized_pooling),
        ((reduce.SoftmaxOp, reduce.LogSoftmaxOp), _guarded(anything)),
        ((reduce.MeanOp, reduce.MaxOp), _guarded(spatial_reduction)),
        ((image.ResizeOp,), _guarded(resampling)),
        ((nn.LrnOp,), _guarded(lrn)),
        ((nn.BatchNormOp,), _guarded(batch_norm)),
        ((nn.LayerNormOp,), _guarded(layer_norm)),
        ((transform.ConcatenateOp,), _or_of_bytes(concatenate)),
    ):
        table |= {cls.name.removeprefix("relay."): rule for cls in classes}
    table |= {name: _projection_missing for name in ("nn.lstm", "nn.gru")}
    table["cast"] = _guarded(conversion)
    table["transpose"] = _guarded(transpose)
    table |= {name: function_of_bytes for name in FUNCTIONS_OF_BYTES}
    table["split"] = _guarded(split)
    table |= {name: _guarded(large_elementwise) for name in ELEMENTWISE}
    table |= {name: _guarded(view) for name in ("reshape", "squeeze", "expand_dims")}
    return table


ELEMENTWISE = (
    "nn.relu",
    "nn.leaky_relu",
    "nn.bias_add",
    "clip",
    "sigmoid",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "abs",
    "add",
    "subtract",
    "multiply",
    "divide",
)
"""Element-wise ops that oneDNN has as algorithms. Its `max` and `min` of two tensors are not among
them: they take the other number for a NaN."""


FUNCTIONS_OF_BYTES = ("qnn.lookup", "qnn.requantize")
"""Ops that are looked up in a table, by our own code."""


def _guarded(rule: Callable[[Op], str | None]) -> Rule:
    """The rule, asked only for ops on static tensors of floats of a rank that oneDNN has, and
    refused where that has nothing but reference code."""

    @wraps(rule)
    def guarded(op: Operation) -> str | None:
        reason = unsupported_types(op) or rule(op)  # pyright: ignore[reportArgumentType]
        return reason or slow_here(op)

    return guarded


def _or_of_bytes(rule: Callable[[Op], str | None]) -> Rule:
    """The rule for ops on floats, or on bytes alone."""
    guarded = _guarded(rule)

    @wraps(rule)
    def checked(op: Operation) -> str | None:
        values = (*op.operands, *op.results)
        if any(tensor_type(value).element_type not in BYTES for value in values):
            return guarded(op)
        shapes = (unsupported_shape(value) for value in values)
        reason = next((one for one in shapes if one is not None), None)
        reason = reason or rule(op)  # pyright: ignore[reportArgumentType]
        return reason or slow_here(op)

    return checked


def unsupported_types(op: Operation) -> str | None:
    """Why an operand or a result is nothing for oneDNN, or `None`."""
    for value in (*op.operands, *op.results):
        reason = _unsupported_type(value)
        if reason is not None:
            return reason
    return None


def _unsupported_type(value: SSAValue) -> str | None:
    type_ = tensor_type(value)
    if type_.element_type not in element_types():
        known = " and ".join(map(str, element_types()))
        return f"element type {type_.element_type} (oneDNN runs {known} here)"
    return unsupported_shape(value)


@cache
def element_types() -> Sequence[Attribute]:
    """The floats that the library has fast code for on this machine."""
    has_bf16 = unavailable_reason() is None and api().has_bf16
    return (f32, bf16) if has_bf16 else (f32,)


def unsupported_shape(value: SSAValue) -> str | None:
    """Why a tensor of this shape is nothing for oneDNN, or `None`."""
    type_ = tensor_type(value)
    shape = type_.get_shape()
    if DYNAMIC in shape:
        return f"shape of {type_} is not known at compile time"
    if math.prod(shape) == 0:
        return f"{type_} has no elements"
    if len(shape) > MAX_RANK:
        return f"rank {len(shape)} (oneDNN's primitives go up to {MAX_RANK})"
    return None


def _projection_missing(op: Operation) -> str | None:
    return "without the product of its input and constant weights, which oneDNN's layer computes"


def anything(op: RelayOp) -> str | None:
    """Accepts every form of the op."""
    return None


def convolution(op: window.ConvOp | window.ConvTransposeOp) -> str | None:
    """Any convolution in Relay's default layouts."""
    rank = len(shape_of(op.data))
    spatial = "DHW"[-(rank - 2) :]
    kernel = "OI" if isinstance(op, window.ConvOp) else "IO"
    if op.data_layout.data != f"NC{spatial}" or op.kernel_layout.data != f"{kernel}{spatial}":
        return (
            f"layouts {op.data_layout.data} and {op.kernel_layout.data}"
            f" (accepted are NC{spatial} and {kernel}{spatial})"
        )
    return _badly_vectorised(op) if isinstance(op, window.ConvOp) else None


def _badly_vectorised(op: window.ConvOp) -> str | None:
    """Convolutions that oneDNN makes a larger matrix product of, or whose vectors it leaves empty,
    and that have enough to do for that to count.
    """
    outputs, depth, *kernel = shape_of(op.weight)
    if math.prod(shape_of(op.output)) * depth * math.prod(kernel) < MUCH_WORK:
        return None
    groups = op.groups.value.data
    if groups == 1 and outputs < FEW_OUTPUTS and math.prod(kernel) > 1:
        return f"few output channels fill no vector: {outputs} (the host's are of pixels)"
    if 1 < groups == outputs and len(kernel) == 1:
        return "a depthwise convolution of lines (oneDNN copies their windows)"
    return None


def matrix(op: nn.DenseOp | nn.MatmulOp) -> str | None:
    """Products of matrices, or of stacks of them."""
    if len(shape_of(op.results[0])) < 2:
        return "a vector times a matrix (cheaper on the host)"
    return None


def pooling(op: pool.PoolOp) -> str | None:
    """Pools whose windows oneDNN divides by the same number of elements as Relay."""
    source, kernel = shape_of(op.data), ints(op.pool_size)
    padding, dilation = ints(op.padding), ints(op.dilation)
    spatial = len(source) - 2
    for axis in range(spatial):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        if max(padding[axis], padding[axis + spatial]) >= span:
            return f"padding {list(padding)} is not smaller than the window"
    if any(step != 1 for step in dilation):
        return f"dilation {list(dilation)} (oneDNN has only slow reference code for it)"
    if _counts_padding(op) and _reaches_beyond_padding(op):
        return "count_include_pad with windows beyond the padding"
    return None


def quantized_pooling(op: Operation) -> str | None:
    """Means of bytes as bytes of the same type."""
    assert isinstance(op, qnn_window.QuantizedPoolOp)
    data, result = (tensor_type(value).element_type for value in (op.data, op.results[0]))
    if data != result:
        return f"{data} becomes {result} (oneDNN's pools keep the type)"
    zero_point = op.input_zero_point.owner
    if not all(isinstance(value.owner, ConstantOp) for value in op.operands[1:]):
        return "parameters that are not known"
    reason = unsupported_shape(op.data) or unsupported_shape(op.results[0])
    if reason is None and isinstance(op, qnn_window.QuantizedAvgPoolOp):
        reason = pooling(op)
        is_zero = isinstance(zero_point, ConstantOp) and not zero_point.array.any()
        if _counts_padding(op) and any(ints(op.padding)) and not is_zero:
            return "padding that counts, and is no byte of 0 as oneDNN's"
    return reason or slow_here(op)


def _counts_padding(op: pool.PoolOp) -> bool:
    averages = (pool.AvgPoolOp, qnn_window.QuantizedAvgPoolOp)
    return isinstance(op, averages) and bool(op.count_include_pad.value.data)


def _reaches_beyond_padding(op: pool.PoolOp) -> bool:
    source, result, kernel = shape_of(op.data), shape_of(op.output), ints(op.pool_size)
    padding, strides, dilation = ints(op.padding), ints(op.strides), ints(op.dilation)
    spatial = len(source) - 2
    return any(
        (result[axis + 2] - 1) * strides[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        > source[axis + 2] + padding[axis] + padding[axis + spatial]
        for axis in range(spatial)
    )


def resampling(op: image.ResizeOp) -> str | None:
    """Spatial dimensions resized as oneDNN does it: between the centres of pixels."""
    method, axes = op.method.data, op.resized_axes()
    if method not in enums.RESAMPLING or not 3 <= len(shape_of(op.data)) <= 5:
        return f"{method} on {op.data.type} (oneDNN has nearest and linear on [N, C, ...])"
    if any(axis < 2 for axis, _ in axes):
        return "the batch or the channels are resized"
    mode, rounding = op.coordinate_transformation_mode.data, op.rounding_method.data
    if not all(is_between_centres(taps, shape_of(op.data)[axis], method) for axis, taps in axes):
        return f"{method} with {mode} and {rounding} (oneDNN maps the centres of pixels)"
    return None


def spatial_reduction(op: reduce.MeanOp | reduce.MaxOp) -> str | None:
    """A reduction over all spatial dimensions, which is a pool of one window."""
    rank = len(shape_of(op.data))
    if not 4 <= rank <= 5 or op.axes != tuple(range(2, rank)):
        return f"axes {list(op.axes)} of {op.data.type} (oneDNN's pool takes all spatial ones)"
    return None


def lrn(op: nn.LrnOp) -> str | None:
    """Windows over channels that reach equally far to both sides."""
    rank = len(shape_of(op.data))
    if op.axis.value.data % rank != 1 or rank < 2:
        return f"axis {op.axis.value.data} (oneDNN normalises over channels, axis 1)"
    if op.size.value.data % 2 == 0:
        return f"size {op.size.value.data} is even (oneDNN's window is symmetric)"
    if not math.isclose(op.beta.value.data, 0.75, rel_tol=1e-6):
        return f"beta {op.beta.value.data} (oneDNN has fast code for 0.75)"
    return None


def batch_norm(op: nn.BatchNormOp) -> str | None:
    """Batch norm over channels that is used for its first result alone."""
    if op.positive_axis != 1 or not 2 <= len(shape_of(op.data)) <= 5:
        return f"axis {op.axis.value.data} of {op.data.type} (oneDNN normalises [N, C, ...])"
    if any(result.uses for result in op.results[1:]):
        return "the moving mean or variance is used"
    return None


def layer_norm(op: nn.LayerNormOp) -> str | None:
    """Layer norm over the last dimension."""
    rank = len(shape_of(op.data))
    if op.positive_axis != rank - 1 or not 2 <= rank <= 5:
        return f"axis {op.axis.value.data} of {op.data.type} (oneDNN normalises the last dimension)"
    return None


def concatenate(op: transform.ConcatenateOp) -> str | None:
    """Joining two or more tensors of at least rank 2."""
    if len(op.data) < 2:
        return "one operand (a copy, cheaper on the host)"
    return None if len(shape_of(op.output)) >= 2 else "a vector (cheaper on the host)"


def view(op: RelayOp) -> str | None:
    """Other names for the same memory, where oneDNN reads or writes it."""
    if any(not shape_of(value) for value in (op.operands[0], op.results[0])):
        return "a number (cheaper on the host)"
    if _is_between(op) or any(map(_is_primitive, (*_sources(op), *_readers(op)))):
        return None
    return f"{relay_name(op)} away from any primitive (it is free)"


def conversion(op: RelayOp) -> str | None:
    """Tensors that primitives write and read in other types."""
    return None if _is_between(op) else "cast not between two primitives (cheaper on the host)"


def function_of_bytes(op: Operation) -> str | None:
    """Functions of bytes beside primitives, whose layouts they keep."""
    assert isinstance(op, LookupOp | RequantizeOp)
    types = [tensor_type(value).element_type for value in (op.data, op.output)]
    if any(one not in BYTES for one in types):
        return f"{types[0]} becomes {types[1]} (tables are of bytes)"
    if not all(isinstance(value.owner, ConstantOp) for value in op.operands[1:]):
        return "parameters that are not known"
    if isinstance(op, RequantizeOp) and shape_of(op.input_scale):
        return "scales along an axis"
    if any(map(_is_primitive, (*_sources(op), *_readers(op)))):
        return unsupported_shape(op.output)
    return f"{relay_name(op)} away from any primitive (cheaper on the host)"


def split(op: transform.SplitOp) -> str | None:
    """Parts that lie in one piece each, where oneDNN reads and writes them."""
    if math.prod(shape_of(op.data)[: op.positive_axis]) != 1:
        return f"parts along axis {op.positive_axis} do not lie in one piece (cheaper on the host)"
    return None if _is_between(op) else "split not between two primitives (cheaper on the host)"


_RECURRENT = ("dnnl.lstm", "dnnl.gru")


def transpose(op: transform.TransposeOp) -> str | None:
    """Transposes before and after products, which read and write permuted tensors as they are."""
    neighbours = [_kind(one) for one in (_source(op.data), *_users(op.output))]
    if any("matmul" in one for one in neighbours) or neighbours[0] in _RECURRENT:
        return None
    return "transpose away from any product (cheaper on the host)"


_VIEWS = (transform.ReshapeOp, transform.SqueezeOp, transform.ExpandDimsOp)


def _source(value: SSAValue) -> Operation | None:
    """The op behind a value, through ops that only change shapes."""
    owner = value.owner
    while isinstance(owner, _VIEWS):
        owner = owner.data.owner
    return owner if isinstance(owner, Operation) else None


def _users(value: SSAValue) -> Iterator[Operation]:
    for use in value.uses:
        if isinstance(use.operation, _VIEWS):
            yield from _users(use.operation.output)
        else:
            yield use.operation


def _kind(op: Operation | None) -> str:
    if isinstance(op, CompositeOp):
        return op.composite_name.data
    return "" if op is None else op.name


def large_elementwise(op: RelayOp) -> str | None:
    """Element-wise ops alone, where they would otherwise cut a region in two."""
    result = shape_of(op.results[0])
    if not 4 <= len(result) <= 5 or math.prod(result) < LARGE_ACTIVATION:
        return f"{relay_name(op)} alone on {list(result)} (cheaper in the host's fused loop)"
    carriers = op.operands if op.has_trait(Commutative) else op.operands[:1]
    if all(shape_of(value) != result for value in carriers):
        return f"{relay_name(op)} broadcasts its first operand to {list(result)}"
    if not _is_between(op):
        return f"{relay_name(op)} not between two primitives (cheaper in the host's fused loop)"
    return None


_PASSED = (*ELEMENTWISE, *FUNCTIONS_OF_BYTES, "split")
_NEARBY = 16
"""How many such ops and transposes are looked at around an op, to find what is beyond them."""


def _is_between(op: RelayOp) -> bool:
    """Whether oneDNN computes what the op reads and reads what it computes, directly or through
    other such ops: only then would the host interrupt it.
    """
    return _reaches_primitive(op, _sources) and _reaches_primitive(op, _readers)


def _reaches_primitive(op: Operation, step: Callable[[Operation], Iterator[Operation]]) -> bool:
    seen = {op}
    pending = [op]
    while pending and len(seen) <= _NEARBY:
        for neighbour in step(pending.pop()):
            if _is_primitive(neighbour):
                return True
            if neighbour not in seen and _is_passed(neighbour):
                seen.add(neighbour)
                pending.append(neighbour)
    return False


def _is_passed(op: Operation) -> bool:
    if isinstance(op, transform.TransposeOp):
        return transpose(op) is None
    return relay_name(op) in _PASSED


def _is_primitive(op: Operation) -> bool:
    if isinstance(op, CompositeOp):
        return op.composite_name.data.startswith("dnnl.")
    name = relay_name(op)
    if name in (*_PASSED, "transpose", "cast") or isinstance(op, _VIEWS) or name not in op_rules():
        return False
    return op_rules()[name](op) is None


def _sources(op: Operation) -> Iterator[Operation]:
    return (one for value in op.operands if (one := _source(value)) is not None)


def _readers(op: Operation) -> Iterator[Operation]:
    return (one for result in op.results for one in _users(result))
