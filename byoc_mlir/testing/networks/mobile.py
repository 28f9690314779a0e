"""Networks for phones: depthwise convolutions, gates, channel shuffles."""

from __future__ import annotations

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder

_SWISH_GAIN = 1.7
"""Gain of a layer behind swish, which leaves 0.36 of the second moment of a standard normal value.
"""


def mobilenet_v2(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds MobileNetV2 (Sandler et al., 2018): `image [N, 3, H, W]` to `logits [N, 1000]`."""
    b = GraphBuilder("mobilenet_v2", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.relu6(b.batch_norm(b.conv(x, 32, 3, stride=2, bias=False, gain=1.0)))
    stages = [
        # expansion, channels, depth, stride
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]
    for stage, (expansion, channels, depth, stride) in enumerate(stages):
        for index in range(depth):
            with b.scope(f"features.{stage}.{index}"):
                x = _inverted_residual(b, x, expansion, channels, stride if index == 0 else 1)
    x = b.relu6(b.batch_norm(b.conv(x, 1280, 1, bias=False, gain=1.0)))
    b.output(b.classifier(x, 1000), "logits", [batch, 1000])
    return b.build()


def _inverted_residual(b: GraphBuilder, x: str, expansion: int, channels: int, stride: int) -> str:
    width = b.channels[x] * expansion
    y = x
    if expansion > 1:
        y = b.relu6(b.batch_norm(b.conv(y, width, 1, bias=False, gain=1.0)))
    y = b.relu6(b.batch_norm(b.conv(y, width, 3, stride=stride, groups=width, bias=False)))
    y = b.conv(y, channels, 1, bias=False)
    if stride != 1 or b.channels[x] != channels:
        return b.batch_norm(y)
    return b.add(x, b.batch_norm(y, gain=0.5))


def efficientnet_b0(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds EfficientNet-B0 (Tan and Le, 2019), swish as two nodes: `image [N, 3, H, W]` to
    `logits [N, 1000]`.
    """
    b = GraphBuilder("efficientnet_b0", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.swish(b.batch_norm(b.conv(x, 32, 3, stride=2, bias=False, gain=1.0)))
    stages = [
        # expansion, channels, depth, stride, kernel
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ]
    for stage, (expansion, channels, depth, stride, kernel) in enumerate(stages):
        for index in range(depth):
            with b.scope(f"blocks.{stage}.{index}"):
                x = _mb_conv(b, x, expansion, channels, stride if index == 0 else 1, kernel)
    x = b.swish(b.batch_norm(b.conv(x, 1280, 1, bias=False, gain=1.0)))
    b.output(b.classifier(x, 1000, gain=3.0), "logits", [batch, 1000])
    return b.build()


def _mb_conv(
    b: GraphBuilder, x: str, expansion: int, channels: int, stride: int, kernel: int
) -> str:
    width = b.channels[x] * expansion
    y = x
    if expansion > 1:
        y = b.swish(b.batch_norm(b.conv(y, width, 1, bias=False, gain=1.0)))
    y = b.conv(y, width, kernel, stride=stride, groups=width, bias=False, gain=_SWISH_GAIN)
    y = b.swish(b.batch_norm(y))
    y = _squeeze_excite(b, y, b.channels[x] // 4)
    y = b.conv(y, channels, 1, bias=False, gain=1.3 * _SWISH_GAIN)
    if stride != 1 or b.channels[x] != channels:
        return b.batch_norm(y)
    return b.add(b.batch_norm(y, gain=0.5), x)


def _squeeze_excite(b: GraphBuilder, x: str, squeezed: int) -> str:
    gate = b.op("ReduceMean", x, axes=[2, 3], keepdims=1)
    gate = b.swish(b.conv(gate, squeezed, 1, gain=2.0))
    gate = b.op("Sigmoid", b.conv(gate, b.channels[x], 1, gain=2.0))
    return b.op("Mul", x, gate)


def squeezenet(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds SqueezeNet 1.1 (Iandola et al., 2016): `image [N, 3, H, W]` to `logits [N, 1000]`."""
    b = GraphBuilder("squeezenet", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.relu(b.conv(x, 64, 3, stride=2, padding=0, gain=1.0))
    x = b.max_pool(x, 3, 2, ceil=True)
    for index, (squeezed, expanded) in enumerate(
        [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
    ):
        if index in (2, 4):
            x = b.max_pool(x, 3, 2, ceil=True)
        with b.scope(f"fire{index + 2}"):
            x = b.relu(b.conv(x, squeezed, 1))
            x = b.concat(b.relu(b.conv(x, expanded, 1)), b.relu(b.conv(x, expanded, 3)))
    x = b.relu(b.conv(x, 1000, 1, gain=3.0))
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    b.output(x, "logits", [batch, 1000])
    return b.build()


def shufflenet(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds ShuffleNet with 3 groups (Zhang et al., 2018): `image [N, 3, H, W]` to `logits [N,
    1000]`.
    """
    b = GraphBuilder("shufflenet", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.relu(b.batch_norm(b.conv(x, 24, 3, stride=2, bias=False, gain=1.0)))
    x = b.max_pool(x, 3, 2, padding=1)
    size = image // 4
    for stage, (channels, depth) in enumerate([(240, 4), (480, 8), (960, 4)]):
        size //= 2
        for index in range(depth):
            with b.scope(f"stage{stage + 2}.{index}"):
                first = stage == 0 and index == 0
                x = _shuffle_unit(b, x, channels, batch, size, 1 if first else 3, index == 0)
    b.output(b.classifier(x, 1000), "logits", [batch, 1000])
    return b.build()


def _shuffle_unit(
    b: GraphBuilder, x: str, channels: int, batch: int, size: int, groups: int, down: bool
) -> str:
    """Adds one unit; `size` is the height of its output, `down` halves the image and
    concatenates."""
    stride = 2 if down else 1
    width = channels // 4
    y = b.relu(b.batch_norm(b.conv(x, width, 1, groups=groups, bias=False)))
    y = _channel_shuffle(b, y, batch, size * stride, 3)
    y = b.batch_norm(b.conv(y, width, 3, stride=stride, groups=width, bias=False))
    added = channels - b.channels[x] if down else channels
    gain = 0.8 if down else 0.4
    y = b.batch_norm(b.conv(y, added, 1, groups=3, bias=False, gain=1.0), gain=gain)
    if not down:
        return b.relu(b.add(x, y))
    return b.relu(b.concat(b.average_pool(x, 3, 2, padding=1), y))


def _channel_shuffle(b: GraphBuilder, x: str, batch: int, size: int, groups: int) -> str:
    channels = b.channels[x]
    y = b.reshape(x, batch, groups, channels // groups, size, size)
    y = b.reshape(b.transpose(y, 0, 2, 1, 3, 4), batch, channels, size, size)
    b.channels[y] = channels
    return y
