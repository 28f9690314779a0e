"""Findings of a campaign, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byoc_mlir.testing.samples.onnx_nodes.recipes import importable_ops
from byoc_mlir_fuzz.campaign import Group, Tally

_NOT_OFFLOADED = ("host", "folded", "removed", "reference")


def summary(tally: Tally, mutated: bool) -> str:
    """Returns the counts, the ops, and the failures as text."""
    return "\n".join(_lines(tally, mutated))


def _lines(tally: Tally, mutated: bool) -> Iterator[str]:
    total = sum(tally.kinds.values())
    yield f"{total} cases in {tally.seconds:.0f} s"
    yield from (f"  {kind:16} {count:6}" for kind, count in tally.kinds.most_common())
    if not mutated:
        yield from _coverage(tally)
    yield from _offloaded(tally)
    yield from _groups("refused, though the oracles run them", tally.refusals())
    yield from _groups("failures", tally.failures())


def _coverage(tally: Tally) -> Iterator[str]:
    names = [f"{domain}.{name}" if domain else name for domain, name in importable_ops()]
    missing = [name for name in names if name not in tally.ops]
    yield f"{len(names) - len(missing)} of {len(names)} ops"
    if missing and sum(tally.kinds.values()) >= len(names):  # of a few cases it says nothing
        yield f"  never generated: {', '.join(missing)}"


def _offloaded(tally: Tally) -> Iterator[str]:
    nodes = sum(tally.placements.values())
    shares = [f"{count} {name}" for name, count in tally.placements.most_common() if count]
    taken = sum(count for name, count in tally.placements.items() if name not in _NOT_OFFLOADED)
    if nodes:
        yield f"{taken / nodes:.0%} of {nodes} nodes offloaded ({', '.join(shares)})"


def _groups(title: str, groups: Sequence[Group]) -> Iterator[str]:
    if not groups:
        return
    yield f"{title}: {len(groups)} kinds, {sum(len(group.names) for group in groups)} cases"
    for group in groups:
        where = f" -> {group.path}" if group.path else ""
        yield f"  {len(group.names):4} x {group.kind}: {group.signature}{where}"
        yield f"       {group.names[0]}: {next(iter(group.outcome.message.splitlines()), '')}"
