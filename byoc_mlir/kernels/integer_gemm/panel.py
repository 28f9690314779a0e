"""Packed groups of a panel of operand B in memory, and the matching groups of operand A.

A run is a sequence of groups that are contiguous in operand A, such as a row of a window.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.integer_gemm.overlapping import LINE_WORDS
from byoc_mlir.kernels.integer_gemm.parameters import IntegerGemmParameters
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit


@dataclass(frozen=True)
class Run:
    """Run of a panel's groups: the number of groups before it, and its length."""

    first: SSAValue
    """Number of the panel's groups before the run."""
    words: SSAValue


@dataclass(frozen=True)
class Panel:
    """Panel whose runs have equal length, and are contiguous in both operands."""

    function: FunctionBuilder
    weights: SSAValue
    """Address of the panel's elements of operand B."""
    words: SSAValue
    """Number of the panel's packed groups."""
    run_words: SSAValue

    @staticmethod
    def of(
        function: FunctionBuilder,
        unit: IntegerUnit,
        parameters: IntegerGemmParameters[SSAValue],
        right: SSAValue,
        number: SSAValue,
    ) -> Panel:
        """Returns panel number `number` of operand B."""
        runs = function.multiply(parameters.window_height, parameters.window_width)
        words = function.multiply(runs, parameters.words)
        before = function.multiply(function.multiply(number, unit.panel), words)
        weights = function.gep(right, before, unit.right_word)
        return Panel(function, weights, words, parameters.words)

    def run(self, number: SSAValue) -> Run:
        """Returns run `number` of the panel."""
        return Run(self.function.multiply(number, self.run_words), self.run_words)

    def left(self, run: Run, word: SSAValue) -> SSAValue:
        """Returns the byte offset of a packed group of operand A, relative to the start of its
        run.
        """
        return self.function.multiply(word, i32.size)


@dataclass(frozen=True)
class OverlappingPanel(Panel):
    """Panel of overlapping groups, in the memory format of `OverlappingWords.packed`."""

    begins: SSAValue
    """Address of the index of the first group of each run of the panel."""
    places: SSAValue
    """Address of the positions of the panel's groups in their runs."""

    @staticmethod
    def of(
        function: FunctionBuilder,
        unit: IntegerUnit,
        parameters: IntegerGemmParameters[SSAValue],
        right: SSAValue,
        number: SSAValue,
    ) -> OverlappingPanel:
        runs = function.multiply(parameters.window_height, parameters.window_width)
        all_runs = function.multiply(runs, parameters.panels)
        places = function.add(all_runs, 1)
        told = function.add(places, _number(function, right, all_runs))
        lines = function.divide(function.add(told, LINE_WORDS - 1), LINE_WORDS)
        begins = function.gep(right, function.multiply(number, runs), i32)
        first = _number(function, begins, function.integer(0))
        words = function.subtract(_number(function, begins, runs), first)
        before = function.add(
            function.multiply(lines, LINE_WORDS), function.multiply(first, unit.panel)
        )
        return OverlappingPanel(
            function,
            function.gep(right, before, i32),
            words,
            parameters.words,
            begins,
            function.gep(right, function.add(places, first), i32),
        )

    def run(self, number: SSAValue) -> Run:
        first, begin, end = (
            _number(self.function, self.begins, at)
            for at in (self.function.integer(0), number, self.function.add(number, 1))
        )
        function = self.function
        return Run(function.subtract(begin, first), function.subtract(end, begin))

    def left(self, run: Run, word: SSAValue) -> SSAValue:
        return _number(self.function, self.places, self.function.add(run.first, word))


def _number(function: FunctionBuilder, address: SSAValue, index: SSAValue) -> SSAValue:
    return function.sign_extend(function.load(function.gep(address, index, i32), i32))
