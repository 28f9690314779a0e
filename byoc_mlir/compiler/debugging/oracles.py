"""Oracles for a model's tensors: backends that run whole models, or the host compiler."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper, shape_inference

from byoc_mlir.backends import Backend, backend_names, get_backend
from byoc_mlir.comparison import is_float
from byoc_mlir.compiler.debugging.parts import WholeModel
from byoc_mlir.compiler.disable import OPTIONAL_PASSES
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import BackendError, ByocError, ExecutionError
from byoc_mlir.frontend.value import Array
from byoc_mlir.names import meant
from byoc_mlir.transforms.placement import HOST

Values: TypeAlias = Mapping[str, Any]


def oracle_names() -> list[str]:
    """Returns the names of all oracles: the backends that can run any model, and `host`."""
    return [*(backend.name for backend in _running_models()), HOST]


def chosen_oracle(name: str | None) -> str:
    """Returns the name of the oracle to use, after checking it.

    By default, it is an installed backend that runs whole models, else the host.

    Raises:
        ByocError: there is no oracle of that name.
        BackendError: the oracle cannot be used on this machine.
    """
    if name is None:
        usable = [one for one in _running_models() if one.unavailable() is None]
        return next((one.name for one in usable), HOST)
    if name not in oracle_names():
        accepted = ", ".join(map(repr, oracle_names()))
        raise ByocError(
            f"against is {name!r}, accepted are {accepted}{meant(str(name), oracle_names())}"
        )
    reason = None if name == HOST else get_backend(name).unavailable()
    if reason is not None:
        raise BackendError(f"'{name}' cannot be compared with: {reason}")
    return name


def _running_models() -> list[Backend]:
    """Returns the backends that can run any model, the fallback interpreter last."""
    backends = [one for one in map(get_backend, backend_names()) if one.runs_models]
    return sorted(backends, key=lambda one: (one.is_fallback_interpreter, one.name))


def tensor_values(
    oracle: str, whole: WholeModel, inputs: Values, request: Request
) -> dict[str, Array]:
    """Computes all tensors of a model with an oracle, including inputs and outputs.

    Sequences are omitted.

    Args:
        request: options of the compilation, for the oracle `host`.

    Raises:
        ExecutionError: the oracle cannot run the model.
    """
    model, names = _all_tapped(whole)
    types = _element_types(whole.model)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _run(oracle, model, inputs, request)
    except ByocError:
        raise
    except Exception as error:  # what the oracles raise is theirs
        raise ExecutionError(
            f"{oracle} cannot run the model: {type(error).__name__}: {error}; another oracle may"
        ) from error
    known = {**inputs, **{name: _typed(value, types.get(name)) for name, value in found.items()}}
    in_order = dict.fromkeys((*whole.inputs, *names))
    return {name: known[name] for name in in_order if isinstance(known.get(name), np.ndarray)}


def _run(oracle: str, model: ModelProto, inputs: Values, request: Request) -> dict[str, Any]:
    if oracle == HOST:
        return _run_on_host(model, inputs, request)
    names = [output.name for output in model.graph.output]
    results = get_backend(oracle).interpreter(model)(inputs)
    return dict(zip(names, results, strict=True))


def _run_on_host(model: ModelProto, inputs: Values, request: Request) -> dict[str, Any]:
    """Runs the model with the host compiler only, without optional passes."""
    asked = replace(
        request,
        model=model,
        targets=(),
        backend_options={},
        precision="f32",
        fallback="allow",
        disable=OPTIONAL_PASSES,
        profile=False,
        dump_ir=None,
    )
    with compile_model(asked) as executable:
        return executable.run(inputs)


def _all_tapped(whole: WholeModel) -> tuple[ModelProto, list[str]]:
    """Returns the model with all tensors as outputs, and their names in the order of nodes."""
    model = ModelProto()
    model.CopyFrom(whole.model)
    made = [name for node in whole.nodes for name in node.output if name]
    there = set(whole.outputs)
    model.graph.output.extend(ValueInfoProto(name=name) for name in made if name not in there)
    return model, [*made, *whole.outputs]


def _element_types(model: ModelProto) -> dict[str, np.dtype[Any]]:
    """Returns the types of the tensors that ONNX can infer."""
    graph = shape_inference.infer_shapes(model).graph
    return {
        info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        for info in (*graph.value_info, *graph.output)
        if info.type.tensor_type.elem_type
    }


def _typed(value: Any, dtype: np.dtype[Any] | None) -> Any:
    """Converts a tensor to its declared type, because an oracle in Python may return another
    type.
    """
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    if dtype is None or dtype == array.dtype or not (is_float(dtype) and is_float(array.dtype)):
        return array
    return array.astype(dtype)
