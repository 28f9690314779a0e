"""The words of a panel of right numbers in memory, and the left words that they are multiplied by.

A run is what is multiplied without a step between two places of the window.
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
    """Some words of a panel."""

    first: SSAValue
    """How many words of the panel come before."""
    words: SSAValue


@dataclass(frozen=True)
class Panel:
    """As many words in each run, one behind the other in both numbers."""

    function: FunctionBuilder
    weights: SSAValue
    """Where its right numbers begin."""
    words: SSAValue
    """How many there are."""
    run_words: SSAValue

    @staticmethod
    def of(
        function: FunctionBuilder,
        unit: IntegerUnit,
        parameters: IntegerGemmParameters[SSAValue],
        right: SSAValue,
        number: SSAValue,
    ) -> Panel:
        """The panel of a number in the memory of right numbers."""
        runs = function.multiply(parameters.window_height, parameters.window_width)
        words = function.multiply(runs, parameters.words)
        before = function.multiply(function.multiply(number, unit.panel), words)
        weights = function.gep(right, before, unit.right_word)
        return Panel(function, weights, words, parameters.words)

    def run(self, number: SSAValue) -> Run:
        """One of its runs."""
        return Run(self.function.multiply(number, self.run_words), self.run_words)

    def left(self, run: Run, word: SSAValue) -> SSAValue:
        """How many bytes a left word of a run is behind the first."""
        return self.function.multiply(word, i32.size)


@dataclass(frozen=True)
class OverlappingPanel(Panel):
    """What `OverlappingWords.packed` has of a panel."""

    begins: SSAValue
    """Where the first words of its runs stand."""
    places: SSAValue
    """Where the places of its words do."""

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


def panel_of(
    function: FunctionBuilder,
    unit: IntegerUnit,
    parameters: IntegerGemmParameters[SSAValue],
    right: SSAValue,
    number: SSAValue,
) -> Panel:
    """The panel of a number in the memory of right numbers."""
    kind = OverlappingPanel if unit.overlaps else Panel
    return kind.of(function, unit, parameters, right, number)


def _number(function: FunctionBuilder, address: SSAValue, index: SSAValue) -> SSAValue:
    return function.sign_extend(function.load(function.gep(address, index, i32), i32))
