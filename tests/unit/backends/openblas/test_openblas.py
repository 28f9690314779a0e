"""Matmuls by OpenBLAS."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from measured import write_measured
from onnx import ModelProto, numpy_helper

import byoc_mlir
from byoc_mlir.backends.openblas import library
from byoc_mlir.backends.openblas.blocks import block_for
from byoc_mlir.backends.openblas.products import BatchedGemm
from byoc_mlir.backends.openblas.regions import panels
from byoc_mlir.calibration import Calibration, measuring, using
from byoc_mlir.dialects.relay.constant import borrow, is_borrowed
from byoc_mlir.errors import BackendError, ByocError
from byoc_mlir.testing import run_conformance
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

TARGET = ("openblas",)


def _product(a: tuple[int, ...], b: tuple[int, ...], constant: bool = True) -> ModelProto:
    """Returns a model of `a · b`; `b` is a constant or another input."""
    out = np.matmul(np.ones(a), np.ones(b)).shape
    types = [f"float[{', '.join(map(str, shape))}]" for shape in (a, b, out)]
    other = "" if constant else f", {types[1]} w"
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        g ({types[0]} x{other}) => ({types[2]} y) {{ y = MatMul (x, w) }}
    """)
    if constant:
        weights = np.random.default_rng(1).standard_normal(b).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def _check(model: ModelProto, threads: int, calibration: Path | None = None) -> None:
    inputs = random_inputs(model)
    with byoc_mlir.compile(
        model, TARGET, threads, fallback="forbid", calibration=calibration
    ) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)


def test_it_passes_the_conformance_kit() -> None:
    report = run_conformance("openblas", networks={})
    assert report.passed, str(report)
    assert {outcome.subject for outcome in report.outcomes} == {
        "nn.dense",
        "nn.matmul",
        "openblas.dense_bias",
    }


@pytest.mark.values
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((130, 70), (70, 90)),
        ((70, 64), (64, 150)),
        ((1, 700), (700, 901)),
        ((700, 901), (901, 1)),
        ((2, 3, 40), (40, 30)),
        ((4, 30, 20), (4, 20, 50)),
        ((2, 90, 80), (2, 80, 97)),
        ((80, 90), (3, 90, 70)),
        ((1, 1, 1), (1, 1, 1)),
    ],
    ids=str,
)
def test_products_are_cut_into_pieces(a: tuple[int, ...], b: tuple[int, ...], threads: int) -> None:
    _check(_product(a, b), threads)
    _check(_product(a, b, constant=False), threads)


def _dense(rows: int) -> ModelProto:
    """Returns a dense layer with a bias."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[{rows}, 130] x) => (float[{rows}, 97] y) {{ y = Gemm <transB = 1> (x, w, b) }}
    """)
    generator = np.random.default_rng(2)
    for name, shape in (("w", (97, 130)), ("b", (97,))):
        array = generator.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 5, 300])
def test_a_bias_is_where_the_product_is_added(rows: int, threads: int) -> None:
    _check(_dense(rows), threads)


def _with_blocks(folder: Path, **blocks: str) -> Path:
    """Writes a calibration file that sets the blocks of matmuls."""
    file, known = (
        folder / "calibration.json",
        {name.replace("_", " "): b for name, b in blocks.items()},
    )
    write_measured(file, openblas=known)
    return file


@pytest.mark.values
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("block", ["7x32x16", "60x96x128", "60x150x128", "16x1x90"])
@pytest.mark.parametrize(
    "shapes", [((60, 90), (90, 150)), ((3, 20, 90), (90, 150)), ((160, 90), (90, 150))], ids=str
)
def test_products_are_cut_into_blocks(
    block: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], threads: int, tmp_path: Path
) -> None:
    problem = f"{math.prod(shapes[0][:-1])}x150x90"
    calibration = _with_blocks(tmp_path, **{problem: block, f"{problem}_panels": block})
    for constant in (True, False):
        _check(_product(*shapes, constant), threads, calibration)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bias_comes_before_the_first_block(threads: int, tmp_path: Path) -> None:
    calibration = _with_blocks(tmp_path, **{"5x97x130_panels": "5x40x50"})
    _check(_dense(5), threads, calibration)


