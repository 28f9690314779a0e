"""Ops of the `byoc` dialect that move data between memory spaces, and wait for devices.

A memory space is `host`, or the name of a device. A memref of a device carries the space's name:
`memref<4xf32, "npu">`.
"""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.abi import HOST_SPACE, MEMORY_SPACE


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copy of a tensor from one memory space to another one.

    ```mlir
    %d = byoc.copy %x from "host" to "npu" : tensor<4xf32>
    ```

    One of the two spaces is the host.
    """

    name = "byoc.copy"
    TYPE: ClassVar = VarConstraint("TYPE", BaseAttr(TensorType))
    value = operand_def(TYPE)
    result = result_def(TYPE)
    source = prop_def(StringAttr)
    target = prop_def(StringAttr)
    traits = traits_def(Pure())
    assembly_format = "$value `from` $source `to` $target attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, source: str, target: str):
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={"source": StringAttr(source), "target": StringAttr(target)},
        )

    @property
    def device(self) -> str:
        """Returns the device at one end of the copy."""
        return self.target.data if self.source.data == HOST_SPACE else self.source.data

    def verify_(self) -> None:
        _check_ends("copy", self.source.data, self.target.data)


@irdl_op_definition
class TransferOp(IRDLOperation):
    """Copy between dense buffers of the host and of a device; a `byoc.copy` after `bufferize`.

    It is enqueued: the host's buffer may be read, or written again, after a `byoc.wait`.

    ```mlir
    byoc.transfer %x, %d : memref<4xf32>, memref<4xf32, "npu">
    ```
    """

    name = "byoc.transfer"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    assembly_format = "$source `,` $destination attr-dict `:` type($source) `,` type($destination)"

    def __init__(self, source: SSAValue, destination: SSAValue):
        super().__init__(operands=[source, destination])

    @property
    def is_to_device(self) -> bool:
        """True if the copy is from the host to a device."""
        return space_of(self.source.type) == HOST_SPACE

    @property
    def device(self) -> str:
        """Returns the device at one end of the copy."""
        end = self.destination if self.is_to_device else self.source
        return space_of(end.type)

    @property
    def host_buffer(self) -> SSAValue:
        """Returns the buffer of the host."""
        return self.source if self.is_to_device else self.destination

    def verify_(self) -> None:
        _check_ends("transfer", *(space_of(value.type) for value in self.operands))


@irdl_op_definition
class WaitOp(IRDLOperation):
    """Wait for all that was enqueued on a device: `byoc.wait "npu"`."""

    name = "byoc.wait"
    device = prop_def(StringAttr)
    assembly_format = "$device attr-dict"

    def __init__(self, device: str):
        super().__init__(properties={"device": StringAttr(device)})


def _check_ends(what: str, source: str, target: str) -> None:
    """Checks that an op moves data between the host and a device."""
    if (source, target).count(HOST_SPACE) != 1:
        raise VerifyException(
            f"a {what} is between the host and a device, found {source!r} and {target!r}"
        )


def space_of(type_: Attribute) -> str:
    """Returns the memory space of a buffer; `host` for other types."""
    if not isinstance(type_, MemRefType) or isinstance(type_.memory_space, NoneAttr):
        return HOST_SPACE
    return cast(StringAttr, type_.memory_space).data


def in_space(type_: MemRefType, space: str) -> MemRefType:
    """Returns the type of a buffer in a memory space."""
    if space == HOST_SPACE:
        return type_
    return MemRefType(type_.element_type, type_.shape, type_.layout, StringAttr(space))


def region_space(function: Operation) -> str:
    """Returns the memory space of an outlined region."""
    space = function.attributes.get(MEMORY_SPACE)
    return space.data if isinstance(space, StringAttr) else HOST_SPACE


def region_spaces(module: ModuleOp) -> dict[str, str]:
    """Returns the memory space of each region that runs on a device, by symbol."""
    return {
        op.sym_name.data: space
        for op in module.body.block.ops
        if isinstance(op, FuncOp) and (space := region_space(op)) != HOST_SPACE
    }


def argument_spaces(function: FuncOp) -> list[str]:
    """Returns the memory space of each argument of a function."""
    return _spaces(function.arg_attrs, len(function.function_type.inputs))


def result_spaces(function: FuncOp) -> list[str]:
    """Returns the memory space of each result of a function."""
    return _spaces(function.res_attrs, len(function.function_type.outputs))


def _spaces(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[str]:
    if attributes is None:
        return [HOST_SPACE] * count
    found = [one.data.get(MEMORY_SPACE) for one in attributes]
    return [one.data if isinstance(one, StringAttr) else HOST_SPACE for one in found]
