"""Mutations of a right backend: wrong kernels for one op, and wrong runs of a region."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy_backend import KERNELS, Graph, Run, conv2d, matmul, run
from numpy_kernels import Array, Kernel, topk, wide


@dataclass(frozen=True)
class Mutant:
    """Wrong backend: the fault, its op, and words that the failure's message must have."""

    name: str
    subject: str
    seen: str
    """Regular expression that a failing case's label or message matches."""
    kernel: Kernel | None = None
    how: Run = field(default=run)

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """Returns the kernels to replace."""
        return {} if self.kernel is None else {self.subject: self.kernel}


def ignoring(subject: str, **attributes: object) -> Kernel:
    """Returns the right kernel with some attributes fixed at these values."""
    return lambda attrs, *operands: KERNELS[subject]({**attrs, **attributes}, *operands)


def ignored(subject: str, attribute: str, value: object, seen: str) -> Mutant:
    kernel = ignoring(subject, **{attribute: value})
    return Mutant(f"{subject} ignores {attribute}", subject, seen, kernel)


def cropped(attrs: Mapping[str, Any], result: Array) -> Array:
    """Crops or zero-pads a result to the shape that it should have."""
    whole = np.zeros(attrs["shape"], result.dtype)
    part = tuple(slice(min(sizes)) for sizes in zip(whole.shape, result.shape, strict=True))
    whole[part] = result[part]
    return whole


def window(subject: str, attribute: str, value: object, seen: str) -> Mutant:
    """Returns a mutant that ignores an attribute of a window; its result has the right shape all
    the same.
    """
    wrong = ignoring(subject, **{attribute: value})

    def kernel(attrs: Mapping[str, Any], *operands: Array) -> Array:
        return cropped(attrs, one_result(wrong(attrs, *operands)))

    return Mutant(f"{subject} ignores {attribute}", subject, seen, kernel)


def first_gates_exchanged(array: Array) -> Array:
    """Exchanges the first two of three gates."""
    one, two, three = np.split(array, 3, -1)
    return np.concatenate([two, one, three], -1)


def unstable_topk(attrs: Mapping[str, Any], data: Array) -> Sequence[Array]:
    """Takes the last of equal values first."""
    values, places = topk(attrs, np.flip(data, attrs["axis"]))
    return values, data.shape[attrs["axis"]] - 1 - places


def one_group(attrs: Mapping[str, Any], data: Array, weight: Array) -> Array:
    """Uses the first channels for every group."""
    return conv2d({**attrs, "groups": 1}, data[:, : weight.shape[1]], weight)


