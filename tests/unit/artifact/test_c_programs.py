"""Exported models in the C program of docs/artifacts.md: the same bits as in Python."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_files import elementwise_model, inputs_for

import byoc_mlir
from byoc_mlir.artifact import tables
from byoc_mlir.artifact.export import export_library
from byoc_mlir.artifact.names import model_name, unique_identifiers
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.onednn.library import ISA_VARIABLES
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.plan import leaf_of
from byoc_mlir.runtime.system.cpu import Cpu, max_level
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs

DOCS = Path(__file__).parents[3] / "docs" / "artifacts.md"
PROCESSORS = DOCS.with_name("processors.md")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror")


def example() -> str:
    """Returns the C program of the docs."""
    return DOCS.read_text().split("```c\n")[1].split("```")[0]


def build(folder: Path, source: str, *arguments: str) -> Path:
    """Compiles `main.c` in a folder."""
    (folder / "main.c").write_text(source)
    search = "-Wl,-rpath,$ORIGIN"
    command = [*c_compiler(), *STRICT, "main.c", *arguments, search, "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def run(program: Path, data: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a program in its folder, with oneDNN limited to this process's instructions."""
    level = max_level()
    if level is not None:
        environment = {ISA_VARIABLES[0]: onednn_name(level), **environment}
    return subprocess.run(
        [program],
        input=data,
        capture_output=True,
        check=False,
        cwd=program.parent,
        env={**os.environ, **environment},
    )


def onednn_name(level: str) -> str:
    """Returns oneDNN's name of a level, by the table of docs/processors.md."""
    (row,) = (line for line in PROCESSORS.read_text().splitlines() if f"| `{level}` |" in line)
    return row.split("|")[-2].strip(" `")


def check_example(program: Path, executable: Executable, inputs: dict[str, Any]) -> None:
    (array,) = inputs.values()
    result = run(program, array.tobytes())
    assert result.returncode == 0, result.stderr.decode()
    (expected,) = executable.run(inputs).values()
    found = np.frombuffer(result.stdout, np.float32).reshape(expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_the_example_calls_a_shared_object(tmp_path: Path, targets: tuple[str, ...]) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=targets)
    assert executable.export_library(tmp_path / "model.so") == tmp_path / "model.h"
    program = build(tmp_path, example(), "model.so")
    check_example(program, executable, inputs_for(executable))


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_the_example_links_an_object_file(tmp_path: Path, targets: tuple[str, ...]) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=targets)
    executable.export_object(tmp_path / "model.o")
    program = build(tmp_path, example(), "model.o", "-lm", "-ldl", "-pthread")
    check_example(program, executable, inputs_for(executable))


