"""The backend `cudnn`: convolutions on a GPU.

Methods import what they use, because every compilation without targets imports the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.base import (
    Backend,
    CodegenContext,
    GeneratedCode,
    NativeCode,
    Profitability,
    Rule,
    attempt,
)
from byoc_mlir.patterns import CompositePattern

_ALL_F16 = "cuDNN convolves f16 only where bias and result are f16, too"
"""Reason why convolutions of models of `f32` are not computed in `f16`."""


class CudnnBackend(Backend):
    """Backend that runs convolutions with cuDNN, and the bias, the sum with a residual and the relu
    after them in the same kernel.
    """

    name: ClassVar[str] = "cudnn"
    memory_space: ClassVar[str] = "cuda"
    environment: ClassVar[tuple[str, ...]] = (
        "BYOC_CUDA_LIBRARY",
        "BYOC_CUDNN_LIBRARY",
        "BYOC_CUDNN_DEVICE",
    )

    def describe(self) -> str:
        from byoc_mlir.backends.cudnn.library import load_cudnn

        library = load_cudnn()
        return f"cuDNN {library.version_text}, {library.path}"

    def unavailable(self) -> str | None:
        from byoc_mlir.backends.cudnn.library import load_cudnn
        from byoc_mlir.backends.cudnn.properties import device_properties
        from byoc_mlir.errors import BackendError

        try:
            load_cudnn()
            device_properties()
        except BackendError as error:
            return str(error)
        return None

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.cudnn.partition import ANCHORS, refused

        return {f"nn.{name}": refused for name in ANCHORS}

    def patterns(self) -> Sequence[CompositePattern]:
        from byoc_mlir.backends.cudnn.partition import patterns

        return patterns()

    def profitability(self, element_type: str) -> Profitability:
        from byoc_mlir.backends.cudnn.partition import ANCHORS

        ops = frozenset(f"nn.{name}" for name in ANCHORS)
        if element_type == "tf32":
            return Profitability(ops)
        if element_type == "f16":
            return Profitability(ops, faster_in_f32=lambda _: _ALL_F16)
        return super().profitability(element_type)

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        from byoc_mlir.backends.cudnn.region_code import generator

        return generator()(region)

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        from byoc_mlir.backends.cudnn.region_code import generator

        generate = generator()
        return [attempt(lambda one, _: generate(one), region, context) for region in regions]
