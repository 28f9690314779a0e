"""Where the library's results are not accurate to some units in the last place."""

from __future__ import annotations

from byoc_mlir.backends.dnnl.api import api


def is_inaccurate(algorithm: str) -> bool:
    """Whether its code for an activation is: with AVX-512, its gelu_erf is off by 3e-4."""
    return algorithm == "gelu_erf" and api().has_avx512
