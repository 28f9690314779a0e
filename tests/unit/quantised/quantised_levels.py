"""Tables of quantised ops, and the check that runs at every instruction set."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from quantised_cases import (
    BYTES,
    F32,
    I8,
    MICROSOFT,
    U8,
    VALUES,
    ZEROS,
    Case,
    Quantised,
    Writer,
    bias_of,
    combinations,
    computed,
    data_of,
    dequantised,
    exact_sums,
    integers,
    joined,
    of_integers,
    weights_of,
    zero_point,
)
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model

TARGETS = ((), ("dnnl",))
_SAME = [1, 1, 1, 1]


def form_of(number: int, turn: int, count: int) -> int:
    """Returns the form of a combination in round `turn`; over `count` rounds it has all forms."""
    return (random.Random(number).randrange(count) + turn) % count


_WINDOWS: Sequence[tuple[str, int, Sequence[int], Callable[..., Case]]] = (
    ("Conv", 0, (24, 16, 3, 3), partial(of_integers, pads=_SAME)),
    ("Conv", 0, (24, 16, 1, 1), partial(dequantised, relu=True)),
    ("Conv", 0, (16, 1, 3, 3), partial(dequantised, pads=_SAME, group=16)),
    ("Conv", 0, (24, 4, 3, 3), partial(of_integers, pads=[1, 0, 1, 2], strides=[2, 1], group=4)),
    ("ConvTranspose", 1, (16, 12, 2, 3), partial(dequantised, strides=[2, 2])),
)
"""Forms of convolutions: a window, a pixel, depthwise, groups, a transposed one; with the output
axis of the weight, and its shape.
"""


def convolutions(turn: int) -> Iterator[Case]:
    """Yields each combination in one form, which differs between rounds."""
    for number, (of_data, of_weights, per_channel, zeros, values) in enumerate(combinations()):
        op_type, axis, shape, make = _WINDOWS[form_of(number, turn, len(_WINDOWS))]
        data = data_of(of_data, values, zeros, 1, 16, 7, 6)
        weights = weights_of(of_weights, values, zeros, per_channel, axis, *shape)
        operands = (data, weights, bias_of(data, weights, shape[axis]))
        yield make(f"conv{number}", op_type, operands, of_data)


def products(turn: int) -> Iterator[Case]:
    """Yields matmuls: with a bias, with two constant operands, with a batch of rows."""
    for number, (of_data, of_weights, per_channel, zeros, values) in enumerate(combinations()):
        form = form_of(number, turn, 3)
        data = data_of(of_data, values, zeros, *((9,) if form else (2, 5)), 83)
        weights = weights_of(of_weights, values, zeros, per_channel, 1, 83, 21)
        name = f"product{number}"
        if form:
            operands = (data, weights, bias_of(data, weights, 21))
            make = of_integers if form == 1 else partial(dequantised, relu=True)
            yield make(name, "Gemm", operands, of_data)
        else:
            yield of_integers(name, "MatMul", (data, weights), of_data)


def sums(turn: int) -> Iterator[Case]:
    """Yields matmuls and convolutions whose sums are the result."""
    for number, (of_data, of_weights, per_channel, zeros, values) in enumerate(combinations()):
        if number % 2 == turn % 2:
            data = data_of(of_data, values, zeros, 3, 5, 83)
            weights = weights_of(of_weights, values, zeros, per_channel, 1, 83, 21)
            yield exact_sums(f"sum{number}", "MatMul", data, weights)
        else:
            data = data_of(of_data, values, zeros, 1, 16, 7, 6)
            weights = weights_of(of_weights, values, zeros, False, 0, 24, 16, 3, 3)
            yield exact_sums(f"sum{number}", "Conv", data, weights, pads=_SAME)


def pairs(turn: int) -> Iterator[Case]:
    """Yields additions, products and concatenations of two tensors, both computed or one
    constant."""
    ways = itertools.product(("Add", "Mul", "Concat"), BYTES, ZEROS, ZEROS, VALUES)
    for number, (op_type, dtype, first, second, values) in enumerate(ways):
        operands = (
            data_of(dtype, values, first, 1, 8, 9, 7),
            data_of(dtype, values, second, 1, 8, 9, 7, seed=5),
        )
        make = (of_integers, dequantised)[(number + turn) % 2]
        attributes: dict[str, Any] = {"axis": 1} if op_type == "Concat" else {}
        yield make(
            f"pair{number}", op_type, operands, dtype, given=1 + number // 2 % 2, **attributes
        )


_FUNCTIONS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "GlobalAveragePool": ({}, {"channels_last": 0}),
    "AveragePool": ({"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "strides": [2, 1]}, {}),
    "Sigmoid": ({}, {}),
    "LeakyRelu": ({"alpha": 0.3}, {}),
    "Softmax": ({"axis": -1}, {"opset": 13}),
}
"""Functions of one tensor: attributes, and further attributes of the integer op."""


def functions(turn: int) -> Iterator[Case]:
    """Yields pools and activations."""
    ways = itertools.product(_FUNCTIONS, BYTES, ZEROS, VALUES)
    for number, (op_type, dtype, zeros, values) in enumerate(ways):
        operands = (data_of(dtype, values, zeros, 1, 8, 9, 7),)
        attributes, extra = _FUNCTIONS[op_type]
        name = f"function{number}"
        if (number + turn) % 2:
            yield dequantised(name, op_type, operands, dtype, **attributes)
        else:
            yield of_integers(name, op_type, operands, dtype, extra=extra, **attributes)


_RANGES = ((-1.0, 2.0), (-3.0, -1.0), (3.0, 5.0))


def dynamic(turn: int) -> Iterator[Case]:
    """Yields matmuls of a tensor that is quantised at run time."""
    ways = itertools.product(BYTES, (False, True), ZEROS, VALUES, _RANGES)
    for number, (of_weights, per_channel, zeros, values, range_) in enumerate(ways):
        rng = np.random.default_rng(number)
        numbers = rng.uniform(*range_, (2, 5, 83)).astype(F32)
        if values == "saturating":
            numbers = np.where(rng.random(numbers.shape) < 0.06, numbers, numbers.max())
        weights = weights_of(of_weights, values, zeros, per_channel, 1, 83, 21)
        yield _of_numbers(f"dynamic{number}", numbers, weights)


def layers(turn: int) -> Iterator[Case]:
    """Yields recurrent layers and attention with 8-bit weights; the expected results are `relay`'s
    evaluator's.
    """
    for number, (values, per_unit) in enumerate(itertools.product(VALUES, (False, True))):
        yield _lstm(f"lstm{number}", values, per_unit)
    for number, (dtype, values) in enumerate(itertools.product(BYTES, VALUES)):
        yield _attention(f"attention{number}", dtype, values)


def _lstm(prefix: str, values: str, per_unit: bool) -> Case:
    rng, writer = np.random.default_rng(16), Writer(prefix)
    steps, batch, width, hidden = 4, 2, 5, 6
    writer.inputs[f"{prefix}_x"] = rng.uniform(-1, 3, (steps, batch, width)).astype(F32)
    weights = [integers(I8, values, 4, 1, rows, 4 * hidden) for rows in (width, hidden)]
    shape = (1, 4 * hidden) if per_unit else (1,)
    scales, zeros = np.full(shape, 0.004, F32), np.zeros(shape, I8)
    operands = [writer.constant(one) for one in (*weights, scales, zeros)]
    w, r, scale, zero = operands
    inputs = [f"{prefix}_x", w, r, "", "", "", "", "", scale, zero, scale, zero]
    writer.node("DynamicQuantizeLSTM", inputs, MICROSOFT, hidden_size=hidden)
    return _evaluated(writer)


def _attention(prefix: str, dtype: np.dtype[Any], values: str) -> Case:
    rng, writer = np.random.default_rng(17), Writer(prefix)
    writer.inputs[f"{prefix}_x"] = integers(U8, values, 5, 2, 5, 8)
    weights, bias = integers(dtype, values, 6, 8, 24), rng.standard_normal(24).astype(F32)
    scale, zero = np.array(0.01, F32), zero_point(U8, "middle")
    operands = (weights, bias, scale, scale, zero, np.zeros((), dtype))
    w, b, data_scale, scale, data_zero, zero = (writer.constant(one) for one in operands)
    inputs = [f"{prefix}_x", w, b, data_scale, scale, "", data_zero, zero]
    writer.node("QAttention", inputs, MICROSOFT, num_heads=2)
    return _evaluated(writer)


def _evaluated(writer: Writer) -> Case:
    """Returns the case with the evaluator's result, which has to agree to 1e-4 of its largest
    element.
    """
    placeholder = writer.case(np.zeros((), F32))
    imported = import_model(joined([placeholder]))
    main = next(op for op in imported.module.ops if isinstance(op, FuncOp))
    (expected, *_) = evaluate(main, list(writer.inputs.values()))
    return writer.case(expected, step=1e-4 * float(np.abs(expected).max()))


def _of_numbers(prefix: str, numbers: Any, weights: Quantised) -> Case:
    writer = Writer(prefix)
    writer.inputs[f"{prefix}_x"] = numbers
    bias = np.linspace(-3, 3, weights.integers.shape[1]).astype(F32)
    parameters = [writer.constant(one) for one in (*weights.parts, bias)]
    writer.node("DynamicQuantizeMatMul", [f"{prefix}_x", *parameters], MICROSOFT)
    low, high = min(numbers.min(), np.float32(0)), max(numbers.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero = np.clip(np.rint(-low / scale), 0, 255).astype(U8)
    steps = np.clip(np.rint(numbers / scale) + zero, 0, 255).astype(U8)
    exact = computed("MatMul", [Quantised(steps, scale, zero).numbers, weights.numbers]) + bias
    return writer.case(exact.astype(F32), step=1e-6 * np.abs(exact).max())


TABLES = (convolutions, products, sums, pairs, functions, dynamic, layers)


def check_level(turn: str, shares: str) -> None:
    """Checks that a share of all cases gives the right results, by the host alone and with
    oneDNN."""
    for table in TABLES:
        cases = list(table(int(turn)))[int(turn) % int(shares) :: int(shares)]
        model = joined(cases)
        inputs = {name: array for case in cases for name, array in case.inputs.items()}
        for targets in TARGETS:
            with byoc_mlir.compile(
                model, targets, threads=1, prune="off", fallback="allow"
            ) as executable:
                found = executable.run(inputs)
            for case in cases:
                _assert_within_steps(found[case.nodes[-1].output[0]], case, targets)


def _assert_within_steps(found: Any, case: Case, targets: tuple[str, ...]) -> None:
    """Asserts that results differ by at most one step in 99.9 % of the elements, and by two in
    all."""
    name = f"{[node.op_type for node in case.nodes]} {case.nodes[-1].name} by {targets or 'host'}"
    assert found.dtype == case.expected.dtype, name
    assert found.shape == case.expected.shape, name
    steps = np.abs(found.astype(np.float64) - case.expected.astype(np.float64)) / case.step
    assert steps.max() <= 2, f"{name}: {steps.max()}"
    assert (steps > 1).sum() <= 1e-3 * steps.size, f"{name}: {(steps > 1).sum()} of {steps.size}"
