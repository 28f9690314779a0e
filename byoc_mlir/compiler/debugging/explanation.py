"""Explanations of a node and of a pattern's matches, as text and as JSON."""

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
    """Decision of a rule or a pattern for some ops."""

    who: str
    """Name of a pattern, or of a rule's backend."""
    outcome: Outcome
    nodes: tuple[str, ...]
    """ONNX nodes of the ops; for a pattern that missed, the nodes of its root."""
    reason: str = ""
    """Reason of the refusal, or of the mismatch: which op, what is found and what is expected."""
    fitted: int = 0
    """Number of the pattern's parts that matched before the mismatch."""

    def __str__(self) -> str:
        about = f"{self.who} {self.outcome} {', '.join(self.nodes)}"
        return f"{about}: {self.reason}" if self.reason else about


@dataclass(frozen=True)
class DescribedOp:
    """Op that computes a node, as text."""

    name: str
    attributes: Mapping[str, str]
    types: tuple[str, ...]
    """Types of the op's results."""

    def __str__(self) -> str:
        return self.beside(())

    def beside(self, before: Iterable[DescribedOp]) -> str:
        """Returns the op as text; if `before` contains it, only with the attributes that
        changed.
        """
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
    """Change of a node's ops by a pass."""

    pass_name: str
    before: tuple[DescribedOp, ...]
    """Ops of the node before the pass."""
    after: tuple[DescribedOp, ...]
    """Ops of the node after the pass; none if the node is gone."""

    def __str__(self) -> str:
        ops = "; ".join(op.beside(self.before) for op in self.after)
        return f"{self.pass_name}: {ops or 'nothing is left of it'}"


@dataclass(frozen=True)
class NodeExplanation:
    """Path of one ONNX node through the compiler.

    `str()` gives a text of 80 columns.
    """

    row: ReportRow
    """Placement of the node, and the reason."""
    imported: tuple[DescribedOp, ...]
    """Relay ops of the node after import."""
    changes: tuple[Change, ...]
    rules: tuple[Decision, ...]
    """Decisions of the backends' rules for its ops, before partitioning."""
    patterns: tuple[Decision, ...]
    """Decisions of patterns: matches, then near misses."""
    steps: tuple[Step, ...]
    """Steps that compute the node in a run."""

    def to_json(self) -> str:
        """Returns the explanation as a JSON document."""
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
    """Matches of a pattern in a model.

    `str()` gives a text of 80 columns.
    """

    name: str
    pattern: str
    """Text of the pattern."""
    accepted: tuple[Decision, ...]
    """Matches; `reason` names the composite that took the ops, if it is another one."""
    refused: tuple[Decision, ...]
    """Matches that the pattern's check refuses."""
    missed: tuple[Decision, ...]
    """Mismatches at its possible roots, the nearest first."""

    def to_json(self) -> str:
        """Returns the explanation as a JSON document."""
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
"""Maximum number of entries of a section of the text; JSON has all."""


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
