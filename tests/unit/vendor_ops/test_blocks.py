"""Weights in blocks of a few bits, against ONNX Runtime."""

from __future__ import annotations

import pickle
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from helpers.models import model_of
from nodes import Arrays, node_model, run_imported
from onnx import ModelProto, helper
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend import import_model
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, emit_assembly
from byoc_mlir.lowering.relay_to_linalg import blockwise as lowering
from byoc_mlir.lowering.to_llvm import vector as to_llvm_vector
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.runtime.system.cpu import Cpu, has_amx
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

RNG = np.random.default_rng(0)
TOLERANCE = 1e-5


def weights(units: int, size: int, block: int, bits: int, zeros: str) -> dict[str, Any]:
    """Returns the constants of a `MatMulNBits`; zero points are `packed`, `float` or `none`."""
    blocks = -(-size // block)
    found: dict[str, Any] = {
        "w": RNG.integers(0, 256, (units, blocks, block * bits // 8)).astype(np.uint8),
        "s": RNG.uniform(0.01, 0.1, (units, blocks)).astype(np.float32),
    }
    if zeros == "packed":
        width = -(-blocks * bits // 8)
        found["z"] = RNG.integers(0, 256, (units, width)).astype(np.uint8)
    elif zeros == "float":
        found["z"] = RNG.uniform(0, 2**bits - 1, (units, blocks)).astype(np.float32)
    return found


def check(
    shape: tuple[int, ...],
    units: int,
    block: int,
    bits: int = 4,
    zeros: str = "none",
    more: Arrays | None = None,
    is_constant: bool = True,
) -> None:
    """Compares the evaluator and the compiled kernel with ONNX Runtime."""
    constants = {**weights(units, shape[-1], block, bits, zeros), **(more or {})}
    data = RNG.standard_normal(shape).astype(np.float32)
    inputs = {"x": data, **constants}
    model = node_model(
        "MatMulNBits",
        inputs,
        constants=[name for name, array in constants.items() if array is not None and is_constant],
        K=shape[-1],
        N=units,
        bits=bits,
        block_size=block,
    )
    given = {"x": data} if is_constant else inputs
    want = run_onnxruntime(model, given)
    assert_agrees(run_imported(model, inputs), want, TOLERANCE)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(given), want, TOLERANCE)


@pytest.mark.values
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_zero_points(rows: int, zeros: str) -> None:
    check((rows, 96), 24, 32, zeros=zeros)


@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("rows", [1, 17])
def test_weights_as_inputs(rows: int, zeros: str) -> None:
    check((rows, 96), 25, 32, zeros=zeros, is_constant=False)


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 64), (4, 256), (8, 32), (8, 128)])
def test_widths_and_blocks(bits: int, block: int, rows: int) -> None:
    check((rows, 2 * block), 20, block, bits)


@pytest.mark.parametrize("rows", [1, 5])
def test_a_last_block_that_is_not_full(rows: int) -> None:
    check((rows, 80), 16, 32, zeros="packed")


def test_shapes_of_data() -> None:
    check((2, 3, 64), 33, 32)
    check((2, 1, 64), 16, 32)
    check((0, 64), 16, 32)


@pytest.mark.parametrize("rows", [1, 13])
def test_more_steps_than_are_unpacked_at_a_time(rows: int) -> None:
    check((rows, 2592), 32, 32, zeros="packed")
    check((rows, 3072), 16, 128)


def test_work_for_all_threads() -> None:
    check((1, 1024), 1024, 32)
    check((32, 512), 256, 64)


def test_bias() -> None:
    bias = RNG.standard_normal(20).astype(np.float32)
    check((3, 64), 20, 32, more={"z": None, "g": None, "b": bias})


