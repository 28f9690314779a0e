"""Ops on images, boxes and signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError
from byoc_mlir.testing.samples.onnx_nodes.values import is_float
from byoc_mlir.testing.samples.onnx_nodes.window import image_of

_F32 = np.dtype(np.float32)


@recipe("Resize", "Upsample")
def resize(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    floats = [dtype for dtype in graph.dtypes(op_type) if is_float(dtype)]
    exact = rng.random() < 0.3  # how interpolated integers are rounded is open
    allowed = graph.dtypes(op_type) if exact else floats
    x = image_of(graph, allowed, rng.choice([1, 2, 2, 2]))
    modes = ["nearest", "linear"] + (["cubic"] if op_type == "Resize" and x.rank == 4 else [])
    mode = "nearest" if exact else rng.choice(modes)
    factors = [1.0, 1.0, *(rng.choice([0.5, 1.0, 1.5, 2.0, 2.5, 3.0]) for _ in x.sizes[2:])]
    if op_type == "Upsample" or graph.opset < 11:
        up = [max(factor, 1.0) for factor in factors]
        scales = up if graph.opset < 9 else np.array(up, np.float32)
        graph.emit(op_type, [x], mode=mode, scales=scales)
        return
    transforms = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    transforms += ["half_pixel_symmetric"] * (graph.opset >= 19)
    rounding = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    named: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": maybe(graph, rng.choice(transforms), 0.7),
        "nearest_mode": maybe(graph, rng.choice(rounding)) if mode == "nearest" else None,
        "exclude_outside": maybe(graph, 1, 0.3) if mode == "cubic" else None,
        "antialias": maybe(graph, 1, 0.15) if mode != "nearest" and graph.opset >= 18 else None,
    }
    roi = graph.constant(np.zeros(0, np.float32)) if graph.opset < 13 else None
    if rng.random() < 0.6:
        graph.emit(op_type, [x, roi], scales=np.array(factors, np.float32), **named)
        return
    sizes = [
        *x.sizes[:2],
        *(max(1, int(s * f)) for s, f in zip(x.sizes[2:], factors[2:], strict=True)),
    ]
    scales = graph.constant(np.zeros(0, np.float32)) if graph.opset < 13 else None
    graph.emit(op_type, [x, roi, scales], sizes=np.array(sizes, np.int64), **named)


@recipe("GridSample")
def grid_sample(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    rank = 2 if graph.opset < 20 else rng.choice([2, 2, 3])
    floats = [dtype for dtype in graph.dtypes(op_type) if is_float(dtype)]
    exact = rng.random() < 0.3  # how interpolated integers are rounded is open
    x = image_of(graph, graph.dtypes(op_type) if exact else floats, rank)
    grid = (x.sizes[0], *(rng.randint(1, 5) for _ in range(rank)), rank)
    linear, cubic = ("bilinear", "bicubic") if graph.opset < 20 else ("linear", "cubic")
    modes = [linear, "nearest"] + ([cubic] if rank == 2 else [])
    graph.emit(
        op_type,
        [x, graph.tensor(_F32 if x.dtype != np.float64 else graph.dtypes(op_type, 1), grid)],
        mode="nearest" if exact else rng.choice(modes),
        padding_mode=rng.choice(["zeros", "border", "reflection"]),
        align_corners=rng.randint(0, 1),
    )


@recipe("AffineGrid")
def affine_grid(graph: RandomGraph, op_type: str) -> None:
    n, rank = graph.rng.randint(1, 2), graph.rng.choice([2, 3])
    theta = graph.tensor(graph.dtypes(op_type), (n, rank, rank + 1))
    aligned = graph.rng.randint(0, 1)  # then one element lies at either end
    sizes = [graph.rng.randint(1 + aligned, 4) for _ in range(rank)]
    size = graph.parameter(np.array([n, 1, *sizes], np.int64))
    graph.emit(op_type, [theta, size], align_corners=aligned)


@recipe("RoiAlign", "MaxRoiPool")
def regions(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    x = image_of(graph, graph.dtypes(op_type), 2)
    count = rng.randint(1, 4)
    corners = [sorted(rng.randint(0, 32) / 4 for _ in range(2)) for _ in range(2 * count)]
    pairs = np.array(corners).reshape(count, 2, 2).transpose(0, 2, 1).reshape(count, 4)
    batch = np.array([rng.randrange(x.sizes[0]) for _ in range(count)], np.int64)
    if op_type == "MaxRoiPool":
        boxes = np.concatenate([batch[:, None], pairs], 1).astype(x.dtype)
        shape = [rng.randint(1, 3), rng.randint(1, 3)]
        graph.emit(op_type, [x, graph.parameter(boxes, 0.5)], pooled_shape=shape)
        return
    transform = rng.choice(["half_pixel", "output_half_pixel"]) if graph.opset >= 16 else None
    graph.emit(
        op_type,
        [x, graph.parameter(pairs.astype(x.dtype), 0.5), graph.parameter(batch, 0.5)],
        output_height=rng.randint(1, 3),
        output_width=rng.randint(1, 3),
        sampling_ratio=rng.randint(0, 2),
        mode=rng.choice(["avg", "max"]),
        coordinate_transformation_mode=transform,
    )


@recipe("NonMaxSuppression")
def suppress(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, count, classes = rng.randint(1, 2), rng.randint(1, 8), rng.randint(1, 3)
    boxes = graph.tensor(_F32, (batch, count, 4), style="plain")
    scores = graph.tensor(_F32, (batch, classes, count), style="plain")
    most = graph.parameter(np.array([rng.randint(0, 4)], np.int64))
    limits = [graph.parameter(np.array([rng.randint(0, 8) / 8], np.float32)) for _ in range(2)]
    operands = [boxes, scores, most, *limits]
    centred = maybe(graph, rng.randint(0, 1))
    graph.emit(op_type, operands[: rng.randint(3, 5)], center_point_box=centred)


@recipe("DFT")
def dft(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    inverse, onesided = rng.randint(0, 1), rng.randint(0, 1)
    parts = 2 if inverse or (not onesided and rng.random() < 0.5) else 1
    if inverse and onesided:
        raise RejectedError("not defined")
    shape = (*(rng.randint(1, 6) for _ in range(rng.randint(2, 3))), parts)
    x = graph.tensor(graph.dtypes(op_type), shape)
    axis = rng.randint(0 if graph.opset >= 20 else 1, len(shape) - 2)
    length = maybe(graph, np.array(rng.randint(1, 7), np.int64), 0.4)
    named: dict[str, Any] = {"inverse": inverse or None, "onesided": onesided or None}
    if graph.opset >= 20:
        graph.emit(op_type, [x], dft_length=length, axis=np.array(axis, np.int64), **named)
        return
    graph.emit(op_type, [x], dft_length=length, axis=axis, **named)


@recipe("STFT")
def stft(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    frame = rng.randint(2, 5)
    x = graph.tensor(graph.dtypes(op_type), (rng.randint(1, 2), rng.randint(frame, 12), 1))
    step = graph.parameter(np.array(rng.randint(1, 3), np.int64))
    window = graph.tensor(x.dtype, (frame,)) if rng.random() < 0.5 else None
    length = graph.parameter(np.array(frame, np.int64))
    graph.emit(op_type, [x, step, window, length], onesided=maybe(graph, rng.randint(0, 1)))


@recipe("MelWeightMatrix")
def mel_weights(graph: RandomGraph, op_type: str) -> None:
    numbers = [graph.rng.randint(1, 4), 16, 8000]
    operands = [graph.parameter(np.array(n, np.int64)) for n in numbers]
    operands += [graph.parameter(np.array(n, np.float32)) for n in (0.0, 4000.0)]
    graph.emit(op_type, operands)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window_function(graph: RandomGraph, op_type: str) -> None:
    size = graph.parameter(np.array(graph.rng.randint(1, 9), np.int32))
    graph.emit(op_type, [size], periodic=maybe(graph, graph.rng.randint(0, 1)))
