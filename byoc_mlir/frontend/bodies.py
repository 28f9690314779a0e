"""Functions built from branches and loop bodies, with captured values as arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from byoc_mlir.dims import SymbolInfo
from byoc_mlir.frontend.loops.formulas import Iterations
from byoc_mlir.frontend.model import OnnxNode
from byoc_mlir.limits import current_limits

_LONGEST_NAME = 48


@dataclass
class Bodies:
    """Functions, counts and report rows of branches and bodies, shared by all scopes."""

    nodes: int = 0
    """Number of nodes in branches and bodies so far, including inlined ones."""
    functions: list[FuncOp] = field(default_factory=list[FuncOp])
    rows: list[OnnxNode] = field(default_factory=list[OnnxNode])
    """Report rows of the nodes in functions."""
    iterations: Iterations = field(default_factory=Iterations)
    bound: dict[str, SymbolInfo] = field(default_factory=dict[str, SymbolInfo])
    """Symbols that functions bind to numbers which are only known at run time."""

    def count(self, nodes: int) -> None:
        """Adds the number of nodes of a body to the total of all imported bodies.

        Raises:
            LimitExceededError: all bodies together have too many nodes.
        """
        self.nodes += nodes
        what = "nodes of functions, branches and loops, expanded"
        current_limits().check("body_nodes", self.nodes, what)

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Discards the functions, rows and symbols that were added in the `with` body, if the body
        raises.
        """
        nodes, functions, rows = self.nodes, len(self.functions), len(self.rows)
        bound = dict(self.bound)
        try:
            yield
        except Exception:
            self.nodes, self.bound = nodes, bound
            del self.functions[functions:], self.rows[rows:]
            raise

    def take_rows(self) -> list[OnnxNode]:
        """Returns the rows added since the last call."""
        rows, self.rows = self.rows, []
        return rows


@dataclass(frozen=True)
class Body:
    """Branch or loop body under construction: a block that uses only its own arguments."""

    name: str
    """Prefix of the name of the body's function."""
    block: Block
    captured: dict[SSAValue, BlockArgument]
    """Arguments that stand for the values of enclosing blocks."""
    location: LocationAttr

    @property
    def results(self) -> list[Attribute]:
        """Returns the types of the results."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        return [value.type for value in last.operands]

    def change_result(self, number: int, change: Callable[[SSAValue], Operation]) -> None:
        """Replaces a result by the result of an op that `change` builds from it."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        op = change(last.operands[number])
        op.location = self.location
        self.block.insert_op_before(op, last)
        last.operands[number] = op.results[0]


def close_bodies(bodies: Sequence[Body], into: Bodies) -> tuple[list[SSAValue], list[FuncOp]]:
    """Builds functions from bodies; all functions take the same captured values after their own
    arguments.

    Returns:
        The captured values, and the functions, which were added to `into`.
    """
    outside = list(dict.fromkeys(value for body in bodies for value in body.captured))
    functions: list[FuncOp] = []
    for body in bodies:
        name = _free_name(body.name, into.functions)
        functions.append(_function(name, body, outside))
        into.functions.append(functions[-1])
    return outside, functions


def _function(name: str, body: Body, outside: Iterable[SSAValue]) -> FuncOp:
    block, results = body.block, body.results
    for value in outside:
        argument = block.insert_arg(value.type, len(block.args))
        argument.name_hint = value.name_hint
        if value in body.captured:
            body.captured[value].replace_all_uses_with(argument)
    for argument in body.captured.values():
        block.erase_arg(argument)
    types = [argument.type for argument in block.args]
    function = FuncOp(name, (types, results), Region(block), visibility="private")
    function.location = body.location
    return function


def _free_name(name: str, functions: Iterable[FuncOp]) -> str:
    """Returns a symbol name that none of the functions has."""
    stem = re.sub(r"[^A-Za-z0-9_]", "_", f"main_{name}")[:_LONGEST_NAME]
    taken = {function.sym_name.data for function in functions}
    number, free = 0, stem
    while free in taken:
        number += 1
        free = f"{stem}_{number}"
    return free
