"""The reference of the `relay` dialect: a page for each family of ops."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from page import Page, code, table
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation
from xdsl.irdl import (
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OptOperandDef,
    OptPropertyDef,
    ParamAttrConstraint,
    VarOperandDef,
    VarResultDef,
)
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.dialect import FAMILIES, RELAY
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.syntax import print_properties
from byoc_mlir.testing.conformance.cases import op_cases
from byoc_mlir.testing.samples.relay_ops.sample import Sample
from byoc_mlir.testing.samples.relay_ops.table import samples_of

FOLDER = "reference/ops"

_TESTS = Path(__file__).parents[2] / "tests" / "filecheck"

_KINDS = {
    "DenseArrayBase": "integers",
    "IntegerAttr": "integer",
    "FloatAttr": "number",
    "StringAttr": "text",
    "ArrayAttr": "list",
    "SymbolRefAttr": "function",
    "TypeAttribute": "type",
    "ShapeAttr": "sizes with symbols",
    "SizeAttr": "size with symbols",
    "WeightAttr": "weight",
    "DenseIntOrFPElementsAttr": "dense elements",
}
"""Names of the kinds of property attributes."""

_ELEMENTS = tuple(
    relay_type(np.dtype(name))
    for name in (
        *("bool", "int8", "uint8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64"),
    )
)

_INTRODUCTION = """\
Ops of the `relay` dialect compute with tensors, and are named as in TVM's Relay. Images are
`[N, C, spatial…]` and dense wherever ops meet; other layouts are a matter of backends and of the
host compiler inside.

All ops are written alike: operands, properties that are not at their default, types.

```mlir
%1 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
```

Result types follow from operands and properties, and are verified. `byoc-opt model.onnx` prints a
model in these ops, and names in rules and patterns of backends leave `relay.` out.
"""


def op_pages() -> list[Page]:
    """Returns an index, and a page for each family."""
    families = [(family, ops) for family in FAMILIES if (ops := _ops_of(family))]
    pages = [_family_page(family, ops) for family, ops in families]
    rows = [
        (
            f"[{page.title}]({Path(page.path).name})",
            ", ".join(f"[`{_short(op)}`]({Path(page.path).name}#{_anchor(op)})" for op in ops),
        )
        for page, (_, ops) in zip(pages, families, strict=True)
    ]
    index = f"# Ops\n\n{_INTRODUCTION}\n{table(('family', 'ops'), rows)}"
    return [Page("All ops", f"{FOLDER}/index.md", index), *pages]


def example_of(op: type[Operation]) -> str:
    """Returns the op as text: its first valid sample, or else a line of its tests.

    Raises:
        LookupError: neither has one.
    """
    name = _short(op)
    for case in op_cases(name, samples_of(name)):
        found = next(inner for inner in case.module.walk() if inner.name == op.name)
        return str(found)
    if op.name not in _tested_lines():
        raise LookupError(f"{op.name} has neither a sample nor a line in {_TESTS}")
    return _tested_lines()[op.name]


@cache
def _tested_lines() -> dict[str, str]:
    """Returns for each op a line of a FileCheck test that is valid."""
    lines: dict[str, str] = {}
    for path in sorted(_TESTS.rglob("*.mlir")):
        if "invalid" in path.name:
            continue
        for line in path.read_text().splitlines():
            found = re.match(r"\s*(?:%[\w, %]+= )?(relay\.[\w.]+) ", line)
            if found:
                lines.setdefault(found[1], line.strip())
    return lines


def _ops_of(family: ModuleType) -> list[type[IRDLOperation]]:
    return [
        op
        for op in RELAY.operations
        if op.__module__ == family.__name__ and issubclass(op, IRDLOperation)
    ]


def _family_page(family: ModuleType, ops: Sequence[type[IRDLOperation]]) -> Page:
    title = family.__name__.rpartition(".")[2].replace("_", " ")
    heading = f"# {title}\n\n{inspect.cleandoc(family.__doc__ or '')}\n"
    path = f"{FOLDER}/{title.replace(' ', '-')}-ops.md"
    return Page(title, path, "\n".join([heading, *map(_section, ops)]))


def _section(op: type[IRDLOperation]) -> str:
    definition = op.get_irdl_definition()
    parts = [
        f"## {op.name} {{ #{_anchor(op)} }}\n",
        inspect.cleandoc(op.__doc__ or "") + "\n",
    ]
    values = [("operand", name, _count(kind)) for name, kind in definition.operands]
    values += [("result", name, _count(kind)) for name, kind in definition.results]
    if values:
        rows = [(f"`{name}`", role, count) for role, name, count in values]
        parts.append(table(("value", "is", "tensors"), rows))
    properties = [
        (f"`{name}`", _kind(name, known.constr), _default(known))
        for name, known in definition.properties.items()
        if name != "operandSegmentSizes"
    ]
    if properties:
        parts.append(table(("property", "holds", "default"), properties))
    accepted = _accepted_elements(op)
    if accepted:
        first = definition.operands[0][0]
        parts.append(f"Element types of `{first}` that the verifier accepts: {accepted}.\n")
    parts.append(code(example_of(op), "mlir"))
    return "\n".join(parts)


def _count(definition: object) -> str:
    if isinstance(definition, OptOperandDef):
        return "one or none"
    return "any number" if isinstance(definition, VarOperandDef | VarResultDef) else "one"


def _default(definition: Any) -> str:
    if isinstance(definition, OptPropertyDef):
        return "none"
    value = definition.default_value
    return "must be given" if value is None else f"`{_written(value)}`"


def _written(value: Attribute) -> str:
    """Returns an attribute in the syntax of `relay` ops' properties."""
    stream = io.StringIO()
    print_properties(Printer(stream), {"x": value})
    return stream.getvalue().removeprefix(" {x = ").removesuffix("}")


