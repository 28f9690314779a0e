"""Programs that need a constant in one layout: they share one copy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.abi import FIND_PACKED, FREE_PACKED, KEEP_PACKED
from byoc_mlir.runtime.packed import ADDRESSES, counted_copies
from byoc_mlir.testing.reference import run_onnxruntime

WIDTH = 256


def _model() -> ModelProto:
    """Returns two matmuls with one matrix, and between them an op that oneDNN leaves to the
    host. Their rows are all but the last dimension of the input."""
    weights = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), dtype=np.float32) / 16
    nodes = "r = Reshape (x, rows) a = MatMul (r, w) b = Cos (a) y = MatMul (b, w)"
    constants = {"w": weights, "rows": np.array([-1, WIDTH])}
    return parsed(f"(float[n, m, {WIDTH}] x) => (float[rows, {WIDTH}] y)", nodes, constants)


def test_regions_and_shapes_share_copies() -> None:
    """Compiles shapes with the same number of rows, on which oneDNN's layout depends."""
    model, made = _model(), 0
    with byoc_mlir.compile(model, ("dnnl",), threads=1, prune="off") as executable:
        for shape in ((2, 64, WIDTH), (64, 2, WIDTH), (16, 8, WIDTH)):
            with counted_copies() as count:
                executable.warmup({"x": shape})
                made += count()
        inputs = {"x": np.random.default_rng(1).standard_normal((16, 8, WIDTH), dtype=np.float32)}
        want = run_onnxruntime(model, inputs)["y"]
        np.testing.assert_allclose(executable.run(inputs)["y"], want, atol=1e-4)
    filled_up = 64  # columns by which a layout may be wider, at most
    assert made <= 4 * WIDTH * (WIDTH + filled_up)


class Layouts:
    """Mock of a library's layouts: addresses of numbers."""

    def __init__(self) -> None:
        self.destroyed = 0
        pointer, status = ctypes.c_void_p, ctypes.c_int32
        self.same = ctypes.CFUNCTYPE(status, pointer, pointer)(self._same)
        self.clone = ctypes.CFUNCTYPE(status, pointer, pointer)(self._clone)
        self.destroy = ctypes.CFUNCTYPE(status, pointer)(self._destroy)

    def _same(self, one: int, other: int) -> int:
        return int(_number(one) == _number(other))

    def _clone(self, into: int, layout: int) -> int:
        ctypes.c_void_p.from_address(into).value = layout
        return 0

    def _destroy(self, layout: int) -> int:
        self.destroyed += 1
        return 0


def _number(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _function(name: str, result: Any, *parameters: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *parameters)(ADDRESSES[name])


def test_a_copy_serves_its_constant_in_its_layout_until_its_last_user_is_gone() -> None:
    pointer = ctypes.c_void_p
    find = _function(FIND_PACKED, pointer, pointer, pointer, pointer)
    keep = _function(KEEP_PACKED, None, pointer, ctypes.c_int64, *[pointer] * 5)
    free = _function(FREE_PACKED, None, pointer)
    layouts, constant = Layouts(), np.zeros(4, np.int64)
    blocked, plain = ctypes.c_int64(1), ctypes.c_int64(2)
    source, other = constant.ctypes.data, constant.ctypes.data + 8
    allocate = ctypes.CDLL(None).malloc
    allocate.restype = pointer
    copy = allocate(64)

    def found(source: int, layout: ctypes.c_int64) -> int | None:
        return find(source, ctypes.addressof(layout), layouts.same)

    assert found(source, blocked) is None
    with counted_copies() as count:
        of_layouts = (layouts.same, layouts.clone, layouts.destroy)
        keep(copy, 64, source, ctypes.addressof(blocked), *of_layouts)
        assert count() == 64
    assert found(source, blocked) == copy
    assert found(source, ctypes.c_int64(1)) == copy
    assert found(source, plain) is None
    assert found(other, blocked) is None
    for _ in range(2):
        free(copy)
    assert found(source, blocked) == copy
    for _ in range(2):
        free(copy)
    assert layouts.destroyed == 1
    assert found(source, blocked) is None
    free(None)
