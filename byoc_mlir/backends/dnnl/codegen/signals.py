"""Signals wait while oneDNN has the stack pointer somewhere else.

At least up to version 3.11.1 its products of `f32` that are called `gemm:jit` keep a panel where
the stack pointer points: with AVX2, for sums of more than 252 terms, that is memory of the heap. A
signal is handled right below the stack pointer, which overwrites what the process has there. See
https://github.com/uxlfoundation/oneDNN/issues/4845.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import i32

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.system.signals import HELD

SET_WORDS = 16
"""Of a C library's set of signals."""

_PRODUCTS = re.compile(r"\bgemm\b")
"""`gemm:jit`, `x64:gemm:jit`, but not `brgemm:avx2`."""

_RECURRENT = ("lstm", "gru")
"""What calls such products under whatever name."""

_BLOCK, _SET = 0, 2
"""Linux's SIG_BLOCK and SIG_SETMASK."""

_PREFIX = "byoc_dnnl"


def moves_stack_pointer(kind: str, implementation: str) -> bool:
    """Whether a primitive may have the stack pointer somewhere else while it runs.

    Args:
        kind: `convolution_forward`.
        implementation: the library's name for it.
    """
    is_recurrent = any(name in kind for name in _RECURRENT)
    return is_recurrent or _PRODUCTS.search(implementation) is not None


def add_hold_signals(module: ModuleBuilder) -> str:
    """`void (before)`: signals wait from here on, on this thread; writes which waited before."""
    name = f"{_PREFIX}_hold_signals"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    how, held = function.integer(_BLOCK, i32), function.address(_add_held(module))
    function.call("pthread_sigmask", how, held, *function.parameters)
    function.finish()
    return name


def add_hold_signals_of_team(module: ModuleBuilder) -> str:
    """`void ()`: signals wait on all threads of OpenMP that work for this one, for good."""
    name = f"{_PREFIX}_hold_signals_of_team"
    if module.has(name):
        return name
    function, held = module.function(name, (), result=VOID, internal=True), _add_held(module)
    zero = function.integer(0, i32)
    each, data = function.address(_add_hold_on_thread(module)), function.address(held)
    function.do("GOMP_parallel", each, data, zero, zero)
    function.finish()
    return name


def _add_hold_on_thread(module: ModuleBuilder) -> str:
    """`void (held)`: what each thread of a team does."""
    return _add_mask(module, f"{_PREFIX}_hold_signals_of_thread", _BLOCK)


def add_release_signals(module: ModuleBuilder) -> str:
    """`void (before)`: the signals of this thread wait no longer, but those that waited before."""
    return _add_mask(module, f"{_PREFIX}_release_signals", _SET)


def _add_mask(module: ModuleBuilder, name: str, how: int) -> str:
    """`void (signals)`: changes which signals wait on this thread."""
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    operation = function.integer(how, i32)
    function.call("pthread_sigmask", operation, *function.parameters, function.null())
    function.finish()
    return name


def _add_held(module: ModuleBuilder) -> str:
    """The set of signals that wait."""
    name = f"{_PREFIX}_held_signals"
    if module.has(name):
        return name
    word = sum(1 << number - 1 for number in HELD)
    with_sign = word - (1 << 64) if word >> 63 else word
    return module.table(name, [with_sign, *[0] * (SET_WORDS - 1)])
