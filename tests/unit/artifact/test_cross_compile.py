"""Programs for other machines: their contents, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.compiler.cross import program_for, write_program
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import BackendError, ByocError, ExportError, ToolchainError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution.complete import loaded
from byoc_mlir.runtime.plan import leaf_of
from byoc_mlir.runtime.program import ObjectCode, Program
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder
from byoc_mlir.testing.networks.encoder import encoder
from byoc_mlir.tools.byoc import main

ARM, X86 = "aarch64-linux-gnu", "x86_64-linux-gnu"
_MACHINES = {ARM: 183, X86: 62}
"""Machine numbers in the header of an ELF file."""

needs_x86 = pytest.mark.skipif(Cpu.machine().architecture != "x86_64", reason="runs code of x86-64")


def parsed(text: str) -> ModelProto:
    """Parses a model in ONNX's syntax."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')


def integer_product() -> ModelProto:
    """Returns an int8 GEMM with constant weights."""
    model = parsed("(uint8[3, 16] x) => (int32[3, 8] y) { y = MatMulInteger(x, w) }")
    weights = np.random.default_rng(0).integers(-128, 128, (16, 8), np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def convolution() -> ModelProto:
    """Returns a convolution for which there are built-in kernels."""
    b = GraphBuilder("convolution", seed=0)
    b.output(b.relu(b.conv(b.input("x", [1, 32, 14, 14]), 32, 3)), "y", [1, 32, 14, 14])
    return b.build()


def staged() -> ModelProto:
    """Returns a model whose shapes depend on computed values."""
    return parsed(
        "(float[4] x) => (float[1, N] y) { places = NonZero(x) y = Cast<to = 1>(places) }"
    )


def request(
    model: ModelProto, targets: tuple[str, ...] = (), folder: Path | None = None
) -> Request:
    """Returns a request to compile a model for two threads."""
    return Request(model, targets=targets, threads=2, prune="off", dump_ir=folder)


def compiled(model: ModelProto, triple: str, folder: Path | None = None) -> Program:
    """Compiles a model without symbolic sizes for a target and returns its program."""
    program = program_for(request(model, folder=folder), triple)
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("triple", [ARM, X86])
def test_files_are_for_the_machine(triple: str) -> None:
    program = compiled(NETWORKS["mnist"](), triple)
    assert isinstance(program.code, ObjectCode)
    for file in program.code.files:
        assert file[:4] == b"\x7fELF"
        assert int.from_bytes(file[18:20], "little") == _MACHINES[triple]
    assert program.cpu.architecture == triple.partition("-")[0]
    assert not program.cpu.optional_features


@pytest.mark.parametrize("make", [convolution, integer_product])
def test_no_instruction_of_this_processor_is_in_the_code(tmp_path: Path, make) -> None:
    compiled(make(), ARM, tmp_path)
    written, optimised = (
        (tmp_path / name).read_text() for name in ("model.ll", "model-optimised.ll")
    )
    assert f'target triple = "{ARM}"' in optimised
    assert "llvm.x86" not in written + optimised
    assert "<8 x float>" not in written
    assert "<16 x " not in written


def test_what_this_thread_compiles_afterwards_is_for_this_machine() -> None:
    compiled(integer_product(), ARM)
    x = np.arange(48, dtype=np.uint8).reshape(3, 16)
    with byoc_mlir.compile(integer_product(), targets=(), threads=1) as executable:
        assert executable.program.cpu == Cpu.host()
        (expected,) = ReferenceEvaluator(integer_product()).run(None, {"x": x})
        np.testing.assert_array_equal(executable.run({"x": x})["y"], np.asarray(expected))


@needs_x86
def test_code_for_every_x86_computes_the_same() -> None:
    model = NETWORKS["mnist"]()
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"image": x})
    with Executable(loaded(leaf_of(compiled(model, X86)))) as executable:
        (found,) = executable.run({"image": x}).values()
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_sizes_are_arguments() -> None:
    program = program_for(request(encoder(layers=1)), ARM)
    assert program.sizes is not None
    assert program.cpu.architecture == "aarch64"
    shapes = {"input_ids": (1, 5), "attention_mask": (1, 5)}
    fixed = program_for(request(encoder(layers=1)), ARM, shapes)
    assert fixed.sizes is None
    assert [spec.shape for spec in fixed.inputs] == [(1, 5), (1, 5)]


def test_code_for_another_machine_is_not_run_here(tmp_path: Path) -> None:
    program = compiled(integer_product(), ARM)
    with pytest.raises(ByocError, match="is for aarch64, this machine is"):
        program.cpu.check("the model")


@pytest.mark.parametrize("triple", ["", "aarch64", "sparc-sun-solaris", "aarch64-apple-darwin"])
def test_triples_that_are_refused(tmp_path: Path, triple: str) -> None:
    with pytest.raises(ByocError, match=r"accepted are .*aarch64-linux-gnu"):
        byoc_mlir.cross_compile(integer_product(), tmp_path / "model.o", triple)


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "aarch64-linux-musl"])
def test_other_triples_of_the_same_machine(triple: str) -> None:
    assert compiled(integer_product(), triple).cpu.architecture == "aarch64"


def test_backends_are_refused() -> None:
    with pytest.raises(BackendError, match=r"not for aarch64-linux-gnu: leave out ccompiler"):
        program_for(request(integer_product(), ("ccompiler",)), ARM)


@pytest.mark.parametrize("suffix", ["", ".onnx"])
def test_other_files_are_refused(tmp_path: Path, suffix: str) -> None:
    program = compiled(integer_product(), ARM)
    with pytest.raises(ExportError, match=r"must end in \.so .* or \.o"):
        write_program(program, tmp_path / f"model{suffix}", ARM)


def test_models_of_several_programs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="shapes in it depend on computed values"):
        byoc_mlir.cross_compile(staged(), tmp_path / "model.o", ARM)


def test_a_missing_cross_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(integer_product(), ARM)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"no 'aarch64-linux-gnu-gcc'; install"):
        write_program(program, tmp_path / "model.o", ARM)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(integer_product(), path)
    assert main(["compile", str(path), "--triple", ARM]) == 0
    assert "object code" in capsys.readouterr().out
    assert main(["compile", str(path), "--triple", ARM, "--targets", "ccompiler"]) == 1
    assert "leave out ccompiler" in capsys.readouterr().err
    assert main(["compile", str(path), "--triple", "z80"]) == 1
    assert "accepted are" in capsys.readouterr().err
    calibration = str(tmp_path / "calibration.json")
    assert main(["compile", str(path), "--triple", ARM, "--write-calibration", calibration]) == 1
    assert "pass one of them" in capsys.readouterr().err