def flat_broadcast(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    """Adds elements in order, as if shapes were equal."""
    return np.resize(a, attrs["shape"]) + np.resize(b, attrs["shape"])


def from_the_left(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    """Aligns shapes at their first axis if that works."""
    missing = a.ndim - b.ndim
    if missing > 0 and b.ndim and b.shape[0] == a.shape[0]:
        b = b.reshape(*b.shape, *[1] * missing)
    return a + b


def shared_stack(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    """Multiplies all of a batch by the first matrix of operand B."""
    return matmul(attrs, a, b.reshape(-1, *b.shape[-2:])[0])


def unshared_stack(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    """Does not broadcast a matrix over a batch: the other products are zeros."""
    if b.ndim >= a.ndim:
        return matmul(attrs, a, b)
    stack = np.zeros((*a.shape[:-2], *b.shape), b.dtype)
    stack.reshape(-1, *b.shape)[0] = b
    return matmul(attrs, a, stack)


def transposed_square(attrs: Mapping[str, Any], data: Array, weight: Array) -> Array:
    square = weight.shape[0] == weight.shape[1]
    return wide(data) @ wide(weight if square else weight.T)


def off_by_one(attrs: Mapping[str, Any], *operands: Array) -> Array:
    """Pads one element more before, and one less after."""
    top, left, bottom, right = attrs["padding"]
    if not (bottom and right):
        return conv2d(attrs, *operands)
    return conv2d({**attrs, "padding": [top + 1, left + 1, bottom - 1, right - 1]}, *operands)


def swapped_ends(attrs: Mapping[str, Any], *operands: Array) -> Array:
    top, left, bottom, right = attrs["padding"]
    return conv2d({**attrs, "padding": [bottom, right, top, left]}, *operands)


def first_image(attrs: Mapping[str, Any], data: Array, *more: Array) -> Array:
    return np.repeat(conv2d(attrs, data[:1], *more), len(data), 0)


def one_result(result: Array | Sequence[Array]) -> Array:
    """Returns the result of a kernel that has one."""
    assert isinstance(result, np.ndarray)
    return result


def _sum(attrs: Mapping[str, Any], data: Array) -> Array:
    return one_result(KERNELS["sum"](attrs, data))


def half_sums(attrs: Mapping[str, Any], data: Array) -> Array:
    """Sums in order in the type of the data."""
    axes: list[int] = list(attrs["axis"])
    kept = attrs["keepdims"]
    if len(axes) > 1:
        return _sum(attrs, data)
    total = np.add.accumulate(data, axes[0], dtype=data.dtype).take([-1], axes[0])
    return total if kept else total.squeeze(axes[0])


def float_sums(attrs: Mapping[str, Any], data: Array) -> Array:
    return _sum(attrs, data.astype(np.float32)).astype(data.dtype)


def half_products(attrs: Mapping[str, Any], data: Array, weight: Array) -> Array:
    """Computes a dense layer in f16, with sums in f16."""
    if data.dtype != np.float16:
        return wide(data) @ wide(weight).T
    products = data[..., None, :] * weight
    return np.add.accumulate(products, -1, dtype=np.float16)[..., -1]


def float16_inside(attrs: Mapping[str, Any], data: Array, weight: Array) -> Array:
    low = data.astype(np.float16).astype(np.float32), weight.astype(np.float16).astype(np.float32)
    return low[0] @ low[1].T


def biased_sizes_of_one(attrs: Mapping[str, Any], data: Array) -> Array:
    """Reshapes instead of transposing, if an axis has size 1."""
    return data.reshape(attrs["shape"]) if 1 in data.shape else data.transpose(attrs["axes"]) * 1


def beyond_the_end(attrs: Mapping[str, Any], data: Array) -> Array:
    """Reads whole vectors of eight, and includes elements after the data."""
    flat = np.ascontiguousarray(data).reshape(-1)
    whole = as_strided(flat, (flat.size + 1,), flat.strides)
    return np.maximum(flat + 0 * whole[1:], 0).reshape(data.shape)


def in_place(attrs: Mapping[str, Any], data: Array) -> Array:
    return np.maximum(data, data.dtype.type(0), out=data)


def no_constants(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
    """Runs a region with zeros for constants."""
    zeros = {name: 0 * array for name, array in graph.constants.items()}
    return run(Graph(graph.nodes, graph.heads, zeros, graph.kernels), inputs)


def keeps_state() -> Run:
    """Returns the first results of a region in all runs."""
    known: dict[int, Sequence[Array]] = {}

    def how(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
        if id(graph) not in known:
            known[id(graph)] = [np.array(result) for result in run(graph, inputs)]
        return known[id(graph)]

    return how


def accumulates() -> Run:
    """Returns a run that never clears its buffer: each result is added to the last one's."""
    sums: dict[int, list[Array]] = {}

    def how(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
        results = [np.array(result) for result in run(graph, inputs)]
        before = sums.get(id(graph), [0 * result for result in results])
        sums[id(graph)] = [one + other for one, other in zip(results, before, strict=True)]
        return sums[id(graph)]

    return how


def shares_a_buffer() -> Run:
    """Shares the buffer of inputs with other threads' runs."""
    places: dict[int, list[Array]] = {}

    def how(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
        places[id(graph)] = inputs
        time.sleep(0.005)
        return run(graph, places[id(graph)])

    return how


def one_weight_for_a_shape() -> Run:
    """Looks up a constant by its shape, so that a region gets the first region's constant."""
    packed: dict[tuple[int, ...], Array] = {}

    class Packed(Graph):
        def constant(self, node: Mapping[str, Any]) -> Array:
            array = super().constant(node)
            return packed.setdefault(array.shape, array)

    def how(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
        return run(Packed(graph.nodes, graph.heads, graph.constants, graph.kernels), inputs)

    return how


def exchanged_constants(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
    """Swaps constants of one shape."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, array in graph.constants.items():
        alike.setdefault(array.shape, []).append(name)
    swapped = {
        name: graph.constants[other]
        for names in alike.values()
        for name, other in zip(names, reversed(names), strict=True)
    }
    return run(Graph(graph.nodes, graph.heads, swapped, graph.kernels), inputs)


def last_head(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
    """Returns the last value of a region for every result of one shape."""
    results = run(graph, inputs)
    return [results[-1] if one.shape == results[-1].shape else one for one in results]
