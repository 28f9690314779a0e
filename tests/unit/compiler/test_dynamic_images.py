"""Ops on images whose batch, height and width are arguments of one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pytest
from dynamic_models import check_one_program
from onnx import TensorProto

from byoc_mlir.lowering.convolutions import choose_convolution_algorithms
from byoc_mlir.lowering.convolutions.choose_convolution_algorithms import (
    ChooseConvolutionAlgorithms,
)
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder
from byoc_mlir.testing.networks.encoder import symbolised

Network: TypeAlias = Callable[[GraphBuilder, str], str]
"""Function from a builder and an image to the result."""

_CHANNELS = 4
_SIZES = ((2, 12, 16), (1, 7, 9), (3, 1, 1), (1, 33, 5), (0, 6, 6), (1, 2, 40), (2, 15, 15))


def _check(network: Network, threads: int = 1) -> None:
    """Asserts that one program computes a network of `x [n, 4, h, w]`."""
    b = GraphBuilder("model", seed=0, opset=13)
    x = b.input("x", ["n", _CHANNELS, "h", "w"])
    b.channels[x] = _CHANNELS
    b.output(network(b, x), "y", [None] * 4)
    check_one_program(
        b.build(), [dict(zip("nhw", sizes, strict=True)) for sizes in _SIZES], threads
    )


def _average(b: GraphBuilder, x: str, **attributes: object) -> str:
    named = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], **attributes}
    return b.op("AveragePool", x, **named)


def _places(b: GraphBuilder, x: str) -> str:
    _, places = b.ops("MaxPool", x, outputs=2, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    return places


_WINDOWS: dict[str, Network] = {
    "conv": lambda b, x: b.relu(b.conv(x, 5, 3, stride=2)),
    "conv of groups": lambda b, x: b.conv(x, 8, 3, groups=2),
    "depthwise conv": lambda b, x: b.relu6(b.conv(x, _CHANNELS, 5, groups=_CHANNELS)),
    "dilated conv": lambda b, x: b.op(
        "Conv", x, b.normal((6, _CHANNELS, 3, 3), 0.3), dilations=[2, 2], pads=[2, 2, 2, 2]
    ),
    "conv with as many results": lambda b, x: b.op(
        "Conv",
        x,
        b.normal((6, _CHANNELS, 3, 4), 0.3),
        auto_pad="SAME_UPPER",
        strides=[2, 1],
    ),
    "max pool with as many results": lambda b, x: b.op(
        "MaxPool", x, kernel_shape=[3, 2], auto_pad="SAME_LOWER", strides=[2, 2]
    ),
    "folded batch norm": lambda b, x: b.relu(b.batch_norm(b.conv(x, 8, 3, bias=False))),
    "transposed conv": lambda b, x: b.op(
        "ConvTranspose", x, b.normal((_CHANNELS, 6, 3, 3), 0.3), strides=[2, 2], pads=[1] * 4
    ),
    "transposed depthwise conv": lambda b, x: b.op(
        "ConvTranspose", x, b.normal((_CHANNELS, 1, 3, 3), 0.3), strides=[2, 1], group=_CHANNELS
    ),
    "max pool": lambda b, x: b.max_pool(x, 3, 2, padding=1),
    "max pool in ceil mode": lambda b, x: b.max_pool(x, 3, 2, padding=1, ceil=True),
    "max pool of large windows": lambda b, x: b.max_pool(x, 5, 1, padding=2),
    "average pool": _average,
    "average pool that counts padding": lambda b, x: _average(b, x, count_include_pad=1),
    "average pool in ceil mode": lambda b, x: _average(b, x, ceil_mode=1),
    "global average pool": lambda b, x: b.op("GlobalAveragePool", x),
    "global max pool": lambda b, x: b.op("GlobalMaxPool", x),
    "places of the maximum": lambda b, x: b.op("Cast", _places(b, x), to=TensorProto.FLOAT),
    "pool of norms": lambda b, x: b.op("LpPool", x, kernel_shape=[1, 1], strides=[2, 2]),
    "instance norm": lambda b, x: b.op(
        "InstanceNormalization", x, b.normal((_CHANNELS,), 1.0), b.normal((_CHANNELS,), 1.0)
    ),
}


@pytest.mark.parametrize("network", _WINDOWS.values(), ids=_WINDOWS)
def test_windows(network: Network) -> None:
    _check(network)


def _up_to_eights(b: GraphBuilder, x: str) -> str:
    """Pads an image so that its sides are multiples of 8."""
    sides = b.op("Slice", b.op("Shape", x), b.ints(2), b.ints(4))
    missing = b.op("Mod", b.op("Neg", sides), b.ints(8))
    return b.op("Pad", x, b.op("Concat", b.ints(0, 0, 0, 0, 0, 0), missing, axis=0))


_MOVES: dict[str, Network] = {
    "pad": lambda b, x: b.op("Pad", x, b.ints(0, 0, 1, 2, 0, 0, 3, -1), b.scalar(0.5)),
    "pad with the edge": lambda b, x: b.op("Pad", x, b.ints(0, 0, 1, 2, 0, 1, 3, 0), mode="edge"),
    "pad to multiples": _up_to_eights,
    "depth to space": lambda b, x: b.op("DepthToSpace", x, blocksize=2, mode="CRD"),
    "space to depth": lambda b, x: b.op("SpaceToDepth", _up_to_eights(b, x), blocksize=4),
    "norm over channels": lambda b, x: b.op("LRN", x, size=3),
}


@pytest.mark.parametrize("network", _MOVES.values(), ids=_MOVES)
def test_moves(network: Network) -> None:
    _check(network)


def test_reflections() -> None:
    b = GraphBuilder("reflected", seed=0, opset=13)
    x = b.input("x", [1, 2, "h", "w"])
    b.output(b.op("Pad", x, b.ints(0, 0, 1, 2, 0, 0, 3, 0), mode="reflect"), "y", [None] * 4)
    check_one_program(b.build(), [{"h": h, "w": w} for h, w in [(5, 7), (4, 3), (30, 8)]])


def _resized(factor: float, *, by_factors: bool = True, **attributes: object) -> Network:
    """Returns a network that resizes an image by a factor, or to the sides that are longer by the
    factor.
    """

    def network(b: GraphBuilder, x: str) -> str:
        if by_factors:
            factors = b.constant(np.array([1, 1, factor, 2], np.float32))
            return b.op("Resize", x, "", factors, **attributes)
        sides = b.op("Mul", b.op("Shape", x), b.ints(1, 1, int(factor), 3))
        return b.op("Resize", x, "", "", sides, **attributes)

    return network


def _like_the_image(b: GraphBuilder, x: str) -> str:
    """Adds an image made smaller, and resized to its first size."""
    return b.op("Resize", b.max_pool(x, 3, 2, padding=1), "", "", b.op("Shape", x), mode="linear")


def _to_fixed_sides(b: GraphBuilder, x: str) -> str:
    sides = b.op(
        "Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(2)), b.ints(13, 17), axis=0
    )
    return b.op("Resize", x, "", "", sides, mode="cubic", exclude_outside=1)


_RESIZES: dict[str, Network] = {
    "nearest": _resized(2.0, coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "nearest by sizes": _resized(3.0, by_factors=False, nearest_mode="ceil"),
    "linear": _resized(1.5, mode="linear"),
    "linear between corners": _resized(
        2.0, by_factors=False, mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "linear as pytorch": _resized(
        2.0, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "cubic": _resized(2.0, mode="cubic", cubic_coeff_a=-0.5),
    "like the image": _like_the_image,
    "to fixed sides": _to_fixed_sides,
}


@pytest.mark.parametrize("network", _RESIZES.values(), ids=_RESIZES)
def test_resizes(network: Network) -> None:
    _check(network)


def test_a_resize_that_smoothes() -> None:
    b = GraphBuilder("smoothed", seed=0, opset=18)
    x = b.input("x", [1, 2, "h", "w"])
    factors = b.constant(np.array([1, 1, 0.5, 0.375], np.float32))
    b.output(b.op("Resize", x, "", factors, mode="cubic", antialias=1), "y", [None] * 4)
    check_one_program(b.build(), [{"h": h, "w": w} for h, w in [(12, 16), (7, 9), (33, 5)]])


def _kernels(b: GraphBuilder, x: str) -> str:
    """Adds convolutions with epilogues, a residual among them."""
    x = b.relu(b.conv(x, 16, 3))
    y = b.relu6(b.conv(x, 16, 3))
    x = b.relu(b.add(x, b.batch_norm(b.conv(y, 16, 3, bias=False))))
    return b.conv(x, 16, 1)


def _few_channels(b: GraphBuilder, x: str) -> str:
    """Adds a convolution of three channels, with padding."""
    x = b.op("Slice", x, b.ints(0), b.ints(3), b.ints(1))
    b.channels[x] = 3
    return b.conv(b.relu(b.conv(x, 16, 5, stride=2)), 16, 1)


def _channels_apart(b: GraphBuilder, x: str) -> str:
    """Adds depthwise convolutions with epilogues, a residual among them."""
    x = b.relu(b.conv(x, 16, 3))
    y = b.relu6(b.conv(x, 16, 3, groups=16))
    x = b.relu(b.add(x, b.batch_norm(b.conv(y, 16, 5, groups=16, bias=False))))
    return b.conv(b.conv(x, 16, 3, groups=16, stride=2), 16, 1)


@pytest.mark.parametrize(
    ("network", "algorithm", "threads"),
    [
        (_kernels, "implicit_gemm", 1),
        (_kernels, "f4x3", 2),
        (_few_channels, "implicit_gemm", 2),
        (_channels_apart, "depthwise", 2),
    ],
)
def test_kernels(
    network: Network, algorithm: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks each algorithm, whichever is the fastest on this machine."""
    monkeypatch.setattr(
        choose_convolution_algorithms,
        "ChooseConvolutionAlgorithms",
        partial(ChooseConvolutionAlgorithms, algorithm=algorithm),
    )
    _check(network, threads)


