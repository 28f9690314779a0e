"""`lower-small-types`: codes in `ui8` compute the results of types of 8 bits and less."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers.verified import verify_module
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, i32
from xdsl.ir import Attribute, Block, Region

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import elementwise, nn, transform
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.lowering.lower_small_types import LowerSmallTypes, encoding

FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]
INTEGERS = ["int2", "uint2", "int4", "uint4"]


def _type(name: str) -> Attribute:
    return relay_type(np.dtype(getattr(ml_dtypes, name)))


def _module(block: Block) -> tuple[ModuleOp, func.FuncOp]:
    last = block.last_op
    assert last is not None
    block.add_op(func.ReturnOp(*last.results))
    types = [argument.type for argument in block.args], [r.type for r in last.results]
    main = func.FuncOp("main", types, Region(block))
    return ModuleOp([main]), main


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8) if array.dtype.itemsize == 1 else array


def _check(block: Block, inputs: list[np.ndarray]) -> None:
    module, main = _module(block)
    expected = evaluate(main, inputs)
    LowerSmallTypes().apply(make_context(), module)
    verify_module(module)
    found = evaluate(main, [_bytes(array) for array in inputs])
    for result, wanted in zip(found, expected, strict=True):
        decoded = result.view(wanted.dtype).astype(np.float32)
        np.testing.assert_array_equal(decoded, wanted.astype(np.float32))


def _all_codes(name: str) -> np.ndarray:
    codes = np.arange(256, dtype=np.uint8) & {"2": 3, "4": 15}.get(name[-1], 255)
    if name.startswith("float4"):
        codes &= 15
    return codes.view(getattr(ml_dtypes, name))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "float8_e8m0fnu"])
def test_every_code_is_decoded(name: str) -> None:
    block = Block(arg_types=[TensorType(_type(name), [256])])
    wide = f32 if name.startswith("float") else i32
    block.add_op(elementwise.CastOp(block.args[0], dtype=wide))
    _check(block, [_all_codes(name)])


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_numbers_are_encoded_as_numpy_does(name: str) -> None:
    rng = np.random.default_rng(0)
    block = Block(arg_types=[TensorType(f32, [4000])])
    block.add_op(elementwise.CastOp(block.args[0], dtype=_type(name)))
    numbers = rng.standard_normal(4000).astype(np.float32) * np.exp2(
        rng.integers(-20, 20 if name.startswith("float") else 3, 4000)
    ).astype(np.float32)
    if name.startswith("float8"):
        numbers[:6] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38]
    _check(block, [numbers])


@pytest.mark.parametrize("name", FLOATS[:4])
def test_ties_go_to_the_even_code(name: str) -> None:
    dtype = getattr(ml_dtypes, name)
    codes = np.arange(1, 100, dtype=np.uint8)
    lower, upper = (code.view(dtype).astype(np.float64) for code in (codes, codes + 1))
    halves = ((lower + upper) / 2).astype(np.float32)
    thresholds = encoding(_type(name)).thresholds
    assert np.isin(halves[codes % 2 == 1], thresholds).all()
    assert not np.isin(halves[codes % 2 == 0], thresholds).any()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "int4", "uint2"])
def test_ops_that_compute_and_ops_that_move(name: str) -> None:
    rng = np.random.default_rng(1)
    shape: Any = (4, 6)
    element_type = _type(name)
    block = Block(arg_types=[TensorType(element_type, shape)] * 2)
    turned = transform.TransposeOp(block.args[0], axes=[1, 0])
    padded = transform.PadOp(turned, pad_width=[1, 0, 0, 1], pad_value=1.0)
    back = transform.TransposeOp(padded, axes=[1, 0])
    part = transform.StridedSliceOp(back, begin=[0, 1], end=[4, 7], strides=[1, 1])
    total = elementwise.MaximumOp(part, block.args[1])
    joined = transform.ConcatenateOp([total, block.args[0]], axis=0)
    block.add_ops([turned, padded, back, part, total, joined])
    if name.startswith("float"):
        block.add_op(nn.ReluOp(joined))
    values = rng.integers(0, 2, (2, *shape)).astype(numpy_dtype(element_type))
    _check(block, list(values))
