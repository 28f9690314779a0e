"""Image networks of several forms: VGG, Inception, DenseNet, U-Net."""

from __future__ import annotations

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder


def vgg16(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds VGG-16 (Simonyan and Zisserman, 2015): `image [N, 3, H, W]` to `logits [N, 1000]`."""
    b = GraphBuilder("vgg16", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    for channels, depth in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(depth):
            x = b.relu(b.conv(x, channels, 3))
        x = b.max_pool(x, 2, 2)
    x = b.op("Flatten", x, axis=1)
    b.channels[x] = 512 * (image // 32) ** 2
    for _ in range(2):
        x = b.relu(b.gemm(x, 4096))
    b.output(b.gemm(x, 1000), "logits", [batch, 1000])
    return b.build()


def inception_v3(*, seed: int = 0, batch: int = 1, image: int = 299) -> ModelProto:
    """Builds Inception-v3 (Szegedy et al., 2016) with its 1x7 and 7x1 convolutions: `image [N, 3,
    H, W]` to `logits [N, 1000]`.
    """
    b = GraphBuilder("inception_v3", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = _unit(b, x, 32, 3, stride=2, padding=0)
    x = _unit(b, _unit(b, x, 32, 3, padding=0), 64, 3)
    x = _unit(b, b.max_pool(x, 3, 2), 80, 1)
    x = b.max_pool(_unit(b, x, 192, 3, padding=0), 3, 2)
    for pooled in (32, 64, 64):
        x = _inception_a(b, x, pooled)
    x = _inception_b(b, x)
    for width in (128, 160, 160, 192):
        x = _inception_c(b, x, width)
    x = _inception_d(b, x)
    for _ in range(2):
        x = _inception_e(b, x)
    b.output(b.classifier(x, 1000), "logits", [batch, 1000])
    return b.build()


def _unit(
    b: GraphBuilder,
    x: str,
    channels: int,
    kernel: int | tuple[int, int],
    *,
    stride: int = 1,
    padding: int | None = None,
) -> str:
    x = b.conv(x, channels, kernel, stride=stride, padding=padding, bias=False)
    return b.relu(b.batch_norm(x))


def _pooled(b: GraphBuilder, x: str, channels: int) -> str:
    return _unit(b, b.average_pool(x, 3, 1, padding=1), channels, 1)


def _inception_a(b: GraphBuilder, x: str, pooled: int) -> str:
    return b.concat(
        _unit(b, x, 64, 1),
        _unit(b, _unit(b, x, 48, 1), 64, 5),
        _unit(b, _unit(b, _unit(b, x, 64, 1), 96, 3), 96, 3),
        _pooled(b, x, pooled),
    )


def _inception_b(b: GraphBuilder, x: str) -> str:
    double = _unit(b, _unit(b, x, 64, 1), 96, 3)
    return b.concat(
        _unit(b, x, 384, 3, stride=2, padding=0),
        _unit(b, double, 96, 3, stride=2, padding=0),
        b.max_pool(x, 3, 2),
    )


def _inception_c(b: GraphBuilder, x: str, width: int) -> str:
    single = _unit(b, _unit(b, x, width, 1), width, (1, 7))
    double = _unit(b, _unit(b, _unit(b, x, width, 1), width, (7, 1)), width, (1, 7))
    return b.concat(
        _unit(b, x, 192, 1),
        _unit(b, single, 192, (7, 1)),
        _unit(b, _unit(b, double, width, (7, 1)), 192, (1, 7)),
        _pooled(b, x, 192),
    )


def _inception_d(b: GraphBuilder, x: str) -> str:
    separable = _unit(b, _unit(b, _unit(b, x, 192, 1), 192, (1, 7)), 192, (7, 1))
    return b.concat(
        _unit(b, _unit(b, x, 192, 1), 320, 3, stride=2, padding=0),
        _unit(b, separable, 192, 3, stride=2, padding=0),
        b.max_pool(x, 3, 2),
    )


def _inception_e(b: GraphBuilder, x: str) -> str:
    single = _unit(b, x, 384, 1)
    double = _unit(b, _unit(b, x, 448, 1), 384, 3)
    return b.concat(
        _unit(b, x, 320, 1),
        b.concat(_unit(b, single, 384, (1, 3)), _unit(b, single, 384, (3, 1))),
        b.concat(_unit(b, double, 384, (1, 3)), _unit(b, double, 384, (3, 1))),
        _pooled(b, x, 192),
    )


def densenet121(*, seed: int = 0, batch: int = 1, image: int = 224) -> ModelProto:
    """Builds DenseNet-121 (Huang et al., 2017), batch norm before the convolutions: `image [N, 3,
    H, W]` to `logits [N, 1000]`.
    """
    b = GraphBuilder("densenet121", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    x = b.relu(b.batch_norm(b.conv(x, 64, 7, stride=2, bias=False, gain=1.0)))
    x = b.max_pool(x, 3, 2, padding=1)
    for block, depth in enumerate((6, 12, 24, 16)):
        if block > 0:
            x = b.conv(b.relu(b.batch_norm(x)), b.channels[x] // 2, 1, bias=False)
            x = b.average_pool(x, 2, 2)
        for index in range(depth):
            with b.scope(f"denseblock{block + 1}.{index}"):
                y = b.conv(b.relu(b.batch_norm(x)), 128, 1, bias=False)
                x = b.concat(x, b.conv(b.relu(b.batch_norm(y)), 32, 3, bias=False))
    x = b.relu(b.batch_norm(x))
    b.output(b.classifier(x, 1000), "logits", [batch, 1000])
    return b.build()


def unet(*, seed: int = 0, batch: int = 1, image: int = 256) -> ModelProto:
    """Builds U-Net (Ronneberger et al., 2015), 32 to 512 channels, transposed convolutions upwards:
    `image [N, 3, H, W]` to `mask [N, 2, H, W]`.
    """
    b = GraphBuilder("unet", seed=seed)
    x = b.input("image", [batch, 3, image, image])
    skips: list[str] = []
    for channels in (32, 64, 128, 256):
        x = _double_conv(b, x, channels)
        skips.append(x)
        x = b.max_pool(x, 2, 2)
    x = _double_conv(b, x, 512)
    for skip in reversed(skips):
        x = b.conv_transpose(x, b.channels[skip], 2, 2)
        x = _double_conv(b, b.concat(skip, x), b.channels[skip])
    mask = b.op("Sigmoid", b.conv(x, 2, 1))
    b.output(mask, "mask", [batch, 2, image, image])
    return b.build()


def _double_conv(b: GraphBuilder, x: str, channels: int) -> str:
    return _unit(b, _unit(b, x, channels, 3), channels, 3)
