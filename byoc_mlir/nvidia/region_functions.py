"""Functions of a region's native code that backends on NVIDIA's GPUs have in common."""

from __future__ import annotations

from collections.abc import Callable

from byoc_mlir.abi import LOAD, START
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.nvidia.driver import DriverCode


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
