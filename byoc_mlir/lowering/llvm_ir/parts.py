"""Parts of a module of the `llvm` dialect, which LLVM compiles in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects.symbols import mentioned_symbols, symbol_of
from byoc_mlir.lowering.symbols import is_declaration, is_internal

MOST_PARTS = 4
LEAST_OPS = 400
"""Minimum number of a part's ops. LLVM takes some 0.08 s for so many ops, or half of that without
optimisations; an empty part takes 0.01 s."""

COPIED_OPS = 40
"""Maximum number of ops of an inlinable function that is copied to each part that calls it."""

Home: TypeAlias = tuple[bool, int]
"""Part that a symbol belongs to: True if its functions are vectorised, and the part's number among
parts of that kind."""


@dataclass(frozen=True)
class ModulePart:
    """Part of a module.

    Attributes:
        definitions: functions and globals, in the module's order.
        declarations: symbols that the definitions mention, defined in other parts or outside of the
            module.
        shared: internal functions that other parts call or define.
        vectorised: true if LLVM need not optimise the functions.
    """

    definitions: Sequence[Operation]
    declarations: Sequence[Operation]
    shared: AbstractSet[str]
    vectorised: bool


def cut(module: ModuleOp) -> Sequence[ModulePart]:
    """Splits a module into parts; a small module is one part.

    The result depends only on the module. A function that LLVM would inline is in the part of its
    caller, and all users of a variable are in one part. Vectorised functions have their own parts.
    """
    ops = {symbol_of(op): op for op in module.body.block.ops}
    defined = {name: op for name, op in ops.items() if not is_declaration(op)}
    sizes = {name: op_count(op) for name, op in defined.items()}
    mentioned = {name: frozenset(mentioned_symbols(op)) for name, op in defined.items()}
    variables = {name for name, op in defined.items() if _is_variable(op)}
    copied = {
        name
        for name, op in defined.items()
        if _is_copied(op, sizes[name]) and variables.isdisjoint(mentioned[name])
    }
    homes = _homes(_groups(defined, mentioned, copied), defined, sizes)
    if len({*homes.values()}) < 2:
        declared = [op for name, op in ops.items() if name not in defined]
        return [ModulePart([*defined.values()], declared, frozenset(), vectorised=False)]
    members = {home: [name for name in homes if homes[name] == home] for home in homes.values()}
    whole = {home: _with_copies(names, mentioned, copied) for home, names in members.items()}
    shared = {
        name
        for home, names in whole.items()
        for user in names
        for name in mentioned[user]
        if homes.get(name, home) != home and is_internal(defined[name])
    }
    return [_part(whole[home], home, ops, mentioned, shared) for home in sorted(whole)]


def op_count(op: Operation) -> int:
    """Returns the number of a function's ops, itself included."""
    return 1 + sum(len(block.ops) for region in op.regions for block in region.blocks)


def _is_variable(op: Operation) -> bool:
    return isinstance(op, llvm.GlobalOp) and op.constant is None


def _is_vectorised(op: Operation) -> bool:
    return VECTORISED in op.attributes


def _may_be_inlined(op: Operation) -> bool:
    return is_internal(op) and {"no_inline", VECTORISED}.isdisjoint(
        {*op.properties, *op.attributes}
    )


def is_inlined(op: Operation, size: int) -> bool:
    """True if LLVM inlines a function of so many ops wherever it is called."""
    is_short = size <= COPIED_OPS or "always_inline" in {*op.properties, *op.attributes}
    return is_short and _may_be_inlined(op)


def _is_copied(op: Operation, size: int) -> bool:
    """True if each part gets its own copy: constants, and short internal functions."""
    if isinstance(op, llvm.GlobalOp):
        return op.constant is not None and op.linkage.linkage.data in ("internal", "private")
    return is_inlined(op, size)


def _groups(
    defined: Mapping[str, Operation],
    mentioned: Mapping[str, AbstractSet[str]],
    copied: AbstractSet[str],
) -> Iterable[Sequence[str]]:
    """Returns the groups of symbols that must be in one part."""
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
    groups: Iterable[Sequence[str]], defined: Mapping[str, Operation], sizes: Mapping[str, int]
) -> Mapping[str, Home]:
    """Returns the part of each symbol."""
    weights = [(sum(sizes[name] for name in group), group) for group in groups]
    vectorised = [one for one in weights if all(_is_vectorised(defined[name]) for name in one[1])]
    if sum(weight for weight, _ in vectorised) < LEAST_OPS:
        return _filled(weights, vectorised=False)
    others = [one for one in weights if one not in vectorised]
    return {**_filled(others, vectorised=False), **_filled(vectorised, vectorised=True)}


def _filled(weights: Sequence[tuple[int, Sequence[str]]], *, vectorised: bool) -> dict[str, Home]:
    """Assigns groups to parts of one kind: the largest group first, each to the smallest part."""
    count = min(MOST_PARTS, sum(weight for weight, _ in weights) // LEAST_OPS)
    filled = [0] * max(1, count)
    homes: dict[str, Home] = {}
    for weight, group in sorted(weights, key=lambda one: -one[0]):
        part = filled.index(min(filled))
        filled[part] += weight
        homes |= dict.fromkeys(group, (vectorised, part))
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
    home: Home,
    ops: Mapping[str, Operation],
    mentioned: Mapping[str, AbstractSet[str]],
    shared: AbstractSet[str],
) -> ModulePart:
    used = {name for user in names for name in mentioned[user]} - names
    return ModulePart(
        [op for name, op in ops.items() if name in names],
        [op for name, op in ops.items() if name in used],
        shared,
        vectorised=home[0],
    )
