"""Residual networks (He et al., 2016), as exporters write them before batch norm is folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder

_Block: TypeAlias = Callable[[GraphBuilder, str, int, int], str]
"""Function that adds a residual branch up to its last batch norm, from builder, input, width and
stride.
"""

_BRANCH_GAIN = 0.4


def resnet18(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds ResNet-18: `image [N, 3, H, W]` to `logits [N, 1000]`."""
    return _resnet("resnet18", _basic_block, (2, 2, 2, 2), 1, seed, batch, image)


def resnet50(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds ResNet-50: `image [N, 3, H, W]` to `logits [N, 1000]`."""
    return _resnet("resnet50", _bottleneck, (3, 4, 6, 3), 4, seed, batch, image)


def _resnet(
    name: str,
    block: _Block,
    depths: tuple[int, ...],
    expansion: int,
    seed: int,
    batch: int,
    image: int,
) -> ModelProto:
    b = GraphBuilder(name, seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.relu(b.batch_norm(b.conv(x, 64, 7, stride=2, bias=False, gain=1.0)))
    x = b.max_pool(x, 3, 2, padding=1)
    for stage, depth in enumerate(depths):
        for index in range(depth):
            with b.scope(f"layer{stage + 1}.{index}"):
                stride = 2 if stage > 0 and index == 0 else 1
                width = 64 << stage
                branch = b.batch_norm(block(b, x, width, stride), gain=_BRANCH_GAIN)
                x = b.relu(b.add(branch, _shortcut(b, x, width * expansion, stride)))
    b.output(b.classifier(x, 1000), "logits", [batch, 1000])
    return b.build()


def _shortcut(b: GraphBuilder, x: str, channels: int, stride: int) -> str:
    if b.channels[x] == channels and stride == 1:
        return x
    return b.batch_norm(b.conv(x, channels, 1, stride=stride, bias=False, gain=1.0))


def _basic_block(b: GraphBuilder, x: str, width: int, stride: int) -> str:
    x = b.relu(b.batch_norm(b.conv(x, width, 3, stride=stride, bias=False)))
    return b.conv(x, width, 3, bias=False)


def _bottleneck(b: GraphBuilder, x: str, width: int, stride: int) -> str:
    x = b.relu(b.batch_norm(b.conv(x, width, 1, bias=False)))
    x = b.relu(b.batch_norm(b.conv(x, width, 3, stride=stride, bias=False)))
    return b.conv(x, width * 4, 1, bias=False)
