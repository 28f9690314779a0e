"""Native code of a region: it loads the plans, and enqueues them on a queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.abi import LOAD, START, UNLOAD
from byoc_mlir.backends.base import NativeCode, OpDetail
from byoc_mlir.backends.cudnn.calls import (
    BEGIN,
    END,
    FREE_PLANS,
    LOAD_PLANS,
    RUN,
    shared_functions,
)
from byoc_mlir.backends.cudnn.convolutions import ConvolutionCall, call_of
from byoc_mlir.backends.cudnn.library import CUDNN, load_cudnn
from byoc_mlir.backends.cudnn.plans import plan_of
from byoc_mlir.backends.inner_buffers import (
    WORKSPACE_SLOT,
    define_open,
    inner_offsets,
    value_addresses,
)
from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.locks import cached_property
from byoc_mlir.nvidia.driver import driver_library

_CONTEXT_SLOTS = 1


def generator() -> Callable[[FuncOp], NativeCode]:
    """Returns a function that generates the code of a region, for regions of one program: they
    share functions.

    Raises:
        BackendError: there is no cuDNN.
    """
    return partial(_region_code, shared=shared_functions(load_cudnn().version))


def _region_code(region: FuncOp, shared: ModuleBuilder) -> NativeCode:
    """Returns the code of a region.

    Raises:
        BackendError: cuDNN has no plan for a convolution.
    """
    code = _ConvolutionCode(region)
    code.define_load()
    define_open(code.module, region.sym_name.data)
    code.define_unload()
    code.define_start()
    nodes = (node_names(op) for op in nodes_of(region))
    return NativeCode(
        code.module.module,
        state_slots=len(code.plans),
        context_slots=_CONTEXT_SLOTS,
        workspace_bytes=code.workspace_bytes,
        constants=code.constants,
        libraries=(driver_library(), CUDNN.requirement()),
        details=tuple(
            OpDetail(names, f"engine {plan.engine}")
            for names, plan in zip(nodes, code.plans, strict=True)
        ),
        shared=shared.module,
    )


class _ConvolutionCode:
    def __init__(self, region: FuncOp):
        self.module = ModuleBuilder()
        self._symbol, self._region = region.sym_name.data, region
        self._calls = tuple(call_of(op) for op in nodes_of(region))
        self.plans = tuple(plan_of(call.convolution) for call in self._calls)
        self._offsets, self._library_offset = inner_offsets(region)

    @cached_property
    def constants(self) -> tuple[Weight, ...]:
        """Returns the constants, each once."""
        sources = (source for call in self._calls for source in call.operands.values())
        return tuple(dict.fromkeys(one for one in sources if isinstance(one, Weight)))

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of the values between convolutions and of the library's workspace."""
        return self._library_offset + max(plan.workspace_bytes for plan in self.plans)

    def define_load(self) -> None:
        """Defines `R_load(state)`, which loads the plans."""
        texts = self.module.data(f"{self._symbol}_plans", b"".join(p.json for p in self.plans))
        ends = tuple(accumulate(len(plan.json) for plan in self.plans))
        table = self.module.table(f"{self._symbol}_ends", ends)
        function = self.module.function(LOAD.hook(self._symbol), (POINTER,))
        (state,) = function.parameters
        tables = (function.address(texts), function.address(table))
        count = function.integer(len(self.plans))
        function.finish(function.call(LOAD_PLANS, state, *tables, count))

    def define_unload(self) -> None:
        """Defines `R_unload(state)`."""
        function = self.module.function(UNLOAD.hook(self._symbol), (POINTER,), result=VOID)
        function.do(FREE_PLANS, *function.parameters, function.integer(len(self.plans)))
        function.finish()

    def define_start(self) -> None:
        """Defines `R_start(state, context, queue, …)`, which enqueues the convolutions."""
        tensors = len(self._region.args) + len(outputs_of(self._region))
        parameters = (POINTER,) * (3 + len(self.constants) + tensors)
        runs = self._define_runs(parameters)
        function = self.module.function(f"{self._symbol}_{START}", parameters)
        function.check(function.call(BEGIN, function.parameters[2]))
        status = function.call(runs, *function.parameters)
        function.do(END)
        function.finish(status)

    def _define_runs(self, parameters: Sequence[Attribute]) -> str:
        """Defines the function that enqueues the convolutions in the current context."""
        name = f"{self._symbol}_runs"
        function = self.module.function(name, parameters, internal=True)
        state, context, _, *tensors = function.parameters
        workspace = function.pointer(context, WORKSPACE_SLOT)
        addresses = value_addresses(
            function, self._region, tensors, workspace, self._offsets, self.constants
        )
        library = function.offset(workspace, function.integer(self._library_offset))
        slots = function.stack_slots(max(len(call.operands) for call in self._calls))
        for number, call in enumerate(self._calls):
            for slot, source in enumerate(call.operands.values()):
                function.store(addresses[source], function.slot(slots, slot))
            plan, numbers = function.pointer(state, number), self._numbers(function, call)
            count = function.integer(len(call.operands))
            function.check(function.call(RUN, plan, numbers, slots, count, library))
        function.finish(function.integer(0, i32))
        return name

    def _numbers(self, function: FunctionBuilder, call: ConvolutionCall) -> SSAValue:
        """Returns the address of the numbers of a plan's tensors."""
        roles = tuple(call.operands)
        name = "_".join((self._symbol, "numbers", *(role.name.lower() for role in roles)))
        if not self.module.has(name):
            self.module.table(name, roles)
        return function.address(name)
