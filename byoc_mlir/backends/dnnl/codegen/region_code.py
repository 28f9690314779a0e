"""State shared by the generators of a region's functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen import helpers
from byoc_mlir.backends.dnnl.codegen.program import RegionProgram
from byoc_mlir.backends.dnnl.codegen.slot_layout import SlotLayout
from byoc_mlir.backends.dnnl.codegen.table_arguments import ENGINE_SLOT
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.onednn import constants


@dataclass(frozen=True)
class RegionFunctions:
    """Module of a region's functions; functions that all regions share are added to `shared`."""

    program: RegionProgram
    symbol: str
    layout: SlotLayout
    shared: ModuleBuilder
    module: ModuleBuilder = field(default_factory=ModuleBuilder)

    def name(self, suffix: str) -> str:
        """Returns the symbol of an item of the region, such as `R_load`."""
        return f"{self.symbol}_{suffix}"

    def table(self, name: str, rows: Sequence[Sequence[int]]) -> str:
        """Adds a constant array with the words of all rows; returns its symbol."""
        words = [word for row in rows for word in row]
        return self.module.table(self.name(name), words or [0])

    def destroyer(self, name: str, parameters: int) -> FunctionBuilder:
        """Adds a function that returns nothing; its parameters are pointers."""
        return self.module.function(self.name(name), (POINTER,) * parameters, result=VOID)

    def destroy(
        self, function: FunctionBuilder, slots: SSAValue, destroy: str, first: int, end: int
    ) -> None:
        """Destroys the objects in the slots from `first` up to `end`, exclusive."""
        name = helpers.add_destroy_all(self.shared, destroy)
        count = function.integer(end - first)
        function.call(name, function.slot(slots, first), count)


def create_stream(function: FunctionBuilder, state: SSAValue, slot: SSAValue) -> None:
    """Creates a stream of the state's engine."""
    engine = function.pointer(state, ENGINE_SLOT)
    flags = function.integer(constants.IN_ORDER, i32)
    function.check(function.call("dnnl_stream_create", slot, engine, flags))
