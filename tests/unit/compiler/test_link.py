"""Linking of the host's and the regions' modules into one, which has shared functions once."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.llvm import FuncOp
from xdsl.parser import Parser

from byoc_mlir.compiler.link import join_modules
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.symbols import external_functions
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM


def module(defined: str, *called: str) -> ModuleOp:
    """Returns one function, which calls others that are declared."""
    declarations = "".join(f"func.func private @{name}() -> ()\n" for name in called)
    calls = "".join(f"func.call @{name}() : () -> ()\n" for name in called)
    text = f"{declarations} func.func private @{defined}() {{ {calls} func.return }}"
    parsed = Parser(make_context(), text).parse_module()
    ConvertToLLVM().apply(make_context(), parsed)
    return parsed


def functions(joined: ModuleOp) -> list[tuple[str, bool]]:
    """Returns the name of each function, and `True` if it is defined."""
    joined.verify()
    found = [op for op in joined.ops if isinstance(op, FuncOp)]
    return sorted((op.sym_name.data, bool(op.body.blocks)) for op in found)


def test_definitions_replace_declarations() -> None:
    host = module("main", "first", "second")
    join_modules(host, [module("first", "library"), module("second", "first")])
    assert functions(host) == [
        ("first", True),
        ("library", False),
        ("main", True),
        ("second", True),
    ]
    assert external_functions(host) == ["library"]


def test_a_shared_function_is_kept_once() -> None:
    host, one = module("main"), module("helper", "library")
    regions = [module("first", "helper"), module("second", "helper")]
    join_modules(host, regions, [one, one, module("helper", "library")])
    assert functions(host) == [
        ("first", True),
        ("helper", True),
        ("library", False),
        ("main", True),
        ("second", True),
    ]


def test_other_functions_are_defined_once() -> None:
    with pytest.raises(CompilationError, match=r"@first is defined twice.*prefix"):
        join_modules(module("main"), [module("first"), module("first")])
