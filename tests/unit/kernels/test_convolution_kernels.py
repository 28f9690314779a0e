"""Kernels of convolutions for vectors of every length, for any processor."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from kernel_runner import (
    DEPTHWISE_CASES,
    Compiled,
    DepthwiseCase,
    Native,
    convolution,
    expected,
    random_arrays,
)
from xdsl.dialects import llvm

from byoc_mlir.dialects.relay.shape import binding
from byoc_mlir.dims import SymbolInfo, symbol
from byoc_mlir.dims.evaluate import evaluated
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.implicit_gemm.implicit_gemm import MOST_PART_BYTES, ImplicitGemm
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS, Algorithm
from byoc_mlir.kernels.winograd.code import PART_BYTES

SSE, AVX2, AVX512 = VectorUnit(4, 16), VectorUnit(8, 16), VectorUnit(16, 32)
WIDE = VectorUnit(16, 32, 4)
UNITS = pytest.mark.parametrize("unit", [SSE, AVX2, AVX512], ids=lambda unit: unit.tile)

_SUM = Epilogue(bias=True, residual=True, lower=-0.5, upper=2.0)
_RELU = Epilogue(bias=True, lower=0.0)


def _kernel(it: Convolution, unit: VectorUnit, name: str) -> ConvolutionKernel:
    return next(one for one in convolution_kernels(it, unit) if one.name == name)


def _check(it: Convolution, unit: VectorUnit, name: str, threads: int = 1) -> None:
    _check_kernel(it, _kernel(it, unit, name), threads)


def _check_kernel(it: Convolution, kernel: ConvolutionKernel, threads: int = 1) -> None:
    arrays = random_arrays(it)
    wanted = expected(it, **arrays)
    found = Compiled(kernel, threads)(**arrays)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5 * abs(wanted).max())


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda one: one.name)
def test_winograd(unit: VectorUnit, algorithm: Algorithm) -> None:
    """Checks half a panel more, tiles beyond the image, and several blocks of tiles."""
    lanes, window = unit.lanes, (algorithm.window, algorithm.window)
    it = convolution((1, lanes, 19, 25), 3 * lanes, window, pads=(1, 0, 1, 2), epilogue=_SUM)
    _check(it, unit, algorithm.name)


@pytest.mark.values
@pytest.mark.parametrize("size", [(9, 14), (4, 4), (1, 7), (4, 12), (8, 13), (4, 28)])
@pytest.mark.parametrize("unit", [SSE, AVX2, AVX512, WIDE], ids=lambda unit: unit.tile)
def test_winograd_of_many_channels(unit: VectorUnit, size: tuple[int, int]) -> None:
    """Checks weight panels in three parts, whose sums are added once, of one to twelve tiles."""
    channels = 2 * (PART_BYTES // (4 * unit.panel)) + unit.lanes
    it = convolution((1, channels, *size), unit.panel, pads=(1, 1, 1, 1), epilogue=_RELU)
    _check(it, unit, "f4x3")


@UNITS
def test_winograd_in_blocks_of_channels(unit: VectorUnit) -> None:
    lanes = unit.lanes
    it = convolution((2, 2 * lanes, 9, 14), lanes, pads=(1, 1, 1, 1), block=lanes, epilogue=_RELU)
    _check(it, unit, "f4x3", threads=2)


@UNITS
def test_implicit_products_with_padding_and_strides(unit: VectorUnit) -> None:
    lanes = unit.lanes
    it = convolution(
        (2, lanes, 12, 15),
        3 * lanes,
        pads=(2, 1, 1, 0),
        strides=(2, 1),
        dilation=(1, 2),
        epilogue=_SUM,
    )
    _check(it, unit, "implicit_gemm", threads=2)


@pytest.mark.values
@UNITS
@pytest.mark.parametrize(
    ("channels", "size", "window", "strides"),
    [
        (3, (12, 15), (3, 3), (2, 2)),
        (3, (9, 20), (7, 7), (2, 1)),  # lines of 21 numbers
        (2, (4, 30), (1, 5), (1, 1)),
        (1, (1, 700), (1, 11), (1, 3)),  # eleven steps, which nothing divides
        (3, (6, 21), (1, 1), (1, 1)),
    ],
)
def test_implicit_products_of_few_channels(
    unit: VectorUnit,
    channels: int,
    size: tuple[int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
) -> None:
    """Checks images in which each row of a window is contiguous."""
    outputs = 3 * unit.lanes
    it = convolution((2, channels, *size), outputs, window, strides=strides, epilogue=_SUM)
    _check(it, unit, "implicit_gemm", threads=2)


def test_lines_of_few_channels_are_not_cut() -> None:
    """Checks rows whose weights exceed a part's size."""
    width = MOST_PART_BYTES // (4 * AVX2.panel) + 1
    it = convolution((1, 1, 2, width + 3), AVX2.panel, (2, width), epilogue=_RELU)
    _check(it, AVX2, "implicit_gemm")


