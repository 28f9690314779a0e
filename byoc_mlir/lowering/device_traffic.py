"""Copies and waits of a module's host functions, counted for the report and for profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import DEVICE_TRAFFIC
from byoc_mlir.dialects.device_ops import TransferOp, WaitOp
from byoc_mlir.dialects.relay.base import Ints
from byoc_mlir.lowering.to_llvm.types import buffer_bytes
from byoc_mlir.runtime.report import DeviceTraffic
from byoc_mlir.tensors import TensorInfo


def describe_traffic(module: ModuleOp, functions: Iterable[FuncOp]) -> None:
    """Writes the copies and waits of host functions on the module, by device.

    The numbers of a device are those of copies to it, their bytes, copies from it, their bytes, and
    waits.
    """
    found: dict[str, list[int]] = {}
    for function in functions:
        for op in function.walk():
            if isinstance(op, WaitOp):
                found.setdefault(op.device.data, [0] * 5)[4] += 1
            elif isinstance(op, TransferOp):
                numbers = found.setdefault(op.device, [0] * 5)
                first = 0 if op.is_to_device else 2
                numbers[first] += 1
                numbers[first + 1] += transferred_bytes(op)
    if found:
        described = {name: DenseArrayBase.from_list(i64, found[name]) for name in sorted(found)}
        module.attributes[DEVICE_TRAFFIC] = DictionaryAttr(described)


def traffic_of(
    module: ModuleOp, constant_bytes: Mapping[str, int], inputs: Sequence[TensorInfo]
) -> Iterator[DeviceTraffic]:
    """Yields what `describe_traffic` wrote.

    Args:
        constant_bytes: bytes of the constants on each device.
        inputs: inputs of the model, with their memory spaces.
    """
    described = module.attributes.get(DEVICE_TRAFFIC)
    if isinstance(described, DictionaryAttr):
        for name, numbers in cast(dict[str, Ints], described.data).items():
            counted = list(numbers.get_values())
            yield DeviceTraffic(
                name,
                *counted,
                constant_bytes=constant_bytes.get(name, 0),
                resident_inputs=tuple(info.name for info in inputs if info.space == name),
            )


def transferred_bytes(transfer: TransferOp) -> int:
    """Returns the bytes of a copy."""
    type_ = transfer.source.type
    assert isinstance(type_, MemRefType)
    return buffer_bytes(type_)