def test_groups_in_order() -> None:
    check((3, 64), 20, 32, more={"z": None, "g": (np.arange(64) // 32).astype(np.int32)})


def matmul_nbits(
    rows: int, block: int, bits: int, zeros: str, accuracy: int = 4, blocks: int = 4
) -> tuple[ModelProto, dict[str, Any], np.ndarray[Any, Any]]:
    """Returns a MatMulNBits that asks for data in int8 unless the level of its accuracy is less
    than 4, its input, and the evaluator's result.
    """
    constants = weights(21, blocks * block, block, bits, zeros)
    data = RNG.standard_normal((rows, blocks * block)).astype(np.float32)
    data[0, :block] = 0
    inputs = {"x": data, **constants}
    sizes = {"K": blocks * block, "N": 21, "bits": bits, "block_size": block}
    model = node_model(
        "MatMulNBits", inputs, constants=[*constants], accuracy_level=accuracy, **cast(Any, sizes)
    )
    return model, {"x": data}, run_imported(model, inputs)["y"]


@pytest.mark.values
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("block", [16, 32, 128, 256])
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_data_in_bytes(rows: int, block: int, zeros: str) -> None:
    model, inputs, exact = matmul_nbits(rows, block, 4, zeros)
    with byoc_mlir.compile(model, targets=()) as executable:
        found = executable.run(inputs)["y"]
    error = np.abs(found - exact).max() / np.abs(exact).max()
    assert 1e-6 < error < 0.02
    if zeros != "float":  # with which ONNX Runtime computes in f32
        assert_agrees({"y": found}, run_onnxruntime(model, inputs), 5e-3)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(("bits", "block"), [(2, 64), (8, 32), (4, 512)])
def test_data_in_bytes_of_other_widths(bits: int, block: int, rows: int) -> None:
    """Compares with exact results: ONNX Runtime rounds blocks of 512 in another way."""
    model, inputs, exact = matmul_nbits(rows, block, bits, "none")
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(inputs), {"y": exact}, 0.02)


@pytest.mark.parametrize("vnni", [False, True])
@pytest.mark.parametrize("zeros", ["none", "packed"])
@pytest.mark.parametrize("blocks", [2, 7, 8, 11, 16])
@pytest.mark.parametrize(("rows", "block"), [(1, 32), (2, 16), (3, 32), (4, 64)])
def test_few_rows_of_any_number_of_blocks(
    rows: int, block: int, blocks: int, zeros: str, vnni: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "has_vnni", lambda: vnni)
    model, inputs, exact = matmul_nbits(rows, block, 4, zeros, blocks=blocks)
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        found = executable.run(inputs)
    assert_agrees(found, {"y": exact}, 0.02)
    assert_agrees(found, run_onnxruntime(model, inputs), 5e-3)


@pytest.mark.parametrize("zeros", ["none", "float"])
@pytest.mark.parametrize("blocks", [3, 8, 13])
@pytest.mark.parametrize(
    ("rows", "bits", "block"), [(1, 4, 32), (4, 4, 32), (1, 2, 16), (3, 4, 16), (2, 8, 128)]
)
def test_few_rows_in_f32_of_any_number_of_blocks(
    rows: int, bits: int, block: int, blocks: int, zeros: str
) -> None:
    model, inputs, exact = matmul_nbits(rows, block, bits, zeros, accuracy=0, blocks=blocks)
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        assert_agrees(executable.run(inputs), {"y": exact}, TOLERANCE)


@pytest.mark.parametrize("vnni", [False, True])
@pytest.mark.parametrize("level", ["sse4_1", "avx2", "avx512f"])
@pytest.mark.parametrize("zeros", ["none", "packed"])
@pytest.mark.parametrize(("rows", "block", "blocks"), [(29, 64, 4), (2, 32, 11)])
def test_all_vectors_of_bytes(
    level: str,
    vnni: bool,
    zeros: str,
    rows: int,
    block: int,
    blocks: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiles for each vector length; LLVM splits vectors that the processor lacks."""
    monkeypatch.setattr(lowering, "target_cpu", lambda: Cpu("x86_64", (level,)))
    monkeypatch.setattr(lowering, "has_vnni", lambda: vnni)
    monkeypatch.setattr(lowering, "has_amx", lambda: False)
    monkeypatch.setattr(to_llvm_vector, "target_cpu", lambda: Cpu("x86_64", ()))
    model, inputs, exact = matmul_nbits(rows, block, 4, zeros, blocks=blocks)
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        assert_agrees(executable.run(inputs), {"y": exact}, 0.02)


@pytest.mark.skipif(not has_amx(), reason="the processor has no AMX")
@pytest.mark.parametrize("zeros", ["none", "packed"])
@pytest.mark.parametrize("rows", [16, 29, 40])
@pytest.mark.parametrize(("bits", "block"), [(2, 32), (4, 16), (4, 32), (4, 64), (4, 128)])
def test_rows_of_bytes_by_matrices(bits: int, block: int, rows: int, zeros: str) -> None:
    model, inputs, exact = matmul_nbits(rows, block, bits, zeros, blocks=5)
    with byoc_mlir.compile(model, targets=(), cache=False, threads=2) as executable:
        found = executable.run(inputs)
    assert_agrees(found, {"y": exact}, 0.02)


@pytest.mark.parametrize("level", ["sse4_1", "avx2", "avx512f"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("rows", "blocks"), [(29, 4), (2, 11)])
def test_all_vectors_of_floats(
    level: str, bits: int, rows: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiles for each vector length, with units that fill one panel and a part of the next."""
    monkeypatch.setattr(lowering, "target_cpu", lambda: Cpu("x86_64", (level,)))
    monkeypatch.setattr(to_llvm_vector, "target_cpu", lambda: Cpu("x86_64", ()))
    model, inputs, exact = matmul_nbits(rows, 16, bits, "packed", accuracy=0, blocks=blocks)
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        assert_agrees(executable.run(inputs), {"y": exact}, TOLERANCE)


@pytest.mark.parametrize("rows", [1, 6])
def test_extreme_data_in_bytes(rows: int) -> None:
    """Sums of products in 16 bits are as large as they get."""
    constants = {
        "w": np.full((17, 40, 16), 0xFF, np.uint8),
        "s": np.ones((17, 40), np.float32),
        "z": np.zeros((17, 20), np.uint8),
    }
    data = np.full((rows, 1280), -3, np.float32)
    sizes: dict[str, Any] = {"K": 1280, "N": 17, "block_size": 32, "accuracy_level": 4}
    model = node_model("MatMulNBits", {"x": data, **constants}, constants=[*constants], **sizes)
    with byoc_mlir.compile(model, targets=()) as executable:
        found = executable.run({"x": data})
    assert_agrees(found, {"y": np.full((rows, 17), -3.0 * 15 * 1280, np.float32)}, TOLERANCE)


def test_any_number_of_rows_in_bytes() -> None:
    constants = weights(20, 96, 32, 4, "packed")
    inputs = {"x": np.zeros((1, 96), np.float32), **constants}
    sizes: dict[str, Any] = {"K": 96, "N": 20, "block_size": 32, "accuracy_level": 4}
    model = node_model("MatMulNBits", inputs, constants=[*constants], **sizes)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with byoc_mlir.compile(model, targets=()) as executable:
        for rows in (1, 4, 5, 30):
            data = {"x": RNG.standard_normal((rows, 96)).astype(np.float32)}
            want = run_imported(
                node_model("MatMulNBits", {**inputs, **data}, constants=[*constants], **sizes),
                {**inputs, **data},
            )
            assert_agrees(executable.run(data), want, 0.02)


_DOT = """
func.func @f(%c: vector<32xi8>, %t: vector<8xi32>) -> vector<8xi32> {
  %s = "host.dot_integers"(%c, %c, %t)
    : (vector<32xi8>, vector<32xi8>, vector<8xi32>) -> vector<8xi32>
  func.return %s : vector<8xi32>
}
"""
_WIDE_DOT = """
func.func @f(%c: vector<64xi8>, %t: vector<16xi32>) -> vector<16xi32> {
  %s = "host.dot_integers"(%c, %c, %t)
    : (vector<64xi8>, vector<64xi8>, vector<16xi32>) -> vector<16xi32>
  func.return %s : vector<16xi32>
}
"""
_DOT_PAIRS = """
func.func @f(%c: vector<64xi8>, %p: vector<32xi16>, %t: vector<16xi32>) -> vector<16xi32> {
  %s = "host.dot_integers"(%c, %c, %p)
    : (vector<64xi8>, vector<64xi8>, vector<32xi16>) -> vector<32xi16>
  %d = "host.dot_integers"(%s, %p, %t)
    : (vector<32xi16>, vector<32xi16>, vector<16xi32>) -> vector<16xi32>
  func.return %d : vector<16xi32>
}
"""
_MATRICES = """
func.func @f(%d: memref<?xi8>, %i: index, %c: memref<2048xi8>, %s: memref<512xi32>) {
  host.request_matrices
  host.multiply_matrices %d[%i], %c[%i], %s[%i] {steps = 128 : i64, vectors = 2 : i64}
    : memref<?xi8>, memref<2048xi8>, memref<512xi32>
  func.return
}
"""
_AVX512 = "avx512f avx512bw avx512vl"


@pytest.mark.parametrize(
    ("text", "features", "instructions"),
    [
        (_DOT, "avx2 avx_vnni", "vpdpbusd"),
        (_DOT, f"{_AVX512} avx512_vnni", "vpdpbusd"),
        (_WIDE_DOT, f"{_AVX512} avx512_vnni", "vpdpbusd"),
        (_DOT, "avx2", "vpmaddubsw vpmaddwd"),
        (_DOT, "", "pmullw pmaddwd"),
        (_DOT_PAIRS, _AVX512, "vpmaddubsw vpmaddwd"),
        (_DOT_PAIRS, "avx512f", "vpmullw vpmaddwd"),
        (_MATRICES, "avx512f amx_tile amx_int8", "tileloadd tdpbsud tilestored"),
    ],
)
def test_instructions_for_products_of_bytes(
    text: str, features: str, instructions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = Cpu("x86_64", tuple(features.split()))
    monkeypatch.setattr(to_llvm_vector, "target_cpu", lambda: cpu)
    context = make_context()
    module = Parser(context, text).parse_module()
    ConvertToLLVM().apply(context, module)
    names = (name.replace("_", "-" if "amx" in name else "") for name in cpu.features)
    enabled = ",".join(f"+{name}" for name in names)
    target = CodegenTarget("x86_64-unknown-linux-gnu", "x86-64", enabled)
    assembly = emit_assembly(module, target).split()
    assert set(instructions.split()) <= set(assembly)


@pytest.mark.parametrize("rows", [2, 9])
def test_products_of_bytes_without_instructions(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_llvm_vector, "target_cpu", lambda: Cpu("x86_64", ()))
    model, inputs, exact = matmul_nbits(rows, 32, 4, "none")
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        assert_agrees(executable.run(inputs), {"y": exact}, 0.02)


def test_two_bits_by_hand() -> None:
    constants = weights(17, 64, 32, 2, "none")
    data = RNG.standard_normal((2, 64)).astype(np.float32)
    model = node_model(
        "MatMulNBits",
        {"x": data, **constants},
        constants=["w", "s"],
        K=64,
        N=17,
        bits=2,
        block_size=32,
    )
    codes = (constants["w"][..., None] >> np.array([0, 2, 4, 6])) & 3
    numbers = codes.reshape(17, 2, 32).astype(np.float64) - 2
    weight = (numbers * constants["s"][..., None]).reshape(17, 64)
    want = {"y": (data @ weight.T).astype(np.float32)}
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run({"x": data}), want, TOLERANCE)


def test_weights_stay_packed() -> None:
    constants = weights(256, 1024, 32, 4, "none")
    data = RNG.standard_normal((1, 1024)).astype(np.float32)
    model = node_model(
        "MatMulNBits", {"x": data, **constants}, constants=["w", "s"], K=1024, N=256, block_size=32
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        held = len(pickle.dumps(executable))
    assert held <= 0.3 * 4 * 256 * 1024


@pytest.mark.parametrize(
    ("more", "attributes", "reason"),
    [
        ({}, {"bits": 3}, "bits is 3 and block_size 32"),
        ({}, {"block_size": 24}, "bits is 4 and block_size 24"),
        ({}, {"K": 96}, "A has shape .* its last size must be K, 96"),
        ({}, {"N": 17}, "B has shape"),
        ({"z": None, "g": np.arange(64, dtype=np.int32) % 2}, {}, "g_idx puts elements in groups"),
    ],
)
def test_refusals(more: Arrays, attributes: dict[str, Any], reason: str) -> None:
    constants: Arrays = {**weights(16, 64, 32, 4, "none"), **more}
    inputs = {"x": np.zeros((1, 64), np.float32), **constants}
    model = node_model(
        "MatMulNBits",
        inputs,
        constants=[name for name, array in constants.items() if array is not None],
        **{"K": 64, "N": 16, "bits": 4, "block_size": 32, **attributes},
    )
    with pytest.raises(ByocError, match=reason):
        byoc_mlir.compile(model, targets=())


KINDS = {
    "bytes": np.dtype(np.uint8),
    "i4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4),
}


def stored(codes: np.ndarray[Any, Any], kind: str, bits: int) -> np.ndarray[Any, Any]:
    """Packs codes from 0 on as a table stores them: in bytes, or in a 4-bit type."""
    if kind != "bytes":
        return (codes - (8 if kind == "i4" else 0)).astype(KINDS[kind])
    if bits == 8:
        return codes.astype(np.uint8)
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)


@pytest.mark.values
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("kind", "bits", "width"), [("bytes", 4, 64), ("bytes", 8, 64), ("i4", 4, 64), ("u4", 4, 64)]
)
def test_rows_of_a_table(kind: str, bits: int, width: int, zeros: bool) -> None:
    rows, block = 7, 32
    scales = RNG.uniform(0.1, 1, (rows, width // block)).astype(np.float32)
    inputs: dict[str, Any] = {
        "d": stored(RNG.integers(0, 2**bits, (rows, width)), kind, bits),
        "i": np.array([[4, -1], [0, 2]]),
        "s": scales,
    }
    if zeros:
        inputs["z"] = stored(RNG.integers(0, 2**bits, scales.shape), kind, bits)
    model = node_model(
        "GatherBlockQuantized",
        inputs,
        constants=[name for name in inputs if name != "i"],
        bits=bits,
        block_size=block,
    )
    model.ir_version, model.opset_import[0].version = 10, 21
    fed = {"i": inputs["i"]}
    want = run_onnxruntime(model, fed)
    assert_agrees(run_imported(model, inputs), want, TOLERANCE)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(fed), want, TOLERANCE)


@pytest.mark.values
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "i8"])
def test_dequantised_in_blocks_before_a_product(kind: str, zeros: bool, turned: bool) -> None:
    """Checks a weight that is stored by units if `turned`, with a Transpose before the matmul.

    The oracle is numpy, since ONNX Runtime rounds the data of such matmuls to 8 bits.
    """
    units, steps, block = 20, 80, 32
    blocks = -(-steps // block)
    dtype = np.dtype(np.int8) if kind == "i8" else KINDS[kind]
    low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max) + 1
    arrays = [
        RNG.integers(low, high, (units, steps)).astype(dtype),
        RNG.uniform(0.01, 0.1, (units, blocks)).astype(np.float32),
        *([RNG.integers(low, high, (units, blocks)).astype(dtype)] if zeros else []),
    ]
    names = ["w", "s", "z"][: len(arrays)]
    weight = helper.make_node(
        "DequantizeLinear", names, ["f"], "dq", axis=1 if turned else 0, block_size=block
    )
    nodes = [weight, helper.make_node("MatMul", ["x", "t" if turned else "f"], ["y"], "product")]
    if turned:
        nodes.insert(1, helper.make_node("Transpose", ["f"], ["t"], "turn", perm=[1, 0]))
    stored_ = [array if turned else np.ascontiguousarray(array.T) for array in arrays]
    constants = dict(zip(names, stored_, strict=True))
    model = model_of(nodes, {"x": [3, steps]}, constants, opset=21)
    data = {"x": RNG.standard_normal((3, steps)).astype(np.float32)}
    imported = str(import_model(model).module)
    assert "relay.nn.blockwise_dense" in imported
    assert "relay.nn.matmul" not in imported
    codes, scales, *points = (array.astype(np.float64) for array in arrays)
    shift, scale = (
        np.repeat(each, block, 1)[:, :steps] for each in (sum(points, 0 * scales), scales)
    )
    want = {"y": (data["x"] @ ((codes - shift) * scale).T).astype(np.float32)}
    assert_agrees(run_imported(model, data), want, TOLERANCE)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.report().counts() == {"host": 1, "folded": 1 + turned}
        assert_agrees(executable.run(data), want, TOLERANCE)


def test_a_weight_in_blocks_that_is_an_output_too() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["f"], "dq", axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "f"], ["y"], "product"),
    ]
    constants = {
        "w": RNG.integers(-8, 8, (32, 5)).astype(np.int8),
        "s": RNG.uniform(0.01, 0.1, (2, 5)).astype(np.float32),
    }
    model = model_of(nodes, {"x": [3, 32]}, constants, ["y", "f"], opset=21)
    data = {"x": RNG.standard_normal((3, 32)).astype(np.float32)}
    weight = constants["w"] * np.repeat(constants["s"], 16, 0)
    want = {"y": data["x"] @ weight, "f": weight}
    assert_agrees(run_imported(model, data), want, TOLERANCE)