def test_implicit_products_of_many_kinds_walk_through_the_image_by_one_function() -> None:
    """Checks that one function serves all kinds; tiles, padding and limits are in the kernels
    passed to it.
    """
    module = ModuleBuilder()
    for width, pad, epilogue in ((12, 1, _RELU), (12, 1, _SUM), (10, 0, _RELU)):
        it = convolution((1, 64, 12, width), 64, pads=(pad, pad, pad, pad), epilogue=epilogue)
        _kernel(it, AVX2, "implicit_gemm").code(1).define(module)
    names = [op.sym_name.data for op in module.module.ops if isinstance(op, llvm.FuncOp)]
    assert len([name for name in names if "_kernel_" in name]) > 3
    assert len([name for name in names if "_units_" in name]) == 1


@UNITS
@pytest.mark.parametrize(("name", "window"), [("depthwise", (3, 3)), ("implicit_gemm", (1, 1))])
def test_of_any_number_of_images_what_comes_next_is_prefetched(
    unit: VectorUnit, name: str, window: tuple[int, int]
) -> None:
    """Checks that the code for a symbolic batch prefetches, and the code for a fixed one does not
    change.
    """
    channels = unit.panel
    groups = channels if name == "depthwise" else 1
    it = convolution((2, channels, 12, 12), channels, window, groups=groups)
    batch = symbol("batch")
    source, result = (replace(one, shape=(batch, *one.shape[1:])) for one in (it.source, it.result))
    more = _prefetches(_kernel(replace(it, source=source, result=result), unit, name))
    assert more > _prefetches(_kernel(it, unit, name))


def _prefetches(kernel: ConvolutionKernel) -> int:
    """Returns the number of prefetches in the code of the longest strips, which come first."""
    module = ModuleBuilder()
    kernel.code(1).define(module)
    functions = [op for op in module.module.ops if isinstance(op, llvm.FuncOp)]
    longest = next(one for one in functions if "_kernel_" in one.sym_name.data)
    return str(longest).count("llvm.prefetch")


@pytest.mark.parametrize(("pads", "dilation"), [((1, 0, 0, 0), (1, 1)), ((0, 0, 0, 0), (1, 2))])
def test_few_channels_in_lines_of_several_pieces(
    pads: tuple[int, int, int, int], dilation: tuple[int, int]
) -> None:
    it = convolution((1, 3, 9, 9), 16, pads=pads, dilation=dilation)
    assert not list(convolution_kernels(it, AVX2))


@pytest.mark.values
@UNITS
@pytest.mark.parametrize(
    ("size", "window", "pads", "strides", "is_cut"),
    [
        ((1, 602), (1, 3), (0, 0, 0, 0), (1, 1), True),  # into pieces of 50 pixels
        ((1, 601), (1, 3), (0, 2, 0, 4), (1, 1), True),  # of a prime number: the last is shorter
        ((3, 1203), (2, 3), (1, 1, 0, 0), (2, 2), True),
        ((3, 21), (2, 3), (1, 1, 0, 0), (1, 1), False),
        ((1, 101), (1, 1), (0, 0, 0, 0), (1, 1), True),  # two images, which are one line
    ],
)
def test_implicit_products_of_long_lines(
    unit: VectorUnit,
    size: tuple[int, int],
    window: tuple[int, int],
    pads: tuple[int, int, int, int],
    strides: tuple[int, int],
    is_cut: bool,
) -> None:
    it = convolution((2, 64, *size), unit.panel, window, pads=pads, strides=strides, epilogue=_SUM)
    line_pieces = _kernel(it, unit, "implicit_gemm").code(1).numbers[2]
    assert (line_pieces > 1) == is_cut
    _check(it, unit, "implicit_gemm", threads=2)


