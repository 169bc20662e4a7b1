"""Who communicates: the ways to do what begins and ends each half of a layer.

Each way has two forms. In `whole` every process holds all rows, and an all-reduce ends each half. In `divided` a
process holds its part of the rows between the products (sequence parallelism): an all-gather begins each half, and a
reduce-scatter ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from experts import InTandem

EPSILON = 1e-5
ONE_SHOT_BYTES = 512 << 10  # symm_mem: more are reduced by two shots
DIVIDED_ROWS = 256  # fewer rows of a prompt stay whole
ALONE = "alone"
"""The way without communication: each process takes its partial sums as they are."""


@dataclass
class Form:
    """The calls of a layer that meet the other processes. Weights are n x k."""

    enter: Callable
    """enter(x, y, weight): the product of all rows. y is the norm of x, or None if the call has to make it."""
    add: Callable
    """add(x, y, weight): x plus the sum of y @ weight.t() over all processes, and its norm or None."""
    mix: Callable
    """mix(x, y, words, experts): x plus the sums of the experts of these words' rows y, and its norm or None."""


@dataclass
class Way:
    whole: Form
    divided: Form
    communicates: bool = True


def norm(x):
    """The norm before each part of a layer, whose weights are ones."""
    return F.rms_norm(x, x.shape[-1:], eps=EPSILON)


def own_rows(x):
    """This process's part of the rows."""
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def then_norm(multiply):
    """A product that is summed over all processes, with the addition and the norm behind it."""

    def add(x, y, weight):
        whole = x + multiply(y, weight)
        return whole, norm(whole)

    return add


def simple(gather, scatter, reduce, mix, **options):
    """A way whose calls do not contain norms. `mix` has the calls of experts in both forms."""
    whole = Form(lambda x, y, weight: F.linear(y, weight), then_norm(reduce), mix[0])
    return Way(whole, Form(lambda x, y, weight: gather(y, weight), then_norm(scatter), mix[1]), **options)


def gathered(y):
    """The rows of all processes."""
    rows = y.new_empty(dist.get_world_size() * len(y), y.shape[1])
    dist.all_gather_into_tensor(rows, y)
    return rows


def scattered(product):
    """The sum over all processes of this process's part of the rows."""
    part = product.new_empty(len(product) // dist.get_world_size(), product.shape[1])
    dist.reduce_scatter_tensor(part, product)
    return part


def reduced(product):
    """The sum over all processes."""
    dist.all_reduce(product)
    return product


def in_torch(total, gather, scatter):
    """The calls of experts in both forms. `total` and `scatter` sum over all processes, and `gather` joins their rows.

    These need no counts on the host. all_to_all_single does, and a captured graph does not have them.
    """

    def whole(x, y, words, experts):
        x = x + total(experts.partial(y, *experts.choose(y, words)))
        return x, norm(x)

    def divided(x, y, words, experts):
        ids, weights = experts.choose(y, words)
        both = gather(torch.cat((ids.view(torch.float32), weights), 1))
        ids, weights = both.chunk(2, -1)
        x = x + scatter(experts.partial(gather(y), ids.contiguous().view(torch.int32), weights))
        return x, norm(x)

    return whole, divided


def torch_distributed():
    """Products, and collectives of torch.distributed beside them: NCCL's on GPUs, Gloo's on CPUs."""
    return simple(
        lambda y, weight: F.linear(gathered(y), weight),
        lambda y, weight: scattered(F.linear(y, weight)),
        lambda y, weight: reduced(F.linear(y, weight)),
        in_torch(reduced, gathered, scattered),
    )


def in_symmetric_memory(group):
    """PyTorch's fused operators and its all-reduces in symmetric memory. The next all-reduce may overwrite a result.

    NCCL moves divided rows of experts, because PyTorch's operators for them need NVSHMEM.
    """
    import torch.distributed._symmetric_memory as symm_mem

    buffers = {}

    def gather(y, weight):
        return torch.ops.symm_mem.fused_all_gather_matmul(y, [weight.t()], 0, group)[1][0]

    def scatter(y, weight):
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(y, weight.t(), "sum", 0, group)

    def buffer(rows, columns, like):
        if (rows, columns) not in buffers:
            buffers[rows, columns] = symm_mem.empty(rows, columns, device=like.device, dtype=like.dtype)
            symm_mem.rendezvous(buffers[rows, columns], group)
        return buffers[rows, columns]

    def total(product):
        if product.nbytes <= ONE_SHOT_BYTES:
            return torch.ops.symm_mem.one_shot_all_reduce(product, "sum", group)
        return torch.ops.symm_mem.two_shot_all_reduce_(product, "sum", group)

    def reduce(y, weight):
        return total(torch.matmul(y, weight.t(), out=buffer(len(y), len(weight), y)))

    def total_of(product):
        return total(buffer(*product.shape, product).copy_(product))

    return simple(gather, scatter, reduce, in_torch(total_of, gathered, scattered))


def tandem_ways(group, fuse):
    """One operator for product and collective; with `fuse` also one for the norm beside them."""
    import tandem.torch as tt

    experts = InTandem(group)

    def mix_whole(x, y, words, given):
        x = x + tt.all_reduce(experts.partial(y, words, given), group=group)
        return x, norm(x)

    def mix_divided(x, y, words, given):
        x = experts.divided(x, y, words, given)
        return x, norm(x)

    plain = simple(
        lambda y, weight: tt.all_gather_matmul(y, weight.t(), group=group),
        lambda y, weight: tt.matmul_reduce_scatter(y, weight.t(), group=group),
        lambda y, weight: tt.matmul_all_reduce(y, weight.t(), group=group),
        (mix_whole, mix_divided),
    )
    if not fuse:
        return {"tandem": plain}

    def add(x, y, weight):
        normed, whole, _ = tt.all_reduce_norm(F.linear(y, weight), x, epsilon=EPSILON, group=group)
        return whole, normed

    def norm_and_enter(x, y, weight):
        return tt.norm_all_gather_matmul(x, weight.t(), epsilon=EPSILON, keep_sum=False, group=group)[0]

    def add_alone(x, y, weight):
        return x + tt.matmul_reduce_scatter(y, weight.t(), group=group), None

    def mix(x, y, words, given):
        normed, whole, _ = tt.all_reduce_norm(experts.partial(y, words, given), x, epsilon=EPSILON, group=group)
        return whole, normed

    def mix_alone(x, y, words, given):
        return experts.divided(x, norm(x), words, given), None

    fused = Way(Form(plain.whole.enter, add, mix), Form(norm_and_enter, add_alone, mix_alone))
    return {"tandem": plain, "tandem --fuse": fused}


def without_communication():
    """Products of as many rows as the other ways have."""
    repeated = dist.get_world_size(), 1
    return simple(
        lambda y, weight: F.linear(y.repeat(repeated), weight),
        lambda y, weight: own_rows(F.linear(y, weight)),
        F.linear,
        in_torch(lambda product: product, lambda y: y.repeat(repeated), own_rows),
        communicates=False,
    )


def ways(names, fuse):
    """The ways of these names, in their order, and the one without communication."""
    group, made = dist.group.WORLD.group_name, {}
    for name in names:
        if name == "tandem":
            made |= tandem_ways(group, fuse)
        else:
            made[name] = in_symmetric_memory(group) if name == "symm_mem" else torch_distributed()
    return made | {ALONE: without_communication()}
