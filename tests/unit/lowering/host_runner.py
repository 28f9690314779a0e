"""Runner of `relay` functions: builds them, compiles them for the host and calls them by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from helpers.verified import verify_module
from jit_helpers import OPENMP_FUNCTIONS
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue

from byoc_mlir.abi import ARENA_BYTES, weight_symbol
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.lowering.host_pipeline import (
    host_constants,
    llvm_passes,
    loop_passes,
    run_passes,
)
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.libraries import find_openmp, load_library, resolve_symbol

Array = np.ndarray[Any, np.dtype[Any]]


class Network:
    """`relay` function under construction; `inputs` are the arrays on which it will run."""

    def __init__(self, *inputs: Array):
        types = [TensorType(relay_type(array.dtype), array.shape) for array in inputs]
        self.inputs = inputs
        self.function = func.FuncOp("main", (types, ()))
        self.args: Sequence[SSAValue] = self.function.body.block.args

    def add(self, op: RelayOp) -> SSAValue:
        """Appends an op and returns its first result."""
        self.function.body.block.add_op(op)
        return op.results[0]

    def constant(self, array: Array) -> SSAValue:
        """Adds a constant tensor."""
        return self.add(ConstantOp.of("constant", array))

    def returning(self, *outputs: SSAValue) -> ModuleOp:
        """Returns the module, which returns `outputs`."""
        self.function.body.block.add_op(func.ReturnOp(*outputs))
        self.function.update_function_type()
        module = ModuleOp([self.function])
        verify_module(module)
        return module


def run_on_host(module: ModuleOp, inputs: Sequence[Array], *, threads: bool = False) -> list[Array]:
    """Returns the results of @main, compiled for the host; the IR is verified after each half of
    the pipeline.
    """
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    results = [
        (numpy_dtype(type_.element_type), type_.get_shape())
        for type_ in main.function_type.outputs
        if isinstance(type_, TensorType)
    ]
    run_passes(Context(), module, loop_passes(threads=2 if threads else 0))
    verify_module(module)
    constants = host_constants(module)
    arena = int_attribute(main, ARENA_BYTES)
    run_passes(Context(), module, llvm_passes(threads=threads))
    verify_module(module)
    symbols = {
        weight_symbol(weight.digest): weight.array.ctypes.data
        for weight in constants
        if weight.array is not None
    }
    if threads:
        symbols |= {name: _openmp_entry(name) for name in OPENMP_FUNCTIONS}
    buffers = [_aligned((arena,), np.dtype(np.uint8))]
    for array in inputs:
        buffers.append(_aligned(array.shape, array.dtype))
        buffers[-1][...] = array
    outputs = [_aligned(shape, dtype) for dtype, shape in results]
    for output in outputs:
        output.reshape(-1).view(np.uint8)[...] = 0xA5
    buffers += outputs
    with NativeModule(emit_objects(module), ["main"], symbols) as native:
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(buffers))(native.address("main"))
        run(*(buffer.ctypes.data for buffer in buffers))
    return outputs


def _openmp_entry(name: str) -> int:
    path = find_openmp()
    assert path is not None
    return resolve_symbol(name, [load_library(path)])


def _aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def check_on_host(network: Network, *outputs: SSAValue, tolerance: float = 1e-5) -> None:
    """Asserts that the host's outputs equal those of `relay`'s numpy semantics.

    `tolerance` is relative to the largest element of an output; integers must be equal.
    """
    named = [(value.owner, index) for index, value in enumerate(outputs)]
    module = network.returning(*outputs)
    expected = evaluate(network.function, network.inputs)
    names = [str(owner) for owner, _ in named]
    found = run_on_host(module, network.inputs)
    for name, want, got in zip(names, expected, found, strict=True):
        assert got.shape == want.shape, name
        assert_close(got, want, tolerance, name)


def assert_close(got: Array, want: Array, tolerance: float, name: str) -> None:
    """Asserts equality up to `tolerance` of the largest finite element; NaN equals NaN."""
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(want[np.isfinite(want)])
    scale = finite.max(initial=1.0)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=name)
