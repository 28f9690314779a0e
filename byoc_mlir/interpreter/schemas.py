"""Schemas of ONNX's ops: types of operands and results, and defaults of attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, defs, helper

Types = Sequence["int | None"]
"""Element types of operands; `None` for an omitted operand."""


@dataclass(frozen=True)
class Schema:
    """Schema of an op in one version.

    Attributes:
        operands, results: type variable of each; the last one stands for all further ones.
        allowed: element types that each variable allows; 0 stands for other types.
        defaults: default values of the attributes that have one.
    """

    operands: Sequence[str]
    results: Sequence[str]
    allowed: Mapping[str, Set[int]]
    defaults: Mapping[str, Any]

    def variables(self, types: Types) -> Mapping[str, int] | None:
        """Returns the type of each variable, or `None` if the operands do not fit."""
        found = {name: min(those) for name, those in self.allowed.items() if len(those) == 1}
        for place, kind in enumerate(types):
            if kind is None:
                continue
            name = self.operands[min(place, len(self.operands) - 1)]
            if kind not in self.allowed[name] or found.setdefault(name, kind) != kind:
                return None
        return found

    def made(self, node: NodeProto, variables: Mapping[str, int]) -> dict[str, int]:
        """Returns the types of a node's results, by name."""
        told = _TOLD[node.op_type](node) if node.op_type in _TOLD else 0
        last = len(self.results) - 1
        return {
            name: told or variables.get(self.results[min(place, last)], TensorProto.UNDEFINED)
            for place, name in enumerate(node.output)
            if name
        }


def opset_of(model: ModelProto) -> int:
    """Returns the version of the default domain, or 0 if the model names none."""
    return next((each.version for each in model.opset_import if not each.domain), 0)


def name_of(node: NodeProto) -> str:
    """Returns the name of a node's op, with its domain in front unless it is the default domain."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


@cache
def schema_of(name: str, opset: int) -> Schema | None:
    """Returns the schema of an op, or `None` if this version of the default domain has none.

    Args:
        name: name as in `name_of`.
    """
    if name in ONNX_RUNTIME:
        return ONNX_RUNTIME[name]
    try:
        found = defs.get_schema(name, opset, "")
    except defs.SchemaError:
        return None
    texts = {each.type_param_str: each.allowed_type_strs for each in found.type_constraints}
    operands = [each.type_str for each in found.inputs]
    results = [each.type_str for each in found.outputs]
    allowed = {
        name: frozenset(_ELEMENTS.get(text, 0) for text in texts.get(name, [name]))
        for name in (*operands, *results)
    }
    defaults = {name: value_of(each.default_value) for name, each in found.attributes.items()}
    return Schema(operands, results, allowed, defaults)


def value_of(attribute: AttributeProto) -> Any:
    """Returns an attribute's value, with text as `str`; `None` if it has no value."""
    if attribute.type == AttributeProto.UNDEFINED:
        return None
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.STRING:
        return value.decode(errors="replace")
    if attribute.type == AttributeProto.STRINGS:
        return [text.decode(errors="replace") for text in value]
    return value


_ELEMENTS = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(double)": TensorProto.DOUBLE,
    "tensor(int64)": TensorProto.INT64,
    "tensor(int32)": TensorProto.INT32,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(uint8)": TensorProto.UINT8,
}


def _of_letters(operands: str, results: str, **defaults: Any) -> Schema:
    """Returns the schema with a letter of `_LETTERS` for the type of each operand and result."""
    return Schema(operands, results, _LETTERS, defaults)


_LETTERS = {
    "F": frozenset((TensorProto.FLOAT,)),
    "I": frozenset((TensorProto.INT32,)),
    "L": frozenset((TensorProto.INT64,)),
    "J": frozenset((TensorProto.INT32, TensorProto.INT64)),
    "B": frozenset((TensorProto.UINT8,)),
    "P": frozenset((TensorProto.UINT8, TensorProto.FLOAT)),
}

ONNX_RUNTIME: Mapping[str, Schema] = {
    "SimplifiedLayerNormalization": _of_letters("FF", "FF", stash_type=1),
    "com.microsoft.Attention": _of_letters(
        *("FFFIFFI", "FF"), do_rotary=0, past_present_share_buffer=0, rotary_embedding_dim=0
    ),
    "com.microsoft.BiasGelu": _of_letters("FF", "F"),
    "com.microsoft.FastGelu": _of_letters("FF", "F"),
    "com.microsoft.GatherBlockQuantized": _of_letters("BJFB", "F", gather_axis=0, quantize_axis=1),
    "com.microsoft.Gelu": _of_letters("F", "F"),
    "com.microsoft.GroupQueryAttention": _of_letters(
        *("FFFFFIIFFLFF", "FFFF"),
        causal=1,
        k_quant_type="NONE",
        kv_cache_bit_width=0,
        qk_output=0,
        sliding_window_cache=0,
        v_quant_type="NONE",
    ),
    "com.microsoft.MatMulNBits": _of_letters("FBFPIF", "F"),
    "com.microsoft.MultiHeadAttention": _of_letters("FFFFIFFFII", "FFFF"),
    "com.microsoft.QuickGelu": _of_letters("F", "F"),
    "com.microsoft.RotaryEmbedding": _of_letters("FLFF", "F", scale=1.0),
    "com.microsoft.SkipLayerNormalization": _of_letters("FFFFF", "FFFF"),
    "com.microsoft.SkipSimplifiedLayerNormalization": _of_letters("FFFF", "FFFF"),
}
"""Schemas of ops that ONNX Runtime defines; one is in the default domain."""


def _type_of_cast(node: NodeProto) -> int:
    return next((item.i for item in node.attribute if item.name == "to"), TensorProto.UNDEFINED)


def _type_of_constant(node: NodeProto) -> int:
    for item in node.attribute:
        if item.type in (AttributeProto.INT, AttributeProto.INTS):
            return TensorProto.INT64
        if item.type == AttributeProto.TENSOR:
            return item.t.data_type
    return TensorProto.FLOAT


_TOLD: Mapping[str, Callable[[NodeProto], int]] = {
    "Cast": _type_of_cast,
    "Constant": _type_of_constant,
    "ConstantOfShape": _type_of_constant,
}
"""Ops whose result type is in an attribute: a function that returns the type."""
