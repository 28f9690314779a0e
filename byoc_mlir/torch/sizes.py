"""What a caller says of sizes that change, against the example, before PyTorch sees it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.torch.tensors import pytorch

_Sizes: TypeAlias = Iterator[tuple[str, int, Any]]
"""Which dimension, its size in the example, and what is said of it."""


def check_sizes(
    module: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], shapes: Any
) -> None:
    """Refuses an example that the module does not take, and sizes that the example does not have.

    Args:
        module: whose `forward` names the arguments.
        arguments: of the example.
        keywords: its keyword arguments.
        shapes: the sizes that change; `None` if there are none.

    Raises:
        InvalidInputError: it says which argument, what was found and what is accepted.
    """
    given = _arguments(module, arguments, keywords, shapes)
    known: dict[str, tuple[str, int]] = {}
    for where, size, said in _sizes("dynamic_shapes", given, shapes):
        if not isinstance(said, str):
            continue
        other, other_size = known.setdefault(said, (where, size))
        if size != other_size:
            raise InvalidInputError(
                f"{where} and {other} have the same name, '{said}', and in the example the sizes"
                f" {size} and {other_size}; accepted is a name for each size"
            )


def _arguments(
    module: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], shapes: Any
) -> Mapping[str, Any]:
    """The arguments by name, as `forward` has them; those of its `**others` are spread, unless
    shapes are said for `others`.
    """
    signature = inspect.signature(module.forward)
    try:
        given = signature.bind(*arguments, **keywords).arguments
    except TypeError as error:
        raise InvalidInputError(
            f"the example does not fit {type(module).__name__}.forward{signature}: {error}"
        ) from error
    for name, parameter in signature.parameters.items():
        is_spread = parameter.kind is parameter.VAR_KEYWORD and isinstance(shapes, Mapping)
        if is_spread and name in given and name not in shapes:
            given = {**given, **given[name]}
            del given[name]
    return given


def _sizes(where: str, value: Any, said: Any) -> _Sizes:
    """The dimensions of all tensors in a value, each with what is said of it."""
    if said is None:
        return
    if isinstance(value, pytorch().Tensor):
        yield from _sizes_of_tensor(where, value, said)
    elif isinstance(value, Mapping):
        yield from _sizes_of_parts(where, cast("Mapping[Any, Any]", value), said)
    elif isinstance(value, list | tuple):
        parts = dict(enumerate(cast("Sequence[Any]", value)))
        yield from _sizes_of_parts(where, parts, said)
    elif isinstance(said, Mapping | list | tuple):
        raise InvalidInputError(
            f"{where} is {said!r}, and the example has {value!r} there, which is no tensor;"
            " accepted is None"
        )


def _sizes_of_tensor(where: str, tensor: Any, said: Any) -> _Sizes:
    shape = tuple(tensor.shape)
    if isinstance(said, list | tuple) and len(said) == len(shape):
        said = dict(enumerate(cast("Sequence[Any]", said)))
    if not isinstance(said, Mapping):
        raise InvalidInputError(
            f"{where} is {said!r}; the example has a tensor of shape {list(shape)} there, and"
            f" accepted are {{dimension: name}} and a list of {len(shape)}"
        )
    for dimension, name in cast("Mapping[Any, Any]", said).items():
        if dimension not in range(len(shape)):
            dimensions = ", ".join(map(str, range(len(shape)))) or "none"
            raise InvalidInputError(
                f"{where} names dimension {dimension!r} of a tensor of shape {list(shape)};"
                f" accepted: {dimensions}"
            )
        yield f"{where}[{dimension}]", shape[dimension], name


def _sizes_of_parts(where: str, parts: Mapping[Any, Any], said: Any) -> _Sizes:
    if isinstance(said, list | tuple) and len(said) == len(parts):
        said = dict(zip(parts, cast("Sequence[Any]", said), strict=True))
    if not isinstance(said, Mapping) or said.keys() != parts.keys():
        accepted = ", ".join(map(repr, parts)) or "none"
        raise InvalidInputError(
            f"{where} is {said!r}; accepted is one entry, or None, for each of: {accepted}"
        )
    for name, value in parts.items():
        yield from _sizes(f"{where}[{name!r}]", value, said[name])
