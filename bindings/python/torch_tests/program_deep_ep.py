"""DeepEP's interface: both kinds of dispatch and combine beside references of gathered tensors."""

from __future__ import annotations

import tandem
import torch
import torch.distributed as dist
from common import gathered, join
from tandem.torch.deep_ep import Buffer, Config, EventOverlap

rank, size = join()
HERE, TOP_K, HIDDEN = 3 if size > 1 else 4, 4, 256
EXPERTS, MOST = HERE * size, 8
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def padded(x, fill=0):
    """`x` of all ranks, each with MOST rows."""
    made = torch.full((MOST, *x.shape[1:]), fill, dtype=x.dtype)
    made[: len(x)] = x
    return [one.view(x.dtype) for one in gathered(made.view(torch.uint8))]


def inputs(tokens):
    torch.manual_seed(7 * rank + 1)
    x = torch.randn(tokens, HIDDEN).to(BF16)
    ids = torch.stack([torch.randperm(EXPERTS)[:TOP_K] for _ in range(tokens)]) if tokens else torch.zeros(0, TOP_K)
    ids = ids.to(torch.int64)
    ids[torch.rand(tokens, TOP_K) < 0.3] = -1
    return x, ids, torch.rand(tokens, TOP_K)


def quantised(x):
    parts = x.float().view(len(x), -1, 128)
    scales = parts.abs().amax(-1).clamp(min=1e-4) / 448
    return (parts / scales.unsqueeze(-1)).view(x.shape).to(FP8), scales


