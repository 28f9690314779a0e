"""Ops that move elements: shapes, slices, pads, joins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import numpy_helper

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe, signed, some_axes, some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError
from byoc_mlir.testing.samples.onnx_nodes.values import broadcastable, random_array


@recipe("Reshape")
def reshape(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    sizes = _regrouped(graph, x.sizes)
    if sizes and math.prod(sizes) and graph.rng.random() < 0.4:
        sizes[graph.rng.randrange(len(sizes))] = -1
    kept = [i for i, size in enumerate(sizes) if x.sizes[i : i + 1] == (size,)]
    if kept and graph.rng.random() < 0.3:
        sizes[graph.rng.choice(kept)] = 0
    graph.emit(op_type, [x], shape=np.array(sizes, np.int64), allowzero=maybe(graph, 0, 0.2))


def _regrouped(graph: RandomGraph, shape: tuple[int, ...]) -> list[int]:
    """Merges neighbouring axes, adds axes of size 1, or permutes the axes of a shape."""
    sizes = list(shape)
    for _ in range(graph.rng.randint(0, 2)):
        at = graph.rng.randrange(len(sizes) + 1)
        if at + 1 < len(sizes) and graph.rng.random() < 0.6:
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        else:
            sizes.insert(at, 1)
    if graph.rng.random() < 0.3:
        graph.rng.shuffle(sizes)
    return sizes


@recipe("Transpose")
def transpose(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    perm = graph.rng.sample(range(x.rank), x.rank)
    graph.emit(op_type, [x], perm=maybe(graph, perm, 0.8))


@recipe("Flatten")
def flatten(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1)
    graph.emit(op_type, [x], axis=maybe(graph, graph.rng.randint(0, x.rank)))


@recipe("Squeeze")
def squeeze(graph: RandomGraph, op_type: str) -> None:
    shape = list(graph.tensor(graph.dtypes(op_type)).sizes)
    shape.insert(graph.rng.randint(0, len(shape)), 1)
    x = graph.tensor(graph.dtypes(op_type), tuple(shape[:6]))
    ones = [signed(graph, axis, x.rank) for axis, size in enumerate(x.sizes) if size == 1]
    axes = graph.rng.sample(ones, graph.rng.randint(1, len(ones))) if ones else None
    graph.emit(op_type, [x], axes=maybe(graph, axes, 0.8))


@recipe("Unsqueeze")
def unsqueeze(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), most=4)
    count = graph.rng.randint(1, 2)
    axes = sorted(graph.rng.sample(range(x.rank + count), count))
    if graph.opset >= 11:
        axes = [signed(graph, axis, x.rank + count) for axis in axes]
    graph.emit(op_type, [x], axes=axes)


@recipe("Slice")
def slice_(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1)
    axes = some_axes(graph, x.rank, 1)
    far = 2**31 - 1 if graph.rng.random() < 0.5 else 2**63 - 1
    steps = [graph.rng.choice([1, 1, 1, 2, 3, -1, -2]) for _ in axes]
    if graph.opset < 10:
        axes, steps = [axis % x.rank for axis in axes], [1 for _ in axes]
    starts, ends = [], []
    for axis, step in zip(axes, steps, strict=True):
        size = x.sizes[axis]
        starts.append(graph.rng.randint(-size - 1, size + 1))
        end = graph.rng.choice([graph.rng.randint(-size - 1, size + 1), size, far, -far])
        # ONNX Runtime takes the largest end for the first element when it goes backwards
        ends.append(-far if end == far and step < 0 else end)
    dtype = np.int32 if far < 2**32 and graph.rng.random() < 0.3 else np.int64
    bounds: dict[str, Any] = {
        "starts": np.array(starts, dtype),
        "ends": np.array(ends, dtype),
        "axes": np.array(axes, dtype),
        "steps": np.array(steps, dtype),
    }
    if graph.rng.random() < 0.2 and len(axes) == x.rank and axes == sorted(axes) and axes[0] == 0:
        bounds = {"starts": bounds["starts"], "ends": bounds["ends"]}
    graph.emit(op_type, [x], **bounds)


@recipe("Pad")
def pad(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=5)
    modes = ["constant", "constant", "reflect", "edge"] + ["wrap"] * (graph.opset >= 19)
    mode = graph.rng.choice(modes)
    axes = some_axes(graph, x.rank, 1) if graph.opset >= 18 and graph.rng.random() < 0.3 else None
    sizes = x.sizes if axes is None else tuple(x.sizes[axis] for axis in axes)
    if mode != "constant" and 0 in x.sizes:
        raise RejectedError("nothing to repeat")
    pads = [_pad(graph, mode, size) for size in (*sizes, *sizes)]
    value = None
    if mode == "constant" and graph.rng.random() < 0.5:
        value = 1.5 if graph.opset < 11 else graph.tensor(x.dtype, ())
    amounts = np.array(pads, np.int64)
    name = "constant_value" if graph.opset >= 11 else "value"
    named: dict[str, Any] = {name: value}
    graph.emit(op_type, [x], mode=mode, pads=amounts, paddings=amounts, axes=axes, **named)


def _pad(graph: RandomGraph, mode: str, size: int) -> int:
    most = size - 1 if mode == "reflect" else 3
    least = -min(1, size // 2) if graph.rng.random() < 0.15 else 0
    return graph.rng.randint(least, max(0, min(most, 3)))


@recipe("Expand")
def expand(graph: RandomGraph, op_type: str) -> None:
    wanted = graph.tensor(graph.dtypes(op_type)).sizes
    x = graph.tensor(graph.dtypes(op_type), broadcastable(graph.rng, wanted))
    graph.emit(op_type, [x], shape=np.array(wanted, np.int64))


@recipe("Tile")
def tile(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), most=5)
    repeats = [graph.rng.choice([1, 1, 2, 3, 0] if x.rank < 4 else [1, 1, 2]) for _ in x.sizes]
    graph.emit(op_type, [x], repeats=np.array(repeats, np.int64))


@recipe("Concat")
def concat(graph: RandomGraph, op_type: str) -> None:
    first = graph.tensor(graph.dtypes(op_type), least=1)
    axis = some_axis(graph, first.rank)
    parts = [first]
    for _ in range(graph.rng.randint(0, 3)):
        shape = list(first.sizes)
        if graph.rng.random() < 0.5:
            shape[axis] = graph.rng.randint(0 if graph.rng.random() < 0.1 else 1, 4)
        parts.append(graph.tensor(first.dtype, tuple(shape)))
    graph.rng.shuffle(parts)
    graph.emit(op_type, parts, axis=axis)


@recipe("Split")
def split(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1)
    axis = some_axis(graph, x.rank)
    size, count = x.sizes[axis], graph.rng.randint(1, 3)
    if graph.rng.random() < 0.4:
        equal = graph.opset < 18 or None
        if equal and size % count:
            raise RejectedError("not divisible")
        graph.emit(op_type, [x], count, axis=axis, num_outputs=count)
        return
    cuts = sorted(graph.rng.randint(0, size) for _ in range(count - 1))
    parts = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
    graph.emit(op_type, [x], count, axis=axis, split=np.array(parts, np.int64))


@recipe("DepthToSpace", "SpaceToDepth")
def depth_space(graph: RandomGraph, op_type: str) -> None:
    block, rng = graph.rng.randint(1, 3), graph.rng
    n, c, h, w = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 4)
    to_space = op_type == "DepthToSpace"
    shape = (n, c * block * block, h, w) if to_space else (n, c, h * block, w * block)
    mode = rng.choice(["DCR", "CRD"]) if to_space and graph.opset >= 11 else None
    graph.emit(op_type, [graph.tensor(graph.dtypes(op_type), shape)], blocksize=block, mode=mode)


@recipe("ConstantOfShape")
def constant_of_shape(graph: RandomGraph, op_type: str) -> None:
    shape = np.array(graph.tensor(graph.dtypes("Add")).sizes, np.int64)
    dtype = graph.rng.choice([np.float32, np.int64, np.float64, np.bool_, np.int8, np.float16])
    value = random_array(graph.rng, np.dtype(dtype), (1,), graph.style)
    attribute = numpy_helper.from_array(value) if graph.rng.random() < 0.7 else None
    graph.emit(op_type, [graph.parameter(shape)], value=attribute)


@recipe("EyeLike", "Trilu")
def matrix_shaped(graph: RandomGraph, op_type: str) -> None:
    most = 2 if op_type == "EyeLike" else 4
    x = graph.tensor(graph.dtypes(op_type), least=2, most=most)
    offset = graph.rng.randint(-3, 3)
    if op_type == "EyeLike":
        graph.emit(op_type, [x], k=maybe(graph, offset))
        return
    upper = maybe(graph, graph.rng.randint(0, 1))
    graph.emit(op_type, [x], upper=upper, k=maybe(graph, np.array(offset, np.int64)))


@recipe("Range")
def range_(graph: RandomGraph, op_type: str) -> None:
    dtype = graph.pick_dtype(graph.dtypes(op_type))
    start, step = graph.rng.randint(-3, 3), graph.rng.choice([1, 2, 3, -1, -2])
    limit = start + step * graph.rng.randint(-1, 6) + graph.rng.randint(0, 1)
    graph.emit(op_type, [graph.parameter(np.array(n, dtype)) for n in (start, limit, step)])


@recipe("Col2Im")
def col2im(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    image, block = [rng.randint(3, 6) for _ in range(2)], [rng.randint(1, 3) for _ in range(2)]
    columns = math.prod(i - b + 1 for i, b in zip(image, block, strict=True))
    x = graph.tensor(graph.dtypes(op_type), (1, rng.randint(1, 2) * math.prod(block), columns))
    sizes = [np.array(image, np.int64), np.array(block, np.int64)]
    graph.emit(op_type, [x, *map(graph.parameter, sizes)])


@recipe("CenterCropPad")
def center_crop_pad(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1, most=4)
    axes = some_axes(graph, x.rank, 1)
    shape = np.array([graph.rng.randint(1, 6) for _ in axes], np.int64)
    graph.emit(op_type, [x, graph.parameter(shape)], axes=axes)


@recipe("ReverseSequence")
def reverse_sequence(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=2, most=4)
    batch = graph.rng.randint(0, 1)
    lengths = [graph.rng.randint(0, x.sizes[1 - batch]) for _ in range(x.sizes[batch])]
    lengths_ = graph.parameter(np.array(lengths, np.int64))
    graph.emit(op_type, [x, lengths_], batch_axis=batch, time_axis=1 - batch)
