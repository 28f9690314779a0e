"""Optional hooks of a backend: passes, all regions at once, packing.

Tests of the three kinds of code, and of failing backends, are in
`tests/unit/compiler/test_generated_code.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from ccompiler import CCompilerBackend
from examplejson.backend import ExampleJsonBackend
from examplejson.runtime import ExampleJsonModule
from mybackend import MyBackend
from onnx import ModelProto
from seed_graphs import compile_and_check
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import byoc_mlir
from byoc_mlir.backends import Blob, CodegenContext, CSource, Rule, register_backend
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.dialects.relay.elementwise import AbsOp, AddOp, NegativeOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.testing.networks import GraphBuilder


@dataclass(frozen=True)
class AbsToRelus(ModulePass):
    """Pass that rewrites `abs(x)` to `relu(x) + relu(-x)`."""

    name = "abs-to-relus"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in [inner for inner in op.walk() if isinstance(inner, AbsOp)]:
            negative = NegativeOp(found.operands[0])
            parts = ReluOp(found.operands[0]), ReluOp(negative.results[0])
            whole = AddOp(parts[0].results[0], parts[1].results[0])
            for new in (negative, *parts, whole):
                new.location = found.location
                assert found.parent is not None
                found.parent.insert_op_before(new, found)
            found.results[0].replace_all_uses_with(whole.results[0])
            found.detach()
            found.erase()


@dataclass(frozen=True)
class Crash(ModulePass):
    """Pass that empties the module, then fails."""

    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.body.block.ops):
            function.detach()
        raise ValueError("the simulator is not running")


@dataclass(frozen=True)
class Rename(ModulePass):
    """Pass that breaks the rules for region passes."""

    name = "rename"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            assert isinstance(function, FuncOp)
            function.sym_name = type(function.sym_name)("renamed")


class _Relus(CCompilerBackend):
    name: ClassVar[str] = "contract_relus"
    before: ClassVar[tuple[ModulePass, ...]] = ()
    inside: ClassVar[tuple[ModulePass, ...]] = ()

    def op_rules(self) -> Mapping[str, Rule]:
        return {"nn.relu": elementwise_f32, "negative": elementwise_f32, "add": elementwise_f32}

    def module_passes(self) -> Sequence[ModulePass]:
        return self.before

    def region_passes(self) -> Sequence[ModulePass]:
        return self.inside


@register_backend
class Before(_Relus):
    name = "contract_before"
    before = (AbsToRelus(),)


@register_backend
class BeforeCrash(_Relus):
    name = "contract_before_crash"
    before = (Crash(), AbsToRelus())


@register_backend
class Inside(_Relus):
    """Backend that accepts `abs`, too, which its pass rewrites, since its code generator does not
    know it.
    """

    name = "contract_inside"
    inside = (AbsToRelus(),)

    def op_rules(self) -> Mapping[str, Rule]:
        return {**super().op_rules(), "abs": elementwise_f32}

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        assert not any(isinstance(op, AbsOp) for region in regions for op in region.walk())
        return super().codegen_regions(regions, context)


@register_backend
class InsideCrash(_Relus):
    name = "contract_inside_crash"
    inside = (Crash(),)


@register_backend
class InsideRename(_Relus):
    name = "contract_inside_rename"
    inside = (Rename(),)


def _abs(*more: str) -> ModelProto:
    b = GraphBuilder("abs", seed=1)
    y = b.op("Abs", b.input("x", [3, 5]))
    for op_type in more:
        y = b.op(op_type, y)
    b.output(y, "out", [3, 5])
    return b.build()


def test_a_pass_before_partitioning() -> None:
    with compile_and_check(_abs(), "contract_before", fallback="forbid") as executable:
        assert [row.op_type for row in executable.report().placed("contract_before")] == ["Abs"]
        assert "fabsf" not in executable.get_source("contract_before_main_0")


def test_what_a_failing_pass_did_is_dropped_with_a_warning() -> None:
    with compile_and_check(_abs(), "contract_before_crash") as executable:
        (warning,) = executable.report().warnings
        assert "pass crash of backend 'contract_before_crash' failed: the simulator is" in warning
        assert executable.report().counts()["contract_before_crash"] == 1
    with pytest.raises(FallbackForbiddenError, match="the simulator is not running"):
        byoc_mlir.compile(_abs(), ("contract_before_crash",), fallback="forbid")


def test_a_pass_on_regions() -> None:
    with compile_and_check(_abs("Relu"), "contract_inside", fallback="forbid") as executable:
        assert executable.report().counts()["contract_inside"] == 2


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("contract_inside_crash", "the simulator is not running"),
        (
            "contract_inside_rename",
            "changed the name or the type of @contract_inside_rename_main_0",
        ),
    ],
)
def test_a_region_whose_pass_fails_goes_back_to_the_host(target: str, said: str) -> None:
    with compile_and_check(_abs("Relu"), target) as executable:
        assert not executable.report().placed(target)
        (relu,) = [row for row in executable.report() if row.op_type == "Relu"]
        assert said in relu.reason


@register_backend
class FewerAnswers(_Relus):
    """Backend that returns one result for all regions, and refuses the second one alone."""

    name = "contract_fewer"

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        if regions[0].sym_name.data.endswith("_1"):
            raise RuntimeError("out of tiles")
        return super().codegen_regions(regions[:1], context)


def test_only_the_regions_that_fail_go_back() -> None:
    model = _abs("Relu", "Exp", "Neg", "Exp", "Relu")
    with compile_and_check(model, "contract_fewer") as executable:
        placed = [row.op_type for row in executable.report().placed("contract_fewer")]
        reasons = {row.op_type: row.reason for row in executable.report().placed("host")}
    assert placed == ["Relu", "Relu"]
    assert "could not compile @contract_fewer_main_1: RuntimeError: out of" in reasons["Neg"]


@register_backend
class Speechless(_Relus):
    """Backend that fails without a message."""

    name = "contract_speechless"

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        raise AssertionError


def test_a_failure_without_a_word_is_told_by_its_place() -> None:
    with compile_and_check(_abs("Relu"), "contract_speechless") as executable:
        (relu,) = [row for row in executable.report() if row.op_type == "Relu"]
    assert re.search(r"AssertionError in \S*test_contract.py, line \d+", relu.reason)


def test_regions_with_one_source_share_one_library() -> None:
    with byoc_mlir.compile(_abs("Relu", "Erf", "Neg"), ("ccompiler",)) as executable:
        symbols = executable.program.library_symbols
    assert len(symbols) == 2
    assert len({symbol.library for symbol in symbols}) == 1


class CountedModule(ExampleJsonModule):
    """Module that counts how often it was loaded."""

    loaded = 0

    @classmethod
    def load(cls, data: bytes) -> CountedModule:
        cls.loaded += 1
        return cls(data.decode())


@register_backend
class Counted(ExampleJsonBackend):
    name = "contract_counted"

    def codegen_regions(self, regions: Sequence[FuncOp], context: CodegenContext) -> Sequence[Blob]:
        loader = f"{CountedModule.__module__}:CountedModule"
        return [replace(blob, loader=loader) for blob in super().codegen_regions(regions, context)]


def test_regions_with_one_blob_share_one_module() -> None:
    with compile_and_check(_abs("Relu", "Erf", "Relu"), "contract_counted") as executable:
        assert executable.report().counts()["contract_counted"] == 2
        assert CountedModule.loaded == 1


def test_packed_constants_replace_the_originals() -> None:
    b = GraphBuilder("conv", seed=2)
    b.output(b.relu(b.conv(b.input("x", [1, 3, 8, 8]), 5, 3)), "out", [1, 5, 8, 8])
    model = b.build()
    with compile_and_check(model, MyBackend.name, fallback="forbid") as executable:
        code = executable.program.code
    assert isinstance(code, ObjectCode)
    (weight, bias) = sorted(code.weights.values(), key=np.size, reverse=True)
    assert (weight.shape, bias.shape) == ((3, 3, 3, 5), (5,))
