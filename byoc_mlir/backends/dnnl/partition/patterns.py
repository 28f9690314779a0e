"""Composites that oneDNN runs as one primitive: an anchor and its successors.

Names list the parts in this order: bias, scale, sum, activation, as in `dnnl.conv2d_bias_sum_relu`.
Longer composites come first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.conversion.chain import Combined, read_chain
from byoc_mlir.backends.dnnl.conversion.matrix import is_rows_times_matrix
from byoc_mlir.backends.dnnl.partition.accepted_tensors import (
    unsupported_but_bytes,
    unsupported_types,
)
from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.backends.dnnl.partition.layer_norm import layer_norm_pattern, read_layer_norm
from byoc_mlir.backends.dnnl.partition.quantized_patterns import quantized_patterns
from byoc_mlir.backends.dnnl.partition.recurrent_layer import (
    gru_pattern,
    lstm_pattern,
    read_recurrent_layer,
)
from byoc_mlir.backends.dnnl.partition.rules import op_rules
from byoc_mlir.backends.dnnl.partition.shuffles import (
    ChannelShuffle,
    PixelShuffle,
    read_shuffle,
    shuffle_pattern,
)
from byoc_mlir.backends.dnnl.partition.trial import slow_here
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.nn import BiasAddOp, MatmulOp, PreluOp
from byoc_mlir.dialects.relay.qnn import BYTES
from byoc_mlir.patterns import (
    CompositePattern,
    Match,
    Pattern,
    is_constant,
    is_op,
    is_tuple_get_item,
    wildcard,
)

Wrap = Callable[[Pattern], Pattern]

ANCHORS = (
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    "nn.dense",
    "nn.matmul",
)
_CHANNELS_LAST = ("nn.dense", "nn.matmul")

SPLIT_ANCHORS = frozenset(one for one in ANCHORS if not one.endswith("_transpose"))
"""Anchors that oneDNN computes from `bf16` to `f32` without reference code."""


def _unary(name: str) -> Wrap:
    return lambda x: is_op(name)(x)


def _product(first: Pattern, second: Pattern, constant: Pattern) -> Pattern:
    """Returns the pattern of a product of three factors, in any order of multiplication."""
    return (first * second) * constant | (first * constant) * second | first * (second * constant)


def _scaled(x: Pattern) -> Pattern:
    return x * is_constant() | x / is_constant()


def _gelu_erf(x: Pattern) -> Pattern:
    return _product(x, is_op("erf")(_scaled(x)) + is_constant(), is_constant())


def _gelu_tanh(x: Pattern) -> Pattern:
    cube = is_op("power")(x, is_constant()) | (x * x) * x
    inner = (x + cube * is_constant()) * is_constant()
    return _product(x, is_op("tanh")(inner) + is_constant(), is_constant())


def _swish(x: Pattern) -> Pattern:
    return x * is_op("sigmoid")(x | _scaled(x))


def _bound(x: Pattern) -> Pattern:
    bounds = (is_op("maximum"), is_op("minimum"))
    return is_op("clip")(x) | bounds[0](x, is_constant()) | bounds[1](x, is_constant())


def _bounded(x: Pattern) -> Pattern:
    """Returns the pattern of `clip(x)`, including forms such as `min(max(x, a), b)`."""
    relu, bound = is_op("nn.relu"), _bound(x)
    return _bound(relu(x) | bound) | relu(bound) | bound


def _hard_gate(x: Pattern) -> Pattern:
    """Returns the pattern of `clip(a · x + b, 0, 1)`, including the form `clip(x + 3, 0, 6) /
    6`.
    """
    clip = _bounded((x | _scaled(x)) + is_constant())
    return clip | _scaled(clip)


def _elu(x: Pattern) -> Pattern:
    growth = is_op("exp")(x)
    below = (growth - is_constant()) | (growth + is_constant())
    return is_op("where")(is_op("less")(x, is_constant()), below | _scaled(below), x)


def _hard_swish(x: Pattern) -> Pattern:
    gated = x * _hard_gate(x)
    return gated | _scaled(gated)


def _mish(x: Pattern) -> Pattern:
    growth = is_op("exp")(x)
    softplus = is_op("log1p")(growth) | is_op("log")(growth + is_constant())
    bounded = is_op("minimum")(softplus, is_op("maximum")(x, is_constant()))
    return x * is_op("tanh")(softplus | bounded)


ACTIVATIONS: dict[str, Wrap] = {
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
    "mish": _mish,
    "hardswish": _hard_swish,
    "swish": _swish,
    "hardsigmoid": _hard_gate,
    "prelu": lambda x: is_op("nn.prelu")(x, is_constant()),
    "elu": _elu,
    "clip": _bounded,
    "relu": _unary("nn.relu"),
    "leaky_relu": _unary("nn.leaky_relu"),
    "sigmoid": _unary("sigmoid"),
    "tanh": _unary("tanh"),
    "abs": _unary("abs"),
    "exp": _unary("exp"),
    "sqrt": _unary("sqrt"),
}
"""Patterns of activations, as functions of the operand's pattern, by their names in composites."""

