"""A backend that runs matmuls on a GPU with cuBLASLt.

Methods import what they use, because every compilation without targets imports the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.base import Backend, CodegenContext, NativeCode, Profitability, Rule

if TYPE_CHECKING:
    from byoc_mlir.patterns import CompositePattern

_PRODUCTS = frozenset(("nn.dense", "nn.matmul"))


class CublasLtBackend(Backend):
    """Backend that runs dense layers and matmuls with cuBLASLt, and the bias and activation after
    them in the same kernel.
    """

    name: ClassVar[str] = "cublaslt"
    memory_space: ClassVar[str] = "cuda"
    environment: ClassVar[tuple[str, ...]] = ("BYOC_CUBLASLT_LIBRARY",)

    def describe(self) -> str:
        from byoc_mlir.backends.cublaslt.library import CUBLASLT, version

        return f"cuBLASLt {version()}, {CUBLASLT.path()}"

    def unavailable(self) -> str | None:
        from byoc_mlir.backends.cublaslt.library import unavailable_reason

        return unavailable_reason()

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.cublaslt.matmuls import refused

        return dict.fromkeys(_PRODUCTS, refused)

    def patterns(self) -> Sequence[CompositePattern]:
        from byoc_mlir.backends.cublaslt.partition import patterns

        return patterns()

    def profitability(self, element_type: str) -> Profitability:
        if element_type in ("bf16", "f16", "tf32"):
            return Profitability(_PRODUCTS)
        return super().profitability(element_type)

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        from byoc_mlir.backends.cublaslt.region_code import region_code

        return region_code(region)
