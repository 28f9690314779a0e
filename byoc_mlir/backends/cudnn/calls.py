"""Functions that the code of all regions shares: they load plans, and run them.

One handle serves all regions of a program, and all its threads: a lock is held while work is
enqueued, since a handle belongs to one stream at a time. A failure leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import SLOT_BYTES
from byoc_mlir.backends.cudnn.constants import Attribute, Kind, Type
from byoc_mlir.backends.cudnn.library import version_text
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import LIBRARY_STATUS
from byoc_mlir.nvidia.libraries import explain

RETAIN, RELEASE = "cudnn_retain", "cudnn_release"
"""Functions `i32 ()` and `void ()`: create the handle at the first call, and destroy it at the
last one."""
LOAD_PLAN = "cudnn_load_plan"
"""Function `i32 (slot, json, bytes)`, which stores a plan's descriptor in a slot."""
FREE_PLAN = "cudnn_free_plan"
"""Function `void (plan)`; the plan may be null."""
BEGIN, END = "cudnn_begin", "cudnn_end"
"""Functions `i32 (queue)` and `void ()` around calls of `RUN`, for the stream of a queue. `END` is
called even if `BEGIN` fails.
"""
RUN = "cudnn_run"
"""Function `i32 (plan, numbers, addresses, count, workspace)`, which enqueues a plan."""

_COUNT, _HANDLE, _LOCK = "cudnn_count", "cudnn_handle", "cudnn_lock"
_LOCK_BYTES = 64
"""More than a `pthread_mutex_t`, which zeros initialise."""

_OTHER_VERSION = LIBRARY_STATUS
"""Status for a cuDNN other than that of the plans; those of cuDNN are greater."""

_CHECKED = "cudnn_checked"


def shared_functions(version: int) -> ModuleBuilder:
    """Returns the module of these functions, which all regions of a program give.

    Args:
        version: version of cuDNN that has written the plans.
    """
    code = _Functions(version)
    code.define_checked()
    code.define_retain()
    code.define_release()
    code.define_free_plan()
    code.define_load_plan()
    code.define_begin()
    code.define_end()
    code.define_run()
    return code.module