BATCH_NORM_RELU = "dnnl.batch_norm_relu"

_LEAST_STATE = 512
"""Minimum number of elements in the state of a recurrent layer. With one sequence, each step is a
memory-bound matrix-vector product, for which the host's loop is 1.5 times as fast; so it is for
small states.
"""

_GATES = ("gelu_erf", "gelu_tanh", "swish", "sigmoid", "tanh")
"""Activations that may be followed by a multiplication with another tensor."""

_AFTER_SUM = ("hardswish", "swish", "elu", "clip", "relu", "leaky_relu", "sigmoid", "tanh")


@cache
def patterns(*, has_all_products: bool = False) -> Sequence[CompositePattern]:
    """Returns the table of patterns, built once per process.

    Args:
        has_all_products: True to offer int8 GEMMs to oneDNN even if it does not compute them
            exactly here.
    """
    rows = [row for variant in _variants() for row in variant.rows()]
    return (
        CompositePattern("dnnl.lstm", lstm_pattern(), _check_layer),
        CompositePattern("dnnl.gru", gru_pattern(), _check_layer),
        *rows,
        *quantized_patterns(has_all_products=has_all_products),
        CompositePattern(BATCH_NORM_RELU, _batch_norm_relu(), _check_batch_norm),
        CompositePattern("dnnl.layer_norm", layer_norm_pattern(), _check_layer_norm),
        CompositePattern("dnnl.channel_shuffle", shuffle_pattern(), _check_shuffle),
        CompositePattern("dnnl.pixel_shuffle", shuffle_pattern(), _check_pixels),
    )


def _batch_norm_relu() -> Pattern:
    norm = is_op("nn.batch_norm")(*[wildcard() for _ in range(5)])
    return is_op("nn.relu")(is_tuple_get_item(norm, 0).named("norm"))


def _check_batch_norm(match: Match) -> str | None:
    norm = match.op("norm")
    return op_rules()[relay_name(norm)](norm)


def _check_shuffle(match: Match) -> str | None:
    if not isinstance(read_shuffle(Reader(), match.results[0]), ChannelShuffle):
        return "the shapes and axes do not make it a shuffle of channels"
    return unsupported_but_bytes(match.root)


def _check_pixels(match: Match) -> str | None:
    """Checks a match of a pixel shuffle; only 8-bit types are accepted.

    oneDNN's convolutions have 8-bit tensors in special layouts.
    """
    if not isinstance(read_shuffle(Reader(), match.results[0]), PixelShuffle):
        return "the shapes and axes do not make pixels of channels"
    types = {tensor_type(value).element_type for value in match.results}
    return unsupported_but_bytes(match.root) if types <= set(BYTES) else "pixels of other types"


def _check_layer(match: Match) -> str | None:
    layer = read_recurrent_layer(Reader(), match.results[0])
    if layer is None:
        return "the shapes and axes do not match a layer on a matmul of its input"
    _, _, batch, _, hidden = layer.sizes
    if batch < 2 or batch * hidden < _LEAST_STATE:
        return f"a batch of {batch} with {hidden} elements each (its steps are faster on the host)"
    return unsupported_types(match.root)


def _check_layer_norm(match: Match) -> str | None:
    found = read_layer_norm(Reader(), match.results[0])
    if found is None:
        return "the axes, the power or the shapes do not make it a layer norm"
    if not 2 <= len(shape_of(found.data)) <= 5:
        return f"rank {len(shape_of(found.data))} (oneDNN normalises ranks 2 to 5)"
    return unsupported_types(match.root)


@cache
def _before_activation(anchor: str, bias: bool, scale: bool, residual: bool) -> Pattern:
    """Returns the pattern of the ops before the activation; variants of a composite share it."""
    whole: Pattern = is_op(anchor)(wildcard(), wildcard()).named("anchor")
    if bias:
        operand = (is_constant() | wildcard()).named("bias")
        whole = is_op("nn.bias_add")(whole, operand) | whole + operand
        whole = whole.named("biased")
    if scale:
        whole = _scaled(whole)
    if residual:
        whole = (whole + wildcard().named("residual")).named("summed")
    return whole