def _kind(name: str, constraint: object) -> str:
    """Returns the kind of a property's value, in words."""
    match constraint:
        case AnyOf(attr_constrs=parts):
            return " or ".join(_kind(name, part) for part in parts)
        case ParamAttrConstraint(base_attr=base, param_constrs=(_, EqAttrConstraint(attr=type_))):
            return "true or false" if str(type_) == "i1" else _KINDS[base.__name__]
        case ParamAttrConstraint(base_attr=base) | BaseAttr(attr=base):
            return _KINDS[base.__name__]
        case _:
            return "type" if name.endswith("dtype") else "any attribute"


def _accepted_elements(op: type[IRDLOperation]) -> str:
    """Returns the element types that the first operand may have, in words; empty if unknown."""
    samples = samples_of(_short(op))
    if not samples or not samples[0].dtypes.keys().isdisjoint([0]):
        return ""
    accepted = [str(type_) for type_ in _ELEMENTS if _is_valid(op, samples[0], type_)]
    return "all" if len(accepted) == len(_ELEMENTS) else ", ".join(f"`{one}`" for one in accepted)


def _is_valid(op: Any, sample: Sample, element: Attribute) -> bool:
    shapes = (sample.data, *sample.rest(sample.data))
    types = [
        TensorType(
            relay_type(np.dtype(sample.dtypes[index])) if index in sample.dtypes else element, shape
        )
        for index, shape in enumerate(shapes)
    ]
    operands = Block(arg_types=types).args
    is_variadic = any(
        isinstance(kind, VarOperandDef) for _, kind in op.get_irdl_definition().operands
    )
    try:
        op(*([operands] if is_variadic else operands), **sample.attributes).verify()
    except VerifyException:
        return False
    return True


def _short(op: type[Operation]) -> str:
    return op.name.removeprefix("relay.")


def _anchor(op: type[Operation]) -> str:
    return op.name


def op_names() -> Iterator[type[IRDLOperation]]:
    """Yields every op of the dialect."""
    yield from (op for op in RELAY.operations if issubclass(op, IRDLOperation))
