"""Regions on the recording driver: the order of calls, what is held, and faults."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.cuda.runs import DeviceError, RegionRun
from xdsl.dialects.func import FuncOp

from byoc_mlir.compiler.source import main_function
from byoc_mlir.nvidia.gpu import find_gpu
from byoc_mlir.testing.conformance.graph import CaseBuilder

_OUT_OF_MEMORY, _LAUNCH_FAILED = 2, 719


def _softmax_of_sum() -> tuple[FuncOp, list[np.ndarray]]:
    """Returns a function with a matmul, a constant and a value between two kernels."""
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    x = rng.standard_normal((70, 40)).astype(np.float32)
    w = rng.standard_normal((48, 40)).astype(np.float32)
    product = graph.op("nn.dense", [graph.input(x), graph.constant(w)]).results[0]
    result = graph.op("nn.softmax", [product], axis=-1).results[0]
    case = graph.case("a test", "", [result])
    return main_function(case.module), [x, w]


def test_work_is_enqueued_in_order_and_waits_once(gpu: Record) -> None:
    function, (x, w) = _softmax_of_sum()
    run = RegionRun(function)

    (found,) = run.run([x])

    logits = (x @ w.T).astype(np.float64)
    wanted = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-4)
    around = ("cuMemcpyHtoD", "cuMemcpyDtoH", "cuLaunch", "cuStreamSync", "cuModuleLoad")
    work = [name for name in gpu.calls() if name.startswith(around)]
    launches = len(run.kernels.launches)
    assert work == [
        "cuModuleLoadData",
        *["cuMemcpyHtoDAsync_v2"] * 2,
        *["cuLaunchKernel"] * launches,
        "cuMemcpyDtoHAsync_v2",
        "cuStreamSynchronize",
    ]
    assert run.kernels.workspace_bytes > 0


@pytest.mark.parametrize(
    ("function", "after"),
    [
        ("cuInit", 0),
        ("cuDevicePrimaryCtxRetain", 1),
        ("cuCtxPushCurrent_v2", 0),
        ("cuStreamCreate", 0),
        ("cuModuleLoadData", 0),
        ("cuModuleGetFunction", 1),
        ("cuMemAlloc_v2", 0),
        ("cuMemAlloc_v2", 2),
        ("cuStreamGetCtx", 0),
        ("cuMemcpyHtoDAsync_v2", 1),
        ("cuLaunchKernel", 1),
        ("cuMemcpyDtoHAsync_v2", 0),
        ("cuStreamSynchronize", 0),
    ],
)
def test_a_fault_is_returned_and_leaves_nothing(gpu: Record, function: str, after: int) -> None:
    code, (x, _) = _softmax_of_sum()
    run = RegionRun(code)
    gpu.fail(function, _OUT_OF_MEMORY, after)

    with pytest.raises(DeviceError, match="out of memory"):
        run.run([x])

    gpu.forget()
    run.run([x])  # the next run has everything that it needs


def test_a_wrong_kernel_fails_the_wait(gpu: Record) -> None:
    code, (x, _) = _softmax_of_sum()
    run = RegionRun(code)
    gpu.fail("cuStreamSynchronize", _LAUNCH_FAILED)

    with pytest.raises(DeviceError, match="unspecified launch failure"):
        run.run([x])


def test_the_code_knows_the_gpu_as_the_compiler_does(gpu: Record) -> None:
    code, _ = _softmax_of_sum()

    assert RegionRun(code).identity() == find_gpu().identity
    assert find_gpu().identity == "Recording GPU, compute capability 9.0, driver for CUDA 13.2"


def test_there_is_no_identity_without_a_gpu(gpu: Record) -> None:
    code, _ = _softmax_of_sum()
    gpu.fail("cuInit", 100)

    assert RegionRun(code).identity() == ""


def test_an_unknown_status_has_a_text(gpu: Record) -> None:
    code, _ = _softmax_of_sum()

    assert RegionRun(code).message(77) == "a status unknown to the driver"
