"""Primitives that planned regions create: the same as were planned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ArrayAttr, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from byoc_mlir.backends.dnnl.codegen.program import RegionProgram, make_program
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp, EltwiseAttr, with_layout
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.passes.place_dnnl_buffers import PlaceDnnlBuffers
from byoc_mlir.backends.dnnl.passes.select_dnnl_primitives import SelectDnnlPrimitives
from byoc_mlir.dialects import relay
from byoc_mlir.onednn.engine import openmp_threads


def _program(shape: Sequence[int], source: str, result: str) -> RegionProgram:
    """Returns the program of a 1x1 convolution with as many outputs as inputs, from one layout to
    another.
    """
    spatial = len(shape) - 2
    types = [with_layout(TensorType(f32, shape), layout) for layout in (source, result)]
    block = Block(arg_types=types[:1])
    with ImplicitBuilder(block):
        ones = np.ones((shape[1], shape[1], *(1,) * spatial), np.float32)
        weights = relay.ConstantOp.of("w", ones)
        convolution = ConvolutionOp(
            [block.args[0], weights.output],
            strides=[1] * spatial,
            padding=[0] * (2 * spatial),
            dilation=[1] * spatial,
            groups=1,
            post_ops=ArrayAttr([EltwiseAttr.of("logistic")]),
            result_types=types[1:],
        )
        ReturnOp(convolution.output)
    func = FuncOp("r", (types[:1], types[1:]), Region(block))
    SelectDnnlPrimitives().change(func)
    PlaceDnnlBuffers().change(func)
    with openmp_threads(1):
        return make_program(func, 1)


_SHAPES = pytest.mark.parametrize("shape", [(1, 1, 8), (1, 1, 1, 3), (7, 1, 6, 8), (2, 8, 1, 1)])


@_SHAPES
def test_layouts_that_place_all_elements_alike_are_one_description(shape: Sequence[int]) -> None:
    """Checks that the library finds a primitive again regardless of the strides of dimensions of
    1."""
    rank = len(shape)
    names = (layouts.plain(rank), layouts.channels_last(rank))
    calls = {
        _program(shape, source, result).primitives.items[0].call
        for source in names
        for result in names
    }
    assert len(calls) == 1


@_SHAPES
def test_what_is_created_is_what_was_planned(shape: Sequence[int]) -> None:
    """Checks that weights already in the library's layout do not change the chosen primitive when
    they are named.
    """
    program = _program(shape, layouts.plain(len(shape)), layouts.plain(len(shape)))
    with openmp_threads(1):
        found = [find(created.call) for created in program.primitives.items]
    for descriptor, created in zip(found, program.primitives.items, strict=True):
        assert descriptor is not None
        assert descriptor.scratchpad_bytes == created.scratchpad_bytes
    assert found[0] is not None
    assert found[0].implementation == program.details[0].implementation
