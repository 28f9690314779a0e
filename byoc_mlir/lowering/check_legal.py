"""The pass `check-legal`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import HOST_SPACE, KERNEL
from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.device_ops import region_spaces, space_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.symbols import ops_to_lower

Stage = Literal["relay", "linalg", "buffers", "loops", "llvm"]


@dataclass(frozen=True)
class _Legal:
    """Dialects, and single ops of other dialects, that are legal in a stage of the lowering."""

    dialects: frozenset[str]
    ops: frozenset[str] = frozenset()

    def accepts(self, op: Operation) -> bool:
        if isinstance(op, UnregisteredOp):
            return False
        return op.name.partition(".")[0] in self.dialects or op.name in self.ops


_MODULE = frozenset({"builtin.module"})

_CASTS = frozenset({"builtin.unrealized_conversion_cast"})

_IN_KERNELS = frozenset(
    {
        *("memref.alloca", "memref.cast", "memref.copy", "memref.load"),
        *("memref.reinterpret_cast", "memref.store"),
    }
)

_ON_TENSORS = frozenset(
    {
        *("linalg.generic", "linalg.index", "linalg.yield", "tensor.empty"),
        *("tensor.extract_slice", "tensor.insert_slice", "tensor.reshape"),
    }
)

_BELOW = frozenset({"scf", "vector", "x86vector", "llvm"})
"""Dialects of hand-written kernels."""

_CONTROL = frozenset({"relay.bind", "relay.call", "relay.for", "relay.if", "relay.while"})

_DEVICES = frozenset({"byoc.transfer", "byoc.wait"})

_VIEWS = frozenset(
    {"host.alloc", "host.place", "host.view", "memref.alloc", "memref.reinterpret_cast"}
)
"""Ops on a device's buffers that do not touch its memory."""

_SYMBOLS = frozenset({"relay.guard", "relay.symbol"})

_STAGES: dict[Stage, _Legal] = {
    "relay": _Legal(frozenset({"builtin", "func", "relay", "byoc"})),
    "linalg": _Legal(
        frozenset({"builtin", "func", "arith", "math", "host"}) | _BELOW,
        frozenset(
            {"relay.constant", "byoc.copy"} | _SYMBOLS | _CONTROL | _IN_KERNELS | _ON_TENSORS
        ),
    ),
    "buffers": _Legal(
        frozenset({"memref", "linalg", "arith", "math", "func"}) | _BELOW,
        _MODULE
        | _CASTS
        | _SYMBOLS
        | _DEVICES
        | {
            "host.alloc",
            "host.check",
            "host.copy_apart",
            "host.dot_integers",
            "host.multiply_matrices",
            "host.prefetch",
            "host.request_matrices",
            "host.size",
            "host.view",
        },
    ),
    "loops": _Legal(
        frozenset({"memref", "cf", "arith", "math", "func"}) | _BELOW,
        _MODULE
        | _CASTS
        | _DEVICES
        | {
            "host.check",
            "host.copy_apart",
            "host.dot_integers",
            "host.multiply_matrices",
            "host.prefetch",
            "host.place",
            "host.request_matrices",
            "host.view",
        },
    ),
    "llvm": _Legal(frozenset({"llvm"}), _MODULE),
}


@dataclass
class _Illegal:
    first: Operation
    count: int = 0


@dataclass(frozen=True)
class CheckLegal(ModulePass):
    """Fails if the module has ops that are not legal in a stage of the lowering.

    ```mlir
    %0 = arith.addi %a, %b : i32
    ```
    fails `check-legal{stage=llvm}`: one kind of op, `arith.addi`, is not legal there. In the stages
    of buffers, an op of the host on a device's memory is not legal, either.
    """

    name = "check-legal"

    stage: Stage

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_legal(op, self.stage)
        if self.stage in ("buffers", "loops"):
            _check_memory(op)


def check_legal(module: ModuleOp, stage: Stage) -> None:
    """Raises `PassFailedException` with a list of all kinds of ops that are not legal in
    `stage`.

    The stage "llvm" also covers the bodies of kernels, because its ops are translated to LLVM IR
    next.
    """
    legal = _STAGES[stage]
    ops = module.walk() if stage == "llvm" else ops_to_lower(module)
    found: dict[str, _Illegal] = {}
    for op in _illegal_ops(ops, legal):
        found.setdefault(_name(op), _Illegal(op)).count += 1
    if not found:
        return
    kinds = "kind of op is" if len(found) == 1 else "kinds of op are"
    listed = "\n".join(
        f"  {name}: {illegal.count}, the first at {illegal.first.location}"
        for name, illegal in sorted(found.items())
    )
    raise PassFailedException(
        f"{len(found)} {kinds} not legal in stage {stage} "
        f"(accepted: {', '.join(sorted(legal.dialects | legal.ops))}):\n{listed}"
    )


def _check_memory(module: ModuleOp) -> None:
    """Raises `PassFailedException` for an op of the host on a device's memory."""
    regions = region_spaces(module)
    if not regions:
        return
    kernels = [op for op in module.ops if isinstance(op, func.FuncOp) and KERNEL in op.attributes]
    spaces = {kernel.sym_name.data: HOST_SPACE for kernel in kernels} | regions
    for block in host_blocks(module):
        for op in block.walk():
            foreign = {space_of(value.type) for value in op.operands} - {HOST_SPACE}
            if foreign and not _may_touch(op, foreign, spaces):
                raise PassFailedException(
                    f"{op.name} at {op.location} runs on the host and is on memory of"
                    f" {', '.join(sorted(foreign))}; place-copies copies values to the host"
                )


def _may_touch(op: Operation, foreign: set[str], spaces: Mapping[str, str]) -> bool:
    """True if an op may be on memory of these devices; `spaces` has those of called functions."""
    if isinstance(op, func.CallOp):
        space = spaces.get(op.callee.root_reference.data)
        return space is None or foreign == {space}
    return op.name in _VIEWS or op.name in _DEVICES


def _name(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _illegal_ops(ops: Iterable[Operation], legal: _Legal) -> Iterator[Operation]:
    """Yields the ops that are not legal."""
    decisions: dict[str, bool] = {}
    for op in in_time(ops):
        decision = decisions.get(op.name)
        if decision is None:
            decision = decisions[op.name] = legal.accepts(op)
        if not decision:
            yield op
