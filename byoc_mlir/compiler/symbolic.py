"""Model with symbolic sizes: imported once, specialised for each set of input shapes."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValues
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.boundary import raise_if_strict
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, GuardOp
from byoc_mlir.dims import GREATEST_SIZE, LEAST_HINT, Guard, evaluated, parse_size
from byoc_mlir.errors import (
    ByocError,
    InternalError,
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    OutOfMemoryError,
    UndecidedSizeError,
)
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.importer import import_symbolic
from byoc_mlir.frontend.inputs import model_inputs, sizes_of_symbols
from byoc_mlir.frontend.model import NODE_NOTES, ImportedModel, ImportVariant, OnnxNode
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.transforms.specialise_dims import check_sizes, specialised

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_MOST_VARIANTS = 8
"""Maximum number of imports of one model. A model that needs more depends on sizes so much that
imports cannot be shared.
"""

_MOST_FAILURES = 2
"""Number of failed imports for sizes of 0 and 1 after which the model is considered to need
numbers. For larger sizes, one failure suffices.
"""


class SymbolicModel:
    """Imports of a model; each import is valid for the sizes that satisfy its guards."""

    def __init__(self, model: ModelProto, tensors: TensorReader):
        self._model = model
        self._tensors = tensors
        self._variants: list[ImportedModel] = []
        weakref.finalize(self, _free, self._variants).atexit = False
        self._failures = 0
        self._lock = ForkSafeLock()
        self.reason: str | None = None
        """Reason why the import requires known sizes, once it is known."""

    def __reduce__(self) -> tuple[Any, ...]:
        return SymbolicModel, (self._model, self._tensors)

    def at(self, shapes: Shapes) -> ImportedModel | None:
        """Returns a new module of the model, specialised for these input shapes.

        Returns `None` if no import is valid for them.

        Raises:
            InvalidInputError: the shapes do not match the model.
        """
        sizes = sizes_of_symbols(self._model, shapes)
        with self._lock:
            variant = self._variant(sizes)
        try:
            return None if variant is None else _specialised(variant, sizes)
        except (VerifyException, LimitExceededError, UndecidedSizeError):
            return None  # importing says why, and names the node, or writes out a short loop

    def refused(self, shapes: Shapes, error: InvalidModelError) -> ByocError:
        """Returns the error to raise if the model cannot be imported for some sizes.

        If an import for other sizes succeeded, the error blames the sizes; otherwise, it blames the
        model.

        Args:
            shapes: shapes of the inputs.
            error: error of the import for these shapes.
        """
        sizes = sizes_of_symbols(self._model, shapes)
        infos = [info for info in model_inputs(self._model) if not info.is_static]
        infos = [info for info in infos if info.shape != (0, info.name)]  # those only say sizes
        given = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        text = f"{error}; found {given}"
        if infos:
            text += f" ({'; '.join(map(str, infos))})"
        with self._lock:
            guards = [guards_of(variant.module) for variant in self._variants]
        failed = [guard for each in guards for guard in each if not guard.holds(sizes)]
        if failed:
            text += f"; expected {' or '.join(f'{one} ({one.reason})' for one in failed)}"
        refusal = InvalidInputError(text) if guards else InvalidModelError(text)
        refusal.locate(error.stage or "import", error.node)
        return refusal

    def general(self, shapes: Shapes) -> ImportedModel | None:
        """Returns a new module of the model with symbols, valid for all shapes with the same
        decisions as these.

        Returns `None` if the model must be imported for these shapes only.

        Raises:
            InvalidInputError: the shapes do not match the model.
        """
        with self._lock:
            variant = self._variant(sizes_of_symbols(self._model, shapes))
        if variant is None:
            return None
        guards = ImportVariant(guards_of(variant.module))
        return replace(variant, module=variant.module.clone(), variant=guards)

    def _variant(self, sizes: Mapping[str, int]) -> ImportedModel | None:
        if max(sizes.values(), default=0) > GREATEST_SIZE:
            return None
        for variant in self._variants:
            if _fits(variant.module, sizes):
                return variant
        if self.reason is not None or len(self._variants) == _MOST_VARIANTS:
            return None
        try:
            variant = import_symbolic(self._model, self._tensors, sizes)
        except (LimitExceededError, OutOfMemoryError):
            raise
        except ByocError as error:
            if isinstance(error, InternalError):
                raise_if_strict(error)
            self._failures += 1
            are_hints = min(sizes.values(), default=LEAST_HINT) >= LEAST_HINT
            if are_hints or self._failures == _MOST_FAILURES:
                self.reason = str(error)
            return None
        self._variants.append(variant)
        return variant if _fits(variant.module, sizes) else None


def _free(variants: list[ImportedModel]) -> None:
    """Frees the modules of imports, and the weights that only they use; code elsewhere has clones.

    IR has reference cycles. The garbage collector scans old objects only in its next full
    collection, which may be hundreds of compilations away.
    """
    for variant in variants:
        _take_apart(variant.module)
    variants.clear()


def _take_apart(module: ModuleOp) -> None:
    ops, blocks = list(module.walk()), list(module.walk_blocks())
    for op in ops:
        op.operands = ()
    for block in blocks:
        for op in list(block.ops):
            block.detach_op(op)
        for argument in reversed(block.args):
            block.erase_arg(argument)
    for op in ops:
        op.drop_all_references()
        op.results = SSAValues()


def _fits(module: ModuleOp, sizes: Mapping[str, int]) -> bool:
    try:
        check_sizes(module, sizes)
    except UndecidedSizeError:
        return False
    return True


def _specialised(variant: ImportedModel, sizes: Mapping[str, int]) -> ImportedModel:
    module = specialised(variant.module, sizes)
    return ImportedModel(
        module,
        with_numbers(variant.inputs, sizes),
        with_numbers(variant.outputs, sizes),
        _nodes_of(variant.nodes, module),
        ImportVariant(guards_of(variant.module)),
    )


def guards_of(module: ModuleOp) -> tuple[Guard, ...]:
    """Returns the guards of a module, each with the ONNX node that requires it."""
    return tuple(
        replace(op.guard, reason=", ".join(node_names(op)))
        for op in module.body.block.ops
        if isinstance(op, GuardOp)
    )


def with_numbers(infos: Sequence[TensorInfo], sizes: Mapping[str, int]) -> tuple[TensorInfo, ...]:
    """Returns inputs or outputs with numbers for the symbols in their shapes."""
    return tuple(
        replace(
            info,
            shape=tuple(evaluated(parse_size(size), sizes) for size in info.shape),
        )
        for info in infos
    )


def _nodes_of(nodes: Sequence[OnnxNode], module: ModuleOp) -> tuple[OnnxNode, ...]:
    """Returns the nodes with updated status; some of them are constants now."""
    left = {
        name for op in module.walk() if not isinstance(op, ConstantOp) for name in node_names(op)
    }
    return tuple(
        replace(node, status="folded", note=NODE_NOTES["folded"])
        if node.status == "imported" and node.name not in left
        else node
        for node in nodes
    )
