"""Registry of the functions that import ops, by op and opset version."""

from __future__ import annotations

import inspect
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, TypeAlias, TypeVar

from byoc_mlir.errors import ByocError
from byoc_mlir.frontend import ops
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.value import NodeRefused, Value
from byoc_mlir.installed import installed_points
from byoc_mlir.locks import cached_property
from byoc_mlir.names import written_at

ENTRY_POINT_GROUP = "byoc_mlir.ops"
"""Entry-point group of modules that register ops when imported, each named `domain.Op`."""

OpFunction: TypeAlias = Callable[..., Value | Sequence[Value | None]]
F = TypeVar("F", bound=OpFunction)


@dataclass(frozen=True)
class OnnxOp:
    """One version of an op, and the function that imports it.

    The function takes the context, then the node's inputs (`None` for an omitted one), then the
    attributes as keywords; it returns the outputs. Earlier versions of some ops have attributes
    that are inputs in later ones: the function gets such an attribute as a constant input.
    """

    domain: str
    op_type: str
    since: int
    function: OpFunction
    attributes: type[Any] | None = None
    """Dataclass of attributes that the function takes as one parameter, `attributes`."""

    @cached_property
    def signature(self) -> inspect.Signature:
        """Returns the function's signature, with a parameter for each field of `attributes`."""
        signature = inspect.signature(self.function)
        if self.attributes is None:
            return signature
        own = [each for each in signature.parameters.values() if each.name != _TOGETHER]
        shared = inspect.signature(self.attributes).parameters.values()
        return signature.replace(parameters=[*own, *shared])

    def __call__(
        self,
        context: NodeContext,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
    ) -> tuple[Value | None, ...]:
        """Imports a node by calling the function; returns its outputs.

        Raises:
            NodeRefused: the node cannot be imported.
            VerifyException: operands and attributes do not fit together.
        """
        parameters = self.signature.parameters
        given = {
            name: context.constant(value) if _is_input(parameters.get(name)) else value
            for name, value in attributes.items()
        }
        try:
            bound = self.signature.bind(context, *inputs, **given)
        except TypeError as error:
            raise NodeRefused(f"this form of the op is not supported: {error}") from error
        for name, parameter in parameters.items():
            is_list = parameter.kind == inspect.Parameter.VAR_POSITIONAL
            if is_list and any(each is None for each in bound.arguments.get(name, ())):
                raise NodeRefused("one of its operands is omitted; accepted are all of them")
        outputs = self.function(*bound.args, **self._keywords(bound.kwargs))
        return (outputs,) if isinstance(outputs, Value) else tuple(outputs)

    def _keywords(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the attributes as keywords of the function."""
        if self.attributes is None:
            return given
        names = {field.name for field in fields(self.attributes)}
        together = self.attributes(**{name: given[name] for name in names & given.keys()})
        alone = {name: value for name, value in given.items() if name not in names}
        return {**alone, _TOGETHER: together}


def _is_input(parameter: inspect.Parameter | None) -> bool:
    return parameter is not None and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


_TOGETHER = "attributes"
"""Name of the parameter that takes several attributes as one dataclass."""


_REGISTRY: dict[tuple[str, str], tuple[OnnxOp, ...]] = {}


def register_op(
    domain: str, name: str, since: int = 1, attributes: type[Any] | None = None
) -> Callable[[F], F]:
    """Registers the decorated function as the importer of an op.

    The function takes a `NodeContext`, then the node's inputs as `Value`s (with default `None` for
    optional ones), then its attributes as keyword-only parameters. It returns a `Value`, or a
    sequence with a `Value` for each output. A node that does not fit these parameters is refused.
    The function raises `NodeRefused` for a node that it does not support. A function that is
    defined again, as in a notebook, replaces its earlier version.

    Args:
        domain: the op's domain; empty for the ops of ONNX itself.
        since: the first opset version of the domain that the function supports; it is used up to
            the next registered version.
        attributes: a dataclass of attributes that several ops have; the function takes an instance
            of it as its parameter `attributes`.

    Raises:
        ByocError: another function is registered for that version, or `since` is no valid version.
    """
    if since < 1:
        raise ByocError(f"{domain}.{name}: `since` is {since}, accepted are 1 and more")

    def register(function: F) -> F:
        if not function.__module__.startswith(PREFIX):  # an op of ONNX stays ours
            import_families(name)
        others: list[OnnxOp] = []
        for known in _REGISTRY.get((domain, name), ()):
            if known.since != since:
                others.append(known)
            elif written_at(known.function) != written_at(function):
                raise ByocError(
                    f"{domain}.{name}, version {since}, is registered already, for"
                    f" {'.'.join(written_at(known.function))}"
                )
        versions = [*others, OnnxOp(domain, name, since, function, attributes)]
        _REGISTRY[domain, name] = tuple(sorted(versions, key=lambda op: op.since))
        return function

    return register


def onnx_op(op_type: str, since: int = 1, attributes: type[Any] | None = None) -> Callable[[F], F]:
    """Registers the decorated function as the importer of an op of ONNX itself."""
    return register_op("", op_type, since, attributes)


def find_op(domain: str, op_type: str, opset: int) -> OnnxOp | None:
    """Returns the function that imports an op in the version that an opset has, or `None`.

    Raises:
        ByocError: the installed module that registers the op cannot be imported.
    """
    if (domain, op_type) not in _REGISTRY:
        import_families(op_type)
    if (domain, op_type) not in _REGISTRY:
        _import_installed(f"{domain}.{op_type}" if domain else op_type)
    versions = _REGISTRY.get((domain, op_type), ())
    index = bisect_right(versions, opset, key=lambda op: op.since)
    return versions[index - 1] if index else None


def _import_installed(name: str) -> None:
    for point in installed_points(ENTRY_POINT_GROUP):
        if point.name == name:
            _import(point)


def _import(point: EntryPoint) -> None:
    try:
        point.load()
    except Exception as error:
        raise ByocError(
            f"the importer of op {point.name}, {point.value}, cannot be loaded:"
            f" {type(error).__name__}: {error}"
        ) from error


def registered_ops() -> tuple[OnnxOp, ...]:
    """Returns the functions that this process registered, by domain, op and version."""
    return tuple(op for key in sorted(_REGISTRY) for op in _REGISTRY[key])


def all_ops() -> tuple[OnnxOp, ...]:
    """Returns `registered_ops`, after loading the modules of installed packages.

    Raises:
        ByocError: a module cannot be imported.
    """
    import_families()
    for point in installed_points(ENTRY_POINT_GROUP):
        _import(point)
    return registered_ops()


PREFIX = f"{ops.__name__}."
"""Start of the names of their modules."""

_ALL = ""


def import_families(op_type: str = _ALL) -> None:
    """Imports the families whose source names an op in quotes.

    All families are imported without a name, for an op whose name a table composes, and where the
    sources are no files, as in an archive.
    """
    homes = _homes()
    for name in homes.get(op_type) or homes[_ALL]:
        import_module(name)


@cache
def _homes() -> Mapping[str, Sequence[str]]:
    """Returns the modules of the families by the words that their sources have in quotes."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module in walk_packages(ops.__path__, PREFIX):
        homes[_ALL].append(module.name)
        path = Path(ops.__path__[0], *module.name.removeprefix(PREFIX).split("."))
        source = path.with_suffix(".py")
        if source.is_file():
            for word in set(re.findall(r'"(\w+)"', source.read_text())):
                homes[word].append(module.name)
    return homes
