"""The pass `lower-convolutions`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
)
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import Tensor, sizes_of, tensor_of
from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import ConvolutionKernel, Slot, pair_of
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.schedules import Scheduled, schedules_of
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.lowering.convolutions.chain import ConvolutionChain, chain_of
from byoc_mlir.lowering.convolutions.description import (
    ALGORITHM,
    convolutions,
    described,
    is_padded_before,
)
from byoc_mlir.lowering.convolutions.keep_channels_last import (
    channels_first,
    channels_last,
    last_type,
    with_last,
)
from byoc_mlir.lowering.kernel_calls import add_call, known_words
from byoc_mlir.lowering.linalg_to_loops.schedule import SCHEDULE
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, erase_chain
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num
from byoc_mlir.runtime.system.cpu import target_cpu

_CYCLES = 2
"""Cycles for an element: it is read and written, and channels are interleaved."""


def padded_pixels(b: LinalgBuilder, op: ConvOp) -> SSAValue:
    """Transposes a convolution's input to `[N, spatial..., C]`, padded with zeros."""
    _, padding, _ = op.checked_window()
    before, after = padding[: op.SPATIAL_RANK], padding[op.SPATIAL_RANK :]
    batch, channels, *spatial = sizes_of(op.data)
    sizes = [low + size + high for low, size, high in zip(before, spatial, after, strict=True)]
    k = Kernel(op, [op.data], [tensor_of(f32, with_last([batch, channels, *sizes]))])
    source = k.inputs[0].reshaped(batch, channels, *pair_of(spatial, 1))
    height, width = pair_of(sizes, 1)
    target = k.outputs[0].reshaped(batch, height, width, channels)
    top, left = pair_of(before, 0)
    with k.loops([batch, height], cost=_CYCLES * channels * width) as (image, line):
        _write_line(k, source, target, (image, k.index(line), top, left))
    return k.finish(b)[0]


def _write_line(
    k: Kernel, source: Buffer, target: Buffer, place: tuple[Index, Num, int, int]
) -> None:
    """Writes a row of a padded image.

    Args:
        place: the image, the row, and the rows and pixels of padding before the source.
    """
    image, line, top, left = place
    _, channels, height, width = source.sizes
    row = line - top
    is_inside = (row >= 0) & (row < height)

    def fill(start: Index, end: Size) -> None:
        with k.loop(end, start=start) as x:
            for channel in range(int(channels)):
                target[image, line, x, channel] = 0.0

    with k.when(~is_inside):
        fill(0, target.sizes[2])
    with k.when(is_inside):
        fill(0, left)
        with k.loop(width) as x:
            for channel in range(int(channels)):
                target[image, line, x + left, channel] = source[image, channel, row, x]
        fill(k.constant(left + width, line.type), target.sizes[2])


_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class LowerConvolutions(ModulePass):
    """Rewrites convolutions whose attribute `algorithm` names a kernel to calls of it.

    The kernel fuses a bias, a residual, and limits such as relu. Its tensors are NHWC;
    `keep-channels-last` removes opposite transposes. A separate kernel transposes and pads images
    of few channels. The run-time parameters of a kernel are in a constant, so convolutions that
    differ only in these share a function.

    Options:
        threads: OpenMP threads of a run; 0 without an OpenMP runtime.

    ```mlir
    %0 = relay.nn.conv2d %x, %w {…, algorithm = "f4x3"} : … -> tensor<1x64x56x56xf32>
    %1 = relay.nn.relu %0 : …
    // becomes
    %last = linalg.generic … ins(%x : tensor<1x64x56x56xf32>) … -> tensor<1x56x56x64xf32>
    %0 = host.kernel "relu" %last, %packed, %numbers : … -> tensor<1x56x56x64xf32>, … {
      ^bb0(…):
        llvm.call @byoc_winograd_f4x3_…_of_buffers(%workspace, %weights, %source, …)
    }
    %1 = linalg.generic … ins(%0 : …) … -> tensor<1x64x56x56xf32>
    ```
    """

    name = "lower-convolutions"

    threads: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        module = ModuleBuilder(op, has_threads=self.threads > 0)
        with asking_of(op):
            for block in host_blocks(op):
                self._lower_block(block, module)

    def _lower_block(self, block: Block, module: ModuleBuilder) -> None:
        for op in convolutions(tuple(block.ops)):
            if ALGORITHM not in op.attributes:
                continue
            chain = chain_of(op)
            result = _CallBuilder(chain, _kernel_of(chain), max(self.threads, 1), module).write()
            result.name_hint = chain.result.name_hint
            chain.result.replace_all_uses_with(result)
            erase_chain(chain.ops)


