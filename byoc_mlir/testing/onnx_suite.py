"""ONNX's backend test suite, collected from the Python API, and what became of each case.

Most cases are built by the functions of `onnx.backend.test.case`; those converted from PyTorch and
the `simple` ones lie in files. The nine light networks of the kind `real` are run by the official
runner, see `light`.
"""

from __future__ import annotations

import hashlib
import time
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from byoc_mlir.backends.reference import ReferenceBackend
from byoc_mlir.onnx_backend import ByocBackend

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

DataSet: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
"""Inputs and expected outputs in the order of the graph's: arrays, lists of them, or `None`."""


@dataclass(frozen=True)
class SuiteCase:
    """One case: a model, and what it is to compute to within `rtol` and `atol`."""

    name: str
    kind: str
    rtol: float
    atol: float
    load: Callable[[], tuple[ModelProto, Sequence[DataSet]]]

    @property
    def digest(self) -> bytes:
        """Bytes by which cases are drawn."""
        return hashlib.sha256(self.name.encode()).digest()

    def ops(self) -> frozenset[tuple[str, str]]:
        """Domain and name of the ops in its model."""
        model, _ = self.load()
        return frozenset(_ops(model.graph))


@dataclass(frozen=True)
class Outcome:
    """What became of a case: it passed, or `reason` says why not."""

    reason: str
    net: tuple[str, ...]
    """Ops that ran in the fallback interpreter."""
    seconds: float
    """Processor time."""

    @property
    def passed(self) -> bool:
        """Whether all outputs of all data sets are as expected."""
        return not self.reason


@dataclass(frozen=True)
class Expectations:
    """What is known of the suite: cases by name, with the reason."""

    not_passing: Mapping[str, str]
    through_net: Mapping[str, str]
    """Cases that pass with ops in the fallback interpreter."""
    random: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases whose values the standard does not fix: they run, and pass by chance alone."""

    @staticmethod
    def read(path: Path) -> Expectations:
        """Reads a TOML file with the tables `not_passing`, `through_net` and `random`, each an
        array of tables with a `reason` and `cases`."""
        tables = tomllib.loads(path.read_text())
        kinds = ("not_passing", "through_net", "random")
        return Expectations(*(_reasons(tables.get(kind, [])) for kind in kinds))

    def may_fail(self, name: str) -> bool:
        """Whether a case is not expected to pass."""
        return name in self.not_passing or name in self.random

    def contradicted(self, case: SuiteCase, outcome: Outcome) -> str:
        """What is new about an outcome, nothing when it is as expected."""
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
    """All cases, by kind and name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # the expected outputs hold overflows on purpose
        found = [_case(case) for kind in KINDS for case in cast(Any, load_model_tests(kind=kind))]
    return tuple(sorted(found, key=lambda case: (KINDS.index(case.kind), case.name)))


@cache
def sampled_cases() -> tuple[SuiteCase, ...]:
    """The part of the suite that the unit tests run, in the order of the whole.

    Left out are three in four of the cases whose model is another one's with the op written out by
    its definition, and then, of the cases that have the same ops, three in four of those behind the
    first four: they are slow to compile, and much alike.
    """
    alike: dict[frozenset[tuple[str, str]], list[SuiteCase]] = defaultdict(list)
    for case in suite_cases():
        if "_expanded" not in case.name or case.digest[0] % 4 == 0:
            alike[case.ops()].append(case)
    kept = {case.name for cases in alike.values() for case in _drawn(cases)}
    return tuple(case for case in suite_cases() if case.name in kept)


def _drawn(cases: Iterable[SuiteCase]) -> Iterator[SuiteCase]:
    for number, case in enumerate(sorted(cases, key=lambda case: case.digest)):
        if number < 4 or case.digest[1] % 4 == 0:
            yield case


def run_case(case: SuiteCase, targets: Sequence[str] = (), threads: int = 1) -> Outcome:
    """Compiles a case's model, the fallback interpreter behind the targets, and compares."""
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
    """As the official runner, which cannot compare scalars in sequences."""
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
    for node in graph.node:
        yield "" if node.domain == "ai.onnx" else node.domain, node.op_type
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _ops(inner)
