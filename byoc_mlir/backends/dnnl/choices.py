"""What the passes choose from: what was measured or estimated, or what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from byoc_mlir.backends.options import Option, Setting

MEASURED = "measured"
"""Whatever takes least time."""

Winograd: TypeAlias = Literal["measured", "off"]
Convolution: TypeAlias = Literal[
    "measured", "direct", "f2x3", "f4x3", "f6x3", "f4x5", "implicit_gemm", "depthwise"
]
Layout: TypeAlias = Literal["measured", "plain", "channels_last", "blocked_8", "blocked_16"]
Activation: TypeAlias = Literal["measured", "loop", "post_op"]

QuantizedProducts: TypeAlias = Literal["amx", "all"]
SplitProducts: TypeAlias = Literal["amx", "all"]

LAYOUTS = get_args(Layout)[1:]
"""The families of layouts; blocks of 16 are for AVX-512."""


@dataclass(frozen=True)
class Choices:
    """What each choice is made from: `measured`, or the one thing that is taken where it can be."""

    winograd: Winograd = MEASURED
    """`off`: never by Winograd's algorithm, unless that is what `convolution` asks for."""
    convolution: Convolution = MEASURED
    """An algorithm of convolutions, for all that it is written for."""
    layout: Layout = MEASURED
    """The layout of all values of a region, but those that a primitive has no code for."""
    activation: Activation = MEASURED
    """`loop`: by our own code, wherever that is written. `post_op`: wherever oneDNN's is right."""

    @staticmethod
    def of(settings: Mapping[str, Setting]) -> Choices:
        """Those that the options of a backend, which are checked, ask for."""
        return Choices(
            cast(Winograd, settings["winograd"]),
            cast(Convolution, settings["convolution"]),
            cast(Layout, settings["layout"]),
            cast(Activation, settings["activation"]),
        )


OPTIONS: Mapping[str, Option] = {
    "winograd": Option(
        MEASURED,
        "convolutions by Winograd's algorithm where that is faster, or never",
        get_args(Winograd),
    ),
    "convolution": Option(
        MEASURED,
        "the algorithm of all convolutions that it is written for",
        get_args(Convolution),
    ),
    "layout": Option(MEASURED, "the one layout of a region's values", get_args(Layout)),
    "quantized_products": Option(
        "amx",
        "products of bytes with constant weights: where the processor has AMX, or all; the host's"
        " kernels are as fast elsewhere",
        get_args(QuantizedProducts),
    ),
    "split_products": Option(
        "amx",
        "what is asked for in bf16x3: those products that are faster so with AMX, or all, with any"
        " instructions for bf16",
        get_args(SplitProducts),
    ),
    "activation": Option(
        MEASURED,
        "swish and gelu behind convolutions and products: by a loop of their own, or by oneDNN",
        get_args(Activation),
    ),
}
"""The options of the backend: those that make these choices."""
