"""The host compiler as a sequence of passes, from `relay` to the `llvm` dialect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.abi import COMPILER, WEIGHT
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.relay import ConstantOp, Weight, WeightAttr
from byoc_mlir.ir_dump import apply_pass
from byoc_mlir.limits import check_time
from byoc_mlir.lowering.add_entry_points import AddEntryPoints
from byoc_mlir.lowering.avoid_gathers import AvoidGathers
from byoc_mlir.lowering.bind_sizes import BindSizes
from byoc_mlir.lowering.bufferize import Bufferize
from byoc_mlir.lowering.check_legal import CheckLegal
from byoc_mlir.lowering.convolutions.keep_channels_last import KeepChannelsLast
from byoc_mlir.lowering.fuse_elementwise import FuseElementwise
from byoc_mlir.lowering.linalg_to_loops.choose_schedules import ChooseSchedules
from byoc_mlir.lowering.linalg_to_loops.convert_linalg_to_loops import ConvertLinalgToLoops
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, Timing
from byoc_mlir.lowering.lower_small_types import LowerSmallTypes
from byoc_mlir.lowering.outline_kernels import OutlineKernels
from byoc_mlir.lowering.pack_weights import PackWeights
from byoc_mlir.lowering.plan_buffers import PlanBuffers
from byoc_mlir.lowering.region_calls import device_functions
from byoc_mlir.lowering.relay_to_linalg.convert_relay_to_linalg import ConvertRelayToLinalg
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.lowering.to_llvm.expand_math import ExpandMath
from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import LowerScfToCf
from byoc_mlir.lowering.to_llvm.outline_parallel import OutlineParallel
from byoc_mlir.lowering.widen_products import WidenProducts


@dataclass(frozen=True)
class PassesFor:
    """Passes for certain modules, imported when there is such a module.

    Args:
        applies_to: cheap test; the passes do nothing for a module for which it is false.
        load: function that imports the passes and returns them.
    """

    applies_to: Callable[[ModuleOp], bool]
    load: Callable[[], Sequence[ModulePass]]

    def needed(self, module: ModuleOp) -> Sequence[ModulePass]:
        """Returns the passes if they apply to the module, else none."""
        return self.load() if self.applies_to(module) else ()


def ops_named(*beginnings: str) -> Callable[[ModuleOp], bool]:
    """Returns a test that is true for modules with an op whose name begins so."""
    return lambda module: any(op.name.startswith(beginnings) for op in module.walk())


Passes: TypeAlias = Sequence[ModulePass | PassesFor]


def all_of(passes: Passes) -> tuple[ModulePass, ...]:
    """Returns the passes with those for certain modules, whatever the module."""
    several = (one.load() if isinstance(one, PassesFor) else (one,) for one in passes)
    return tuple(one for some in several for one in some)


def loop_passes(*, threads: int) -> Passes:
    """Returns the passes from `relay` on tensors to loops on one arena.

    After these passes, @main has its final arguments.

    Args:
        threads: OpenMP threads of a run; 0 without an OpenMP runtime.
    """
    bits = vector_bits(CodegenTarget.current())
    return (
        LowerSmallTypes(),
        WidenProducts(),
        PassesFor(ops_named(*_TRANSPOSED_CONVOLUTIONS), _transposed_convolutions),
        PassesFor(ops_named("relay.nn.softmax"), partial(_softmaxes, threads)),
        PassesFor(ops_named("relay.nn.conv"), partial(_convolutions, threads)),
        ConvertRelayToLinalg(),
        CheckLegal("linalg"),
        PassesFor(_has_devices, _copies),
        KeepChannelsLast(),
        FuseElementwise(),
        PackWeights(vector_bits=bits),
        PassesFor(_has_devices, _order),
        Bufferize(),
        OutlineKernels(),
        CheckLegal("buffers"),
        PlanBuffers(),
        PassesFor(_has_devices, _waits),
        ChooseSchedules(threads=threads > 1, vector_bits=bits),
        ConvertLinalgToLoops(threads=threads > 1, vector_bits=bits),
        BindSizes(),
        CheckLegal("loops"),
    )


_TRANSPOSED_CONVOLUTIONS = tuple(f"relay.nn.conv{rank}d_transpose" for rank in (1, 2, 3))


def _transposed_convolutions() -> Sequence[ModulePass]:
    from byoc_mlir.lowering.convolutions import decompose_transposed_convolutions

    return (decompose_transposed_convolutions.DecomposeTransposedConvolutions(),)


def _softmaxes(threads: int) -> Sequence[ModulePass]:
    from byoc_mlir.lowering.lower_softmaxes import LowerSoftmaxes

    return (LowerSoftmaxes(threads),)


def _convolutions(threads: int) -> Sequence[ModulePass]:
    from byoc_mlir.lowering.convolutions import choose_convolution_algorithms
    from byoc_mlir.lowering.convolutions.lower_convolutions import LowerConvolutions

    choice = choose_convolution_algorithms.ChooseConvolutionAlgorithms(threads)
    return (choice, LowerConvolutions(threads))


def _has_devices(module: ModuleOp) -> bool:
    return bool(device_functions(module))


def _copies() -> Sequence[ModulePass]:
    from byoc_mlir.lowering.place_copies import PlaceCopies

    return (PlaceCopies(),)


def _order() -> Sequence[ModulePass]:
    from byoc_mlir.lowering.hoist_device_ops import HoistDeviceOps

    return (HoistDeviceOps(),)


def _waits() -> Sequence[ModulePass]:
    from byoc_mlir.lowering.outline_device_chains import OutlineDeviceChains
    from byoc_mlir.lowering.place_waits import PlaceWaits

    return (PlaceWaits(), OutlineDeviceChains())


def llvm_passes(*, threads: bool) -> tuple[ModulePass, ...]:
    """Returns the passes from loops to the `llvm` dialect."""
    return (
        OutlineParallel(threads=threads),
        ExpandMath(),
        LowerScfToCf(),
        ConvertToLLVM(),
        AvoidGathers(CodegenTarget.current().features),
    )


def vector_bits(target: CodegenTarget) -> int:
    """Returns the width in bits of the vector registers that code for a target should use."""
    features = target.features.split(",")
    if "+avx512f" in features:
        return 512
    return 256 if "+avx2" in features else 128


def lower_host(
    context: Context,
    module: ModuleOp,
    *,
    threads: int,
    outputs: int,
    timing: Timing | None = None,
    flush_denormals: bool = False,
) -> tuple[Weight, ...]:
    """Lowers a module to the `llvm` dialect, in place; its regions must be declarations.

    The module is not verified: the legality checks at the end of each stage and LLVM's verifier
    catch errors. Verification after each pass would take two thirds of SqueezeNet's compilation.

    Args:
        threads: OpenMP threads of a run; 0 without an OpenMP runtime.
        outputs: the number of results of @main.
        timing: function that is called with the time of each pass.
        flush_denormals: treat denormals as zero during a run.

    Returns:
        The constants that the code refers to, some of them created by the passes.
    """
    parallel = threads > 1
    run_passes(context, module, loop_passes(threads=threads), timing)
    constants = host_constants(module)
    entry_points = AddEntryPoints(threads, outputs, flush_denormals)
    run_passes(context, module, (entry_points, *llvm_passes(threads=parallel)), timing)
    return constants


def run_passes(
    context: Context,
    module: ModuleOp,
    passes: Passes,
    timing: Timing | None = None,
    *,
    verify: bool = False,
) -> None:
    """Runs passes in order, those for certain ops only if the module has such an op.

    Args:
        timing: function that is called with the time of each pass.
        verify: true to verify the module after each pass.

    Raises:
        CompilationError: a pass failed; the error names the pass and the ONNX node.
        LimitExceededError: the compilation exceeded its time limit.
    """
    for module_pass in _needed(module, passes):
        check_time()
        start = time.perf_counter()
        with ir_boundary(f"pass {module_pass.name}"):
            apply_pass(module_pass, context, module)
        if verify:
            with ir_boundary(f"verifying after {module_pass.name}"):
                module.verify()
        if timing is not None:
            timing(module_pass.name, time.perf_counter() - start)


def _needed(module: ModuleOp, passes: Passes) -> Iterator[ModulePass]:
    """Yields the passes to run; earlier passes have run when it looks for the ops of later ones."""
    for one in passes:
        if isinstance(one, PassesFor):
            yield from one.needed(module)
        else:
            yield one


def host_constants(module: ModuleOp) -> tuple[Weight, ...]:
    """Returns the distinct constants of the host functions, before or after `bufferize`."""
    return tuple({weight.digest: weight for weight in _weights(module)}.values())


def _weights(module: ModuleOp) -> Iterator[Weight]:
    for op in module.ops:
        if isinstance(op, memref.GlobalOp) and isinstance(op.attributes.get(WEIGHT), WeightAttr):
            handle = op.attributes[WEIGHT]
            assert isinstance(handle, WeightAttr)
            yield handle.data
        if isinstance(op, func.FuncOp) and COMPILER not in op.attributes:
            yield from (inner.weight for inner in op.walk() if isinstance(inner, ConstantOp))
