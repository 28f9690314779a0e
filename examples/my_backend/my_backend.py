"""A whole backend: additions and ReLUs become C loops, everything else stays where it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import Backend, CodegenContext, CSource, OpDetail, Rule
from byoc_mlir.dialects.byoc import CompositeOp, YieldOp
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.patterns import CompositePattern, is_op, wildcard

Shape: TypeAlias = tuple[int, ...]


def refusal(op: Operation) -> str | None:
    """Why an op cannot be a loop over one index, or `None`."""
    values = [*op.operands, *op.results]
    if any(tensor_type(value).element_type != f32 for value in values):
        return "only float32 tensors"
    if len({shape_of(value) for value in values}) > 1:
        return "operands of different shapes would have to be broadcast"
    return None


class LoopsBackend(Backend):
    """Every region is one C function with one loop for each shape in it."""

    name = "loops"

    def op_rules(self) -> Mapping[str, Rule]:
        """Single ops."""
        return {"add": refusal, "nn.relu": refusal}

    def patterns(self) -> Sequence[CompositePattern]:
        """ReLU of a sum, the one thing that this hardware does in one go."""
        add_relu = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
        return [CompositePattern("loops.add_relu", add_relu, lambda m: refusal(m.ops[0]))]

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        """`int R(const float *constants…, const float *inputs…, float *outputs…)`."""
        constants = [op.output for op in region.walk() if isinstance(op, ConstantOp)]
        inputs: list[SSAValue] = [*constants, *region.args]
        names = {value: f"in{i}[i]" for i, value in enumerate(inputs)}
        parameters = [f"const float *in{i}" for i in range(len(names))]
        loops: dict[Shape, list[str]] = {}
        translate(region.body.block.ops, names, loops)
        returned = region.get_return_op()
        assert isinstance(returned, ReturnOp)
        for i, value in enumerate(returned.operands):
            parameters.append(f"float *out{i}")
            loops.setdefault(shape_of(value), []).append(f"out{i}[i] = {names[value]};")
        source = f"int {region.sym_name.data}({', '.join(parameters)}) {{\n"
        for shape, lines in loops.items():
            count = math.prod(shape)
            source += f"  for (long i = 0; i < {count}; ++i) {{ {' '.join(lines)} }}\n"
        source += "  return 0;\n}\n"
        return CSource(source, ("-O3",), details=(OpDetail((), "C loop"),))


def translate(
    ops: Iterable[Operation], names: dict[SSAValue, str], loops: dict[Shape, list[str]]
) -> None:
    """Appends one scalar statement for every op to the loop of its shape, and names its result."""
    for op in ops:
        if isinstance(op, CompositeOp):
            names.update(zip(op.body.block.args, map(names.__getitem__, op.inputs), strict=True))
            translate(op.body.block.ops, names, loops)
            names.update(zip(op.outputs, map(names.__getitem__, op.yielded), strict=True))
        elif not isinstance(op, ConstantOp | YieldOp | ReturnOp):
            x, *rest = (names[operand] for operand in op.operands)
            value = f"{x} + {rest[0]}" if rest else f"{x} < 0 ? 0 : {x}"
            name = names[op.results[0]] = f"v{len(names)}"
            loops.setdefault(shape_of(op.results[0]), []).append(f"float {name} = {value};")
