"""Kernels that become the same machine code have the same structure, others have not."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.lowering.kernel_structure import kernel_structure


def structure(arguments: str, body: str) -> Hashable:
    """The structure of the kernel `@k`; `@f` and a global are there to refer to."""
    text = f"""
      func.func private @k({arguments}) {{ {body} func.return }}
      func.func private @f(memref<?xf32>)
      func.func private @g(memref<?xf32>)
      "memref.global"() <{{sym_name = "w", type = memref<4xf32>, sym_visibility = "private",
                           initial_value}}> : () -> ()
    """
    module = Parser(make_context(), text).parse_module()
    kernel = next(op for op in module.ops if isinstance(op, FuncOp))
    return kernel_structure(kernel)


def copy_loop(size: int, columns: int) -> tuple[str, str]:
    """Copies the first element of every row, by flat views."""
    type_, flat = f"memref<{size}x{columns}xf32>", f"memref<{size * columns}xf32>"
    view = f"to offset: [0], sizes: [{size * columns}], strides: [1] : {type_} to {flat}"
    body = f"""
      %c{columns} = arith.constant {columns} : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = memref.reinterpret_cast %x {view}
      %b = memref.reinterpret_cast %y {view}
      scf.for %i = %c0 to %end step %c1 {{
        %at = arith.muli %i, %c{columns} : index
        %0 = memref.load %a[%at] : {flat}
        memref.store %0, %b[%at] : {flat}
      }}
    """
    return f"%x: {type_}, %y: {type_}, %end: index", body


def test_sizes_of_flat_buffers_do_not_count() -> None:
    first = structure(*copy_loop(2, 8))
    assert first is not None
    assert first == structure(*copy_loop(3, 8))
    assert first != structure(*copy_loop(2, 4))


def test_constants_count_by_value_not_by_place() -> None:
    arguments, body = copy_loop(2, 8)
    lines = body.split("\n")
    turned = "\n".join([lines[0], lines[3], "%unused = arith.constant 5 : index", *lines[1:3]])
    rest = "\n".join(lines[4:])
    assert structure(arguments, turned + "\n" + rest) == structure(arguments, body)


_COPY = '"memref.copy"(%x, %y) : ({0}, {0}) -> ()'
_ALLOCA = "%0 = memref.alloca() : {0}"
_LOAD = """%c1 = arith.constant 1 : index
           %0 = memref.load %x[%c1, %c1] : {0}
           memref.store %0, %y[%c1, %c1] : {0}"""


@pytest.mark.parametrize(
    ("body", "types"),
    [
        pytest.param(_COPY, ("memref<4xf32>", "memref<8xf32>"), id="copy"),
        pytest.param(_ALLOCA, ("memref<4xf32>", "memref<8xf32>"), id="alloca"),
        pytest.param(_LOAD, ("memref<4x8xf32>", "memref<4x9xf32>"), id="rows"),
        pytest.param("", ("memref<4xf32>", "memref<4xf64>"), id="element"),
    ],
)
def test_what_the_code_depends_on_counts(body: str, types: tuple[str, str]) -> None:
    first, second = (structure(f"%x: {t}, %y: {t}", body.format(t)) for t in types)
    assert first is not None
    assert second is not None
    assert first != second


def test_what_is_called_counts() -> None:
    call = "func.call @{} (%x) : (memref<?xf32>) -> ()"
    found = {structure("%x: memref<?xf32>", call.format(name)) for name in "fg"}
    assert len(found) == 2


def test_what_mentions_a_global_has_no_structure() -> None:
    body = "%0 = memref.get_global @w : memref<4xf32>"
    assert structure("%x: memref<4xf32>", body) is None
