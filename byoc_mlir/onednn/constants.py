"""Constants of oneDNN's C API: `dnnl_types.h` of oneDNN 3.

https://oneapi-src.github.io/oneDNN/v3.1/group_dnnl_api.html
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Status(IntEnum):
    """Values of `dnnl_status_t`; only success is distinguished."""

    SUCCESS = 0


class DataType(IntEnum):
    """Values of `dnnl_data_type_t`."""

    UNDEFINED = 0
    BF16 = 2
    F32 = 3
    S32 = 4
    S8 = 5
    U8 = 6


class Arg(IntEnum):
    """Values of `DNNL_ARG_*`: the argument of an execution that a memory object is."""

    SRC = 1
    SRC_1 = 2
    DST = 17
    SRC_ITER = 2
    SRC_ITER_C = 3
    DST_ITER = 18
    DST_ITER_C = 19
    WEIGHTS = 33
    WEIGHTS_1 = 34
    BIAS = 41
    MEAN = 49
    VARIANCE = 50
    SCALE = 51
    SHIFT = 52
    SCRATCHPAD = 80
    MULTIPLE_SRC = 1024


_POST_OP_BASE = 32768
"""Value of `DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE`; 16384 marks a fused depthwise convolution."""


ATTR_SCALES, ATTR_ZERO_POINTS = 4096, 8192
"""Flags `DNNL_ARG_ATTR_SCALES` and `DNNL_ARG_ATTR_ZERO_POINTS`, added to an argument."""


def is_parameter(argument: int) -> bool:
    """True if an argument holds scales or zero points; primitive descriptors do not describe
    these."""
    return argument < _POST_OP_BASE and bool(argument & (ATTR_SCALES | ATTR_ZERO_POINTS))


def post_op_arg(position: int) -> int:
    """Returns the argument that a binary post-op at that position of the chain reads."""
    return _POST_OP_BASE * (position + 1) | Arg.SRC_1


def prelu_arg(position: int) -> int:
    """Returns the argument for the slopes of a prelu post-op at that position."""
    return _POST_OP_BASE * (position + 1) | Arg.WEIGHTS


class Query(IntEnum):
    """Values of `dnnl_query_t`."""

    IMPL_INFO_STR = 8
    SCRATCHPAD_MD = 136
    EXEC_ARG_MD = 255


CPU = 1
IN_ORDER = 1
USER_SCRATCHPAD = 1
FORWARD_INFERENCE = 96

USE_GLOBAL_STATS = 1
USE_SCALE = 2
USE_SHIFT = 4
FUSE_RELU = 8

CONVOLUTION_DIRECT, CONVOLUTION_WINOGRAD = 1, 2
DECONVOLUTION_DIRECT = 0xA

ELTWISE: Mapping[str, int] = {
    "relu": 0x20,
    "tanh": 0x21,
    "elu": 0x22,
    "square": 0x23,
    "abs": 0x24,
    "sqrt": 0x25,
    "linear": 0x26,
    "soft_relu": 0x27,
    "hardsigmoid": 0x28,
    "logistic": 0x29,
    "exp": 0x2A,
    "gelu_tanh": 0x2B,
    "swish": 0x2C,
    "log": 0x2D,
    "clip": 0x2E,
    "clip_v2": 0x2F,
    "pow": 0x30,
    "gelu_erf": 0x31,
    "round": 0x32,
    "mish": 0x33,
    "hardswish": 0x34,
}

BINARY: Mapping[str, int] = {
    "add": 0x1FFF0,
    "mul": 0x1FFF1,
    "max": 0x1FFF2,
    "min": 0x1FFF3,
    "div": 0x1FFF4,
    "sub": 0x1FFF5,
}

POOLING: Mapping[str, int] = {
    "max": 0x1FF,
    "avg_include_padding": 0x2FF,
    "avg_exclude_padding": 0x3FF,
}

LRN_ACROSS_CHANNELS = 0xAFF

SOFTMAX: Mapping[str, int] = {"accurate": 0x30000, "log": 0x30001}

DIRECTIONS: Mapping[str, int] = {"forward": 1, "reverse": 2}
BOTH_SIDE_BY_SIDE = 3
"""Value of `dnnl_bidirectional_concat`."""

RESAMPLING: Mapping[str, int] = {"nearest": 0x2FFF0, "linear": 0x2FFF1}

REDUCTION: Mapping[str, int] = {
    "max": 0x2FFF2,
    "min": 0x2FFF3,
    "sum": 0x2FFF4,
    "mul": 0x2FFF5,
    "mean": 0x2FFF6,
}