def test_groups_of_channels_are_normalised() -> None:
    b = GraphBuilder("groups", seed=0, opset=21)
    x = b.input("x", ["n", 4, "h", "w"])
    scale, bias = b.normal((4,), 1.0), b.normal((4,), 1.0)
    b.output(b.op("GroupNormalization", x, scale, bias, num_groups=2), "y", [None] * 4)
    sizes = [(2, 5, 7), (1, 1, 1), (3, 8, 2)]
    check_one_program(b.build(), [dict(zip("nhw", each, strict=True)) for each in sizes])


def test_a_line_of_pixels() -> None:
    b = GraphBuilder("line", seed=0, opset=13)
    x = b.input("x", ["n", 4, "w"])
    y = b.op("Conv", x, b.normal((6, 4, 5), 0.3), pads=[2, 2], strides=[2])
    b.output(b.op("MaxPool", y, kernel_shape=[3], pads=[1, 1]), "y", [None] * 3)
    sizes = [(2, 16), (1, 9), (3, 1), (0, 4), (1, 2), (1, 61)]
    check_one_program(b.build(), [{"n": n, "w": w} for n, w in sizes])


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("resnet18", [(1, 64, 96), (2, 33, 47), (1, 32, 200), (3, 1, 1), (0, 64, 64)]),
        ("unet", [(1, 32, 48), (2, 16, 16), (1, 80, 32), (0, 32, 32)]),
    ],
)
def test_networks(name: str, sizes: Sequence[tuple[int, int, int]]) -> None:
    axes = {"image": {0: "batch", 2: "height", 3: "width"}}
    model = symbolised(NETWORKS[name](image=32), axes)
    names = axes["image"].values()
    check_one_program(model, [dict(zip(names, each, strict=True)) for each in sizes])
