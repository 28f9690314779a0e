"""Known errors of the oracles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from byoc_mlir_fuzz.graphs import ops_in
from byoc_mlir_fuzz.oracles import RECURRENT, Answer


def knows(name: str, model: onnx.ModelProto) -> bool:
    """True if an oracle is right about a model of these ops, provided it has an answer."""
    ops = ops_in(model.graph)
    opset = next((entry.version for entry in model.opset_import if not entry.domain), 0)
    if name == "reference" and any(opset < _REFERENCE_SINCE.get(op, 0) for op in ops):
        return False
    if ops & _TYPED and name in _wrong_about_types(model):
        return False
    if name == "onnxruntime" and "Sigmoid" in ops and not ops.isdisjoint(_TELL_SMALL_FROM_ZERO):
        return False  # its sigmoid is 0 where it should be small
    if name == "onnxruntime" and any(map(_is_misread, model.graph.node)):
        return False
    if name == "reference" and any(map(_is_mistaken, model.graph.node)):
        return False
    if any(name in _wrong_about_two_classes(node) for node in model.graph.node):
        return False
    return ops.isdisjoint(_WRONG[name])


_TELL_SMALL_FROM_ZERO = frozenset(("Sqrt", "Log", "Unique", "Floor", "Ceil", "Sign"))
"""Ops whose result for a small value is not close to that for zero, or has one element more."""


def _wrong_about_two_classes(node: onnx.NodeProto) -> Set[str]:
    """Returns the oracles that are wrong about a tree ensemble with two classes.

    If both classes have weights, ONNX Runtime returns 1 or 0 instead of a label, and the reference
    evaluator compares the transformed scores, even if the transformation reverses their order. If
    only the second class has weights, the reference evaluator assigns them to the first.
    """
    if node.op_type != "TreeEnsembleClassifier":
        return frozenset()
    given = {item.name: item for item in node.attribute}
    labels = [given[name] for name in _LABELS if name in given]
    if sum(len(item.ints) + len(item.strings) for item in labels) != 2:
        return frozenset()
    weighted = set(given["class_ids"].ints) if "class_ids" in given else set[int]()
    if weighted == {0, 1}:
        keeps_order = "post_transform" not in given or given["post_transform"].s in _IN_ORDER
        return {"onnxruntime"} if keeps_order else {"onnxruntime", "reference"}
    return {"reference"} if weighted == {1} else frozenset()


_LABELS = ("classlabels_int64s", "classlabels_strings")
_IN_ORDER = (b"NONE", b"LOGISTIC", b"SOFTMAX")
"""Transformations of scores that keep the order."""


def _is_misread(node: onnx.NodeProto) -> bool:
    """True if ONNX Runtime computes a node otherwise than ONNX defines."""
    ideas = (_pads_without_dilation, _leaves_out_in_front, _may_lack_elements)
    return any(idea(node) for idea in ideas)


def _is_mistaken(node: onnx.NodeProto) -> bool:
    """True if the reference evaluator computes a node otherwise than ONNX defines."""
    ideas = (
        _takes_first_bias,
        _begins_at_the_extremes,
        _moves_to_border,
        _may_lack_elements,
    )
    return any(idea(node) for idea in ideas)


def _may_lack_elements(node: onnx.NodeProto) -> bool:
    """True if the node is a transposed convolution whose `auto_pad` may require more elements than
    it computes: ONNX Runtime returns a smaller result, the reference evaluator adds elements in
    front.
    """
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    if node.op_type != "ConvTranspose" or not given.get("auto_pad", b"").startswith(b"SAME"):
        return False
    strides = given.get("strides", [])
    kernel = given.get("kernel_shape", [1] * len(strides))
    return any(size < stride for size, stride in zip(kernel, strides, strict=False))


def _begins_at_the_extremes(node: onnx.NodeProto) -> bool:
    """True if the node is a tree ensemble whose minimum of no leaves is the largest value, or the
    reverse.
    """
    given = {item.name: item.s for item in node.attribute}
    is_extreme = given.get("aggregate_function") in (b"MIN", b"MAX")
    return node.op_type == "TreeEnsembleRegressor" and is_extreme


def _takes_first_bias(node: onnx.NodeProto) -> bool:
    """True if the node is a grouped transposed convolution with a bias: all groups take the bias of
    the first.
    """
    groups = [item.i for item in node.attribute if item.name == "group"]
    return node.op_type == "ConvTranspose" and len(node.input) > 2 and groups > [1]


def _pads_without_dilation(node: onnx.NodeProto) -> bool:
    """True if the node is a dilated pool with `auto_pad` `SAME_…`: ONNX Runtime pads as if it were
    not dilated.
    """
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    is_dilated = max(given.get("dilations", [1]), default=1) > 1
    is_same = given.get("auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")
    return node.op_type in ("MaxPool", "AveragePool", "LpPool") and is_dilated and is_same


def _leaves_out_in_front(node: onnx.NodeProto) -> bool:
    """True if the node is an average pool with `auto_pad` `SAME_…` whose strides may exceed its
    windows: ONNX Runtime starts the first window after the border, as if the padding were negative;
    its max pool refuses these attributes.
    """
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    if given.get("auto_pad") not in (b"SAME_UPPER", b"SAME_LOWER"):
        return False
    kernel, strides = given.get("kernel_shape", []), given.get("strides", [])
    is_longer = any(stride > size for size, stride in zip(kernel, strides, strict=False))
    return node.op_type in ("AveragePool", "LpPool") and is_longer


def _moves_to_border(node: onnx.NodeProto) -> bool:
    """True if the node samples by cubic interpolation and pads with the border.

    ONNX Runtime and PyTorch interpolate at the position itself, between elements that repeat the
    border; the standard's evaluator moves the position to the border.
    """
    texts = {attribute.name: attribute.s for attribute in node.attribute}
    is_cubic = texts.get("mode") in (b"cubic", b"bicubic")
    return node.op_type == "GridSample" and is_cubic and texts.get("padding_mode") == b"border"


def _wrong_about_types(model: onnx.ModelProto) -> Iterator[str]:
    """Yields the oracles that are wrong about a node of a model, because of the types of its
    inputs.

    The reference evaluator computes integer matmuls and interpolations in f64, and squares of
    integers in the integer type, though the root would fit. It sums `bf16` in `bf16`, for means and
    variances, too, and has the weights of cubic interpolation in `f32` and f16 positions in f16. It
    takes the element before a position that rounding put just after it.

    ONNX Runtime takes `beta` of a `Gemm` for 1 if K is 0, and floors fractional sizes before it
    aligns corners. In f64 it returns minus infinity for the logarithm of a softmax element beside
    an infinity.
    """
    graph = shape_inference.infer_shapes(model).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    types = {
        tensor.name: helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
    }
    types |= {value.name: value for value in (*graph.input, *graph.value_info)}
    for node in graph.node:
        if node.op_type not in _TYPED:
            continue
        first = types.get(node.input[0], onnx.ValueInfoProto()).type.tensor_type
        if node.op_type in _SUMS and first.elem_type == TensorProto.BFLOAT16:
            yield "reference"
        is_integer = first.elem_type not in (TensorProto.UNDEFINED, *_FLOATS)
        if node.op_type in _INTEGER and is_integer:
            yield "reference"
        if first.elem_type == TensorProto.DOUBLE and _is_cubic(node):
            yield "reference"
        is_empty = any(dim.HasField("dim_value") and not dim.dim_value for dim in first.shape.dim)
        if node.op_type == "Gemm" and is_empty:
            yield "onnxruntime"
        if node.op_type == "LogSoftmax" and first.elem_type == TensorProto.DOUBLE:
            yield "onnxruntime"
        if node.op_type == "Resize" and _aligns_fractions(node, first.shape, constants):
            yield "onnxruntime"
        if node.op_type == "Resize" and _takes_nearest(node, first.shape, constants):
            yield "reference"
        if node.op_type == "GridSample":
            grid = types.get(node.input[1], onnx.ValueInfoProto()).type.tensor_type
            if grid.elem_type in _HALVES:
                yield "reference"


def _aligns_fractions(
    node: onnx.NodeProto, shape: onnx.TensorShapeProto, constants: Answer
) -> bool:
    """True if aligned corners depend on a size that a scale makes fractional."""
    texts = {attribute.name: attribute.s for attribute in node.attribute}
    if texts.get("coordinate_transformation_mode") != b"align_corners":
        return False
    if len(node.input) < 3 or not node.input[2]:
        return False
    scales = constants.get(node.input[2])
    sizes = [dim.dim_value if dim.HasField("dim_value") else np.nan for dim in shape.dim]
    if scales is None or len(scales) != len(sizes):  # computed, or those of some axes
        return True
    return not (scales.astype(np.float32) * sizes % 1 == 0).all()


def _takes_nearest(node: onnx.NodeProto, shape: onnx.TensorShapeProto, constants: Answer) -> bool:
    """True if a resize takes the nearest elements, and the given sizes lead to a scale or position
    that may be fractional.
    """
    texts = {attribute.name: attribute.s for attribute in node.attribute}
    if texts.get("mode", b"nearest") != b"nearest":
        return False
    if texts.get("coordinate_transformation_mode") == b"half_pixel_symmetric":
        return True
    if len(node.input) < 4 or not node.input[3]:
        return False
    wanted = constants.get(node.input[3])
    sizes = [dim.dim_value for dim in shape.dim]
    if wanted is None or len(wanted) != len(sizes) or not all(sizes):  # computed, or some
        return True
    return bool((wanted % sizes).any())


def _is_cubic(node: onnx.NodeProto) -> bool:
    return any(item.name == "mode" and item.s == b"cubic" for item in node.attribute)


_SUMS = frozenset(
    (
        *("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare", "ReduceMean", "ReduceLogSum"),
        "LayerNormalization",
    )
)
_INTEGER = frozenset(("Gemm", "ReduceL2", "Resize"))
_TYPED = _INTEGER | _SUMS | {"GridSample", "LogSoftmax"}
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *_HALVES)

_WRONG_IN_REFERENCE = frozenset(
    (
        "AffineGrid",  # always in single precision
        "Unique",  # sorted though it should not be, and not along the axis
        "BatchNormalization",  # of opset 9, as if it was trained
        "LRN",  # the last channel of a window is omitted
        "Slice",  # backwards from before the first element nothing is left, not that element
        "SequenceInsert",  # at the end it inserts at the start
        *("Optional", "OptionalGetElement"),  # the tensor becomes a list of one
        *RECURRENT,  # lengths of sequences and peepholes are ignored
        "GlobalMaxPool",  # of three spatial axes one is kept
        *("MaxPool", "AveragePool"),  # pads that differ
        "Loop",  # what is scanned is joined, not stacked
        *("LpNormalization", "LpPool", "GlobalLpPool"),  # odd powers keep the sign
        "ai.onnx.ml.OneHotEncoder",  # a fraction is no category, in ONNX Runtime it is cut off
        "ai.onnx.ml.Normalizer",  # by the largest magnitude, not by the largest number
        "ai.onnx.ml.TreeEnsemble",  # of a target without leaves the least is the largest number
        *("ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor"),  # not without intercepts
        # of the type of the data, not of `f32`
        *("ai.onnx.ml.SVMClassifier", "ai.onnx.ml.Scaler", "ai.onnx.ml.FeatureVectorizer"),
        "GatherElements",  # places beyond the end are taken
        "OneHot",  # the value for "off" plus a difference, which swallows the value for "on"
        "Gelu",  # by a polynomial that is 1e-7 off
        *("QLinearMatMul", "QLinearConv"),  # in single, then in double precision: halves move
    )
)
_REFERENCE_SINCE = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), 13),  # of one axis, not of rows
    "RoiAlign": 16,  # half a pixel away
}
"""Opset from which on the reference evaluator is right about an op, since it computes older
versions in the same way.
"""
_WRONG: Mapping[str, Set[str]] = {
    "reference": _WRONG_IN_REFERENCE,
    "onnxruntime": {"NonZero"},  # of scalars, as if they had an axis
}
