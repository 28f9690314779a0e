"""Modules of PyTorch, compiled whole by `from_torch`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.compiler import compile
from byoc_mlir.errors import ByocError, ExecutionError, InvalidInputError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.program import Array
from byoc_mlir.torch.capture import capture
from byoc_mlir.torch.conversion import convert
from byoc_mlir.torch.keywords import with_named_keywords
from byoc_mlir.torch.results import Results
from byoc_mlir.torch.sizes import checked_sizes
from byoc_mlir.torch.tensors import array_of, pytorch, tensor_of

_WHOLE = 256
"""Size in words of the largest parameter that is compared as a whole."""

_SAMPLES = 16
"""Number of words of each larger parameter that are compared."""


class Parameters:
    """State of tensors at the time when a module was compiled.

    PyTorch counts changes of a tensor, except for changes through its `.data` and changes of
    tensors that are created in inference mode. Samples of words, spread over the memory, detect
    these.

    Args:
        named: tensors with their names.
    """

    def __init__(self, named: Iterable[tuple[str, Any]]):
        self._held = [(name, tensor, _state(tensor)) for name, tensor in named]
        self._words = [_words(tensor, name) for name, tensor, _ in self._held]
        self._seen = [words.copy() for words in self._words]
        self._all_seen = self._all()

    def changed(self) -> str | None:
        """Returns the name of a tensor that has changed since, or `None`."""
        for name, tensor, state in self._held:
            if _state(tensor) != state:
                return name
        if self._all() == self._all_seen:
            return None
        words = zip(self._held, self._words, self._seen, strict=True)
        return next(held[0] for held, now, then in words if not np.array_equal(now, then))

    def _all(self) -> bytes:
        return np.concatenate(self._words).tobytes() if self._words else b""


def _state(tensor: Any) -> tuple[int, int]:
    """Returns a tensor's address, and how often PyTorch has recorded a change of it."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


def _words(tensor: Any, name: str) -> Array:
    """Returns words of a tensor's memory: all, or samples spread over it."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    length = 1 + sum((size - 1) * stride for size, stride in sizes) if tensor.numel() else 0
    memory = array_of(tensor.detach().as_strided((length,), (1,)), name)
    memory = memory.reshape(-1).view(np.uint8)
    words = memory.view(np.int32) if memory.size % 4 == 0 else memory
    return words if words.size <= _WHOLE else words[:: words.size // _SAMPLES | 1]


@dataclass(frozen=True)
class _ModuleArgument:
    """Argument of a module: a tensor, or a value that is compiled in."""

    name: str
    is_tensor: bool
    value: Any = None

    @staticmethod
    def all_of(specs: Iterable[Any], tensors: Sequence[str]) -> list[_ModuleArgument]:
        """Returns the inputs that the signature of a program has.

        Args:
            specs: inputs of the signature.
            tensors: names of tensors in the model, which may differ from the program's.
        """
        arguments = [spec.arg for spec in specs if spec.kind.name == "USER_INPUT"]
        names = iter(tensors)
        return [
            _ModuleArgument(one.name, False, one.value)
            if hasattr(one, "value")
            else _ModuleArgument(next(names), True)
            for one in arguments
        ]

    def check(self, leaf: Any, tensor: type) -> None:
        """Refuses an argument that is not like the example's; `tensor` is the class of tensors."""
        if self.is_tensor:
            if not isinstance(leaf, tensor):
                raise InvalidInputError(f"argument '{self.name}' is {leaf!r}, accepted is a tensor")
        elif leaf != self.value:
            raise InvalidInputError(
                f"argument '{self.name}' is {leaf!r}; the module was compiled for {self.value!r}"
            )


