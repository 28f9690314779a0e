"""Numbers of `cudnn_graph.h` that plans need."""

from __future__ import annotations

from enum import IntEnum


class DescriptorKind(IntEnum):
    """Kinds of descriptors, `cudnnBackendDescriptorType_t`."""

    POINTWISE = 0
    CONVOLUTION = 1
    ENGINE = 2
    ENGINE_CONFIGURATION = 3
    HEURISTICS = 4
    PLAN = 5
    CONVOLUTION_FORWARD = 10
    CONVOLUTION_BACKWARD_DATA = 12
    POINTWISE_OPERATION = 13
    GRAPH = 15
    VARIANT_PACK = 16
    TENSOR = 17
    DEVICE_PROPERTIES = 38


class Type(IntEnum):
    """Types of attributes' values, `cudnnBackendAttributeType_t`."""

    HANDLE = 0
    DATA_TYPE = 1
    BOOLEAN = 2
    INT64 = 3
    FLOAT = 4
    POINTER = 6
    CONVOLUTION_MODE = 7
    HEURISTICS_MODE = 8
    NUMERICAL_NOTE = 11
    POINTWISE_MODE = 14
    DESCRIPTOR = 15
    BEHAVIOR_NOTE = 19
    INT32 = 23
    CHAR = 24


class Attribute(IntEnum):
    """Attributes of descriptors, `cudnnBackendAttributeName_t`."""

    POINTWISE_MODE = 0
    POINTWISE_COMPUTED_IN = 1
    CONVOLUTION_COMPUTED_IN = 100
    CONVOLUTION_MODE = 101
    CONVOLUTION_DILATIONS = 102
    CONVOLUTION_STRIDES = 103
    CONVOLUTION_PADDING_AFTER = 104
    CONVOLUTION_PADDING_BEFORE = 105
    CONVOLUTION_SPATIAL_RANK = 106
    HEURISTICS_MODE = 200
    HEURISTICS_GRAPH = 201
    HEURISTICS_RESULTS = 202
    HEURISTICS_DEVICE = 204
    CONFIGURATION_ENGINE = 300
    PLAN_HANDLE = 400
    PLAN_CONFIGURATION = 401
    PLAN_WORKSPACE_BYTES = 402
    PLAN_JSON = 405
    PLAN_DEVICE = 407
    FORWARD_ALPHA = 700
    FORWARD_BETA = 701
    FORWARD_CONVOLUTION = 702
    FORWARD_WEIGHT = 703
    FORWARD_DATA = 704
    FORWARD_RESULT = 705
    BACKWARD_ALPHA = 706
    BACKWARD_BETA = 707
    BACKWARD_CONVOLUTION = 708
    BACKWARD_WEIGHT = 709
    BACKWARD_RESULT = 710
    BACKWARD_DATA = 711
    POINTWISE_DESCRIPTOR = 750
    POINTWISE_X = 751
    POINTWISE_B = 752
    POINTWISE_Y = 753
    GRAPH_OPERATIONS = 801
    TENSOR_ALIGNMENT = 900
    TENSOR_TYPE = 901
    TENSOR_SIZES = 902
    TENSOR_STRIDES = 903
    TENSOR_NUMBER = 906
    TENSOR_IS_VIRTUAL = 907
    PACK_NUMBERS = 1000
    PACK_POINTERS = 1001
    PACK_WORKSPACE = 1003
    ENGINE_INDEX = 1301
    ENGINE_NUMERICAL_NOTES = 1303
    ENGINE_BEHAVIOR_NOTES = 1305
    DEVICE_NUMBER = 2700
    DEVICE_JSON = 2702


class DataType(IntEnum):
    """Element types, `cudnnDataType_t`."""

    F32 = 0
    F16 = 2


class Numerics(IntEnum):
    """Numerical notes of engines, `cudnnBackendNumericalNote_t`."""

    TENSOR_CORE = 0
    DOWN_CONVERT_INPUTS = 1
    REDUCED_PRECISION_REDUCTION = 2
    FFT = 3
    NONDETERMINISTIC = 4
    WINOGRAD = 5
    WINOGRAD_TILE_4X4 = 6
    WINOGRAD_TILE_6X6 = 7
    WINOGRAD_TILE_13X13 = 8
    STRICT_NAN_PROPAGATION = 9


COMPILED_AT_RUN_TIME = 0
"""Behaviour note of engines whose plans take up to two seconds to compile."""

HEURISTICS_A, HEURISTICS_FALLBACK = 3, 2
"""`cudnnBackendHeurMode_t`."""

CROSS_CORRELATION = 1
"""`cudnnConvolutionMode_t` of ONNX's convolutions."""

ADD, RELU = 0, 100
"""`cudnnPointwiseMode_t`."""
