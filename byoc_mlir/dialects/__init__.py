"""Dialects of the compiler: its own `relay`, `byoc` and `host`, and upstream MLIR dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

from xdsl.context import Context
from xdsl.ir import Dialect

from byoc_mlir.dialects.late_formats import formats_parsed_late

_DIALECTS: Mapping[str, str] = {
    "affine": "xdsl.dialects.affine:Affine",
    "arith": "byoc_mlir.dialects.arith_ext:ARITH",
    "builtin": "xdsl.dialects.builtin:Builtin",
    "byoc": "byoc_mlir.dialects.byoc:BYOC",
    "cf": "xdsl.dialects.cf:Cf",
    "func": "xdsl.dialects.func:Func",
    "host": "byoc_mlir.dialects.host:HOST",
    "linalg": "xdsl.dialects.linalg:Linalg",
    "llvm": "byoc_mlir.dialects.llvm_ext:LLVM",
    "math": "xdsl.dialects.math:Math",
    "memref": "xdsl.dialects.memref:MemRef",
    "relay": "byoc_mlir.dialects.relay.dialect:RELAY",
    "scf": "xdsl.dialects.scf:Scf",
    "tensor": "xdsl.dialects.tensor:Tensor",
    "vector": "xdsl.dialects.vector:Vector",
    "x86vector": "byoc_mlir.dialects.x86vector:X86VECTOR",
}
"""Module and name of each dialect that the compiler itself uses."""


def core_dialects() -> dict[str, Callable[[], Dialect]]:
    """Returns the dialects that the compiler itself uses, by name, imported when first used."""
    return {name: partial(_imported, *place.split(":")) for name, place in _DIALECTS.items()}


def make_context() -> Context:
    """Returns a context that can parse the IR of every pass."""
    context = Context()
    for name, factory in core_dialects().items():
        context.register_dialect(name, factory)
    return context


def _imported(module: str, name: str) -> Dialect:
    with formats_parsed_late():
        return getattr(import_module(module), name)
