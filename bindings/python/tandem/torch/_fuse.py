"""A compiler pass: all-reduce -> add -> norm (-> quantisation) in a traced graph becomes tandem.all_reduce_norm.

The graph is one of aten operators, as make_fx, AOTAutograd and Inductor trace it. All-reduces are those of functional
collectives, which torch.distributed's calls become, and tandem.all_reduce. The fused operator returns the sum behind
the additions, so an all-reduced tensor that has other uses stays as it is.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from . import _groups
from ._graphs import call, check, erase, leads_only_to, within
from ._patterns import SCALE_GROUP, Norm, Quantised, Sum, dtype_of, find_norm, find_quantised, find_sum, shape_of

aten = torch.ops.aten


def _reshape(graph: Graph, scales: Node, wanted: tuple[Any, ...] | None) -> Node:
    """The operator's scales in the shape that the graph's have: with one more axis of length 1, or without it."""
    made = shape_of(scales)
    assert made is not None and wanted is not None
    if len(made) < len(wanted):
        return call(graph, aten.unsqueeze.default, scales, -1)
    return call(graph, aten.squeeze.dim, scales, -1) if len(made) > len(wanted) else scales


def _place(graph: Graph, norm: Norm, parts: Sum) -> Node | None:
    """The first use of the sum, if all inputs are there before it."""
    inputs = {one for one in (parts.x, parts.residual, norm.weight, parts.bias, norm.bias) if one is not None}
    for node in graph.nodes:
        if node in norm.of.users:
            return node if not inputs else None
        inputs.discard(node)
    return None


def _quantisation(norm: Norm) -> Quantised | None:
    """The fp8 form of a norm that is needed in no other form."""
    found = find_quantised(norm.node)
    if found is None or not leads_only_to(norm.node, (found.node, found.scales)):
        return None
    if found.scales is None:
        return found
    rows, scales = (shape_of(one) or () for one in (norm.node, found.scales))
    made = (*rows[:-1], 1 if found.kind == "row" else rows[-1] // SCALE_GROUP)
    is_known = scales in (made, (*made, 1)) or (found.kind == "row" and scales == rows[:-1])
    return found if is_known and dtype_of(found.scales) == torch.float32 else None


def _replace(graph: Graph, norm: Norm, parts: Sum) -> bool:
    place = _place(graph, norm, parts)
    if place is None:
        return False
    quantised = _quantisation(norm)
    kind, scale = (quantised.kind, quantised.scale) if quantised is not None else ("none", 1.0)
    keeps_sum = not leads_only_to(norm.of, (norm.node,))
    with graph.inserting_before(place):
        made = call(
            graph,
            torch.ops.tandem.all_reduce_norm.default,
            parts.x,
            parts.residual,
            norm.weight,
            parts.bias,
            norm.bias,
            norm.kind,
            norm.epsilon,
            kind,
            scale,
            keeps_sum,
            _groups.resolve(parts.group),
        )
        out = call(graph, operator.getitem, made, 0)
        if quantised is not None and quantised.scales is not None:
            scales = _reshape(graph, call(graph, operator.getitem, made, 2), shape_of(quantised.scales))
            quantised.scales.replace_all_uses_with(scales)
        (norm.node if quantised is None else quantised.node).replace_all_uses_with(out)
        if keeps_sum:
            norm.of.replace_all_uses_with(call(graph, operator.getitem, made, 1))
    return True


def fuse_all_reduce_norm(graph: Graph | GraphModule) -> int:
    """Replaces each all-reduce with the addition and the norm behind it. Returns the number of these.

    The graph has shapes and aten operators, as make_fx, AOTAutograd and Inductor trace it. The fused sum is rounded
    once, so the last bits differ from those of the separate operators.
    """
    if isinstance(graph, GraphModule):
        return within(graph, fuse_all_reduce_norm)
    check(graph)
    count = 0
    # The last node of a norm comes first, so that none of its inner nodes counts as a norm.
    for node in reversed(list(graph.nodes)):
        norm = find_norm(node) if len(node.users) > 0 else None
        parts = find_sum(norm.of) if norm is not None else None
        if norm is not None and parts is not None and _replace(graph, norm, parts):
            count += 1
            erase(graph, parts.nodes)
    graph.lint()
    return count
