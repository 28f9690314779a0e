"""Regions of interest, determinants."""

from __future__ import annotations

import math as pymath
from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay import vision as relay
from byoc_mlir.dialects.relay.base import ints, sizes_of, tensor_of, tensor_type
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.index import check_places
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.sampling import float_type, to_place


def _corners(k: Kernel, value: Num, size: Size) -> tuple[Num, Num, Num, Num]:
    """Emits the positions before and after a coordinate, clamped, and their weights."""
    x = value.max(0)
    low = to_place(k, x.unary(math.FloorOp), 0, size - 1)
    last = low >= size - 1
    rest = k.select(last, 0.0, x - low.to(value.type))
    return low, (low + 1).min(size - 1), 1 - rest, rest


def _lower_roi_align(op: relay.RoiAlignOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, rois, batch = k.inputs
    number, size, scale = float_type(data.type), ints(op.pooled_size), op.spatial_scale.value.data
    aligned, ratio = bool(op.aligned.value.data), op.sample_ratio.value.data
    check_places(data.sizes[0], *data.sizes[2:])
    with k.loops(k.outputs[0].sizes, cost=100) as (r, c, *bin_):
        n = k.position(batch[r], data.sizes[0])
        ends = [rois[r, i].to(number) * scale - (0.5 if aligned else 0.0) for i in range(4)]
        starts, sizes, counts = [], [], []
        for axis, (first, last) in enumerate(((1, 3), (0, 2))):
            length = ends[last] - ends[first]
            length = length if aligned else length.max(1.0)
            starts.append(ends[first])
            sizes.append(length / size[axis])
            samples = (length / size[axis]).unary(math.CeilOp)
            counts.append(k.index(ratio) if ratio > 0 else to_place(k, samples, 0, 1 << 20))
        total = k.variable(k.constant(0, number))
        with k.loop(counts[0]) as iy, k.loop(counts[1]) as ix:
            y, x = (
                starts[axis]
                + k.index(bin_[axis]).to(number) * sizes[axis]
                + (at.to(number) + 0.5) * sizes[axis] / counts[axis].to(number)
                for axis, at in enumerate((iy, ix))
            )
            parts = _neighbours(k, data, (n, c), y, x, number)
            if op.mode.data == "max":
                value = parts[0].max(parts[1]).max(parts[2].max(parts[3]))
                is_first = iy.equals(0) & ix.equals(0)
                total.value = k.select(is_first, value, total.value.max(value))
            else:
                total.value = total.value + (parts[0] + parts[1] + parts[2] + parts[3])
        result = total.value
        if op.mode.data != "max":
            result = result / (counts[0] * counts[1]).max(1).to(number)
        k.outputs[0][(r, c, *bin_)] = result
    return k.finish(b)


def _neighbours(
    k: Kernel, data: Buffer, at: Sequence[Index], y: Num, x: Num, number: Attribute
) -> list[Num]:
    """Emits the four elements around a point, each multiplied by its weight; zero far outside of
    the data.
    """
    height, width = data.sizes[2:]
    inside = (y >= -1.0) & (y <= height) & (x >= -1.0) & (x <= width)
    rows, columns = _corners(k, y, height), _corners(k, x, width)
    return [
        k.select(
            inside,
            data[(*at, rows[i], columns[j])].to(number) * (rows[i + 2] * columns[j + 2]),
            0,
        )
        for i in range(2)
        for j in range(2)
    ]


def _lower_roi_pool(op: relay.RoiPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, rois = k.inputs
    number, size, scale = float_type(data.type), ints(op.pooled_size), op.spatial_scale.value.data
    check_places(data.sizes[0])
    with k.loops(k.outputs[0].sizes, cost=100) as (r, c, *bin_):
        n = to_place(k, rois[r, 0], 0, data.sizes[0] - 1)
        bounds: list[tuple[Num, Num]] = []
        for axis, (first, last) in enumerate(((2, 4), (1, 3))):
            start, end = (
                (rois[r, i].to(number) * scale).unary(math.RoundOp) for i in (first, last)
            )
            step = (end - start + 1).max(1.0) / size[axis]
            at = k.index(bin_[axis]).to(number)
            low = ((at * step).unary(math.FloorOp) + start).max(0.0)
            high = ((at + 1) * step).unary(math.CeilOp) + start
            limit = data.sizes[axis + 2]
            bounds.append((to_place(k, low, 0, limit), to_place(k, high, 0, limit)))
        (top, bottom), (left, right) = bounds
        best = k.variable(k.constant(-pymath.inf, number))
        with k.loop(bottom, start=top) as y, k.loop(right, start=left) as x:
            best.value = best.value.max(data[n, c, y, x].to(number))
        empty = (bottom <= top) | (right <= left)
        k.outputs[0][(r, c, *bin_)] = k.select(empty, 0, best.value)
    return k.finish(b)


def _lower_det(op: relay.DetOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """Lowers `det` to Gaussian elimination with partial pivoting, on a copy."""
    *leading, size, _ = sizes_of(op.data)
    count = pymath.prod(leading)
    number = float_type(tensor_type(op.data).element_type)
    k = Kernel(op, scratch=[tensor_of(number, [count, size, size])])
    data, result = k.inputs[0].reshaped(count, size, size), k.outputs[0].reshaped(count)
    a = k.scratch[0]
    with k.loops([count], cost=size * size * size) as (n,):
        with k.sequential([size, size]) as (i, j):
            a[n, i, j] = data[n, i, j].to(number)
        product = k.variable(k.constant(1, number))
        with k.loop(size) as step:
            pivot = k.variable(step)
            with k.loop(size, start=step) as row:
                here = a[n, row, step].unary(math.AbsFOp)
                with k.when(here > a[n, pivot.value, step].unary(math.AbsFOp)):
                    pivot.value = row
            other = pivot.value
            with k.when(~other.equals(step)):
                product.value = -product.value
                with k.loop(size) as j:
                    one, two = a[n, step, j], a[n, other, j]
                    a[n, step, j] = two
                    a[n, other, j] = one
            divisor = a[n, step, step]
            product.value = product.value * divisor
            with k.when(~divisor.equals(0)), k.loop(size, start=step + 1) as row:
                factor = a[n, row, step] / divisor
                with k.loop(size, start=step) as j:
                    a[n, row, j] = a[n, row, j] - factor * a[n, step, j]
        result[n] = product.value
    return k.finish(b)


FUNCTIONS: Lowerings = {
    relay.DetOp: _lower_det,
    relay.RoiAlignOp: _lower_roi_align,
    relay.RoiPoolOp: _lower_roi_pool,
}
