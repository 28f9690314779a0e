"""A backend that runs matmuls with OpenBLAS, from native code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends.base import (
    Backend,
    CodegenContext,
    GeneratedCode,
    NativeCode,
    Rule,
    attempt,
)
from byoc_mlir.backends.openblas.library import (
    ENVIRONMENT_VARIABLE,
    load_library,
    unavailable_reason,
)
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard


class OpenBlasBackend(Backend):
    """Runs dense layers, matmuls and batched matmuls with OpenBLAS."""

    name: ClassVar[str] = "openblas"
    environment: ClassVar[tuple[str, ...]] = (ENVIRONMENT_VARIABLE,)

    def unavailable(self) -> str | None:
        return unavailable_reason()

    def describe(self) -> str:
        library = load_library()
        return f"{library.configuration}, {library.path}"

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.openblas.products import refused

        return {"nn.dense": refused, "nn.matmul": refused}

    def patterns(self) -> Sequence[CompositePattern]:
        dense = is_op("nn.dense")(wildcard(), wildcard()).named("dense")
        biased = is_op("nn.bias_add")(dense, wildcard()).named("bias")
        return [CompositePattern(f"{self.name}.dense_bias", biased, _check)]

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        return {"choose-openblas-blocks": lambda: type(_blocks())}

    def region_passes(self) -> Sequence[ModulePass]:
        return (_blocks(),)

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        from byoc_mlir.backends.openblas.regions import generate
        from byoc_mlir.kernels.module_builder import ModuleBuilder

        return generate(region, context, ModuleBuilder())

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        from byoc_mlir.backends.openblas.regions import generate
        from byoc_mlir.kernels.module_builder import ModuleBuilder

        shared = partial(generate, shared=ModuleBuilder())
        return [attempt(shared, region, context) for region in regions]


def _check(match: Match) -> str | None:
    from byoc_mlir.backends.openblas.products import biased_refused, refused

    return refused(match.op("dense")) or biased_refused(match.op("bias"))


def _blocks() -> ModulePass:
    from byoc_mlir.backends.openblas.choose_openblas_blocks import ChooseOpenBlasBlocks

    return ChooseOpenBlasBlocks()