def test_a_residual_network(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(NETWORKS["resnet18"](image=64), targets=("dnnl",))
    executable.export_library(tmp_path / "model.so")
    source = example().replace("MODEL_INPUT", "MODEL_IMAGE").replace("MODEL_OUTPUT", "MODEL_LOGITS")
    check_example(build(tmp_path, source, "model.so"), executable, inputs_for(executable))


def test_the_header_is_cplusplus_too(tmp_path: Path) -> None:
    byoc_mlir.compile(NETWORKS["mlp3"](), targets=()).export_library(tmp_path / "model.so")
    command = [*c_compiler(), "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", "model.h"]
    subprocess.run(command, cwd=tmp_path, check=True)


TWO_MODELS = """
#include <stdio.h>
#include "first.h"
#include "second.h"
static float input[FIRST_INPUT_ELEMENTS], one[FIRST_OUTPUT_ELEMENTS], two[SECOND_OUTPUT_ELEMENTS];
int main(void) {
  if (first_init(1) || second_init(2) || first_init(1)) return 1;
  first_shutdown();
  if (fread(input, sizeof input, 1, stdin) != 1) return 2;
  if (first_run(input, one) || second_run(input, two)) return 3;
  first_shutdown();
  if (first_run(input, one) != FIRST_ERROR_USAGE) return 4;
  fprintf(stderr, "%s", first_error());
  if (first_init(-1) != FIRST_ERROR_USAGE || second_run(0, two) != SECOND_ERROR_USAGE) return 5;
  if (first_init(0) || first_run(input, one)) return 6;
  fwrite(one, sizeof one, 1, stdout);
  fwrite(two, sizeof two, 1, stdout);
  first_shutdown();
  second_shutdown();
  return 0;
}
"""


@pytest.mark.parametrize("suffix", [".so", ".o"])
def test_two_models_in_one_program(tmp_path: Path, suffix: str) -> None:
    expected: list[np.ndarray[Any, Any]] = []
    feed: dict[str, np.ndarray[Any, Any]] = {}
    for seed, name in enumerate(("first", "second")):
        executable = byoc_mlir.compile(NETWORKS["mlp3"](seed=seed))
        feed = inputs_for(executable)
        expected.append(executable.run(feed)["output"])
        write = executable.export_library if suffix == ".so" else executable.export_object
        write(tmp_path / f"{name}{suffix}")
    files = [f"first{suffix}", f"second{suffix}", "-lm", "-ldl", "-pthread"]
    result = run(build(tmp_path, TWO_MODELS, *files), feed["input"].tobytes())
    assert result.returncode == 0
    assert result.stderr == b"init was not called"
    found = np.frombuffer(result.stdout, np.float32).reshape(2, 1, 10)
    np.testing.assert_array_equal(found, np.stack(expected))


THREADS = """
#include <pthread.h>
#include <string.h>
#include "model.h"
static float input[MODEL_INPUT_ELEMENTS], expected[MODEL_OUTPUT_ELEMENTS];
static void *work(void *unused) {
  float output[MODEL_OUTPUT_ELEMENTS];
  for (int i = 0; i < 200; i++)
    if (model_run(input, output) || memcmp(output, expected, sizeof output)) return input;
  return unused;
}
int main(void) {
  pthread_t threads[4];
  int wrong = 0;
  for (int i = 0; i < MODEL_INPUT_ELEMENTS; i++) input[i] = (float)(i % 7) - 3;
  if (model_init(0) || model_run(input, expected)) return 1;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += result != 0;
  }
  model_shutdown();
  return wrong;
}
"""


def test_threads_of_a_c_program_run_one_model_at_once(tmp_path: Path) -> None:
    byoc_mlir.compile(NETWORKS["mlp3"]()).export_library(tmp_path / "model.so")
    assert run(build(tmp_path, THREADS, "model.so", "-pthread")).returncode == 0


INIT = """
#include <stdio.h>
#include "model.h"
int main(void) {
  int status = model_init(0);
  printf("%s", model_error());
  return status;
}
"""


def test_a_library_that_is_missing_or_wrong(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=("dnnl",))
    executable.export_library(tmp_path / "model.so")
    program = build(tmp_path, INIT, "model.so")
    assert run(program).returncode == 0
    missing = run(program, BYOC_DNNL_LIBRARY="/nowhere/libdnnl.so.3")
    assert missing.returncode == 3
    assert b"/nowhere/libdnnl.so.3" in missing.stdout
    assert b"name another one in BYOC_DNNL_LIBRARY" in missing.stdout
    foreign = run(program, BYOC_DNNL_LIBRARY="libm.so.6")
    assert foreign.returncode == 3
    assert b"libm.so.6 has no function dnnl_version" in foreign.stdout


def test_a_library_is_found_beside_the_model(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), targets=("dnnl",))
    program = executable.program
    dnnl = program.libraries[0]
    elsewhere = replace(dnnl, path=Path("/nowhere") / dnnl.path.name)
    moved = replace(program, libraries=(elsewhere, *program.libraries[1:]))
    export_library(leaf_of(moved), tmp_path / "model.so", None)
    built = build(tmp_path, INIT, "model.so")
    (tmp_path / dnnl.path.name).symlink_to(dnnl.path)
    assert run(built).returncode == 0


