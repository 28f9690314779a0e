"""Cases of a campaign, each defined by a seed and a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from byoc_mlir.testing.samples.onnx_nodes.symbolic import with_symbols
from byoc_mlir_fuzz.case import Case
from byoc_mlir_fuzz.mutate import mutated_bytes, mutated_model
from byoc_mlir_fuzz.mutate_mlir import mutated_text
from byoc_mlir_fuzz.random_model import random_graph


@dataclass(frozen=True)
class Plan:
    """Plan of a campaign's cases; equal plans and numbers give equal cases on every machine."""

    seed: int = 0
    symbolic: bool = False
    """True if sizes of inputs are symbolic."""
    mutate: bool = False
    """True if models are damaged, and only survival counts."""

    def case(self, number: int) -> Case:
        """Returns the case of a number."""
        rng = Random(f"byoc {self.seed}/{number}")
        graph, model = random_graph(rng)
        feeds = (graph.feeds,)
        name = f"{self.seed}/{number}"
        if self.symbolic:
            model, feeds = with_symbols(graph, model)
        case = Case(name, model.SerializeToString(deterministic=True), feeds)
        if not self.mutate:
            return case
        kind = rng.random()
        if kind < 0.3:
            text = mutated_text(rng, case.model)
            if text is not None:
                return Case(name, text, form="mlir", mutated=True)
        damaged = mutated_bytes(rng, case.model) if kind > 0.8 else mutated_model(rng, model)
        return replace(case, model=damaged, feeds=(), mutated=True)

    def cases(self, start: int = 0) -> Iterator[Case]:
        """Returns an endless iterator over the cases from a number on."""
        return map(self.case, count(start))
