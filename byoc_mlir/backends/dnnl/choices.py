"""Choices of the passes: measured, estimated, or set by the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from byoc_mlir.backends.options import Option, Setting

MEASURED = "measured"
"""Setting that selects the fastest choice: by estimate or, after `byoc tune`, by measurement."""

Winograd: TypeAlias = Literal["measured", "off"]
Convolution: TypeAlias = Literal[
    "measured",
    "direct",
    "f2x3",
    "f4x3",
    "f6x3",
    "f4x5",
    "implicit_gemm",
    "depthwise",
    "pixel_row",
]
Layout: TypeAlias = Literal["measured", "plain", "channels_last", "blocked_8", "blocked_16"]
Activation: TypeAlias = Literal["measured", "loop", "post_op"]

QuantizedProducts: TypeAlias = Literal["amx", "all"]
SplitProducts: TypeAlias = Literal["amx", "all"]

LAYOUTS = get_args(Layout)[1:]
"""Families of layouts; blocks of 16 are for AVX-512."""


@dataclass(frozen=True)
class Choices:
    """Settings of the choices; each is `measured`, or a value to use wherever it applies."""

    winograd: Winograd = MEASURED
    """`off` disables Winograd's algorithm, unless `convolution` requests it."""
    convolution: Convolution = MEASURED
    """Algorithm for all convolutions that it supports."""
    layout: Layout = MEASURED
    """Layout of all values of a region, except values for which a primitive has no code."""
    activation: Activation = MEASURED
    """`loop` uses built-in kernels where they exist; `post_op` uses oneDNN where its results are
    right.
    """

    @staticmethod
    def of(settings: Mapping[str, Setting]) -> Choices:
        """Returns the choices that a backend's checked options set."""
        return Choices(
            cast(Winograd, settings["winograd"]),
            cast(Convolution, settings["convolution"]),
            cast(Layout, settings["layout"]),
            cast(Activation, settings["activation"]),
        )


OPTIONS: Mapping[str, Option] = {
    "winograd": Option(
        MEASURED,
        "Winograd's algorithm for convolutions: where it is faster, or never",
        get_args(Winograd),
    ),
    "convolution": Option(
        MEASURED,
        "the algorithm of all convolutions that it supports",
        get_args(Convolution),
    ),
    "layout": Option(MEASURED, "the layout of all values of a region", get_args(Layout)),
    "quantized_products": Option(
        "amx",
        "int8 GEMMs with constant weights: on processors with AMX, or on all; without AMX, the"
        " host's kernels are as fast",
        get_args(QuantizedProducts),
    ),
    "split_products": Option(
        "amx",
        "matmuls and convolutions in bf16x3: those that are faster with AMX, or all, with any"
        " instructions for bf16",
        get_args(SplitProducts),
    ),
    "activation": Option(
        MEASURED,
        "swish and gelu after convolutions and matmuls: by a separate loop, or by oneDNN",
        get_args(Activation),
    ),
}
"""Options of the backend; some of them set these choices."""
