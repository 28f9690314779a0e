"""Runner of ONNX's backend test suite on byoc_mlir, with a report of the outcomes.

python tools/onnx_suite.py [--targets dnnl] [--only REGEX] [--out results.json]

The cases are collected from the Python API. Most are built by the functions of
`onnx.backend.test.case`; those converted from PyTorch and the `simple` ones lie in files. The nine
light networks of the kind `real` are run by the official runner, see `byoc_mlir.testing.light`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from byoc_mlir.backends.reference import ReferenceBackend
from byoc_mlir.frontend.graphs import all_nodes
from byoc_mlir.onnx_backend import ByocBackend

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

DataSet: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
"""Inputs and expected outputs in the graph's order: arrays, lists of arrays, or `None`."""


def main() -> int:
    """Prints a summary; returns 0, since every case's outcome is in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="", help="backends, separated by commas")
    parser.add_argument("--only", default="", help="a regular expression that names match")
    parser.add_argument("--out", help="a JSON file for the outcome of every case")
    args = parser.parse_args()
    targets = tuple(filter(None, args.targets.split(",")))
    start = time.perf_counter()
    cases = [case for case in suite_cases() if re.search(args.only, case.name)]
    collected = time.perf_counter() - start
    with np.errstate(all="ignore"):
        outcomes = {case.name: run_case(case, targets) for case in cases}
    _print_summary(outcomes)
    print(f"collected in {collected:.0f} s, run in {time.perf_counter() - start - collected:.0f} s")
    if args.out:
        with open(args.out, "w") as file:
            json.dump({name: asdict(o) for name, o in outcomes.items()}, file, indent=1)
    return 0


@dataclass(frozen=True)
class SuiteCase:
    """Case: a model, and its expected outputs to within `rtol` and `atol`."""

    name: str
    kind: str
    rtol: float
    atol: float
    load: Callable[[], tuple[ModelProto, Sequence[DataSet]]]

    @property
    def digest(self) -> bytes:
        """Returns the bytes by which cases are drawn."""
        return hashlib.sha256(self.name.encode()).digest()

    def ops(self) -> frozenset[tuple[str, str]]:
        """Returns domain and name of the ops in its model."""
        model, _ = self.load()
        return frozenset(_ops(model.graph))


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: it passed, or `reason` has the cause."""

    reason: str
    net: tuple[str, ...]
    """Ops that ran in the fallback interpreter."""
    seconds: float
    """Processor time in seconds."""

    @property
    def passed(self) -> bool:
        """True if all outputs of all data sets are as expected."""
        return not self.reason


@dataclass(frozen=True)
class Expectations:
    """Expectations of the suite: cases by name, with the reason."""

    not_passing: Mapping[str, str]
    through_net: Mapping[str, str]
    """Cases that pass with ops in the fallback interpreter."""
    random: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases whose values the standard does not fix: they have to run, and pass by chance alone."""

    @staticmethod
    def read(path: Path) -> Expectations:
        """Reads a TOML file with the tables `not_passing`, `through_net` and `random`, each an
        array of tables with a `reason` and `cases`."""
        tables = tomllib.loads(path.read_text())
        kinds = ("not_passing", "through_net", "random")
        return Expectations(*(_reasons(tables.get(kind, [])) for kind in kinds))

    def may_fail(self, name: str) -> bool:
        """True if a case is not expected to pass."""
        return name in self.not_passing or name in self.random

    def contradicted(self, case: SuiteCase, outcome: Outcome) -> str:
        """Returns how an outcome contradicts the expectations; empty if it does not."""
        if case.name in self.not_passing:
            return f"{case.name} passes, and is listed" if outcome.passed else ""
        if case.name in self.random and outcome.reason.startswith(AssertionError.__name__):
            return ""
        if not outcome.passed:
            return f"{case.name}: {outcome.reason}"
        if (case.name in self.through_net) != bool(outcome.net):
            return (
                f"{case.name}: in the fallback interpreter are {', '.join(outcome.net) or 'no ops'}"
            )
        return ""


def _reasons(tables: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {name: table["reason"] for table in tables for name in table["cases"]}


@cache
def suite_cases() -> tuple[SuiteCase, ...]:
    """Returns all cases, by kind and name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the expected outputs hold overflows on purpose
        found = [_case(case) for kind in KINDS for case in cast(Any, load_model_tests(kind=kind))]
    return tuple(sorted(found, key=lambda case: (KINDS.index(case.kind), case.name)))