def _kernel_of(chain: ConvolutionChain) -> Scheduled:
    op = chain.convolution
    name = op.attributes[ALGORITHM]
    assert isinstance(name, StringAttr)
    unit = VectorUnit.of(target_cpu().features)
    found = {one.name: one for one in convolution_kernels(described(op, chain.epilogue), unit)}
    if name.data not in found:
        raise PassFailedException(
            f"{op.name} at {op.location}: algorithm is '{name.data}', which does not support it;"
            f" accepted are {', '.join(found) or 'none'}"
        )
    return _scheduled(op, found[name.data])


def _scheduled(op: ConvOp, kernel: ConvolutionKernel) -> Scheduled:
    """Returns the kernel with the schedule that an op's attribute names."""
    schedule = op.attributes.get(SCHEDULE)
    if schedule is None:
        return Scheduled(kernel)
    schedules = schedules_of(kernel)
    if not isinstance(schedule, StringAttr) or schedule.data not in schedules:
        raise PassFailedException(
            f"{op.name} at {op.location}: schedule is {schedule}, which '{kernel.name}' does not"
            f" have for it; accepted are {', '.join(schedules) or 'none'}"
        )
    return schedules[schedule.data]


@dataclass(frozen=True)
class _CallBuilder:
    """Builder of a kernel's call, inserted before the last op of its chain."""

    chain: ConvolutionChain
    scheduled: Scheduled
    threads: int
    module: ModuleBuilder
    """Module that receives the kernel's code."""

    @property
    def kernel(self) -> ConvolutionKernel:
        """Returns the kernel that is called."""
        return self.scheduled.kernel

    def write(self) -> SSAValue:
        """Returns the value that replaces the result of the chain's last op."""
        chain, last = self.chain, self.chain.ops[-1]
        last.location = fused_location(chain.ops)
        b = LinalgBuilder(last)
        op = chain.convolution
        few = is_padded_before(op)
        inputs = {
            Slot.SOURCE: padded_pixels(b, op) if few else channels_last(b, op.data),
            Slot.WEIGHTS: b.emit(ConstantOp.of("packed_weight", self._packed())),
        }
        if chain.bias is not None:
            inputs[Slot.BIAS] = b.constant(self._filled(chain.bias.array), "bias")
        if chain.residual is not None:
            inputs[Slot.RESIDUAL] = channels_last(b, chain.residual)
        return channels_first(b, self._call(b, inputs))

    def _packed(self) -> Array:
        """Returns the packed weights, packed once for all convolutions that share them."""
        weight, it = self.chain.convolution.weight.owner, self.kernel.convolution
        assert isinstance(weight, ConstantOp)
        shape = (it.outputs, it.inputs // it.groups, *it.window)
        return derived_array(
            self.kernel.packing,
            [weight.array],
            lambda: self.kernel.pack(weight.array.reshape(shape)),
        )

    def _filled(self, bias: Array) -> Array:
        """Returns the bias, padded with zeros to whole panels of outputs."""
        filled = np.zeros(self.kernel.panels * self.kernel.unit.panel, np.float32)
        filled[: bias.size] = bias
        return filled

    def _call(self, b: LinalgBuilder, inputs: dict[Slot, SSAValue]) -> SSAValue:
        """Emits the call, and returns the result in NHWC."""
        code = self.scheduled.code(self.threads)
        workspace = self.kernel.workspace_bytes(self.threads) // _ELEMENT_BYTES
        scratch: list[Tensor] = [TensorType(f32, [workspace])] if workspace else []
        output = last_type(self.chain.result)
        known = b.constant(known_words(code), "parameters")
        k = Kernel(self.chain.ops[-1], [*inputs.values(), known], [output], scratch)
        *given_inputs, words = k.inputs
        given = dict(zip(inputs, given_inputs, strict=True))
        given[Slot.RESULT] = k.outputs[0]
        if workspace:
            given[Slot.WORKSPACE] = k.scratch[0]
        add_call(k, self.module, code, words, given)
        return k.finish(b)[0]
