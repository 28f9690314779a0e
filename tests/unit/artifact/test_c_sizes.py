"""Libraries with dynamic shapes, from C and from Python, against ONNX Runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import byoc_mlir
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.errors import ExportError, InvalidInputError
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.networks.encoder import encoder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime
from byoc_mlir.tools.byoc import main

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "encoder.h"

/* Lines of batch and seq, then the ids and the mask; the answers go to stdout. */
int main(void) {
  long long batch, seq;
  if (encoder_init(0) != ENCODER_OK) return 1;
  while (scanf("%lld %lld", &batch, &seq) == 2) {
    int64_t shape[3];
    size_t count = (size_t)(batch * seq), size;
    int64_t *ids = malloc(8 * count), *mask = malloc(8 * count);
    float *states;
    long long number;
    for (size_t i = 0; i < 2 * count; i++) {
      if (scanf("%lld", &number) != 1) return 2;
      (i < count ? ids : mask)[i % count] = number;
    }
    if (encoder_shapes(batch, seq, shape) != ENCODER_OK) return 3;
    if (encoder_shapes(batch, seq, NULL) != ENCODER_OK) return 4;
    size = (size_t)(shape[0] * shape[1] * shape[2]);
    states = malloc(sizeof *states * size);
    if (encoder_run(batch, seq, ids, mask, states) != ENCODER_OK) return 5;
    fwrite(states, sizeof *states, size, stdout);
    free(states);
    free(mask);
    free(ids);
  }
  if (encoder_shapes(-1, 4, NULL) != ENCODER_ERROR_SHAPE) return 6;
  fprintf(stderr, "%s", encoder_error());
  encoder_shutdown();
  return 0;
}
"""

SIZES = ((1, 1), (2, 16), (3, 37))
"""Batches and lengths."""


def _built(folder: Path) -> Path:
    (folder / "main.c").write_text(PROGRAM)
    strict = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    command = [*c_compiler(), *strict, "main.c", "encoder.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def _request(inputs: dict[str, np.ndarray]) -> str:
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    numbers = (*ids.shape, *ids.ravel(), *mask.ravel())
    return " ".join(map(str, numbers))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_c_program_runs_an_encoder_at_three_sizes(tmp_path: Path, threads: int) -> None:
    model = encoder(layers=1)
    with byoc_mlir.compile(model, threads=threads) as executable:
        header = executable.export_library(tmp_path / "encoder.so")
    assert "[batch, seq, 32]" in header.read_text()
    requests = [random_inputs(model, dims={"batch": b, "seq": s}) for b, s in SIZES]
    result = subprocess.run(
        [_built(tmp_path)],
        input="\n".join(map(_request, requests)).encode(),
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr.decode() == "batch is -1, accepted are 0 to 2147483647"
    answers = np.frombuffer(result.stdout, np.float32)
    ends = np.cumsum([batch * seq * 32 for batch, seq in SIZES])
    for (batch, seq), inputs, found in zip(SIZES, requests, np.split(answers, ends), strict=False):
        states = {"last_hidden_state": found.reshape(batch, seq, 32)}
        assert_agrees(states, run_onnxruntime(model, inputs))
    with byoc_mlir.load(tmp_path / "encoder.so") as loaded:
        assert [str(size) for size in loaded.inputs[0].shape] == ["batch", "seq"]
        for inputs in requests:
            assert_agrees(loaded.run(inputs), run_onnxruntime(model, inputs))
        with pytest.raises(InvalidInputError, match="attention_mask"):
            loaded.run({**requests[0], "attention_mask": requests[1]["attention_mask"]})
        assert "one program" in str(loaded.report())


def _equal() -> byoc_mlir.Executable:
    """Compiles a model whose sizes `n` and `m` are equal if the first inputs have equal ones."""
    b = GraphBuilder("equal", seed=0, opset=13)
    x, y = b.input("x", ["n", "status"]), b.input("y", ["m", "status"])
    b.output(b.op("Add", x, y), "sum", [None, None])
    return byoc_mlir.compile(b.build(), targets=(), threads=1)


def test_sizes_that_break_a_guard_are_refused(tmp_path: Path) -> None:
    with _equal() as executable:
        executable.run([np.ones((4, 3), np.float32), np.ones((4, 3), np.float32)])
        header = executable.export_library(tmp_path / "equal.so").read_text()
    assert "m == n" in header or "n == m" in header
    with byoc_mlir.load(tmp_path / "equal.so") as loaded:
        found = loaded.run([np.ones((7, 2), np.float32), np.ones((7, 2), np.float32)])
        np.testing.assert_array_equal(found["sum"], np.full((7, 2), 2, np.float32))
        with pytest.raises(InvalidInputError, match="no program for n = 5"):
            loaded.run([np.ones((5, 2), np.float32), np.ones((1, 2), np.float32)])


def test_a_model_with_regions_of_a_target_needs_shapes(tmp_path: Path) -> None:
    with (
        byoc_mlir.compile(encoder(layers=1), targets=("dnnl",)) as executable,
        pytest.raises(ExportError, match="shapes="),
    ):
        executable.export_library(tmp_path / "encoder.so")


def test_the_command_line_writes_a_library_that_takes_sizes(tmp_path: Path) -> None:
    path = tmp_path / "encoder.onnx"
    path.write_bytes(encoder(layers=1).SerializeToString())
    written = tmp_path / "encoder.so"
    assert main(["compile", str(path), "--output", str(written)]) == 0
    assert "int64_t batch, int64_t seq" in written.with_suffix(".h").read_text()
