"""The kit passes good backends, and fails others with the reason."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from ccompiler import CCompilerBackend
from numpy_backend import numpy_backend
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends import Backend, CodegenContext, CSource, Option, Rule
from byoc_mlir.backends.region import elementwise_f32, only_f32
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard
from byoc_mlir.testing import run_conformance
from byoc_mlir.testing.conformance import ConformanceReport, Sample
from byoc_mlir.testing.conformance.__main__ import main
from byoc_mlir.testing.conformance.accuracy import error_of
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder


def _backend(kit_name: str, rules: Mapping[str, Rule], **members: object) -> type[Backend]:
    """Returns `ccompiler` under another name and with other rules."""
    more = {"name": kit_name, "op_rules": lambda self: rules, **members}
    return type(kit_name, (CCompilerBackend,), more)


def _tried(backend: type[Backend] | str, **options: object) -> ConformanceReport:
    return run_conformance(backend, **{"networks": {}, **options})  # pyright: ignore


FINITE = frozenset({"dnnl_json", "dnnl_c", "onnxruntime{optimise=off}", "dnnl"})
"""Backends that guarantee nothing for NaN and infinities, since their libraries lose some."""

BUILT_IN = {
    "ccompiler": ("add", "exp", "nn.relu"),
    "examplejson": ("subtract", "nn.relu"),
    "mybackend": ("mybackend.conv2d_bias_relu",),
    "dnnl_json": ("nn.conv2d", "tanh", "dnnl_json.dense_bias_relu"),
    "dnnl_c": ("nn.dense", "multiply", "dnnl_c.conv2d_bias_relu"),
    "onnxruntime{optimise=off}": ("nn.matmul", "mean", "where", "cast", "concatenate"),
    "dnnl": ("nn.dense",),
}


@pytest.mark.parametrize("target", BUILT_IN)
def test_built_in_backends_pass(target: str) -> None:
    report = _tried(target, only=BUILT_IN[target], finite=target in FINITE)
    assert report.passed, str(report)
    assert {outcome.subject for outcome in report.outcomes} <= set(BUILT_IN[target])
    statuses = {outcome.status for outcome in report.outcomes}
    assert {"offloaded", "refused"} <= statuses, str(report)


@pytest.mark.parametrize(
    ("target", "subject", "said"),
    [
        ("mybackend", "mybackend.conv2d_bn_relu", "no graph made from the pattern"),
        ("reference", "onnx_node", "there are no samples"),
    ],
)
def test_untested_is_not_passed(target: str, subject: str, said: str) -> None:
    report = _tried(target, only=(subject,))
    assert not report.passed
    assert not report.failures
    (outcome,) = report.untested
    assert said in outcome.detail
    assert f"UNTESTED {subject}" in str(report)
    assert _tried(target, only=(subject,), known_untested=(subject,)).passed


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float32])
def test_results_without_elements_have_no_error(dtype: type[np.generic]) -> None:
    nothing = np.zeros((0, 3), dtype)
    assert error_of(nothing, nothing) == 0
    assert error_of(np.zeros((3, 0), dtype), nothing) == math.inf


def test_the_summary_counts_nodes_kinds_and_work() -> None:
    networks = {"mlp3": NETWORKS["mlp3"]()}
    report = run_conformance("ccompiler", only=("nn.relu",), networks=networks)
    (row,) = report.coverage
    # Three dense layers with bias; ReLU behind two of them.
    assert (row.network, row.nodes, row.kinds, row.regions) == ("mlp3", (2, 8), (1, 3), 2)
    assert 0 < row.work[0] < row.work[1]
    assert row.error < 1e-6
    text = str(report)
    for part in ("backend 'ccompiler': passed", "2 of 8, 25 %", "1 of 3, 33 %", "estimated work"):
        assert part in text


def test_wrong_numbers() -> None:
    def wrong(
        self: CCompilerBackend, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        answers = CCompilerBackend.codegen_regions(self, regions, context)
        return [
            replace(answer, source=answer.source.replace("tanhf", "erff")) for answer in answers
        ]

    backend = _backend("kit_wrong", {"tanh": elementwise_f32}, codegen_regions=wrong)
    b = GraphBuilder("one_tanh", seed=1)
    b.output(b.op("Tanh", b.input("x", [5, 9])), "out", [5, 9])
    report = run_conformance(backend, networks={"one_tanh": b.build()})
    tried = [outcome for outcome in report.failures if outcome.subject == "tanh"]
    assert {outcome.subject for outcome in report.failures} == {"tanh", "one_tanh"}
    labels = [outcome.label for outcome in tried]
    assert labels[:2] == ["float32 [2, 4, 9, 8]", "float32 [2, 4, 9, 8], twice in a row"]
    assert all("accepted is" in outcome.detail for outcome in tried)
    assert "accepted is 7.7e-06" in tried[0].detail
    assert tried[0].error > 0.01
    assert "FAILED tanh (float32 [3, 8]): largest error" in str(report)


def test_claims_what_it_cannot_compile() -> None:
    backend = _backend("kit_overclaims", {"sigmoid": elementwise_f32, "add": only_f32})
    failures = _tried(backend).failures
    sigmoids = [outcome.detail for outcome in failures if outcome.subject == "sigmoid"]
    assert len(sigmoids) > 3
    assert all("kit_overclaims could not compile @kit_overclaims_main_0" in s for s in sigmoids)
    # Broadcasts are accepted and computed as if shapes were equal: numbers show it.
    sums = [outcome.detail for outcome in failures if outcome.subject == "add"]
    assert len(sums) > 3
    assert all("largest error" in detail for detail in sums)


def test_a_rule_that_crashes() -> None:
    def crash(op: Operation) -> str | None:
        raise AttributeError("no such attribute")

    report = _tried(_backend("kit_crash", {"nn.relu": crash, "exp": elementwise_f32}))
    assert not report.passed
    (reason,) = {outcome.detail for outcome in report.failures if outcome.subject == "nn.relu"}
    assert "the rule of backend 'kit_crash' for nn.relu failed" in reason
    assert "no such attribute" in reason


@pytest.mark.parametrize(
    ("number", "op", "answer", "said"),
    [
        (0, "nn.relu", "", "the rule refuses it without a reason, and it stayed on the host"),
        (1, "nn.rleu", None, "there is no Relay op 'nn.rleu'"),
    ],
)
def test_other_mistakes_in_rules(number: int, op: str, answer: str | None, said: str) -> None:
    report = _tried(_backend(f"kit_rule{number}", {op: lambda _: answer}))
    assert said in str(report.failures)


def _with_pattern(kit_name: str, check: Callable[[Match], str | None]) -> type[Backend]:
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    row = CompositePattern(f"{kit_name}.sum_relu", pattern, check)
    return _backend(kit_name, {}, patterns=lambda self: [row])


def test_a_check_that_crashes() -> None:
    def crash(match: Match) -> str | None:
        raise ValueError("unexpected match")

    report = _tried(_with_pattern("kit_check", crash))
    (reason,) = {outcome.detail for outcome in report.failures}
    assert "the check of pattern 'kit_check.sum_relu' failed on nn.relu" in reason
    assert "unexpected match" in reason


def test_a_composite_without_code() -> None:
    report = _tried(_with_pattern("kit_composite", lambda match: None))
    assert {outcome.subject for outcome in report.failures} == {"kit_composite.sum_relu"}
    assert all("could not compile" in outcome.detail for outcome in report.failures)


def test_samples_of_the_vendors_own() -> None:
    def only_long(op: Operation) -> str | None:
        return elementwise_f32(op) if "tensor<4096xf32>" in str(op) else "only rows of 4096"

    backend = _backend("kit_samples", {"exp": only_long})
    assert not _tried(backend).passed  # none of the kit's own is long
    assert "the rule refuses every sample; give one that it accepts" in str(_tried(backend))
    report = _tried(backend, samples={"exp": [Sample((4096,))]})
    assert report.passed, str(report)
    assert [o.label for o in report.outcomes if o.status == "offloaded"] == ["float32 [4096]"]


def test_ops_without_samples_are_named() -> None:
    report = _tried(
        _backend(
            "kit_untested", {"nn.embed_nothing": elementwise_f32, "ml.tree_ensemble": only_f32}
        )
    )
    assert [(o.subject, o.status) for o in report.outcomes] == [
        ("nn.embed_nothing", "failed"),
        ("ml.tree_ensemble", "untested"),
    ]


def test_options_reach_the_backend() -> None:
    rules = {"exp": elementwise_f32}
    backend = _backend("kit_options", rules, options={"mode": Option("a", "how", ("a", "b"))})
    assert _tried(backend).backend == "kit_options"
    assert _tried("kit_options{mode=b}").passed
    with pytest.raises(BackendError, match="option 'mode' of backend 'kit_options' is c"):
        _tried("kit_options{mode=c}")


def test_backends_that_are_not_there() -> None:
    with pytest.raises(BackendError, match="no backend is named 'kit_nowhere'"):
        _tried("kit_nowhere")
    absent = _backend("kit_absent", {}, unavailable=lambda self: "no card in any slot")
    with pytest.raises(BackendError, match="not usable here: no card in any slot"):
        _tried(absent)


def test_a_failing_case_is_saved_and_runs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = numpy_backend("kit_saved", kernels={"subtract": lambda attrs, a, b: b - a})
    report = run_conformance(wrong, only=("subtract",), networks={}, save=tmp_path)
    failure = report.failures[0]
    assert failure.reproduce in str(report)
    command, _, arguments = failure.reproduce.partition("conformance ")
    assert command == "python -m byoc_mlir.testing."
    assert main(shlex.split(arguments)) == 1
    assert "largest error" in capsys.readouterr().out
    assert main(shlex.split(arguments.replace("kit_saved", "examplejson"))) == 0
    saved = Path(shlex.split(arguments)[0])
    onnx.checker.check_model(onnx.load(saved.with_suffix(".onnx")))
    saved.with_suffix(".npz").unlink()
    assert main(shlex.split(arguments)) == 2
