"""Work with a cache, in which faults are injected."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

import byoc_mlir
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
    """Returns models with small constants, large ones, symbolic sizes, and several segments."""
    texts = {
        "small": "(float[4,8] x) => (float[4,2] y) { m = MatMul (x, w) y = Softmax (m) }",
        "large": "(float[4,8] x) => (float[4,1024] y) { m = MatMul (x, w) y = Relu (m) }",
        "symbolic": "(float[N,8] x) => (float[N,8] y) { e = Exp (x) y = Add (e, x) }",
        "segments": """(float[N,8] x) => (float[M,K] y) {
            r = Relu (x) n = NonZero (r) f = Cast <to = 1> (n) y = Exp (f) }""",
    }
    found = {name: onnx.parser.parse_model(f"{_HEADER} g {text}") for name, text in texts.items()}
    rng = np.random.default_rng(0)
    for name, columns in _WEIGHTS.items():
        weights = rng.standard_normal((8, columns)).astype(np.float32)
        found[name].graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return found


def scenarios() -> Mapping[str, Scenario]:
    """Returns all work in this process."""
    known = models()
    return {
        **{name: partial(compiled, model) for name, model in known.items()},
        "again": partial(_again, known["large"]),
        "exported": partial(_exported, known["large"]),
        "object": partial(_object, known["segments"]),
        "commands": partial(_commands, known["large"]),
        "tuned": partial(_tuned, known["small"]),
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
