"""Validation of the caller's dynamic sizes against the example, before PyTorch sees them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.torch.keywords import others_of
from byoc_mlir.torch.tensors import pytorch

_Sizes: TypeAlias = Iterator[tuple[str, int, Any]]
"""Triples of a dimension's name, its size in the example, and the caller's declaration."""


@dataclass(frozen=True)
class Sizes:
    """Declared sizes of an example, in the order in which `forward` takes the arguments, since
    PyTorch names sizes by position.
    """

    of_arguments: Mapping[str, Any]
    """Sizes by argument, in the argument's structure; keywords stand in place of `**others`."""
    of_tensors: Sequence[Any]
    """Sizes of each tensor, without the structure of arguments."""


def checked_sizes(
    module: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], shapes: Any
) -> Sizes | None:
    """Returns the dynamic sizes, checked against an example.

    Args:
        module: a module whose `forward` names the arguments.
        arguments: positional arguments of the example.
        keywords: its keyword arguments.
        shapes: the dynamic sizes that the caller declares; `None` if there are none.

    Raises:
        InvalidInputError: the module does not take the example, or the example lacks a declared
            size; the message has the argument, its value and the accepted ones.
    """
    others = others_of(module)
    given = _arguments(module, arguments, keywords)
    if isinstance(shapes, Mapping) and others in given and others not in shapes:
        given |= given.pop(others)
    _check(given, shapes)
    if shapes is None:
        return None
    said = _by_key(given, shapes)
    if others is not None and others in given:
        said |= _by_key(given[others], said.pop(others))
        given |= given.pop(others)
    names = [*(name for name in given if name not in keywords), *keywords]
    return _sizes_of({name: given[name] for name in names}, said)


def _check(given: Mapping[str, Any], shapes: Any) -> None:
    """Refuses sizes that the arguments do not have."""
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


def _sizes_of(given: Mapping[str, Any], said: Mapping[str, Any]) -> Sizes:
    tree = pytorch("torch.utils._pytree")
    leaves, structure = tree.tree_flatten(given)
    flat = list(_of_leaves(given, said))
    tensor: type = pytorch().Tensor
    of_tensors = [one for leaf, one in zip(leaves, flat, strict=True) if isinstance(leaf, tensor)]
    return Sizes(tree.tree_unflatten(flat, structure), of_tensors)


def _of_leaves(value: Any, said: Any) -> Iterator[Any]:
    """Yields the declaration of each tensor and of each other leaf in a value."""
    parts = _parts(value)
    if said is None:
        yield from (None for _ in pytorch("torch.utils._pytree").tree_leaves(value))
    elif parts is None:
        yield said
    else:
        of_parts = _by_key(parts, said)
        for key, part in parts.items():
            yield from _of_leaves(part, of_parts[key])


def _arguments(
    module: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the arguments by their names in `forward`."""
    signature = inspect.signature(module.forward)
    try:
        return dict(signature.bind(*arguments, **keywords).arguments)
    except TypeError as error:
        raise InvalidInputError(
            f"the example does not fit {type(module).__name__}.forward{signature}: {error}"
        ) from error


def _sizes(where: str, value: Any, said: Any) -> _Sizes:
    """Yields the dimensions of all tensors in a value, each with its declaration."""
    if said is None:
        return
    if isinstance(value, pytorch().Tensor):
        yield from _sizes_of_tensor(where, value, said)
    elif (parts := _parts(value)) is not None:
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
    of_parts = _by_key(parts, said)
    if of_parts.keys() != parts.keys():
        accepted = ", ".join(map(repr, parts)) or "none"
        raise InvalidInputError(
            f"{where} is {said!r}; accepted is one entry, or None, for each of: {accepted}"
        )
    for name, value in parts.items():
        yield from _sizes(f"{where}[{name!r}]", value, of_parts[name])


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Returns the parts of a structure by key; `None` for a leaf."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("Sequence[Any]", value)))
    return None


def _by_key(parts: Mapping[Any, Any], said: Any) -> dict[Any, Any]:
    """Returns the declaration of each part; empty if the declarations do not fit the parts."""
    if said is None:
        return dict.fromkeys(parts)
    if isinstance(said, Mapping):
        return dict(cast("Mapping[Any, Any]", said))
    if isinstance(said, list | tuple) and len(cast("Sequence[Any]", said)) == len(parts):
        return dict(zip(parts, cast("Sequence[Any]", said), strict=True))
    return {}
