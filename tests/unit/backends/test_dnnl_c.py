"""C source that calls the oneDNN C API."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto
from seed_graphs import (
    add_sub_mul,
    check_in_new_process,
    compile_and_check,
    conv_add_relu,
    conv_bias_relu_pool_dense,
    export_arithmetic,
    relu_of_sums,
)

import byoc_mlir
from byoc_mlir.errors import BackendError
from byoc_mlir.testing.isa import call_at, run_at


@pytest.mark.parametrize("model", [add_sub_mul(), conv_add_relu()], ids=["arithmetic", "conv"])
def test_whole_graphs_are_one_region(model: ModelProto, tmp_path: Path) -> None:
    with compile_and_check(model, "dnnl_c", fallback="forbid") as executable:
        assert {row.implementation for row in executable.report().placed("dnnl_c")} == {
            "oneDNN from C"
        }
        check_in_new_process(executable, model, tmp_path)


def test_several_results_and_a_constant() -> None:
    with compile_and_check(relu_of_sums(), "dnnl_c") as executable:
        assert executable.report().counts()["dnnl_c"] == 3


def test_the_source_calls_the_library() -> None:
    with compile_and_check(conv_bias_relu_pool_dense(), "dnnl_c") as executable:
        composites = {row.composite for row in executable.report().placed("dnnl_c")}
        assert composites == {"dnnl_c.conv2d_bias_relu", "dnnl_c.conv2d_relu", ""}
        source = executable.get_source("dnnl_c_main_0")
    assert "dnnl_convolution_forward_primitive_desc_create(" in source
    window = "(const int64_t[]){2, 2, 0, 0, 1, 2, 1, 2}"
    assert f"{window}, 1);" in source


LOAD_AND_ASK = """
import ctypes, sys
import numpy as np
import byoc_mlir
executable = byoc_mlir.load(sys.argv[1])
executable.run({info.name: np.ones(info.shape, np.float32) for info in executable.inputs})
[onednn] = [item.path for item in executable.program.libraries if "dnnl" in item.path.name]
print(ctypes.CDLL(onednn).dnnl_get_effective_cpu_isa())
"""


def test_where_it_is_loaded_the_library_keeps_to_the_level(tmp_path: Path) -> None:
    path = str(tmp_path / "model.so")
    call_at("sse41", export_arithmetic, "dnnl_c", path)
    assert run_at("sse41", LOAD_AND_ASK, path) == "1\n"  # dnnl_cpu_isa_sse41


def test_without_a_c_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-cc")
    with pytest.raises(BackendError, match=r"'dnnl_c' is not usable here: a C compiler is needed"):
        byoc_mlir.compile(add_sub_mul(), ("dnnl_c",))
