"""Work with a cache, in which faults are injected."""

from __future__ import annotations

import io
import os
import pickle
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import onnx
from onnx import numpy_helper

import byoc_mlir
from byoc_mlir.compiler.cache.folder import FOLDER_VARIABLE
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.tune import tune_model
from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.tools.byoc import main

Scenario: TypeAlias = Callable[[Path], list[Any]]
"""Function of a folder for a cache, beside which `files` is one for files; returns arrays, or
raises a typed error."""

FILES = "files"
_HEADER = '<ir_version: 8, opset_import: ["": 17]>'
_WEIGHTS = {"small": 2, "large": 1024}
"""Columns of the weights of a model."""


class CommandError(ByocError):
    """Error that a command has reported."""


def models() -> dict[str, onnx.ModelProto]:
    """Returns models that differ in their constants, shapes, segments, loops and types."""
    texts = {
        "small": "(float[4,8] x) => (float[4,2] y) { m = MatMul (x, w) y = Softmax (m) }",
        "large": "(float[4,8] x) => (float[4,1024] y) { m = MatMul (x, w) y = Relu (m) }",
        "symbolic": "(float[N,8] x) => (float[N,8] y) { e = Exp (x) y = Add (e, x) }",
        "segments": """(float[N,8] x) => (float[M,K] y) {
            r = Relu (x) n = NonZero (r) f = Cast <to = 1> (n) y = Exp (f) }""",
        "convolution": """(float[4,8] x) => (float[1,2,4,8] y) {
            s = Constant <value_ints = [1, 1, 4, 8]> () r = Reshape (x, s)
            k = Constant <value = float[2,1,3,1] {1, 2, 3, 4, 5, 6}> ()
            y = Conv <pads = [1, 0, 1, 0]> (r, k) }""",
        "bytes": """(float[4,8] x) => (float[4,8] y) {
            q, s, z = DynamicQuantizeLinear (x) y = DequantizeLinear (q, s, z) }""",
        "strings": """(float[4,8] x) => (float[4,8] y) {
            s = Cast <to = 8> (x) y = Cast <to = 1> (s) }""",
        "loop": """(float[4,8] x) => (float[K,4,8] y) {
            n = Constant <value = int64 {3}> () t = Constant <value = bool {1}> ()
            v, y = Loop (n, t, x) <body = b (int64 i, bool c, float[4,8] u)
                => (bool d, float[4,8] w, float[4,8] r) {
                    d = Identity (c) w = Add (u, u) r = Exp (u) }> }""",
    }
    found = {name: onnx.parser.parse_model(f"{_HEADER} g {text}") for name, text in texts.items()}
    rng = np.random.default_rng(0)
    for name, columns in _WEIGHTS.items():
        weights = rng.standard_normal((8, columns)).astype(np.float32)
        found[name].graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return found


def scenarios(folder: Path) -> Mapping[str, Scenario]:
    """Returns all work in this process; a folder receives the files of models."""
    known = models()
    small, large = folder / "small.onnx", folder / "large.onnx"
    onnx.save(known["small"], small)
    onnx.save(known["large"], large, save_as_external_data=True, location="d", size_threshold=0)
    known = models()  # the tensors are in the file now
    return {
        **{name: partial(compiled, model) for name, model in known.items()},
        "again": partial(_again, known["large"]),
        "exported": partial(_exported, known["large"]),
        "object": partial(_object, known["segments"]),
        "commands": partial(_commands, known["large"]),
        "tuned": partial(_tuned, known["small"]),
        "session": partial(_session, large),
        "pickled": partial(_pickled, known["symbolic"]),
        "dumped": partial(_dumped, known["small"]),
        "compiled": partial(_compiled_by_command, small),
        "viewed": partial(_viewed, small),
        "threads": partial(_in_threads, known["symbolic"], known["convolution"]),
    }


