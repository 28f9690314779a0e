"""`.mlir` files and the weight stores next to them.

`model.mlir` refers to its large constants by digests of their content; `model.safetensors` in the
same folder holds the content, by digest.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from byoc_mlir.boundary import boundary
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.parsing import IRParser
from byoc_mlir.dialects.relay import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.base import Tensor, check_tensor_type, shape_of
from byoc_mlir.dialects.relay.constant import Array, content_digest
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.symbols import defined_values
from byoc_mlir.errors import ByocError, InvalidModelError, LimitExceededError, MissingWeightsError
from byoc_mlir.files import read_file
from byoc_mlir.limits import current_limits

STORE_SUFFIX = ".safetensors"


def read_mlir(path: str | Path) -> ModuleOp:
    """Returns the verified module of a `.mlir` file, with the weights of the store in the same
    folder, if any.

    Raises:
        InvalidModelError: the file cannot be read, or the text does not parse or verify.
        MissingWeightsError: the store lacks a weight that the module names.
        LimitExceededError: the module is nested too deeply, or too large.
    """
    path = Path(path)
    module = parse_module(read_file(path, InvalidModelError), str(path), make_context())
    try:
        module.verify()
    except VerifyException as error:
        raise InvalidModelError(f"{path} does not verify: {error}") from error
    check_module_size(module)
    store = path.with_suffix(STORE_SUFFIX)
    if store.is_file():
        attach_weights(module, store)
    return module


def parse_module(data: bytes, name: str, context: Context) -> ModuleOp:
    """Parses MLIR text to a module; does not verify the module.

    Args:
        name: name of the text in errors.

    Raises:
        InvalidModelError: the text is not UTF-8, or does not parse.
        LimitExceededError: its brackets are nested too deeply.
    """
    check_text(data, name)
    try:
        with refusing_text(name):
            return IRParser(context, data.decode("utf-8"), name).parse_module()
    except ParseError as error:
        raise InvalidModelError(f"{name} is not MLIR text: {error}") from error
    except VerifyException as error:
        raise InvalidModelError(f"{name} does not verify: {error}") from error


@contextmanager
def refusing_text(name: str) -> Generator[None]:
    """Converts any Python error that xDSL's parser raises on malformed text to an
    `InvalidModelError`.

    Raises:
        InvalidModelError: the text does not parse.
        ParseError: xDSL reports the error itself, with its position.
        VerifyException: an op is refused on construction.
    """
    try:
        yield
    except (ByocError, ParseError, VerifyException):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InvalidModelError(f"{name} is not MLIR text: the parser stops at {what}") from error


_TOKENS = re.compile(
    rb"""
      //[^\n]*                                                        # a comment
    | "(?: [^"\\\n\v\f]++ | \\ (?: ["nt\\] | [0-9A-Fa-f]{2} ) )*+"  # a string, as xDSL has it
    | -> | [<>=]=                                                    # no brackets
    | (?P<quote>") | (?P<open>[(<\[{]) | (?P<close>[)>\]}])
    """,
    re.VERBOSE,
)


def check_text(text: bytes, name: str) -> None:
    """Refuses text that xDSL's parser cannot handle: unterminated strings, too deep nesting.

    The parser's regular expression takes exponential time on an unterminated string, and the parser
    descends into brackets by recursion.

    Raises:
        InvalidModelError: a string does not end on the line on which it begins.
        LimitExceededError: brackets are nested too deeply.
    """
    depth = 0
    nesting = current_limits().nesting
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "quote":
            line = text.count(b"\n", 0, token.start()) + 1
            raise InvalidModelError(
                f"{name} is not MLIR text: the string that begins in line {line} does not end"
                " there, or has an escape that there is not"
            )
        if kind == "open":
            depth += 1
            if depth > nesting:
                raise LimitExceededError("nesting", f"brackets in {name}", depth, nesting)
        elif kind == "close":
            depth = max(0, depth - 1)


def check_order(module: ModuleOp) -> None:
    """Refuses a module in which a value is used before its definition; xDSL's verifier does not
    check this.

    Raises:
        InvalidModelError: a value is used before its definition.
    """
    made: set[SSAValue] = set()
    for op in module.walk():
        for operand in op.operands:
            is_near = operand.owner.parent is op.parent
            if is_near and isinstance(operand, OpResult) and operand not in made:
                raise InvalidModelError(
                    f"{placed(op)} reads what {placed(operand.op)} computes, which comes later"
                )
        made.update(op.results)


def placed(op: Operation) -> str:
    """Returns an op's name, and the names of its ONNX nodes."""
    nodes = ", ".join(node_names(op))
    return f"{op.name} ({nodes})" if nodes else op.name


def check_module_size(module: ModuleOp) -> None:
    """Refuses a module with too many ops, or too large tensors.

    Raises:
        LimitExceededError: a limit is exceeded.
    """
    ops = 0
    for op in module.walk():
        ops += 1
        for value in defined_values(op):
            if isinstance(value.type, TensorType):
                with boundary("import", ", ".join(node_names(op)) or None):
                    check_tensor_type(cast(Tensor, value.type), f"a value of {op.name}")
    current_limits().check("nodes", ops, "ops of the module")


def write_mlir(module: ModuleOp, path: str | Path) -> None:
    """Writes a module as text, and its weights, if it has any, as a store in the same folder."""
    path = Path(path)
    path.write_text(str(module) + "\n", encoding="utf-8")
    save_weights(module, path.with_suffix(STORE_SUFFIX))


def save_weights(module: ModuleOp, store: str | Path) -> None:
    """Writes a module's large constants to a store, each content once; writes no file if there are
    none.
    """
    weights = {weight.digest: _stored_form(op.array) for op, weight in _weights(module)}
    if not weights:
        return
    file = Path(store)
    file.touch()
    mode = file.stat().st_mode
    save_file(weights, file)
    file.chmod(mode)  # `save_file` makes it readable for the owner only


def attach_weights(module: ModuleOp, store: str | Path) -> None:
    """Attaches the arrays of a store to the large constants of a module.

    Raises:
        InvalidModelError: the store is damaged.
        MissingWeightsError: the store lacks an array, or holds other bytes under its digest.
    """
    try:
        _attach(module, store)
    except SafetensorError as error:
        raise InvalidModelError(
            f"{store} is damaged: {error}; write the .mlir file and its store together"
        ) from error


def _attach(module: ModuleOp, store: str | Path) -> None:
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
                loaded[weight.digest] = _checked(_stored(file, weight), op, weight, store)
            attached = Weight(weight.name, weight.digest, loaded[weight.digest])
            op.properties["value"] = WeightAttr(attached)


def _stored(file: Any, weight: Weight) -> Array:
    """Returns a weight's bytes; none if the store has elements, whose type NumPy may lack."""
    if file.get_slice(weight.digest).get_dtype() != _STORED_ELEMENT:
        return np.empty(0, np.uint8)
    return file.get_tensor(weight.digest)


def _checked(stored: Array, op: ConstantOp, weight: Weight, store: str | Path) -> Array:
    dtype, shape = numpy_dtype(op.type.element_type), shape_of(op.output)
    if stored.nbytes == dtype.itemsize * int(np.prod(shape)):
        array = cast(Array, stored.reshape(-1).view(dtype).reshape(shape))
        if content_digest(array) == weight.digest:
            return array
    raise MissingWeightsError(
        f"{store} holds other bytes than {op.type} under the digest of weight '{weight.name}';"
        " the store was changed after it was written"
    )


_STORED_ELEMENT = "U8"


def _stored_form(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _weights(module: ModuleOp) -> Iterator[tuple[ConstantOp, Weight]]:
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr):
            yield op, op.value.data