@UNITS
@pytest.mark.parametrize(("window", "parts"), [((3, 3), 1), ((1, 1), 1), ((2, 3), 6)])
def test_implicit_products_of_rows_of_any_length(
    unit: VectorUnit, window: tuple[int, int], parts: int
) -> None:
    """Checks one code for all widths, where the last strip repeats pixels; the result is written
    over the residual, which no pixel adds twice.
    """
    channels = unit.lanes if parts == 1 else MOST_PART_BYTES // (4 * unit.panel)
    pads = (1, 1, 1, 1) if window[1] > 1 else (0, 0, 0, 0)
    width, native = symbol("width"), None
    for size in (*range(1, 2 * unit.tile_rows + 2), 53):
        it = convolution((1, channels, 2, size), unit.panel, window, pads=pads, epilogue=_SUM)
        beyond = it.result.shape[3] - size
        source, result = (
            replace(image, shape=(*image.shape[:3], width + more))
            for image, more in ((it.source, 0), (it.result, beyond))
        )
        kernel, arrays = ImplicitGemm(it, unit), random_arrays(it)
        assert kernel.parts == parts
        with binding(SymbolInfo("width", min=1, hint=24)):
            symbolic = ImplicitGemm(replace(it, source=source, result=result), unit).code(1)
        native = native or Native(replace(symbolic, words=(0,)))
        native.tell([evaluated(word, {"width": size}) for word in symbolic.words])
        arrays["w"] /= math.sqrt(math.prod(window) * channels)
        wanted = expected(it, **arrays)
        found = Compiled(kernel, in_place=True, native=native)(**arrays)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5 * abs(wanted).max())


@pytest.mark.values
@pytest.mark.parametrize("unit", [SSE, AVX2, AVX512, WIDE], ids=lambda unit: unit.tile)
@pytest.mark.parametrize(("together", "parts"), [(6, 1), (3, 2), (1, 6)])
def test_implicit_products_of_many_channels(unit: VectorUnit, together: int, parts: int) -> None:
    """Checks windows of 2 x 3 pixels, with as many pixels in a part as their weights allow."""
    most = MOST_PART_BYTES // (4 * unit.panel * together)
    channels = most - most % unit.lanes
    outputs = unit.panel if unit == WIDE else 3 * unit.lanes
    sizes, pads = (2, channels, 5, 9), (1, 2, 1, 0)
    for epilogue in (_SUM, _RELU):
        it = convolution(
            sizes,
            outputs,
            (2, 3),
            pads=pads,
            strides=(2, 1),
            dilation=(1, 2),
            epilogue=epilogue,
        )
        kernel, arrays = ImplicitGemm(it, unit), random_arrays(it)
        assert kernel.parts == parts
        arrays["w"] /= math.sqrt(6 * channels)  # sums that limits do not cut off
        wanted = expected(it, **arrays)
        for in_place in {False, epilogue.residual}:
            found = Compiled(kernel, threads=2, in_place=in_place)(**arrays)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5 * abs(wanted).max())


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("blocked", [False, True])
def test_implicit_products_of_pixels(unit: VectorUnit, blocked: bool) -> None:
    lanes = unit.lanes
    block = lanes if blocked else 0
    it = convolution((1, 2 * lanes, 7, 17), 2 * lanes, (1, 1), block=block, epilogue=_RELU)
    _check(it, unit, "implicit_gemm")


@pytest.mark.values
@UNITS
@pytest.mark.parametrize(
    ("case", "epilogue"),
    list(zip(DEPTHWISE_CASES, [_RELU, _SUM, Epilogue(), _RELU, _SUM], strict=True)),
)
def test_depthwise(unit: VectorUnit, case: DepthwiseCase, epilogue: Epilogue) -> None:
    it = case.of(3 * unit.lanes, epilogue)
    arrays = random_arrays(it)
    found = Compiled(_kernel(it, unit, "depthwise"), threads=2)(**arrays)
    np.testing.assert_allclose(found, expected(it, **arrays), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("outputs", "groups"), [(32, 8), (64, 32)])
def test_groups_of_several_channels_have_no_kernel(outputs: int, groups: int) -> None:
    assert not list(convolution_kernels(convolution((1, 32, 6, 6), outputs, groups=groups), AVX2))


@pytest.mark.parametrize(
    ("features", "unit"),
    [
        (("avx2", "avx512f", "fma"), AVX512),
        (("avx2", "fma"), AVX2),
        (("sse4_1",), SSE),
        (("asimd",), VectorUnit(4, 32)),
    ],
)
def test_vectors_of_processors(features: tuple[str, ...], unit: VectorUnit) -> None:
    assert VectorUnit.of(features) == unit


@pytest.mark.parametrize(
    "unit", [SSE, AVX2, AVX512, WIDE, VectorUnit(16, 32, 3)], ids=lambda unit: unit.tile
)
def test_a_tile_fits_the_registers(unit: VectorUnit) -> None:
    vectors = unit.panel_vectors
    sums_weights_number = unit.tile_rows * vectors + vectors + 1
    assert unit.registers - vectors < sums_weights_number <= unit.registers