@cache
def sampled_cases() -> tuple[SuiteCase, ...]:
    """Returns the part of the suite that the unit tests run, in the order of the whole.

    Some groups of cases are thinned out, since they are slow to compile and much alike:

    - Of the cases whose op is replaced by its definition (`_expanded`), seven in eight are omitted.
    - Of the cases with the same ops, seven in eight after the first two are omitted.
    """
    alike: dict[frozenset[tuple[str, str]], list[SuiteCase]] = defaultdict(list)
    for case in suite_cases():
        if "_expanded" not in case.name or case.digest[0] % 8 == 0:
            alike[case.ops()].append(case)
    kept = {case.name for cases in alike.values() for case in _drawn(cases)}
    return tuple(case for case in suite_cases() if case.name in kept)


def _drawn(cases: Iterable[SuiteCase]) -> Iterator[SuiteCase]:
    for number, case in enumerate(sorted(cases, key=lambda case: case.digest)):
        if number < 2 or case.digest[1] % 8 == 0:
            yield case


def run_case(case: SuiteCase, targets: Sequence[str] = (), threads: int = 1) -> Outcome:
    """Compiles a case's model, with the fallback interpreter after the targets, and compares its
    outputs.
    """
    start = time.process_time()
    net: set[str] = set()
    reason = ""
    try:
        model, data = case.load()
        prepared = ByocBackend.prepare(model, targets=targets, threads=threads, fallback="allow")
        for inputs, expected in data:
            found = list(prepared.run(inputs))
            rows = prepared.executable.report().placed(ReferenceBackend.name)
            net.update(row.op_type for row in rows)
            _assert_similar(expected, found, case)
    except Exception as error:  # whatever it is, it is the outcome
        reason = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome(reason, tuple(sorted(net)), time.process_time() - start)


def _assert_similar(expected: Sequence[Any], found: Sequence[Any], case: SuiteCase) -> None:
    """Asserts similarity as the official runner, which cannot compare scalars in sequences."""
    assert len(found) == len(expected), f"{len(found)} values, expected {len(expected)}"
    for value, wanted in zip(found, expected, strict=True):
        assert isinstance(value, np.ndarray) == isinstance(wanted, np.ndarray | np.generic)
        if isinstance(wanted, list | tuple):
            _assert_similar(cast("Sequence[Any]", wanted), value, case)
        elif wanted is not None:
            Runner.assert_similar_outputs([wanted], [value], case.rtol, case.atol)


def _case(case: Any) -> SuiteCase:
    def built() -> tuple[ModelProto, Sequence[DataSet]]:
        data = [(_plain(inputs), _plain(outputs)) for inputs, outputs in case.data_sets]
        return case.model, data

    def read() -> tuple[ModelProto, Sequence[DataSet]]:
        return _read(Path(case.model_dir))

    load = read if case.model is None else built
    return SuiteCase(case.name, case.kind, case.rtol, case.atol, load)


def _plain(values: Sequence[Any]) -> list[Any]:
    return [
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        for value in values
    ]


def _read(folder: Path) -> tuple[ModelProto, list[DataSet]]:
    model = onnx.load(folder / "model.onnx")
    data: list[DataSet] = []
    for directory in sorted(folder.glob("test_data_set_*")):
        inputs = _values(directory, "input", model.graph.input)
        data.append((inputs, _values(directory, "output", model.graph.output)))
    return model, data


def _values(directory: Path, kind: str, formals: Iterable[ValueInfoProto]) -> list[Any]:
    paths = ((directory / f"{kind}_{number}.pb", formal) for number, formal in enumerate(formals))
    return [_value(path, formal.type) for path, formal in paths if path.exists()]


def _value(path: Path, type_: TypeProto) -> Any:
    content = path.read_bytes()
    if type_.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type_.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def _ops(graph: GraphProto) -> Iterator[tuple[str, str]]:
    for node in all_nodes(graph.node):
        yield "" if node.domain == "ai.onnx" else node.domain, node.op_type


def _print_summary(outcomes: dict[str, Outcome]) -> None:
    passed = [outcome for outcome in outcomes.values() if outcome.passed]
    native = sum(not outcome.net for outcome in passed)
    seconds = sum(outcome.seconds for outcome in outcomes.values())
    print(f"{len(passed)} of {len(outcomes)} pass, {native} without the fallback interpreter")
    print(f"{seconds:.0f} s of processor time; the longest:")
    for name, outcome in sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:10]:
        print(f"  {outcome.seconds:6.2f} s {name}")
    print("not passed, by reason:")
    reasons = Counter(_kind(outcome.reason) for outcome in outcomes.values() if outcome.reason)
    for text, count in reasons.most_common(40):
        print(f"  {count:4} {text}")


def _kind(reason: str) -> str:
    return re.sub(r"[0-9]+", "#", reason)[:140]


if __name__ == "__main__":
    sys.exit(main())
