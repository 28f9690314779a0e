"""Models that `compile` accepts, converted to Relay IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from onnx import ModelProto
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException, VerifyException

from byoc_mlir.abi import NAME
from byoc_mlir.boundary import check_argument
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import known_shape
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.files.in_memory import ModelInMemory, with_tensors_apart
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensor_check import external_locations
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.importer import import_loaded
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.frontend.known_ops import check_nodes
from byoc_mlir.frontend.model import ImportedModel, ImportVariant
from byoc_mlir.frontend.normal_form import in_normal_form
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.transforms.region_graph import check_annotations

if TYPE_CHECKING:
    from byoc_mlir.compiler.symbolic import SymbolicModel

ModelSource: TypeAlias = "str | Path | bytes | Snapshot | ModelProto | ModelInMemory | ModuleOp"
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Values: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class Source:
    """Model before its shapes are bound."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    model: ModelProto | ModuleOp
    """ONNX model without its large tensors, which `tensors` has, or an xDSL module."""
    tensors: TensorReader = field(default_factory=lambda: TensorReader(None))
    """Reader of the model's tensors, for all shapes that are bound."""
    symbolic: SymbolicModel | None = None
    """Model imported with symbolic sizes, if it has some."""
    part: tuple[str, ...] = ()
    """Path to this part of a model that is compiled in parts: `("part-2", "part-1")` is the first
    part of the second. Empty for a whole model.
    """

    @property
    def external_files(self) -> set[str]:
        """Returns the locations of external data in files."""
        if isinstance(self.model, ModuleOp):
            return set()
        return external_locations(self.model) - self.tensors.in_memory

    def bind(self, shapes: Shapes, values: Values) -> ImportedModel:
        """Returns the model as Relay IR for the given input shapes, and for values that shapes
        depend on.

        The caller may change the module. A model of fixed shapes that depends on no values is bound
        only once; then only the module owns its tensors.
        """
        if isinstance(self.model, ModuleOp):
            return ImportedModel(self.model.clone(), self.inputs, _results(self.model), ())
        if self.symbolic is not None and not values:
            imported = self.symbolic.at(shapes)
            if imported is not None:
                return imported
        try:
            imported = import_loaded(self.model, self.tensors, shapes, values)
        except InvalidModelError as error:
            if self.symbolic is None:
                raise
            raise self.symbolic.refused(shapes, error) from error
        if all(info.is_static for info in self.inputs) and not values:
            self.tensors.let_go()
        if self.symbolic is None:
            return imported
        return replace(imported, variant=ImportVariant(reason=self._why_alone(values)))

    def _why_alone(self, values: Values) -> str:
        """Returns why an import of a model with symbolic dimensions is valid for these shapes only.

        Returns "" if it is valid for other shapes, too.
        """
        if values:
            return f"the values of {', '.join(values)} are compiled in"
        because = None if self.symbolic is None else self.symbolic.reason
        return because or "no import with symbols fits its sizes"


def read_source(
    model: ModelSource, sizes: Mapping[str, int] | None = None, *, trusted: bool = False
) -> Source:
    """Reads a model from any form that `compile` accepts.

    Args:
        sizes: known sizes of symbolic dimensions.
        trusted: True to accept ops of all dialects in a `.mlir` file.

    Raises:
        InvalidInputError: the model does not have a dimension of that name.
        InvalidModelError: the argument is no model, or the model is invalid.
        UnsupportedModelError: the model is valid, but has nodes that cannot be compiled.
    """
    file = model if isinstance(model, str | Path) and Path(model).suffix == ".mlir" else None
    if file is not None:
        from byoc_mlir.frontend.files.mlir_file import read_mlir

        model = read_mlir(file)
    if isinstance(model, ModuleOp):
        if sizes:
            raise InvalidModelError("sizes are for models of ONNX; specialise-dims is for modules")
        model = _on_tensors(checked_module(model))
        if file is not None and not trusted:
            from byoc_mlir.frontend.files.untrusted import check_untrusted

            check_untrusted(model, str(file))
        return _from_module(model)
    given: Mapping[str, Array] = {}
    if isinstance(model, ModelInMemory):
        model, given = model.proto, model.arrays
    accepted = "the path of an .onnx or .mlir file, bytes, an onnx.ModelProto, or an xDSL ModuleOp"
    kinds = str | Path | bytes | Snapshot | ModelProto
    check_argument("the model", model, kinds, accepted, InvalidModelError)
    if isinstance(model, Snapshot):
        tensors, message = TensorReader(model.files), model.take()
    else:
        tensors, message = TensorReader.beside(model), load_model(model)
    apart = with_tensors_apart(message)
    del message  # its large tensors are copied
    loaded = in_normal_form(apart.proto)
    if sizes:
        from byoc_mlir.frontend.fixed_sizes import with_fixed_sizes

        loaded = with_fixed_sizes(loaded, sizes)
    outputs = tuple(output.name for output in loaded.graph.output)
    source = model_source(loaded, outputs, tensors.for_another({**given, **apart.arrays}))
    if source.symbolic is not None:
        check_nodes(loaded)  # it is imported when the first inputs come
    return source


