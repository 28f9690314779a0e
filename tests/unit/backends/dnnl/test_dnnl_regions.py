"""Whole regions: reorders, memory, threads, the library's choice of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from dnnl_models import check, model, node
from onnx import ModelProto, helper
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp

import byoc_mlir
from byoc_mlir.abi import COMPILER
from byoc_mlir.backends.base import CodegenContext, GeneratedCode, NativeCode
from byoc_mlir.backends.dnnl import DnnlBackend
from byoc_mlir.dialects.relay.elementwise import ExpOp
from byoc_mlir.errors import BackendError
from byoc_mlir.onednn.library import load_library
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.forked import run_forked
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs

ISAS = ["SSE41", *(["AVX2"] if "avx512f" in Cpu.host().features else [])]
"""Instruction sets below this machine's."""


def _chain(layers: int, channels: int = 32) -> ModelProto:
    nodes, weights, value = [], {}, "x"
    for layer in range(layers):
        nodes += [
            node("Conv", f"{value} w{layer} b{layer}", f"c{layer}", pads=[1, 1, 1, 1]),
            node("Relu", f"c{layer}", f"r{layer}" if layer < layers - 1 else "y"),
        ]
        value = f"r{layer}"
        weights |= {f"w{layer}": (channels, channels, 3, 3), f"b{layer}": (channels,)}
    return model(nodes, {"x": (1, channels, 20, 20)}, weights)


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[NativeCode]:
    """Returns the native code of every region that is compiled during the test."""
    found: list[NativeCode] = []
    original = DnnlBackend.codegen_regions

    def codegen_regions(
        self: DnnlBackend, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[GeneratedCode | Exception]:
        answers = original(self, regions, context)
        found.extend(answer for answer in answers if isinstance(answer, NativeCode))
        return answers

    monkeypatch.setattr(DnnlBackend, "codegen_regions", codegen_regions)
    return found


def _verbose(script: str, **environment: str) -> list[list[str]]:
    """Returns the fields of oneDNN's log of every execution, for a script in a separate process."""
    printed = run_forked(script, environment={"ONEDNN_VERBOSE": "1", **environment}, seconds=120)
    lines = printed.rpartition("RUN")[2].splitlines()
    return [line.split(",") for line in lines if line.startswith("onednn_verbose,exec")]


_RESNET = """
import ctypes, byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs
model = NETWORKS["resnet50"](image=64)
target = "dnnl{layout=channels_last convolution=direct}"
executable = byoc_mlir.compile(model, targets=(target,), threads=1)
inputs = random_inputs(model, seed=0)
ctypes.CDLL(None).fflush(None)
print("RUN", flush=True)
executable.run(inputs)
"""


def test_resnet50_reorders_no_weight_and_hardly_an_activation() -> None:
    executed = _verbose(_RESNET)
    kinds = [fields[3] for fields in executed]
    assert kinds.count("convolution") == 53
    assert kinds.count("reorder") <= 2


def test_a_chain_stays_in_the_layout_that_is_asked_for(generated: list[NativeCode]) -> None:
    """Checks a requested layout; by default, times decide (test_plan_dnnl_layouts.py)."""
    check(_chain(4), target="dnnl{layout=channels_last}")
    (code,) = generated
    convolutions = [detail for detail in code.details if detail.nodes]
    assert {detail.note.partition(",")[0] for detail in convolutions[:-1]} == {"acdb"}
    assert not any(detail.is_warning for detail in code.details)


def test_regions_share_functions(generated: list[NativeCode]) -> None:
    nodes = [
        node("Conv", "x w", "c"),
        node("Sin", "c", "s"),  # runs on the host
        node("Conv", "s w", "d"),
        node("Relu", "d"),
    ]
    check(model(nodes, {"x": (1, 16, 12, 12)}, {"w": (16, 16, 3, 3)}))
    first, second = generated
    assert isinstance(first.shared, ModuleOp)
    assert first.shared is second.shared


def test_workspace_is_reused(generated: list[NativeCode]) -> None:
    """Checks the reuse with direct convolutions: other algorithms would need larger matrices."""
    check(_chain(16), target="dnnl{convolution=direct layout=channels_last}", threads=1)
    (code,) = generated
    activation = 32 * 20 * 20 * 4
    assert code.workspace_bytes < 8 * activation


def test_a_shared_weight_is_one_constant(generated: list[NativeCode]) -> None:
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Conv", "c w b", pads=[1, 1, 1, 1]),
    ]
    check(model(nodes, {"x": (1, 16, 12, 12)}, {"w": (16, 16, 3, 3), "b": (16,)}))
    (code,) = generated
    assert len(code.constants) == 2


