"""Functions that the code of all regions shares: they load plans, and run them.

One handle serves all regions of a program, and all its threads: a lock is held while work is
enqueued, since a handle belongs to one stream at a time. A failure leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import SLOT_BYTES
from byoc_mlir.backends.cudnn.constants import Attribute, DescriptorKind, Type
from byoc_mlir.backends.cudnn.library import version_text
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import LIBRARY_STATUS, DriverCode
from byoc_mlir.nvidia.libraries import explain

LOAD_PLANS = "cudnn_load_plans"
"""Function `i32 (state, texts, ends, count)`, which loads the plans of a region into the slots of
its state. Plan `n` is the text up to the offset `ends[n]`. They keep the primary context and the
handle.
"""
FREE_PLANS = "cudnn_free_plans"
"""Function `void (state, count)`, which undoes `LOAD_PLANS`."""
BEGIN, END = "cudnn_begin", "cudnn_end"
"""Functions `i32 (queue)` and `void ()` around calls of `RUN`, for the stream of a queue."""
RUN = "cudnn_run"
"""Function `i32 (plan, numbers, addresses, count, workspace)`, which enqueues a plan."""

_COUNT, _HANDLE, _LOCK = "cudnn_count", "cudnn_handle", "cudnn_lock"
_LOCK_BYTES = 64
"""More than a `pthread_mutex_t`, which zeros initialise."""

_OTHER_VERSION = LIBRARY_STATUS
"""Status for a cuDNN other than that of the plans; those of cuDNN are greater."""

_CHECKED, _RETAIN, _RELEASE = "cudnn_checked", "cudnn_retain", "cudnn_release"
_LOAD, _FREE = "cudnn_load_plan", "cudnn_free_plan"


def shared_functions(version: int) -> ModuleBuilder:
    """Returns the module of these functions, which all regions of a program give.

    Args:
        version: version of cuDNN that has written the plans.
    """
    code = _Functions(version)
    code.define_checked()
    code.define_retain()
    code.define_release()
    code.define_free_plans()
    code.define_load_plans()
    code.define_begin()
    code.define_end()
    code.define_run()
    return code.module


class _Functions:
    def __init__(self, version: int):
        self.module = ModuleBuilder()
        self._version = version
        self._driver = DriverCode(self.module, "cudnn_driver")
        for name, size in ((_COUNT, SLOT_BYTES), (_HANDLE, SLOT_BYTES), (_LOCK, _LOCK_BYTES)):
            self.module.variable(name, size)

    def define_checked(self) -> None:
        """Defines `i32 checked(status)`, which keeps the text of a failure."""
        function = self.module.function(_CHECKED, (i32,), internal=True)
        (status,) = function.parameters
        text = partial(function.call, "cudnnGetErrorString", status, result=POINTER)
        explain(function, status, text)
        function.finish(status)

    def _call(self, function: FunctionBuilder, name: str, *arguments: SSAValue) -> SSAValue:
        """Calls a function of cuDNN; returns the status, whose text is kept."""
        return function.call(_CHECKED, function.call(f"cudnn{name}", *arguments))

    def define_retain(self) -> None:
        """Defines `i32 retain()`, whose first call creates the handle.

        Programs are loaded and unloaded by one thread.
        """
        create = self._define_create()
        function = self.module.function(_RETAIN, (), internal=True)
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
        """Defines `void release()`, whose last call destroys the handle."""
        function = self.module.function(_RELEASE, (), result=VOID, internal=True)
        count = function.address(_COUNT)
        left = function.subtract(function.load(count), 1)
        function.store(left, count)
        is_last = function.compare("eq", left, function.integer(0))
        function.when(is_last, lambda: function.call("cudnnDestroy", self._handle(function)))
        function.finish()

    def _handle(self, function: FunctionBuilder) -> SSAValue:
        return function.load(function.address(_HANDLE), POINTER)

    def define_free_plans(self) -> None:
        """Defines `FREE_PLANS`."""
        inner = self.module.function(_FREE, (POINTER, i64), result=VOID, internal=True)
        state, count = inner.parameters
        inner.loop(count, lambda index: self._free_one(inner, inner.slot(state, index)))
        inner.do(_RELEASE)
        inner.finish()

        function = self.module.function(FREE_PLANS, (POINTER, i64), result=VOID, internal=True)
        self._driver.finish_freeing(function, lambda: function.do(_FREE, *function.parameters))

    def _free_one(self, function: FunctionBuilder, slot: SSAValue) -> None:
        """Destroys a plan, if there is one in the slot."""
        plan = function.load(slot, POINTER)

        def free() -> None:
            function.call("cudnnBackendDestroyDescriptor", plan)
            function.store(function.null(), slot)

        function.when(function.compare("ne", plan, function.null()), free)

    def define_load_plans(self) -> None:
        """Defines `LOAD_PLANS`."""
        load, parameters = self._define_load(), (POINTER, POINTER, POINTER, i64)
        function = self.module.function(LOAD_PLANS, parameters, internal=True)
        state, _, _, count = function.parameters
        function.check(self._driver.enter(function))
        retained = function.call(_RETAIN)
        status = function.stack_array([retained])

        def load_all() -> None:
            loaded = function.call(load, *function.parameters)
            function.store(loaded, status)
            function.when(function.failed(loaded), lambda: function.do(_FREE, state, count))

        is_retained = function.compare("eq", retained, function.integer(0, i32))
        function.when(is_retained, load_all)
        self._driver.pop(function)
        found = function.load(status, i32)
        function.when(function.failed(found), lambda: self._driver.release(function))
        function.finish(found)

    def _define_load(self) -> str:
        """Defines the function that loads plans in the current context."""
        one = self._define_load_one()
        parameters = (POINTER, POINTER, POINTER, i64)
        function = self.module.function("cudnn_load_each", parameters, internal=True)
        state, texts, ends, count = function.parameters

        def load(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (begin,) = carried
            end = function.load(function.slot(ends, index))
            text, size = function.offset(texts, begin), function.subtract(end, begin)
            function.check(function.call(one, function.slot(state, index), text, size))
            return (end,)

        function.fold(count, (function.integer(0),), load)
        function.finish(function.integer(0, i32))
        return "cudnn_load_each"

    def _define_load_one(self) -> str:
        """Defines the function that loads a plan into a slot, which a failure leaves there."""
        function = self.module.function(_LOAD, (POINTER, POINTER, i64), internal=True)
        slot, json, size = function.parameters
        function.check(self._create(function, DescriptorKind.PLAN, slot))
        plan, handle = function.load(slot, POINTER), function.address(_HANDLE)
        one = function.integer(1)
        self._set(function, plan, Attribute.PLAN_HANDLE, Type.HANDLE, one, handle)
        self._set(function, plan, Attribute.PLAN_JSON, Type.CHAR, size, json)
        function.finish(self._call(function, "BackendFinalize", plan))
        return _LOAD

    def _create(self, function: FunctionBuilder, kind: DescriptorKind, slot: SSAValue) -> SSAValue:
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

    def define_begin(self) -> None:
        """Defines `BEGIN`, which makes the context of the queue current and takes the lock."""
        function = self.module.function(BEGIN, (POINTER,), internal=True)
        (queue,) = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        function.call("pthread_mutex_lock", function.address(_LOCK))
        status = self._call(function, "SetStream", self._handle(function), queue)
        function.when(function.failed(status), lambda: function.do(END))
        function.finish(status)

    def define_end(self) -> None:
        """Defines `END`."""
        function = self.module.function(END, (), result=VOID, internal=True)
        function.call("pthread_mutex_unlock", function.address(_LOCK))
        self._driver.pop(function)
        function.finish()

    def define_run(self) -> None:
        """Defines `RUN`, which describes the addresses anew for each run."""
        execute = self._define_execute()
        parameters = (POINTER, POINTER, POINTER, i64, POINTER)
        function = self.module.function(RUN, parameters, internal=True)
        pack = function.stack_slot()
        function.check(self._create(function, DescriptorKind.VARIANT_PACK, pack))
        made = function.load(pack, POINTER)
        status = function.call(execute, made, *function.parameters)
        function.call("cudnnBackendDestroyDescriptor", made)
        function.finish(status)

    def _define_execute(self) -> str:
        name = "cudnn_execute"
        parameters = (POINTER, POINTER, POINTER, POINTER, i64, POINTER)
        function = self.module.function(name, parameters, internal=True)
        pack, plan, numbers, addresses, count, workspace = function.parameters
        space = function.stack_array([workspace])
        one = function.integer(1)
        self._set(function, pack, Attribute.PACK_NUMBERS, Type.INT64, count, numbers)
        self._set(function, pack, Attribute.PACK_POINTERS, Type.POINTER, count, addresses)
        self._set(function, pack, Attribute.PACK_WORKSPACE, Type.POINTER, one, space)
        function.check(self._call(function, "BackendFinalize", pack))
        handle = self._handle(function)
        function.finish(self._call(function, "BackendExecute", handle, plan, pack))
        return name
