"""Functions that the code of all regions shares: they set up matmuls, and enqueue them.

Descriptors of cuBLASLt lie in slots of the state and of the context, so none is allocated. What all
contexts share, the layouts and the algorithm, is in the state. The descriptor of the operation has
the bias's address, so each context has its own.

One handle serves all regions of a program, and all threads.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.cublaslt.matmuls import Field, LayoutField
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import LIBRARY_STATUS
from byoc_mlir.nvidia.libraries import explain

RETAIN, RELEASE = "cublaslt_retain", "cublaslt_release"
"""Functions `i32 ()` and `void ()`: create the handle at the first call, and destroy it at the
last."""
LAYOUT = "cublaslt_layout"
"""Function `i32 (layout, words)`, which sets up the layout of a matrix."""
DESCRIBE = "cublaslt_describe"
"""Function `i32 (operation, words)`, which sets up the descriptor of an operation."""
CHOOSE = "cublaslt_choose"
"""Function `i32 (slots, words)`, which sets up a matmul's slots of the state."""
ENQUEUE = "cublaslt_enqueue"
"""Function `i32 (queue, slots, operation, b, a, result, bias, workspace, bytes)`; the bias may be
null."""

OPERATION_SLOTS = 32
"""Slots of `cublasLtMatmulDescOpaque_t`."""
LAYOUT_SLOTS = 14
"""Slots of `cublasLtMatrixLayoutOpaque_t`."""
_ALGORITHM = 3 * LAYOUT_SLOTS
"""First slot of the algorithm, after the layouts of B, A and the result."""
STATE_SLOTS = _ALGORITHM + 8
"""Slots of a matmul's layouts and `cublasLtMatmulAlgo_t`."""
_PREFERENCE_SLOTS, _FOUND_SLOTS = 12, 12
"""Slots of `cublasLtMatmulPreferenceOpaque_t` and `cublasLtMatmulHeuristicResult_t`."""

_SLOT_BYTES = 8

_OPERATION_ATTRIBUTES = {Field.TRANSPOSES_B: 3, Field.TRANSPOSES_A: 4, Field.EPILOGUE: 7}
"""`cublasLtMatmulDescAttributes_t` of words."""
_BIAS_POINTER = 8
_BATCH_COUNT, _BATCH_STRIDE = 5, 6
"""`cublasLtMatrixLayoutAttribute_t`."""
_PREFERRED_WORKSPACE, _PREFERRED_ALIGNMENTS = 1, (5, 6, 7, 8)
"""`cublasLtMatmulPreferenceAttributes_t`."""

_ALIGNMENT = 16
"""Alignment of all operands in bytes, which algorithms with vectorised loads require. The arena and
uploaded constants are aligned more strictly."""

_F32_SCALES = 0
"""`cudaDataType_t` of the factors of the product and of the old result."""

_NOT_SUPPORTED = 15
"""`cublasStatus_t` of matmuls without an algorithm."""

_COUNT, _HANDLE = "cublaslt_count", "cublaslt_handle"


def shared_functions() -> ModuleBuilder:
    """Returns the module of these functions, which all regions of a program give."""
    module = ModuleBuilder()
    module.variable(_COUNT, _SLOT_BYTES)
    module.variable(_HANDLE, _SLOT_BYTES)
    _define_status(module)
    _define_retain(module)
    _define_release(module)
    _define_layout(module)
    _define_describe(module)
    _define_choose(module)
    _define_enqueue(module)
    return module


_STATUS = "cublaslt_status"


def _define_status(module: ModuleBuilder) -> None:
    """Defines `i32 status(status)`, which makes a status of cuBLASLt one of the device."""
    function = module.function(_STATUS, (i32,), internal=True)
    (status,) = function.parameters
    failed = function.failed(status)
    moved = function.binary(llvm.AddOp, status, function.integer(LIBRARY_STATUS, i32))
    explain(
        function,
        status,
        lambda: function.call("cublasLtGetStatusString", status, result=POINTER),
    )
    function.finish(function.select(failed, moved, status))


def _call(function: FunctionBuilder, name: str, *arguments: SSAValue) -> None:
    """Calls a function of cuBLASLt; if it fails, the generated function returns the status."""
    function.check(function.call(_STATUS, function.call(f"cublasLt{name}", *arguments)))


def _define_retain(module: ModuleBuilder) -> None:
    function = module.function(RETAIN, (), internal=True)
    count = function.address(_COUNT)
    handle = function.address(_HANDLE)
    is_first = function.compare("eq", function.load(count), function.integer(0))
    function.when(is_first, lambda: _call(function, "Create", handle))
    function.store(function.add(function.load(count), 1), count)
    function.finish(function.integer(0, i32))


def _define_release(module: ModuleBuilder) -> None:
    function = module.function(RELEASE, (), result=VOID, internal=True)
    count = function.address(_COUNT)
    left = function.subtract(function.load(count), 1)
    function.store(left, count)
    handle = function.address(_HANDLE)
    is_last = function.compare("eq", left, function.integer(0))
    function.when(is_last, lambda: function.call("cublasLtDestroy", function.pointer(handle, 0)))
    function.finish()


