"""The built-in backend: oneDNN. See `docs/dev-notes/dnnl.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, Operation
from xdsl.passes import ModulePass

from byoc_mlir.backends.base import (
    Backend,
    CodegenContext,
    GeneratedCode,
    NativeCode,
    Profitability,
    Rule,
    attempt,
)
from byoc_mlir.backends.dnnl.choices import OPTIONS, Choices
from byoc_mlir.backends.options import Option
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.onednn.library import (
    ENVIRONMENT_VARIABLE,
    ISA_VARIABLES,
    load_library,
    unavailable_reason,
)
from byoc_mlir.patterns import CompositePattern

if TYPE_CHECKING:
    from byoc_mlir.kernels.module_builder import ModuleBuilder

_one_at_a_time = ForkSafeLock()
"""Lock that allows one measurement at a time: measurements share memory, and would slow each other
down."""


class DnnlBackend(Backend):
    """Backend that runs regions with oneDNN's primitives, in layouts planned for the whole
    region.
    """

    name: ClassVar[str] = "dnnl"
    used_by_default: ClassVar[bool] = True
    priority: ClassVar[int] = 0
    environment: ClassVar[tuple[str, ...]] = (
        ENVIRONMENT_VARIABLE,
        *ISA_VARIABLES,
        "ONEDNN_CPU_ISA_HINTS",
        "DNNL_CPU_ISA_HINTS",
    )
    options: ClassVar[Mapping[str, Option]] = OPTIONS

    def __init__(self) -> None:
        self._context = Context()
        self._planned: dict[tuple[FuncOp, int], FuncOp] = {}
        """Lowered regions by region and threads, kept from the estimate for code generation."""

    def unavailable(self) -> str | None:
        return unavailable_reason()

    def describe(self) -> str:
        library = load_library()
        return f"oneDNN {'.'.join(map(str, library.version))}, {library.path}"

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.dnnl.partition.rules import op_rules

        return op_rules()

    def patterns(self) -> Sequence[CompositePattern]:
        from byoc_mlir.backends.dnnl.partition.patterns import patterns

        return patterns(has_all_products=self.settings["quantized_products"] == "all")

    def profitability(self, element_type: str) -> Profitability:
        from byoc_mlir.backends.dnnl.partition.patterns import ANCHORS, BATCH_NORM_RELU
        from byoc_mlir.onednn.engine import engine

        if element_type not in ("bf16", "bf16x3"):
            return Profitability()
        if not engine().has_bf16:
            return Profitability(
                reason="this processor has no instructions for bf16 (AVX-512 BF16 or AMX)"
            )
        if element_type == "bf16x3":
            return self._gains_from_splitting()
        return Profitability(
            frozenset(ANCHORS),
            least=2**16,
            faster_in_f32=self._faster_in_f32,
            following=frozenset({BATCH_NORM_RELU}),
        )

    def _gains_from_splitting(self) -> Profitability:
        from byoc_mlir.backends.dnnl.partition.patterns import SPLIT_ANCHORS
        from byoc_mlir.onednn.engine import engine

        if self.settings["split_products"] == "all":
            return Profitability(SPLIT_ANCHORS)
        if not engine().has_amx:
            return Profitability(reason="this processor has no AMX: three bf16 matmuls take longer")
        return Profitability(SPLIT_ANCHORS, least=2**16, faster_in_f32=self._faster_whole)

    def _faster_whole(self, op: Operation) -> str | None:
        from byoc_mlir.backends.dnnl.profitability.split import faster_whole

        with _one_at_a_time:
            return faster_whole(op, Choices.of(self.settings))

    def _faster_in_f32(self, op: Operation) -> str | None:
        from byoc_mlir.backends.dnnl.profitability.mixed import faster_in_f32

        with _one_at_a_time:
            return faster_in_f32(op, Choices.of(self.settings))

    def estimated_milliseconds(self, region: FuncOp, context: CodegenContext) -> float | None:
        """Estimates a region's latency on oneDNN.

        If the region will likely stay with oneDNN, plans it, keeps the plan, and uses the plan's
        latency.
        """
        from byoc_mlir.backends.dnnl.library.timing import bench
        from byoc_mlir.backends.dnnl.profitability.regions import (
            planned_milliseconds,
            separate_milliseconds,
        )

        choices = Choices.of(self.settings)
        with _one_at_a_time:
            if self.faster_on_host(region) is not None:
                milliseconds = separate_milliseconds(region, choices)
                bench.release_memory()
                return milliseconds
            planned = self._planned[region, context.threads] = self.lowered(region, context.threads)
            return planned_milliseconds(planned, choices)

    def faster_on_host(self, region: FuncOp) -> str | None:
        from byoc_mlir.backends.dnnl.partition.host_regions import faster_on_host

        return faster_on_host(region)

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        return self._generator()(region, context)

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        generate = self._generator()
        return [attempt(generate, region, context) for region in regions]

    def _generator(self) -> Callable[[FuncOp, CodegenContext], NativeCode]:
        """Generates code for regions that share functions."""
        from byoc_mlir.kernels.module_builder import ModuleBuilder

        shared = ModuleBuilder()

        def generate(region: FuncOp, context: CodegenContext) -> NativeCode:
            with _one_at_a_time:
                return self._generate(region, context, shared)

        return generate

    def _generate(
        self, region: FuncOp, context: CodegenContext, shared: ModuleBuilder
    ) -> NativeCode:
        from byoc_mlir.backends.dnnl.codegen.emit import emit
        from byoc_mlir.backends.dnnl.codegen.program import make_program
        from byoc_mlir.backends.dnnl.library.objects import forget
        from byoc_mlir.backends.dnnl.library.timing import bench
        from byoc_mlir.onednn.engine import openmp_threads

        key = region, context.threads
        func = self._planned.pop(key, None) or self.lowered(*key)
        with openmp_threads(context.threads):
            program = make_program(func, context.threads)
            code = emit(
                program,
                func.sym_name.data,
                len(func.function_type.inputs),
                len(func.function_type.outputs),
                [load_library().requirement],
                shared,
            )
        bench.release_memory()
        forget()
        return code

    def lowered(self, region: FuncOp, threads: int) -> FuncOp:
        """Returns a copy of a region after all passes, the input of code generation.

        `byoc-opt` prints the same IR.

        Args:
            region: region of `relay` ops.
            threads: the OpenMP threads that will run it.
        """
        from byoc_mlir.backends.dnnl.library.timing import bench
        from byoc_mlir.backends.dnnl.passes.prepare_dnnl_regions import PrepareDnnlRegions

        func = region.clone()
        module, choices = ModuleOp([func]), asdict(Choices.of(self.settings))
        PrepareDnnlRegions(**choices, threads=threads).apply(self._context, module)
        bench.release_memory()
        module.verify()  # once: after each pass takes a fifth of the time that all of them take
        return func

    def dialects(self) -> Sequence[Dialect]:
        from byoc_mlir.backends.dnnl.dialect import DNNL

        return (DNNL,)

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        from byoc_mlir.backends.dnnl.passes.pipeline import pipeline
        from byoc_mlir.backends.dnnl.passes.prepare_dnnl_regions import PrepareDnnlRegions

        passes = (*pipeline(1, Choices()), PrepareDnnlRegions())
        return {one.name: partial(type, one) for one in passes}