def compiled(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Compiles a model with a cache, and runs it on one or three shapes."""
    with _compiled(model, cache) as executable:
        return _answers(executable, model)


def in_a_helper(path: Path, cache: Path) -> list[Any]:
    """Compiles a model's file in a helper, and runs it before and after it is compiled."""
    model = onnx.load(path)
    with _compiled(path, cache) as executable:
        answers = _answers(executable, model)
        executable.wait()
        return answers + _answers(executable, model)


def _again(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Compiles a model, and takes it from the cache, as a second process does."""
    return compiled(model, cache) + compiled(model, cache)


def _exported(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Exports a shared object, and loads it."""
    path = cache.with_name(FILES) / "model.so"
    with _compiled(model, cache) as executable:
        executable.export_library(path)
    with byoc_mlir.load(path) as loaded:
        return _answers(loaded, model)


def _object(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Exports an object file with several segments."""
    with _compiled(model, cache) as executable:
        answers = _answers(executable, model)  # a segment is compiled when it runs
        executable.export_object(cache.with_name(FILES) / "model.o")
        return answers


def _commands(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Shows and clears the cache with `byoc cache`, and fills it again."""
    answers = compiled(model, cache)
    for more in ("--json", "--clear"):
        _command("cache", str(cache), more)
    return answers + compiled(model, cache)


def _tuned(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Tunes a model for a moment, and compiles it with the choices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune_model(Request(model, targets=(), threads=1, cache=cache), seconds=0.05)
    return compiled(model, cache)


def _session(path: Path, cache: Path) -> list[Any]:
    """Runs a session on a file whose tensors are in a file of their own."""
    with _used_by_default(cache), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(byoc_mlir.InferenceSession(path).run(None, {"x": _input(4)}))


def _pickled(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Compiles a model, and runs its copy from a pickle."""
    with _compiled(model, cache) as executable:
        _answers(executable, model)
        with pickle.loads(pickle.dumps(executable)) as copy:
            return _answers(copy, model)


def _dumped(model: onnx.ModelProto, cache: Path) -> list[Any]:
    """Compiles a model, and writes its IR after each pass."""
    folder = cache.with_name(FILES) / "ir"
    with byoc_mlir.compile(model, threads=1, cache=cache, dump_ir=folder) as executable:
        return _answers(executable, model)


def _compiled_by_command(path: Path, cache: Path) -> list[Any]:
    """Compiles a file with `byoc compile`, writes its IR, and loads the result."""
    folder = cache.with_name(FILES)
    made = folder / "made.so"
    with _used_by_default(cache):
        more = ("--threads", "1", "--dump-dir", str(folder / "ir"))
        _command("compile", str(path), "-o", str(made), *more)
    with byoc_mlir.load(made) as loaded:
        return _answers(loaded, onnx.load(path))


def _viewed(path: Path, cache: Path) -> list[Any]:
    """Writes a model's report as a page, its profile as a trace, and its outputs as a file."""
    folder = cache.with_name(FILES)
    outputs = folder / "outputs.npz"
    with _used_by_default(cache):
        _command("view", str(path), "-o", str(folder / "page.html"), "--threads", "1")
        trace = ("--runs", "1", "--trace", str(folder / "trace.json"))
        _command("profile", str(path), "--threads", "1", *trace)
        _command("run", str(path), "--threads", "1", "--output", str(outputs))
    with np.load(outputs) as stored:
        return [stored["y"]]


@contextmanager
def _used_by_default(cache: Path) -> Generator[None]:
    """Sets the folder of the cache for calls without one."""
    with patch.dict(os.environ, {FOLDER_VARIABLE: str(cache)}):
        yield


def _in_threads(one: onnx.ModelProto, other: onnx.ModelProto, cache: Path) -> list[Any]:
    """Compiles two models at once, one in another thread."""
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(compiled, other, cache)
        return compiled(one, cache) + beside.result()


def _command(*line: str) -> None:
    """Runs a command of `byoc`.

    Raises:
        CommandError: it reports an error.
        AssertionError: it reports a defect.
    """
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        status = main(line)
    assert "InternalError" not in errors.getvalue(), errors.getvalue()
    if status:
        raise CommandError(errors.getvalue())


def _compiled(model: onnx.ModelProto | Path, cache: Path) -> Executable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return byoc_mlir.compile(model, targets=None, threads=1, cache=cache)


def _answers(executable: Executable, model: onnx.ModelProto) -> list[Any]:
    is_symbolic = bool(model.graph.input[0].type.tensor_type.shape.dim[0].dim_param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            executable.run({"x": _input(rows)})["y"].copy()
            for rows in ((4, 6, 1) if is_symbolic else (4,))
        ]


def _input(rows: int) -> Any:
    return np.linspace(-2, 2, rows * 8, dtype=np.float32).reshape(rows, 8)