def _define_layout(module: ModuleBuilder) -> None:
    function = module.function(LAYOUT, (POINTER, POINTER), internal=True)
    layout, words = function.parameters
    element = function.word(words, LayoutField.TYPE, i32)
    rows, columns = (
        function.word(words, field) for field in (LayoutField.ROWS, LayoutField.COLUMNS)
    )
    size = function.integer(LAYOUT_SLOTS * _SLOT_BYTES)
    _call(function, "MatrixLayoutInit_internal", layout, size, element, rows, columns, rows)
    for attribute, field, width in (
        (_BATCH_COUNT, LayoutField.COUNT, 4),
        (_BATCH_STRIDE, LayoutField.STRIDE, 8),
    ):
        _set(function, "MatrixLayoutSetAttribute", layout, attribute, words, field, width)
    function.finish(function.integer(0, i32))


def _define_describe(module: ModuleBuilder) -> None:
    function = module.function(DESCRIBE, (POINTER, POINTER), internal=True)
    operation, words = function.parameters
    size = function.integer(OPERATION_SLOTS * _SLOT_BYTES)
    compute = function.word(words, Field.COMPUTE_TYPE, i32)
    scales = function.integer(_F32_SCALES, i32)
    _call(function, "MatmulDescInit_internal", operation, size, compute, scales)
    for field, attribute in _OPERATION_ATTRIBUTES.items():
        _set(function, "MatmulDescSetAttribute", operation, attribute, words, field, 4)
    _set_number(function, "MatmulDescSetAttribute", operation, _BIAS_POINTER, _ALIGNMENT, 8)
    function.finish(function.integer(0, i32))


def _define_choose(module: ModuleBuilder) -> None:
    function = module.function(CHOOSE, (POINTER, POINTER), internal=True)
    slots, words = function.parameters
    layouts = [function.slot(slots, number * LAYOUT_SLOTS) for number in range(3)]
    for number, layout in enumerate(layouts):
        first = Field.FIRST_LAYOUT + number * len(LayoutField)
        function.check(function.call(LAYOUT, layout, function.slot(words, first)))
    operation = function.stack_slots(OPERATION_SLOTS)
    function.check(function.call(DESCRIBE, operation, words))
    preference = _preference(function, words)
    found, count = function.stack_slots(_FOUND_SLOTS), function.stack_slot()
    handle = function.pointer(function.address(_HANDLE), 0)
    b, a, result = layouts
    matrices = (b, a, result, result)
    one = function.integer(1, i32)
    _call(
        function,
        "MatmulAlgoGetHeuristic",
        *(handle, operation, *matrices, preference, one, found, count),
    )
    is_found = function.compare("ne", function.load(count), function.integer(0))
    unsupported = function.integer(_NOT_SUPPORTED, i32)
    status = function.select(is_found, function.integer(0, i32), unsupported)
    function.check(function.call(_STATUS, status))
    for number in range(STATE_SLOTS - _ALGORITHM):
        function.store(function.word(found, number), function.slot(slots, _ALGORITHM + number))
    function.finish(function.integer(0, i32))


def _preference(function: FunctionBuilder, words: SSAValue) -> SSAValue:
    """Sets up the preferences for the choice of an algorithm, on the stack."""
    preference = function.stack_slots(_PREFERENCE_SLOTS)
    size = function.integer(_PREFERENCE_SLOTS * _SLOT_BYTES)
    _call(function, "MatmulPreferenceInit_internal", preference, size)
    setter = "MatmulPreferenceSetAttribute"
    _set(function, setter, preference, _PREFERRED_WORKSPACE, words, Field.WORKSPACE, 8)
    for attribute in _PREFERRED_ALIGNMENTS:
        _set_number(function, setter, preference, attribute, _ALIGNMENT, 4)
    return preference


def _define_enqueue(module: ModuleBuilder) -> None:
    function = module.function(ENQUEUE, (*(POINTER,) * 8, i64), internal=True)
    queue, slots, operation, b, a, result, bias, workspace, size = function.parameters

    def set_bias() -> None:
        value = function.stack_array([bias])
        attribute, width = function.integer(_BIAS_POINTER, i32), function.integer(8)
        _call(function, "MatmulDescSetAttribute", operation, attribute, value, width)

    function.when(function.compare("ne", bias, function.null()), set_bias)
    one, zero = (function.stack_array([function.real(value)]) for value in (1.0, 0.0))
    at_b, at_a, at_result = (function.slot(slots, n * LAYOUT_SLOTS) for n in range(3))
    handle = function.pointer(function.address(_HANDLE), 0)
    operands = (one, b, at_b, a, at_a, zero, result, at_result, result, at_result)
    algorithm = function.slot(slots, _ALGORITHM)
    _call(function, "Matmul", handle, operation, *operands, algorithm, workspace, size, queue)
    function.finish(function.integer(0, i32))


def _set(
    function: FunctionBuilder,
    setter: str,
    target: SSAValue,
    attribute: int,
    words: SSAValue,
    field: int,
    width: int,
) -> None:
    """Sets an attribute of a descriptor to the low `width` bytes of a word."""
    number, size = function.integer(attribute, i32), function.integer(width)
    _call(function, setter, target, number, function.slot(words, field), size)


def _set_number(
    function: FunctionBuilder, setter: str, target: SSAValue, attribute: int, value: int, width: int
) -> None:
    """Sets an attribute of a descriptor to the low `width` bytes of a number."""
    word = function.stack_array([function.integer(value)])
    _set(function, setter, target, attribute, word, 0, width)
