"""Functions that regions share move to an object of their own, with all that they need."""

from __future__ import annotations

import ctypes

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.llvm import FuncOp
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.lowering.llvm_ir import parts
from byoc_mlir.lowering.llvm_ir.codegen import emit_object, emit_objects
from byoc_mlir.lowering.shared_functions import name_apart, separate_functions
from byoc_mlir.lowering.shared_kernels import KernelObject, SharedKernels
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.runtime.linking.native_module import NativeModule

NAMES = ("twice", "four", "helper", "counted")
GLOBAL = """
  "llvm.mlir.global"() <{global_type = i64, sym_name = "count", linkage = #llvm.linkage<"internal">,
                         addr_space = 0 : i32, value = 0 : i64}> ({}) : () -> ()
"""


def module(called: tuple[str, ...], factor: int = 2) -> ModuleOp:
    """`@main` applies functions to its argument; `@twice` and `@four` call `@helper`."""
    calls = "".join(
        f"%{n + 1} = func.call @{name}(%{n}) : (i64) -> i64\n" for n, name in enumerate(called)
    )
    text = f"""
      func.func @main(%0: i64) -> i64 {{ {calls} func.return %{len(called)} : i64 }}
      func.func private @helper(%x: i64) -> i64 {{
        %c = arith.constant {factor} : i64
        %y = arith.muli %x, %c : i64
        func.return %y : i64
      }}
      func.func private @twice(%x: i64) -> i64 {{
        %y = func.call @helper(%x) : (i64) -> i64
        func.return %y : i64
      }}
      func.func private @four(%x: i64) -> i64 {{
        %y = func.call @helper(%x) : (i64) -> i64
        %z = func.call @twice(%y) : (i64) -> i64
        func.return %z : i64
      }}
      {GLOBAL}
      func.func private @counted(%x: i64) -> i64 {{
        %a = "llvm.mlir.addressof"() <{{global_name = @count}}> : () -> !llvm.ptr
        %y = "llvm.load"(%a) <{{ordering = 0 : i64}}> : (!llvm.ptr) -> i64
        func.return %y : i64
      }}
    """
    parsed = Parser(make_context(), text).parse_module()
    ConvertToLLVM().apply(make_context(), parsed)
    return parsed


def defined(parsed: ModuleOp) -> set[str]:
    """The functions that a module defines."""
    parsed.verify()
    functions = [op for op in parsed.ops if isinstance(op, FuncOp)]
    return {op.sym_name.data for op in functions if op.body.blocks}


def compiled(parsed: ModuleOp, shared: SharedKernels) -> tuple[bytes, list[bytes], set[str]]:
    """The object of `@main`, those of the functions, and which of these were compiled for it."""
    separated = separate_functions(parsed, NAMES, shared)
    objects = [code for one in separated.known for code in one.codes]
    if separated.new:
        code = emit_object(separated.module)
        shared.keep(KernelObject([code], ()), separated.new)
        objects.append(code)
    return emit_object(parsed), objects, defined(separated.module)


def run(main: bytes, others: list[bytes]) -> int:
    """What `@main` makes of 5."""
    with NativeModule([main, *others], ["main"]) as native:
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(native.address("main"))(5)


def test_functions_leave_with_what_they_call() -> None:
    first, shared = module(("twice",)), SharedKernels()
    main, objects, new = compiled(first, shared)
    assert defined(first) == {"main"}
    assert new == {"twice_shared_0", "helper"}
    assert run(main, objects) == 10


def test_known_functions_are_not_compiled_again() -> None:
    shared = SharedKernels()
    compiled(module(("twice",)), shared)
    main, objects, new = compiled(module(("twice", "twice")), shared)
    assert new == set()
    assert run(main, objects) == 20
    main, objects, new = compiled(module(("four", "twice")), shared)
    assert new == {"four_shared_1", "twice", "helper"}  # with a copy of what it calls
    assert run(main, objects) == 40


def test_other_functions_of_the_same_name_are_others() -> None:
    shared = SharedKernels()
    compiled(module(("twice",)), shared)
    main, objects, new = compiled(module(("twice",), factor=3), shared)
    assert new == {"twice_shared_1", "helper"}
    assert run(main, objects) == 15


def test_what_reaches_a_variable_stays() -> None:
    first = module(("twice", "counted"))
    main, objects, new = compiled(first, SharedKernels())
    assert defined(first) == {"main", "counted"}
    assert new == {"twice_shared_0", "helper"}
    assert run(main, objects) == 0


def test_helpers_of_several_objects_have_names_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "LEAST_OPS", 4)
    monkeypatch.setattr(parts, "COPIED_OPS", 0)
    shared = SharedKernels()
    others: list[bytes] = []
    for factor in (2, 3):
        parsed = module(("twice", "four"), factor)
        separated = separate_functions(parsed, NAMES, shared)
        name_apart(separated.module, shared)
        codes = emit_objects(separated.module)
        assert len(codes) > 1
        others += codes
    assert run(emit_object(parsed), others) == 5 * 3**3
