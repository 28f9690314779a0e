"""DepthToSpace and SpaceToDepth on tensors `[N, C, H, W]`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.shape import same
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value


@onnx_op("DepthToSpace")
def depth_to_space(
    context: NodeContext, data: Value, *, blocksize: int, mode: str = "DCR"
) -> Value:
    """Imports DepthToSpace: https://onnx.ai/onnx/operators/onnx__DepthToSpace.html"""
    n, c, h, w = _image(data)
    b = blocksize
    if b < 1 or not same(c % (b * b), 0):
        raise NodeRefused(f"{c} channels do not hold blocks of {b} x {b}")
    _check_mode(mode)
    depth = c // (b * b)
    if mode == "DCR":
        blocks = arith.reshape(context, data, (n, b, b, depth, h, w))
        turned = arith.transpose(context, blocks, (0, 3, 4, 1, 5, 2))
    else:
        blocks = arith.reshape(context, data, (n, depth, b, b, h, w))
        turned = arith.transpose(context, blocks, (0, 1, 4, 2, 5, 3))
    return arith.reshape(context, turned, (n, depth, h * b, w * b))


@onnx_op("SpaceToDepth")
def space_to_depth(
    context: NodeContext, data: Value, *, blocksize: int, mode: str = "DCR"
) -> Value:
    """Imports SpaceToDepth: https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html"""
    n, c, h, w = _image(data)
    b = blocksize
    if b < 1 or not same(h % b, 0) or not same(w % b, 0):
        raise NodeRefused(f"an image of {h} x {w} has no whole blocks of {b} x {b}")
    _check_mode(mode)
    blocks = arith.reshape(context, data, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    turned = arith.transpose(context, blocks, order)
    return arith.reshape(context, turned, (n, c * b * b, h // b, w // b))


def _image(data: Value) -> Sequence[Size]:
    if data.rank != 4:
        raise VerifyException(f"the input has rank {data.rank}, accepted is 4: [N, C, H, W]")
    return data.sizes


def _check_mode(mode: str) -> None:
    if mode not in ("DCR", "CRD"):
        raise NodeRefused(f"mode is {mode!r}, accepted are 'DCR' and 'CRD'")
