"""Results that a backend may return, its failures, and `fallback`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pytest
from onnx import ModelProto
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.backends import (
    Backend,
    Blob,
    CodegenContext,
    GeneratedCode,
    NativeCode,
    RegionFunction,
    RegionModule,
    Rule,
    register_backend,
)
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ExecutionError, FallbackForbiddenError
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime


class _Relu(Backend):
    def op_rules(self) -> Mapping[str, Rule]:
        return {"nn.relu": lambda op: None}


@register_backend
class Interpreted(_Relu):
    """Module that runs relu in Python."""

    name = "interpreted"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        return Blob.of(Relus(len(region.function_type.outputs)))


class Relus(RegionModule):
    """Backend for regions of relu only."""

    def __init__(self, results: int):
        self.results = results

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(json.loads(data)["results"])

    def save(self) -> bytes:
        return json.dumps({"results": self.results}).encode()

    def get_source(self) -> str:
        return self.save().decode()

    def get_function(self, symbol: str) -> RegionFunction:
        def run(inputs: list[Any], outputs: list[Any]) -> None:
            assert len(outputs) == self.results
            if np.isnan(inputs[0]).any():
                raise ValueError("this card cannot digest NaN")
            for source, target in zip(inputs, outputs, strict=True):
                np.maximum(source, 0, out=target)

        return run


@register_backend
class Broken(_Relu):
    """Backend that accepts relu, then fails to compile it."""

    name = "failing"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        raise RuntimeError("out of registers")


@register_backend
class Mute(_Relu):
    """Backend that returns something other than code."""

    name = "mute"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        return "int main() {}"  # pyright: ignore[reportReturnType]


@register_backend
class Mixed(_Relu):
    """Backend whose native code has an op of another dialect."""

    name = "mixed"

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        arguments = ", ".join(f"%a{place} : !llvm.ptr" for place in range(4))
        text = f"""llvm.func @{region.sym_name.data}({arguments}) -> i32 {{
          %0 = arith.constant 0 : i32
          llvm.return %0 : i32
        }}"""
        return NativeCode(Parser(make_context(), text).parse_module())


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
    [
        ("failing", "out of registers"),
        ("mute", "returned a str"),
        ("mixed", "arith.constant in @mixed_main_0, accepted are ops of the llvm dialect"),
    ],
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


def test_source_of_a_region() -> None:
    with byoc_mlir.compile(chain(), targets=("interpreted",)) as executable:
        assert json.loads(executable.get_source("interpreted_main_0")) == {"results": 1}
        with pytest.raises(ExecutionError, match="there is source of interpreted_main_0"):
            executable.get_source("nowhere")