def test_a_library_that_is_too_old(tmp_path: Path) -> None:
    program = byoc_mlir.compile(NETWORKS["mlp3"](), targets=("dnnl",)).program
    newer = replace(program.libraries[0], version=(3, 999, 0))
    changed = replace(program, libraries=(newer, *program.libraries[1:]))
    export_library(leaf_of(changed), tmp_path / "model.so", None)
    result = run(build(tmp_path, INIT, "model.so"))
    assert result.returncode == 3
    assert b"needed is 3.999.0 or a later 3.x" in result.stdout


def test_a_processor_without_a_feature(tmp_path: Path) -> None:
    program = byoc_mlir.compile(NETWORKS["mlp3"](), targets=()).program
    cpu = replace(program.cpu, features=(*program.cpu.features, "avx9000"))
    export_library(leaf_of(replace(program, cpu=cpu)), tmp_path / "model.so", None)
    result = run(build(tmp_path, INIT, "model.so"))
    assert result.returncode == 2
    assert b"lacks the processor feature avx9000" in result.stdout


def test_a_region_that_runs_in_python(tmp_path: Path) -> None:
    executable = byoc_mlir.compile(elementwise_model(), targets=("examplejson",))
    with pytest.warns(UserWarning, match="Python"):
        executable.export_library(tmp_path / "model.so")
    result = run(build(tmp_path, INIT, "model.so"))
    assert result.returncode == 4
    assert b"region examplejson_main_0 runs in Python" in result.stdout


ELEMENTWISE = """
#include <stdio.h>
#include "model.h"
static float x[MODEL_X_ELEMENTS], y[MODEL_Y_ELEMENTS], out[MODEL_OUT_ELEMENTS];
int main(void) {
  for (int i = 0; i < MODEL_X_ELEMENTS; i++) x[i] = (float)i - 10, y[i] = 0.5f * (float)i;
  if (model_init(0) || model_run(x, y, out)) return 1;
  fwrite(out, sizeof out, 1, stdout);
  model_shutdown();
  return 0;
}
"""


@pytest.mark.parametrize("suffix", [".so", ".o"])
def test_a_region_of_c_source_travels_inside(tmp_path: Path, suffix: str) -> None:
    executable = byoc_mlir.compile(elementwise_model(), targets=("ccompiler",), fallback="forbid")
    write = executable.export_library if suffix == ".so" else executable.export_object
    write(tmp_path / f"model{suffix}")
    files = [f"model{suffix}", "-lm", "-ldl", "-pthread"]
    result = run(build(tmp_path, ELEMENTWISE, *files))
    index = np.arange(24, dtype=np.float32)
    expected = np.maximum(index - 10 + 0.5 * index, 0) * 0.5 * index
    np.testing.assert_allclose(np.frombuffer(result.stdout, np.float32), expected, rtol=1e-6)


def test_names_of_tensors_become_identifiers() -> None:
    names = ["images:0", "int", "2x", "images/0", "", "日本", "linux"]
    found = unique_identifiers(names)
    assert found == ["images_0", "int_", "n2x", "images_0_2", "tensor", "tensor_2", "linux_"]
    assert model_name("libresnet-50") == "resnet_50"


def test_shared_objects_export_nothing_but_the_functions(tmp_path: Path) -> None:
    byoc_mlir.compile(NETWORKS["mlp3"]()).export_library(tmp_path / "model.so")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", "model.so"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    symbols = {line.split()[-1] for line in listed.stdout.splitlines()}
    functions = {"model_init", "model_run", "model_shutdown", "model_error"}
    assert symbols == {*functions, "byoc_artifact"}


def test_weights_in_a_section_of_large_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks the section that linkers place last, so that code need not reach across it."""
    monkeypatch.setattr(tables, "_LARGE_BYTES", 0)
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, targets=()) as executable:
        expected = executable.run(inputs)
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        assert_agrees(loaded.run(inputs), expected, 0.0)
    is_x86 = Cpu.host().architecture == "x86_64"
    assert (b".lrodata" in (tmp_path / "model.so").read_bytes()) == is_x86
