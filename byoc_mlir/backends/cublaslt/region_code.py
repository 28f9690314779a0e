"""Native code of a region: it chooses algorithms when it is loaded, and enqueues the matmuls."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.abi import UNLOAD
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
from byoc_mlir.nvidia.driver import DriverCode, driver_library
from byoc_mlir.nvidia.region_functions import define_load, define_start

_FIRST_OPERATION_SLOT = WORKSPACE_SLOT + 1
"""First context slot of the matmuls' descriptors."""


def region_code(region: FuncOp) -> NativeCode:
    """Returns the code of a region."""
    code = _MatmulCode(region)
    symbol, count = region.sym_name.data, len(code.matmuls)
    tensors = len(code.constants) + len(region.args) + len(outputs_of(region))
    define_load(code.driver, symbol, code.define_set_up)
    define_open(code.module, symbol, code.describe)
    code.define_unload()
    define_start(code.driver, symbol, 3 + tensors, code.define_matmuls)
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


class _MatmulCode:
    def __init__(self, region: FuncOp):
        self.module = ModuleBuilder()
        self._symbol = region.sym_name.data
        self._region = region
        self.driver = DriverCode(self.module, self._symbol)
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

    def define_set_up(self) -> str:
        """Defines the function that gets the handle and chooses the algorithms; returns its
        symbol.
        """
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

    def describe(self, function: FunctionBuilder, context: SSAValue) -> None:
        """Adds code that describes the operations in a context."""
        for number, table in enumerate(self._tables):
            operation = _operation(function, context, number)
            function.check(function.call(DESCRIBE, operation, function.address(table)))

    def define_unload(self) -> None:
        """Defines `R_unload(state)`."""
        function = self.module.function(UNLOAD.hook(self._symbol), (POINTER,), result=VOID)
        self.driver.finish_freeing(function, lambda: function.do(RELEASE))

    def define_matmuls(self, parameters: int) -> str:
        """Defines the function that enqueues the matmuls in the current context; returns its
        symbol.
        """
        name = f"{self._symbol}_matmuls"
        function = self.module.function(name, (POINTER,) * parameters, internal=True)
        state, context, queue, *tensors = function.parameters
        workspace = function.pointer(context, WORKSPACE_SLOT)
        addresses = value_addresses(
            function, self._region, tensors, workspace, self._offsets, self.constants
        )
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


def _operation(function: FunctionBuilder, context: SSAValue, number: int) -> SSAValue:
    """Returns the address of a matmul's descriptor in the context."""
    return function.slot(context, _FIRST_OPERATION_SLOT + number * OPERATION_SLOTS)
