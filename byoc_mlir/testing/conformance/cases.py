"""Cases of single ops: one for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.testing.conformance.graph import Case, CaseBuilder
from byoc_mlir.testing.samples.relay_ops.sample import Sample


def op_cases(name: str, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yields a model of one op for each valid sample.

    The first sample with a constant is repeated with other constants of the same shapes. The first
    sample whose result has its operand's type is repeated as two ops in sequence.
    """
    has_twin = has_chain = False
    for sample in samples:
        case = _case(name, sample)
        if case is None:
            continue
        yield case
        if not has_twin and (sample.constants or sample.first_constant):
            has_twin = True
            twin = _case(name, sample, seed=1, note=", other constants of the same shapes")
            assert twin is not None
            yield twin
        chain = None if has_chain else _case(name, sample, times=2, note=", twice in a row")
        if chain is not None:
            has_chain = True
            yield chain


def _case(
    name: str, sample: Sample, *, seed: int = 0, times: int = 1, note: str = ""
) -> Case | None:
    """Returns the model of a sample; `None` if the op does not support the sample's element
    type."""
    graph = CaseBuilder(seed)
    try:
        op = _add(graph, name, sample, None)
        made = [op.results[0]]
        for _ in range(times - 1):
            if op.results[0].type != op.operands[0].type:
                return None
            op = _add(graph, name, sample, op.results[0])
            made.append(op.results[0])
    except VerifyException:
        return None  # an element type that the op does not have
    results = made if times > 1 else list(op.results)
    if name == "nn.batch_norm":
        results = made  # the other results are operands
    return graph.case(name, sample.label + note, results)


def _add(graph: CaseBuilder, name: str, sample: Sample, first: SSAValue | None) -> Operation:
    """Adds the op of a sample and returns it; `first` is its first operand, or `None` for a new
    one.
    """
    operands = [first] if first is not None else []
    shapes = (sample.data, *sample.rest(sample.data))
    for index in range(len(operands), len(shapes)):
        array = graph.array(
            shapes[index],
            sample.dtype_of(index),
            sample.range_of(index),
            special=sample.special and not sample.is_constant(index),
        )
        make = graph.constant if sample.is_constant(index) else graph.input
        operands.append(make(array))
    return graph.op(name, operands, **sample.attributes)
