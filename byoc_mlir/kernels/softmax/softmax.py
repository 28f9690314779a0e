"""Softmax of rows, each of which lies side by side in memory."""

from __future__ import annotations

import math
from functools import partial

from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Code
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.softmax.code import Parameters, define_softmax

_OPS = 24
"""About those of an element, in three passes over its row."""


def softmax_code(rows: Size, columns: Size, lanes: int) -> Code:
    """`exp(x - peak) / sum(exp(x - peak))` along each row of `f32`; the result may be where the
    source is.

    Args:
        rows: how many there are.
        columns: the elements of each.
        lanes: those of the processor's vectors.
    """
    shared = math.ceil(ASSUMED.parallel_cycles * ASSUMED.loop_iterations / _OPS)
    return Code(partial(define_softmax, lanes=lanes), words(Parameters(rows, columns, shared)))
