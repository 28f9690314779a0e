"""Quantised transformers, compared with ONNX Runtime tensor by tensor; the evaluator of exact
integers decides differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from forced_networks import Array, compare, forced
from onnx import ModelProto
from onnxruntime.quantization import QuantFormat
from quantised_networks import dynamic, static
from xdsl.dialects import func

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger
from byoc_mlir.transforms.fold_constants import FoldConstants


def _vit() -> ModelProto:
    model = NETWORKS["vit_tiny"](image=48, layers=1, classes=10)
    return static(model, QuantFormat.QDQ, per_channel=True)


def _bert() -> ModelProto:
    return dynamic(NETWORKS["bert6"](tokens=12, vocabulary=50, layers=1))


def _run(model: ModelProto, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    with byoc_mlir.compile(model, threads=1, fallback="allow") as executable:
        return executable.run(inputs)


def _exact(model: ModelProto, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    imported = import_model(model)
    for pass_ in (FakeQuantizationToInteger(), FoldConstants()):
        pass_.apply(make_context(), imported.module)
    main = next(op for op in imported.module.ops if isinstance(op, func.FuncOp))
    found = evaluate(main, [inputs[value.name] for value in model.graph.input])
    return dict(zip((value.name for value in model.graph.output), found, strict=True))


@pytest.mark.parametrize("make", [_vit, _bert])
def test_a_transformer(make: Callable[[], ModelProto]) -> None:
    size, other, far, wrong = compare(forced(make()), _run, _exact)
    assert size > 20_000
    assert other <= size / 1000
    assert far <= size / 1000
    assert wrong == 0


def test_a_difference_of_more_than_a_step_is_found_and_decided() -> None:
    case = forced(_bert())
    name = next(iter(case.wanted))

    def moved(steps: int) -> Callable[[ModelProto, Mapping[str, Array]], Mapping[str, Array]]:
        def run(model: ModelProto, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            other = case.wanted[name].copy()
            other.flat[0] = (int(other.flat[0]) + steps) % 256
            return {**case.wanted, name: other}

        return run

    assert compare(case, moved(100), moved(0))[1:] == (1, 1, 1)
    assert compare(case, moved(100), moved(100))[1:] == (1, 1, 0)
