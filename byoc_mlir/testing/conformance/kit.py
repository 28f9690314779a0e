"""Test of a backend: every op and pattern that it claims, and whole networks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends import Backend, Rule, get_backends, register_backend
from byoc_mlir.backends.op_names import unknown_ops
from byoc_mlir.compiler.partition.backend_passes import run_module_passes
from byoc_mlir.compiler.pipeline import canonicalisation
from byoc_mlir.compiler.source import ModelSource, main_function, read_source
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.errors import ByocError
from byoc_mlir.lowering.host_pipeline import run_passes
from byoc_mlir.patterns import CompositePattern
from byoc_mlir.testing.conformance.accuracy import error_of, expected
from byoc_mlir.testing.conformance.cases import op_cases
from byoc_mlir.testing.conformance.graph import Case
from byoc_mlir.testing.conformance.pattern_cases import NotGeneratedError, pattern_cases
from byoc_mlir.testing.conformance.report import (
    ConformanceReport,
    Coverage,
    Outcome,
    Status,
)
from byoc_mlir.testing.conformance.runner import Finding, WrongError, compiled, joined, run_cases
from byoc_mlir.testing.conformance.saved import save_case
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs
from byoc_mlir.testing.samples.relay_ops.sample import Sample
from byoc_mlir.testing.samples.relay_ops.table import samples_of
from byoc_mlir.transforms.blocks import is_constant
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.placement import Placement, placements
from byoc_mlir.transforms.work import estimated_work

NETWORK_TOLERANCE = 1e-4
"""Maximum accepted error of a network, relative to its output's largest value."""


def run_conformance(
    backend: str | type[Backend],
    *,
    only: Collection[str] = (),
    samples: Mapping[str, Sequence[Sample]] | None = None,
    networks: Mapping[str, ModelProto] | None = None,
    tolerance: float = 0.0,
    known_untested: Collection[str] = (),
    finite: bool = False,
    save: str | Path | None = None,
) -> ConformanceReport:
    """Tests everything that a backend claims against the reference in numpy.

    Each op with a rule is tested on samples. Accepted samples must be offloaded, with the
    reference's results; refused ones must stay on the host, with a reason. Each pattern is tested
    on graphs generated from it. Networks are compiled and compared, and the report has the share
    that is offloaded. A backend with a claim that no case tests does not pass.

    Args:
        backend: its target, `"npu"` or `"npu{tiles=4}"`, or its class.
        only: the ops and composites to try, `("nn.conv2d",)`; by default all that it claims.
        samples: further samples of ops, by Relay name.
        networks: networks to compile, by name; by default a small MNIST network and ResNet-18.
        tolerance: errors up to it, relative to the largest value, are accepted even if element
            types and lengths of sums allow less.
        known_untested: claims that may stay untested, because the vendor's own tests cover them.
        finite: if true, no NaN and infinities are used, for backends that do not support them.
        save: a folder for failing cases, as models that run by themselves.

    Raises:
        BackendError: the backend is unknown or cannot be used on this machine.
    """
    target = backend if isinstance(backend, str) else register_backend(backend).name
    (instance,) = get_backends((target,))
    kit = _Kit(target, instance, tolerance, finite, None if save is None else Path(save))
    if networks is None:
        networks = {"mnist": NETWORKS["mnist"](), "resnet18": NETWORKS["resnet18"](image=32)}
    misnamed = dict(unknown_ops(instance))
    outcomes = [
        *(Outcome(name, "name", "failed", said) for name, said in misnamed.items()
          if not only or name in only),
        *(outcome for name, rule in instance.op_rules().items()
          if name not in misnamed and (not only or name in only)
          for outcome in kit.try_op(name, rule, (samples or {}).get(name, ()))),
        *(outcome for row in instance.patterns()
          if row.name not in misnamed and (not only or row.name in only)
          for outcome in kit.try_pattern(row)),
    ]  # fmt: skip
    coverage: list[Coverage] = []
    accepted = max(tolerance, NETWORK_TOLERANCE)
    for name, model in networks.items():
        try:
            coverage.append(kit.coverage(name, model))
        except (ByocError, WrongError) as error:
            outcomes.append(Outcome(name, "network", "failed", str(error)))
        else:
            if coverage[-1].error > accepted:
                wrong = f"largest error {coverage[-1].error:.1e}, accepted is {accepted:.1e}"
                outcomes.append(Outcome(name, "network", "failed", wrong))
    return ConformanceReport(target, tuple(outcomes), tuple(coverage), frozenset(known_untested))


@dataclass(frozen=True, eq=False)
class _Placed:
    """Case that compiles, with its placement."""

    case: Case
    status: Status
    detail: str
    runs: bool
    """True if the backend took part in the case."""


