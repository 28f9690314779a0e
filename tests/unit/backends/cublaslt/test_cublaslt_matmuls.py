"""Matmuls of all forms on the recording cuBLASLt: values, epilogues, precisions and faults."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.abi import Precision
from byoc_mlir.errors import ByocError, DeviceError
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_RNG = np.random.default_rng(0)
_WEIGHTS = {
    "w": _RNG.standard_normal((40, 24)).astype(np.float32) / 6,
    "t": _RNG.standard_normal((24, 40)).astype(np.float32) / 6,
    "b": _RNG.standard_normal(24).astype(np.float32),
    "column": _RNG.standard_normal((4, 1)).astype(np.float32),
}
_ROWS = "(float[3, 4, 40] x) => (float[3, 4, 24] y)"
_SQUARES = "(float[2, 5, 16, 24] x, float[2, 5, 24, 16] z) => (float[2, 5, 16, 16] y)"

_FORMS: Mapping[str, tuple[str, str, str]] = {
    "plain": (_ROWS, "y = MatMul(x, w)", ""),
    "bias": (_ROWS, "p = MatMul(x, w) y = Add(p, b)", "dense_bias"),
    "relu": (_ROWS, "p = MatMul(x, w) y = Relu(p)", "dense_relu"),
    "bias_relu": (_ROWS, "p = MatMul(x, w) s = Add(b, p) y = Relu(s)", "dense_bias_relu"),
    "gelu": (_ROWS, 'p = MatMul(x, w) y = Gelu<approximate = "tanh">(p)', "dense_gelu"),
    "bias_gelu": (
        _ROWS,
        'p = MatMul(x, w) s = Add(p, b) y = Gelu<approximate = "tanh">(s)',
        "dense_bias_gelu",
    ),
    "erf": (_ROWS, "p = MatMul(x, w) s = Add(p, b) y = Gelu(s)", "dense_bias"),
    "rows": (_ROWS, "p = MatMul(x, w) y = Add(p, column)", ""),
    "gemm": ("(float[3, 40] x) => (float[3, 24] y)", "y = Gemm<transB = 1>(x, t)", ""),
    "vector": ("(float[1, 40] x) => (float[1, 24] y)", "y = Gemm(x, w, b)", "dense_bias"),
    "batch": (_SQUARES, "y = MatMul(x, z)", ""),
    "batch_relu": (_SQUARES, "p = MatMul(x, z) y = Relu(p)", ""),
    "transposed": (
        _SQUARES,
        "s = Transpose<perm = [0, 1, 3, 2]>(x) r = Transpose<perm = [0, 1, 3, 2]>(z)"
        " p = MatMul(r, s) y = Transpose<perm = [0, 1, 3, 2]>(p)",
        "",
    ),
    "shared": (
        "(float[5, 16, 40] x, float[7, 16] z) => (float[5, 7, 40] y)",
        "y = MatMul(z, x)",
        "",
    ),
    "chain": (_ROWS, "p = MatMul(x, w) q = MatMul(p, t) y = MatMul(q, w)", ""),
}


def _model(name: str) -> ModelProto:
    signature, body, _ = _FORMS[name]
    used = {one: array for one, array in _WEIGHTS.items() if f"{one})" in body or f"{one}," in body}
    return parsed(signature, body, used, opset=20)


def _compiled(
    model: ModelProto, precision: Precision = "f32", exact: tuple[str, ...] = ()
) -> Executable:
    targets = ("cublaslt", "cuda")
    return byoc_mlir.compile(model, targets, cache=False, precision=precision, exact=exact)


@pytest.mark.parametrize("name", _FORMS)
def test_a_form_is_one_call(gpu: Record, cublaslt: ctypes.CDLL, name: str) -> None:
    model = _model(name)
    inputs = random_inputs(model)

    with _compiled(model) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))

    rows = [row for row in executable.report().rows if row.op_type in ("MatMul", "Gemm")]
    assert {row.placement for row in rows} == {"cublaslt"}
    composites = {row.composite.removeprefix("cublaslt.") for row in rows}
    assert composites == {_FORMS[name][2]}
    assert gpu.calls().count("cublasLtMatmul") == len(rows)


@pytest.mark.values
@pytest.mark.parametrize(("precision", "error"), [("tf32", 2e-3), ("f16", 2e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("name", ["bias_gelu", "chain", "batch", "erf"])
def test_a_precision_on_request(
    gpu: Record, cublaslt: ctypes.CDLL, name: str, precision: Precision, error: float
) -> None:
    model = _model(name)
    inputs = random_inputs(model)
    before = cublaslt.count_tf32()

    with _compiled(model, precision) as executable:
        found = executable.run(inputs)

    wanted = run_onnxruntime(model, inputs)
    for key, value in wanted.items():
        difference = np.abs(found[key] - value).max() / np.abs(value).max()
        assert 1e-6 < difference < error
    report = executable.report()
    rows = [row for row in report.rows if row.op_type == "MatMul"]
    assert {row.placement for row in rows} == {"cublaslt"}
    assert set(report.multiplications) == {precision}
    assert (cublaslt.count_tf32() - before == len(rows)) == (precision == "tf32")


def test_an_exact_node_stays_in_f32(gpu: Record, cublaslt: ctypes.CDLL) -> None:
    model = _model("chain")
    model.graph.node[1].name = "second"

    with _compiled(model, "tf32", ("second",)) as executable:
        executable.run(random_inputs(model))
    assert cublaslt.count_tf32() > 0
    assert set(executable.report().multiplications) == {"f32", "tf32"}


def test_a_model_of_f16_keeps_its_type(gpu: Record, cublaslt: ctypes.CDLL) -> None:
    half = {"w": _WEIGHTS["w"].astype(np.float16), "b": _WEIGHTS["b"].astype(np.float16)}
    model = parsed(
        "(float16[3, 40] x) => (float16[3, 24] y)",
        "p = MatMul(x, w) s = Add(p, b) y = Relu(s)",
        half,
    )
    inputs = random_inputs(model)

    with _compiled(model) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))

    assert set(executable.report().multiplications) == {"f16"}


def test_a_target_refuses_a_precision_that_it_lacks(gpu: Record) -> None:
    with pytest.raises(ByocError, match=r"no target computes in precision='tf32'.*'f32'$"):
        byoc_mlir.compile(_model("bias"), targets=("cuda",), cache=False, precision="tf32")


_CALLS = {
    "cublasLtCreate": 1,
    "cublasLtMatrixLayoutInit_internal": 3,
    "cublasLtMatrixLayoutSetAttribute": 6,
    "cublasLtMatmulDescInit_internal": 2,
    "cublasLtMatmulDescSetAttribute": 9,
    "cublasLtMatmulPreferenceInit_internal": 1,
    "cublasLtMatmulPreferenceSetAttribute": 5,
    "cublasLtMatmulAlgoGetHeuristic": 1,
    "cublasLtMatmul": 1,
}
"""Calls of a model with one matmul and a bias that is compiled and run once."""


def test_the_calls_of_a_run(gpu: Record, cublaslt: ctypes.CDLL) -> None:
    model = _model("bias_relu")

    with _compiled(model) as executable:
        executable.run(random_inputs(model))
        calls = [name for name in gpu.calls() if name.startswith("cublas")]
        gpu.forget()
        executable.run(random_inputs(model))
        assert [name for name in gpu.calls() if name.startswith("cublas")] == [
            "cublasLtMatmulDescSetAttribute",
            "cublasLtMatmul",
        ]

    assert {name: calls.count(name) for name in _CALLS} == _CALLS


@pytest.mark.parametrize(
    ("function", "after"),
    [(name, after) for name, count in _CALLS.items() for after in {0, count - 1}],
)
def test_a_fault_is_typed_and_leaves_nothing(
    gpu: Record, cublaslt: ctypes.CDLL, function: str, after: int
) -> None:
    model = _model("bias_relu")
    inputs = random_inputs(model)
    gpu.fail(function, 7, after)

    def run() -> None:
        with _compiled(model) as executable:
            executable.run(inputs)

    with pytest.raises(DeviceError, match=r"region cublaslt_main_0.*unsupported value.*1007"):
        run()
    gpu.forget()
    run()


def test_a_matmul_without_an_algorithm_is_named(
    gpu: Record, cublaslt: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_TEST_NO_ALGORITHM", "1")

    with pytest.raises(DeviceError, match="not supported"):
        _compiled(_model("plain"))
