"""What a backend may answer, what happens when it fails, and what fallback does."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import Backend, Blob, CodegenContext, GeneratedCode, Rule, register_backend
from byoc_mlir.errors import ExecutionError, FallbackForbiddenError
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime


class _Relu(Backend):
    def op_rules(self) -> Mapping[str, Rule]:
        return {"nn.relu": lambda op: None}


@register_backend
class Interpreted(_Relu):
    """Runs relu in Python."""

    name = "interpreted"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        document = {"results": len(region.function_type.outputs)}
        return Blob(json.dumps(document).encode(), f"{__name__}:load_relus")


def load_relus(data: bytes) -> Callable[[list[Any], list[Any]], None]:
    expected = json.loads(data)["results"]

    def run(inputs: list[Any], outputs: list[Any]) -> None:
        assert len(outputs) == expected
        if np.isnan(inputs[0]).any():
            raise ValueError("this card cannot digest NaN")
        for source, target in zip(inputs, outputs, strict=True):
            np.maximum(source, 0, out=target)

    return run


@register_backend
class Broken(_Relu):
    """Accepts relu, then fails to compile it."""

    name = "failing"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        raise RuntimeError("out of registers")


@register_backend
class Mute(_Relu):
    """Returns something that is no code."""

    name = "mute"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        return "int main() {}"  # pyright: ignore[reportReturnType]


def chain() -> ModelProto:
    b = GraphBuilder("chain", seed=5)
    x = b.input("x", [3, 7])
    y = b.relu(b.add(x, b.normal((3, 7), 1.0, "shift")))
    b.output(b.add(y, y), "out", [3, 7])
    return b.build()


def test_blob_runs_in_python() -> None:
    model = chain()
    with byoc_mlir.compile(model, targets=("interpreted",)) as executable:
        assert executable.report().counts() == {"host": 2, "interpreted": 1, "removed": 1}
        inputs = random_inputs(model, seed=2)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-6)


def test_an_exception_in_a_blob_reaches_the_caller_and_the_next_run_is_fine() -> None:
    model = chain()
    with byoc_mlir.compile(model, targets=("interpreted",)) as executable:
        bad = {"x": np.full((3, 7), np.nan, np.float32)}
        with pytest.raises(
            ExecutionError, match=r"@?interpreted_main_0.*cannot digest NaN"
        ) as info:
            executable.run(bad)
        assert isinstance(info.value.__cause__, ValueError)
        inputs = random_inputs(model, seed=2)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-6)


@pytest.mark.parametrize(
    ("target", "reason"),
    [("failing", "out of registers"), ("mute", "returned a str")],
)
def test_a_region_that_does_not_compile_goes_back_to_the_host(target: str, reason: str) -> None:
    model = chain()
    with byoc_mlir.compile(model, targets=(target,)) as executable:
        report = executable.report()
        assert report.counts() == {"host": 3, "removed": 1}
        (row,) = [row for row in report if row.op_type == "Relu"]
        assert "compile_failed" in row.reason
        assert reason in row.reason
        inputs = random_inputs(model, seed=2)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-6)


def test_forbidden_fallback_names_the_region_that_failed() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"failing.*@failing_main_0.*out of registers"):
        byoc_mlir.compile(chain(), targets=("failing",), fallback="forbid")


def test_forbidden_fallback_lists_every_node() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"2 node\(s\)") as info:
        byoc_mlir.compile(chain(), targets=("interpreted",), fallback="forbid")
    assert str(info.value).count("(Add)") == 2


def test_heavy_nodes_on_the_host_warn_by_default() -> None:
    b = GraphBuilder("product", seed=1)
    x = b.input("x", [2, 4])
    b.output(b.op("MatMul", x, b.normal((4, 3), 1.0, "w")), "out", [2, 3])
    model = b.build()
    with pytest.warns(UserWarning, match=r"heavy node\(s\) stay on the host"):
        byoc_mlir.compile(model, targets=("interpreted",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        byoc_mlir.compile(model, targets=("interpreted",), fallback="allow")
        byoc_mlir.compile(model, targets=())
