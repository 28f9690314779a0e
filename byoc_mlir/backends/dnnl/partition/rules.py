"""Ops that oneDNN runs, and the reasons why it refuses other ops.

The rules are functions of the IR and of the code that oneDNN has on this machine. See
`docs/dev-notes/dnnl.md` for the policy behind the element-wise rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from typing import TypeVar

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Commutative

from byoc_mlir.backends.base import Rule
from byoc_mlir.backends.dnnl.partition.accepted_tensors import (
    unsupported_but_bytes,
    unsupported_shape,
    unsupported_types,
)
from byoc_mlir.backends.dnnl.partition.trial import slow_here
from byoc_mlir.backends.dnnl.partition.window_rules import (
    convolution,
    pooling,
    quantized_pooling,
    resampling,
    spatial_reduction,
)
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    elementwise,
    image,
    nn,
    pool,
    qnn_window,
    recurrent,
    reduce,
    transform,
    window,
)
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.qnn import BYTES, LookupOp, RequantizeOp
from byoc_mlir.kernels.interleave import interleave_code
from byoc_mlir.onednn.engine import engine

LARGE_ACTIVATION = 1 << 12
"""Minimum number of elements for which a single element-wise op goes to oneDNN."""

Op = TypeVar("Op", bound=RelayOp)


@cache
def op_rules() -> Mapping[str, Rule]:
    """Returns the rules of all ops for which oneDNN has a primitive."""
    global_pools = (*pool.GLOBAL_AVG_POOL.values(), *pool.GLOBAL_MAX_POOL.values())
    means_of_bytes = (*qnn_window.AVG_POOL.values(), *qnn_window.GLOBAL_AVG_POOL.values())
    table: dict[str, Rule] = {}
    for rule, classes in (
        (_guarded(convolution), (*window.CONV.values(), *window.CONV_TRANSPOSE.values())),
        (_guarded(matrix), (nn.DenseOp, nn.MatmulOp)),
        (_guarded(pooling, unsupported_but_bytes), pool.MAX_POOL.values()),
        (_guarded(pooling), pool.AVG_POOL.values()),
        (_guarded(anything), (*global_pools, reduce.SoftmaxOp, reduce.LogSoftmaxOp)),
        (quantized_pooling, means_of_bytes),
        (_guarded(spatial_reduction), (reduce.MeanOp, reduce.MaxOp)),
        (_guarded(resampling), (image.ResizeOp,)),
        (_guarded(lrn), (nn.LrnOp,)),
        (_guarded(batch_norm), (nn.BatchNormOp,)),
        (_guarded(layer_norm), (nn.LayerNormOp,)),
        (_projection_missing, (recurrent.LstmOp, recurrent.GruOp)),
        (_guarded(concatenate, unsupported_but_bytes), (transform.ConcatenateOp,)),
        (_guarded(split), (transform.SplitOp,)),
        (_guarded(transpose), (transform.TransposeOp,)),
        (_guarded(view), _VIEWS),
        (_guarded(conversion), (elementwise.CastOp,)),
        (function_of_bytes, (LookupOp, RequantizeOp)),
    ):
        table |= {cls.name.removeprefix("relay."): rule for cls in classes}
    table |= {name: _guarded(large_elementwise) for name in ELEMENTWISE}
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
"""Element-wise ops that are algorithms of oneDNN. Its `max` and `min` of two tensors are excluded:
they return the other operand for a NaN.
"""


FUNCTIONS_OF_BYTES = ("qnn.lookup", "qnn.requantize")
"""Ops that a built-in kernel computes by a table lookup."""


def _guarded(
    rule: Callable[[Op], str | None],
    unsupported: Callable[[Operation], str | None] = unsupported_types,
) -> Rule:
    """Wraps a rule, so that it refuses ops with unsupported tensors, and ops with reference code
    only.

    By default, supported tensors are static and of floats; `unsupported` replaces this check.
    """

    @wraps(rule)
    def guarded(op: Operation) -> str | None:
        reason = unsupported(op) or rule(op)  # pyright: ignore[reportArgumentType]
        return reason or slow_here(op)

    return guarded


def _projection_missing(op: Operation) -> str | None:
    return "without the matmul of its input and constant weights, which oneDNN's layer includes"


def anything(op: RelayOp) -> str | None:
    """Accepts every form of the op."""
    return None


def matrix(op: nn.DenseOp | nn.MatmulOp) -> str | None:
    """Accepts matmuls and batched matmuls."""
    if len(shape_of(op.results[0])) < 2:
        return "a vector times a matrix (cheaper on the host)"
    return None


def lrn(op: nn.LrnOp) -> str | None:
    """Accepts LRN over channels with a symmetric window."""
    rank = len(shape_of(op.data))
    if op.axis.value.data % rank != 1 or rank < 2:
        return f"axis {op.axis.value.data} (oneDNN normalises over channels, axis 1)"
    if op.size.value.data % 2 == 0:
        return f"size {op.size.value.data} is even (oneDNN's window is symmetric)"
    if not math.isclose(op.beta.value.data, 0.75, rel_tol=1e-6):
        return f"beta {op.beta.value.data} (oneDNN has fast code for 0.75)"
    return None


def batch_norm(op: nn.BatchNormOp) -> str | None:
    """Accepts batch norm over channels, if only its first result is used."""
    if op.positive_axis != 1 or not 2 <= len(shape_of(op.data)) <= 5:
        return f"axis {op.axis.value.data} of {op.data.type} (oneDNN normalises [N, C, ...])"
    if any(result.uses for result in op.results[1:]):
        return "the moving mean or variance is used"
    return None


def layer_norm(op: nn.LayerNormOp) -> str | None:
    """Accepts layer norm over the last dimension."""
    rank = len(shape_of(op.data))
    if op.positive_axis != rank - 1 or not 2 <= rank <= 5:
        return f"axis {op.axis.value.data} of {op.data.type} (oneDNN normalises the last dimension)"
    return None


def concatenate(op: transform.ConcatenateOp) -> str | None:
    """Accepts the concatenation of two or more tensors of at least rank 2."""
    if len(op.data) < 2:
        return "one operand (a copy, cheaper on the host)"
    return None if len(shape_of(op.output)) >= 2 else "a vector (cheaper on the host)"


def view(op: RelayOp) -> str | None:
    """Accepts views whose source oneDNN writes, or whose result it reads."""
    if any(not shape_of(value) for value in (op.operands[0], op.results[0])):
        return "a scalar (cheaper on the host)"
    if _is_between(op) or any(map(_is_primitive, (*_sources(op), *_readers(op)))):
        return None
    return f"{relay_name(op)} away from any primitive (it is free)"


def conversion(op: RelayOp) -> str | None:
    """Accepts casts whose operand a primitive writes, or whose result a primitive reads."""
    if _is_between(op) or _rounds_image(op):
        return None
    return "cast not between two primitives (cheaper on the host)"


def _rounds_image(op: RelayOp) -> bool:
    """True if a cast rounds NCHW images for a primitive, and the built-in kernel can write NHWC.

    This applies with AMX, for which oneDNN's convolutions read NHWC.
    """
    shape = shape_of(op.results[0])
    types = [tensor_type(value).element_type for value in (op.operands[0], op.results[0])]
    if types != [f32, bf16] or len(shape) < 3 or not engine().has_amx:
        return False
    images, channels, *pixels = shape
    is_written = interleave_code(images, channels, math.prod(pixels)) is not None
    return is_written and any(map(_is_primitive, _readers(op)))


def function_of_bytes(op: Operation) -> str | None:
    """Accepts functions of 8-bit values next to primitives; the functions keep the primitives'
    layouts.
    """
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
    """Accepts splits into contiguous parts, if oneDNN writes the source and reads the parts."""
    if math.prod(shape_of(op.data)[: op.positive_axis]) != 1:
        return f"parts along axis {op.positive_axis} are not contiguous (cheaper on the host)"
    return None if _is_between(op) else "split not between two primitives (cheaper on the host)"


_RECURRENT = ("dnnl.lstm", "dnnl.gru")


def transpose(op: transform.TransposeOp) -> str | None:
    """Accepts transposes before and after matmuls.

    oneDNN's matmuls read and write permuted tensors without a copy.
    """
    neighbours = [_kind(one) for one in (_source(op.data), *_users(op.output))]
    if any("matmul" in one for one in neighbours) or neighbours[0] in _RECURRENT:
        return None
    return "transpose away from any matmul (cheaper on the host)"


_VIEWS = (transform.ReshapeOp, transform.SqueezeOp, transform.ExpandDimsOp)


def _source(value: SSAValue) -> Operation | None:
    """Returns the op that computes a value; ops that only change shapes are skipped."""
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
    """Accepts single element-wise ops that would otherwise split a region in two."""
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
"""Maximum number of element-wise ops and transposes to pass in the search for primitives around an
op.
"""


def _is_between(op: RelayOp) -> bool:
    """True if oneDNN computes the op's operands and reads its results.

    The host would split such a region in two. Other ops that pass this test may stand in between.
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
