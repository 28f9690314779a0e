"""Capture of a module as a graph, by PyTorch's exporter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from byoc_mlir.errors import ByocError, NodeProblem, UnsupportedModelError
from byoc_mlir.torch.places import node_problem, place_of_error
from byoc_mlir.torch.repairs import arguments_of, check_forms, repairs
from byoc_mlir.torch.results import Results, split_results
from byoc_mlir.torch.tensors import pytorch


def capture(
    module: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    dynamic_shapes: Any,
) -> tuple[Any, Results]:
    """Captures a module as a functional `ExportedProgram`, which shares its parameters.

    Returns:
        The program, which computes tensors, and the results of the module that come from them.

    Raises:
        UnsupportedModelError: the module cannot be captured, or does more than compute outputs;
            it names the line of the user's code.
    """
    torch = pytorch()
    config = pytorch("torch.fx.experimental._config")
    try:
        # sizes of 1 in the example say nothing about other sizes
        with torch.no_grad(), config.patch(backed_size_oblivious=True):
            program = torch.export.export(
                module,
                *_of_our_own(arguments, keywords),
                dynamic_shapes=_without_names(dynamic_shapes, torch.export.Dim.DYNAMIC),
            )
            eager = [_value(one) for one in program.graph.output_node().args[0]]
            program = program.run_decompositions(dict(repairs()))
    except ByocError:
        raise
    except Exception as error:  # whatever the module raises, or PyTorch about it
        raise _refused(module, place_of_error(error), _summary(error)) from error
    check_effects(program)
    return program, split_results(program, eager)


def _value(output: Any) -> Any:
    return output.meta["val"] if hasattr(output, "meta") else output


def _of_our_own(
    arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments as new tensors of the same memory.

    The exporter marks dynamic sizes on a tensor, and later uses of the caller's tensors would read
    the marks. Arguments that share memory are moved to separate memory, since the exporter refuses
    changes of shared memory.
    """
    torch, seen = pytorch(), set[int]()

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if leaf.layout == torch.strided:
            memory = leaf.untyped_storage().data_ptr()
            if memory in seen:
                return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype)
            seen.add(memory)
        return leaf.detach()

    return pytorch("torch.utils._pytree").tree_map(own, (tuple(arguments), dict(keywords)))


def check_effects(program: Any) -> None:
    """Refuses a program that does more than compute outputs, or that ONNX computes otherwise.

    Raises:
        UnsupportedModelError: it changes tensors in place, draws random numbers, or has operations
            whose form in ONNX differs.
    """
    problems = [*_changes(program), *_random_nodes(program), *check_forms(program)]
    if problems:
        raise UnsupportedModelError(problems)


def _without_names(shapes: Any, dynamic: Any) -> Any:
    """Returns dynamic shapes with `dynamic` in place of names, which the exporter does not take."""
    if isinstance(shapes, str):
        return dynamic
    if isinstance(shapes, Mapping):
        items = cast("Mapping[Any, Any]", shapes).items()
        return {key: _without_names(value, dynamic) for key, value in items}
    if isinstance(shapes, list | tuple):
        parts = cast("Sequence[Any]", shapes)
        return type(shapes)(_without_names(value, dynamic) for value in parts)
    return shapes


def _refused(module: Any, place: str, reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        [NodeProblem(place or "the module", type(module).__name__, "", reason)]
    )


def _summary(error: Exception) -> str:
    """Returns the first paragraph of PyTorch's message, which may go on for pages."""
    text = str(error).split("\n\n")[0].strip()
    return f"PyTorch cannot export it: {type(error).__name__}: {text}"


def _changes(program: Any) -> Iterator[NodeProblem]:
    """Yields the tensors that the module changes in place."""
    signature = program.graph_signature
    for changed in (
        *signature.buffers_to_mutate.values(),
        *signature.user_inputs_to_mutate.values(),
    ):
        yield NodeProblem(
            changed,
            "tensor",
            "",
            "the module changes it in place, and compiled modules change nothing; for batch norm"
            " and the like, call module.eval()",
        )


def _random_nodes(program: Any) -> Iterator[NodeProblem]:
    torch = pytorch()
    for node in program.graph.nodes:
        is_seeded = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if is_seeded and not any(arguments_of(node).get(name) == 0 for name in _NO_CHANCE):
            reason = "it draws random numbers; for dropout, call module.eval()"
            yield node_problem(node, reason)


_NO_CHANCE = ("dropout_p", "dropout", "train")
"""Arguments of operations that draw no random values if one of these is zero."""
