"""Native code of a region: it chooses algorithms when it is loaded, and enqueues the matmuls."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.abi import LOAD, OPEN, START, UNLOAD
from byoc_mlir.backends.base import NativeCode, OpDetail
from byoc_mlir.backends.cublaslt.calls import (
    CHOOSE,
    DESCRIBE,
    ENQUEUE,
    OPERATION_SLOTS,
    RELEASE,
    RETAIN,
    STATE_SLOTS,
    shared_functions,
)
from byoc_mlir.backends.cublaslt.library import CUBLASLT
from byoc_mlir.backends.cublaslt.matmuls import matmul_of
from byoc_mlir.backends.inner_buffers import inner_offsets
from byoc_mlir.backends.region import nodes_of, outputs_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import DriverCode, driver_library

_WORKSPACE_SLOT, _FIRST_OPERATION_SLOT = 0, 1
"""Context slots: the address of the workspace, then each matmul's descriptor."""


def region_code(region: FuncOp) -> NativeCode:
    """Returns the code of a region."""
    code = _RegionCode(region)
    code.define_load()
    code.define_open()
    code.define_unload()
    code.define_start()
    count = len(code.matmuls)
    return NativeCode(
        code.module.module,
        state_slots=count * STATE_SLOTS,
        context_slots=_FIRST_OPERATION_SLOT + count * OPERATION_SLOTS,
        workspace_bytes=code.workspace_bytes,
        constants=code.constants,
        libraries=(driver_library(), CUBLASLT.requirement()),
        details=tuple(OpDetail(node_names(op), "cublasLtMatmul") for op in nodes_of(region)),
        shared=shared_functions().module,
    )


class _RegionCode:
    def __init__(self, region: FuncOp):
        self.module = ModuleBuilder()
        self._symbol = region.sym_name.data
        self._region = region
        self._driver = DriverCode(self.module, self._symbol)
        nodes = tuple(nodes_of(region))
        self.matmuls = tuple(map(matmul_of, nodes))
        self._results = tuple(op.results[0] for op in nodes)
        self._tables = tuple(
            self.module.table(f"{self._symbol}_words_{number}", matmul.words)
            for number, matmul in enumerate(self.matmuls)
        )
        self._offsets, self._library_offset = inner_offsets(region)
        sources = [one for matmul in self.matmuls for one in (matmul.a, matmul.b, matmul.bias)]
        self.constants: tuple[Weight, ...] = tuple(
            dict.fromkeys(one for one in sources if isinstance(one, Weight))
        )

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of the values between matmuls and of the library's workspace."""
        return self._library_offset + max(one.workspace_bytes for one in self.matmuls)

    def define_load(self) -> None:
        """Defines `R_load(state)`, which keeps the primary context and the handle."""
        function = self.module.function(LOAD.hook(self._symbol), (POINTER,))
        (state,) = function.parameters
        function.check(self._driver.enter(function))
        status = function.call(self._define_set_up(), state)
        self._driver.pop(function)
        failed = function.failed(status)
        function.when(failed, lambda: self._driver.release(function))
        function.finish(status)

    def _define_set_up(self) -> str:
        """Defines the function that chooses the algorithms in the current context."""
        function = self.module.function(f"{self._symbol}_set_up", (POINTER,), internal=True)
        function.check(function.call(RETAIN))
        status = function.call(self._define_choices(), *function.parameters)
        failed = function.failed(status)
        function.when(failed, lambda: function.do(RELEASE))
        function.finish(status)
        return f"{self._symbol}_set_up"

    def _define_choices(self) -> str:
        name = f"{self._symbol}_choices"
        function = self.module.function(name, (POINTER,), internal=True)
        (state,) = function.parameters
        for number, table in enumerate(self._tables):
            slots = function.slot(state, number * STATE_SLOTS)
            function.check(function.call(CHOOSE, slots, function.address(table)))
        function.finish(function.integer(0, i32))
        return name

    def define_open(self) -> None:
        """Defines `R_open(state, context, workspace)`, which describes the operations."""
        function = self.module.function(OPEN.hook(self._symbol), (POINTER,) * 3)
        _, context, workspace = function.parameters
        function.store(workspace, function.slot(context, _WORKSPACE_SLOT))
        for number, table in enumerate(self._tables):
            operation = _operation(function, context, number)
            function.check(function.call(DESCRIBE, operation, function.address(table)))
        function.finish(function.integer(0, i32))

    def define_unload(self) -> None:
        """Defines `R_unload(state)`."""
        function = self.module.function(UNLOAD.hook(self._symbol), (POINTER,), result=VOID)
        self._driver.enter(function)
        function.do(RELEASE)
        self._driver.leave(function)
        self._driver.release(function)
        function.finish()

    def define_start(self) -> None:
        """Defines `R_start(state, context, queue, …)`, which enqueues the matmuls."""
        tensors = len(self._region.args) + len(outputs_of(self._region))
        count = 3 + len(self.constants) + tensors
        function = self.module.function(f"{self._symbol}_{START}", (POINTER,) * count)
        queue = function.parameters[2]
        function.check(self._driver.enter_queue(function, queue))
        status = function.call(self._define_matmuls(count), *function.parameters)
        self._driver.pop(function)
        function.finish(status)

    def _define_matmuls(self, parameters: int) -> str:
        """Defines the function that enqueues the matmuls in the current context."""
        name = f"{self._symbol}_matmuls"
        function = self.module.function(name, (POINTER,) * parameters, internal=True)
        state, context, queue, *tensors = function.parameters
        addresses = self._addresses(function, tensors)
        workspace = function.pointer(context, _WORKSPACE_SLOT)
        for value, offset in self._offsets.items():
            addresses[value] = function.offset(workspace, function.integer(offset))
        library = function.offset(workspace, function.integer(self._library_offset))
        pairs = zip(self.matmuls, self._results, strict=True)
        for number, (matmul, result) in enumerate(pairs):
            bias = function.null() if matmul.bias is None else addresses[matmul.bias]
            operands = (addresses[matmul.b], addresses[matmul.a], addresses[result], bias)
            status = function.call(
                ENQUEUE,
                queue,
                function.slot(state, number * STATE_SLOTS),
                _operation(function, context, number),
                *operands,
                library,
                function.integer(matmul.workspace_bytes),
            )
            function.check(status)
        function.finish(function.integer(0, i32))
        return name

    def _addresses(
        self, function: FunctionBuilder, tensors: Sequence[SSAValue]
    ) -> dict[SSAValue | Weight, SSAValue]:
        """Returns the addresses of constants, inputs and outputs, the parameters of `R_start`."""
        outputs = outputs_of(self._region)
        named: Sequence[SSAValue | Weight] = (*self.constants, *self._region.args, *outputs)
        return dict(zip(named, tensors, strict=True))


def _operation(function: FunctionBuilder, context: SSAValue, number: int) -> SSAValue:
    """Returns the address of a matmul's descriptor in the context."""
    return function.slot(context, _FIRST_OPERATION_SLOT + number * OPERATION_SLOTS)