def same(a, b):
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def normal(tokens, with_ids, is_fp8, worst):
    """One dispatch, one along its routes, and combines."""
    x, ids, weights = inputs(tokens)
    given = quantised(x) if is_fp8 else x
    per_rank, none, per_expert, is_in_rank, event = buffer.get_dispatch_layout(ids, EXPERTS)
    event.current_stream_wait()
    owners = torch.where(ids >= 0, ids // HERE, -1)
    assert none is None and per_rank.dtype == per_expert.dtype == torch.int32
    for pe in range(size):
        assert torch.equal(is_in_rank[:, pe], (owners == pe).any(1)) and per_rank[pe] == is_in_rank[:, pe].sum()
    assert per_expert.tolist() == [int((ids == e).sum()) for e in range(EXPERTS)]

    options = {"topk_idx": ids, "topk_weights": weights} if with_ids else {}
    received, got_ids, got_weights, counts, handle, event = buffer.dispatch(
        given,
        num_tokens_per_rank=per_rank,
        is_token_in_rank=is_in_rank,
        num_tokens_per_expert=per_expert,
        expert_alignment=4,
        num_worst_tokens=MOST * size if worst else 0,
        previous_event=Buffer.capture(),
        async_finish=True,
        config=Buffer.get_dispatch_config(size),
        **options,
    )
    with event:
        pass
    here = [one.bool()[:, rank] for one in padded(is_in_rank.to(torch.uint8))]
    wanted = [torch.cat([a[b] for a, b in zip(padded(one), here)]) for one in (given if is_fp8 else (given,))]
    for got, want in zip(received if is_fp8 else (received,), wanted):
        assert len(got) == (MOST * size if worst else len(want)) and same(got[: len(want)], want)
    count = len(wanted[0])
    total = sum(gathered(per_expert))[rank * HERE : (rank + 1) * HERE]
    assert counts == ([] if worst else [-(-int(one) // 4) * 4 for one in total])
    if with_ids:
        all_ids = torch.cat([a[b] for a, b in zip(padded(ids, -1), here)]) - rank * HERE
        all_weights = torch.cat([a[b] for a, b in zip(padded(weights), here)])
        is_here = (all_ids >= 0) & (all_ids < HERE)
        assert torch.equal(got_ids[:count], torch.where(is_here, all_ids, -1)) and got_ids[count:].eq(-1).all()
        assert torch.equal(got_weights[:count], torch.where(is_here, all_weights, 0.0))
    else:
        assert got_ids is None and got_weights is None

    again = buffer.dispatch(given, handle=handle)
    assert all(same(a[:count], b) for a, b in zip(again[0] if is_fp8 else (again[0],), wanted))
    assert again[1:5] == (None,) * 4
    if is_fp8:  # rows of another form along the same routes
        assert same(buffer.dispatch(x, handle=handle)[0][:count], torch.cat([a[b] for a, b in zip(padded(x), here)]))

    rows = torch.randn(received[0].shape if is_fp8 else received.shape).to(BF16) * (rank + 1)
    bias = torch.randn(tokens, HIDDEN).to(BF16)
    out, out_weights, _ = buffer.combine(rows, handle, topk_weights=got_weights, bias=(bias, bias))
    sums = torch.zeros(size, MOST, HIDDEN, dtype=torch.float64)
    sums[torch.stack(here)] = rows[:count].double()
    for one in range(size):  # every rank's rows, to the ranks of their tokens
        sent = sums[one].clone()
        part = sum(gathered(sent))
        if one == rank:
            mine = part[:tokens]
    mine = mine + 2 * bias.double()
    assert ((out.double() - mine).abs() <= 2**-6 * (1 + mine.abs())).all()
    if with_ids:
        assert torch.equal(out_weights, torch.where(ids >= 0, weights, 0.0))
    assert buffer.combine(rows, handle)[1] is None


def low_latency(tokens, use_fp8, hook):
    """A dispatch and its combine with weights."""
    x, ids, weights = inputs(tokens)
    stats = torch.zeros(HERE, dtype=torch.int32)
    received, counts, handle, event, receive = buffer.low_latency_dispatch(
        x, ids, MOST, EXPERTS, stats, use_fp8=use_fp8, async_finish=not hook, return_recv_hook=hook
    )
    receive() if hook else event.current_stream_wait()
    rows = received[0] if use_fp8 else received
    assert rows.shape == (HERE, MOST * size, HIDDEN) and torch.equal(stats, counts)
    if use_fp8:
        assert received[1].shape == (HERE, MOST * size, HIDDEN // 128) and received[1].stride(1) == 1
        rows = (rows.float().unflatten(-1, (-1, 128)) * received[1].unsqueeze(-1)).flatten(-2).to(BF16)
    sources, ranges, *rest = handle
    assert rest == [MOST, HIDDEN, EXPERTS] and len(handle) == 5
    all_x, all_ids = padded(x), padded(ids, -1)
    for e in range(HERE):
        assert counts[e] == sum(int((one == rank * HERE + e).sum()) for one in all_ids)
        for pe in range(size):
            begin, count = int(ranges[e, pe]) >> 32, int(ranges[e, pe]) & (2**32 - 1)
            tokens_of = (all_ids[pe] == rank * HERE + e).any(1).nonzero().flatten()
            assert torch.equal(sources[e, begin : begin + count].long(), tokens_of)
            want, got = all_x[pe][tokens_of].float(), rows[e, begin : begin + count].float()
            assert ((got - want).abs() <= (want.abs() / 8 + 0.02 if use_fp8 else 0)).all()
    factor = 1.0 + torch.arange(HERE).view(-1, 1, 1) + rank
    y = torch.where(rows.isfinite(), rows, 0) * factor.to(BF16)
    y[torch.arange(MOST * size) >= counts.view(-1, 1)] = torch.nan  # rows that no token has
    if hook:
        buffer.get_next_low_latency_combine_buffer(handle).copy_(y)
    out = torch.empty_like(x)
    got, _, receive = buffer.low_latency_combine(
        torch.zeros_like(y) if hook else y, ids, weights, handle, zero_copy=hook, return_recv_hook=hook, out=out
    )
    if hook:
        receive()
    assert got is out
    factors = torch.where(ids >= 0, weights * (1.0 + ids % HERE + ids // HERE), 0.0).sum(1, keepdim=True)
    wanted = x.float() * factors
    assert ((got.float() - wanted).abs() <= (0.1 if use_fp8 else 0.02) * factors.clamp(min=1) * (0.1 + x.abs())).all()


def refused(kind, text, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        assert text in str(error) and isinstance(error, tandem.Error), error
    else:
        raise AssertionError((text, arguments, options))


buffer = Buffer(dist.group.WORLD, int(1e9), low_latency_mode=True, explicitly_destroy=True)
assert (buffer.rank, buffer.group_size, buffer.group) == (rank, size, dist.group.WORLD)
for case in (
    (5, True, False, False),
    (5 + rank % 2, True, True, False),
    (rank, False, False, False),
    (MOST, True, False, True),
):
    normal(*case)
buffer.clean_low_latency_buffer(MOST, HIDDEN, EXPERTS)
for case in ((5, False, False), (MOST - rank, True, True), (rank, False, True)):
    low_latency(*case)

x, ids, weights = inputs(4)
layout = dict(
    zip(
        ("num_tokens_per_rank", "_", "num_tokens_per_expert", "is_token_in_rank"),
        buffer.get_dispatch_layout(ids, EXPERTS),
    )
)
del layout["_"]
InvalidArgument, InvalidType, Unsupported = tandem.InvalidArgument, tandem.InvalidType, tandem.Unsupported
refused(Unsupported, "comm", Buffer, None, comm=3)
refused(Unsupported, "allow_mnnvl", Buffer, dist.group.WORLD, allow_mnnvl=True)
refused(InvalidArgument, "group", Buffer, "nothing")
refused(InvalidArgument, "new_num_sms", Buffer.set_num_sms, 3)
refused(InvalidArgument, "low_latency_mode", Buffer(None).low_latency_dispatch, x, ids, MOST, EXPERTS)
refused(Unsupported, "get_local_buffer_tensor", buffer.get_local_buffer_tensor, torch.int8)
if size > 1:
    refused(InvalidArgument, "num_experts", buffer.get_dispatch_layout, ids, EXPERTS + 1)
refused(InvalidType, "topk_idx", buffer.get_dispatch_layout, ids.int(), EXPERTS)
refused(InvalidType, "num_tokens_per_expert", buffer.dispatch, x)
refused(InvalidType, "x", buffer.dispatch, x.float(), **layout)
refused(InvalidType, "handle", buffer.dispatch, x, handle=(1, 2))
refused(InvalidType, "handle", buffer.combine, x, None)
refused(InvalidArgument, "topk_weights", buffer.dispatch, x, topk_idx=ids, **layout)
refused(InvalidArgument, "expert_alignment", buffer.dispatch, x, expert_alignment=0, **layout)
refused(InvalidArgument, "num_worst_tokens", buffer.dispatch, x, num_worst_tokens=1, **layout)
refused(InvalidType, "previous_event", buffer.dispatch, x, previous_event=3, **layout)
low = (x, ids, MOST, EXPERTS)
for name in ("round_scale", "use_ue8m0"):
    refused(Unsupported, name, buffer.low_latency_dispatch, *low, **{name: True})
refused(Unsupported, "dispatch_wait", buffer.low_latency_dispatch, *low, dispatch_wait_recv_cost_stats=x)
refused(InvalidArgument, "tokens", buffer.low_latency_dispatch, x, ids, 3, EXPERTS)
handle = buffer.low_latency_dispatch(*low)[2]
y = torch.zeros(HERE, MOST * size, HIDDEN, dtype=BF16)
refused(Unsupported, "use_logfmt", buffer.low_latency_combine, y, ids, weights, handle, use_logfmt=True)
refused(InvalidArgument, "x", buffer.low_latency_combine, y[1:], ids, weights, handle)
refused(InvalidType, "topk_weights", buffer.low_latency_combine, y, ids, weights.double(), handle)
assert Config(4).get_nvl_buffer_size_hint(1, 2) == 0 and isinstance(Buffer.capture(), EventOverlap)
buffer.destroy()
refused(InvalidArgument, "buffer", buffer.dispatch, x, **layout)
print("all equal")
# No shutdown: the end of the interpreter closes the world with its plans.
