"""Functions for which oneDNN's results are not accurate to a few ULPs."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.onednn.engine import engine


def is_inaccurate(algorithm: str, result: SSAValue) -> bool:
    """True if oneDNN's code for an activation is inaccurate in the result's type.

    With AVX-512, gelu_erf is off by 3e-4. This matters for `f32` only: rounding to `bf16` loses
    more.
    """
    is_exact = tensor_type(result).element_type == f32
    return algorithm == "gelu_erf" and is_exact and engine().has_avx512
