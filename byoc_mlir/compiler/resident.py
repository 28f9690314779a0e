"""Inputs and outputs that stay in the memory of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import HOST_SPACE, MEMORY_SPACE
from byoc_mlir.backends import get_backend
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import Source
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.names import meant
from byoc_mlir.tensors import TensorInfo


def with_residents(source: Source, options: CompileOptions) -> Source:
    """Returns the source with the memory spaces of its inputs.

    Raises:
        InvalidModelError: the model has no such input or output, or no target has such a device.
    """
    devices = {get_backend(target).memory_space for target in options.targets} - {HOST_SPACE}
    names = [*(info.name for info in source.inputs), *source.outputs]
    for name, device in options.resident.items():
        if name not in names:
            raise InvalidModelError(
                f"resident names {name!r}, which is no input or output of the model:"
                f" {', '.join(names)}{meant(name, names)}"
            )
        if device not in devices:
            raise InvalidModelError(
                f"resident wants {name!r} on {device!r}; the targets have"
                f" {', '.join(sorted(devices)) or 'no device'}"
            )
    return replace(source, inputs=in_spaces(source.inputs, options.resident))


def in_spaces(infos: Sequence[TensorInfo], resident: Mapping[str, str]) -> tuple[TensorInfo, ...]:
    """Returns the descriptions with the memory spaces of the tensors."""
    return tuple(
        replace(info, space=resident[info.name]) if info.name in resident else info
        for info in infos
    )


def mark_residents(
    module: ModuleOp, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> None:
    """Writes the memory spaces of arguments and results as attributes of @main."""
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    for property_, infos in (("arg_attrs", inputs), ("res_attrs", outputs)):
        given = main.properties.get(property_)
        known = given.data if isinstance(given, ArrayAttr) else [DictionaryAttr({})] * len(infos)
        main.properties[property_] = ArrayAttr(map(_with_space, known, infos))


def _with_space(attributes: DictionaryAttr, info: TensorInfo) -> DictionaryAttr:
    if info.space == HOST_SPACE:
        return attributes
    return DictionaryAttr({**attributes.data, MEMORY_SPACE: StringAttr(info.space)})
