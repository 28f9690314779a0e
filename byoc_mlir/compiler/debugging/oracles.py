"""Who says what a model computes, tensor by tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from onnx import ModelProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

from byoc_mlir.compiler.debugging.parts import WholeModel
from byoc_mlir.compiler.disable import OPTIONAL_PASSES
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError, ExecutionError, ToolchainError
from byoc_mlir.frontend.value import Array

Against: TypeAlias = Literal["onnxruntime", "reference", "host"]

Values: TypeAlias = Mapping[str, Array]


def chosen_oracle(name: str | None) -> Against:
    """The oracle of a name; left out: ONNX Runtime where it is installed, else the reference.

    Raises:
        ByocError: there is none of that name.
        ToolchainError: ONNX Runtime is not installed.
    """
    there = find_spec("onnxruntime") is not None
    if name is None:
        return "onnxruntime" if there else "reference"
    if name not in get_args(Against):
        accepted = ", ".join(map(repr, get_args(Against)))
        raise ByocError(f"against is {name!r}, accepted are {accepted}")
    if name == "onnxruntime" and not there:
        raise ToolchainError(
            "ONNX Runtime is not installed; run pip install onnxruntime, or compare with"
            " 'reference'"
        )
    return cast(Against, name)


def tensor_values(
    against: Against, whole: WholeModel, inputs: Values, request: Request
) -> dict[str, Array]:
    """What each tensor of a model is that is an array and not constant, the inputs among them.

    Args:
        request: for the host: how the model is compiled otherwise.

    Raises:
        ExecutionError: the oracle cannot run the model.
    """
    run = _ORACLES[against]
    try:
        found = run(whole, inputs, request)
    except ByocError:
        raise
    except Exception as error:  # what the oracles raise is theirs
        raise ExecutionError(
            f"{against} cannot run the model: {type(error).__name__}: {error}; another oracle may"
        ) from error
    made = (name for node in whole.nodes for name in node.output if name)
    named = dict.fromkeys((*whole.inputs, *made, *whole.outputs))
    known = {**inputs, **found}
    return {name: known[name] for name in named if isinstance(known.get(name), np.ndarray)}


def _onnxruntime(whole: WholeModel, inputs: Values, request: Request) -> dict[str, Any]:
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    model, names = _all_tapped(whole)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(names, cast("Sequence[Any]", session.run(names, dict(inputs))), strict=True))


def _reference(whole: WholeModel, inputs: Values, request: Request) -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        evaluator: Any = ReferenceEvaluator(whole.model)
        return cast("dict[str, Any]", evaluator.run(None, dict(inputs), intermediate=True))


def _host(whole: WholeModel, inputs: Values, request: Request) -> dict[str, Any]:
    """The host compiler alone, without the passes that only make programs better."""
    model, _ = _all_tapped(whole)
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


_ORACLES: Mapping[Against, Callable[[WholeModel, Values, Request], dict[str, Any]]] = {
    "onnxruntime": _onnxruntime,
    "reference": _reference,
    "host": _host,
}


def _all_tapped(whole: WholeModel) -> tuple[ModelProto, list[str]]:
    """The model with all tensors among its outputs, and their names."""
    model = ModelProto()
    model.CopyFrom(whole.model)
    there = list(whole.outputs)
    more = [name for node in whole.nodes for name in node.output if name and name not in there]
    model.graph.output.extend(ValueInfoProto(name=name) for name in more)
    return model, [*there, *more]
