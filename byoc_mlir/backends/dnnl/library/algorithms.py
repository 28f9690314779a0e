"""Algorithms of primitives: oneDNN's, and kernels of `byoc_mlir.kernels`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from byoc_mlir.backends.dnnl.choices import MEASURED, Convolution
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS
from byoc_mlir.onednn.constants import CONVOLUTION_DIRECT, CONVOLUTION_WINOGRAD

OWN_CONVOLUTIONS = tuple(name for name in get_args(Convolution) if name not in (MEASURED, "direct"))
"""Kernels of `byoc_mlir.kernels`; oneDNN's description of them is the direct algorithm."""
CONVOLUTION: Mapping[str, int] = {
    "direct": CONVOLUTION_DIRECT,
    "winograd": CONVOLUTION_WINOGRAD,
    **dict.fromkeys(OWN_CONVOLUTIONS, CONVOLUTION_DIRECT),
}
INTEGER_CONVOLUTIONS = ("direct", "integer_gemm", "integer_depthwise", *ALGORITHMS)
"""Algorithms of int8 convolutions: oneDNN's, and kernels of `byoc_mlir.kernels`."""
CONVERSIONS = ("direct", "interleave")
"""Algorithms of type conversions: oneDNN's reorders, and `byoc_mlir.kernels.interleave`."""
