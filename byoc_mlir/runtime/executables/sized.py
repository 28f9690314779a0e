"""Programs whose sizes are arguments: one for all input shapes that fulfil its guards."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from byoc_mlir.boundary import boundary
from byoc_mlir.dims import GREATEST_SIZE, LEAST_HINT, Guard, Size, SymbolInfo, evaluated, symbol
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.limits import Limits, check_tensor, limited
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.instance import Context, Instance, new_outputs
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import Array, Program, Step
from byoc_mlir.runtime.system.addresses import address_of


@dataclass(frozen=True)
class SizedTensor:
    """A tensor of the model, which a limit holds for."""

    sizes: tuple[Size, ...]
    item_bytes: int
    what: str
    node: str | None


@dataclass(frozen=True)
class SizedProgram:
    """A program with symbolic sizes; the shapes and the arena of `program` are those for hints."""

    program: Program
    symbols: tuple[SymbolInfo, ...]
    """In the order in which native code takes their sizes."""
    guards: tuple[Guard, ...]
    inputs: tuple[tuple[Size, ...], ...]
    outputs: tuple[tuple[Size, ...], ...]
    arena: Size
    """In bytes."""
    limits: Limits
    tensors: tuple[SizedTensor, ...] = ()
    """Those that are checked, where the limit is less than what can be addressed."""
    work: tuple[tuple[Size, Size], ...] = ()
    """Of each step that is timed: its multiplications and its bytes."""

    def sizes(self, shapes: Sequence[Shape]) -> Mapping[str, int]:
        """What the symbols are for input shapes.

        Raises:
            InvalidInputError: two inputs disagree about one.
        """
        found: dict[str, tuple[int, str]] = {}
        for (input_name, axes), shape in zip(self._named_axes, shapes, strict=True):
            for axis, name in axes:
                number = shape[axis]
                known, where = found.setdefault(name, (number, input_name))
                if known != number:
                    raise InvalidInputError(
                        f"dimension {axis} of input '{input_name}' is '{name}', which is {known} in"
                        f" input '{where}'; found {number}"
                    )
        return {name: found[text][0] for name, text in self._texts.items()}

    @cached_property
    def _named_axes(self) -> Sequence[tuple[str, Sequence[tuple[int, str]]]]:
        """By input: the axes whose sizes are symbols, and these as text."""
        return [
            (
                spec.name,
                [(axis, str(one)) for axis, one in enumerate(sizes) if not isinstance(one, int)],
            )
            for spec, sizes in zip(self.program.inputs, self.inputs, strict=True)
        ]

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        """The symbols as sizes, as text."""
        return {info.name: _text(info.name) for info in self.symbols}

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the sizes must be, as text; sizes of 0 and more are understood."""
        bounded = [info for info in self.symbols if info.min > 0 or info.max is not None]
        least = [f"{info.min} <= {_text(info.name)}" for info in bounded if info.min > 0]
        most = [f"{_text(info.name)} <= {info.max}" for info in bounded if info.max is not None]
        return (*least, *most, *map(str, self.guards))

    def is_for(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is right for these sizes of the symbols."""
        return all(_within(info, sizes[info.name]) for info in self.symbols) and all(
            guard.holds(sizes) for guard in self.guards
        )

    def is_made_for(self, sizes: Mapping[str, int]) -> bool:
        """Whether these sizes as hints, which 0 and 1 are not, decide as those that it was made
        for.
        """
        return self.is_for({name: max(LEAST_HINT, size) for name, size in sizes.items()})


def _text(name: str) -> str:
    """A symbol as a size."""
    return str(symbol(name))


def _within(info: SymbolInfo, size: int) -> bool:
    least, greatest = info.range
    return least <= size <= min(greatest, GREATEST_SIZE)


class Call:
    """What a call with inputs of given shapes needs."""

    def __init__(self, program: SizedProgram, sizes: Mapping[str, int]):
        limits = program.limits
        self._program, self._numbers = program, sizes
        self.sizes = np.array([sizes[info.name] for info in program.symbols], np.int64)
        self.sizes_address = address_of(self.sizes)
        self.outputs = [
            (tuple(evaluated(size, sizes) for size in shape), spec.dtype)
            for shape, spec in zip(program.outputs, program.program.outputs, strict=True)
        ]
        self.arena_bytes = evaluated(program.arena, sizes)
        output_bytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.outputs)
        for tensor in program.tensors:
            shape = [evaluated(size, sizes) for size in tensor.sizes]
            with boundary("run", tensor.node), limited(limits):
                check_tensor(shape, tensor.item_bytes, tensor.what)
        limits.check("arena_bytes", self.arena_bytes, "bytes of the arena")
        limits.check("output_bytes", output_bytes, "bytes of the model's outputs")

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The steps that are timed, with their work at these sizes."""
        return [
            replace(step, multiplications=self._number(products), bytes=self._number(moved))
            for step, (products, moved) in zip(
                self._program.program.steps, self._program.work, strict=True
            )
        ]

    def _number(self, size: Size) -> int:
        return evaluated(size, self._numbers)


class SizedContext(Context):
    """As `Context`; its first pointer is that of the sizes, and its arena grows."""

    def reserve(self, size: int) -> None:
        """Makes the arena at least as large."""
        if size <= self.arena_bytes:
            return
        self.allocate(size)
        state, slots, _, inputs, outputs = self.arguments
        self.arguments = (state, slots, ctypes.c_void_p(self.arena_address), inputs, outputs)


def _prepare(context: Context, call: Call, arrays: Sequence[Array]) -> None:
    """Sets what native code reads: the sizes, inputs and outputs, an arena that is large enough."""
    if call.arena_bytes > context.arena_bytes:
        assert isinstance(context, SizedContext)
        context.reserve(call.arena_bytes)
    pointers = context.pointers
    pointers[0] = call.sizes_address
    place = 1
    for array in arrays:
        pointers[place] = address_of(array)
        place += 1


class SizedInstance(Instance):
    """A program with symbolic sizes that is linked and loaded."""

    def __init__(self, sized: SizedProgram):
        super().__init__(sized.program)
        self.sized = sized

    def call(self, sizes: Mapping[str, int]) -> Call:
        """What a call for these sizes needs.

        Raises:
            LimitExceededError: it needs more than is allowed.
        """
        return Call(self.sized, sizes)

    def run_sized(
        self, call: Call, inputs: Sequence[Array], outputs: list[Array] | None = None
    ) -> list[Array]:
        """As `run`, for inputs and outputs of the shapes of `call`."""
        outputs = new_outputs(call.outputs) if outputs is None else outputs
        context = self._lease()
        try:
            _prepare(context, call, (*inputs, *outputs))
            self._run_in(context)
        finally:
            self._free.append(context)
        return outputs

    def timed_sized(self, call: Call, inputs: Sequence[Array]) -> tuple[list[Array], TimedPart]:
        """As `timed`, for inputs of the shapes of `call`."""
        outputs = new_outputs(call.outputs)
        context = self._lease()
        try:
            _prepare(context, call, (*inputs, *outputs))
            return outputs, self._run_timed(context, call.steps)
        finally:
            self._free.append(context)

    def _make_context(self) -> Context:
        return SizedContext(self.program, self._state_address, hidden=1)
