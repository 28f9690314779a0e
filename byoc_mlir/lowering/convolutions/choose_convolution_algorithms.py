"""The pass `choose-convolution-algorithms`."""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Sequence,
    Set,
)
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.calibration import using_file
from byoc_mlir.dialects.byoc import host_blocks, weight_growth
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay.base import shape_of, sizes_of
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp
from byoc_mlir.dialects.relay.qnn_window import QuantizedConvOp
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.costs import ASSUMED, ConvolutionCalibration, calibration
from byoc_mlir.kernels.schedules import schedules_of
from byoc_mlir.kernels.tuned import USUAL, choice_for, took
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.weight_bound import Way, fastest_within
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS
from byoc_mlir.lowering.convolutions.chain import chain_of
from byoc_mlir.lowering.convolutions.description import (
    ALGORITHM,
    convolutions,
    described,
)
from byoc_mlir.lowering.linalg_to_loops.schedule import SCHEDULE
from byoc_mlir.runtime.system.cpu import target_cpu

_PASSED = (UnaryOp, BroadcastOp, nn.BiasAddOp)


def neighbours(op: ConvOp) -> Iterator[tuple[ConvOp, SSAValue]]:
    """Yields the convolutions before and after `op`; element-wise ops in between are skipped.

    Each convolution has the input or output of `op` that leads to it.
    """
    for value, step in ((op.data, _written), (op.output, _read)):
        for found in _beyond(value, step):
            if isinstance(found, ConvOp):
                yield found, value


def _written(value: SSAValue) -> Iterator[tuple[Operation, Sequence[SSAValue]]]:
    """Yields the op that computes a value, with the op's operands."""
    if isinstance(value.owner, Operation):
        yield value.owner, value.owner.operands


def _read(value: SSAValue) -> Iterator[tuple[Operation, Sequence[SSAValue]]]:
    """Yields the users of a value, with the users' results."""
    for use in value.uses:
        yield use.operation, use.operation.results


def _beyond(
    value: SSAValue, step: Callable[[SSAValue], Iterable[tuple[Operation, Sequence[SSAValue]]]]
) -> Iterable[Operation]:
    """Returns the ops that compute or use a value; element-wise ops are followed to the next
    ops.
    """
    pending, seen, found = [value], set[Operation](), list[Operation]()
    while pending:
        one = pending.pop()
        for op, values in step(one):
            if op in seen:
                continue
            seen.add(op)
            if isinstance(op, _PASSED):
                pending += [part for part in values if sizes_of(part) == sizes_of(one)]
            else:
                found.append(op)
    return found


_LOOPS = "loops"
_LOOPS_FACTOR = 1.3
"""Ratio of the time of loops to the time of a kernel with as many MACs."""

_LINE_VECTORS = 5
"""Overhead of a row of pixels, as a number of vector MACs. Loops over grouped convolutions begin
and end a row for each position of the window."""

_WORTH_COMPILING = 0.1
"""Minimum total gain of a Winograd algorithm over a model's convolutions, in milliseconds: LLVM
takes half a second to compile it."""

Times: TypeAlias = dict[str, float]
"""Milliseconds by the name of an algorithm."""


@dataclass(frozen=True)
class _Question:
    """Convolution whose algorithm must be chosen, with the candidates' times."""

    op: ConvOp
    times: Times
    """Estimated milliseconds of all algorithms that are allowed."""
    choice: str | None = None
    """Algorithm that was measured to be the fastest."""
    in_layout: str | None = None
    """Algorithm to use if adjacent ops make the tensors NHWC anyway."""

    @property
    def candidates(self) -> Times:
        """Returns the algorithms that are used if their weights fit in the memory limit."""
        return self.times if self.choice is None else {self.choice: self.times[self.choice]}

    @property
    def is_kernel(self) -> bool:
        """True if the convolution gets a kernel, regardless of adjacent ops."""
        times = self.candidates
        return self.in_layout is not None or min(times, key=lambda name: times[name]) != _LOOPS

    def ways(self, names: Set[str], transposed: float) -> list[Way]:
        """Returns the candidate algorithms, and all algorithms in `names`, with their times.

        If tuning has chosen an algorithm, no other one gets a shorter time. `transposed` is added
        to the time of loops: the milliseconds of the transposes around them.
        """
        kernels = convolution_kernels(described(self.op), VectorUnit.of(target_cpu().features))
        sizes = {one.name: 4 * math.prod(one.weights_shape) for one in kernels}
        some = self.candidates | {name: self.times[name] for name in self.times if name in names}
        if transposed:
            some = {**some, _LOOPS: some[_LOOPS] + transposed}
        least = 0.0 if self.choice is None else self.times[self.choice]
        return [
            Way(name, max(time, least), sizes.get(name, _plain_bytes(self.op)))
            for name, time in some.items()
        ]


