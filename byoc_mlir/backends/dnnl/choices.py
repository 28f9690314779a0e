"""What planning a region chooses from: what was measured or estimated, or what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byoc_mlir.backends.dnnl.enums import OWN_CONVOLUTIONS
from byoc_mlir.backends.options import Option, Setting

MEASURED = "measured"
"""Whatever takes least time."""

LAYOUTS = ("plain", "channels_last", "blocked_8", "blocked_16")
"""The families of layouts; blocks of 16 are for AVX-512."""


@dataclass(frozen=True)
class Choices:
    """What each choice is made from: `measured`, or the one thing that is taken where it can be."""

    winograd: str = MEASURED
    """`off`: never by Winograd's algorithm, unless that is what `convolution` asks for."""
    convolution: str = MEASURED
    """An algorithm of convolutions, for all that it is written for."""
    layout: str = MEASURED
    """The layout of all values of a region, but those that a primitive has no code for."""
    activation: str = MEASURED
    """`loop`: by our own code, wherever that is written. `post_op`: wherever oneDNN's is right."""

    @staticmethod
    def of(settings: Mapping[str, Setting]) -> Choices:
        """Those that the options of a backend ask for."""
        return Choices(**{name: str(settings[name]) for name in OPTIONS})


OPTIONS: Mapping[str, Option] = {
    "winograd": Option(
        MEASURED,
        "convolutions by Winograd's algorithm where that is faster, or never",
        (MEASURED, "off"),
    ),
    "convolution": Option(
        MEASURED,
        "the algorithm of all convolutions that it is written for",
        (MEASURED, "direct", *OWN_CONVOLUTIONS),
    ),
    "layout": Option(MEASURED, "the one layout of a region's values", (MEASURED, *LAYOUTS)),
    "activation": Option(
        MEASURED,
        "swish and gelu behind convolutions and products: by a loop of their own, or by oneDNN",
        (MEASURED, "loop", "post_op"),
    ),
}
"""The options of the backend that make these choices."""
