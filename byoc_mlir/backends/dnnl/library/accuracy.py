"""Where the library's results are not accurate to some units in the last place."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.onednn.engine import engine


def is_inaccurate(algorithm: str, result: SSAValue) -> bool:
    """Whether its code for an activation is: with AVX-512, its gelu_erf is off by 3e-4. A result
    of `bf16` is rounded by more than that.
    """
    is_exact = tensor_type(result).element_type == f32
    return algorithm == "gelu_erf" and is_exact and engine().has_avx512
