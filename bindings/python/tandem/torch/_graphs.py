"""The common parts of compiler passes: new nodes, uses of nodes, and their removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .. import errors
from .._library import shown
from ._patterns import IN_PLACE, is_call

aten = torch.ops.aten


def check(graph: Any) -> None:
    """Raises for anything but a graph with shapes."""
    if not isinstance(graph, Graph):
        raise errors.InvalidType(f"graph: {shown(graph)} given, allowed is a graph of torch.fx or its module")
    if not any("val" in node.meta for node in graph.nodes):
        raise errors.InvalidArgument("graph: a graph without shapes given, allowed is one that make_fx has traced")


def within(module: GraphModule, fuse: Callable[[Graph], int]) -> int:
    """Runs a pass on the graph of a module. Returns the number of replacements."""
    count = fuse(module.graph)
    module.recompile()
    return count


def call(graph: Graph, function: Any, *arguments: Any) -> Node:
    """A new node with its value, which later passes look at."""
    made = graph.call_function(function, arguments)
    made.meta["val"] = function(*torch.fx.node.map_arg(arguments, lambda one: one.meta["val"]))
    return made


def leads_only_to(node: Node, ends: tuple[Node | None, ...]) -> bool:
    """Whether nothing but the computation of `ends` uses `node`."""
    seen, left = set(ends), [node]
    while left:
        one = left.pop()
        if one in seen:
            continue
        if not one.users:
            return False
        seen.add(one)
        left.extend(one.users)
    return True


def erase(graph: Graph, nodes: Iterable[Node]) -> None:
    """Removes what nothing uses any more, and `nodes`, the last one first: a wait counts as a side effect."""

    # torch's own norm adds in place to a mean that only this addition sees.
    def in_place() -> list[Node]:
        found = [one for one in graph.nodes if is_call(one, *IN_PLACE) and is_call(one.args[0], aten.mean.dim)]
        return [one for one in found if len(one.args[0].users) == 1]

    for unused in (lambda: nodes, in_place):
        graph.eliminate_dead_code()
        left = set(graph.nodes)
        for one in unused():
            if one in left and len(one.users) == 0:
                graph.erase_node(one)
    graph.eliminate_dead_code()
