"""Description of an option of `compile`, and the checks of its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, get_args

from byoc_mlir.boundary import check_argument
from byoc_mlir.calibration import Document, read_calibration
from byoc_mlir.errors import ByocError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from byoc_mlir.backends import Setting
    from byoc_mlir.compiler.cache.folder import Folder

_Value = TypeVar("_Value")
_Accept: TypeAlias = Callable[[str, Any], Any]
"""Returns the normal form of an option's value; raises `ByocError` if it is not accepted.

Takes the option's name and the value. Later changes by the caller do not affect a normal form.
"""


@dataclass(frozen=True)
class OptionInfo:
    """Description of an option, besides its name, type and default."""

    meaning: str
    """Lines for the documentation of `compile` and the help of the commands."""
    accept: _Accept
    choices: tuple[str, ...] = ()
    """All values, if they are words."""
    flag: str = ""
    """Form on a command line: `--exact NODE`. Empty for an option without a flag."""
    is_repeated: bool = False
    """True if the flag may be given several times."""
    is_key: bool = True
    """True if programs depend on the option, so that the cache's key includes it."""


def option(
    default: _Value,
    meaning: str,
    accept: _Accept | None = None,
    *,
    choices: object = None,
    flag: str = "",
    is_repeated: bool = False,
    is_key: bool = True,
) -> _Value:
    """Returns a field of `Request` that describes an option.

    Args:
        accept: function that checks and converts the value; by default, it accepts the choices.
        choices: a `Literal` type of all values, if they are words.
    """
    words = get_args(choices)
    check = accept or _word(words, is_optional=default is None)
    info = OptionInfo(meaning, check, words, flag, is_repeated, is_key)
    if default == {}:
        return cast(_Value, field(default_factory=dict[Any, Any], metadata={"option": info}))
    return field(default=default, metadata={"option": info})


def _word(choices: tuple[str, ...], *, is_optional: bool) -> _Accept:
    """Returns a check that accepts one of the words."""

    def accept(name: str, value: Any) -> Any:
        if value is None and is_optional:
            return None
        check_argument(name, value, str, "text")
        if value not in choices:
            accepted = ", ".join(map(repr, choices))
            raise ByocError(f"{name} is {value!r}, accepted are {accepted}")
        return value

    return accept


def accept_bool(name: str, value: Any) -> bool:
    """Accepts True and False."""
    check_argument(name, value, bool, "True or False")
    return value


def accept_names(accepted: str, *, is_ordered: bool = True) -> _Accept:
    """Returns a check that accepts a sequence of names.

    Args:
        accepted: description of the accepted names, for the error's message.
        is_ordered: True if the order of the names matters; otherwise, they are sorted.
    """

    def accept(name: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not _is_texts(value):
            raise ByocError(f"{name} is {value!r}, accepted is a sequence of {accepted}")
        return tuple(value) if is_ordered else tuple(sorted(set(value)))

    return accept


def accept_targets(name: str, value: Any) -> tuple[str, ...] | None:
    """Accepts the names of backends, with their options."""
    if value is None:
        return None
    if isinstance(value, str):
        raise ByocError(f"{name} must be a sequence of names, as ({value!r},)")
    return accept_names("backends' names, as ('dnnl',)")(name, value)


def accept_anything(name: str, value: Any) -> Any:
    """Accepts any value; the code that uses the option checks it."""
    return value


def accept_backend_options(name: str, value: Any) -> dict[str, dict[str, Setting]]:
    """Accepts a mapping from names of backends to their options."""
    accepted = "a dictionary of dictionaries, as {'dnnl': {'winograd': False}}"
    given = _mapping(name, value, lambda options: isinstance(options, Mapping), accepted)
    return {backend: dict(options) for backend, options in given.items()}


def accept_resident(name: str, value: Any) -> dict[str, str]:
    """Accepts a mapping from names of inputs and outputs to devices."""
    accepted = "a dictionary from names of inputs and outputs to devices, as {'x': 'npu'}"
    given = _mapping(name, value, lambda device: isinstance(device, str), accepted)
    return dict(sorted(given.items()))


def accept_sizes(name: str, value: Any) -> dict[str, int]:
    """Accepts a mapping from names of dimensions to numbers."""
    accepted = "a dictionary from names of dimensions to numbers, 0 and more, as {'batch': 8}"
    return _mapping(name, value, lambda size: isinstance(size, int) and size >= 0, accepted)


def accept_cache(name: str, value: Any) -> Folder:
    """Accepts a folder, or False for no cache."""
    if value is not False:
        check_argument(name, value, str | Path | None, "the path of a folder, False, or None")
    return value


def accept_limits(name: str, value: Any) -> Limits:
    """Accepts limits; `None` stands for the default limits."""
    check_argument(name, value, Limits | None, "a byoc_mlir.Limits, or None")
    return DEFAULT_LIMITS if value is None else value


def accept_folder(name: str, value: Any) -> Path | None:
    """Accepts a folder, and makes it absolute."""
    check_argument(name, value, str | Path | None, "the path of a folder, or None")
    return None if value is None else Path(value).absolute()


def accept_calibration(name: str, value: Any) -> Document | None:
    """Accepts a file of calibration, and reads it."""
    check_argument(name, value, str | Path | None, "the path of a file, or None")
    return None if value is None else read_calibration(value)


def accept_weight_memory(name: str, value: Any) -> float:
    """Accepts numbers of at least 1."""
    check_argument(name, value, int | float, "a number, 1 or more")
    if not value >= 1:
        raise ByocError(
            f"{name} is {value}, accepted are numbers of 1 and more: the packed weights as a"
            " multiple of the model's"
        )
    return value


def _is_texts(values: object) -> bool:
    return isinstance(values, Sequence) and all(
        isinstance(value, str) for value in cast(Sequence[object], values)
    )


def _mapping(
    name: str, value: Any, is_value: Callable[[Any], bool], accepted: str
) -> dict[str, Any]:
    """Returns a mapping from names to values as a dictionary; None stands for an empty one."""
    given = {} if value is None else value
    if not isinstance(given, Mapping) or not all(
        isinstance(key, str) and is_value(one)
        for key, one in cast(Mapping[object, object], given).items()
    ):
        raise ByocError(f"{name} is {value!r}, accepted is {accepted}")
    return dict(cast(Mapping[str, Any], given))
