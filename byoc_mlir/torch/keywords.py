"""Signatures of modules whose `forward` takes any keywords, with the keywords of an example.

PyTorch's exporter looks up dynamic sizes first under the name `**others`, then under the names of
the keywords in it. Separate arguments have the same name for both.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import Any


def with_named_keywords(module: Any, keywords: Iterable[str]) -> Any:
    """Returns the module with the given keywords in place of `**others`.

    Args:
        module: whose `forward` names the arguments.
        keywords: the names that an example has.

    Returns:
        The module itself if its arguments have names, else a copy that has the same parameters.
    """
    others = others_of(module)
    if others is None:
        return module
    signature = inspect.signature(module.forward)
    named = dict(signature.parameters)
    del named[others]
    for name in keywords:
        named.setdefault(name, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
    return _with_signature(module, signature.replace(parameters=list(named.values())))


def others_of(module: Any) -> str | None:
    """Returns the name of `**others` in the signature of `forward`, or `None` if it has none."""
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            return name
    return None


def _with_signature(module: Any, signature: inspect.Signature) -> Any:
    """Returns a copy of the module whose `forward` has another signature and does the same."""
    module = copy.copy(module)
    forward = module.forward

    def same(*arguments: Any, **keywords: Any) -> Any:
        return forward(*arguments, **keywords)

    same.__dict__["__signature__"] = signature
    module.forward = same
    return module
