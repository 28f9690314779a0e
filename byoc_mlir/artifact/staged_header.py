"""C header of an exported model that is split at data-dependent shapes."""

from __future__ import annotations

from collections.abc import Iterator

from byoc_mlir.artifact.header import framed, in_comment
from byoc_mlir.artifact.staged_interface import StagedInterface


def staged_header(interface: StagedInterface, name: str, threads: int) -> str:
    """Returns the text of `model.h`; `name` is the prefix of its declarations."""
    return framed(
        [
            "/* Runs the model. Tensors are dense and row-major. Sizes of outputs are known when",
            " * they are computed: each output is set to memory that holds it, for the caller to",
            " * free, and its shape is written to an array, unless that is a null pointer. Nothing",
            " * is set where the result is not 0.",
            " *",
            *_described(interface),
            " */",
            f"int {name}_run({', '.join(interface.declared) or 'void'});",
            "",
            "/* Frees an output; a null pointer is accepted. */",
            f"void {name}_free(void *output);",
        ],
        name,
        threads,
    )


def _described(interface: StagedInterface) -> Iterator[str]:
    sizes = interface.sizes
    for info, name in zip(interface.inputs, interface.input_names, strict=True):
        shape = ", ".join(
            str(size) if isinstance(size, int) else sizes[size] for size in info.shape
        )
        yield f" *   {name}: input '{in_comment(info.name)}', {info.dtype.name} [{shape}]"
    for info, name in zip(interface.outputs, interface.output_names, strict=True):
        quoted = in_comment(info.name)
        yield f" *   {name}: output '{quoted}', {info.dtype.name}, {len(info.shape)} sizes"
