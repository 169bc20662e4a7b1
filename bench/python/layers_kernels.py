"""Kernels in Triton that stand beside a library's calls in layers.py."""

from __future__ import annotations

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # on CPUs the functions of layers_forms.py take their place
    triton = None

if triton is not None:

    @triton.jit
    def _add_and_norm(x, residual, weight, out, total, scales, hidden, epsilon, BLOCK: tl.constexpr, QUANTISE: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = tl.arange(0, BLOCK)
        inside = at < hidden
        added = tl.load(x + row * hidden + at, inside, 0.0).to(tl.float32)
        added += tl.load(residual + row * hidden + at, inside, 0.0).to(tl.float32)
        tl.store(total + row * hidden + at, added.to(total.dtype.element_ty), inside)
        normed = added * tl.rsqrt(tl.sum(added * added) / hidden + epsilon) * tl.load(weight + at, inside, 0.0).to(tl.float32)
        if QUANTISE:
            scale = tl.maximum(tl.max(tl.abs(normed)), 1e-12) / 448.0
            tl.store(scales + row, scale)
            normed = normed / scale
        tl.store(out + row * hidden + at, normed.to(out.dtype.element_ty), inside)

    @triton.jit
    def _meet(pads, block, rank, RANKS: tl.constexpr):
        """Blocks of this number meet on all ranks. Each rank has a word for each block and peer, which returns to 0."""
        tl.debug_barrier()
        thread = tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
        peers = tl.arange(0, RANKS)
        own = tl.load(pads + rank).to(tl.pointer_type(tl.uint32))
        other = tl.load(pads + peers).to(tl.pointer_type(tl.uint32))
        if thread < RANKS:
            tl.inline_asm_elementwise(
                "{ .reg .u32 seen; .reg .pred again; send: atom.global.release.sys.cas.b32 seen, [$1], 0, 1; "
                "setp.ne.u32 again, seen, 0; @again bra send; mov.u32 $0, seen; }",
                "=r,l", [other + block * RANKS + rank], dtype=tl.uint32, is_pure=False, pack=1,
            )  # fmt: skip
            tl.inline_asm_elementwise(
                "{ .reg .u32 seen; .reg .pred again; take: atom.global.acquire.sys.cas.b32 seen, [$1], 1, 0; "
                "setp.ne.u32 again, seen, 1; @again bra take; mov.u32 $0, seen; }",
                "=r,l", [own + block * RANKS + peers], dtype=tl.uint32, is_pure=False, pack=1,
            )  # fmt: skip
        tl.debug_barrier()

    @triton.jit
    def _one_shot(buffers, pads, residual, weight, out, total, hidden, epsilon, rank, BLOCK: tl.constexpr, RANKS: tl.constexpr):
        row = tl.program_id(0)
        _meet(pads, row, rank, RANKS)
        at = tl.arange(0, BLOCK)
        inside = at < hidden
        begin = row.to(tl.int64) * hidden
        added = tl.load(residual + begin + at, inside, 0.0).to(tl.float32)
        for peer in tl.static_range(RANKS):
            peers_rows = tl.load(buffers + peer).to(tl.pointer_type(tl.bfloat16))
            added += tl.load(peers_rows + begin + at, inside, 0.0).to(tl.float32)
        _meet(pads, row, rank, RANKS)
        tl.store(total + begin + at, added.to(tl.bfloat16), inside)
        normed = added * tl.rsqrt(tl.sum(added * added) / hidden + epsilon) * tl.load(weight + at, inside, 0.0).to(tl.float32)
        tl.store(out + begin + at, normed.to(tl.bfloat16), inside)

    @triton.jit
    def _weigh(partial, lses, out, heads, batch, size, rank, BLOCK: tl.constexpr, RANKS: tl.constexpr):
        row, head = tl.program_id(0), tl.program_id(1)
        peers, at = tl.arange(0, RANKS), tl.arange(0, BLOCK)
        lse = tl.load(lses + peers * batch * heads + row * heads + head)
        own = tl.load(lses + rank * batch * heads + row * heads + head)
        greatest = tl.max(lse)
        weight = tl.exp(own - greatest) / tl.sum(tl.exp(lse - greatest))
        value = tl.load(partial + (row * heads + head) * size + at, at < size, 0.0).to(tl.float32) * weight
        tl.store(out + (head * batch + row) * size + at, value.to(out.dtype.element_ty), at < size)


def add_and_norm(x, residual, weight, out, total, scales, epsilon):
    """total = x + residual, and out = its norm, a row in each program; with scales for each row, out is fp8."""
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    given = scales if scales is not None else weight
    _add_and_norm[(rows,)](
        x, residual, weight, out, total, given, hidden, epsilon, BLOCK=block, QUANTISE=scales is not None, num_warps=16
    )


def one_shot(handle, residual, weight, out, total, epsilon):
    """The same in the kernel that loads and adds the rows of all ranks, as kraken's kernels do it."""
    rows, hidden = residual.shape
    _one_shot[(rows,)](
        torch_of(handle, "buffer_ptrs"), torch_of(handle, "signal_pad_ptrs"), residual, weight, out, total, hidden,
        epsilon, handle.rank, BLOCK=triton.next_power_of_2(hidden), RANKS=handle.world_size, num_warps=16,
    )  # fmt: skip


def torch_of(handle, name):
    """Addresses on all ranks as a tensor, which stays alive with the handle."""
    kept = _addresses.setdefault(id(handle), (handle, {}))[1]
    if name not in kept:
        kept[name] = torch.tensor(getattr(handle, name), dtype=torch.int64, device="cuda")
    return kept[name]


_addresses: dict = {}


def weigh(partial, lses, out, rank):
    """This rank's partial outputs times their weights, heads first."""
    batch, heads, size = partial.shape
    _weigh[(batch, heads)](
        partial, lses, out, heads, batch, size, rank, BLOCK=triton.next_power_of_2(size), RANKS=lses.shape[0]
    )