def test_matrices_of_blocks_are_panels() -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    first, second = panels(matrix, 3)
    assert np.array_equal(first, matrix[:3].T)
    assert np.array_equal(second[:, 0], matrix[3])
    assert not second[:, 1:].any()


def test_memory_of_others_is_not_packed() -> None:
    matrix = np.ones((40, 30), np.float32)
    borrow(matrix)
    assert is_borrowed(matrix)
    assert is_borrowed(matrix[:20])
    assert not is_borrowed(matrix.copy())


def test_measured_blocks_are_kept() -> None:
    calibration, product = (
        Calibration(),
        BatchedGemm(1, 48, 200, 300, (False, True), (False, False)),
    )
    with using(calibration):
        assert block_for(product, may_pack=True) is None  # nothing is known yet
        with measuring():
            first = block_for(product, may_pack=True)
        assert block_for(product, may_pack=True) == first
    (known,) = calibration.group("openblas").values()
    assert (known.key, known.value) == ("openblas/48x200x300 panels", str(first or ""))
    with using(Calibration(is_fixed=True)), measuring():
        assert block_for(product, may_pack=True) is None


@pytest.mark.parametrize("text", ["48x96", "0x1x1", "axbxc"])
def test_calibration_with_other_blocks_are_refused(text: str, tmp_path: Path) -> None:
    calibration = _with_blocks(tmp_path, **{"60x150x90": text})
    with pytest.raises(ByocError, match="the measurement 'openblas/60x150x90'"):
        byoc_mlir.compile(
            _product((60, 90), (90, 150)), TARGET, fallback="forbid", calibration=calibration
        )


def test_products_behind_each_other_share_the_workspace() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[5, 20] x, float[20, 30] v, float[30, 40] w) => (float[5, 20] y, float[5, 40] z) {
            a = MatMul (x, v)
            z = MatMul (a, w)
            t = Transpose <perm = [1, 0]> (w)
            b = MatMul (z, t)
            u = Transpose <perm = [1, 0]> (v)
            y = MatMul (b, u)
        }
    """)
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, TARGET, fallback="allow") as executable:
        assert executable.report().counts()["openblas"] >= 4
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)


def test_a_network_and_its_export(tmp_path: Path) -> None:
    model = NETWORKS["mlp3"](batch=3)
    inputs = random_inputs(model)
    wanted = run_onnxruntime(model, inputs)
    with byoc_mlir.compile(model, TARGET, 2, fallback="allow") as executable:
        rows = executable.report().placed("openblas")
        assert {row.implementation for row in rows} == {"sgemm"}
        assert_agrees(executable.run(inputs), wanted, 1e-5)
        executable.export_library(tmp_path / "mlp.so")
    with byoc_mlir.load(tmp_path / "mlp.so") as loaded:
        assert_agrees(loaded.run(inputs), wanted, 1e-5)


def test_its_own_threads_rest() -> None:
    _check(_product((40, 50), (50, 60)), 2)
    handle = ctypes.CDLL(str(library.load_library().path))
    assert handle.scipy_openblas_get_num_threads64_() == 1


def test_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "WHEEL", "no-such-wheel")
    library.load_library.cache_clear()
    try:
        with pytest.raises(BackendError, match="there is no OpenBLAS; install it with `pip"):
            byoc_mlir.compile(_product((2, 3), (3, 4)), TARGET)
    finally:
        library.load_library.cache_clear()


def test_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, "libm.so.6")
    library.load_library.cache_clear()
    try:
        with pytest.raises(BackendError, match="has no function scipy_cblas_sgemm64_"):
            byoc_mlir.compile(_product((2, 3), (3, 4)), TARGET)
    finally:
        library.load_library.cache_clear()
