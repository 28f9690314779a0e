"""Primitives: described, created, and run on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byoc_mlir.onednn.constants import Arg, Query
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import Argument, OwnedHandle, check_status, engine
from byoc_mlir.runtime.system.memory import address_of, c_array
from byoc_mlir.tensors import Array

KEPT = 256
"""Number of primitives that a caller caches: enough for the largest networks, a few KB each."""


class PrimitiveDescriptor(OwnedHandle):
    """Implementation that oneDNN chose for a call, for the number of OpenMP threads set then."""

    def __init__(self, function: str, *arguments: Argument):
        """Creates a primitive descriptor.

        Args:
            function: the C function, such as `dnnl_convolution_forward_primitive_desc_create`.
            arguments: all arguments except the first one, the pointer to the result.

        Raises:
            ExecutionError: the library has no implementation.
        """
        self._own("primitive_desc", engine().create(function, *arguments))
        self._descriptors: dict[int, Descriptor] = {}

    @property
    def implementation(self) -> str:
        """Returns oneDNN's name of the implementation, such as `jit:avx2`."""
        name = ctypes.c_char_p()
        query = engine().library.dnnl_primitive_desc_query
        status = query(self.handle, Query.IMPL_INFO_STR, 0, ctypes.byref(name))
        check_status("dnnl_primitive_desc_query", status)
        return (name.value or b"unknown").decode()

    @property
    def scratchpad_bytes(self) -> int:
        """Returns the size of the scratchpad of an execution in bytes."""
        return self.descriptor(Arg.SCRATCHPAD).byte_size

    def descriptor(self, argument: int) -> Descriptor:
        """Returns the descriptor of an execution's argument; it lives as long as this object."""
        if argument not in self._descriptors:
            found = engine().query_descriptor(self.handle, Query.EXEC_ARG_MD, argument)
            self._descriptors[argument] = Descriptor(ctypes.c_void_p(found), is_part=True)
        return self._descriptors[argument]


class Primitive(OwnedHandle):
    """Executable primitive; any number of Python threads may run it at the same time."""

    def __init__(self, descriptor: PrimitiveDescriptor):
        """Creates the primitive from its descriptor.

        Raises:
            ExecutionError: the library cannot create it.
        """
        self.descriptor = descriptor
        self._own("primitive", engine().create("dnnl_primitive_create", descriptor))

    @classmethod
    def reorder(cls, given: Descriptor, wanted: Descriptor) -> Primitive:
        """Returns a primitive that copies memory to another layout."""
        return cls(
            PrimitiveDescriptor(
                "dnnl_reorder_primitive_desc_create",
                *(given, engine(), wanted, engine(), PrimitiveAttributes()),
            )
        )

    def execute(self, arrays: Mapping[int, Array]) -> None:
        """Runs the primitive once, see `BoundPrimitive`."""
        BoundPrimitive(self, arrays).run()


class _ExecutionArgument(ctypes.Structure):
    """Structure `dnnl_exec_arg_t`."""

    _fields_ = (("arg", ctypes.c_int), ("memory", ctypes.c_void_p))


class BoundPrimitive:
    """Primitive with its arguments, which may run any number of times, one at a time."""

    _arguments: Any = ()

    def __init__(
        self,
        primitive: Primitive,
        arrays: Mapping[int, Array],
        parameters: Mapping[int, Descriptor] | None = None,
    ):
        """Binds arrays to the primitive's arguments.

        Args:
            arrays: memory of the arguments, each in the layout of the primitive descriptor. A
                missing scratchpad is allocated.
            parameters: descriptors of arguments that the primitive descriptor does not describe.
        """
        self._primitive, self._arrays, self._engine = primitive, dict(arrays), engine()
        described = primitive.descriptor
        if Arg.SCRATCHPAD not in self._arrays:
            self._arrays[Arg.SCRATCHPAD] = described.descriptor(Arg.SCRATCHPAD).memory()
        self._arguments = c_array(_ExecutionArgument, len(self._arrays))()
        for place, (argument, array) in zip(self._arguments, self._arrays.items(), strict=True):
            given = parameters.get(argument) if parameters else None
            place.arg = argument
            place.memory = self._memory(given or described.descriptor(argument), array)

    def __del__(self) -> None:
        for place in self._arguments:
            self._engine.library.dnnl_memory_destroy(ctypes.c_void_p(place.memory))

    def run(self) -> None:
        """Runs the primitive, and waits until it is done.

        Raises:
            ExecutionError: the library cannot run it.
        """
        status = self._engine.library.dnnl_primitive_execute(
            self._primitive.handle, self._engine.stream, len(self._arguments), self._arguments
        )
        check_status("dnnl_primitive_execute", status)

    def _memory(self, descriptor: Descriptor, array: Array) -> int | None:
        """Returns a `dnnl_memory_t`; calls C directly, which is faster than `Engine.create`."""
        memory = ctypes.c_void_p()
        status = self._engine.library.dnnl_memory_create(
            *(ctypes.byref(memory), descriptor.handle, self._engine.handle),
            ctypes.c_void_p(address_of(array)),
        )
        check_status("dnnl_memory_create", status)
        return memory.value


@dataclass(frozen=True)
class ArrangedWeights:
    """Weights in the layouts that a primitive chose, and other arrays."""

    arrays: Mapping[int, Array]
    layouts: Mapping[int, Descriptor]

    def suit(self, primitive: Primitive) -> bool:
        """True if another primitive uses the same layouts."""
        return all(
            primitive.descriptor.descriptor(argument).is_same(layout)
            for argument, layout in self.layouts.items()
        )


def arranged(
    primitive: Primitive, argument: Arg, array: Array, given: Descriptor
) -> tuple[Array, Descriptor]:
    """Returns a copy of an array in the primitive's layout, and that layout.

    Args:
        given: the layout of the array.
    """
    layout = primitive.descriptor.descriptor(argument).copy()  # it may outlive the primitive
    memory = layout.memory()
    Primitive.reorder(given, layout).execute({Arg.SRC: array, Arg.DST: memory})
    return memory, layout
