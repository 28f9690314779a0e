"""Merges regions of one backend wherever the result can still run as a whole."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from byoc_mlir.limits import in_time
from byoc_mlir.transforms.annotated_regions import (
    AnnotatedRegion,
    find_regions,
    insert_annotations,
    strip_annotations,
)
from byoc_mlir.transforms.blocks import blocks_of, host_functions, region_symbols
from byoc_mlir.transforms.canonical_keys import canonical_keys
from byoc_mlir.transforms.contraction import Contraction
from byoc_mlir.transforms.foreign_levels import ForeignLevels
from byoc_mlir.transforms.region_graph import RegionGraph, build_graph
from byoc_mlir.transforms.union_find import UnionFind


class MergeCompilerRegions(ModulePass):
    """Merges regions of one backend that feed each other or share an input.

    Two regions merge unless a path from one to the other leads over something else (the host,
    another backend): the merged region would have to wait for its own result. Afterwards no two
    neighbours are left that could merge, and the outcome does not depend on the order of the ops.

    ```mlir
    %0 = byoc.compiler_begin %x for "dnnl" : tensor<…>
    %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
    %2 = byoc.compiler_end %1 for "dnnl" : tensor<…>
    %3 = byoc.compiler_begin %2 for "dnnl" : tensor<…>
    %4 = relay.tanh %3 : (tensor<…>) -> tensor<…>
    %5 = byoc.compiler_end %4 for "dnnl" : tensor<…>
    ```

    becomes

    ```mlir
    %0 = byoc.compiler_begin %x for "dnnl" : tensor<…>
    %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
    %4 = relay.tanh %1 : (tensor<…>) -> tensor<…>
    %5 = byoc.compiler_end %4 for "dnnl" : tensor<…>
    ```
    """

    name = "merge-compiler-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outlined = region_symbols(op)
        blocks = [block for func in host_functions(op) for block in blocks_of(func)]
        graphs = [build_graph(block, find_regions(block), outlined) for block in blocks]
        for graph in graphs:
            graph.order()  # refuses a region that cannot run as a whole, before any change
        for block, graph in zip(blocks, graphs, strict=True):
            strip_annotations(block)
            insert_annotations(merged_regions(block, graph, outlined))


def merged_regions(
    block: Block, graph: RegionGraph, outlined: Container[str]
) -> Sequence[AnnotatedRegion]:
    """The regions of `graph` merged as far as they can be; the block loses its annotations."""
    for compiler in _compilers(graph):
        graph = _rebuild(block, graph, _merge_levels(graph, compiler), outlined)
    pairs = list(_candidates(graph))
    if pairs:
        graph = _rebuild(block, graph, _merge_pairs(block, graph, pairs), outlined)
    return _regions(graph)


def _merge_levels(graph: RegionGraph, compiler: str) -> Iterable[Sequence[int]]:
    """Groups neighbours with the same number of foreign nodes in sequence before them.

    On a path between two of one level lies nothing foreign, so that all of them can merge.
    """
    level = ForeignLevels.of(graph, compiler).level
    groups = UnionFind[int]()
    first: dict[tuple[object, int], int] = {}
    for node, one in enumerate(graph.nodes):
        if one.compiler != compiler:
            continue
        for successor in graph.successors[node]:
            if graph.nodes[successor].compiler == compiler and level[successor] == level[node]:
                groups.join(node, successor)
    for value, readers in graph.readers.items():
        for node in readers:
            if graph.nodes[node].compiler == compiler:
                groups.join(first.setdefault((value, level[node]), node), node)
    return _groups(groups, len(graph.nodes))


def _merge_pairs(
    block: Block, graph: RegionGraph, pairs: Iterable[tuple[int, int]]
) -> Iterable[Sequence[int]]:
    """Merges neighbours of different levels, one pair at a time in an order of their own.

    A pair that something foreign separates once is separated for ever, and merging a pair with
    all between them closes no cycle: so that each pair needs to be looked at once.
    """
    contraction = Contraction(graph.order(), graph.successors, graph.predecessors)
    rank = _ranks(block, graph)
    ordered = sorted(pairs, key=lambda pair: sorted((rank[pair[0]], rank[pair[1]])))
    for one, two in in_time(ordered):
        if contraction.find(one) == contraction.find(two):
            continue
        compiler = graph.nodes[one].compiler
        span = contraction.span(
            one, two, lambda node, compiler=compiler: graph.nodes[node].compiler != compiler
        )
        if span is not None:
            contraction.merge(span)
    groups = dict[int, list[int]]()
    for node in range(len(graph.nodes)):
        groups.setdefault(contraction.find(node), []).append(node)
    return groups.values()


def _candidates(graph: RegionGraph) -> Iterator[tuple[int, int]]:
    """Every two regions of one backend that feed each other or share an input, once.

    Left out are those that are known to be separated.
    """
    for compiler in _compilers(graph):
        levels = ForeignLevels.of(graph, compiler)
        own = {node for node, one in enumerate(graph.nodes) if one.compiler == compiler}
        feeding = (
            (node, user) for node in own for user in own.intersection(graph.successors[node])
        )
        pairs = [pair for pair in feeding if not levels.separated(*pair)]
        for readers in graph.readers.values():
            pairs += levels.unseparated_pairs(own.intersection(readers))
        yield from {(min(pair), max(pair)) for pair in pairs}


def _ranks(block: Block, graph: RegionGraph) -> list[int]:
    """The place of each node by depth, then by what it computes and is used for."""
    keys = canonical_keys(block)
    depth = [0] * len(graph.nodes)
    for node in graph.order():
        for source in graph.predecessors[node]:
            depth[node] = max(depth[node], depth[source] + (not graph.nodes[source].is_constant))
    described = [sorted(keys[op] for op in node.ops) for node in graph.nodes]
    ranked = sorted(range(len(graph.nodes)), key=lambda node: (depth[node], described[node], node))
    ranks = [0] * len(ranked)
    for rank, node in enumerate(ranked):
        ranks[node] = rank
    return ranks


def _compilers(graph: RegionGraph) -> Sequence[str]:
    return sorted({node.compiler for node in graph.nodes if node.compiler is not None})


def _groups(sets: UnionFind[int], count: int) -> Iterable[Sequence[int]]:
    groups = dict[int, list[int]]()
    for node in range(count):
        groups.setdefault(sets.find(node), []).append(node)
    return groups.values()


def _rebuild(
    block: Block,
    graph: RegionGraph,
    groups: Iterable[Sequence[int]],
    outlined: Container[str],
) -> RegionGraph:
    """The graph after merging each group of nodes."""
    place = {op: position for position, op in enumerate(block.ops)}
    regions: list[AnnotatedRegion] = []
    for group in groups:
        compiler = graph.nodes[group[0]].compiler
        if compiler is not None:
            ops = (op for node in group for op in graph.nodes[node].ops)
            regions.append(AnnotatedRegion(compiler, tuple(sorted(ops, key=place.__getitem__))))
    return build_graph(block, regions, outlined)


def _regions(graph: RegionGraph) -> Sequence[AnnotatedRegion]:
    return [
        AnnotatedRegion(node.compiler, node.ops)
        for node in graph.nodes
        if node.compiler is not None
    ]
