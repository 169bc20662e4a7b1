"""A compiler pass: norm -> all-gather -> products in a traced graph becomes tandem.norm_all_gather_matmul.

It is the beginning of a block with sequence parallelism, whose norm has this PE's rows. All-gathers are those of
functional collectives along the first axis, tandem.all_gather and tandem.all_gather_matmul. The gathered rows and the
normed rows have no other use, because the fused operator does not return them.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node

from . import _groups
from ._graphs import call, check, erase, leads_only_to, within
from ._patterns import MOVES, TYPES, VIEWS, Norm, dtype_of, find_norm, is_call, shape_of

aten = torch.ops.aten


@dataclass
class Gather:
    """Normed rows that are gathered, and what is computed from them.

    `nodes` are those of the gather, the last one first. `products` are the nodes of results.
    """

    rows: Node
    group: Any
    nodes: tuple[Node, ...]
    products: list[Node]
    weights: list[Node]
    biases: list[Node]
    activation: str = "none"


def _rows_of(node: Any) -> Any:
    """The node before views that keep whole rows."""
    while is_call(node, *VIEWS) and shape_of(node)[-1:] == shape_of(node.args[0])[-1:]:
        node = node.args[0]
    return node


def _multiplies(node: Node) -> bool:
    return is_call(node, aten.mm.default, aten.addmm.default)


def _products_of(gathered: Node) -> list[Node] | None:
    """All products of gathered rows, if these have no other use."""
    found: list[Node] = []
    for user in gathered.users:
        if _multiplies(user) and user.args[-2] is gathered and user.args[-1] is not gathered:
            found.append(user)
        elif is_call(user, *VIEWS) and _rows_of(user) is _rows_of(gathered):
            inner = _products_of(user)
            if inner is None:
                return None
            found += inner
        else:
            return None
    return found


def _plain_gather(node: Node) -> Gather | None:
    """The gather whose result is `node`, with its products."""
    nodes: tuple[Node, ...] = (node,)
    if is_call(node, torch.ops._c10d_functional.wait_tensor.default):
        start = node.args[0]
        if not is_call(start, torch.ops._c10d_functional.all_gather_into_tensor.default) or len(start.users) != 1:
            return None
        nodes, (x, _, group) = (node, start), start.args
    elif is_call(node, torch.ops.tandem.all_gather.default):
        x, group = node.args
    else:
        return None
    products = _products_of(node)
    if not products:
        return None
    biases: list[Any] = [one.args[0] for one in products if is_call(one, aten.addmm.default)]
    if len(biases) not in (0, len(products)) or any(one.kwargs for one in products):
        return None
    if any(shape_of(bias) != shape_of(one)[-1:] for bias, one in zip(biases, products, strict=False)):
        return None
    weights: list[Any] = [one.args[-1] for one in products]
    return Gather(x, group, nodes, products, weights, biases)


def _fused_gather(node: Node) -> Gather | None:
    """The same for an operator that gathers and multiplies."""
    if not is_call(node, torch.ops.tandem.all_gather_matmul.default):
        return None
    x, weights, biases, activation, keeps, group = node.args
    if keeps or not all(is_call(user, operator.getitem) for user in node.users):
        return None
    made = {user.args[1]: user for user in node.users}
    products = [made[i] for i in range(len(weights)) if i in made]
    # A product that nothing uses has no node.
    return Gather(x, group, (node,), products, list(weights), list(biases), activation) if products else None


def _find(node: Node) -> tuple[Gather, Norm] | None:
    gather = _plain_gather(node) or _fused_gather(node)
    rows = _rows_of(gather.rows) if gather is not None else None
    norm = find_norm(rows) if isinstance(rows, Node) else None
    if gather is None or norm is None or dtype_of(norm.of) not in TYPES or len(shape_of(norm.of) or ()) < 2:
        return None
    if any(dtype_of(one) != dtype_of(norm.of) for one in (*gather.weights, *gather.biases)):
        return None
    is_flat = all(len(shape_of(one) or ()) == 2 for one in gather.products)
    if not is_flat and shape_of(gather.rows) != shape_of(norm.of):
        return None
    return (gather, norm) if leads_only_to(norm.node, gather.nodes[-1:]) else None


def _move_before(place: Node, node: Node, order: dict[Node, int]) -> bool:
    """Moves a view or conversion before `place`, with those that it needs. Returns whether the node stands there."""
    if order[node] < order[place]:
        return True
    if not is_call(node, *MOVES) or not all(_move_before(place, one, order) for one in node.all_input_nodes):
        return False
    place.prepend(node)
    order[node] = order[place] - 1
    return True


def _terms(norm: Norm, place: Node, order: dict[Node, int]) -> tuple[Node, Node | None, bool]:
    """The rows before the norm, the residual that is added to them, and whether their sum is needed."""
    of = norm.of
    if not is_call(of, aten.add.Tensor) or of.kwargs:
        return of, None, False
    x, residual = cast("tuple[Node, Node]", of.args)
    if any(shape_of(one) != shape_of(of) or dtype_of(one) != dtype_of(of) for one in (x, residual)):
        return of, None, False
    ends = (norm.node,)
    others = [user for user in of.users if not leads_only_to(user, ends)]
    # The sum is a result of the operator, so nothing needs it before.
    if any(order[user] < order[place] for user in others):
        return of, None, False
    return x, residual, len(others) > 0


def _replace(graph: Graph, gather: Gather, norm: Norm) -> bool:
    order = {node: i for i, node in enumerate(graph.nodes)}
    place = min(gather.products, key=order.__getitem__)
    inputs = [one for one in (norm.weight, norm.bias, *gather.weights, *gather.biases) if one is not None]
    if not all(_move_before(place, one, order) for one in inputs):
        return False
    x, residual, keeps_sum = _terms(norm, place, order)
    with graph.inserting_before(place):
        made = call(
            graph,
            torch.ops.tandem.norm_all_gather_matmul.default,
            x,
            residual,
            norm.weight,
            norm.bias,
            gather.weights,
            gather.biases,
            norm.kind,
            norm.epsilon,
            gather.activation,
            keeps_sum,
            _groups.resolve(gather.group),
        )
        for i, product in enumerate(gather.products):
            number = product.args[1] if is_call(product, operator.getitem) else i
            result = call(graph, operator.getitem, made, number)
            if len(shape_of(result) or ()) != len(shape_of(product) or ()):
                result = call(graph, aten.view.default, result, [-1, shape_of(product)[-1]])
            product.replace_all_uses_with(result)
        if keeps_sum:
            kept = call(graph, operator.getitem, made, len(gather.weights))
            norm.of.replace_all_uses_with(kept, delete_user_cb=lambda user: not leads_only_to(user, (norm.node,)))
    return True


def fuse_norm_all_gather_matmul(graph: Graph | GraphModule) -> int:
    """Replaces each norm whose rows are gathered and multiplied. Returns the number of these.

    A residual before the norm becomes a part of the operator. The graph has shapes and aten operators, as make_fx,
    AOTAutograd and Inductor trace it.
    """
    if isinstance(graph, GraphModule):
        return within(graph, fuse_norm_all_gather_matmul)
    check(graph)
    count = 0
    left = set(graph.nodes)
    for node in list(graph.nodes):
        found = _find(node) if node in left and len(node.users) > 0 else None
        if found is not None and _replace(graph, *found):
            count += 1
            erase(graph, found[0].nodes)
            left.intersection_update(graph.nodes)
    graph.lint()
    return count
