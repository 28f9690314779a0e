"""Keys for ops that do not depend on the order in which a block lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from byoc_mlir.transforms.blocks import values_used


def canonical_keys(block: Block) -> Mapping[Operation, bytes]:
    """A digest of how each op is computed and of what is made of its results.

    Ops with one key compute the same from the same values, for the same purposes.
    """
    computed = _from_operands(block)
    used = _from_users(block, computed)
    return {op: _digest(key, used[op]) for op, key in computed.items()}


def _from_operands(block: Block) -> dict[Operation, bytes]:
    text: dict[Attribute, bytes] = {}
    keys: dict[Operation, bytes] = {}

    def printed(attribute: Attribute) -> bytes:
        if attribute not in text:
            text[attribute] = str(attribute).encode()
        return text[attribute]

    def key_of(value: SSAValue) -> bytes:
        if isinstance(value, OpResult) and value.op in keys:
            return keys[value.op] + bytes(str(value.index), "ascii")
        if isinstance(value, BlockArgument) and value.block is block:
            return bytes(f"argument {value.index}", "ascii")
        return b"outside " + printed(value.type)

    for op in block.ops:
        described = (
            part
            for inner in op.walk()
            for part in (inner.name.encode(), *_properties(inner, printed))
        )
        types = (printed(type_) for type_ in op.result_types)
        keys[op] = _digest(*described, *types, *map(key_of, values_used(op)))
    return keys


def _properties(op: Operation, printed: Callable[[Attribute], bytes]) -> Iterator[bytes]:
    for name in sorted(op.properties):
        yield name.encode()
        yield printed(op.properties[name])


def _from_users(block: Block, computed: Mapping[Operation, bytes]) -> dict[Operation, bytes]:
    keys: dict[Operation, bytes] = {}
    for op in reversed(list(block.ops)):
        uses = sorted(
            bytes(f"{result.index} {use.index} ", "ascii")
            + computed.get(use.operation, b"inside of an op")
            + keys.get(use.operation, b"")
            for result in op.results
            for use in result.uses
        )
        keys[op] = _digest(*uses)
    return keys


def _digest(*parts: bytes) -> bytes:
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(4, "little") + part)
    return hashed.digest()
