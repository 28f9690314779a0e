"""Conversion of a captured module to an ONNX model that shares its parameters."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from byoc_mlir.errors import NodeProblem, UnsupportedModelError
from byoc_mlir.extras import import_extra
from byoc_mlir.frontend.files.in_memory import ModelInMemory, borrowed
from byoc_mlir.frontend.value import Array
from byoc_mlir.torch.capture import check_effects
from byoc_mlir.torch.places import causes_of, place_of_node
from byoc_mlir.torch.tensors import EXTRA, array_of, pytorch

_LEAST_BYTES = 1024
"""Size in bytes below which tensors are copied into the model."""

_TARGET = re.compile(r"\[target=torch\.ops\.(?P<target>[\w.]+)\]")


def convert(
    program: Any, sizes: Sequence[Any] | None = None, copy_parameters: bool = False
) -> ModelInMemory:
    """Converts an `ExportedProgram` into an ONNX model.

    Args:
        program: the captured program.
        sizes: the dynamic sizes of each tensor that it takes; names in it name dimensions.
        copy_parameters: if true, the model has copies of the parameters, else it shares them.

    Raises:
        UnsupportedModelError: ONNX has nothing for an operation.
        MissingExtraError: `onnxscript`, which writes ONNX for PyTorch, is not installed.
    """
    import_extra("onnxscript", EXTRA)
    torch = pytorch()
    try:
        with _quiet():
            converted = torch.onnx.export(
                program, dynamo=True, verbose=False, dynamic_shapes=sizes, optimize=False
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise _refused(program, error) from error
    check_effects(converted.exported_program)  # some of them show in its smaller operations
    _fold(converted.model)
    _convert_results(program, converted.model)
    return _in_memory(converted.model, copy_parameters)


@contextmanager
def _quiet() -> Generator[None]:
    """Suppresses warnings of PyTorch's exporter, which are not for our users."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _fold(model: Any) -> None:
    """Folds the constants of a model.

    The exporter's own optimisation drops what is nearly nothing: of `x + 1e-12`, only `x` remains.
    """
    optimizer = import_extra("onnxscript.optimizer", EXTRA)
    optimizer.inline(model)
    optimizer.fold_constants(model, onnx_shape_inference=True)
    optimizer.remove_unused_nodes(model)


def _convert_results(program: Any, model: Any) -> None:
    """Gives results of a model PyTorch's types: some forms leave them in single precision."""
    ir, torch, outputs = import_extra("onnx_ir", EXTRA), pytorch(), model.graph.outputs
    for at, result in enumerate(program.graph.output_node().args[0][: len(outputs)]):
        value: Any = getattr(result, "meta", {}).get("val")
        if not isinstance(value, torch.Tensor):
            continue
        empty = array_of(torch.empty(0, dtype=value.dtype), "a result")
        kind, computed = ir.DataType.from_numpy(empty.dtype), outputs[at]
        if computed.dtype != kind:
            outputs[at] = ir.val(f"{computed.name}_converted", kind, computed.shape)
            cast = ir.node("Cast", [computed], {"to": kind}, outputs=[outputs[at]])
            model.graph.append(cast)


def _in_memory(model: Any, copy: bool) -> ModelInMemory:
    """Returns the model in memory; its large tensors are shared or copied."""
    ir = import_extra("onnx_ir", EXTRA)
    arrays: dict[str, Array] = {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.nbytes < _LEAST_BYTES:
            continue
        array = _array(tensor, name)
        arrays[name] = array.copy() if copy else borrowed(array)
        value.const_value = ir.ExternalTensor(
            name, None, None, tensor.dtype, shape=tensor.shape, name=name
        )
    return ModelInMemory(ir.serde.serialize_model(model), arrays)


def _array(tensor: Any, name: str) -> Array:
    raw = tensor.raw
    array = array_of(raw.detach(), name) if hasattr(raw, "detach") else tensor.numpy()
    return np.asarray(array, order="C")


def _refused(program: Any, error: Exception) -> UnsupportedModelError:
    """Returns the error for an operation that ONNX does not have, with the line of the user's
    code."""
    causes = [str(cause) for cause in causes_of(error)]
    found = next(filter(None, map(_TARGET.search, causes)), None)
    target = found["target"] if found else "an operation"
    place = _places(program).get(target, "the module")
    reason = f"PyTorch has no form of it in ONNX: {causes[-1].splitlines()[0]}"
    return UnsupportedModelError([NodeProblem(place, target, "", reason)])


def _places(program: Any) -> Mapping[str, str]:
    """Returns the first line of user code for each operation, and for the operations it decomposes
    into.
    """
    places: dict[str, str] = {}
    for node in (*program.graph.nodes, *program.run_decompositions().graph.nodes):
        places.setdefault(str(node.target), place_of_node(node))
    return places
