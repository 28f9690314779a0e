"""Repairs of operations whose form in PyTorch's exporter is not exact.

`REPAIRS` are decompositions: a captured graph has other operations in place of these. A form for
which there are no other operations is refused by `check_forms`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

from byoc_mlir.errors import NodeProblem
from byoc_mlir.torch import (
    distances,
    elementwise,
    order,
    pools,
    resizes,
    scatters,
    special_functions,
)
from byoc_mlir.torch.elementwise import as_tensor, operands
from byoc_mlir.torch.places import node_problem
from byoc_mlir.torch.tensors import pytorch

_SPACED = ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")

_COMPOSITES = (
    *(f"atleast_{rank}d.Sequence" for rank in (1, 2, 3)),
    *(f"{name}.default" for name in ("column_stack", "dstack", "hstack", "vstack")),
    *(f"linalg_{name}.default" for name in ("matrix_power", "norm")),
    *(f"divide.{name}" for name in ("Tensor", "Scalar")),
    *(f"fft_{name}.default" for name in ("fft2", "fftn", "ifft2", "ifftn", "ihfft2", "ihfftn")),
    *(f"{name}.default" for name in ("adaptive_max_pool1d", "adaptive_avg_pool3d")),
    *(f"{name}.default" for name in ("cdist", "pdist", "linalg_vander")),
    *(f"special_{name}.default" for name in ("multigammaln", "polygamma")),
)
"""Operations that stand for their parts: the exporter's forms fail, or drop what these need."""


def repairs() -> Mapping[Any, Callable[..., Any]]:
    """Returns a decomposition for each operation that is repaired."""
    aten, composite = pytorch().ops.aten, pytorch()._C.DispatchKey.CompositeImplicitAutograd
    composites = [operator.attrgetter(name)(aten) for name in _COMPOSITES]
    return {
        aten.sign.default: elementwise.sign,
        aten.atan2.default: elementwise.atan2,
        aten.angle.default: elementwise.angle,
        aten.copysign.Tensor: elementwise.copysign,
        aten.hypot.default: elementwise.hypot,
        aten.fmax.default: elementwise.fmax,
        aten.fmin.default: elementwise.fmin,
        aten.amax.default: _extreme(aten.amax.default),
        aten.amin.default: _extreme(aten.amin.default),
        aten.aminmax.default: _both_extremes,
        **{getattr(aten.arange, name): _arange for name in ("default", "start", "start_step")},
        **{getattr(aten.linspace, name): _linspace for name in _SPACED},
        **{getattr(aten.logspace, name): _logspace for name in _SPACED},
        aten.copy.default: _copy,
        aten.linalg_vector_norm.default: _norm,
        aten.sort.stable: _sort,
        **{form: partial(form._op_dk, composite) for form in composites},
        aten.logaddexp.default: elementwise.log_add_exp,
        aten.logaddexp2.default: elementwise.log_add_exp_2,
        aten.logcumsumexp.default: order.log_cumsum_exp,
        aten.scatter_reduce.two: _scatter_mean,
        aten.floor_divide.default: _floor_divide,
        aten.div.Tensor_mode: _divide,
        aten.div.Scalar_mode: _divide,
        aten.remainder.Tensor: _remainder,
        aten.remainder.Scalar: _remainder,
        aten.softmax.int: _of_type(aten.softmax.int),
        aten.log_softmax.int: _of_type(aten.log_softmax.int),
        aten.avg_pool2d.default: pools.pool_with_divisor(aten.avg_pool2d.default),
        aten.avg_pool3d.default: pools.pool_with_divisor(aten.avg_pool3d.default),
        aten.adaptive_max_pool2d.default: pools.adaptive_max_pool,
        aten.adaptive_max_pool3d.default: pools.adaptive_max_pool,
        aten._adaptive_avg_pool3d.default: pools.adaptive_avg_pool,
        aten.cummax.default: order.cummax,
        aten.cummin.default: order.cummin,
        aten.cumprod.default: order.cumprod,
        aten.kthvalue.default: order.kthvalue,
        aten.median.dim: order.median,
        aten.median.default: order.of_all(order.median),
        aten.nanmedian.dim: order.nanmedian,
        aten.nanmedian.default: order.of_all(order.nanmedian),
        aten.searchsorted.Tensor: order.searchsorted,
        aten.searchsorted.Scalar: order.searchsorted,
        aten.bucketize.Tensor: order.bucketize,
        aten.as_strided_scatter.default: scatters.as_strided_scatter,
        aten.diagonal_scatter.default: scatters.diagonal_scatter,
        aten.put.default: scatters.put,
        aten.index_reduce.default: scatters.index_reduce,
        aten._cdist_forward.default: distances.cdist,
        aten._pdist_forward.default: distances.pdist,
        aten.isin.Tensor_Tensor: order.isin,
        **special_functions.decompositions(aten),
        aten.constant_pad_nd.default: _pad_complex,
        aten._conj_physical.default: elementwise.conjugate,
        aten.squeeze.dims: _squeeze,
        aten.topk.default: _topk_of_scalar,
        aten.cross_entropy_loss.default: _cross_entropy,
        aten.upsample_linear1d.vec: resizes.resize_1d,
        aten.upsample_bilinear2d.vec: resizes.aligned(aten.upsample_bilinear2d.vec),
        aten.upsample_trilinear3d.vec: resizes.aligned(aten.upsample_trilinear3d.vec),
        aten.upsample_bicubic2d.vec: resizes.aligned(aten.upsample_bicubic2d.vec),
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    }


