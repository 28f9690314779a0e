"""Kernels of a region, and the launches that compute it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from xdsl.dialects import arith, func, llvm, math, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import ARENA_BYTES, COMPILER, GPU_KERNEL, KERNEL, weight_symbol
from byoc_mlir.backends.cuda.kernels.map_to_grid import THREADS, MapToGrid, number_of
from byoc_mlir.backends.cuda.kernels.outline_grid_kernels import OutlineGridKernels
from byoc_mlir.backends.cuda.kernels.pad_in_one_kernel import PadInOneKernel
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.arith_ext import RemFOp
from byoc_mlir.dialects.dynamic_buffers import PlaceOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.lowering.bufferize import Bufferize
from byoc_mlir.lowering.check_legal import CheckLegal
from byoc_mlir.lowering.fuse_elementwise import FuseElementwise
from byoc_mlir.lowering.host_pipeline import host_constants, run_passes
from byoc_mlir.lowering.outline_kernels import root_of
from byoc_mlir.lowering.plan_buffers import PlanBuffers
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.lowering.relay_to_linalg.convert_relay_to_linalg import ConvertRelayToLinalg
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.lowering.to_llvm.expand_math import ExpandMath
from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import LowerScfToCf
from byoc_mlir.lowering.to_llvm.outline_parallel import OutlineParallel

_MAIN = "main"
"""Name of the function whose buffers `plan-buffers` places."""

_BUFFERS: Sequence[ModulePass] = (
    ConvertRelayToLinalg(),
    CheckLegal("linalg"),
    FuseElementwise(),
    PadInOneKernel(),
    Bufferize(),
    OutlineGridKernels(),
    CheckLegal("buffers"),
    PlanBuffers(),
)

_GRID: Sequence[ModulePass] = (
    MapToGrid(),
    OutlineParallel(threads=False),
    ExpandMath(),
)

_MATHS = (
    *(math.AbsFOp, math.CeilOp, math.FloorOp, math.TruncOp, math.RoundEvenOp, math.RoundOp),
    *(math.SqrtOp, math.RsqrtOp, math.CopySignOp, math.FmaOp, math.AbsIOp, math.CtPopOp),
    *(math.CountLeadingZerosOp, math.CountTrailingZerosOp),
)
"""Functions for which LLVM has instructions of a GPU; `expand-math` computes others with these."""


_ADDRESSES = (
    *(arith.ConstantOp, memref.GetGlobalOp, memref.ReinterpretCastOp, PlaceOp),
    func.ReturnOp,
)
"""Ops beside the launches of kernels, which compute addresses."""


class Space(Enum):
    """Memory that an argument of a kernel is in."""

    WORKSPACE = "workspace"
    TENSOR = "tensor"
    """An input or output of the region; the outputs follow the inputs."""
    CONSTANT = "constant"


@dataclass(frozen=True)
class ArgumentAddress:
    """Address of a kernel's argument."""

    space: Space
    index: int
    """Offset in the workspace in bytes; the position among the tensors or constants."""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: str
    threads: int
    arguments: tuple[ArgumentAddress, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class RegionKernels:
    """Kernels of a region as functions in the `llvm` dialect, and how to launch them."""

    module: ModuleOp
    launches: tuple[Launch, ...]
    constants: tuple[Weight, ...]
    workspace_bytes: int
    """Bytes of the values between launches."""

    @property
    def kernels(self) -> Sequence[str]:
        """Returns the names of the kernels."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))


def compile_region(region: FuncOp) -> RegionKernels:
    """Generates the kernels of a region.

    Raises:
        CompilationError: a pass failed; a kernel calls a function that GPUs lack.
    """
    context = make_context()
    module = ModuleOp([_as_main(region)])
    run_passes(context, module, _BUFFERS)
    constants = host_constants(module)
    main, others = _parted(module)
    run_passes(context, others, _GRID)
    threads = _thread_counts(others)
    _check_functions(others)
    run_passes(context, others, (LowerScfToCf(), ConvertToLLVM()))
    _mark_kernels(others, threads)
    launches = tuple(_launches(main, constants, threads))
    return RegionKernels(others, launches, constants, int_attribute(main, ARENA_BYTES))


def _as_main(region: FuncOp) -> FuncOp:
    main = region.clone()
    for old, new in zip(region.walk(), main.walk(), strict=True):
        new.location = old.location
    main.sym_name = StringAttr(_MAIN)
    del main.attributes[COMPILER]
    return main


def _parted(module: ModuleOp) -> tuple[FuncOp, ModuleOp]:
    """Splits a module into the function that calls the kernels, and the kernels."""
    kernels = ModuleOp([])
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp) and KERNEL in op.attributes:
            op.detach()
            kernels.body.block.add_op(op)
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    return main, kernels


def _thread_counts(module: ModuleOp) -> Mapping[str, int]:
    """Returns the number of threads of each kernel, and erases kernels without a thread."""
    counts: dict[str, int] = {}
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp) and THREADS in op.attributes:
            count = counts[op.sym_name.data] = int_attribute(op, THREADS)
            if not count:
                module.body.block.erase_op(op)
    return counts


def _check_functions(module: ModuleOp) -> None:
    """Checks that GPUs have an instruction for each op that LLVM would call a C library for.

    Raises:
        PassFailedException: an op has none.
    """
    for op in module.walk():
        is_math = op.name.startswith("math.") and not isinstance(op, _MATHS)
        if is_math or isinstance(op, RemFOp):
            raise PassFailedException(
                f"a GPU has no instruction for {op.name} of {op.results[0].type}"
                f" at {op.location}, and there is no formula for it"
            )


def _mark_kernels(module: ModuleOp, names: Container[str]) -> None:
    """Marks the kernels among the functions of a module, which the driver finds by name."""
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.sym_name.data in names:
            op.attributes[GPU_KERNEL] = UnitAttr()
            op.linkage = llvm.LinkageAttr("external")


def _launches(
    main: FuncOp, constants: Sequence[Weight], threads: Mapping[str, int]
) -> Iterator[Launch]:
    """Yields the launches in the order of `main`, except those without a thread."""
    symbols = [weight_symbol(weight.digest) for weight in constants]
    for op in main.body.block.ops:
        if isinstance(op, func.CallOp):
            kernel = op.callee.string_value()
            places = tuple(_place(root_of(value), symbols) for value in op.arguments)
            if threads[kernel]:
                yield Launch(kernel, threads[kernel], places, node_names(op))
        elif not isinstance(op, _ADDRESSES):
            raise PassFailedException(f"{op.name} at {op.location} is no kernel of a GPU")


def _place(buffer: SSAValue, symbols: Sequence[str]) -> ArgumentAddress:
    """Returns the address of a buffer of `main`, whose first argument is the workspace."""
    if isinstance(buffer, BlockArgument):
        return ArgumentAddress(Space.TENSOR, buffer.index - 1)
    match buffer.owner:
        case memref.GetGlobalOp():
            return ArgumentAddress(Space.CONSTANT, symbols.index(buffer.owner.name_.string_value()))
        case PlaceOp():
            return ArgumentAddress(Space.WORKSPACE, number_of(buffer.owner.offset))
        case _:
            raise PassFailedException(f"no buffer of a kernel is known at {buffer}")
