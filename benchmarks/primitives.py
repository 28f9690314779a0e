"""Cost of oneDNN's primitives at sizes that are new, and the packings of weights over all sizes.

    python benchmarks/primitives.py                         three networks in f32, bf16 and int8
    python benchmarks/primitives.py resnet18 --types bf16

Matmuls and direct convolutions of a network on one thread, each distinct primitive once. Nothing is
run, and times are of the processor. A primitive "repacks" if it chooses another layout of the
weights for some size than for the first one; the next column has the implementations that take the
first layout there.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byoc_mlir.errors import ExecutionError
from byoc_mlir.onednn.constants import (
    CONVOLUTION_DIRECT,
    ELTWISE,
    FORWARD_INFERENCE,
    Arg,
    DataType,
)
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine, openmp_threads
from byoc_mlir.onednn.primitives import Primitive, PrimitiveDescriptor

Size = tuple[int, ...]
"""Batch; batch and length; or batch, height and width."""

TYPES: Mapping[str, tuple[DataType, DataType, DataType]] = {
    "f32": (DataType.F32, DataType.F32, DataType.F32),
    "bf16": (DataType.BF16, DataType.BF16, DataType.BF16),
    "int8": (DataType.U8, DataType.S8, DataType.U8),
}
"""Types of source, weights and result."""

_ANY = 1
"""Value of `dnnl_format_tag_any`: the primitive chooses the layout."""


@dataclass(frozen=True)
class Dense:
    """Matmul with constant weights, a bias and a ReLU."""

    inner: int
    columns: int

    def describe(
        self, size: Size, type_name: str, weights: Descriptor | None
    ) -> PrimitiveDescriptor:
        """Returns the primitive for a row of each token; it packs the weights unless some are
        given.
        """
        rows, (source, packed, result) = _product(size), TYPES[type_name]
        return PrimitiveDescriptor(
            "dnnl_matmul_primitive_desc_create",
            *(engine(), Descriptor.dense((rows, self.inner), source)),
            weights or Descriptor.with_tag((self.inner, self.columns), _ANY, packed),
            Descriptor.dense((1, self.columns)),
            *(Descriptor.dense((rows, self.columns), result), _attributes(type_name)),
        )


@dataclass(frozen=True)
class Convolution:
    """Direct convolution with a bias and a ReLU; its image is a part of the model's."""

    channels: int
    outputs: int
    kernel: int
    stride: int
    reduction: int
    """Rows of the model's image for each row of this one."""

    def describe(
        self, size: Size, type_name: str, weights: Descriptor | None
    ) -> PrimitiveDescriptor:
        """Returns the primitive for images in NHWC; it packs the weights unless some are given."""
        (batch, *image), (source, packed, result) = size, TYPES[type_name]
        given = [-(-side // self.reduction) for side in image]
        made = [-(-side // self.stride) for side in given]
        kernel, pad = (self.kernel, self.kernel), self.kernel // 2
        dims = (self.outputs, self.channels, *kernel)
        return PrimitiveDescriptor(
            "dnnl_convolution_forward_primitive_desc_create",
            *(engine(), FORWARD_INFERENCE, CONVOLUTION_DIRECT),
            _channels_last((batch, self.channels, *given), source),
            weights or Descriptor.with_tag(dims, _ANY, packed),
            Descriptor.dense((self.outputs,)),
            _channels_last((batch, self.outputs, *made), result),
            *((self.stride, self.stride), (0, 0), (pad, pad), (pad, pad)),
            _attributes(type_name),
        )


@dataclass(frozen=True)
class Network:
    """Distinct primitives of a network, and sizes of its requests."""

    layers: Sequence[Dense | Convolution]
    sizes: Sequence[Size]
    """Weights are packed for the first size."""


_LENGTHS = (16, 1, 2, 3, 5, 8, 13, 24, 33, 48, 64, 100, 128, 200, 300, 512)
_SIDES = (224, 128, 160, 192, 256)

NETWORKS: Mapping[str, Network] = {
    "mlp": Network(
        (Dense(784, 2048), Dense(2048, 2048), Dense(2048, 1024), Dense(1024, 1000)),
        [(batch,) for batch in _LENGTHS],
    ),
    "encoder": Network(
        (Dense(384, 384), Dense(384, 1536), Dense(1536, 384)), [(1, length) for length in _LENGTHS]
    ),
    "resnet18": Network(
        (
            Convolution(3, 64, 7, 2, 1),
            Convolution(64, 64, 3, 1, 4),
            *(
                layer
                for step, channels in enumerate((128, 256, 512))
                for layer in (
                    Convolution(channels // 2, channels, 3, 2, 4 << step),
                    Convolution(channels // 2, channels, 1, 2, 4 << step),
                    Convolution(channels, channels, 3, 1, 8 << step),
                )
            ),
        ),
        [*itertools.product((1, 2), _SIDES, _SIDES)],
    ),
}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=[*NETWORKS], metavar="NETWORK")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=[*TYPES])
    arguments = parser.parse_args()
    if unknown := {*arguments.networks} - NETWORKS.keys():
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    print("| network | type | primitives | repack | with the first layout | new size, ms | most |")
    print("| --- | --- | ---: | ---: | --- | ---: | ---: |")
    with openmp_threads(1):
        for name, type_name in itertools.product(arguments.networks, arguments.types):
            print(f"| `{name}` | {type_name} | {_row(NETWORKS[name], type_name)} |", flush=True)


def _row(network: Network, type_name: str) -> str:
    """Returns the cells of a network in a type."""
    try:
        others = [_implementations(layer, network.sizes, type_name) for layer in network.layers]
        spent = [_milliseconds(network, size, type_name) for size in network.sizes]
    except ExecutionError:
        return "- | - | the library has no primitive | - | -"
    repacked = [names for names in others if names]
    names = ", ".join(sorted(set().union(*repacked)))
    median, most = statistics.median(spent), max(spent)
    return f"{len(others)} | {len(repacked)} | {names} | {median:.1f} | {most:.1f}"


def _implementations(layer: Dense | Convolution, sizes: Sequence[Size], type_name: str) -> set[str]:
    """Returns the implementations that take the weights' first layout at sizes that choose
    another one.
    """
    first = layer.describe(sizes[0], type_name, None).descriptor(Arg.WEIGHTS).copy()
    return {
        layer.describe(size, type_name, first).implementation
        for size in sizes[1:]
        if not layer.describe(size, type_name, None).descriptor(Arg.WEIGHTS).is_same(first)
    }


def _milliseconds(network: Network, size: Size, type_name: str) -> float:
    """Returns the processor time in which all primitives of a size are created."""
    start = time.process_time()
    for layer in network.layers:
        Primitive(layer.describe(size, type_name, None))
    return 1e3 * (time.process_time() - start)


def _attributes(type_name: str) -> PrimitiveAttributes:
    relu = ("dnnl_post_ops_append_eltwise", (ELTWISE["relu"], 0.0, 0.0))
    scales = [(Arg.WEIGHTS, 0)] if type_name == "int8" else ()
    return PrimitiveAttributes([relu], scales=scales)


def _channels_last(dims: tuple[int, ...], data_type: DataType) -> Descriptor:
    _, channels, height, width = dims
    strides = (channels * height * width, 1, channels * width, channels)
    return Descriptor.with_strides(dims, strides, data_type)


def _product(size: Size) -> int:
    batch, *others = size
    return batch * (others[0] if others else 1)


if __name__ == "__main__":
    main()