def check_forms(program: Any) -> Iterator[NodeProblem]:
    """Yields the nodes of a program whose form in ONNX computes something else than PyTorch."""
    for node in program.graph.nodes:
        name = getattr(node.target, "_opname", "")
        others = [one for one in node.users if one.target is operator.getitem and one.args[1]]
        if "_attention" in name and any(one.users for one in others):
            yield node_problem(node, "PyTorch's exporter has no values for its other results")
        if name == "allclose" and arguments_of(node)["equal_nan"]:
            yield node_problem(node, "PyTorch's exporter drops its argument equal_nan")
        if name in ("special_erfcx", "special_log_ndtr"):
            yield node_problem(node, "PyTorch's exporter has a form of it that is not exact")
        if "max_unpool" in name and _has_channels_last(node.args[0].meta["val"]):
            yield node_problem(node, "PyTorch's exporter does not know the strides of its result")
        if name.endswith("_aa") and node.args[2]:
            yield node_problem(node, "PyTorch's exporter does not align corners with antialiasing")


def _has_channels_last(x: Any) -> bool:
    suggested = pytorch("torch._prims_common").suggest_memory_format(x)
    return suggested != pytorch().contiguous_format


def arguments_of(node: Any) -> dict[str, Any]:
    """Returns the arguments of an operation by name, defaults among them."""
    names = node.target._schema.arguments
    given = dict(zip((one.name for one in names), node.args, strict=False))
    return {one.name: one.default_value for one in names} | given | dict(node.kwargs)


