"""Libraries of models split into segments, from C and from Python, against ONNX Runtime."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from helpers.models import parsed

import byoc_mlir
from byoc_mlir.artifact.toolchain import c_compiler
from byoc_mlir.errors import ExecutionError, ExportError, InvalidInputError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime
from byoc_mlir.tools.byoc import main

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Feeds: TypeAlias = dict[str, Array]

LOOP = """
#include <stdio.h>
#include <stdlib.h>
#include "decoder.h"

/* Lines of batch, bound and the start; the cache goes to stdout with its length. */
int main(void) {
  long long batch;
  float bound;
  if (decoder_init(0) != DECODER_OK) return 1;
  while (scanf("%lld %f", &batch, &bound) == 2) {
    int64_t shape[3], count = batch * 4;
    float *start = malloc(sizeof *start * (size_t)count), *last, *cache;
    for (int64_t i = 0; i < count; i++)
      if (scanf("%f", &start[i]) != 1) return 2;
    if (decoder_run(batch, start, &bound, &last, NULL, &cache, shape) != DECODER_OK) return 3;
    printf("%lld", (long long)shape[1]);
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++)
      printf(" %.9g", cache[i]);
    printf("\\n");
    decoder_free(last);
    decoder_free(cache);
    free(start);
  }
  if (decoder_run(-1, &bound, &bound, NULL, NULL, NULL, NULL) != DECODER_ERROR_USAGE) return 4;
  fprintf(stderr, "%s", decoder_error());
  decoder_shutdown();
  return 0;
}
"""


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _decoder(ends: str = "Less (sum, bound)") -> onnx.ModelProto:
    """Returns a decoder that goes on until the sum of squares of its outputs reaches `bound`."""
    return parsed(
        "(float[b, 1, 4] start, float bound) => (float[b, 1, 4] last, float[b, l, 4] out)",
        f"""batch = Shape <end = 1> (start) empty = Concat <axis = 0> (batch, none)
        cache0 = ConstantOfShape (empty) x0 = Tanh (start)
        last, cache = Loop (most, , x0, cache0) <body = body
            (int64 i, bool c, float[b, 1, 4] x, float[b, l, 4] cache)
            => (bool goes, float[b, 1, 4] x2, float[b, m, 4] kept) {{
            kept = Concat <axis = 1> (cache, x) product = MatMul (x, weight) x2 = Tanh (product)
            squares = Mul (kept, kept) sum = ReduceSum <keepdims = 0> (squares) goes = {ends} }}>
        out = Neg (cache)""",
        {
            "none": np.array([0, 4]),
            "weight": _numbers(4, 4, seed=3),
            "most": np.array(200),
        },
    )


def _asked(batch: int, bound: float) -> Feeds:
    start = _numbers(batch, 1, 4, seed=batch)
    return {"start": start, "bound": np.array(bound, np.float32)}


def test_a_c_program_runs_a_growing_loop_at_two_lengths(tmp_path: Path) -> None:
    model, requests = _decoder(), [_asked(2, 3.0), _asked(3, 20.0)]
    with byoc_mlir.compile(model, threads=1) as executable:
        with pytest.raises(ExportError, match="run it once on inputs of the usual kind"):
            executable.export_library(tmp_path / "decoder.so")
        executable.run(_asked(1, 2.0))
        header = executable.export_library(tmp_path / "decoder.so").read_text()
    assert "start: input 'start', float32 [b, 1, 4]" in header
    assert "out: output 'out', float32, 3 sizes" in header
    (tmp_path / "main.c").write_text(LOOP)
    strict = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    command = [*c_compiler(), *strict, "main.c", "decoder.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = [
        " ".join(map(str, (len(given["start"]), given["bound"], *given["start"].ravel())))
        for given in requests
    ]
    result = subprocess.run(
        [tmp_path / "main"],
        input="\n".join(lines),
        text=True,
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == "output 0 is a null pointer"
    lengths = set[int]()
    for given, line in zip(requests, result.stdout.splitlines(), strict=True):
        length, *numbers = line.split()
        lengths.add(int(length))
        found = np.array(numbers, np.float32).reshape(len(given["start"]), int(length), 4)
        assert_agrees({"out": found}, {"out": run_onnxruntime(model, given)["out"]})
    assert len(lengths) == 2
    with byoc_mlir.load(tmp_path / "decoder.so") as loaded:
        for given in requests:
            assert_agrees(loaded.run(given), run_onnxruntime(model, given))
        assert "Loop" in {row.op_type for row in loaded.report()}


_ROWS = """body (int64 i, bool c, float[2] s, float[l] kept)
    => (bool goes, float[2] s2, float[m] kept2, float[2] row) {
    s2 = Add (s, x) kept2 = Concat <axis = 0> (kept, s) total = ReduceMax <keepdims = 0> (s2)
    row = Neg (s2) goes = Less (total, bound) }"""

MODELS: dict[str, tuple[onnx.ModelProto, Feeds, list[Feeds]]] = {
    "nonzero": (
        parsed(
            "(float[n, 6] x) => (float[m] z, int64[2, m] places)",
            "p = Relu (x) places = NonZero (p) t = Transpose (places) z = GatherND (x, t)",
        ),
        {"x": _numbers(4, 6)},
        [{"x": _numbers(7, 6, seed=1)}, {"x": -np.ones((2, 6), np.float32)}],
    ),
    "boxes": (
        parsed(
            "(float[1, n, 4] boxes, float[1, 2, n] scores) => (float[1, k, 4] found)",
            """chosen = NonMaxSuppression (boxes, scores, most, overlap, least)
            places = Gather <axis = 1> (chosen, last) found = Gather <axis = 1> (boxes, places)""",
            {
                "most": np.array([5]),
                "overlap": np.array([0.5], np.float32),
                "least": np.array([0.3], np.float32),
                "last": np.array(2),
            },
        ),
        {
            "boxes": np.sort(np.abs(_numbers(1, 20, 4)), -1),
            "scores": _numbers(1, 2, 20, seed=1),
        },
        [
            {
                "boxes": np.sort(np.abs(_numbers(1, 33, 4, seed=2)), -1),
                "scores": _numbers(1, 2, 33, seed=3),
            }
        ],
    ),
    "values that are sizes": (
        parsed("(float[4, 6] x, int64[2] s) => (float[a, b] y)", "y = Reshape (x, s)"),
        {"x": _numbers(4, 6), "s": np.array([6, 4])},
        [{"x": _numbers(4, 6, seed=1), "s": np.array([2, 12])}],
    ),
    "what is collected": (
        parsed(
            "(float[2] x, float bound) => (float[2] y, float[l] kept, float[r, 2] rows,"
            " float[2] x2)",
            f"""y, kept, rows = Loop (, true, x, none) <body = {_ROWS}> x2 = Identity (x)""",
            {"true": np.array(True), "none": np.empty(0, np.float32)},
        ),
        {"x": np.array([1, 0.5], np.float32), "bound": np.array(4, np.float32)},
        [{"x": np.array([0.5, 1], np.float32), "bound": np.array(31, np.float32)}],
    ),
    "stages and a loop in a body": (
        parsed(
            "(float[n] x, float bound) => (float[k] y, int64[r] sizes)",
            """y, sizes = Loop (, true, x) <body = body (int64 i, bool c, float[l] s)
                => (bool goes, float[m] kept, int64 size) {
                p = Relu (s) places = NonZero (p) rows = Transpose (places)
                some = GatherND (s, rows)
                small = Loop (three, , some) <body = inner (int64 j, bool d, float[o] v)
                    => (bool d2, float[o] v2) { v2 = Mul (v, half) d2 = Identity (d) }>
                size = Size (small) kept = Concat <axis = 0> (s, x)
                total = ReduceSum <keepdims = 0> (kept) least = ReduceSum <keepdims = 0> (small)
                most = Add (total, least) goes = Less (most, bound) }>""",
            {"true": np.array(True), "three": np.array(3), "half": np.array(0.5, np.float32)},
        ),
        {"x": np.array([1, -0.5, 2], np.float32), "bound": np.array(9, np.float32)},
        [{"x": np.array([1, 2, -1, 3], np.float32), "bound": np.array(70, np.float32)}],
    ),
    "a number of iterations": (
        parsed(
            "(float[n] x, float number) => (float[k] y)",
            """count = Cast <to = 7> (number) y = Loop (count, , x) <body = body
                (int64 i, bool c, float[l] s) => (bool goes, float[m] kept) {
                kept = Concat <axis = 0> (s, x) goes = Identity (c) }>""",
        ),
        {"x": np.ones(2, np.float32), "number": np.array(3, np.float32)},
        [
            {"x": np.ones(3, np.float32), "number": np.array(0, np.float32)},
            {"x": np.ones(2, np.float32), "number": np.array(40, np.float32)},
        ],
    ),
    "two loops": (
        parsed(
            "(float[2] x, float bound) => (float[l] both)",
            f"""y, first, rows = Loop (, true, x, none) <body = {_ROWS}>
            y2, second, rows2 = Loop (three, , y, none) <body = {_ROWS}>
            both = Concat <axis = 0> (first, second)""",
            {"true": np.array(True), "none": np.empty(0, np.float32), "three": np.array(3)},
        ),
        {"x": np.array([1, 0.5], np.float32), "bound": np.array(4, np.float32)},
        [{"x": np.array([0.5, 1], np.float32), "bound": np.array(31, np.float32)}],
    ),
}


class _Library:
    """Exported model, called as C programs do."""

    def __init__(self, path: Path, executable: byoc_mlir.Executable):
        copy = shutil.copy(path, path.with_name("called.so"))  # `load` maps the file itself
        self._library = ctypes.CDLL(str(copy))
        self._executable = executable
        self._call("init", 0)

    def run(self, inputs: Feeds, like: Feeds) -> Feeds:
        """Returns the outputs, of the types and ranks of `like`."""
        infos = self._executable.inputs
        sizes = {
            size: inputs[info.name].shape[axis]
            for info in infos
            for axis, size in enumerate(info.shape)
            if not isinstance(size, int)
        }
        arrays = [np.ascontiguousarray(inputs[info.name]) for info in infos]
        found = {name: (ctypes.c_void_p(), (ctypes.c_int64 * 8)()) for name in like}
        self._call(
            "run",
            *map(ctypes.c_int64, sizes.values()),
            *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
            *(one for data, shape in found.values() for one in (ctypes.byref(data), shape)),
        )
        outputs: Feeds = {}
        for name, (data, shape) in found.items():
            sizes_of = list(shape)[: like[name].ndim]
            content = ctypes.string_at(
                data.value or 0, int(np.prod(sizes_of)) * like[name].itemsize
            )
            outputs[name] = np.frombuffer(content, like[name].dtype).reshape(sizes_of)
            self._library.model_free(data)
        return outputs

    def _call(self, function: str, *arguments: Any) -> None:
        if getattr(self._library, f"model_{function}")(*arguments):
            self._library.model_error.restype = ctypes.c_char_p
            raise ExecutionError(self._library.model_error().decode())


@pytest.mark.parametrize("name", MODELS)
def test_stages_agree(name: str, tmp_path: Path) -> None:
    model, first, others = MODELS[name]
    with byoc_mlir.compile(model, threads=1) as executable:
        executable.run(first)
        executable.export_library(tmp_path / "model.so")
        library = _Library(tmp_path / "model.so", executable)
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        for given in (first, *others):
            wanted = run_onnxruntime(model, given)
            assert_agrees(library.run(given, wanted), wanted)
            assert_agrees(loaded.run(given), wanted)


def test_what_no_program_is_for(tmp_path: Path) -> None:
    model, first, _ = MODELS["values that are sizes"]
    with byoc_mlir.compile(model, threads=1) as executable:
        executable.run(first)
        executable.export_library(tmp_path / "model.so")
        library = _Library(tmp_path / "model.so", executable)
    inferred = {**first, "s": np.array([-1, 4])}
    with pytest.raises(ExecutionError, match="a size is -1, accepted are 0 and more"):
        library.run(inferred, run_onnxruntime(model, first))
    with (
        byoc_mlir.load(tmp_path / "model.so") as loaded,
        pytest.raises(InvalidInputError, match="no program for sizes below 0, found in s"),
    ):
        loaded.run(inferred)
    wrong = {**first, "s": np.array([5, 5])}
    with pytest.raises(ExecutionError, match="the model was compiled for sizes of which"):
        library.run(wrong, run_onnxruntime(model, first))


def test_an_object_file_and_names(tmp_path: Path) -> None:
    model, first, _ = MODELS["nonzero"]
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        executable.run(first)
        executable.export_object(tmp_path / "model.o")
    listed = subprocess.run(
        ["nm", "--defined-only", "-g", "model.o"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    functions = ("init", "run", "free", "shutdown", "error")
    assert names == {f"model_{function}" for function in functions}


def test_the_command_runs_a_model_before_it_writes_it(tmp_path: Path) -> None:
    model, first, others = MODELS["nonzero"]
    onnx.save(model, tmp_path / "nonzero.onnx")
    library = tmp_path / "nonzero.so"
    command = ["compile", str(tmp_path / "nonzero.onnx"), "--output", str(library)]
    assert main(command) == 1
    np.savez(tmp_path / "inputs.npz", allow_pickle=False, **first)
    assert main([*command, "--inputs", str(tmp_path / "inputs.npz")]) == 0
    with byoc_mlir.load(library) as loaded:
        assert_agrees(loaded.run(others[0]), run_onnxruntime(model, others[0]))


def test_a_stage_for_some_sizes_is_refused(tmp_path: Path) -> None:
    model = parsed(
        "(float[n] x) => (float[1, 1, a, b] y)",
        """p = NonZero (x) scale = Cast <to = 1> (p) sum = ReduceMax <keepdims = 0> (scale)
        both = Concat <axis = 0> (ones, sums) sums = Reshape (sum, one)
        image = Reshape (x, square) y = Resize (image, , both)""",
        {
            "ones": np.ones(3, np.float32),
            "one": np.array([1]),
            "square": np.array([1, 1, 1, -1]),
        },
    )
    executable = byoc_mlir.compile(model, targets=())
    executable.run({"x": np.ones(4, np.float32)})
    with pytest.raises(ExportError, match=r"segment 3 of 3 is compiled for each set of sizes"):
        executable.export_library(tmp_path / "model.so")


def test_strings_are_refused(tmp_path: Path) -> None:
    model = parsed(
        "(string[n] x) => (string[n] y)", 'y = StringNormalizer <case_change_action = "LOWER"> (x)'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        executable = byoc_mlir.compile(model)
    executable.run({"x": np.array(["a"], object)})
    with pytest.raises(ExportError, match=r"nodes on strings .* run in Python"):
        executable.export_library(tmp_path / "model.so")