@dataclass(frozen=True)
class _Epilogue:
    """Ops that follow an anchor op in a composite."""

    bias: bool
    residual: bool
    activation: str | None
    scale: bool = False
    gates: bool = False
    """True if the last step is the product with another tensor."""

    def rows(self) -> Iterator[CompositePattern]:
        for anchor in self._anchors():
            parts = [anchor.removeprefix("nn.")]
            parts += ["bias"] if self.bias else []
            parts += ["scale"] if self.scale else []
            parts += ["sum"] if self.residual else []
            parts += [self.activation] if self.activation else []
            parts += ["mul"] if self.gates else []
            yield CompositePattern("dnnl." + "_".join(parts), self._pattern(anchor), self._check)

    def _anchors(self) -> Sequence[str]:
        if self.scale:
            return _CHANNELS_LAST
        if self.activation == "prelu":  # after products oneDNN has only slow reference code for it
            return [anchor for anchor in ANCHORS if anchor not in _CHANNELS_LAST]
        return ANCHORS

    def _pattern(self, anchor: str) -> Pattern:
        whole = _before_activation(anchor, self.bias, self.scale, self.residual)
        if self.activation:
            whole = ACTIVATIONS[self.activation](whole)
        if self.gates:
            whole = (whole * wildcard().named("other")).named("gated")
        return whole

    def _check(self, match: Match) -> str | None:
        anchor = match.op("anchor")
        reason = op_rules()[relay_name(anchor)](anchor)
        if reason is None and self.bias:
            reason = _refused_bias(match)
        if reason is None and self.residual:
            reason = _refused_residual(match)
        if reason is None and self.activation == "prelu":
            reason = _refused_slopes(match)
        if reason is None and self.gates:
            reason = _refused_other(match)
        if reason is not None:
            return reason
        if not self._is_one_chain(match):
            what = self.activation or "the expression"
            return f"the constants of {what} are not those of oneDNN's algorithm"
        return None

    def _is_one_chain(self, match: Match) -> bool:
        """True if oneDNN computes the match as the anchor, then bias, residual and activation."""
        reader = Reader()
        chain = read_chain(reader, match.results[0], match.ops)
        if reader.owner(chain.source) is not match.op("anchor"):
            return False
        others = [step.other for step in chain.steps if isinstance(step, Combined)]
        if any(reader.owner(other) in match.ops for other in others):
            return False
        parts = (self.bias, self.scale, self.residual, self.activation, self.gates)
        return len(chain.steps) <= sum(map(bool, parts))


def _variants() -> Iterator[_Epilogue]:
    for bias in (True, False):
        for activation in (*_AFTER_SUM, None):
            yield _Epilogue(bias, True, activation)
    for bias in (True, False):
        for activation in (*_GATES, None):
            yield _Epilogue(bias, False, activation, gates=True)
    for bias in (True, False):
        for activation in ACTIVATIONS:
            yield _Epilogue(bias, False, activation)
    for bias in (True, False):
        for residual in (True, False):
            yield _Epilogue(bias, residual, None, scale=True)
    yield _Epilogue(True, False, None)


def _refused_bias(match: Match) -> str | None:
    """Returns why a bias is not one value for each output channel, or `None`."""
    anchor, bias = match.op("anchor"), match["bias"]
    result = shape_of(anchor.results[0])
    axis = len(result) - 1 if relay_name(anchor) in _CHANNELS_LAST else 1
    adding = match.op("biased")
    if isinstance(adding, BiasAddOp):
        if adding.positive_axis == axis:
            return None
        return f"the bias runs along axis {adding.positive_axis}, not along the channels"
    if _is_per_channel(bias, result, axis):
        return None
    return f"bias {bias.type} is not one value per channel of {anchor.results[0].type}"


def _refused_slopes(match: Match) -> str | None:
    """Returns why oneDNN cannot use the slopes of a prelu, or `None`.

    It can use one value for each channel, or one for all.
    """
    root = match.root
    assert isinstance(root, PreluOp)
    result, shape = shape_of(root.output), shape_of(root.rhs)
    if math.prod(shape) == 1 or _is_per_channel(root.rhs, result, axis=1):
        return None
    return f"slopes {root.rhs.type} are not one value per channel of {root.output.type}"


def _is_per_channel(bias: SSAValue, result: Sequence[int], axis: int) -> bool:
    shape = shape_of(bias)
    padded = (*(1,) * (len(result) - len(shape)), *shape)
    return len(shape) <= len(result) and all(
        size == (result[position] if position == axis else 1)
        for position, size in enumerate(padded)
    )


def _refused_residual(match: Match) -> str | None:
    """Returns why oneDNN cannot add the other operand of an addition as a post-op, or `None`."""
    anchor, residual, summed = match.op("anchor"), match["residual"], match["summed"]
    if residual.type == summed.type == anchor.results[0].type:
        return None
    if summed.type == anchor.results[0].type and _keeps_rank(anchor):
        return slow_here(match.op("summed"))
    return f"residual {residual.type} is broadcast to {summed.type}"


def _refused_other(match: Match) -> str | None:
    """Returns why oneDNN cannot multiply by the other operand of a multiplication as a post-op, or
    `None`.
    """
    anchor, other, gated = match.op("anchor"), match["other"], match.op("gated").results[0]
    result = shape_of(anchor.results[0])
    axis = len(result) - 1 if relay_name(anchor) in _CHANNELS_LAST else 1
    if gated.type != anchor.results[0].type:
        return f"the result is broadcast to {gated.type}"
    if other.type == gated.type or _is_per_channel(other, result, axis):
        return None
    if isinstance(other.owner, ConstantOp):
        return f"{other.type} is a constant that is not one value per channel of {gated.type}"
    if math.prod(shape_of(other)) == 1:
        return None
    return f"{other.type} is neither one value, nor one per channel, nor as large as {gated.type}"


def _keeps_rank(anchor: Operation) -> bool:
    """True if oneDNN gets the matmul with all its dimensions, so that a mask can broadcast."""
    return isinstance(anchor, MatmulOp) and not is_rows_times_matrix(anchor)
