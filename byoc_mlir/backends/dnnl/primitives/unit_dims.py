"""One description for each memory, whatever its layout is called.

The stride of a dimension of 1 places nothing. The library ignores it where it looks for a primitive
that it created before, but heeds it where it chooses an implementation: described in two ways, a
call may get what the other way got earlier in the process, with another scratchpad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.calls import (
    Argument,
    Attributes,
    Binary,
    Descriptors,
    MemoryDescriptor,
)
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive

_Kind = Callable[[int], str]


def described_one_way(described: DescribedPrimitive) -> DescribedPrimitive:
    """The primitive with strides that depend only on where elements lie.

    A tensor that is row-major and channels last at once is described as the first one is that is
    not both, since implementations want all to be alike; of a matrix product, as row-major.
    """
    kinds = (layouts.plain,) if described.call.kind == "matmul" else _KINDS
    found = {one.descriptor: _kinds_of(one.descriptor, kinds) for one in described.operands}
    decided = next((alike[0] for alike in found.values() if len(alike) == 1), layouts.plain)
    way = _Way(kinds, decided, found)
    call = replace(described.call, arguments=tuple(map(way.argument, described.call.arguments)))
    operands = [replace(one, descriptor=way.of(one.descriptor)) for one in described.operands]
    return DescribedPrimitive(call, tuple(operands))


_KINDS: Sequence[_Kind] = (layouts.plain, layouts.channels_last)


def _kinds_of(descriptor: MemoryDescriptor, kinds: Sequence[_Kind]) -> Sequence[_Kind]:
    """Which kinds of layouts put the elements where they are."""
    if descriptor.layout == layouts.ANY or layouts.blocks(descriptor.layout):
        return ()
    dims, rank = descriptor.dims, len(descriptor.dims)
    places = _places(dims, descriptor.strides or layouts.strides(dims, descriptor.layout))
    fitting = kinds if rank > 1 else kinds[:1]  # a vector has no channels
    return [one for one in fitting if _places(dims, layouts.strides(dims, one(rank))) == places]


def _places(dims: Sequence[int], strides: Sequence[int]) -> Sequence[int]:
    """The strides that count."""
    return [step for step, size in zip(strides, dims, strict=True) if size != 1]


@dataclass(frozen=True)
class _Way:
    kinds: Sequence[_Kind]
    decided: _Kind
    """For tensors that are of several kinds."""
    known: dict[MemoryDescriptor, Sequence[_Kind]]

    def argument(self, argument: Argument) -> Argument:
        """The argument of a call with what it describes described this way."""
        if isinstance(argument, MemoryDescriptor):
            return self.of(argument)
        if isinstance(argument, Descriptors):
            return Descriptors(tuple(map(self.of, argument.items)))
        if isinstance(argument, Attributes):
            post_ops = tuple(
                replace(one, other=self.of(one.other)) if isinstance(one, Binary) else one
                for one in argument.post_ops
            )
            return replace(argument, post_ops=post_ops)
        return argument

    def of(self, descriptor: MemoryDescriptor) -> MemoryDescriptor:
        """The same memory described this way."""
        if descriptor not in self.known:
            self.known[descriptor] = _kinds_of(descriptor, self.kinds)
        found = self.known[descriptor]
        if not found:
            return descriptor
        kind = self.decided if self.decided in found else found[0]
        return MemoryDescriptor(
            descriptor.dims, kind(len(descriptor.dims)), data_type=descriptor.data_type
        )
