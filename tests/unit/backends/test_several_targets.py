"""Two and three backends in one graph, in the order of preference, each with its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import pytest
from ccompiler import CCompilerBackend
from onnx import ModelProto
from seed_graphs import check_in_new_process, compile_and_check
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import (
    CodegenContext,
    CSource,
    Option,
    Rule,
    Setting,
    register_backend,
)
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.errors import BackendError
from byoc_mlir.testing.networks import GraphBuilder

EXAMPLES = ("ccompiler", "examplejson", "dnnl_json")


@register_backend
class Mine(CCompilerBackend):
    """Backend for ReLUs, and in the mode `fast` for exponentials, too; records its options."""

    name = "mine"
    options: ClassVar[Mapping[str, Option]] = {
        "mode": Option("exact", "how it computes", ("exact", "fast")),
        "tiles": Option(4, "tiles of the card"),
        "scale": Option(1.0, "what results are multiplied by"),
        "trace": Option(False, "whether it writes a trace"),
    }
    seen: ClassVar[list[Mapping[str, Setting]]] = []

    def op_rules(self) -> Mapping[str, Rule]:
        said = None if self.settings["mode"] == "fast" else "only in the mode 'fast'"
        return {"nn.relu": elementwise_f32, "exp": lambda op: said}

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        self.seen.append(dict(self.settings))
        return super().codegen_regions(regions, context)


def exp_and_relu() -> ModelProto:
    b = GraphBuilder("exp_and_relu", seed=1)
    b.output(b.op("Exp", b.relu(b.input("x", [4, 6]))), "out", [4, 6])
    return b.build()


def mixed() -> ModelProto:
    """Returns ops that only one of the built-in backends takes, between some that all take."""
    b = GraphBuilder("mixed", seed=2)
    x, y = b.input("x", [4, 6]), b.input("y", [4, 6])
    total = b.op("Sub", b.op("Exp", b.add(x, y)), x)  # Exp: ccompiler
    dense = b.op("Gemm", total, b.normal((6, 6), 0.4), transB=1)  # dnnl_json
    b.output(b.op("Sigmoid", b.relu(b.op("Mul", dense, y))), "out", [4, 6])
    return b.build()


@pytest.mark.parametrize("targets", list(permutations(EXAMPLES, 2)), ids="-".join)
def test_of_two_backends_the_first_gets_what_both_take(targets: tuple[str, str]) -> None:
    with compile_and_check(mixed(), *targets) as executable:
        placed = {row.op_type: row.placement for row in executable.report()}
        taken_by_all = {placed[op_type] for op_type in ("Add", "Sub", "Mul", "Relu")}
        assert taken_by_all == {targets[0]}
        assert placed["Exp"] == ("ccompiler" if "ccompiler" in targets else "host")
        assert placed["Gemm"] == ("dnnl_json" if "dnnl_json" in targets else "host")


def test_three_backends_one_library_and_a_new_process(tmp_path: Path) -> None:
    model = mixed()
    targets = ("examplejson", "ccompiler", "dnnl_json")
    with compile_and_check(model, *targets, fallback="forbid") as executable:
        placed = executable.report().placed
        assert [{row.op_type for row in placed(target)} for target in targets] == [
            {"Add", "Sub", "Mul", "Relu"},
            {"Exp"},
            {"Gemm", "Sigmoid"},
        ]
        check_in_new_process(executable, model, tmp_path)


@pytest.mark.parametrize(
    ("target", "taken"),
    [("mine", ["Relu"]), ("mine{mode=exact}", ["Relu"]), ("mine{mode=fast}", ["Relu", "Exp"])],
)
def test_rules_may_depend_on_options(target: str, taken: list[str]) -> None:
    with compile_and_check(exp_and_relu(), target) as executable:
        report = executable.report()
    assert [row.op_type for row in report.placed("mine")] == taken
    for row in report.placed("host"):
        assert "only in the mode 'fast'" in row.reason


def test_each_target_gets_its_own_options() -> None:
    Mine.seen.clear()
    targets = ("mine{mode=fast tiles=2 scale=0.5 trace=on}", "onnxruntime{optimise=off}")
    with compile_and_check(mixed(), *targets, fallback="forbid") as executable:
        assert executable.report().counts().keys() <= {"mine", "onnxruntime", "removed"}
    assert Mine.seen == [{"mode": "fast", "tiles": 2, "scale": 0.5, "trace": True}]


def test_options_may_stand_beside_the_targets() -> None:
    Mine.seen.clear()
    options = {"mine": {"mode": "fast", "scale": 2, "trace": True}}
    byoc_mlir.compile(
        exp_and_relu(), ("mine{tiles=7}",), fallback="allow", backend_options=options
    ).close()
    assert Mine.seen[0] == {"mode": "fast", "tiles": 7, "scale": 2.0, "trace": True}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mine{mod=fast}", r"'mine' has no option 'mod'; it accepts mode=exact \(exact or fast\)"),
        ("ccompiler{mode=fast}", "'ccompiler' has no option 'mode'; it has none"),
        ("mine{mode=slow}", r"option 'mode' .* is slow, accepted is exact or fast \(how it"),
        ("mine{tiles=many}", "option 'tiles' .* is many, accepted is an integer"),
        ("mine{tiles=2.5}", "option 'tiles' .* is 2.5, accepted is an integer"),
        ("mine{scale=x}", "option 'scale' .* is x, accepted is a number"),
        ("mine{trace=maybe}", "option 'trace' .* is maybe, accepted is true or false"),
        ("mine{mode=fast mode=exact}", "cannot be read; .* each option once"),
        ("mine{mode}", "target 'mine{mode}' cannot be read; expected a backend's name"),
        ("mine{mode=fast", "cannot be read"),
    ],
)
def test_options_that_are_not_accepted(target: str, said: str) -> None:
    with pytest.raises(BackendError, match=said):
        byoc_mlir.compile(exp_and_relu(), (target,))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mine": {"mode": "fast"}}, "'mode' of backend 'mine' is given in the target and in"),
        ({"dnnl": {"mode": "fast"}}, "options for backend 'dnnl', which is none of the targets"),
        ({"mine": {"tiles": True}}, "option 'tiles' of backend 'mine' is true, accepted is an int"),
        ({"mine": {"trace": "1"}}, "option 'trace' .* is 1, accepted is true or false"),
    ],
)
def test_options_beside_the_targets_that_are_not_accepted(
    options: Mapping[str, Mapping[str, Setting]], said: str
) -> None:
    with pytest.raises(BackendError, match=said):
        byoc_mlir.compile(exp_and_relu(), ("mine{mode=fast}",), backend_options=options)


def test_a_backend_is_named_once() -> None:
    with pytest.raises(BackendError, match="name a backend twice"):
        byoc_mlir.compile(exp_and_relu(), ("mine{mode=fast}", "mine"))
