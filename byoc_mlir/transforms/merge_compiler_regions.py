"""The pass `merge-compiler-regions`: merges regions of one backend.

The merge order does not depend on the order in which a block lists its ops.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.limits import in_time
from byoc_mlir.transforms.annotated_regions import (
    AnnotatedRegion,
    find_regions,
    insert_annotations,
    strip_annotations,
)
from byoc_mlir.transforms.blocks import partitioned_blocks, region_symbols, values_used
from byoc_mlir.transforms.contraction import MergedNodes
from byoc_mlir.transforms.region_graph import RegionGraph, build_graph
from byoc_mlir.transforms.union_find import UnionFind


@dataclass(frozen=True)
class OffTargetDepths:
    """Off-target depth of each node: the largest number of off-target nodes on a path to it.

    Off-target nodes belong to another backend or the host; constants do not count. The object also
    records, for each node, one path with that many off-target nodes; these paths form a forest.
    """

    level: list[int]
    _enter: list[int]
    _leave: list[int]

    @staticmethod
    def of(graph: RegionGraph, compiler: str) -> OffTargetDepths:
        """Returns the depths of a graph's nodes, seen from backend `compiler`."""
        level = [0] * len(graph.nodes)
        children: list[list[int]] = [[] for _ in graph.nodes]
        roots: list[int] = []
        for node in graph.order():
            parent = None
            for source in graph.predecessors[node]:
                before = graph.nodes[source]
                if before.is_constant:
                    continue
                reached = level[source] + (before.compiler != compiler)
                if parent is None or reached > level[node]:
                    parent, level[node] = source, reached
            (roots if parent is None else children[parent]).append(node)
        return OffTargetDepths(level, *_tour(roots, children))

    def separated(self, one: int, two: int) -> bool:
        """True if the recorded path to one node contains the other one, with an off-target node in
        between.

        `True` proves that the two nodes cannot merge. `False` proves nothing, except for nodes of
        equal depth: no path between these has an off-target node.
        """
        if self.level[one] > self.level[two]:
            one, two = two, one
        above = self._enter[one] <= self._enter[two] <= self._leave[one]
        return above and self.level[one] < self.level[two]

    def unseparated_pairs(self, nodes: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yields all pairs of `nodes` for which `separated` is false, in linear time."""
        above: list[int] = []  # on the recorded path to the current node, along which depths grow
        aside: list[int] = []
        for node in sorted(nodes, key=self._enter.__getitem__):
            while above and self._leave[above[-1]] < self._enter[node]:
                aside.append(above.pop())
            yield from ((other, node) for other in aside)
            for other in reversed(above):
                if self.level[other] < self.level[node]:
                    break
                yield other, node
            above.append(node)


def _tour(roots: list[int], children: list[list[int]]) -> tuple[list[int], list[int]]:
    """Returns each node's entry time in a depth-first walk of the forest, and the last entry time
    in its subtree.
    """
    enter, leave = [0] * len(children), [0] * len(children)
    clock = 0
    pending = [(root, False) for root in roots]
    while pending:
        node, done = pending.pop()
        if done:
            leave[node] = clock
            continue
        clock += 1
        enter[node] = clock
        pending.append((node, True))
        pending.extend((child, False) for child in children[node])
    return enter, leave


def canonical_keys(block: Block) -> Mapping[Operation, bytes]:
    """Returns a digest of each op, over the ops that lead to it and the ops that use its results.

    Ops with equal digests compute the same results from equal values, and have equal users.
    """
    computed = _from_operands(block)
    used = _from_users(block, computed)
    return {op: _digest(key, used[op]) for op, key in computed.items()}


def _from_operands(block: Block) -> dict[Operation, bytes]:
    text: dict[Attribute, bytes] = {}
    keys: dict[Operation, bytes] = {}

    def printed(attribute: Attribute) -> bytes:
        if attribute not in text:
            text[attribute] = str(attribute).encode()
        return text[attribute]

    def key_of(value: SSAValue) -> bytes:
        if isinstance(value, OpResult) and value.op in keys:
            return keys[value.op] + bytes(str(value.index), "ascii")
        if isinstance(value, BlockArgument) and value.block is block:
            return bytes(f"argument {value.index}", "ascii")
        return b"outside " + printed(value.type)

    for op in block.ops:
        described = (
            part
            for inner in op.walk()
            for part in (inner.name.encode(), *_properties(inner, printed))
        )
        types = (printed(type_) for type_ in op.result_types)
        keys[op] = _digest(*described, *types, *map(key_of, values_used(op)))
    return keys


def _properties(op: Operation, printed: Callable[[Attribute], bytes]) -> Iterator[bytes]:
    for name in sorted(op.properties):
        yield name.encode()
        yield printed(op.properties[name])


def _from_users(block: Block, computed: Mapping[Operation, bytes]) -> dict[Operation, bytes]:
    keys: dict[Operation, bytes] = {}
    for op in reversed(list(block.ops)):
        uses = sorted(
            bytes(f"{result.index} {use.index} ", "ascii")
            + computed.get(use.operation, b"inside of an op")
            + keys.get(use.operation, b"")
            for result in op.results
            for use in result.uses
        )
        keys[op] = _digest(*uses)
    return keys


def _digest(*parts: bytes) -> bytes:
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(4, "little") + part)
    return hashed.digest()


class MergeCompilerRegions(ModulePass):
    """Merges regions of one backend that feed each other or share an input.

    Two regions merge unless a path between them leads through the host or another backend: the
    merged region would have to wait for its own result. Afterwards no two adjacent regions can
    merge. The result does not depend on the order of the ops.

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
        blocks = list(partitioned_blocks(op))
        graphs = [build_graph(block, find_regions(block), outlined) for block in blocks]
        for graph in graphs:
            graph.order()  # refuses a region that cannot run as a whole, before any change
        for block, graph in zip(blocks, graphs, strict=True):
            strip_annotations(block)
            insert_annotations(merged_regions(block, graph, outlined))


def merged_regions(
    block: Block, graph: RegionGraph, outlined: Container[str]
) -> Sequence[AnnotatedRegion]:
    """Merges the regions of `graph` as far as possible; removes the block's annotations."""
    for compiler in _compilers(graph):
        graph = _rebuild(block, graph, _merge_levels(graph, compiler), outlined)
    pairs = list(_candidates(graph))
    if pairs:
        graph = _rebuild(block, graph, _merge_pairs(block, graph, pairs), outlined)
    return [
        AnnotatedRegion(node.compiler, node.ops)
        for node in graph.nodes
        if node.compiler is not None
    ]


def _merge_levels(graph: RegionGraph, compiler: str) -> Iterable[Sequence[int]]:
    """Groups nodes of equal off-target depth that feed each other or share an input.

    No off-target node lies between two nodes of equal depth, so all nodes of a group can merge.
    """
    level = OffTargetDepths.of(graph, compiler).level
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
    return _groups(groups.find, len(graph.nodes))


def _merge_pairs(
    block: Block, graph: RegionGraph, pairs: Iterable[tuple[int, int]]
) -> Iterable[Sequence[int]]:
    """Merges adjacent nodes of different depths, one pair at a time in canonical order.

    One test of each pair is enough: pairs that an off-target node separates stay separated, and
    merging a pair with all nodes between them creates no cycle.
    """
    contraction = MergedNodes(graph.order(), graph.successors, graph.predecessors)
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
    return _groups(contraction.find, len(graph.nodes))


def _candidates(graph: RegionGraph) -> Iterator[tuple[int, int]]:
    """Yields once each pair of regions of one backend that feed each other or share an input.

    Skips pairs that are known to be separated.
    """
    for compiler in _compilers(graph):
        levels = OffTargetDepths.of(graph, compiler)
        own = {node for node, one in enumerate(graph.nodes) if one.compiler == compiler}
        feeding = (
            (node, user) for node in own for user in own.intersection(graph.successors[node])
        )
        pairs = [pair for pair in feeding if not levels.separated(*pair)]
        for readers in graph.readers.values():
            pairs += levels.unseparated_pairs(own.intersection(readers))
        yield from {(min(pair), max(pair)) for pair in pairs}


def _ranks(block: Block, graph: RegionGraph) -> list[int]:
    """Returns the rank of each node: by depth, then by the digests of its ops."""
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


def _groups(find: Callable[[int], int], count: int) -> Iterable[Sequence[int]]:
    groups = dict[int, list[int]]()
    for node in range(count):
        groups.setdefault(find(node), []).append(node)
    return groups.values()


def _rebuild(
    block: Block,
    graph: RegionGraph,
    groups: Iterable[Sequence[int]],
    outlined: Container[str],
) -> RegionGraph:
    """Rebuilds the graph after merging each group of nodes."""
    place = {op: position for position, op in enumerate(block.ops)}
    regions: list[AnnotatedRegion] = []
    for group in groups:
        compiler = graph.nodes[group[0]].compiler
        if compiler is not None:
            ops = (op for node in group for op in graph.nodes[node].ops)
            regions.append(AnnotatedRegion(compiler, tuple(sorted(ops, key=place.__getitem__))))
    return build_graph(block, regions, outlined)
