"""Branches and bodies that become functions: what they take from around them, what is in them."""

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
    """What all scopes of one import share on branches and bodies."""

    nodes: int = 0
    """How many nodes they had so far, those that were expanded in place too."""
    functions: list[FuncOp] = field(default_factory=list[FuncOp])
    rows: list[OnnxNode] = field(default_factory=list[OnnxNode])
    """What became of the nodes in functions, for the report."""
    iterations: Iterations = field(default_factory=Iterations)
    bound: dict[str, SymbolInfo] = field(default_factory=dict[str, SymbolInfo])
    """The symbols that functions bind to numbers which are known when the model runs."""

    def count(self, nodes: int) -> None:
        """Notes that a body of so many nodes is expanded.

        Raises:
            LimitExceededError: with those of other bodies they are too many.
        """
        self.nodes += nodes
        what = "nodes of functions, branches and loops, expanded"
        current_limits().check("body_nodes", self.nodes, what)

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Forgets what is made inside when that fails."""
        nodes, functions, rows = self.nodes, len(self.functions), len(self.rows)
        bound = dict(self.bound)
        try:
            yield
        except Exception:
            self.nodes, self.bound = nodes, bound
            del self.functions[functions:], self.rows[rows:]
            raise

    def take_rows(self) -> list[OnnxNode]:
        """The rows since the last call."""
        rows, self.rows = self.rows, []
        return rows


@dataclass(frozen=True)
class Body:
    """A branch or a body under construction: a block that sees nothing but its arguments."""

    name: str
    """What its function is called, about."""
    block: Block
    captured: dict[SSAValue, BlockArgument]
    """Values of other blocks that ops of this one read, and the arguments that stand for them."""
    location: LocationAttr

    @property
    def results(self) -> list[Attribute]:
        """The types of what it gives."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        return [value.type for value in last.operands]

    def change_result(self, number: int, change: Callable[[SSAValue], Operation]) -> None:
        """Puts what an op makes of a result in its place."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        op = change(last.operands[number])
        op.location = self.location
        self.block.insert_op_before(op, last)
        last.operands[number] = op.results[0]


def close_bodies(bodies: Sequence[Body], into: Bodies) -> tuple[list[SSAValue], list[FuncOp]]:
    """Makes functions of bodies; all take the same values from outside, behind their own arguments.

    Returns:
        The values from outside, and the functions, which `into` has from now on.
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
    """A symbol that none of the functions has."""
    stem = re.sub(r"[^A-Za-z0-9_]", "_", f"main_{name}")[:_LONGEST_NAME]
    taken = {function.sym_name.data for function in functions}
    number, free = 0, stem
    while free in taken:
        number += 1
        free = f"{stem}_{number}"
    return free