@pytest.mark.parametrize(
    ("channels", "lanes"), [(32, 16), (16, 16), (24, 8), (8, 8), (12, 4), (4, 4)]
)
def test_the_longest_vectors_that_fit_are_taken(channels: int, lanes: int) -> None:
    """Checks the vector length: Winograd's algorithms need it in both images, implicit GEMM in the
    result alone.
    """
    it = convolution((1, channels, 6, 6), 48, pads=(1, 1, 1, 1))
    units = {one.name: one.unit.lanes for one in convolution_kernels(it, AVX512)}
    assert units == {"f2x3": lanes, "f4x3": lanes, "f6x3": lanes, "implicit_gemm": 16}


@pytest.mark.parametrize(("inputs", "together"), [(24, 8), (12, 4), (48, 16)])
def test_implicit_products_of_short_pixels(inputs: int, together: int) -> None:
    """Checks sources whose channels do not fill vectors of the result's length."""
    it = convolution((1, inputs, 5, 9), 80, pads=(1, 1, 1, 1), epilogue=_SUM)
    parameters = _kernel(it, AVX512, "implicit_gemm").code(1).numbers
    assert inputs // together in parameters
    _check(it, AVX512, "implicit_gemm")


@pytest.mark.values
@pytest.mark.parametrize("name", ["f4x3", "implicit_gemm"])
@pytest.mark.parametrize(
    ("unit", "outputs", "vectors"),
    [(AVX512, 16, 1), (AVX512, 48, 3), (AVX512, 80, 2), (AVX2, 24, 3), (SSE, 4, 1)],
)
def test_panels_that_outputs_fill(name: str, unit: VectorUnit, outputs: int, vectors: int) -> None:
    it = convolution((1, 16, 11, 13), outputs, pads=(1, 1, 1, 1), epilogue=_SUM)
    assert _kernel(it, unit, name).unit.panel_vectors == vectors
    _check(it, unit, name)


@pytest.mark.parametrize(
    ("unit", "outputs", "panels"),
    [(AVX2, 96, {3}), (AVX512, 192, {2, 3}), (SSE, 12, set[int]()), (AVX2, 20, set[int]())],
)
def test_tilings_are_panels_of_other_vectors(
    unit: VectorUnit, outputs: int, panels: set[int]
) -> None:
    it = convolution((1, 16, 11, 13), outputs, pads=(1, 1, 1, 1), epilogue=_SUM)
    tilings = _kernel(it, unit, "implicit_gemm").tilings
    assert tilings.keys() == {f"panels={count}" for count in panels}
    for kernel in tilings.values():
        _check_kernel(it, kernel)


@pytest.mark.parametrize("name", ["f4x3", "implicit_gemm"])
def test_wide_panels(name: str) -> None:
    it = convolution((1, 16, 11, 13), 128, pads=(1, 1, 1, 1), epilogue=_SUM)
    assert _kernel(it, AVX512, name).unit == WIDE
    _check(it, AVX512, name)


def test_columns_of_pixels_are_lines() -> None:
    """Checks that the code sees one row of 20 pixels in the same memory, not 20 rows of one."""
    it = convolution((2, 16, 20, 1), 32, (5, 1), pads=(2, 0, 1, 0), epilogue=_SUM)
    kernel = _kernel(it, AVX2, "implicit_gemm")
    assert kernel.convolution == it.exchanged()
    arrays = random_arrays(it)
    lying = {name: one if one.ndim == 1 else one.swapaxes(2, 3) for name, one in arrays.items()}
    found = Compiled(kernel)(**lying).swapaxes(2, 3)
    np.testing.assert_allclose(found, expected(it, **arrays), rtol=0, atol=1e-4)


@pytest.mark.parametrize("channels", [3, 6, 10])
def test_channels_that_make_no_vectors(channels: int) -> None:
    it = convolution((1, channels, 6, 6), channels)
    assert not list(convolution_kernels(it, AVX512))


def test_padding_needs_channels_last() -> None:
    it = convolution((1, 32, 6, 6), 32, pads=(1, 1, 1, 1), block=16)
    kernels = list(convolution_kernels(it, AVX512))
    assert kernels
    assert not any(isinstance(kernel, ImplicitGemm) for kernel in kernels)


def test_nan_goes_through_limits() -> None:
    it = convolution((1, 16, 3, 3), 16, (1, 1), epilogue=Epilogue(lower=0.0, upper=1.0))
    arrays = random_arrays(it)
    arrays["x"][0, :, 0, 0] = math.nan
    found = Compiled(_kernel(it, AVX2, "implicit_gemm"))(**arrays)
    assert np.isnan(found[0, :, 0, 0]).all()
    assert not np.isnan(found[0, :, 1:]).any()
