"""Canonical descriptors: one for each set of element offsets.

The stride of a dimension of 1 has no effect. oneDNN ignores it in its cache of primitives, but not
in its choice of an implementation. So a call with one descriptor may get the primitive that another
descriptor created earlier in the process, with another scratchpad.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from byoc_mlir.backends.dnnl.library import calls, layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive

_Kind = Callable[[int], str]


def described_one_way(described: DescribedPrimitive) -> DescribedPrimitive:
    """Returns the primitive with strides that depend only on the offsets of elements.

    A tensor that is both row-major and NHWC gets the layout of the first tensor that is not both,
    since implementations require equal layouts. In a matmul, it is row-major.
    """
    kinds = (layouts.plain,) if described.call.kind == "matmul" else _KINDS
    found = {one.descriptor: _kinds_of(one.descriptor, kinds) for one in described.operands}
    decided = next((alike[0] for alike in found.values() if len(alike) == 1), layouts.plain)
    way = _Canonical(kinds, decided, found)
    call = replace(described.call, arguments=tuple(map(way.argument, described.call.arguments)))
    operands = [replace(one, descriptor=way.of(one.descriptor)) for one in described.operands]
    return DescribedPrimitive(call, tuple(operands))


_KINDS: Sequence[_Kind] = (layouts.plain, layouts.channels_last)


def _kinds_of(descriptor: calls.MemoryDescriptor, kinds: Sequence[_Kind]) -> Sequence[_Kind]:
    """Returns the kinds of layouts that give all elements the same offsets as the descriptor."""
    if descriptor.layout == layouts.ANY or layouts.blocks(descriptor.layout):
        return ()
    dims, rank = descriptor.dims, len(descriptor.dims)
    places = _places(dims, descriptor.strides or layouts.strides(dims, descriptor.layout))
    fitting = kinds if rank > 1 else kinds[:1]  # a vector has no channels
    return [one for one in fitting if _places(dims, layouts.strides(dims, one(rank))) == places]


def _places(dims: Sequence[int], strides: Sequence[int]) -> Sequence[int]:
    """Returns the strides of dimensions other than 1."""
    return [step for step, size in zip(strides, dims, strict=True) if size != 1]


@dataclass(frozen=True)
class _Canonical:
    kinds: Sequence[_Kind]
    decided: _Kind
    """Kind of layout that is chosen for tensors that fit several kinds."""
    known: dict[calls.MemoryDescriptor, Sequence[_Kind]]

    def argument(self, argument: calls.Argument) -> calls.Argument:
        """Returns the argument of a call with canonical descriptors."""
        if isinstance(argument, calls.MemoryDescriptor):
            return self.of(argument)
        if isinstance(argument, calls.Descriptors):
            return calls.Descriptors(tuple(map(self.of, argument.items)))
        if isinstance(argument, calls.Attributes):
            post_ops = tuple(
                replace(one, other=self.of(one.other)) if isinstance(one, calls.Binary) else one
                for one in argument.post_ops
            )
            return replace(argument, post_ops=post_ops)
        return argument

    def of(self, descriptor: calls.MemoryDescriptor) -> calls.MemoryDescriptor:
        """Returns the canonical descriptor."""
        if descriptor not in self.known:
            self.known[descriptor] = _kinds_of(descriptor, self.kinds)
        found = self.known[descriptor]
        if not found:
            return descriptor
        kind = self.decided if self.decided in found else found[0]
        return calls.MemoryDescriptor(
            descriptor.dims, kind(len(descriptor.dims)), data_type=descriptor.data_type
        )