@dataclass(frozen=True)
class ChooseConvolutionAlgorithms(ModulePass):
    """Chooses a kernel for every convolution of the host for which a kernel is faster than
    loops.

    The weights of all kernels must fit in the memory that the function's `byoc.weight_growth`
    allows. A depthwise convolution does little work, so the layout matters more: next to other
    kernels, where tensors are NHWC anyway, it gets a kernel. Element-wise ops may stand in between.

    Options:
        threads: OpenMP threads of a run.
        algorithm: algorithm to use for every convolution that supports it. By default, the one that
            tuning found, else the one with the lowest estimate.
        calibration: calibration file, `compile(calibration=…)`; with it, nothing is measured.

    ```mlir
    %0 = relay.nn.conv2d %x, %w {strides = [1, 1], …} : …
    // becomes
    %0 = relay.nn.conv2d %x, %w {strides = [1, 1], …, algorithm = "f4x3"} : …
    ```
    """

    name = "choose-convolution-algorithms"

    threads: int = 1
    algorithm: str = ""
    calibration: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using_file(self.calibration):
            self._apply(op)

    def _apply(self, op: ModuleOp) -> None:
        with asking_of(op):
            questions = {
                block: [self._question(found) for found in convolutions(tuple(block.ops))]
                for block in host_blocks(op)
            }
        names = _worth_compiling([one.candidates for some in questions.values() for one in some])
        for block, some in questions.items():
            if some:
                self._choose(block, some, names)

    def _choose(self, block: Block, questions: Sequence[_Question], names: Set[str]) -> None:
        """Records the algorithms of a block's convolutions.

        The function's attribute `byoc.weight_growth` limits the memory of their weights.
        """
        function = block.parent_op()
        assert function is not None
        kernels = {one.op for one in questions if one.is_kernel}
        ways = [one.ways(names, self._transposed(one, kernels)) for one in questions]
        most = weight_growth(function) * sum(_plain_bytes(one.op) for one in questions)
        for one, way in zip(questions, fastest_within(ways, most), strict=True):
            if way.algorithm != _LOOPS:
                one.op.attributes[ALGORITHM] = StringAttr(way.algorithm)
        for one in questions:
            if one.in_layout is not None and _is_next_to_kernel(one.op):
                one.op.attributes[ALGORITHM] = StringAttr(one.in_layout)
            taken = one.op.attributes.get(ALGORITHM, StringAttr(_LOOPS))
            assert isinstance(taken, StringAttr)
            took(_problem(described(one.op), self.threads), taken.data)
            self._choose_schedule(one.op, taken.data)

    def _transposed(self, question: _Question, kernels: Set[ConvOp]) -> float:
        """Returns the milliseconds of the transposes between loops, in NCHW, and adjacent kernels,
        in NHWC.

        For windows larger than 1x1, other costs matter more, and the result is 0.
        """
        op = question.op
        if len(question.candidates) == 1 or math.prod(shape_of(op.weight)[2:]) > 1:
            return 0.0
        values = {value for other, value in neighbours(op) if other in kernels}
        count = sum(hint(math.prod(sizes_of(value))) for value in values)
        return (
            2
            * 4
            * count
            / calibration(ConvolutionCalibration).transformed_bytes
            / max(self.threads, 1)
        )

    def _question(self, op: ConvOp) -> _Question:
        """Returns the algorithms that are allowed for a convolution, and the one that tuning
        chose.
        """
        convolution = described(op)
        unit = VectorUnit.of(target_cpu().features)
        kernels = tuple(convolution_kernels(convolution, unit))
        if self.algorithm:
            written = self.algorithm in {one.name for one in kernels}
            return _Question(op, {self.algorithm if written else _LOOPS: 0.0})
        times = _estimates(convolution, kernels, unit, max(self.threads, 1))
        problem = _problem(convolution, self.threads)
        ways = sorted(times, key=lambda name: (*_layout(name), times[name]))
        choice = choice_for(problem, ways, nodes=_nodes(op)) if len(times) > 1 else None
        if choice is not None:
            return _Question(op, times, choice)
        if convolution.groups == 1:
            return _Question(op, times)
        in_layout = next((name for name in times if name != _LOOPS), None)
        return _Question(op, {_LOOPS: times[_LOOPS]}, in_layout=in_layout)

    def _choose_schedule(self, op: ConvOp, algorithm: str) -> None:
        """Records the schedule that tuning chose for a kernel."""
        convolution = described(op)
        kernels = convolution_kernels(convolution, VectorUnit.of(target_cpu().features))
        kernel = next((one for one in kernels if one.name == algorithm), None)
        schedules = {} if kernel is None else schedules_of(kernel)
        if not schedules:
            return
        problem = f"{algorithm},{_problem(convolution, self.threads)}"
        ways = (USUAL, *schedules)
        choice = choice_for(problem, ways, nodes=_nodes(op)) or USUAL
        took(problem, choice)
        if choice != USUAL:
            op.attributes[SCHEDULE] = StringAttr(choice)


