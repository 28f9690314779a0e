"""Groups of concurrent executions, and their numbers of threads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.base import OpDetail
from byoc_mlir.backends.dnnl.codegen.program import Execution
from byoc_mlir.kernels.builder import FunctionBuilder

Group = Sequence[tuple[Execution, int]]
"""Executions that run at the same time, each with the first slot of its arguments."""


def groups(executions: Sequence[Execution], first: int) -> list[Group]:
    """Groups concurrent executions; each execution is paired with the first slot of its
    arguments.
    """
    groups: list[list[tuple[Execution, int]]] = []
    for execution in executions:
        if not execution.is_concurrent:
            groups.append([])
        groups[-1].append((execution, first))
        first += 2 * sum(len(one.arguments) for one in execution.parts)
    return list(groups)


def step_of(group: Group) -> OpDetail:
    """Returns the row that a profile shows for a group of concurrent executions."""
    details = [execution.detail for execution, _ in group if execution.detail is not None]
    nodes = dict.fromkeys(node for detail in details for node in detail.nodes)
    names = dict.fromkeys(detail.implementation for detail in details)
    return OpDetail(tuple(nodes), " beside ".join(names))


def moves_stack_pointer_in(group: Group) -> bool:
    """True if an execution of the group moves the stack pointer, so that signals must be
    blocked.
    """
    parts = (part for execution, _ in group for part in execution.parts)
    return any(part.moves_stack_pointer for part in parts)


class Threads:
    """Generator of calls that set the number of OpenMP threads where it changes along a
    function.
    """

    def __init__(self, function: FunctionBuilder):
        self._function = function
        self._all: SSAValue | None = None
        self._threads: int | None = None

    def use(self, threads: int | None) -> None:
        """Sets the number of threads from here on; `None` restores the number that the function
        began with.
        """
        if threads == self._threads:
            return
        function = self._function
        if self._all is None:
            self._all = function.call("omp_get_max_threads")
        count = self._all if threads is None else function.integer(threads, i32)
        function.do("omp_set_num_threads", count)
        self._threads = threads
