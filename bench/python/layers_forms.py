"""The calls that layers.py times: Tandem's on symmetric memory, and those of PyTorch, NCCL and Triton beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import layers_kernels as kernels
import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.nn.functional as F
from processes import Member
from tandem import _c
from tandem._plan import ExchangePlan, HeadsPlan, NormPlan, OperatorPlan
from tandem.torch import _groups

EPSILON, BLOCK, FP8 = 1e-5, 128, torch.float8_e4m3fn
BF16, SUM = _c.TYPES["bfloat16"], _c.OPERATIONS["sum"]
Forms = dict[str, Callable[[], torch.Tensor]]


class Layers(Member):
    """A member and its world. Each method below `shots` returns the forms of one call."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.world = tt.world_of(device=device)
        self.kept: list[Any] = []

    def random(self, seed: int, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(*shape, generator=generator, device=self.device).to(dtype)

    def empty(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.empty(*shape, device=self.device, dtype=dtype)

    def heap(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Symmetric memory of Tandem."""
        made = self.world.empty(shape, str(dtype).removeprefix("torch."))
        self.kept.append(made)
        return made.local.torch()

    def symmetric(self, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """A copy in PyTorch's symmetric memory, with its handle."""
        made = symm_mem.empty(*x.shape, device=self.device, dtype=x.dtype)
        made.copy_(x)
        return made, symm_mem.rendezvous(made, self.group)

    def stream(self, x: torch.Tensor) -> int | None:
        return _groups.stream_of(x)

    def call(self, name: str, x: torch.Tensor, out: torch.Tensor, count: int, *last: int) -> torch.Tensor:
        self.world._enqueue(name, x.data_ptr(), out.data_ptr(), count, BF16, *last, self.stream(x))
        return out

    def all_reduce(self, rows: int, hidden: int) -> Forms:
        x = self.random(self.rank, rows, hidden)
        given, out, y = self.heap(rows, hidden).copy_(x), self.heap(rows, hidden), x.clone()
        forms: Forms = {
            "nccl": lambda: dist.all_reduce(y) or y,
            "tandem": lambda: self.call("all_reduce", given, out, x.numel(), SUM),
            "tandem fp8 wire": lambda: self.call("all_reduce_quantised", given, out, x.numel(), _c.WIRES["fp8"]),
        }
        return forms | {name: run for name, run in self.shots(x).items() if self.on_gpus}

    def shots(self, x: torch.Tensor) -> Forms:
        """All-reduces of PyTorch's symmetric memory."""
        if not self.on_gpus:
            return {}
        ops = torch.ops.symm_mem
        (one, _), (two, _) = self.symmetric(x), self.symmetric(x)
        forms: Forms = {}
        if x.numel() <= 1 << 21:
            forms["symm_mem one shot"] = lambda: ops.one_shot_all_reduce(one, "sum", self.group)
        if x.numel() >= 1 << 16:
            forms["symm_mem two shots"] = lambda: ops.two_shot_all_reduce_(two, "sum", self.group)
        return forms

    def norm_fields(self, rows: int, hidden: int, quantisation: str, x: torch.Tensor) -> dict[str, torch.Tensor]:
        fields = {"in_": self.heap(rows, hidden).copy_(x), "residual": self.random(98, rows, hidden)}
        fields |= {"weight": self.random(99, hidden), "sum": self.heap(rows, hidden)}
        fields["out"] = self.heap(rows, hidden, dtype=FP8 if quantisation == "row" else x.dtype)
        if quantisation == "row":
            fields["scales"] = self.heap(rows, 1, dtype=torch.float32)
        return fields

    def all_reduce_norm(self, rows: int, hidden: int, quantisation: str = "none") -> Forms:
        """Sum over all ranks + residual, its RMS norm times weights, and with `row` fp8 with a scale for each row."""
        x = self.random(self.rank, rows, hidden)
        fields = self.norm_fields(rows, hidden, quantisation, x)
        plan = NormPlan(
            self.world, hidden=hidden, max_rows=rows, type=BF16, norm=_c.NORMS["rms"], epsilon=EPSILON, residual=1, sum=1,
            quantisation=_c.QUANTISATIONS[quantisation], scale=1.0,
        )  # fmt: skip
        addresses = {name: one.data_ptr() for name, one in fields.items()}
        residual, weight = fields["residual"], fields["weight"]
        total, out = self.empty(rows, hidden), self.empty(rows, hidden, dtype=fields["out"].dtype)
        scales = self.empty(rows, 1, dtype=torch.float32) if quantisation == "row" else None

        def value(normed: torch.Tensor, of: torch.Tensor | None) -> torch.Tensor:
            return normed if of is None or self.timing else normed.float() * of

        def tandem() -> torch.Tensor:
            plan.run(self.stream(x), rows=rows, **addresses)
            return value(fields["out"], fields.get("scales"))

        def behind(y: torch.Tensor) -> torch.Tensor:
            if not self.on_gpus:
                return F.rms_norm((y + residual).float(), (hidden,), weight.float(), EPSILON)
            kernels.add_and_norm(y, residual, weight, out, total, scales, EPSILON)
            return value(out, scales)

        y = x.clone()
        forms: Forms = {"nccl + Triton": lambda: behind(dist.all_reduce(y) or y), "tandem": tandem}
        for name, run in self.shots(x).items():
            forms[f"{name} + Triton"] = lambda run=run: behind(run())
        if self.on_gpus and rows <= 64 and scales is None:
            held, handle = self.symmetric(x)
            self.kept.append(held)
            forms["one Triton kernel"] = lambda: kernels.one_shot(handle, residual, weight, out, total, EPSILON) or out
        return forms

    timing = False
    """Whether calls are timed, so that nothing is added to compare results."""

    def all_reduce_norm_fp8(self, rows: int, hidden: int) -> Forms:
        return self.all_reduce_norm(rows, hidden, "row")

    def gemm_all_reduce_norm(self, m: int, n: int, k: int) -> Forms:
        """Few rows of a row-parallel product, summed, with residual and norm; and Tandem's product and sum alone."""
        a, b = self.random(self.rank, m, k // self.size), self.random(5 + self.rank, n, k // self.size)
        residual, weight = self.random(98, m, n), self.random(99, n)
        c, alone, total = self.empty(m, n), self.empty(m, n), self.empty(m, n)
        y, out, kept = self.empty(m, n), self.empty(m, n), self.empty(m, n)
        options = {"norm": _c.NORMS["rms"], "epsilon": EPSILON, "residual": 1, "sum": 1}
        normed = OperatorPlan(self.world, "gemm_all_reduce", m, [n], k, type=BF16, **options)
        plain = OperatorPlan(self.world, "gemm_all_reduce", m, [n], k, type=BF16)
        given = {"a": a.data_ptr(), "b": _c.addresses([b.data_ptr()])}
        behind = {"residual": residual.data_ptr(), "norm_weight": weight.data_ptr(), "sum": total.data_ptr()}
        to_c, to_alone = _c.addresses([c.data_ptr()]), _c.addresses([alone.data_ptr()])

        def nccl() -> torch.Tensor:
            dist.all_reduce(torch.matmul(a, b.t(), out=y))
            if not self.on_gpus:
                return F.rms_norm((y + residual).float(), (n,), weight.float(), EPSILON)
            kernels.add_and_norm(y, residual, weight, out, kept, None, EPSILON)
            return out

        def with_norm() -> torch.Tensor:
            normed.run(m, self.stream(a), c=to_c, **given, **behind)
            return c

        def sum_alone() -> torch.Tensor:
            plain.run(m, self.stream(a), c=to_alone, **given)
            return alone

        return {"matmul + nccl + Triton": nccl, "tandem": with_norm, "tandem sum alone": sum_alone}

    def merge_heads(self, batch: int, heads: int, size: int) -> Forms:
        """Own heads of all partial outputs. NCCL: log-sum-exps, then weighted outputs, as vLLM does it."""
        partial, own = self.random(self.rank, batch, heads, size), heads // self.size
        lse = self.random(self.rank + 9, batch, heads, dtype=torch.float32)
        plan = HeadsPlan(self.world, max_batch=batch, heads=heads, head_size=size, type=BF16, base_two=0, all_heads=0)
        out, lses = self.empty(batch, own, size), self.empty(self.size, batch, heads, dtype=torch.float32)
        weighed, part = self.empty(heads, batch, size), self.empty(own, batch, size)

        def tandem() -> torch.Tensor:
            addresses = {"partial": partial.data_ptr(), "lse": lse.data_ptr(), "out": out.data_ptr()}
            plan.run(self.stream(partial), batch=batch, **addresses)
            return out

        def nccl() -> torch.Tensor:
            dist.all_gather_into_tensor(lses.view(-1), lse.view(-1))
            if self.on_gpus:
                kernels.weigh(partial, lses, weighed, self.rank)
            else:
                weight = torch.softmax(lses, 0)[self.rank].t()[..., None]
                weighed.copy_(partial.transpose(0, 1).float() * weight)
            dist.reduce_scatter_tensor(part, weighed)
            return part.transpose(0, 1)

        return {"nccl + Triton": nccl, "tandem": tandem}

    def exchange_heads(self, rows: int, heads: int, size: int) -> Forms:
        """Own rows of all heads to all rows of own heads. `tandem all_to_all` moves as many bytes without an order."""
        segment = heads // self.size * size
        x = self.random(self.rank, rows, self.size, segment)
        plan = ExchangePlan(self.world, rows, (segment,), "bfloat16", False)
        result = plan.results[0].local.torch().view(self.size, rows, segment)
        given, moved = self.heap(*x.shape).copy_(x), self.heap(*x.shape)
        ordered, got = self.empty(self.size, rows, segment), self.empty(self.size, rows, segment)

        def tandem() -> torch.Tensor:
            plan.exchange(rows, [given.data_ptr()], self.stream(x))
            return result

        def nccl() -> torch.Tensor:
            ordered.copy_(x.transpose(0, 1))
            dist.all_to_all_single(got, ordered)
            return got

        def in_order() -> torch.Tensor:
            self.call("all_to_all", given, moved, x.numel() // self.size)
            return moved

        return {"nccl + copy": nccl, "tandem": tandem, "tandem all_to_all": in_order}

    def scaled(self, operator: str, m: int, n: int, k: int) -> Forms:
        """Products in fp8 beside torch._scaled_mm of the gathered problem, and PyTorch's fused forms."""
        gathers = operator == "all_gather_gemm"
        rows, depth, columns = (m // self.size, k, n // self.size) if gathers else (m, k // self.size, n)
        a, b = self.random(self.rank, rows, depth, dtype=FP8), self.random(7 + self.rank, columns, depth, dtype=FP8)
        whole = a.repeat(self.size, 1) if gathers else a
        of_rows = torch.rand(rows, 1, device=self.device) + 0.5
        of_columns = torch.rand(1, columns, device=self.device) + 0.5
        of_blocks = [
            torch.rand(count, -(-depth // BLOCK), device=self.device) + 0.5 for count in (rows, -(-columns // BLOCK))
        ]
        forms: Forms = {}
        if self.on_gpus:
            scales = of_rows.repeat(self.size, 1) if gathers else of_rows
            for name, fast in (("_scaled_mm alone", True), ("_scaled_mm alone, sums in f32", False)):
                forms[name] = lambda fast=fast: torch._scaled_mm(
                    whole, b.t(), scales, of_columns, out_dtype=torch.bfloat16, use_fast_accum=fast
                )
            ops = torch.ops.symm_mem
            if gathers:
                forms["symm_mem"] = lambda: ops.fused_all_gather_scaled_matmul(
                    a, [b.t()], of_rows, [of_columns], 0, self.group, [None], [None], [torch.bfloat16], [True]
                )[1][0]
            else:
                forms["symm_mem"] = lambda: ops.fused_scaled_matmul_reduce_scatter(
                    a, b.t(), of_rows, of_columns, "sum", 0, 0, self.group, [rows, columns], None, None, torch.bfloat16, True
                )
        c = self.empty(m if gathers else m // self.size, columns)
        of_both = (of_rows, of_columns)
        for name, given in (("rows+columns", of_both), ("rows+columns, fast", of_both), ("blocks", of_blocks)):
            by_rows = int(name != "blocks")
            plan = OperatorPlan(
                self.world, operator, m, [n], k, type=_c.TYPES["float8_e4m3fn"], out_type=BF16, a_scale_per_row=by_rows,
                b_scale_per_column=by_rows, block_scales=1 - by_rows, fast_accumulation=int(name.endswith("fast")),
            )  # fmt: skip
            matrices = {"a": a.data_ptr(), "b": _c.addresses([b.data_ptr()]), "c": _c.addresses([c.data_ptr()])}
            matrices |= {"a_scale": given[0].data_ptr(), "b_scale": _c.addresses([given[1].data_ptr()])}

            def run(plan: Any = plan, matrices: Any = matrices, kept: Any = given) -> torch.Tensor:
                plan.run(m, self.stream(a), **matrices)
                return c

            forms[f"tandem {name}"] = run
        return forms

    def all_gather_scaled(self, m: int, n: int, k: int) -> Forms:
        return self.scaled("all_gather_gemm", m, n, k)

    def scaled_reduce_scatter(self, m: int, n: int, k: int) -> Forms:
        return self.scaled("gemm_reduce_scatter", m, n, k)
