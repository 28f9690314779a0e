"""Lengths and positions that are known at run time only, and that a run refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.testing.networks import DecoderSizes, decoder

SIZES = DecoderSizes(layers=1)


def step_inputs(new: int, last: int, total: int) -> dict[str, Any]:
    shape = (1, SIZES.shared_heads, SIZES.capacity, SIZES.head_size)
    names = [f"past_key_values.0.{name}" for name in ("key", "value")]
    return {
        "input_ids": np.zeros((1, new), np.int64),
        "seqlens_k": np.array([last], np.int32),
        "total_sequence_length": np.asarray(total, np.int32),
        **{name: np.zeros(shape, np.float32) for name in names},
    }


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_a_cache_that_is_full(targets: tuple[str, ...]) -> None:
    with byoc_mlir.compile(decoder(sizes=SIZES), targets=targets) as executable:
        full = executable.run(step_inputs(1, 79, 80))["logits"]
        with pytest.raises(InvalidInputError) as refused:
            executable.run(step_inputs(1, 80, 81))
        assert refused.value.node == "/model.layers.0/GroupQueryAttention"
        assert "total_sequence_length is 81; accepted are 0 to 80" in str(refused.value)
        room = r"room behind .* seqlens_k \+ 1 - sequence_length, is -1; accepted are 0 or more"
        with pytest.raises(InvalidInputError, match=room):
            executable.run(step_inputs(1, 80, 80))
        np.testing.assert_array_equal(executable.run(step_inputs(1, 79, 80))["logits"], full)


def scatter() -> ModelProto:
    """Returns a branch that writes three new rows to each of a cache's two entries of eight
    rows."""
    return parsed(
        "(bool b, float[2, 8, 4] c, float[2, 3, 4] u, int64[2] w) => (float[2, 8, 4] y)",
        """[if] y = If (b) <
            then_branch = then () => (float[2, 8, 4] t) { [put] t = TensorScatter (c, u, w) },
            else_branch = else () => (float[2, 8, 4] e) { e = Identity (c) }
        >""",
        opset=24,
    )


def test_places_of_a_tensor_scatter_in_a_branch() -> None:
    cache, update = np.zeros((2, 8, 4), np.float32), np.ones((2, 3, 4), np.float32)

    def inputs(*places: int, chosen: bool = True) -> dict[str, Any]:
        return {"b": np.array(chosen), "c": cache, "u": update, "w": np.array(places, np.int64)}

    with byoc_mlir.compile(scatter(), targets=()) as executable:
        got = executable.run(inputs(5, 1))["y"]
        assert got[0, :, 0].tolist() == [0] * 5 + [1] * 3
        for wrong, bad in (((0, 6), 6), ((-1, 0), -1)):
            with pytest.raises(InvalidInputError, match=f"write_indices is {bad}; .* 0 to 5"):
                executable.run(inputs(*wrong))
            assert not executable.run(inputs(*wrong, chosen=False))["y"].any()


C_PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include "model.h"
static float cache[MODEL_C_ELEMENTS], update[MODEL_U_ELEMENTS], out[MODEL_Y_ELEMENTS];
int main(void) {
  const uint8_t yes = 1;
  const int64_t good[] = {0, 5}, bad[] = {0, 6};
  if (model_init(0) || model_run(&yes, cache, update, good, out)) return 1;
  if (model_run(&yes, cache, update, bad, out) != MODEL_ERROR_VALUE) return 2;
  fputs(model_error(), stdout);
  if (model_run(&yes, cache, update, good, out)) return 3;
  model_shutdown();
  return 0;
}
"""


def test_c_programs_are_told(tmp_path: Path) -> None:
    with byoc_mlir.compile(scatter(), targets=()) as executable:
        executable.export_library(tmp_path / "model.so")
    (tmp_path / "main.c").write_text(C_PROGRAM)
    command = [*c_compiler(), "-Wall", "-Werror", "main.c", "model.so", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout.decode()
    assert "an element of write_indices is 6; accepted are 0 to 5" in told
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        shapes = [[int(size) for size in info.shape] for info in loaded.inputs]
        arrays = [np.zeros(s, info.dtype) for s, info in zip(shapes, loaded.inputs, strict=True)]
        arrays[0][...], arrays[3][...] = True, 9
        with pytest.raises(InvalidInputError, match="write_indices is 9"):
            loaded.run(arrays)


def test_a_category_that_is_unknown() -> None:
    attributes = "cats_int64s = [3, -1, 4], zeros = 0"
    node = f"[encode] y = ai.onnx.ml.OneHotEncoder <{attributes}> (x)"
    with byoc_mlir.compile(parsed("(int64[2] x) => (float[2, 3] y)", node), targets=()) as encode:
        encoded = encode.run({"x": np.array([4, -1])})["y"]
        np.testing.assert_array_equal(encoded, [[0, 0, 1], [0, 1, 0]])
        with pytest.raises(InvalidInputError, match="one of cats_int64s is 0; accepted"):
            encode.run({"x": np.array([4, 5])})


@pytest.mark.parametrize("rows", [3, "rows"])
def test_lengths_beyond_a_sequence(rows: int | str) -> None:
    signature = f"(float[{rows}, 2] x, int64[2] lengths) => (float[{rows}, 2] y)"
    model = parsed(signature, "[back] y = ReverseSequence (x, lengths)")
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    with byoc_mlir.compile(model, ()) as executable:
        y = executable.run({"x": x, "lengths": np.array([3, 1])})["y"]
        np.testing.assert_array_equal(y, [[4, 1], [2, 3], [0, 5]])
        for lengths in ([4, 1], [1, -1]):
            with pytest.raises(InvalidInputError, match="sequence_lens") as refused:
                executable.run({"x": x, "lengths": np.array(lengths)})
            assert refused.value.node == "back"
