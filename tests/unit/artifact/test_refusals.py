"""Models and files that cannot be exported or loaded are refused with a typed error and advice."""

from __future__ import annotations

import _ctypes
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from artifact_files import (
    HASH_BYTES,
    change_document,
    elementwise_model,
    rewrite,
    run_python,
)
from helpers.models import parsed
from onnx import numpy_helper

import byoc_mlir
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.errors import (
    ExecutionError,
    ExportError,
    IncompatibleArtifactError,
    InvalidArtifactError,
    ToolchainError,
)
from byoc_mlir.runtime.files.container import FOOTER_BYTES
from byoc_mlir.testing.networks import NETWORKS

MODEL = NETWORKS["mlp3"]()
WEIGHT = numpy_helper.to_array(MODEL.graph.initializer[0]).tobytes()

LOAD = """
import sys
import byoc_mlir
try:
    byoc_mlir.load(sys.argv[1])
except byoc_mlir.errors.ByocError as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.so"
    byoc_mlir.compile(MODEL, targets=("dnnl",)).export_library(path)
    return path


@pytest.fixture
def artifact(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(exported, tmp_path / "model.so"))


def sections(path: Path) -> dict[str, int]:
    """Returns the offset of each part of an artifact."""
    size = path.stat().st_size
    footer = size - FOOTER_BYTES
    with path.open("rb") as file:
        file.seek(footer)
        head = file.read(FOOTER_BYTES)
        file.seek(40)
        section_table = int.from_bytes(file.read(8), "little")
    document = int.from_bytes(head[16:24], "little")
    weights = path.read_bytes().find(WEIGHT)
    assert 0 < weights < section_table < document < footer
    return {
        "elf": 0,
        "code": 4096,
        "weights": weights,
        "section table": section_table,
        "document": document,
        "footer": footer,
        "version": footer + 8,
        "offset": footer + 16,
        "length": footer + 24,
        "hash": size - HASH_BYTES,
        "end": size,
    }


def test_a_truncated_file(artifact: Path) -> None:
    data = artifact.read_bytes()
    for start in sections(artifact).values():
        for end in {start, start + 1, max(start - 1, 0)}:
            artifact.write_bytes(data[:end])
            if end < len(data):
                with pytest.raises(
                    InvalidArtifactError, match=r"truncated.*export the model again"
                ):
                    byoc_mlir.load(artifact)
    artifact.write_bytes(data)
    byoc_mlir.load(artifact).close()


def test_a_file_with_something_behind_it(artifact: Path) -> None:
    with artifact.open("ab") as file:
        file.write(bytes(1))
    with pytest.raises(InvalidArtifactError, match="does not end in the footer"):
        byoc_mlir.load(artifact)


def test_an_altered_byte_in_every_section(artifact: Path) -> None:
    data = artifact.read_bytes()
    starts = sections(artifact)
    for start in starts.values():
        for place in {start, start + 5, len(data) - 1}:
            if place >= len(data):
                continue
            changed = bytearray(data)
            changed[place] ^= 0x10
            artifact.write_bytes(changed)
            with pytest.raises(InvalidArtifactError, match=r"export|again"):
                byoc_mlir.load(artifact)


def test_foreign_files(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a model" * 100)
    onnx.save(elementwise_model(), tmp_path / "model.onnx")
    for path in (text, tmp_path / "model.onnx", Path(_ctypes.__file__)):
        with pytest.raises(InvalidArtifactError, match="is not a compiled model"):
            byoc_mlir.load(path)
    with pytest.raises(InvalidArtifactError, match="cannot be read"):
        byoc_mlir.load(tmp_path / "missing.so")


def test_another_format_version(artifact: Path) -> None:
    data = bytearray(artifact.read_bytes())
    data[-FOOTER_BYTES + 8] = 99
    rewrite(artifact, bytes(data[:-HASH_BYTES]))
    with pytest.raises(InvalidArtifactError, match="format version 99, this byoc_mlir reads"):
        byoc_mlir.load(artifact)


def test_a_processor_without_a_feature(artifact: Path) -> None:
    change_document(artifact, lambda document: document["cpu"]["features"].append("avx9000"))
    with pytest.raises(IncompatibleArtifactError, match=r"avx9000.*compile the model here"):
        byoc_mlir.load(artifact)


def test_another_architecture(artifact: Path) -> None:
    change_document(artifact, lambda document: document["cpu"].update(architecture="vax"))
    with pytest.raises(IncompatibleArtifactError, match="is for vax"):
        byoc_mlir.load(artifact)


def test_a_newer_library(artifact: Path) -> None:
    change_document(artifact, lambda document: document["libraries"][0].update(version=[3, 999, 0]))
    with pytest.raises(IncompatibleArtifactError, match=r"needed is 3\.999\.0.*BYOC_DNNL_LIBRARY"):
        byoc_mlir.load(artifact)


def test_the_users_library_is_not_there(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOC_DNNL_LIBRARY", "/nowhere/libdnnl.so.3")
    with pytest.raises(IncompatibleArtifactError, match="/nowhere/libdnnl"):
        byoc_mlir.load(artifact)


def test_the_users_library_is_another_one(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOC_DNNL_LIBRARY", "libm.so.6")
    with pytest.raises(
        IncompatibleArtifactError, match=r"libm\.so\.6 has no function dnnl_version"
    ):
        byoc_mlir.load(artifact)


def _drop(document: dict[str, Any]) -> None:
    del document["regions"]


def _change_type(document: dict[str, Any]) -> None:
    document["state_slots"] = "many"


def _negative(document: dict[str, Any]) -> None:
    document["arena_bytes"] = -1


def _object_dtype(document: dict[str, Any]) -> None:
    document["inputs"][0]["dtype"] = "object"


def _unknown_dtype(document: dict[str, Any]) -> None:
    document["inputs"][0]["dtype"] = "__class__"


def _extra(document: dict[str, Any]) -> None:
    document["surprise"] = 1


def _huge(document: dict[str, Any]) -> None:
    document["state_slots"] = 1 << 40


def _no_path(document: dict[str, Any]) -> None:
    document["libraries"][0]["path"] = "\0"


@pytest.mark.parametrize(
    "change",
    [_drop, _change_type, _negative, _object_dtype, _unknown_dtype, _extra, _huge, _no_path],
)
def test_forged_metadata(artifact: Path, change: Callable[[dict[str, Any]], None]) -> None:
    change_document(artifact, change)
    with pytest.raises(InvalidArtifactError):
        byoc_mlir.load(artifact)


def test_a_document_that_is_not_json(artifact: Path) -> None:
    data = artifact.read_bytes()
    offset = int.from_bytes(data[-FOOTER_BYTES + 16 : -FOOTER_BYTES + 24], "little")
    rewrite(artifact, data[:offset] + b"[" + data[offset + 1 : -HASH_BYTES])
    with pytest.raises(InvalidArtifactError, match="JSON"):
        byoc_mlir.load(artifact)


def test_an_import_that_nobody_defines(artifact: Path) -> None:
    change_document(artifact, lambda document: document["externals"].append("frobnicate"))
    with pytest.raises(ExecutionError, match="frobnicate"):
        byoc_mlir.load(artifact)
    change_document(artifact, lambda document: document.update(externals=[]))
    with pytest.raises(ExecutionError, match="imports the unknown function"):
        byoc_mlir.load(artifact)


@pytest.mark.parametrize("loader", ["acme_npu.runtime:Module", "", "..:x", "json:no_such_class"])
def test_a_missing_backend(loader: str, tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    with pytest.warns(UserWarning, match="Python"):
        byoc_mlir.compile(elementwise_model(), targets=("examplejson",)).export_library(path)

    def rename(document: dict[str, Any]) -> None:
        document["python_regions"][0]["loader"] = loader

    change_document(path, rename)
    with pytest.raises(ExecutionError, match=rf"'{re.escape(loader)}'.*install the backend"):
        byoc_mlir.load(path)


def test_no_refusal_ends_the_process(artifact: Path) -> None:
    data = artifact.read_bytes()
    artifact.write_bytes(data[:-FOOTER_BYTES])
    assert run_python(LOAD, artifact) == "InvalidArtifactError\n"


def test_no_c_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=())
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="apt-get install gcc"):
        executable.export_library(tmp_path / "model.so")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ToolchainError, match="'no-such-compiler', which CC names"):
        executable.export_library(tmp_path / "model.so")
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=())
    monkeypatch.setenv("CC", "false")
    with pytest.raises(ToolchainError, match=r"`false .* failed"):
        executable.export_library(tmp_path / "model.so")
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_without_a_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=())
    tools, output = tmp_path / "tools", tmp_path / "output"
    tools.mkdir()
    output.mkdir()
    linker = tools / "ld"
    linker.write_text("#!/bin/sh\necho there is no linker >&2\nexit 1\n")
    linker.chmod(0o755)
    monkeypatch.setenv("CC", f"{c_compiler()[0]} -B{tools}/")
    for write in (executable.export_library, executable.export_object):
        with pytest.raises(ToolchainError, match=r"(?s)failed:\n  there is no linker.*binutils"):
            write(output / "model")
    assert list(output.iterdir()) == []


def test_no_objcopy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=())
    for tool in ("cc", "as", "ld"):
        found = shutil.which(tool)
        assert found
        os.symlink(found, tmp_path / tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="'objcopy' cannot be run"):
        executable.export_object(tmp_path / "model.o")


def symbolic_model() -> onnx.ModelProto:
    return parsed("(float[n, 3] x) => (float[n, 3] y)", "y = Relu (x)")


def test_regions_of_a_target_need_shapes(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(symbolic_model(), targets=("dnnl",))
    with pytest.raises(ExportError, match=r"x: float32\[n, 3\] as shapes="):
        executable.export_library(tmp_path / "model.so")
    executable.export_library(tmp_path / "model.so", shapes={"x": (5, 3)})
    loaded = byoc_mlir.load(tmp_path / "model.so")
    array = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_array_equal(loaded.run({"x": array})["y"], np.maximum(array, 0))


def staged_model() -> onnx.ModelProto:
    nodes = "places = NonZero (x) y = Cast <to = 1> (places)"
    return parsed("(float[4] x) => (float[1, m] y)", nodes)


def test_models_that_run_in_stages_are_not_exported(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(staged_model(), targets=(), fallback="allow")
    with pytest.raises(ExportError, match="segments"):
        executable.export_library(tmp_path / "model.so")


def test_an_object_file_has_no_python_in_it(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(elementwise_model(), targets=("examplejson",))
    with pytest.raises(ExportError, match=r"examplejson_main_0 runs in Python.*ExampleJsonModule"):
        executable.export_object(tmp_path / "model.o")


def test_a_loaded_model_is_not_exported_again(artifact: Path, tmp_path: Path) -> None:
    with (
        byoc_mlir.load(artifact) as loaded,
        pytest.raises(ExportError, match="copy that file"),
    ):
        loaded.export_library(tmp_path / "again.so")


@pytest.mark.parametrize("name", ["", "1st", "a-b", "byoc_x"])
def test_names_that_c_does_not_take(tmp_path: Path, name: str) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=())
    with pytest.raises(ExportError, match="identifiers of C"):
        executable.export_library(tmp_path / "model.so", name=name)