def estimated_milliseconds(op: ConvOp | QuantizedConvOp, threads: int) -> float:
    """Returns an estimate of the host's milliseconds for a convolution by its fastest algorithm.

    Grouped int8 convolutions are converted to `i32`; their estimate is the time of `f32` loops.
    """
    convolution, unit = described(op), VectorUnit.of(target_cpu().features)
    has_kernels = convolution.groups == 1 or isinstance(op, ConvOp)
    kernels = tuple(convolution_kernels(convolution, unit)) if has_kernels else ()
    return min(_estimates(convolution, kernels, unit, threads).values())


def _nodes(op: ConvOp) -> Set[str]:
    """Returns the ONNX nodes of a convolution and of the ops that its kernel fuses.

    If loops compute it, the last of these ops may be the one that transposes the result.
    """
    return {name for one in chain_of(op).ops for name in node_names(one)}


def _is_next_to_kernel(op: ConvOp) -> bool:
    return any(ALGORITHM in other.attributes for other, _ in neighbours(op))


def _plain_bytes(op: ConvOp) -> int:
    """Returns the bytes of the unpacked weights."""
    return 4 * math.prod(shape_of(op.weight))


def _estimates(
    convolution: Convolution, kernels: Sequence[ConvolutionKernel], unit: VectorUnit, threads: int
) -> dict[str, float]:
    """Returns the milliseconds of each kernel, and of loops."""
    code = ASSUMED.kernel_code if convolution.has_few_channels else 0  # it serves no other one
    times = {one.name: _milliseconds(one, threads) + code for one in kernels if not one.is_heavy}
    known, weights = calibration(ConvolutionCalibration), convolution.outputs * convolution.depth
    pixels = hint(math.prod(convolution.source.shape) + math.prod(convolution.result.shape))
    traffic = 4 * (pixels / known.transformed_bytes + weights / known.weight_bytes)
    times[_LOOPS] = (_LOOPS_FACTOR * _direct(convolution, unit) + traffic) / threads
    if convolution.groups > 1:
        times[_LOOPS] += _of_lines(convolution, unit) / threads
    return times


def _of_lines(convolution: Convolution, unit: VectorUnit) -> float:
    """Returns the milliseconds of the loops' overhead per row, on one thread."""
    lines = hint(math.prod(convolution.result.shape[:3])) * convolution.depth
    return _LINE_VECTORS * lines * unit.lanes / calibration(ConvolutionCalibration).products


def _layout(name: str) -> tuple[bool, bool]:
    """Returns a sort key of an algorithm by the layout of its tensors.

    So tuning tries a whole model first in NHWC, then with loops, then with Winograd's algorithms.
    """
    return name in ALGORITHMS, name == _LOOPS


def _problem(convolution: Convolution, threads: int) -> str:
    """Returns a string of all parameters on which the choice of an algorithm depends."""
    it = convolution
    sizes = (it.source.shape, it.result.shape, it.window, it.strides, it.dilation)
    groups = f"groups {it.groups}," * (it.groups > 1)
    text = f"{groups}convolution {(*sizes, it.begins, it.ends)}, threads {threads}"
    return text.replace(" ", "")


def _worth_compiling(convolutions: Sequence[Times]) -> Set[str]:
    """Returns the algorithms, without Winograd's algorithms whose gain over others is too small."""
    names = {name for times in convolutions for name in times}

    def milliseconds(among: Set[str]) -> float:
        return sum(
            min((times[name] for name in among & times.keys()), default=math.inf)
            for times in convolutions
        )

    while True:
        without = {name: milliseconds(names - {name}) for name in names & ALGORITHMS.keys()}
        least = min(without, key=lambda name: (without[name], name), default=None)
        if least is None or without[least] - milliseconds(names) >= _WORTH_COMPILING:
            return names
        names.remove(least)


def _direct(convolution: Convolution, unit: VectorUnit) -> float:
    """Returns the milliseconds of all MACs of a direct algorithm, on one thread."""
    longest = VectorUnit.of(target_cpu().features).lanes
    return (
        convolution.products * longest / (calibration(ConvolutionCalibration).products * unit.lanes)
    )


def _milliseconds(kernel: ConvolutionKernel, threads: int) -> float:
    computed = kernel.panels * kernel.unit.panel / kernel.convolution.outputs
    direct = _direct(kernel.convolution, kernel.unit) * computed
    return kernel.milliseconds(direct / threads, threads)