def _extreme(form: Any) -> Callable[..., Any]:
    """Returns the decomposition of `amax` or `amin` without axes, which is over all of them."""

    def decomposed(x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if dim:
            return NotImplemented
        return form(x, list(range(x.dim())), keepdim) if x.dim() else x.clone()

    return decomposed


def _both_extremes(x: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the least and the greatest element; `NotImplemented` along one axis."""
    axes = list(range(x.dim()))
    if not axes:
        return x.clone(), x.clone()
    if dim is not None:
        return NotImplemented
    return pytorch().amin(x, axes, keepdim), pytorch().amax(x, axes, keepdim)


def _arange(*limits: Any, dtype: Any = None, **_: Any) -> Any:
    """Returns a row of floats, which are counted and computed in double precision."""
    torch = pytorch()
    start, end, step = (limits if len(limits) > 1 else (0, *limits)) + (1,) * (len(limits) < 3)
    is_float = dtype.is_floating_point if dtype else float in map(type, limits)
    if not is_float or not all(isinstance(one, int | float) for one in limits):
        return NotImplemented
    numbers = torch.arange(ceil((end - start) / step)) * as_tensor(step, torch.float64) + start
    return numbers.to(dtype or torch.get_default_dtype())


def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **_: Any) -> Any:
    """Returns a `linspace` of one step as a vector, which the exporter would make a scalar."""
    if steps != 1:
        return NotImplemented
    return as_tensor(start, dtype or pytorch().get_default_dtype()).reshape(1).clone()


def _logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **_: Any
) -> Any:
    """Computes `logspace` as powers of `_linspace`."""
    if steps != 1:
        return NotImplemented
    torch = pytorch()
    exponent = _linspace(start, end, steps, dtype=torch.float64)
    return torch.pow(base, exponent).to(dtype or torch.get_default_dtype())


def _copy(x: Any, source: Any, non_blocking: bool = False) -> Any:
    """Returns a copy of the destination's shape."""
    if source.shape == x.shape:
        return NotImplemented
    return pytorch().ops.aten.copy.default(x, source.expand(x.shape))


def _norm(
    x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Returns a norm whose axes are all named."""
    form = pytorch().ops.aten.linalg_vector_norm.default
    if not x.dim():
        return form(x.reshape(1), order, [0], dtype=dtype)
    if dim or not keepdim:
        return NotImplemented
    return form(x, order, list(range(x.dim())), True, dtype=dtype)


def _sort(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    """Returns what is sorted, as ONNX does it: in the order of indices where values are equal."""
    return pytorch().ops.aten.sort.default(x, dim, descending)


def _scatter_mean(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Returns means as sums by counts."""
    if reduce != "mean":
        return NotImplemented
    torch = pytorch()
    form = torch.ops.aten.scatter_reduce.two

    def total(x: Any, source: Any) -> Any:
        return form(x, dim, index, source, "sum", include_self=include_self)

    counts = total(torch.ones_like(x), torch.ones_like(source))
    rounding = None if x.is_floating_point() else "floor"
    return torch.div(total(x, source), counts, rounding_mode=rounding)


def _floor_divide(a: Any, b: Any) -> Any:
    torch = pytorch()
    kind = torch.result_type(a, b)
    if kind.is_floating_point:
        return _floored(a, b)
    if isinstance(a, torch.Tensor):
        return NotImplemented
    return torch.ops.aten.floor_divide.default(as_tensor(a, kind), b)


def _divide(a: Any, b: Any, rounding_mode: str | None) -> Any:
    """Returns the quotient as PyTorch rounds it; integers are divided without floats."""
    torch = pytorch()
    kind = torch.result_type(a, b)
    if rounding_mode is None or kind == torch.bool:
        return NotImplemented
    if kind.is_floating_point:
        return _floored(a, b) if rounding_mode == "floor" else NotImplemented
    a, b = operands(a, b)
    down = torch.ops.aten.floor_divide.default(a, b)
    if rounding_mode == "floor":
        return down
    return torch.where((down * b != a) & ((a < 0) != (b < 0)), down + 1, down)


def _floored(a: Any, b: Any) -> Any:
    """Returns the quotient rounded down, from the exact remainder."""
    torch = pytorch()
    kind = torch.result_type(a, b)
    a, b = operands(a, b)
    rest, quotient = torch.fmod(a, b), a / b
    exact = (a - rest) / b
    exact = torch.where((rest != 0) & ((a < 0) != (b < 0)), exact - 1, exact)
    down = torch.floor(exact)
    down = torch.where(exact - down > 0.5, down + 1, down)
    down = torch.where(exact == 0, quotient * 0, down)
    return torch.where(b == 0, quotient, down).to(kind)


def _remainder(a: Any, b: Any) -> Any:
    torch = pytorch()
    kind = torch.result_type(a, b)
    if not kind.is_floating_point:
        return NotImplemented
    if not isinstance(b, torch.Tensor):
        b = as_tensor(b, kind)  # PyTorch rounds it to that type
    a, b = operands(a, b)
    rest = torch.fmod(a, b)
    return torch.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest).to(kind)


def _of_type(form: Any) -> Callable[..., Any]:
    """Returns a form that converts to the type of its result first."""

    def converted(x: Any, dim: int, dtype: Any = None) -> Any:
        return NotImplemented if dtype in (None, x.dtype) else form(x.to(dtype), dim)

    return converted


def _pad_complex(x: Any, pad: Sequence[int], value: float = 0) -> Any:
    """Returns padded complex numbers, as pairs of real ones."""
    if not x.is_complex() or value:
        return NotImplemented
    torch = pytorch()
    return torch.view_as_complex(torch.constant_pad_nd(torch.view_as_real(x), [0, 0, *pad]))


def _squeeze(x: Any, dims: Sequence[int]) -> Any:
    """Returns a view if no axis goes, which the exporter has no form of."""
    is_changed = any(x.shape[dim] == 1 for dim in dims if x.dim())
    return NotImplemented if is_changed else x.view(x.shape)


def _topk_of_scalar(
    x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    """Returns a scalar, and the index 0."""
    if x.dim() or not k:
        return NotImplemented
    return x.clone(), pytorch().zeros_like(x, dtype=pytorch().int64)


def _cross_entropy(
    x: Any, labels: Any, *arguments: Any, label_smoothing: float = 0.0, **keywords: Any
) -> Any:
    """Returns a loss of smoothed labels, probabilities or a single row, by others of PyTorch's
    operations.
    """
    label_smoothing = arguments[3] if len(arguments) > 3 else label_smoothing
    torch = pytorch()
    form = torch.ops.aten.cross_entropy_loss.default
    keywords["label_smoothing"] = label_smoothing
    if x.dim() == 1:
        return form(x.unsqueeze(0), labels.unsqueeze(0), *arguments[:3], **keywords).reshape(())
    if not label_smoothing and not labels.is_floating_point():
        return NotImplemented
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return form._op_dk(composite, x, labels, *arguments[:3], **keywords)


def _encoder_layer(
    x: Any,
    width: int,
    heads: int,
    qkv: Any,
    qkv_bias: Any,
    projection: Any,
    projection_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    *weights: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Returns the result of `nn.TransformerEncoderLayer`'s fused operation for inference."""
    if mask is not None or len(weights) != 8:
        return NotImplemented
    functional = pytorch("torch.nn.functional")
    scale_1, shift_1, scale_2, shift_2 = weights[:4]
    up, up_bias, down, down_bias = weights[4:]

    def attention(x: Any) -> Any:
        parts = functional.linear(x, qkv, qkv_bias).unflatten(-1, (3, heads, width // heads))
        y = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4))
        return functional.linear(y.transpose(1, 2).flatten(2), projection, projection_bias)

    def feed_forward(x: Any) -> Any:
        act = functional.gelu if use_gelu else functional.relu
        return functional.linear(act(functional.linear(x, up, up_bias)), down, down_bias)

    for part, scale, shift in ((attention, scale_1, shift_1), (feed_forward, scale_2, shift_2)):
        norm = (scale.shape, scale, shift, epsilon)
        x = (
            x + part(functional.layer_norm(x, *norm))
            if norm_first
            else (functional.layer_norm(x + part(x), *norm))
        )
    return x
