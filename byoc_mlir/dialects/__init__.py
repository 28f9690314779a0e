"""Dialects: `relay` and `byoc` are ours, the others are the shared vocabulary of MLIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.ir import Dialect


def core_dialects() -> dict[str, Callable[[], Dialect]]:
    """Every dialect that the compiler itself uses, by name, imported when first asked for."""
    return {
        "affine": _affine,
        "arith": _arith,
        "builtin": _builtin,
        "byoc": _byoc,
        "cf": _cf,
        "func": _func,
        "host": _host,
        "linalg": _linalg,
        "llvm": _llvm,
        "math": _math,
        "memref": _memref,
        "relay": _relay,
        "scf": _scf,
        "tensor": _tensor,
        "vector": _vector,
        "x86vector": _x86vector,
    }


def make_context() -> Context:
    """A context in which IR of every stage can be parsed."""
    context = Context()
    for name, factory in core_dialects().items():
        context.register_dialect(name, factory)
    return context


def _affine() -> Dialect:
    from xdsl.dialects.affine import Affine

    return Affine


def _arith() -> Dialect:
    from byoc_mlir.dialects.arith_ext import ARITH

    return ARITH


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Builtin


def _byoc() -> Dialect:
    from byoc_mlir.dialects.byoc import BYOC

    return BYOC


def _cf() -> Dialect:
    from xdsl.dialects.cf import Cf

    return Cf


def _func() -> Dialect:
    from xdsl.dialects.func import Func

    return Func


def _host() -> Dialect:
    from byoc_mlir.dialects.host import HOST

    return HOST


def _linalg() -> Dialect:
    from xdsl.dialects.linalg import Linalg

    return Linalg


def _llvm() -> Dialect:
    from byoc_mlir.dialects.llvm_ext import LLVM

    return LLVM


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


def _memref() -> Dialect:
    from xdsl.dialects.memref import MemRef

    return MemRef


def _relay() -> Dialect:
    from byoc_mlir.dialects.relay import RELAY

    return RELAY


def _scf() -> Dialect:
    from xdsl.dialects.scf import Scf

    return Scf


def _tensor() -> Dialect:
    from xdsl.dialects.tensor import Tensor

    return Tensor


def _vector() -> Dialect:
    from xdsl.dialects.vector import Vector

    return Vector


def _x86vector() -> Dialect:
    from byoc_mlir.dialects.x86vector import X86VECTOR

    return X86VECTOR
