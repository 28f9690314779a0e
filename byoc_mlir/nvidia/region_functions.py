"""Functions of a region's native code that backends on NVIDIA's GPUs have in common."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.abi import LOAD, OPEN, START
from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import DriverCode

WORKSPACE_SLOT = 0
"""Context slot of the workspace's address."""


def define_load(driver: DriverCode, symbol: str, define: Callable[[], str]) -> None:
    """Defines `R_load(state)`, which keeps the primary context unless it fails.

    Args:
        driver: code around calls of the driver, in the region's module.
        symbol: the region's symbol.
        define: function that defines `i32 (state)`, which is called in the primary context, and
            returns its symbol.
    """
    function = driver.module.function(LOAD.hook(symbol), (POINTER,))
    (state,) = function.parameters
    function.check(driver.enter(function))
    driver.keep_if_zero(function, function.call(define(), state))


def define_open(
    module: ModuleBuilder,
    symbol: str,
    prepare: Callable[[FunctionBuilder, SSAValue], None] | None = None,
) -> None:
    """Defines `R_open(state, context, workspace)`, which notes the workspace.

    Args:
        module: the region's module.
        symbol: the region's symbol.
        prepare: function that adds code for other slots of the context.
    """
    function = module.function(OPEN.hook(symbol), (POINTER,) * 3)
    _, context, workspace = function.parameters
    function.store(workspace, function.slot(context, WORKSPACE_SLOT))
    if prepare is not None:
        prepare(function, context)
    function.finish(function.integer(0, i32))


def define_start(
    driver: DriverCode, symbol: str, parameters: int, define: Callable[[int], str]
) -> None:
    """Defines `R_start(state, context, queue, …)`.

    Args:
        driver: code around calls of the driver, in the region's module.
        symbol: the region's symbol.
        parameters: number of the function's parameters.
        define: function that defines a function of as many parameters, which is called in the
            queue's context, and returns its symbol.
    """
    function = driver.module.function(f"{symbol}_{START}", (POINTER,) * parameters)
    queue = function.parameters[2]
    driver.finish_in(function, queue, define(parameters), *function.parameters)
