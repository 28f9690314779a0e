"""Registry of convolution kernels, which are imported only for models that use them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import f32

from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel, Image
from byoc_mlir.kernels.vectors import VectorUnit


def convolution_kernels(convolution: Convolution, unit: VectorUnit) -> Iterator[ConvolutionKernel]:
    """Yields the kernels that can compute a convolution, with the longest vectors that fit it.

    Args:
        convolution: the problem. If its images are one pixel wide, the kernels get it with height
            and width exchanged: the memory is the same, but rows are long.
        unit: vectors of the processor.
    """
    if convolution.is_one_pixel_wide:
        convolution = convolution.exchanged()
    if convolution.groups == 1:
        if convolution.element == f32:
            yield from _dense_kernels(convolution, unit)
        return
    from byoc_mlir.kernels.depthwise.depthwise import depthwise_kernel

    depthwise = depthwise_kernel(convolution, unit)
    if depthwise is not None:
        yield depthwise


def _dense_kernels(convolution: Convolution, unit: VectorUnit) -> Iterator[ConvolutionKernel]:
    """Yields the kernels for convolutions of one group; for an implicit GEMM, only the result needs
    whole vectors.
    """
    from byoc_mlir.kernels.implicit_gemm.implicit_gemm import implicit_gemm_kernel
    from byoc_mlir.kernels.winograd.winograd import winograd_kernels

    vectors = _longest(unit, convolution.source, convolution.result)
    if vectors is not None:
        yield from winograd_kernels(convolution, vectors.for_outputs(convolution.outputs))
    vectors = _longest(unit, convolution.result)
    if vectors is None:
        return
    implicit = implicit_gemm_kernel(convolution, vectors.for_outputs(convolution.outputs))
    if implicit is not None:
        yield implicit


def _longest(unit: VectorUnit, *images: Image) -> VectorUnit | None:
    """Returns the longest vectors that fit the channels of all images, or `None`."""
    fitting = (
        one for one in unit.lengths() if all(image.has_vectors(one.lanes) for image in images)
    )
    return next(fitting, None)
