"""Code of the device's function `identity`, which describes the GPU as `Gpu.identity` does."""

from __future__ import annotations

from xdsl.dialects.builtin import i8, i32, i64
from xdsl.dialects.llvm import TruncOp
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import CAPABILITY, NAME_BYTES, ORDINAL

_TEXT_BYTES = 2 * NAME_BYTES


def define_identity(module: ModuleBuilder, prefix: str) -> None:
    """Defines `ptr prefix_identity()`; the text is empty if there is no GPU."""
    code = _IdentityCode(module, prefix)
    code.define_append_number()
    code.define_write()
    text = module.variable(f"{prefix}_identity_text", _TEXT_BYTES)
    function = module.function(f"{prefix}_identity", (), result=POINTER)
    address = function.address(text)
    status = function.call(code.write, address)
    failed = function.failed(status)
    function.when(failed, lambda: function.store(function.integer(0, i8), address))
    function.finish(address)


class _IdentityCode:
    def __init__(self, module: ModuleBuilder, prefix: str):
        self._module = module
        self._prefix = prefix
        self._words = 0
        self.write, self._append_number = f"{prefix}_write_identity", f"{prefix}_append_number"

    def define_write(self) -> None:
        """Defines `i32 write(text)`."""
        function = self._module.function(self.write, (POINTER,), internal=True)
        (text,) = function.parameters
        device, number = function.stack_slot(), function.stack_slot()
        function.check(function.call("cuInit", function.integer(0, i32)))
        function.check(function.call("cuDeviceGet", device, function.integer(ORDINAL, i32)))
        gpu, size = function.load(device, i32), function.integer(NAME_BYTES, i32)
        function.check(function.call("cuDeviceGetName", text, size, gpu))
        for word, attribute in zip((", compute capability ", "."), CAPABILITY, strict=True):
            kind = function.integer(attribute, i32)
            function.check(function.call("cuDeviceGetAttribute", number, kind, gpu))
            self._append(function, word, function.sign_extend(function.load(number, i32)))
        function.check(function.call("cuDriverGetVersion", number))
        version = function.sign_extend(function.load(number, i32))
        major, rest = function.divmod(version, function.integer(1000))
        self._append(function, ", driver for CUDA ", major)
        self._append(function, ".", function.divide(rest, 10))
        function.finish(function.integer(0, i32))

    def _append(self, function: FunctionBuilder, word: str, number: SSAValue) -> None:
        """Appends a word and a number below 100 to the text."""
        (text,) = function.parameters
        self._words += 1
        known = self._module.text(f"{self._prefix}_word_{self._words}", word)
        function.call("strcat", text, function.address(known), result=POINTER)
        function.do(self._append_number, text, number)

    def define_append_number(self) -> None:
        """Defines `void append_number(text, number)` for numbers below 100."""
        name, parameters = self._append_number, (POINTER, i64)
        function = self._module.function(name, parameters, result=VOID, internal=True)
        text, number = function.parameters
        tens, ones = function.divmod(number, function.integer(10))
        digits = function.stack_slot()
        has_tens = function.compare("ne", tens, function.integer(0))
        start = function.select(has_tens, function.integer(1), function.integer(0))
        function.store(self._digit(function, tens), digits)
        function.store(self._digit(function, ones), function.offset(digits, start))
        function.call("strcat", text, digits, result=POINTER)
        function.finish()

    def _digit(self, function: FunctionBuilder, number: SSAValue) -> SSAValue:
        return function.insert(TruncOp(function.add(number, ord("0")), i8))
