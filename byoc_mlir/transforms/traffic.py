"""MACs and memory traffic of parts of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.symbols import facts_of
from byoc_mlir.dims import Size, substituted
from byoc_mlir.transforms.blocks import is_constant
from byoc_mlir.transforms.work import dynamic_macs, tensor_bytes


@dataclass(frozen=True)
class _Op:
    """MACs of an op, and the numbers of the values that it reads and writes."""

    nodes: frozenset[str]
    multiplications: Size
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass
class Traffic:
    """Traffic of a `relay` module in terms of its symbolic dimensions; it does not refer to the
    module. Lengths that only a run computes have their expected values.
    """

    _ops: list[_Op] = field(default_factory=list[_Op])
    _bytes: list[Size] = field(default_factory=list[Size])
    _readers: dict[int, list[_Op]] = field(default_factory=dict[int, list[_Op]])

    @staticmethod
    def of(module: ModuleOp) -> Traffic:
        """Collects what the ops of a module compute, read and write."""
        traffic, numbers = Traffic(), dict[SSAValue, int]()
        expected = {name: info.hint for name, info in facts_of(module).bound.items()}

        def number(values: Sequence[SSAValue]) -> Iterator[int]:
            for value in values:
                if value not in numbers:
                    numbers[value] = len(traffic._bytes)
                    traffic._bytes.append(substituted(tensor_bytes(value), expected))
                yield numbers[value]

        for op in module.walk():
            if is_constant(op) or not (op.operands or op.results) or op.regions:
                continue
            reads, writes = tuple(number(op.operands)), tuple(number(op.results))
            macs = substituted(dynamic_macs(op), expected)
            one = _Op(frozenset(node_names(op)), macs, reads, writes)
            if isinstance(op, RelayOp):  # calls and terminators only read
                traffic._ops.append(one)
            for value in reads:
                traffic._readers.setdefault(value, []).append(one)
        return traffic

    def multiplications(self, nodes: Collection[str]) -> Size:
        """Returns the MACs of the ops that stem from the given ONNX nodes."""
        return sum(op.multiplications for op in self._ops_of(nodes))

    def bytes(self, nodes: Collection[str]) -> Size:
        """Returns the bytes that the given ONNX nodes exchange with other nodes; each value counts
        once.
        """
        ops = self._ops_of(nodes)
        written = {value for op in ops for value in op.writes}
        read = {value for op in ops for value in op.reads} - written
        inside = {id(op) for op in ops}
        leaving = [
            value
            for value in written
            if any(id(reader) not in inside for reader in self._readers.get(value, ()))
        ]
        return sum(self._bytes[value] for value in (*read, *leaving))

    def _ops_of(self, nodes: Collection[str]) -> list[_Op]:
        wanted = frozenset(nodes)
        return [op for op in self._ops if op.nodes and op.nodes <= wanted]
