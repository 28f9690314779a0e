"""Tiered execution: an interpreter runs a model until it is compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from byoc_mlir.errors import ExecutionError
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode, Parts, Step
from byoc_mlir.runtime.plan import NOT_COMPILED, Node
from byoc_mlir.tensors import Array, TensorInfo

LONGEST_ANSWER = 4.0
"""Maximum seconds of a run in the interpreter tier; after a longer one, calls wait for the
program."""

Answer: TypeAlias = Callable[[Mapping[str, Array]], dict[str, Array]]
"""Interpreter tier: computes outputs by name from inputs by name. It may raise anything."""


class BackgroundCompilation(Protocol):
    """Compilation of a model in the background."""

    def start(self, inputs: Mapping[str, Array]) -> None:
        """Starts the compilation for inputs of the same shapes and types; a second call does
        nothing.
        """
        ...

    def has_started(self) -> bool:
        """True if the compilation was started, even if it is over."""
        ...

    def is_over(self) -> bool:
        """True if the compilation has finished or failed."""
        ...

    def wait(self) -> None:
        """Waits until the compilation is over; returns immediately if it was not started."""
        ...

    def result(self) -> LoadedNode:
        """Returns the compiled model after the compilation is over; compiles missing parts in the
        caller's thread.

        Raises:
            ByocError: the model cannot be compiled.
        """
        ...

    def stop(self) -> None:
        """Stops the compilation, because the result is not needed."""
        ...


class LoadedTier(LoadedNode):
    """Model that an interpreter runs until it is compiled, and the compiled program afterwards.

    Reports, exports and other queries wait for the compiled program.

    Args:
        inputs: inputs of the model, in order.
        outputs: names of the model's outputs, in order.
        answer: interpreter tier, which runs while the model is compiled.
        compilation: compilation of the model.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        answer: Answer,
        compilation: BackgroundCompilation,
    ):
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self._arguments = Arguments(self.inputs)
        self._answer: Answer | None = answer
        self._compilation = compilation
        self._compiled: LoadedNode | None = None
        self._latest: Mapping[str, Array] | None = None
        """Inputs of the last run in the interpreter tier; the compiled program has not run on
        them."""
        self._lock = ForkSafeLock()
        self._is_closed = False

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        if self._compiled is not None:
            return self._compiled.run(inputs, parts)
        if parts is not None:
            return self.settled().run(inputs, parts)
        arrays = self._arguments.checked(inputs)
        given = {info.name: array for info, array in zip(self.inputs, arrays, strict=True)}
        answered = self._answered(given)
        if answered is not None:
            return answered
        self._latest = None
        return self.settled().run(given)

    def steps(self, inputs: Mapping[str, Array], changing: Sequence[str]) -> Step:
        return self.settled().steps(inputs, changing)

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        self.settled().warmup(shapes)

    def wait(self) -> None:
        if self._compiled is not None or self._compilation.has_started():  # else no sizes are known
            self._used()

    def known(self) -> Node:
        return self._used().known()

    def exported(self, shapes: Mapping[str, Shape] | None) -> Node:
        return self.settled().exported(shapes)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._answer = None
            self._compilation.stop()
            if self._compiled is not None:
                self._compiled.close()

    def _answered(self, given: Mapping[str, Array]) -> dict[str, Array] | None:
        """Returns the outputs of the interpreter tier, or None if the compiled tier has to run."""
        answer = self._answer
        if answer is None or self._compilation.is_over() or not _sizes_agree(self.inputs, given):
            return None
        start = time.perf_counter()
        try:
            outputs = answer(given)
        except Exception:  # the compiled program raises the error, or has none
            return None
        self._compilation.start(given)
        self._latest = given
        if time.perf_counter() - start > LONGEST_ANSWER:
            self._answer = None
        return outputs

    def _used(self) -> LoadedNode:
        """Returns the compiled node as `settled` does, for reports and `wait`; requires a started
        compilation.

        Raises:
            ExecutionError: the node is closed, or has no fixed shapes and has not run.
        """
        is_unknown = self._compiled is None and not self._compilation.has_started()
        if is_unknown and not self._is_closed:
            raise ExecutionError(NOT_COMPILED)
        compiled = self.settled()
        latest, self._latest = self._latest, None
        if latest is not None and not self._is_closed:
            compiled.run(latest)
        return compiled

    def settled(self) -> LoadedNode:
        """Waits for the compiled model and returns it, also after `close`.

        Raises:
            ExecutionError: the node was closed before the model was compiled.
            ByocError: the model cannot be compiled.
        """
        if not self._is_closed and self._compiled is None:
            self._compilation.wait()  # other calls use the interpreter tier meanwhile
        with self._lock:
            if self._compiled is None:
                if self._is_closed:
                    raise ExecutionError("the executable is closed; compile the model again")
                self._answer = None  # its memory is free before the program is loaded
                self._compiled = self._compilation.result()
            return self._compiled


def _sizes_agree(infos: Sequence[TensorInfo], given: Mapping[str, Array]) -> bool:
    """True if each symbolic size has the same value in all inputs."""
    sizes: dict[str, int] = {}
    return all(
        sizes.setdefault(name, size) == size
        for info in infos
        for name, size in zip(info.shape, given[info.name].shape, strict=True)
        if isinstance(name, str)
    )
