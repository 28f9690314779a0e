"""Slots of a region's objects in its state and its contexts."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_mlir.backends.dnnl.codegen.helpers import FIRST_FREE_SLOT
from byoc_mlir.backends.dnnl.codegen.program import MemoryRef, RegionProgram

STREAM_SLOT = 0
"""The context slot of the stream."""


@dataclass(frozen=True)
class SlotLayout:
    """First slot of each kind of object."""

    descriptors: int
    attributes: int
    primitives: int
    constants: int
    packed: int
    buffers: int
    state_slots: int
    memories: int
    arguments: int
    context_slots: int

    def memory_slot(self, memory: MemoryRef) -> int:
        """Returns the slot of a memory object, in the state or in the context."""
        firsts = {"constant": self.constants, "packed": self.packed, "context": self.memories}
        return firsts[memory.kind] + memory.number


def slot_layout(program: RegionProgram) -> SlotLayout:
    """Assigns the slots of a program whose descriptors are all numbered."""
    attributes = FIRST_FREE_SLOT + len(program.descriptors.items)
    primitives = attributes + len(program.attributes.items)
    constants = primitives + len(program.primitives.items)
    packed = constants + len(program.constants.items)
    buffers = packed + len(program.packed)
    memories = STREAM_SLOT + 1
    arguments = memories + len(program.memories.items)
    pairs = sum(len(one.arguments) for execution in program.executions for one in execution.parts)
    return SlotLayout(
        descriptors=FIRST_FREE_SLOT,
        attributes=attributes,
        primitives=primitives,
        constants=constants,
        packed=packed,
        buffers=buffers,
        state_slots=buffers + len(program.packed),
        memories=memories,
        arguments=arguments,
        context_slots=arguments + 2 * pairs,
    )
