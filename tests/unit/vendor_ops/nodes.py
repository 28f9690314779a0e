"""Models of one node of a vendor's domain, run by ONNX Runtime and by the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from helpers.models import MICROSOFT, ML, model_of
from numpy.typing import NDArray
from onnx import ModelProto, helper
from xdsl.dialects import func

from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

Arrays = Mapping[str, NDArray[Any] | None]


def node_model(
    op_type: str,
    inputs: Arrays,
    outputs: Mapping[str, type[np.generic]] | Sequence[str] = ("y",),
    *,
    constants: Sequence[str] = (),
    domain: str = MICROSOFT,
    **attributes: Any,
) -> ModelProto:
    """Returns a model of one node.

    Args:
        inputs: arrays by name, `None` for an omitted input; the names in `constants` are
            initializers.
        outputs: names of f32 outputs, or names and types; an empty name omits an output.
    """
    types = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, np.float32)
    names = [name if array is not None else "" for name, array in inputs.items()]
    given = {name: array for name, array in inputs.items() if array is not None}
    node = helper.make_node(op_type, names, list(outputs), "n", domain=domain, **attributes)
    numbers = {name: helper.np_dtype_to_tensor_dtype(np.dtype(t)) for name, t in types.items()}
    described = {
        name: helper.make_tensor_value_info(name, number, None)
        for name, number in numbers.items()
        if name
    }
    known = {name: given.pop(name) for name in constants}
    version = {ML: 5 if op_type == "TreeEnsemble" else 3} if domain == ML else {}
    return model_of([node], given, known, described, opset=17, **version)


def run_imported(model: ModelProto, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Returns the outputs by the evaluator of `relay`, in numpy."""
    imported = import_model(model)
    main = next(op for op in imported.module.ops if isinstance(op, func.FuncOp))
    operands = [inputs[info.name] for info in imported.inputs]
    results = evaluate(main, [array for array in operands if array is not None])
    names = [info.name for info in imported.outputs]
    return dict(zip(names, results, strict=True))


def check_node(
    op_type: str,
    inputs: Arrays,
    outputs: Mapping[str, type[np.generic]] | Sequence[str] = ("y",),
    *,
    constants: Sequence[str] = (),
    tolerance: float = 2e-6,
    **attributes: Any,
) -> None:
    """Compares the imported node with ONNX Runtime."""
    model = node_model(op_type, inputs, outputs, constants=constants, **attributes)
    fed = {k: v for k, v in inputs.items() if v is not None and k not in constants}
    assert_agrees(run_imported(model, inputs), run_onnxruntime(model, fed), tolerance)


def rows(seed: int, count: int, features: int = 3, *, missing: bool = False) -> NDArray[Any]:
    """Returns rows that often meet the thresholds exactly."""
    rng = np.random.default_rng(seed)
    data = (rng.integers(-5, 6, (count, features)) / 2).astype(np.float32)
    return np.where(rng.random(data.shape) < 0.2, np.float32(np.nan), data) if missing else data