class _Functions:
    def __init__(self, version: int):
        self.module = ModuleBuilder()
        self._version = version
        for name, size in ((_COUNT, SLOT_BYTES), (_HANDLE, SLOT_BYTES), (_LOCK, _LOCK_BYTES)):
            self.module.variable(name, size)

    def define_checked(self) -> None:
        """Defines `i32 checked(status)`, which keeps the text of a failure."""
        function = self.module.function(_CHECKED, (i32,), internal=True)
        (status,) = function.parameters
        text = self._text(function, status)
        explain(function, status, text)
        function.finish(status)

    def _text(self, function: FunctionBuilder, status: SSAValue) -> Callable[[], SSAValue]:
        return lambda: function.call("cudnnGetErrorString", status, result=POINTER)

    def _call(self, function: FunctionBuilder, name: str, *arguments: SSAValue) -> SSAValue:
        """Calls a function of cuDNN; returns the status, whose text is kept."""
        return function.call(_CHECKED, function.call(f"cudnn{name}", *arguments))

    def define_retain(self) -> None:
        """Defines `RETAIN`; programs are loaded and unloaded by one thread."""
        create = self._define_create()
        function = self.module.function(RETAIN, (), internal=True)
        count = function.address(_COUNT)
        is_first = function.compare("eq", function.load(count), function.integer(0))
        function.when(is_first, lambda: function.check(function.call(create)))
        function.store(function.add(function.load(count), 1), count)
        function.finish(function.integer(0, i32))

    def _define_create(self) -> str:
        """Defines the function that creates the handle, if the version is right."""
        name = "cudnn_create"
        function = self.module.function(name, (), internal=True)
        text = self.module.text(
            "cudnn_other_version",
            f"the model was compiled for cuDNN {version_text(self._version)}, whose plans no other"
            " version loads, and there is another one here: compile the model again",
        )
        found = function.call("cudnnGetVersion", result=i64)
        is_other = function.compare("ne", found, function.integer(self._version))
        other, right = function.integer(_OTHER_VERSION, i32), function.integer(0, i32)
        status = function.select(is_other, other, right)
        explain(function, status, lambda: function.address(text))
        function.check(status)
        function.finish(self._call(function, "Create", function.address(_HANDLE)))
        return name

    def define_release(self) -> None:
        """Defines `RELEASE`."""
        function = self.module.function(RELEASE, (), result=VOID, internal=True)
        count = function.address(_COUNT)
        left = function.subtract(function.load(count), 1)
        function.store(left, count)
        is_last = function.compare("eq", left, function.integer(0))
        function.when(is_last, lambda: _ignore(function, "Destroy", self._handle(function)))
        function.finish()

    def _handle(self, function: FunctionBuilder) -> SSAValue:
        return function.load(function.address(_HANDLE), POINTER)

    def define_free_plan(self) -> None:
        """Defines `FREE_PLAN`."""
        function = self.module.function(FREE_PLAN, (POINTER,), result=VOID, internal=True)
        (plan,) = function.parameters
        exists = function.compare("ne", plan, function.null())
        function.when(exists, lambda: _ignore(function, "BackendDestroyDescriptor", plan))
        function.finish()

    def define_load_plan(self) -> None:
        """Defines `LOAD_PLAN`."""
        name = "cudnn_read_plan"
        inner = self.module.function(name, (POINTER, POINTER, i64), internal=True)
        plan, json, size = inner.parameters
        handle = inner.address(_HANDLE)
        one = inner.integer(1)
        self._set(inner, plan, Attribute.PLAN_HANDLE, Type.HANDLE, one, handle)
        self._set(inner, plan, Attribute.PLAN_JSON, Type.CHAR, size, json)
        inner.finish(self._call(inner, "BackendFinalize", plan))

        function = self.module.function(LOAD_PLAN, (POINTER, POINTER, i64), internal=True)
        slot, json, size = function.parameters
        function.check(self._create(function, Kind.PLAN, slot))
        status = function.call(name, function.load(slot, POINTER), json, size)
        self._destroy_if_failed(function, status, slot)
        function.finish(status)

    def _create(self, function: FunctionBuilder, kind: Kind, slot: SSAValue) -> SSAValue:
        number = function.integer(kind, i32)
        return self._call(function, "BackendCreateDescriptor", number, slot)

    def _set(
        self,
        function: FunctionBuilder,
        descriptor: SSAValue,
        attribute: Attribute,
        type_: Type,
        count: SSAValue,
        values: SSAValue,
    ) -> None:
        """Sets an attribute of a descriptor; the generated function returns a failure."""
        numbers = (function.integer(attribute, i32), function.integer(type_, i32))
        name = "BackendSetAttribute"
        function.check(self._call(function, name, descriptor, *numbers, count, values))

    def _destroy_if_failed(
        self, function: FunctionBuilder, status: SSAValue, slot: SSAValue
    ) -> None:
        def destroy() -> None:
            function.do(FREE_PLAN, function.load(slot, POINTER))
            function.store(function.null(), slot)

        function.when(function.failed(status), destroy)

    def define_begin(self) -> None:
        """Defines `BEGIN`."""
        function = self.module.function(BEGIN, (POINTER,), internal=True)
        function.call("pthread_mutex_lock", function.address(_LOCK))
        (queue,) = function.parameters
        function.finish(self._call(function, "SetStream", self._handle(function), queue))

    def define_end(self) -> None:
        """Defines `END`."""
        function = self.module.function(END, (), result=VOID, internal=True)
        function.call("pthread_mutex_unlock", function.address(_LOCK))
        function.finish()

    def define_run(self) -> None:
        """Defines `RUN`, which describes the addresses anew for each run."""
        execute = self._define_execute()
        parameters = (POINTER, POINTER, POINTER, i64, POINTER)
        function = self.module.function(RUN, parameters, internal=True)
        pack = function.stack_slot()
        function.check(self._create(function, Kind.VARIANT_PACK, pack))
        made = function.load(pack, POINTER)
        status = function.call(execute, made, *function.parameters)
        _ignore(function, "BackendDestroyDescriptor", made)
        function.finish(status)

    def _define_execute(self) -> str:
        name = "cudnn_execute"
        parameters = (POINTER, POINTER, POINTER, POINTER, i64, POINTER)
        function = self.module.function(name, parameters, internal=True)
        pack, plan, numbers, addresses, count, workspace = function.parameters
        space = function.stack_slot()
        function.store(workspace, space)
        one = function.integer(1)
        self._set(function, pack, Attribute.PACK_NUMBERS, Type.INT64, count, numbers)
        self._set(function, pack, Attribute.PACK_POINTERS, Type.POINTER, count, addresses)
        self._set(function, pack, Attribute.PACK_WORKSPACE, Type.POINTER, one, space)
        function.check(self._call(function, "BackendFinalize", pack))
        handle = self._handle(function)
        function.finish(self._call(function, "BackendExecute", handle, plan, pack))
        return name


def _ignore(function: FunctionBuilder, name: str, *arguments: SSAValue) -> None:
    """Calls a function of cuDNN that undoes another one, and ignores the status."""
    function.call(f"cudnn{name}", *arguments)
