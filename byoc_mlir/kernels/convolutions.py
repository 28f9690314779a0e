"""Which kernels there are for a convolution."""

from __future__ import annotations

from collections.abc import Iterator

from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.implicit_gemm.implicit_gemm import implicit_gemm_kernel
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import winograd_kernels


def convolution_kernels(convolution: Convolution, unit: VectorUnit) -> Iterator[ConvolutionKernel]:
    """The kernels that can compute a convolution, with the longest vectors that fit it.

    Args:
        convolution: what is asked for. Of images one pixel wide, a kernel's convolution has height
            and width exchanged: the same memory, in long lines.
        unit: the vectors of the processor.
    """
    if convolution.is_one_pixel_wide:
        convolution = convolution.exchanged()
    fitting = unit
    while not _fits(convolution, fitting):
        shorter = fitting.shorter()
        if shorter is None:
            return
        fitting = shorter
    fitting = fitting.for_outputs(convolution.outputs)
    yield from winograd_kernels(convolution, fitting)
    implicit = implicit_gemm_kernel(convolution, fitting)
    if implicit is not None:
        yield implicit


def _fits(convolution: Convolution, unit: VectorUnit) -> bool:
    images = (convolution.source, convolution.result)
    return all(image.has_vectors(unit.lanes) for image in images)
