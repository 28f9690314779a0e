"""Normalisations: softmax, LRN, batch and layer normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import check_name
from byoc_mlir.backends.dnnl.dialect.base import (
    ExecutedOp,
    LikeSourceOp,
    joined_shape,
    like,
    written,
)
from byoc_mlir.dialects.relay.base import bool_prop, float_prop, int_prop, shape_of, str_prop
from byoc_mlir.onednn import constants


@irdl_op_definition
class SoftmaxOp(LikeSourceOp):
    """`source [...] -> [...]`, softmax (`accurate`) or log-softmax (`log`) along `axis`.

    `element` is the type of the result, if it differs from the source's.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_softmax.html
    """

    name = "dnnl.softmax"
    algorithm = str_prop("accurate")
    axis = int_prop()
    element = opt_prop_def(Attribute)

    def infer_types(self) -> Sequence[Attribute]:
        check_name(f"{self.name}: algorithm", self.algorithm.data, constants.SOFTMAX)
        return (written(self.source, shape_of(self.source), self.element),)


@irdl_op_definition
class LrnOp(LikeSourceOp):
    """`source [N, C, ...] -> [N, C, ...]`: `x / (k + alpha / size * sum(x²)) ** beta`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_lrn.html
    """

    name = "dnnl.lrn"
    size = int_prop()
    alpha = float_prop()
    beta = float_prop()
    k = float_prop()


@irdl_op_definition
class BatchNormalizationOp(LikeSourceOp):
    """`source [N, C, ...] -> [N, C, ...]` with given statistics; all other operands are `[C]`.

    With `relu`, negative results become zero.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_batch_normalization.html
    """

    name = "dnnl.batch_normalization"
    source = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    scale = operand_def(TensorType)
    shift = operand_def(TensorType)
    epsilon = float_prop()
    relu = bool_prop(False)


@irdl_op_definition
class NormalizedConcatOp(ExecutedOp):
    """`sources [N, C_i, ...]` concatenated along their channels, then scaled and shifted per
    channel.

    A built-in kernel computes it. With `relu`, negative results become zero. `factors` is `[2, C]`:
    the scales of all channels, then the shifts.
    """

    name = "dnnl.normalized_concat"
    sources = var_operand_def(TensorType)
    factors = operand_def(TensorType)
    relu = bool_prop(False)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        shape = joined_shape(self.name, self.sources, axis=1)
        if self.factors.type != TensorType(f32, [2, shape[1]]):
            raise VerifyException(
                f"{self.name}: factors must be tensor<2x{shape[1]}xf32>, found {self.factors.type}"
            )
        return (like(self.sources[0], shape),)


@irdl_op_definition
class LayerNormalizationOp(LikeSourceOp):
    """`source [..., C] -> [..., C]` over the last dimension; `scale` and `shift` are `[C]`.

    `element` is the type of the result, if it differs from the source's.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_layer_normalization.html
    """

    name = "dnnl.layer_normalization"
    source = operand_def(TensorType)
    scale = operand_def(TensorType)
    shift = operand_def(TensorType)
    epsilon = float_prop()
    element = opt_prop_def(Attribute)

    def infer_types(self) -> Sequence[Attribute]:
        return (written(self.source, shape_of(self.source), self.element),)

    def verify_(self) -> None:
        super().verify_()
        size = shape_of(self.source)[-1]
        for what, value in (("scale", self.scale), ("shift", self.shift)):
            if shape_of(value) != (size,):
                raise VerifyException(
                    f"{self.name}: {what} must have the shape [{size}], found {value.type}"
                )
