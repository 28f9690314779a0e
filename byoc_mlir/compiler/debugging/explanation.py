"""What became of a node, and what a pattern finds in a model, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Literal, TypeAlias

from byoc_mlir.names import printable
from byoc_mlir.runtime.profile import WIDTH
from byoc_mlir.runtime.program import Step
from byoc_mlir.runtime.report import ReportRow

Outcome: TypeAlias = Literal["accepted", "refused", "missed"]


@dataclass(frozen=True)
class Decision:
    """What a rule or a pattern says of some ops."""

    who: str
    """A pattern's name; of a rule, its backend's."""
    outcome: Outcome
    nodes: tuple[str, ...]
    """The ONNX nodes of the ops that it is about: of a pattern that missed, those of its root."""
    reason: str = ""
    """Why it refuses, or where a pattern does not fit: which op, what is found and what needed."""
    fitted: int = 0
    """Of a pattern that missed: how many of its parts fitted."""

    def __str__(self) -> str:
        about = f"{self.who} {self.outcome} {', '.join(self.nodes)}"
        return f"{about}: {self.reason}" if self.reason else about


@dataclass(frozen=True)
class DescribedOp:
    """An op that stands for a node."""

    name: str
    attributes: Mapping[str, str]
    types: tuple[str, ...]
    """Of its results."""

    def __str__(self) -> str:
        return self.beside(())

    def beside(self, before: Iterable[DescribedOp]) -> str:
        """As text; of an op that was there before, only the attributes that changed."""
        known = next((one for one in before if self._continues(one)), None)
        old = {} if known is None else known.attributes
        new = {name: value for name, value in self.attributes.items() if old.get(name) != value}
        words = [self.name]
        if new:
            words.append(f"{{{', '.join(f'{name} = {value}' for name, value in new.items())}}}")
        if known is None and self.types:
            words.append(f"-> {', '.join(self.types)}")
        return " ".join(words)

    def _continues(self, other: DescribedOp) -> bool:
        return (other.name, other.types) == (self.name, self.types)


@dataclass(frozen=True)
class Change:
    """What a pass made of a node."""

    pass_name: str
    before: tuple[DescribedOp, ...]
    """The ops that stood for the node."""
    after: tuple[DescribedOp, ...]
    """Those that do now; none when it is gone."""

    def __str__(self) -> str:
        ops = "; ".join(op.beside(self.before) for op in self.after)
        return f"{self.pass_name}: {ops or 'nothing is left of it'}"


@dataclass(frozen=True)
class NodeExplanation:
    """The path of one ONNX node through the compiler.

    `str()` gives a text of 80 columns.
    """

    row: ReportRow
    """Where it is, and why."""
    imported: tuple[DescribedOp, ...]
    """The relay ops that it became."""
    changes: tuple[Change, ...]
    rules: tuple[Decision, ...]
    """What the backends' rules say of its ops before the model is partitioned."""
    patterns: tuple[Decision, ...]
    """What patterns say of it: those that match, then those that nearly do."""
    steps: tuple[Step, ...]
    """What computes it in a run."""

    def to_json(self) -> str:
        """All as a JSON document."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        row = self.row
        yield from _wrapped(f"{row.node} ({row.op_type}): {_where(row)}", "")
        yield from _section("imported as", map(str, self.imported))
        yield from _section("changed by passes", map(str, self.changes))
        yield from _section("rules of backends", map(str, self.rules))
        yield from _section("patterns", map(str, self.patterns))
        yield from _section("computed by", map(_step, self.steps))


@dataclass(frozen=True)
class PatternExplanation:
    """What a pattern finds in a model.

    `str()` gives a text of 80 columns.
    """

    name: str
    pattern: str
    """It, as text."""
    accepted: tuple[Decision, ...]
    """Where it matches; `reason` says which composite took the ops, if it was another one."""
    refused: tuple[Decision, ...]
    """Where it matches, and its check refuses."""
    missed: tuple[Decision, ...]
    """Where it does not match: at its possible roots, the nearest first."""

    def to_json(self) -> str:
        """All as a JSON document."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        counts = f"{len(self.accepted)} accepted, {len(self.refused)} refused"
        yield from _wrapped(f"{self.name}: {counts}, {len(self.missed)} missed", "")
        yield from _section("it is", [self.pattern])
        yield from _section("accepted", map(str, self.accepted))
        yield from _section("refused by its check", map(str, self.refused))
        yield from _section("the nearest misses", map(str, self.missed))
        if not (self.accepted or self.refused or self.missed):
            yield "the model has no op that it could end with"


MOST = 10
"""Entries of a section of the text; JSON has all."""


def _where(row: ReportRow) -> str:
    parts = [row.placement]
    if row.region:
        parts.append(f"in region {row.region}")
    if row.composite:
        parts.append(f"as {row.composite}")
    if row.implementation:
        parts.append(f"by {row.implementation}")
    if row.precision:
        parts.append(f"in {row.precision}")
    text = ", ".join(parts)
    return f"{text}; {row.reason}" if row.reason else text


def _step(step: Step) -> str:
    parts = [step.implementation]
    if step.region:
        parts.append(f"in region {step.region}")
    if step.layout:
        parts.append(f"layout {step.layout}")
    if len(step.nodes) > 1:
        parts.append(f"for {', '.join(step.nodes)}")
    return ", ".join(parts)


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    listed = list(dict.fromkeys(entries))
    if not listed:
        return
    yield from ("", f"{title}:")
    for entry in listed[:MOST]:
        yield from _wrapped(entry, "  ")
    if len(listed) > MOST:
        yield f"  and {len(listed) - MOST} more; --json has all"


def _wrapped(text: str, indent: str) -> Sequence[str]:
    return wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