def test_two_regions_share_a_weight(generated: list[NativeCode]) -> None:
    """Checks that both regions use the one array of the model."""
    nodes = [
        node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        node("Sin", "c", "s"),
        node("Conv", "s w b", pads=[1, 1, 1, 1]),
    ]
    report = check(model(nodes, {"x": (1, 16, 12, 12)}, {"w": (16, 16, 3, 3), "b": (16,)}))
    assert report.counts() == {"dnnl": 2, "host": 1}
    one, two = (code.constants for code in generated)
    assert {weight.digest for weight in one} == {weight.digest for weight in two}
    assert all(a.data is b.data for a, b in zip(one, two, strict=True))


def test_a_chain_with_numbers_between_a_reshape_and_a_resize() -> None:
    """Checks a chain as after a group norm: HardSwish has constants of rank 0."""
    nodes = [
        node("Conv", "x w", "c"),
        node("Reshape", "c shape", "g"),
        node("Add", "g b", "a"),
        node("HardSwish", "a", "h"),
        helper.make_node("Resize", ["h", "", "scales"], ["r"], name="resize"),
        node("Conv", "r v"),
    ]
    weights = {
        "w": (8, 4, 1, 1),
        "shape": np.array([1, 8, 32, 32], np.int64),
        "b": (8, 1, 1),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "v": (4, 8, 1, 1),
    }
    report = check(model(nodes, {"x": (1, 4, 16, 64)}, weights))
    assert report.counts() == {"dnnl": 6}
    assert len({row.region for row in report}) == 1


def test_eight_threads_get_the_same_bits() -> None:
    built = NETWORKS["resnet18"](image=64)
    inputs = [random_inputs(built, seed=seed) for seed in range(8)]
    with byoc_mlir.compile(built, targets=("dnnl",), threads=2) as executable:
        expected = [executable.run(one) for one in inputs]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                answers = list(pool.map(executable.run, inputs))
                for answer, wanted in zip(answers, expected, strict=True):
                    for name, value in wanted.items():
                        np.testing.assert_array_equal(answer[name], value)


@pytest.mark.parametrize("isa", ISAS)
def test_ops_with_fewer_instructions(isa: str) -> None:
    """Checks single ops and recurrent layers; oneDNN packs the latter's weights differently without
    AVX2.
    """
    folder = Path(__file__).parent
    files = [folder / "test_dnnl_ops.py", folder / "test_dnnl_recurrent.py"]
    chosen = "offloaded or lstm or shapes or broadcasts or layer_norm or batch_norm"
    script = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    arguments = ["-x", "-p", "no:cacheprovider", "-k", chosen, *map(str, files)]
    printed = run_forked(script, *arguments, environment={"ONEDNN_MAX_CPU_ISA": isa}, seconds=600)
    assert "passed" in printed


@pytest.mark.parametrize("isa", ISAS)
def test_instructions_can_be_capped(isa: str) -> None:
    script = """
import numpy as np, byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime
model = NETWORKS["mobilenet_v2"](image=32)
inputs = random_inputs(model, seed=0)
executable = byoc_mlir.compile(model, targets=("dnnl",), threads=1, fallback="forbid")
assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), tolerance=1e-4)
print("RUN", flush=True)
executable.run(inputs)
"""
    executed = _verbose(script, ONEDNN_MAX_CPU_ISA=isa)
    assert executed
    assert not any("avx512" in fields[4] for fields in executed)


def test_winograd_option() -> None:
    off = check(_chain(2), backend_options={"dnnl": {"winograd": "off"}})
    assert all("wino" not in row.implementation for row in off)
    with pytest.raises(BackendError, match="accepted is measured or off"):
        byoc_mlir.compile(_chain(2), targets=("dnnl{winograd=yes}",))


def test_a_region_is_left_as_it_was() -> None:
    type_ = TensorType(f32, [1, 16, 32, 32])
    region = FuncOp("r", ([type_], [type_]))
    exp = ExpOp(region.body.block.args[0])
    region.body.block.add_ops([exp, ReturnOp(exp.output)])
    region.attributes[COMPILER] = StringAttr("dnnl")
    module = ModuleOp([region])
    before = str(module)
    code = DnnlBackend().codegen(region, CodegenContext(threads=1))
    code.module.verify()
    assert str(module) == before


@pytest.mark.parametrize(
    ("library", "message"),
    [("/nowhere/libdnnl.so.3", "cannot be loaded"), ("libc.so.6", "is not oneDNN")],
)
def test_another_library_can_be_named(
    library: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_DNNL_LIBRARY", library)
    load_library.cache_clear()
    try:
        with pytest.raises(BackendError, match=message):
            load_library()
        reason = DnnlBackend().unavailable()
        assert reason is not None
        assert "pip install onednn-cpu-gomp==2023.1.0" in reason
    finally:
        monkeypatch.undo()
        load_library.cache_clear()
    assert DnnlBackend().unavailable() is None
