"""Kernels of a GPU, compiled for this processor, and the recording driver that runs them."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, f32, i32
from xdsl.ir import Operation

from byoc_mlir.abi import GPU_KERNEL
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, emit_assembly

_FUNCTIONS = {
    "llvm.nvvm.read.ptx.sreg.tid.x": "emulated_tid",
    "llvm.nvvm.read.ptx.sreg.ctaid.x": "emulated_ctaid",
    "llvm.nvvm.bar.warp.sync": "emulated_warp_sync",
    "llvm.nvvm.shfl.sync.bfly.f32": "emulated_shuffle",
}
"""Functions of the recording driver, by the instruction of a GPU that they stand for."""

_TYPES = {
    "emulated_tid": ([], i32),
    "emulated_ctaid": ([], i32),
    "emulated_warp_sync": ([i32], None),
    "emulated_shuffle": ([i32, f32, i32, i32], f32),
}


@cache
def folder() -> Path:
    """Returns the folder of what this process compiles."""
    return Path(mkdtemp(prefix="byoc-cuda-"))


@cache
def recording_driver() -> Path:
    """Returns the path of the recording driver, which it compiles."""
    return _compiled("libcuda.c", "libcuda.so.1", "-O1", "-lpthread", "-ldl")


@cache
def recording_cublaslt() -> Path:
    """Returns the path of the recording cuBLASLt, which it compiles."""
    return _compiled("libcublaslt.c", "libcublasLt.so.13", "-O3", "-lm")


@cache
def recording_cudnn() -> Path:
    """Returns the path of the recording cuDNN, which it compiles."""
    return _compiled("libcudnn.c", "libcudnn.so.9", "-O3")


def _compiled(source: str, name: str, *flags: str) -> Path:
    """Compiles a shared object from a file of this folder; returns its path."""
    path, file = folder() / name, str(Path(__file__).with_name(source))
    command = ["cc", "-w", "-shared", "-fPIC", file, "-o", str(path), *flags]
    subprocess.run(command, check=True)
    return path


def emulated_text(kernels: ModuleOp) -> str:
    """Returns the path of kernels for this processor, where the driver expects their PTX."""
    return f"// emulated: {emulated_library(kernels)}\n"


def emulated_library(kernels: ModuleOp) -> Path:
    """Compiles kernels for this processor; returns the shared object."""
    module = _without_instructions(kernels)
    assembly = emit_assembly(module, CodegenTarget.host())
    shim = _shim(_kernels_of(kernels))
    base = folder() / hashlib.sha256((assembly + shim).encode()).hexdigest()[:16]
    library = base.with_suffix(".so")
    if not library.exists():
        base.with_suffix(".s").write_text(assembly)
        base.with_suffix(".c").write_text(shim)
        sources = [str(base.with_suffix(suffix)) for suffix in (".s", ".c")]
        made = base.with_suffix(".tmp")
        command = ["cc", "-O1", "-w", "-shared", "-fPIC", *sources, "-o", str(made), "-lm"]
        subprocess.run(command, check=True)
        made.rename(library)
    return library


def _without_instructions(kernels: ModuleOp) -> ModuleOp:
    """Returns a copy of kernels that calls functions instead of a GPU's instructions."""
    module = kernels.clone()
    for op in tuple(module.walk()):
        if isinstance(op, llvm.CallIntrinsicOp) and op.intrin.data in _FUNCTIONS:
            _replace(op, _FUNCTIONS[op.intrin.data])
        elif isinstance(op, llvm.FuncOp):
            op.attributes.pop(GPU_KERNEL, None)
    for name, (inputs, result) in _TYPES.items():
        type_ = llvm.LLVMFunctionType(inputs, result)
        module.body.block.add_op(llvm.FuncOp(name, type_, llvm.LinkageAttr("external")))
    return module


def _replace(op: llvm.CallIntrinsicOp, name: str) -> None:
    result = op.results[0].type if op.results else None
    call = llvm.CallOp(name, *op.args, return_type=result)
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(call, op)
    for old, new in zip(op.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    block.erase_op(op)


def _kernels_of(kernels: ModuleOp) -> Sequence[llvm.FuncOp]:
    functions = [op for op in kernels.ops if isinstance(op, llvm.FuncOp)]
    return [function for function in functions if GPU_KERNEL in function.attributes]


def _shim(kernels: Sequence[llvm.FuncOp]) -> str:
    """Returns C source that describes each kernel, and calls it with an array of arguments."""
    lines = ["struct kernel { void (*run)(void **); int arguments, uses_warps; };"]
    for kernel in kernels:
        name, count = kernel.sym_name.data, len(kernel.function_type.inputs)
        types = ", ".join(["void *"] * count)
        values = ", ".join(f"*(void **)a[{number}]" for number in range(count))
        uses = int(any(map(_is_of_warps, kernel.walk())))
        lines += [
            f"void {name}({types});",
            f"static void run_{name}(void **a) {{ {name}({values}); }}",
            f"struct kernel {name}_emulated = {{run_{name}, {count}, {uses}}};",
        ]
    return "\n".join(lines)


def _is_of_warps(op: Operation) -> bool:
    return isinstance(op, llvm.CallIntrinsicOp) and "sreg" not in op.intrin.data


class Record:
    """Record of the recording driver."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(str(recording_driver()))
        self._driver.recorded.restype = ctypes.c_char_p

    def calls(self) -> Sequence[str]:
        """Returns the functions that were called since `forget`, in order."""
        return self._driver.recorded().decode().split()

    def forget(self) -> None:
        """Clears the calls, the faults to come, and a fault that stays."""
        self._driver.forget()

    def fail(self, name: str, status: int, after: int = 0) -> None:
        """Sets a fault: a call of a function fails, after some that succeed."""
        self._driver.fail(name.encode(), after, status)

    def held(self) -> Sequence[int]:
        """Returns how often contexts are retained, and the numbers of streams, allocations,
        modules, contexts that threads have made current, and graphs.
        """
        numbers = (ctypes.c_int * 6)()
        self._driver.count(numbers)
        return list(numbers)
