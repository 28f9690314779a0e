"""C source for element-wise ops."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from seed_graphs import add_sub_mul, check_in_new_process, compile_and_check, relu_of_sums

import byoc_mlir
from byoc_mlir.backends.base import CSource
from byoc_mlir.backends.c_compiler import compile_c
from byoc_mlir.errors import BackendError
from byoc_mlir.testing.networks import GraphBuilder


def test_add_sub_mul_is_one_region(tmp_path: Path) -> None:
    model = add_sub_mul()
    with compile_and_check(model, "ccompiler", tolerance=0, fallback="forbid") as executable:
        report = executable.report()
        assert {row.implementation for row in report.placed("ccompiler")} == {"C loop"}
        source = executable.get_source("ccompiler_main_0")
        for line in (
            "BINARY(ccompiler_main_0_0, a[i] + b[i], 100)",
            "BINARY(ccompiler_main_0_1, a[i] - b[i], 100)",
            "BINARY(ccompiler_main_0_2, a[i] * b[i], 100)",
            "int ccompiler_main_0_wrapper(DLTensor *",
        ):
            assert line in source
        check_in_new_process(executable, model, tmp_path)


def test_several_results_and_a_constant(tmp_path: Path) -> None:
    model = relu_of_sums()
    with compile_and_check(model, "ccompiler", tolerance=0) as executable:
        assert executable.report().counts()["ccompiler"] == 3
        check_in_new_process(executable, model, tmp_path)


def test_broadcasts_and_other_types_stay_on_the_host() -> None:
    b = GraphBuilder("broadcast", seed=1)
    x = b.input("x", [4, 6])
    row = b.input("row", [6])
    b.output(b.op("Exp", b.add(x, row)), "out", [4, 6])
    with compile_and_check(b.build(), "ccompiler") as executable:
        (added,) = [row for row in executable.report() if row.op_type == "Add"]
        assert added.placement == "host"
        assert "operands of different shapes would have to be broadcast" in added.reason
        assert [row.op_type for row in executable.report().placed("ccompiler")] == ["Exp"]


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


def test_the_wrapper_takes_dlpack_tensors() -> None:
    with byoc_mlir.compile(add_sub_mul(), ("ccompiler",)) as executable:
        source = executable.get_source("ccompiler_main_0")
    library = ctypes.CDLL(str(compile_c(CSource(source), "ccompiler_main_0")))
    arrays = np.random.default_rng(0).standard_normal((5, 1, 10, 10)).astype(np.float32)
    # Each tensor's data begins one element before: byte_offset has to be added.
    tensors = [_Tensor(data=array.ctypes.data - 4, byte_offset=4) for array in arrays]
    assert library.ccompiler_main_0_wrapper(*map(ctypes.byref, tensors)) == 0
    np.testing.assert_array_equal(arrays[4], (arrays[0] + arrays[1] - arrays[2]) * arrays[3])


@pytest.mark.parametrize(
    ("compiler", "problem"),
    [("no-such-cc", "CC names 'no-such-cc', which is not there"), ("", "there is none")],
)
def test_without_a_c_compiler(
    compiler: str, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendError) as info:
        byoc_mlir.compile(add_sub_mul(), ("ccompiler",))
    assert "backend 'ccompiler' is not usable here: a C compiler is needed" in str(info.value)
    assert f"{problem}; install cc, gcc or clang, or set CC" in str(info.value)
