"""Table of element types: the backends that take an ONNX op of an element type.

For each op and type some models of one node are drawn from the samples, and partitioned for each
backend. A backend takes the op if it takes it in one of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from onnx import ModelProto, TensorProto, helper
from page import Page

from byoc_mlir.compiler import pipeline
from byoc_mlir.compiler.build import Build
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.report import report_rows
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import ByocError, InputValuesNeededError
from byoc_mlir.frontend.files.check import MAX_OPSET
from byoc_mlir.frontend.stages.split import first_stage
from byoc_mlir.testing.isa import call_at
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node, importable_ops
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype

LEVEL = "avx2"
"""Instruction set of the table, on which oneDNN's support depends."""

BACKENDS = ("dnnl", "openblas")
"""Backends of the table; the host takes all other ops."""

_TYPES = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16),
    *(TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
)
TYPES: tuple[Dtype, ...] = tuple(map(helper.tensor_dtype_to_np_dtype, _TYPES))
"""Columns of the table: element types of the op's first input, or of its output if it has none."""

_SAMPLES, _ATTEMPTS = 3, 24
_SIGNS = {
    "host": "h",
    "dnnl": "d",
    "openblas": "b",
    "reference": "n",
    "folded": "f",
    "refused": "-",
}

_OTHERWISE = ("folded", "removed", "refused")
"""Results of models that are independent of the element type."""

_TEXT = f"""\
# Element types

Of each op and element type some models of one node are made and partitioned for each backend, with
the instructions of the level `{LEVEL}`.

- **h**: native code of the host.
- **d**: oneDNN takes it, in some form; **b**: OpenBLAS. Elsewhere it is the host's.
- **f**: computed when the model is compiled, or nothing is left to compute.
- **n**: the fallback interpreter; **-**: refused. A cell is empty where the op has no such type.

The type is that of the first input, or of the output of an op without inputs. Integers that are not
listed are the host's. The op is alone here: in a model, backends take more of them, such as
additions behind a product (see `byoc report`). Ops of `com.microsoft` that are not listed are where
the ops are that they are made of. What `precision=` changes, and what is taken of quantised models,
is in `precision.md`; `operators.md` has the versions.
"""


def op_types_page() -> Page:
    """Returns the page."""
    return Page("Their element types", "op-types.md", call_at(LEVEL, print_page, seconds=3600))


@dataclass(frozen=True)
class OpTypes:
    """Row of the table."""

    domain: str
    op_type: str
    cells: tuple[str, ...]
    """Cells, in the order of `TYPES`."""

    def __str__(self) -> str:
        return f"| {self.op_type} | {' | '.join(self.cells)} |"


def print_page() -> None:
    """Prints the page, at the level of this process."""
    parts = [_TEXT]
    for domain, rows in groupby(op_types(importable_ops()), lambda row: row.domain):
        parts.append(f"\n## {domain or 'ai.onnx'}\n")
        parts.append(f"| op | {' | '.join(dtype.name for dtype in TYPES)} |")
        parts.append(f"| --- |{' --- |' * len(TYPES)}")
        parts += map(str, rows)
    print("\n".join(parts))


def op_types(ops: Iterable[tuple[str, str]]) -> Iterator[OpTypes]:
    """Yields the row of each op, given by domain and name; ops without a model have none."""
    for domain, op_type in ops:
        cells = tuple(_cell(domain, op_type, dtype) for dtype in TYPES)
        if any(cells):
            yield OpTypes(domain, op_type, cells)


def _cell(domain: str, op_type: str, dtype: Dtype) -> str:
    """Returns the signs of the targets that take the op of that type; empty if there is no such
    model.
    """
    found, samples = set[str](), 0
    for model in _models(domain, op_type, dtype):
        places = {_placement(model, op_type, target) for target in BACKENDS}
        found |= places
        samples += places.isdisjoint(_OTHERWISE)
        if samples == _SAMPLES:
            break
    takers = found.difference(_OTHERWISE) or found.difference(("refused",)) or found
    return "".join(sign for name, sign in _SIGNS.items() if name in takers)


def _models(domain: str, op_type: str, dtype: Dtype) -> Iterator[ModelProto]:
    """Yields some models of a node of that type."""
    for number in range(_ATTEMPTS):
        graph = RandomGraph(Random(number), MAX_OPSET, preferred=dtype)
        add_node(graph, op_type, domain)
        if _type_of(graph, op_type) == dtype:
            yield graph.model()


def _type_of(graph: RandomGraph, op_type: str) -> Dtype | None:
    nodes = [node for node in graph.nodes if node.op_type == op_type]
    if not nodes:
        return None
    names: Sequence[str] = [name for name in (*nodes[-1].input, *nodes[-1].output) if name]
    types = {value.name: value.dtype for value in graph.values}
    return types.get(names[0])


def _placement(model: ModelProto, op_type: str, target: str) -> str:
    """Returns the target that takes the last node of that op, or `folded`, `removed` or
    `refused`."""
    request = Request(model, targets=(target,), threads=1, fallback="allow")
    try:
        with warnings.catch_warnings(), ir_boundary("import"):
            warnings.simplefilter("ignore")
            source = read_source(first_stage(model))
            shapes = {info.name: tuple(map(int, info.shape)) for info in source.inputs}
            build = Build(source, shapes, {}, CompileOptions.of(request))
            with pipeline.compiling(build, None):
                for stage in (pipeline.import_model, pipeline.canonicalise, pipeline.partition):
                    stage(build)
                rows = report_rows(build.module, build.imported.nodes)
    except InputValuesNeededError:  # they are symbols of the host's program
        return "host"
    except ByocError:
        return "refused"
    return next((row.placement for row in reversed(rows) if row.op_type == op_type), "removed")
