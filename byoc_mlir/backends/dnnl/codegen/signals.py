"""Code that blocks signals while oneDNN has moved the stack pointer.

At least up to version 3.11.1, oneDNN's `f32` matmuls named `gemm:jit` keep a panel at the stack
pointer. With AVX2, for depths of more than 252, the stack pointer then points to heap memory. A
signal handler runs right below the stack pointer and overwrites the process's data there. See
https://github.com/uxlfoundation/oneDNN/issues/4845.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import i32

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.system.signals import HELD

SET_WORDS = 16
"""Words of a C library's signal set."""

_PRODUCTS = re.compile(r"\bgemm\b")
"""Pattern that matches `gemm:jit` and `x64:gemm:jit`, but not `brgemm:avx2`."""

_RECURRENT = ("lstm", "gru")
"""Primitive kinds that call such matmuls, whatever the name of their implementation."""

_BLOCK, _SET = 0, 2
"""Linux's SIG_BLOCK and SIG_SETMASK."""

_PREFIX = "byoc_dnnl"


def moves_stack_pointer(kind: str, implementation: str) -> bool:
    """True if a primitive may move the stack pointer to other memory while it runs.

    Args:
        kind: kind of the primitive, such as `convolution_forward`.
        implementation: oneDNN's name of the implementation.
    """
    is_recurrent = any(name in kind for name in _RECURRENT)
    return is_recurrent or _PRODUCTS.search(implementation) is not None


def add_hold_signals(module: ModuleBuilder) -> str:
    """Adds `void (before)`, which blocks signals on this thread and writes the old mask to
    `before`.
    """
    name = f"{_PREFIX}_hold_signals"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    how, held = function.integer(_BLOCK, i32), function.address(_add_held(module))
    function.call("pthread_sigmask", how, held, *function.parameters)
    function.finish()
    return name


def add_hold_signals_of_team(module: ModuleBuilder) -> str:
    """Adds `void ()`, which blocks signals for good on all OpenMP threads of this thread's team."""
    name = f"{_PREFIX}_hold_signals_of_team"
    if module.has(name):
        return name
    function, held = module.function(name, (), result=VOID, internal=True), _add_held(module)
    zero = function.integer(0, i32)
    hold = _add_mask(module, f"{_PREFIX}_hold_signals_of_thread", _BLOCK)
    each, data = function.address(hold), function.address(held)
    function.do("GOMP_parallel", each, data, zero, zero)
    function.finish()
    return name


def add_release_signals(module: ModuleBuilder) -> str:
    """Adds `void (before)`, which restores the old signal mask of this thread."""
    return _add_mask(module, f"{_PREFIX}_release_signals", _SET)


def _add_mask(module: ModuleBuilder, name: str, how: int) -> str:
    """Adds `void (signals)`, which changes the signal mask of this thread."""
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    operation = function.integer(how, i32)
    function.call("pthread_sigmask", operation, *function.parameters, function.null())
    function.finish()
    return name


def _add_held(module: ModuleBuilder) -> str:
    """Adds the set of signals to block."""
    name = f"{_PREFIX}_held_signals"
    if module.has(name):
        return name
    word = sum(1 << number - 1 for number in HELD)
    with_sign = word - (1 << 64) if word >> 63 else word
    return module.table(name, [with_sign, *[0] * (SET_WORDS - 1)])