class _Kit:
    def __init__(
        self, target: str, backend: Backend, tolerance: float, finite: bool, save: Path | None
    ):
        self._target, self._backend, self._tolerance = target, backend, tolerance
        self._finite, self._save = finite, save

    def try_op(self, name: str, rule: Rule, more: Sequence[Sample]) -> Iterator[Outcome]:
        """Yields the outcomes of all samples of an op that has a rule."""
        known = [s for s in samples_of(name) if not (self._finite and s.special)]
        cases = list(op_cases(name, [*known, *more]))
        if not cases:
            yield Outcome(name, "", "untested", "there are no samples; give some with samples=")
            return
        outcomes = self._outcomes(cases, rule)
        yield from outcomes
        if not {"offloaded", "failed"} & {outcome.status for outcome in outcomes}:
            said = "the rule refuses every sample; give one that it accepts with samples="
            yield Outcome(name, "all samples", "untested", said)

    def try_pattern(self, row: CompositePattern) -> Iterator[Outcome]:
        """Yields the outcomes of the graphs generated from a row of the pattern table."""
        try:
            cases = list(pattern_cases(row, finite=self._finite))
        except NotGeneratedError as error:
            yield Outcome(row.name, "", "untested", f"{error}; networks= may have it")
            return
        outcomes = self._outcomes(cases, None)
        yield from outcomes
        if not {"offloaded", "failed"} & {outcome.status for outcome in outcomes}:
            said = "no graph made from the pattern becomes this composite"
            yield Outcome(row.name, "all graphs", "untested", said)

    def coverage(self, name: str, model: ModelProto) -> Coverage:
        """Returns the share of a network that the backend runs."""
        module = self._partitioned(read_source(model).bind({}, {}).module)
        mine, all_ops = _computing_ops(module, self._backend.name), _computing_ops(module, None)
        inputs = random_inputs(model)
        error = self._largest_error(read_source(model).bind({}, {}).module, model, inputs)
        return Coverage(
            name,
            (len(mine), len(all_ops)),
            (len(set(map(relay_name, mine))), len(set(map(relay_name, all_ops)))),
            (sum(map(estimated_work, mine)), sum(map(estimated_work, all_ops))),
            sum(region_compiler(op) is not None for op in module.walk()),
            error,
        )

    def _outcomes(self, cases: Sequence[Case], rule: Rule | None) -> list[Outcome]:
        """Returns the outcomes of the cases of an op or a pattern, in their order."""
        placed = [self._placed(case, rule) for case in cases]
        running = [one for one in placed if isinstance(one, _Placed) and one.runs]
        tried = [one.case for one in running]
        findings = dict(zip(running, run_cases(self._target, tried, self._tolerance), strict=True))
        return [
            one if isinstance(one, Outcome) else self._after(one, findings.get(one), tried)
            for one in placed
        ]

    def _placed(self, case: Case, rule: Rule | None) -> _Placed | Outcome:
        """Partitions a case; returns its placement, or the outcome if partitioning fails."""
        try:
            rows = placements(self._partitioned(case.module.clone()))
            status, detail = self._judge(case, rows, rule)
        except WrongError as error:
            return self._failed(case, str(error))
        except Exception as error:  # whatever a backend raises is a failure to report
            return self._failed(case, f"{type(error).__name__}: {error}")
        mine = any(row.backend == self._backend.name for row in rows)
        return _Placed(case, status, detail, mine or bool(self._backend.module_passes()))

    def _after(self, placed: _Placed, finding: Finding | None, tried: Sequence[Case]) -> Outcome:
        """Returns the outcome of a case after its run; `tried` are all cases in the same model."""
        case = placed.case
        if finding is None:
            return Outcome(case.subject, case.label, placed.status, placed.detail)
        if finding.problem:
            alone = case if not finding.is_right_alone else replace(joined(tried), label=case.label)
            return self._failed(alone, finding.problem, finding.error)
        return Outcome(case.subject, case.label, placed.status, placed.detail, finding.error)

    def _failed(self, case: Case, problem: str, error: float = 0.0) -> Outcome:
        command = "" if self._save is None else save_case(case, self._save, self._target)
        return Outcome(case.subject, case.label, "failed", problem, error, command)

    def _judge(
        self, case: Case, rows: Sequence[Placement], rule: Rule | None
    ) -> tuple[Status, str]:
        """Returns the status of a case with correct results, and its detail.

        Raises:
            WrongError: the placement contradicts the rule.
        """
        if rule is None:
            composites = {row.composite for row in rows}
            if case.subject in composites:
                return "offloaded", ""
            others = ", ".join(sorted(composites - {""}))
            return ("folded", f"becomes {others}") if others else ("refused", _why(case, rows))
        mine = [row for row in rows if row.op == case.subject]
        if not mine:
            return "folded", ""
        if all(row.backend == self._backend.name for row in mine):
            return "offloaded", ""
        op = next(op for op in case.module.walk() if relay_name(op) == case.subject)
        said = rule(op)
        if not said:
            what = "accepts it" if said is None else "refuses it without a reason"
            raise WrongError(f"the rule {what}, and it stayed on the host: {mine[0].reason}")
        return "refused", said

    def _partitioned(self, module: ModuleOp) -> ModuleOp:
        context = make_context()
        run_passes(context, module, canonicalisation((self._target,)))
        with ir_boundary("verifying"):
            module.verify()
        for problem in run_module_passes(context, module, [self._backend], "allow"):
            raise WrongError(problem)
        PartitionFor((self._target,)).apply(context, module)
        return module

    def _largest_error(
        self, reference: ModuleOp, model: ModelSource, inputs: Mapping[str, Array]
    ) -> float:
        wanted = expected(main_function(reference), list(inputs.values()))
        with compiled(model, self._target) as executable:
            outputs = executable.run(inputs)
        pairs = zip(outputs.values(), wanted, strict=True)
        return max((error_of(got, want) for got, want in pairs), default=0.0)


def _why(case: Case, rows: Sequence[Placement]) -> str:
    """Returns the reasons why ops did not become the composite that a case is for."""
    listed = [part.partition(": ") for row in rows for part in row.reason.split("; ")]
    reasons = [reason for names, _, reason in listed if case.subject in names.split(", ")]
    return "; ".join(dict.fromkeys(reasons)) or "the pattern does not match"


def _computing_ops(module: ModuleOp, backend: str | None) -> list[Operation]:
    """Returns the ops in the regions of a backend, or all ops; composites count as their inner
    ops."""
    found: list[Operation] = []
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and backend in (None, region_compiler(function)):
            ops = (op for op in function.walk() if op.name.startswith("relay."))
            found += (op for op in ops if not is_constant(op))
    return found