def model_source(
    model: ModelProto, outputs: tuple[str, ...], tensors: TensorReader, part: tuple[str, ...] = ()
) -> Source:
    """Returns an ONNX model, or a part of one, as a source; symbolic sizes stay symbolic."""
    inputs = model_inputs(model)
    if all(info.is_static for info in inputs):
        return Source(inputs, outputs, model, tensors, part=part)
    from byoc_mlir.compiler.symbolic import SymbolicModel

    return Source(inputs, outputs, model, tensors, SymbolicModel(model, tensors), part)


def checked_module(module: ModuleOp) -> ModuleOp:
    """Verifies a module, which a caller may have built, and returns it.

    Raises:
        InvalidModelError: the module is not valid.
        LimitExceededError: the module exceeds the limits.
    """
    from byoc_mlir.frontend.files.mlir_file import check_module_size, check_order

    try:
        module.verify()
        check_order(module)
        check_annotations(module)
    except VerifyException as error:
        raise InvalidModelError(f"the module does not verify: {error}") from error
    except PassFailedException as error:
        raise InvalidModelError(f"the regions in the module are inconsistent: {error}") from error
    check_module_size(module)
    return module


def _on_tensors(module: ModuleOp) -> ModuleOp:
    """Returns the module, or a copy with upstream's tensor ops as `relay` ops.

    Raises:
        InvalidModelError: a tensor op has no equivalent in `relay`.
    """
    from byoc_mlir.frontend.files.untrusted import has_upstream_ops

    if not has_upstream_ops(module):
        return module
    from byoc_mlir.transforms.convert_tensors_to_relay import ConvertTensorsToRelay

    module = module.clone()
    try:
        ConvertTensorsToRelay().apply(make_context(), module)
    except (VerifyException, PassFailedException) as error:
        raise InvalidModelError(str(error)) from error
    return checked_module(module)


def _from_module(module: ModuleOp) -> Source:
    main = main_function(module)
    names = _names(main.arg_attrs, "arg", len(main.function_type.inputs))
    inputs = tuple(map(_tensor_info, names, main.function_type.inputs))
    return Source(inputs, tuple(info.name for info in _results(module)), module)


def _results(module: ModuleOp) -> tuple[TensorInfo, ...]:
    main = main_function(module)
    names = _names(main.res_attrs, "result", len(main.function_type.outputs))
    return tuple(map(_tensor_info, names, main.function_type.outputs))


def main_function(module: ModuleOp) -> FuncOp:
    """Returns the module's function `@main`, which is the model.

    Raises:
        InvalidModelError: the module has none.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == "main":
            return function
    found = ", ".join(f"@{function.sym_name.data}" for function in functions) or "none"
    raise InvalidModelError(f"the module has no function @main; it has {found}")


def _names(attributes: Attribute | None, prefix: str, count: int) -> list[str]:
    names = [f"{prefix}{index}" for index in range(count)]
    if isinstance(attributes, ArrayAttr):
        for index, dictionary in enumerate(attributes):
            name = dictionary.data.get(NAME) if isinstance(dictionary, DictionaryAttr) else 0
            if isinstance(name, StringAttr):
                names[index] = name.data
    return names


def _tensor_info(name: str, type_: Attribute) -> TensorInfo:
    if not isinstance(type_, TensorType) or not type_.has_static_shape():
        raise InvalidModelError(
            f"@main: '{name}' has type {type_}; inputs and outputs must be tensors of static shape"
        )
    return TensorInfo(name, numpy_dtype(type_.element_type), known_shape(type_))
