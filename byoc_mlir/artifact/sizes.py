"""Sizes in C: expressions over the symbolic dimensions, and the functions that evaluate them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byoc_mlir.dims import GREATEST_SIZE, Size, Symbol, SymbolInfo, parse_size
from byoc_mlir.dims.dim import Atom, Monomial, terms_of
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes

_FUNCTIONS = {"floordiv": "floor_div", "max": "larger", "min": "smaller"}


def c_expression(size: Size, names: Mapping[str, str]) -> str:
    """Returns a size as a C expression.

    Args:
        names: C names of the symbolic dimensions.
    """
    terms = [_term(monomial, factor, names) for monomial, factor in terms_of(size)]
    return " + ".join(terms) or "0"


def c_guards(sizes: SymbolicSizes, names: Mapping[str, str]) -> list[str]:
    """Returns the conditions on sizes as C expressions."""
    return [
        f"{c_expression(one.one, names)} {one.relation} {c_expression(one.two, names)}"
        for one in sizes.guards
    ]


def greatest_size(info: SymbolInfo) -> int:
    """Returns the maximum size of a symbolic dimension in C: the product of two fits a `long
    double`.
    """
    return GREATEST_SIZE if info.max is None else min(info.max, GREATEST_SIZE)


def size_functions(program: Program) -> str:
    """Returns the C functions of the symbolic sizes `s`: the guards, the arena's size, the output
    shapes.

    A model with static shapes has no symbolic sizes.
    """
    sizes = program.sizes
    symbols = () if sizes is None else sizes.symbols
    names = {info.name: f"s[{place}]" for place, info in enumerate(symbols)}
    shapes = [
        [c_expression(parse_size(size), names) for size in spec.shape] for spec in program.outputs
    ]
    guards = [] if sizes is None else c_guards(sizes, names)
    arena = program.arena_bytes if sizes is None else sizes.arena
    return "\n".join([_guards(guards), _arena(c_expression(arena, names)), _shapes(shapes)])


def _term(monomial: Monomial, factor: int, names: Mapping[str, str]) -> str:
    atoms = [_atom(atom, names) for atom in monomial]
    return " * ".join([str(factor), *atoms] if factor != 1 or not atoms else atoms)


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return names[atom.name]
    first, *others = (c_expression(argument, names) for argument in atom.arguments)
    for other in others:
        first = f"{_FUNCTIONS[atom.kind]}({first}, {other})"
    return first


def _guards(guards: Sequence[str]) -> str:
    cases = [f"  case {number}: return {text};" for number, text in enumerate(guards)]
    head = "static int guard_holds(int guard, const long double *s) {"
    return "\n".join([head, "  (void)s;", "  switch (guard) {", *cases, "  }", "  return 1;", "}"])


def _arena(expression: str) -> str:
    head = "static long double arena_size(const long double *s) {"
    return "\n".join([head, "  (void)s;", f"  return {expression};", "}"])


def _shapes(shapes: Sequence[Sequence[str]]) -> str:
    lines = [
        f"  if (shapes[{output}] != NULL) shapes[{output}][{axis}] = (int64_t)({size});"
        for output, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
    ]
    head = "static void fill_shapes(const long double *s, int64_t *const *shapes) {"
    return "\n".join([head, "  (void)s, (void)shapes;", *lines, "}"])
