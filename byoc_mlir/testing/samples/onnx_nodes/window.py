"""Convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import finite, maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype


@dataclass(frozen=True)
class WindowSample:
    """Attributes that all ops with a window have."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int] | None
    auto_pad: str | None

    def attributes(self, graph: RandomGraph) -> dict[str, Any]:
        """Returns the attributes; attributes with default values are omitted at times."""
        ones = [1] * len(self.kernel)
        return {
            "strides": self.strides if self.strides != ones else maybe(graph, ones),
            "dilations": self.dilations if self.dilations != ones else maybe(graph, ones, 0.3),
            "pads": self.pads,
            "auto_pad": self.auto_pad,
        }


def random_window(graph: RandomGraph, rank: int) -> WindowSample:
    """Returns a window over `rank` spatial axes."""
    rng = graph.rng
    kernel = [rng.choice([1, 2, 3, 3, 3, 4, 5]) for _ in range(rank)]
    if rng.random() < 0.5:
        kernel = [rng.choice([1, 3, 3, 3, 5, 7])] * rank
    strides = [rng.choice([1, 1, 2, 3])] * rank if rng.random() < 0.8 else [1, 2, 3][:rank]
    # the reference evaluator multiplies what lies between dilated taps by zero
    spread = rng.random() < 0.2 and graph.style not in ("extreme", "limits")
    dilations = [rng.choice([1, 2, 3]) if spread else 1 for _ in range(rank)]
    automatic = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]) if rng.random() < 0.2 else None
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = [rng.randint(0, min(most, 3)) for most in (*reach, *reach)]
    if rng.random() < 0.5:
        pads = [most // 2 for most in (*reach, *reach)]
    given = None if automatic or rng.random() < 0.25 else pads
    return WindowSample(kernel, strides, dilations, given, automatic)


def _image(graph: RandomGraph, dtypes: list[Dtype], channels: int | None = None) -> Tensor:
    """Returns an image `[N, C, spatial…]` with one to three spatial axes, mostly two."""
    rank = graph.rng.choice([1, 2, 2, 2, 2, 3])
    if channels is None and graph.rng.random() < 0.6:
        return graph.tensor(dtypes, least=3, most=5)
    return image_of(graph, dtypes, rank, channels)


def image_of(
    graph: RandomGraph, dtypes: list[Dtype], rank: int, channels: int | None = None
) -> Tensor:
    """Returns a tensor `[N, C, spatial…]` with `rank` spatial axes."""
    rng = graph.rng
    spatial = [rng.choice([1, 4, 5, 6, 7, 8, 12] if rank < 3 else [3, 4, 5]) for _ in range(rank)]
    count = channels or rng.choice([1, 2, 3, 4, 8, 16])
    return graph.tensor(dtypes, (rng.choice([1, 1, 2]), count, *spatial))


@recipe("Conv")
def conv(graph: RandomGraph, op_type: str) -> None:
    add_conv(graph, _image(graph, graph.dtypes(op_type)))


def add_conv(graph: RandomGraph, x: Tensor) -> Tensor:
    """Adds a convolution of `x`, with random groups and bias; returns its result."""
    rng = graph.rng
    channels = x.sizes[1]
    window = random_window(graph, x.rank - 2)
    groups = rng.choice([g for g in range(1, max(channels, 1) + 1) if channels % g == 0])
    groups = groups if rng.random() < 0.4 else 1
    if not channels or x.rank < 3:
        raise RejectedError("no channels")
    outputs = groups * rng.choice([1, 1, 2, 3, 4, 8, 16] if groups < 5 else [1, 2])
    weights = graph.tensor(
        x.dtype, (outputs, channels // groups, *window.kernel), style=finite(graph)
    )
    bias = graph.tensor(x.dtype, (outputs,)) if rng.random() < 0.6 else None
    (y,) = graph.emit(
        "Conv",
        [x, weights, bias] if bias else [x, weights],
        group=groups if groups > 1 else maybe(graph, 1),
        kernel_shape=maybe(graph, window.kernel),
        **window.attributes(graph),
    )
    return y


@recipe("ConvTranspose")
def conv_transpose(graph: RandomGraph, op_type: str) -> None:
    x = _image(graph, graph.dtypes(op_type))
    window = random_window(graph, x.rank - 2)
    is_short = any(
        (size - 1) * dilation + 1 < stride
        for size, dilation, stride in zip(
            window.kernel, window.dilations, window.strides, strict=True
        )
    )
    if is_short and window.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        raise RejectedError("the padding is less than nothing, which every oracle places otherwise")
    groups = 2 if x.sizes[1] % 2 == 0 and x.sizes[1] and graph.rng.random() < 0.3 else 1
    outputs = graph.rng.choice([1, 2, 3, 8])
    weights = graph.tensor(x.dtype, (x.sizes[1], outputs, *window.kernel), style=finite(graph))
    bias = [graph.tensor(x.dtype, (outputs * groups,))] if graph.rng.random() < 0.5 else []
    extra = [graph.rng.randint(0, stride - 1) for stride in window.strides]
    graph.emit(
        op_type,
        [x, weights, *bias],
        group=groups,
        output_padding=maybe(graph, extra, 0.3),
        **window.attributes(graph),
    )


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(graph: RandomGraph, op_type: str) -> None:
    x = _image(graph, graph.dtypes(op_type))
    window = random_window(graph, x.rank - 2)
    if window.pads and graph.rng.random() < 0.95:  # wider pads than the window are not defined
        pads = [min(p, k - 1) for p, k in zip(window.pads, [*window.kernel] * 2, strict=True)]
    else:
        pads = window.pads
    named: dict[str, Any] = {**window.attributes(graph), "pads": pads}
    has_places = op_type == "MaxPool" and graph.opset >= 8 and graph.rng.random() < 0.3
    ceil = None if has_places else maybe(graph, graph.rng.randint(0, 1))
    counts_pads = maybe(graph, graph.rng.randint(0, 1))
    if counts_pads and graph.opset < 19 and not ceil:
        _check_that_it_fits(x, replace(window, pads=pads))
    if has_places:
        graph.emit(op_type, [x], 2, kernel_shape=window.kernel, **named)
        return
    graph.emit(
        op_type,
        [x],
        kernel_shape=window.kernel,
        ceil_mode=ceil,
        count_include_pad=counts_pads,
        p=maybe(graph, graph.rng.randint(1, 3)),
        **named,
    )


def _check_that_it_fits(x: Tensor, window: WindowSample) -> None:
    """Rejects windows larger than the image, for which ONNX Runtime divides by the whole window
    before opset 19 and by the covered part since.
    """
    rank = len(window.kernel)
    pads = window.pads or [0] * 2 * rank
    for axis in range(rank):
        extent = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        is_short = x.sizes[axis + 2] + pads[axis] + pads[axis + rank] < extent
        if is_short and window.auto_pad in (None, "VALID"):
            raise RejectedError("the window is larger than the image")


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(graph: RandomGraph, op_type: str) -> None:
    graph.emit(op_type, [_image(graph, graph.dtypes(op_type))])


@recipe("MaxUnpool")
def max_unpool(graph: RandomGraph, op_type: str) -> None:
    x = image_of(graph, graph.dtypes(op_type), 2)
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    values, places = graph.emit("MaxPool", [x], 2, "", **window)
    graph.emit(op_type, [values, places], **window)


@recipe("ConvInteger", "QLinearConv")
def integer_conv(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    x = image_of(graph, graph.dtypes(op_type), 2)
    window = random_window(graph, 2)
    outputs = rng.choice([1, 2, 4, 8])
    kinds = graph.dtypes(op_type, 1 if op_type == "ConvInteger" else 3)
    weights = graph.tensor(kinds, (outputs, x.sizes[1], *window.kernel))
    zeros = [graph.parameter(np.array(rng.randint(0, 5), t.dtype)) for t in (x, weights)]
    if op_type == "ConvInteger":
        given = zeros[: rng.randint(0, 2)]
        graph.emit(op_type, [x, weights, *given], **window.attributes(graph))
        return
    scales = [graph.parameter(np.array(rng.randint(1, 9) / 16, np.float32)) for _ in range(3)]
    zero = graph.parameter(np.array(rng.randint(0, 5), x.dtype))
    bias = [graph.tensor(np.dtype(np.int32), (outputs,))] if rng.random() < 0.5 else []
    operands = [x, scales[0], zeros[0], weights, scales[1], zeros[1], scales[2], zero, *bias]
    graph.emit(op_type, operands, **window.attributes(graph))


@recipe("DeformConv")
def deform_conv(graph: RandomGraph, op_type: str) -> None:
    x = image_of(graph, graph.dtypes(op_type), 2)
    weights = graph.tensor(x.dtype, (graph.rng.randint(1, 3), x.sizes[1], 3, 3))
    n, _, h, w = x.sizes
    offset = graph.tensor(x.dtype, (n, 18, h, w))
    bias = graph.tensor(x.dtype, weights.sizes[:1]) if graph.rng.random() < 0.5 else None
    mask = graph.tensor(x.dtype, (n, 9, h, w)) if graph.rng.random() < 0.5 else None
    operands = [x, weights, offset, bias, mask]
    while operands[-1] is None:
        operands.pop()
    graph.emit(op_type, operands, pads=[1, 1, 1, 1])
