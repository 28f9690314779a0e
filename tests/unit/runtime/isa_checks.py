"""Checks that run in separate processes, one for each instruction set."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.lowering.host_pipeline import vector_bits
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget
from byoc_mlir.onednn.library import load_library
from byoc_mlir.runtime.system.cpu import LEVELS, Cpu, features_up_to, max_level, missing_by_level
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_TESTED = """
define void @tested(ptr %first, ptr %second, ptr %result) {
  %a = load <16 x float>, ptr %first
  %b = load <16 x float>, ptr %second
  %product = fmul contract <16 x float> %a, %b
  %sum = fadd contract <16 x float> %product, %a
  %short = fptrunc <16 x float> %sum to <16 x bfloat>
  store <16 x bfloat> %short, ptr %result
  ret void
}
"""

_FORBIDDEN = {
    "sse41": r"\bv[a-z]+[0-9a-z]*\s|[yz]mm|%k[0-7]",
    "avx2": r"zmm|%k[0-7]|[xy]mm(1[6-9]|2[0-9]|3[01])",
    "avx512": r"vcvtneps2bf16",
    "avx512_vnni": r"vcvtneps2bf16",
}
"""Patterns that machine code for a level must not contain."""

_ONEDNN = dict(zip(LEVELS, (0x1, 0x7, 0x27, 0x67, 0xE7, 0xFEF), strict=True))
"""Values of oneDNN's `dnnl_cpu_isa_t`."""


def _float(name: str, shape: list[int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model() -> ModelProto:
    """Returns a model of several small networks, each with an output."""
    draw = np.random.default_rng(0)
    constants = {
        "kernel": draw.standard_normal((16, 3, 3, 3)) * 0.2,
        "square": draw.standard_normal((16, 16, 3, 3)) * 0.1,
        "matrix": draw.standard_normal((40, 24)) * 0.2,
        "bias": draw.standard_normal(24),
    }
    weights = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in constants.items()]
    integers = draw.integers(-128, 128, (40, 24)).astype(np.int8)
    scale, zero = np.array(0.05, np.float32), np.array(128, np.uint8)
    weights += [
        numpy_helper.from_array(array, name)
        for name, array in (("integers", integers), ("scale", scale), ("zero", zero))
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "kernel"], ["c1"], pads=[1] * 4),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "square"], ["c2"], pads=[1] * 4),
        node("Relu", ["c2"], ["convolved"]),
        node("Gemm", ["rows", "matrix", "bias"], ["product"]),
        node("Exp", ["product"], ["e"]),
        node("Erf", ["product"], ["f"]),
        node("Tanh", ["f"], ["t"]),
        node("Add", ["e", "t"], ["elements"]),
        node("ReduceSum", ["image"], ["sums"], keepdims=1),
        node("ReduceMax", ["convolved"], ["largest"], keepdims=0),
        node("Cast", ["rows"], ["half"], to=TensorProto.FLOAT16),
        node("Mul", ["half", "half"], ["squares"]),
        node("QuantizeLinear", ["rows", "scale", "zero"], ["quantised"]),
        node("MatMulInteger", ["quantised", "integers", "zero"], ["counted"]),
        node("DequantizeLinear", ["quantised", "scale", "zero"], ["restored"]),
    ]
    outputs = [
        _float("convolved", [1, 16, 20, 20]),
        *(_float(name, [7, 24]) for name in ("product", "elements")),
        _float("restored", [7, 40]),
        helper.make_tensor_value_info("squares", TensorProto.FLOAT16, [7, 40]),
        _float("sums", [1, 1, 1, 1]),
        _float("largest", []),
        helper.make_tensor_value_info("counted", TensorProto.INT32, [7, 24]),
    ]
    inputs = [_float("image", [1, 3, 20, 20]), _float("rows", [7, 40])]
    graph = helper.make_graph(nodes, "levels", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _machine_code(target: CodegenTarget) -> str:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3
    )
    return machine.emit_assembly(llvm.parse_assembly(_TESTED))


def check_level() -> None:
    """Checks that the processor, LLVM and oneDNN keep to the level of this process, and that
    results are right.
    """
    level = max_level()
    assert level is not None
    assert set(Cpu.host().features) <= features_up_to(level)
    if not missing_by_level(Cpu.machine().features)["avx512"]:
        assert vector_bits(CodegenTarget.host()) == {"sse41": 128, "avx2": 256}.get(level, 512)
    assembly = _machine_code(CodegenTarget.host())
    assert not re.search(_FORBIDDEN.get(level, "$^"), assembly), assembly
    assert load_library().handle.dnnl_get_effective_cpu_isa() <= _ONEDNN[level]
    network = model()
    inputs = random_inputs(network)
    expected = run_onnxruntime(network, inputs)
    halves = expected.pop("squares")
    for targets in ((), ("dnnl",)):
        executable = byoc_mlir.compile(network, targets, threads=1, fallback="allow")
        found = executable.run(inputs)
        np.testing.assert_allclose(found.pop("squares"), halves, rtol=2e-3)  # twice rounded
        assert_agrees(found, expected, tolerance=1e-5)
        executable.close()
