"""The pass `place-dnnl-buffers`: offsets of results and scratchpads in a region's workspace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import WORKSPACE
from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.shared_memory import (
    byte_size,
    is_in_place,
    offset_in_root,
    root,
)
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets

_ELSEWHERE = -1


class PlaceDnnlBuffers(RegionPass):
    """Plans the workspace: results and scratchpads with disjoint lifetimes share memory.

    A returned value is written to the region's output, and needs no workspace.

    ```mlir
    func.func private @r(%x: tensor<1x64x8x8xf32>) … attributes {byoc.compiler = "dnnl"} {
      %0 = dnnl.eltwise %x {algorithm = "relu"} : …
    ```
    becomes
    ```mlir
    func.func private @r(…) … attributes {byoc.compiler = "dnnl", byoc.workspace = 16384 : i64} {
      %0 = dnnl.eltwise %x {algorithm = "relu", offsets = [0]} : …
    ```
    """

    name = "place-dnnl-buffers"

    def change(self, region: FuncOp) -> None:
        requests = _requests(region)
        planned, total = plan_offsets(list(requests.values()))
        offsets = dict(zip(requests, planned, strict=True))
        for op in region.body.block.ops:
            if isinstance(op, dnnl.ExecutedOp):
                _write(op, offsets)
        region.attributes[WORKSPACE] = IntegerAttr(total, i64)


def _write(op: dnnl.ExecutedOp, offsets: dict[SSAValue | Operation, int]) -> None:
    starts = [_start(op, result, offsets) for result in op.results]
    is_anywhere = any(start != _ELSEWHERE for start in starts)
    op.offsets = DenseArrayBase.from_list(i64, starts) if is_anywhere else None
    op.scratchpad_offset = IntegerAttr(offsets[op], i64) if op in offsets else None


def _start(op: dnnl.ExecutedOp, result: SSAValue, offsets: dict[SSAValue | Operation, int]) -> int:
    base = root(result)
    if is_in_place(op) or base not in offsets:
        return _ELSEWHERE
    return offsets[base] + offset_in_root(result)


def _requests(region: FuncOp) -> dict[SSAValue | Operation, BufferRequest]:
    """Returns the lifetimes and sizes of workspace buffers.

    The key of a result is the value that owns its memory; the key of a scratchpad is its op.
    """
    block = region.body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    elsewhere = {*block.args, *map(root, last.operands)}
    requests: dict[SSAValue | Operation, BufferRequest] = {}
    for op, (first, last) in _times(block.ops):
        for operand in op.operands:
            base = root(operand)
            if base in requests:
                requests[base] = replace(requests[base], last=last)
        if not isinstance(op, dnnl.ExecutedOp):
            continue
        for base in map(root, op.results):
            if base not in elsewhere:
                new = BufferRequest(byte_size(base), first, last)
                requests[base] = replace(requests.get(base, new), last=last)
        if op.scratchpad_bytes is not None:
            requests[op] = BufferRequest(op.scratchpad_bytes.value.data, first, last)
    return requests


def _times(ops: Iterable[Operation]) -> list[tuple[Operation, tuple[int, int]]]:
    """Returns every op with the first and the last position at which it may run."""
    listed = list(ops)
    spans = [[position, position] for position in range(len(listed))]
    for position, op in enumerate(listed):
        if isinstance(op, dnnl.ExecutedOp) and op.concurrent.value.data:
            spans[position] = spans[position - 1]
            spans[position][1] = position
    return [(op, (first, last)) for op, (first, last) in zip(listed, spans, strict=True)]
