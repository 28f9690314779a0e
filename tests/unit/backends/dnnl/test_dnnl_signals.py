"""Signals while oneDNN's stack pointer is in memory of the C library, as in `gemm:jit`."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from dnnl_models import model, node

import byoc_mlir
from byoc_mlir.backends.dnnl.codegen.signals import moves_stack_pointer
from byoc_mlir.onednn.engine import engine
from byoc_mlir.testing.forked import run_forked

_BEGIN = """
import signal, sys, time
import byoc_mlir
import numpy as np
import onnx

def random(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)

signal.signal(signal.SIGALRM, lambda *_: None)

def interrupt(each=1e-4):
    signal.setitimer(signal.ITIMER_REAL, each, each)

target, threads = sys.argv[1], int(sys.argv[2])
dense = onnx.parser.parse_model('''
    <ir_version: 8, opset_import: ["": 17]>
    dense (float[64, 1024] x) => (float[64, 64] y) <float[64, 1024] w> {
        y = Gemm <transB = 1> (x, w)
    }
''')
weights = random(64, 1024)
dense.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
"""

_COMPILE = f"""{_BEGIN}
interrupt()
for _ in range(5):
    byoc_mlir.compile(dense, targets=(target,), threads=threads, cache=False)
interrupt(0)  # Python takes its handlers away at the end
"""

_RUN = f"""{_BEGIN}
product = onnx.parser.parse_model('''
    <ir_version: 8, opset_import: ["": 17]>
    product (float[256, 1024] x, float[1024, 256] w) => (float[256, 256] y) {{
        y = MatMul (x, w)
    }}
''')
loop = onnx.parser.parse_model('''
    <ir_version: 8, opset_import: ["": 17]>
    loop (float[512, 1024] x) => (float[512, 1024] y) {{ y = Exp (x) }}
''')
model = product if target == "dnnl" else dense
loop = byoc_mlir.compile(loop, targets=(), threads=threads)
executable = byoc_mlir.compile(model, targets=(target,), threads=threads, cache=False)
assert executable.report().counts() == {{target: 1}}
if target == "dnnl":
    inputs = {{"x": random(256, 1024), "w": random(1024, 256)}}
else:
    inputs = {{"x": random(64, 1024)}}
right = inputs["x"] @ inputs.get("w", weights.T)
loop.run({{"x": random(512, 1024)}})  # starts OpenMP's threads, which get signals
interrupt()
end = time.thread_time() + 0.5
while time.thread_time() < end:
    y = executable.run(inputs)["y"]
interrupt(0)
np.testing.assert_allclose(y, right, rtol=1e-4, atol=1e-3)
"""


def _check(script: str, target: str, threads: int) -> None:
    """Runs a script with the library limited to instructions for which it has such matmuls."""
    environment = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    run_forked(script, target, str(threads), environment=environment, seconds=120)


@pytest.mark.parametrize("threads", [1, 2])
def test_compiling(threads: int) -> None:
    """Checks signals while primitives run for measurements."""
    _check(_COMPILE, "dnnl", threads)


@pytest.mark.values
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", ["dnnl", "dnnl_c", "dnnl_json"])
def test_running(target: str, threads: int) -> None:
    _check(_RUN, target, threads)


@pytest.mark.skipif(engine().has_avx512, reason="the library has other products")
@pytest.mark.parametrize(("size", "wakes"), [(4, False), (512, True)])
def test_no_thread_is_woken_to_hold_signals(size: int, wakes: bool, tmp_path: Path) -> None:
    """Checks that one thread computes a small matmul alone."""
    product = model([node("MatMul", "a b")], {"a": (size, size), "b": (size, size)})
    byoc_mlir.compile(product, targets=("dnnl",), threads=2, dump_ir=tmp_path)
    parts = [part for part in tmp_path.glob("*.ll") if "optimised" not in part.name]
    code = "".join(part.read_text() for part in parts)
    assert "call void @byoc_dnnl_hold_signals(" in code
    assert ("call void @byoc_dnnl_hold_signals_of_team(" in code) == wakes


def test_signals_that_waited_before_go_on_waiting() -> None:
    product = model([node("MatMul", "a b")], {"a": (8, 300), "b": (300, 8)})
    zeros = {"a": np.zeros((8, 300), np.float32), "b": np.zeros((300, 8), np.float32)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        with byoc_mlir.compile(product, targets=("dnnl",), threads=1) as executable:
            executable.run(zeros)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before | {signal.SIGUSR1}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize(
    ("kind", "implementation", "moves"),
    [
        ("matmul", "gemm:jit", True),
        ("convolution_forward", "x64:gemm:jit", True),
        ("gru_forward", "ref", True),
        ("lstm_forward", "brgemm:avx2", True),
        ("inner_product_forward", "brgemm:avx2", False),
        ("matmul", "brg:avx512_core", False),
        ("convolution_forward", "jit:avx2", False),
    ],
)
def test_which_primitives_move_the_stack_pointer(
    kind: str, implementation: str, moves: bool
) -> None:
    assert moves_stack_pointer(kind, implementation) == moves
