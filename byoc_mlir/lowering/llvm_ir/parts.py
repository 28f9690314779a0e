"""Cutting a module of the `llvm` dialect in parts, which LLVM compiles at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from byoc_mlir.dialects.symbols import mentioned_symbols
from byoc_mlir.lowering.symbols import is_declaration, symbol_of

MOST_PARTS = 4
LEAST_OPS = 1000
"""Of a part: LLVM takes some 0.2 s for them, and 0.01 s for a part without any."""

COPIED_OPS = 40
"""What LLVM might inline and is no larger has a copy in each part that calls it."""


@dataclass(frozen=True)
class Part:
    """What one part of a module has.

    Attributes:
        definitions: functions and globals, in the module's order.
        declarations: those of other parts, and of nobody here, that the definitions mention.
        shared: internal functions among both that other parts call, or have.
    """

    definitions: Sequence[Operation]
    declarations: Sequence[Operation]
    shared: AbstractSet[str]


def cut(module: ModuleOp) -> Sequence[Part]:
    """The parts of a module; one, with everything, where it is small.

    They depend on the module alone. What LLVM would inline stays with its caller, and what changes
    a variable with everyone who does.
    """
    ops = {symbol_of(op): op for op in module.body.block.ops}
    defined = {name: op for name, op in ops.items() if not is_declaration(op)}
    sizes = {name: sum(1 for _ in op.walk()) for name, op in defined.items()}
    count = min(MOST_PARTS, sum(sizes.values()) // LEAST_OPS)
    if count < 2:
        declared = [op for name, op in ops.items() if name not in defined]
        return [Part([*defined.values()], declared, frozenset())]
    mentioned = {name: frozenset(mentioned_symbols(op)) for name, op in defined.items()}
    variables = {name for name, op in defined.items() if _is_variable(op)}
    copied = {
        name
        for name, op in defined.items()
        if _is_copied(op, sizes[name]) and variables.isdisjoint(mentioned[name])
    }
    groups = _groups(defined, mentioned, copied)
    homes = _homes(groups, sizes, count)
    members = [
        _with_copies([name for name in homes if homes[name] == part], mentioned, copied)
        for part in range(count)
    ]
    shared = {
        name
        for part, names in enumerate(members)
        for user in names
        for name in mentioned[user]
        if homes.get(name, part) != part and _is_internal(defined[name])
    }
    return [_part(names, ops, mentioned, shared) for names in members if names]


def _is_variable(op: Operation) -> bool:
    return isinstance(op, llvm.GlobalOp) and op.constant is None


def _is_internal(op: Operation) -> bool:
    return isinstance(op, llvm.FuncOp) and op.linkage.linkage.data == "internal"


def _may_be_inlined(op: Operation) -> bool:
    return _is_internal(op) and "no_inline" not in {*op.properties, *op.attributes}


def _is_copied(op: Operation, size: int) -> bool:
    """Whether each part has its own: constants, and short internal functions."""
    if isinstance(op, llvm.GlobalOp):
        return op.constant is not None and op.linkage.linkage.data in ("internal", "private")
    is_short = size <= COPIED_OPS or "always_inline" in {*op.properties, *op.attributes}
    return is_short and _may_be_inlined(op)


def _groups(
    defined: Mapping[str, Operation],
    mentioned: Mapping[str, AbstractSet[str]],
    copied: AbstractSet[str],
) -> Iterable[Sequence[str]]:
    """The symbols that stay together."""
    users: dict[str, list[str]] = {name: [] for name in defined}
    for user, names in mentioned.items():
        for name in names & defined.keys():
            users[name].append(user)
    groups = {name: [name] for name in defined if name not in copied}
    for name in [*groups]:
        op, by = defined[name], [user for user in users[name] if user not in copied]
        is_inlined = len(users[name]) == 1 and _may_be_inlined(op)
        if is_inlined or not isinstance(op, llvm.FuncOp):
            for user in by:
                _unite(groups, name, user)
    return {id(group): group for group in groups.values()}.values()


def _unite(groups: dict[str, list[str]], one: str, other: str) -> None:
    if groups[one] is groups[other]:
        return
    groups[one] += groups[other]
    for name in groups[other]:
        groups[name] = groups[one]


def _homes(
    groups: Iterable[Sequence[str]], sizes: Mapping[str, int], count: int
) -> Mapping[str, int]:
    """The part of each symbol: the largest groups first, each to the smallest part."""
    homes: dict[str, int] = {}
    filled = [0] * count
    weights = [(sum(sizes[name] for name in group), group) for group in groups]
    for weight, group in sorted(weights, key=lambda one: -one[0]):
        part = filled.index(min(filled))
        filled[part] += weight
        homes |= dict.fromkeys(group, part)
    return homes


def _with_copies(
    names: Sequence[str], mentioned: Mapping[str, AbstractSet[str]], copied: AbstractSet[str]
) -> AbstractSet[str]:
    found, waiting = {*names}, [*names]
    while waiting:
        more = (mentioned[waiting.pop()] & copied) - found
        found |= more
        waiting += more
    return found


def _part(
    names: AbstractSet[str],
    ops: Mapping[str, Operation],
    mentioned: Mapping[str, AbstractSet[str]],
    shared: AbstractSet[str],
) -> Part:
    used = {name for user in names for name in mentioned[user]} - names
    return Part(
        [op for name, op in ops.items() if name in names],
        [op for name, op in ops.items() if name in used],
        shared,
    )
