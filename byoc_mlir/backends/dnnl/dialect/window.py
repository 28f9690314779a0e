"""Convolutions, deconvolutions and pools, over one to three spatial dimensions."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import check_name
from byoc_mlir.backends.dnnl.dialect.base import ExecutedOp, PostOpsOp, ProductOp, like
from byoc_mlir.backends.dnnl.library import algorithms
from byoc_mlir.dialects.relay.base import int_prop, ints, ints_prop, shape_of, str_prop
from byoc_mlir.onednn import constants


class WindowOp(PostOpsOp, ABC):
    """Base of ops with windows.

    `padding` lists all begins, then all ends; a `dilation` of 1 is dense.
    """

    strides = ints_prop()
    padding = ints_prop()
    dilation = ints_prop()

    def check_window(self, rank: int) -> None:
        """Refuses properties whose length does not match the spatial dimensions.

        Raises:
            VerifyException: a property has another length.
        """
        lists = {"strides": (self.strides, 1), "padding": (self.padding, 2)}
        for name, (values, factor) in {**lists, "dilation": (self.dilation, 1)}.items():
            if len(ints(values)) != factor * rank:
                raise VerifyException(
                    f"{self.name}: {name} must have {factor * rank} entries, found"
                    f" {list(ints(values))}"
                )

    def window_counts(self, sizes: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """Returns the number of windows along each spatial dimension."""
        return [
            (size + begin + end - (window - 1) * dilation - 1) // stride + 1
            for size, window, stride, dilation, begin, end in zip(
                sizes,
                kernel,
                ints(self.strides),
                ints(self.dilation),
                self.begins,
                self.ends,
                strict=True,
            )
        ]

    @property
    def begins(self) -> tuple[int, ...]:
        """Returns the padding before the first element of each spatial dimension."""
        padding = ints(self.padding)
        return padding[: len(padding) // 2]

    @property
    def ends(self) -> tuple[int, ...]:
        """Returns the padding after the last element of each spatial dimension."""
        padding = ints(self.padding)
        return padding[len(padding) // 2 :]


class WeightedWindowOp(WindowOp, ABC):
    """Base of ops with windows whose operands are the source, the weights and optionally the bias
    `[O]`.
    """

    groups = int_prop(1)

    @property
    def weights(self) -> SSAValue:
        """Returns the weights, in the op's own order of dimensions."""
        return self.operands[1]

    @property
    def bias(self) -> SSAValue | None:
        """Returns the bias, if there is one."""
        primary = self.primary
        return primary[2] if len(primary) == 3 else None

    def check_bias(self, channels: int) -> None:
        """Refuses a bias that is not one value for each output channel.

        Raises:
            VerifyException: the bias has another shape.
        """
        if self.bias is not None and shape_of(self.bias) != (channels,):
            raise VerifyException(
                f"{self.name}: bias must have the shape [{channels}], found {self.bias.type}"
            )

    def correlated_shape(self) -> list[int]:
        """Checks window, weights and bias, and returns the shape of a convolution's result.

        Raises:
            VerifyException: window, weights or bias do not fit.
        """
        source, weights = self.arguments[0], self.weights
        shape, kernel = shape_of(source), shape_of(weights)
        self.check_window(len(shape) - 2)
        self.check_bias(kernel[0])
        if len(kernel) != len(shape) or kernel[1] * self.groups.value.data != shape[1]:
            raise VerifyException(
                f"{self.name}: weights {weights.type} do not fit source {source.type}"
            )
        return [shape[0], kernel[0], *self.window_counts(shape[2:], kernel[2:])]


@irdl_op_definition
class ConvolutionOp(WeightedWindowOp, ProductOp):
    """`source [N, C, ...], weights [O, C / groups, ...], bias [O] -> [N, O, ...]`.

    `algorithm` is `direct` or `winograd` (oneDNN's), or a built-in one: `f4x3`, `implicit_gemm`.
    `too_large` is a faster algorithm that was rejected, because its weights would take too much
    memory.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_convolution.html
    """

    name = "dnnl.convolution"
    algorithm = str_prop("direct")
    too_large = opt_prop_def(StringAttr)

    def infer_types(self) -> Sequence[Attribute]:
        source, _ = self.check_primary(2, 3)[:2]
        check_name(f"{self.name}: algorithm", self.algorithm.data, algorithms.CONVOLUTION)
        return (self.written(source, self.correlated_shape()),)


@irdl_op_definition
class DeconvolutionOp(WeightedWindowOp, ProductOp):
    """`source [N, C, ...], weights [C, O / groups, ...], bias [O] -> [N, O, ...]`.

    The end padding may be negative, which extends the output.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_convolution.html
    """

    name = "dnnl.deconvolution"

    def infer_types(self) -> Sequence[Attribute]:
        source, weights = self.check_primary(2, 3)[:2]
        shape, kernel, groups = shape_of(source), shape_of(weights), self.groups.value.data
        self.check_window(len(shape) - 2)
        self.check_bias(kernel[1] * groups)
        if len(kernel) != len(shape) or kernel[0] != shape[1]:
            raise VerifyException(
                f"{self.name}: weights {weights.type} do not fit source {source.type}"
            )
        spatial = [
            (size - 1) * stride + (window - 1) * dilation + 1 - begin - end
            for size, window, stride, dilation, begin, end in zip(
                shape[2:],
                kernel[2:],
                ints(self.strides),
                ints(self.dilation),
                self.begins,
                self.ends,
                strict=True,
            )
        ]
        return (self.written(source, [shape[0], kernel[1] * groups, *spatial]),)


@irdl_op_definition
class PoolingOp(WindowOp):
    """`source [N, C, ...] -> [N, C, ...]`, one value for each window of `kernel` elements.

    The end padding may exceed the ONNX node's, if the node rounds the output size up.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_pooling.html
    """

    name = "dnnl.pooling"
    algorithm = str_prop("max")
    kernel = ints_prop()

    def infer_types(self) -> Sequence[Attribute]:
        (source,) = self.check_primary(1, 1)
        shape = shape_of(source)
        self.check_window(len(shape) - 2)
        check_name(f"{self.name}: algorithm", self.algorithm.data, constants.POOLING)
        counts = self.window_counts(shape[2:], ints(self.kernel))
        return (like(source, [*shape[:2], *counts]),)


@irdl_op_definition
class ResamplingOp(ExecutedOp):
    """`source [N, C, ...] -> [N, C, size...]`, `nearest` or `linear`; positions are relative to
    pixels' centres.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_resampling.html
    """

    name = "dnnl.resampling"
    source = operand_def(TensorType)
    algorithm = str_prop("nearest")
    size = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        shape, size = shape_of(self.source), ints(self.size)
        if self.algorithm.data not in constants.RESAMPLING or len(size) != len(shape) - 2:
            raise VerifyException(
                f"{self.name}: {self.algorithm.data} to {list(size)} of {self.source.type}"
            )
        return (like(self.source, [*shape[:2], *size]),)
