"""Every line of the page and further ones: compiled, folded, evaluated, and by ONNX Runtime."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import ModelProto
from semantics_table import PAGE, Line, lines
from small_models import Array, Arrays, model_of, onnxruntime
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model

OPSET = 20


def _by_kind() -> list[list[Line]]:
    groups: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in lines():
        groups[line.kind].append(line)
    return list(groups.values())


def _operands(group: Sequence[Line], index: int) -> Arrays:
    """Returns the operands of all lines of one kind, as vectors."""
    return {
        f"x{index}_{number}": np.concatenate([line.operands[number] for line in group])
        for number in range(len(group[0].operands))
    }


def _model(groups: Sequence[Sequence[Line]], *, as_constants: bool) -> tuple[ModelProto, Arrays]:
    """Returns a model with one node for each kind of line, and the operands of all."""
    operands = [_operands(group, index) for index, group in enumerate(groups)]
    nodes = [
        group[0].node(list(arrays), f"y{index}")
        for index, (group, arrays) in enumerate(zip(groups, operands, strict=True))
    ]
    feeds = {name: array for arrays in operands for name, array in arrays.items()}
    given: tuple[Arrays, Arrays] = ({}, feeds) if as_constants else (feeds, {})
    return model_of(nodes, *given, [], OPSET), feeds


def _check(groups: Sequence[Sequence[Line]], found: Mapping[str, Array]) -> None:
    for index, group in enumerate(groups):
        got = found[f"y{index}"]
        wanted = np.concatenate([line.expected(got.dtype) for line in group])
        np.testing.assert_array_equal(got, wanted, err_msg=str(group))
        if got.dtype.kind == "f":
            signs = np.signbit(got), np.signbit(wanted) | np.isnan(wanted) & np.signbit(got)
            np.testing.assert_array_equal(*signs, err_msg=str(group))


def test_the_page_has_lines_of_every_kind() -> None:
    assert {line.op.split()[0] for line in lines(PAGE)} >= {"Div", "Mod", "Pow", "BitShift", "Cast"}


def test_compiled() -> None:
    groups = _by_kind()
    model, feeds = _model(groups, as_constants=False)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        _check(groups, executable.run(feeds))


def test_folded() -> None:
    groups = _by_kind()
    model, _ = _model(groups, as_constants=True)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        _check(groups, executable.run({}))


def test_with_known_right_operands() -> None:
    groups = [[line] for line in lines() if len(line.operands) > 1]
    model, operands = _model(groups, as_constants=False)
    feeds = {name: array for name, array in operands.items() if name.endswith("_0")}
    constants = {name: array for name, array in operands.items() if name not in feeds}
    model = model_of(list(model.graph.node), feeds, constants, [], OPSET)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        _check(groups, executable.run(feeds))


def test_evaluated() -> None:
    groups = _by_kind()
    model, feeds = _model(groups, as_constants=False)
    (main,) = (op for op in import_model(model).module.walk() if isinstance(op, FuncOp))
    results = evaluate(main, list(feeds.values()))
    _check(groups, {f"y{index}": array for index, array in enumerate(results)})


@pytest.mark.parametrize("group", _by_kind(), ids=lambda group: "-".join(group[0].kind))
def test_by_onnxruntime(group: list[Line]) -> None:
    same = [[line for line in group if line.is_onnxruntimes]]
    if same[0]:
        model, feeds = _model(same, as_constants=False)
        _check(same, onnxruntime(model, feeds))