class CompiledModule:
    """Compiled module: called as the module is, with tensors, it returns the module's results.

    Attributes:
        executable: the executable, with `report()` and `export_library()`.
    """

    def __init__(self, program: Any, results: Results, executable: Executable):
        self.executable, self._results = executable, results
        self._tensor: type = pytorch().Tensor
        self._tree = pytorch("torch.utils._pytree")
        self._call = program.call_spec
        self._keywords: Sequence[str] = self._call.in_spec.child(1).context
        signature = program.graph_signature
        inputs = [one.name for one in executable.inputs]
        self._inputs = _ModuleArgument.all_of(signature.input_specs, inputs)
        self._outputs = executable.outputs
        self._parameters = Parameters(chain(program.named_parameters(), program.named_buffers()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module; no result has a gradient.

        Raises:
            InvalidInputError: the arguments are not like the example's, or require a gradient.
            ExecutionError: a parameter was changed since the module was compiled.
        """
        with boundary("run"):
            changed = self.changed_parameter()
            if changed is not None:
                raise ExecutionError(
                    f"parameter '{changed}' was changed after the module was compiled; compile the"
                    " module again"
                )
            results = self.run_leaves(self._leaves(args, kwargs))
            return self._tree.tree_unflatten(results, self._call.out_spec)

    def run_leaves(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Runs the module without checking that its parameters are unchanged.

        Args:
            leaves: the arguments, without their structure.

        Returns:
            The results, without their structure.

        Raises:
            InvalidInputError: as when the module is called.
        """
        arrays: dict[str, Any] = {}
        for place, leaf in zip(self._inputs, leaves, strict=True):
            place.check(leaf, self._tensor)
            if place.is_tensor:
                arrays[place.name] = array_of(leaf, f"argument '{place.name}'")
        if not self._results.needs_program:
            return self._results.of(leaves, ())
        arrays = self.executable.run(arrays)
        return self._results.of(leaves, [tensor_of(arrays[name]) for name in self._outputs])

    def changed_parameter(self) -> str | None:
        """Returns the name of a parameter that changed after compilation, or `None` if none did."""
        return self._parameters.changed()

    def close(self) -> None:
        """Frees all native memory; nothing may be running."""
        self.executable.close()

    def __repr__(self) -> str:
        return f"<CompiledModule of {self.executable!r}>"

    def _leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the arguments without their structure, which must equal the example's."""
        if set(kwargs) == set(self._keywords):
            kwargs = {name: kwargs[name] for name in self._keywords}
        leaves, spec = self._tree.tree_flatten((tuple(args), dict(kwargs)))
        if spec != self._call.in_spec:
            raise InvalidInputError(
                f"the arguments are {spec}, the module was compiled for {self._call.in_spec}"
            )
        return leaves


def from_torch(
    module: Any,
    example: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    copy_parameters: bool = False,
    **options: Any,
) -> CompiledModule:
    """Compiles a module of PyTorch for this machine.

    Args:
        module: a `torch.nn.Module` in evaluation mode.
        example: arguments for the capture; their sizes, and values that are no tensors, are
            compiled in.
        kwargs: keyword arguments of the example.
        dynamic_shapes: the sizes that change from call to call, as for `torch.export.export`;
            names of dimensions may be text, `{"tokens": {1: "length"}}`.
        copy_parameters: if true, all matrices are copied into the fastest layout, else kernels read
            them in place if they can.
        options: of `byoc_mlir.compile`; the default of `threads` is PyTorch's. Nothing is put into
            a cache.

    Raises:
        InvalidInputError: the module does not take the example, or the example does not have the
            sizes that `dynamic_shapes` names.
        UnsupportedModelError: the module cannot be captured, or has operations that cannot be
            compiled; the message has the operation and the line of the user's code.
        MissingExtraError: PyTorch is not installed. Other errors are those of `byoc_mlir.compile`.
    """
    with boundary("from_torch"):
        torch = pytorch()
        check_argument("the module", module, torch.nn.Module, "a torch.nn.Module")
        check_argument("example", example, tuple | list, "a tuple of arguments")
        check_argument("kwargs", kwargs, Mapping | None, "arguments by name")
        keywords = kwargs or {}
        sizes = checked_sizes(module, example, keywords, dynamic_shapes)
        options = {**options, "copy_parameters": copy_parameters}
        check_options(options)
        if sizes is None:
            return compile_program(*capture(module, example, keywords, None), options)
        module = with_named_keywords(module, keywords)
        captured = capture(module, example, keywords, sizes.of_arguments)
        return compile_program(*captured, options, sizes.of_tensors)


def compile_program(
    program: Any, results: Results, options: Mapping[str, Any], sizes: Sequence[Any] | None = None
) -> CompiledModule:
    """Compiles a module that `capture` has captured.

    Args:
        program: an `ExportedProgram`.
        results: the module's results, from the tensors that the program computes.
        options: options of `from_torch`, `copy_parameters` among them; errors are as there.
        sizes: the dynamic sizes of each tensor that it takes; names in it name dimensions.
    """
    options = {"threads": pytorch().get_num_threads(), **options}
    model = convert(program, sizes, options.pop("copy_parameters", False))
    return CompiledModule(program, results, compile(model, cache=False, **options))


def check_options(options: Mapping[str, Any]) -> None:
    """Refuses options that `from_torch` does not have.

    Raises:
        ByocError: an option is unknown; the message has the accepted ones.
    """
    if "cache" in options:
        raise ByocError("cache is not accepted: what shares a module's memory is not kept")
    accepted = {"copy_parameters", *inspect.signature(compile).parameters} - {"model", "cache"}
    for name in options:
        if name not in accepted:
            raise ByocError(
                f"there is no option {name!r}; accepted are {', '.join(sorted(accepted))}"
            )
