"""`.mlir` files and the stores of weights next to them.

`model.mlir` names its large constants by content; `model.safetensors` beside it holds them, keyed
by the same digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.constant import Array, content_digest
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.errors import InvalidModelError, MissingWeightsError

STORE_SUFFIX = ".safetensors"


def read_mlir(path: str | Path, context: Context | None = None) -> ModuleOp:
    """The verified module in a `.mlir` file, weights attached where a store lies beside it.

    Raises:
        InvalidModelError: the text does not parse or verify.
        MissingWeightsError: the store does not hold what the module names.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        module = Parser(context or make_context(), text, str(path)).parse_module()
    except (ParseError, UnicodeDecodeError) as error:
        raise InvalidModelError(f"{path} is not MLIR text: {error}") from error
    except OSError as error:
        raise InvalidModelError(f"{path} cannot be read: {error.strerror}") from error
    module.verify()
    store = path.with_suffix(STORE_SUFFIX)
    if store.is_file():
        attach_weights(module, store)
    return module


def write_mlir(module: ModuleOp, path: str | Path) -> None:
    """Writes a module as text, and its weights as a store beside it when there are any."""
    path = Path(path)
    path.write_text(str(module) + "\n", encoding="utf-8")
    save_weights(module, path.with_suffix(STORE_SUFFIX))


def save_weights(module: ModuleOp, store: str | Path) -> None:
    """Writes the large constants of a module, each content once; no file when there are none."""
    weights = {weight.digest: _stored_form(op.array) for op, weight in _weights(module)}
    if not weights:
        return
    file = Path(store)
    file.touch()
    mode = file.stat().st_mode
    save_file(weights, file)
    file.chmod(mode)  # `save_file` lets nobody but the owner read it


def attach_weights(module: ModuleOp, store: str | Path) -> None:
    """Gives every large constant of a module its array from a store.

    Raises:
        MissingWeightsError: the store lacks one, or holds other bytes under its digest.
    """
    loaded: dict[str, Array] = {}
    with safe_open(store, framework="numpy") as file:
        known = set(file.keys())
        for op, weight in _weights(module):
            if weight.digest not in known:
                raise MissingWeightsError(
                    f"weight '{weight.name}' ({weight.digest}) is not in {store}; write the"
                    " .mlir file and its store together"
                )
            if weight.digest not in loaded:
                loaded[weight.digest] = _checked(file.get_tensor(weight.digest), op, weight, store)
            attached = Weight(weight.name, weight.digest, loaded[weight.digest])
            op.properties["value"] = WeightAttr(attached)


def _checked(stored: Array, op: ConstantOp, weight: Weight, store: str | Path) -> Array:
    dtype, shape = numpy_dtype(op.type.element_type), op.type.get_shape()
    if stored.nbytes == dtype.itemsize * int(np.prod(shape)):
        array = cast(Array, stored.reshape(-1).view(dtype).reshape(shape))
        if content_digest(array) == weight.digest:
            return array
    raise MissingWeightsError(
        f"{store} holds other bytes than {op.type} under the digest of weight '{weight.name}';"
        " the store was changed after it was written"
    )


def _stored_form(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _weights(module: ModuleOp) -> Iterator[tuple[ConstantOp, Weight]]:
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr):
            yield op, op.value.data
