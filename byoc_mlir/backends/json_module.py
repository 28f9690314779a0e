"""Execution of JSON graphs: the part common to all engines. Nothing here needs the compiler."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import safetensors
from safetensors.numpy import load, save

from byoc_mlir.errors import ExecutionError
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.module import RegionFunction, RegionModule
from byoc_mlir.runtime.program import Array

_GRAPH = "graph"


class GraphEngine(ABC):
    """A built graph, which runs any number of times, one call after the other."""

    @abstractmethod
    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        """Computes the graph."""


class JsonModule(RegionModule):
    """A JSON graph (`json_graph`) and its constants; subclasses build their engine for it."""

    def __init__(self, graph: Mapping[str, Any], constants: Mapping[str, Array]):
        self.graph, self.constants = graph, constants

    @classmethod
    def load(cls, data: bytes) -> Self:
        try:
            tensors = load(data)
            graph = json.loads(tensors.pop(_GRAPH).tobytes())
        except (safetensors.SafetensorError, KeyError, ValueError) as error:
            raise ExecutionError(f"the bytes are no JSON graph with constants: {error}") from error
        return cls(graph, tensors)

    def save(self) -> bytes:
        text = np.frombuffer(json.dumps(self.graph).encode(), np.uint8)
        arrays = {name: np.ascontiguousarray(array) for name, array in self.constants.items()}
        return save({_GRAPH: text, **arrays})

    def get_source(self) -> str:
        nodes = ",\n  ".join(map(json.dumps, self.graph["nodes"]))
        symbol, heads = json.dumps(self.graph["symbol"]), json.dumps(self.graph["heads"])
        return f'{{"symbol": {symbol},\n "nodes": [\n  {nodes}],\n "heads": {heads}}}\n'

    def get_function(self, symbol: str) -> RegionFunction:
        engine, lock = self.build_engine(), ForkSafeLock()

        def run(inputs: list[Array], outputs: list[Array]) -> None:
            with lock:  # the engine's buffers belong to one call at a time
                engine.run(inputs, outputs)

        return run

    @abstractmethod
    def build_engine(self) -> GraphEngine:
        """Builds the engine for `graph` and `constants`; called once for each place that runs
        it.
        """
