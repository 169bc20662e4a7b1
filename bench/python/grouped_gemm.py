"""Grouped GEMM on one GPU beside PyTorch's, on the experts of three models; in CUDA graphs, call by call in turns.

    python3 bench/python/grouped_gemm.py --library build/gpu/lib/libgrouped_gemm.so --out FILE.json
    python3 bench/python/grouped_gemm.py --library build/gpu/lib/libgrouped_gemm.so --check

Experts are those of one of two GPUs. They have the rows of all tokens of one GPU's size: tokens * top rows on average
for experts / 2 experts. `rows` gathers rows of A by an index first; the others have sorted rows. `few` has the tiles for few rows
of each expert: 64x128, and in fp8 32x128. A ratio is the median over rounds
of the time over PyTorch's in the same round. PyTorch has grouped_mm, and for fp8 _scaled_grouped_mm, whose scales are those
of rows and columns. GB/s count the weights of experts with rows. --check compares integers, so every element but those of an
approximated exponential must be exact.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grouped_peers
import torch

TILE = 128
FEW = {2: 64, 1: 32}  # rows of tiles for few rows of each expert, by bytes of an element of A
SHARED_BY = 2  # GPUs that share the experts
# Hidden size, intermediate size, experts, choices of a token.
MODELS = {
    "DeepSeek-V3": (7168, 2048, 256, 8),
    "Mixtral": (4096, 14336, 8, 2),
    "Qwen3-30B": (2048, 768, 128, 8),
}


DTYPES = {torch.float16: 1, torch.bfloat16: 2, torch.float8_e4m3fn: 3}  # numbers of tandem::DType
NONE, SWIGLU, GEGLU = 0, 4, 5  # of tandem::Activation
BLOCK = 128


class Call(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("a", "b", "c", "panels", "panel_count", "a_rows", "gathered", "tiles_of_chunk",
                                               "scales_of_a", "scales_of_b", "scales_of_c")],
        *[(name, ctypes.c_int64) for name in ("m", "n", "k", "rows_of_a")],
        *[(name, ctypes.c_int) for name in ("groups", "most_panels", "column_chunks", "activation", "type", "out_type", "blocks",
                                            "tile_m", "tile_n", "sms")],
    ]  # fmt: skip


@dataclass
class Scales:
    """Scales of rows and columns, or of blocks; `out` gets those of C's blocks."""

    a: torch.Tensor
    b: torch.Tensor
    blocks: bool
    out: torch.Tensor | None = None


@dataclass
class Table:
    """Panels of groups whose first rows are multiples of `tile`."""

    starts: list[int]
    rows: int
    panels: torch.Tensor
    count: torch.Tensor
    tile: int


def columns_of_tile(rows: int, a: torch.dtype, out: torch.dtype, gated: bool) -> int:
    if rows in FEW.values():
        return 256 if out == torch.float8_e4m3fn else 128
    return 192 if a == torch.float8_e4m3fn and not gated else 256


def table_of(counts: list[int], together: int, tile: int = TILE) -> Table:
    starts, words, row = [], [], 0
    for group, count in enumerate(counts):
        starts.append(row)
        panels = -(-count // tile)
        for i in range(panels):
            place = i % together
            of_run = min(together, panels - i + place)
            rows = min(tile, count - i * tile)
            words += [row + i * tile, rows | group << 16, place | of_run << 16, 0]
        row += panels * tile
    count = len(words) // 4
    panels = torch.tensor(words or [0] * 4, dtype=torch.int32, device="cuda")
    return Table(starts, max(row, tile), panels, torch.tensor([count], dtype=torch.int32, device="cuda"), tile)


class Library:
    def __init__(self, path: str, sms: int) -> None:
        self.function = ctypes.CDLL(path).tandem_bench_grouped_gemm
        self.sms = sms
        self.gathered: torch.Tensor | None = None

    def call(self, table: Table, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, index: torch.Tensor | None = None,
             chunks: int = 1, tiles: torch.Tensor | None = None, scales: Scales | None = None,
             activation: int = NONE) -> None:  # fmt: skip
        bytes_needed = c.shape[0] * (a.shape[1] * a.element_size() + 4 * (a.shape[1] // BLOCK + 1) + 16)
        if index is not None and (self.gathered is None or self.gathered.numel() < bytes_needed):
            self.gathered = torch.empty(bytes_needed, device="cuda", dtype=torch.uint8)
        address = lambda tensor: tensor.data_ptr() if tensor is not None else None  # noqa: E731
        call = Call(
            a.data_ptr(), b.data_ptr(), c.data_ptr(), table.panels.data_ptr(), table.count.data_ptr(), address(index),
            address(self.gathered) if index is not None else None, address(tiles),
            *((address(scales.a), address(scales.b), address(scales.out)) if scales is not None else (None, None, None)),
            c.shape[0], b.shape[1], b.shape[2], a.shape[0], b.shape[0], table.panels.numel() // 4, chunks, activation,
            DTYPES[a.dtype], DTYPES[c.dtype], int(scales is not None and scales.blocks), table.tile,
            columns_of_tile(table.tile, a.dtype, c.dtype, activation in (SWIGLU, GEGLU)),
            self.sms,
        )  # fmt: skip
        if self.function(ctypes.byref(call), 1, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)) != 0:
            raise RuntimeError("the grouped GEMM was refused")


def grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    function = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    return function(a, b.transpose(1, 2), offs=ends)


def scaled_grouped_mm(a: torch.Tensor, b: torch.Tensor, scales: Scales, ends: torch.Tensor) -> torch.Tensor:
    return torch._scaled_grouped_mm(a, b.transpose(1, 2), scales.a, scales.b, offs=ends, out_dtype=torch.bfloat16)


def blocks_of_columns(n: int, gated: bool) -> int:
    return 2 * -(-n // (2 * BLOCK)) if gated else -(-n // BLOCK)


def powers(*shape: int) -> torch.Tensor:
    return torch.randint(-2, 3, shape, device="cuda").float().exp2()


def made_scales(form: str, rows: int, groups: int, n: int, k: int, gated: bool) -> Scales | None:
    """Powers of two, with which sums of integers stay exact."""
    if form == "none":
        return None
    if form == "rows":
        return Scales(powers(rows), powers(groups, n), False)
    steps = -(-k // BLOCK)
    return Scales(powers(rows, steps), powers(groups, blocks_of_columns(n, gated), steps), True)


def in_f32(a: torch.Tensor, b: torch.Tensor, scales: Scales | None, rows: torch.Tensor, group: int,
           gated: bool) -> torch.Tensor:  # fmt: skip
    """The product of a group, with the scales of these rows of A."""
    if scales is None:
        return a.float() @ b.float().T
    if not scales.blocks:
        return (a.float() @ b.float().T) * scales.a[rows][:, None] * scales.b[group][None, :]
    column = torch.arange(b.shape[0], device="cuda")
    block = column // (2 * BLOCK) * 2 + column // 8 % 2 if gated else column // BLOCK
    of_a = scales.a[rows].repeat_interleave(BLOCK, 1)[:, : a.shape[1]]
    of_b = scales.b[group][block].repeat_interleave(BLOCK, 1)[:, : a.shape[1]]
    return (a.float() * of_a) @ (b.float() * of_b).T


def activated(sums: torch.Tensor, activation: int) -> torch.Tensor:
    if activation == NONE:
        return sums
    gates, ups = sums.view(sums.shape[0], sums.shape[1] // 16, 2, 8).unbind(2)
    function = torch.nn.functional.silu if activation == SWIGLU else torch.nn.functional.gelu
    return (function(gates) * ups).reshape(sums.shape[0], sums.shape[1] // 2)


def integers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randint(-3, 4, shape, device="cuda").float().to(dtype)


@dataclass
class Case:
    counts: list[int]
    n: int
    k: int
    together: int
    chunks: int
    indexed: bool
    type: torch.dtype = torch.bfloat16
    scales: str = "none"
    activation: int = NONE
    out: torch.dtype = torch.bfloat16
    tile: int = TILE

    @property
    def columns(self) -> int:
        return self.n // 2 if self.activation != NONE else self.n


def wrong_elements(got: torch.Tensor, want: torch.Tensor, case: Case, scales: torch.Tensor | None) -> torch.Tensor:
    """Exact; but an approximated exponential may change the last bit, and so an fp8 value by one step."""
    if scales is None:
        exact = want.to(case.out).float()
        slack = 0.0 if case.activation == NONE else 2.0**-7 * exact.abs() + 4e-6
        return ((got.float() - exact).abs() > slack) | got.isnan()
    blocks = torch.nn.functional.pad(want, (0, -want.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
    greatest = blocks.abs().amax(2)
    of_blocks = torch.where(greatest < 1e-30, 1.0, greatest / 448)
    bad = ((scales - of_blocks).abs() > 1e-5 * of_blocks).repeat_interleave(BLOCK, 1)[:, : want.shape[1]]
    of_values = scales.repeat_interleave(BLOCK, 1)[:, : want.shape[1]]
    far = (got.float() * of_values - want).abs() > 0.064 * want.abs() + of_values * 2.0**-9
    return bad | far | got.float().isnan()


def check_case(library: Library, case: Case) -> str:
    table = table_of(case.counts, case.together, case.tile)
    gated = case.activation != NONE
    b = integers(case.type, len(case.counts), case.n, case.k)
    a = integers(case.type, 777 if case.indexed else table.rows, case.k)
    index = torch.randint(-1, a.shape[0], (table.rows,), device="cuda", dtype=torch.int32) if case.indexed else None
    scales = made_scales(case.scales, a.shape[0], len(case.counts), case.n, case.k, gated)
    if case.out == torch.float8_e4m3fn:
        scales.out = torch.full((table.rows + 1, -(-case.columns // BLOCK)), 7.0, device="cuda")
    c = torch.full((table.rows + 64, case.columns), float("nan"), device="cuda").to(case.out)
    tiles = torch.zeros(case.chunks, device="cuda", dtype=torch.int64)
    library.call(table, a, b, c[: table.rows], index, case.chunks, tiles, scales, case.activation)
    torch.cuda.synchronize()
    rows = index if index is not None else torch.arange(table.rows, device="cuda")
    for group, (start, count) in enumerate(zip(table.starts, case.counts, strict=True)):
        if count == 0:
            continue
        own = rows[start : start + count]
        of_a = a.view(torch.uint8)[own.clamp(min=0).long()].view(a.dtype) if a.element_size() == 1 else a[own.clamp(min=0).long()]
        sums = in_f32(of_a, b[group], scales, own.clamp(min=0).long(), group, gated) * (own >= 0)[:, None]
        want = activated(sums, case.activation)
        got = c[start : start + count]
        out = scales.out[start : start + count] if scales is not None and scales.out is not None else None
        wrong = wrong_elements(got, want, case, out).nonzero()
        if len(wrong):
            row, column = wrong[0].tolist()
            return (
                f"group {group}: {len(wrong)} of {want.numel()} wrong, first row {row} column {column}: "
                f"{got[row, column]} instead of {want[row, column]}"
                + (f", scale {out[row, column // BLOCK]}" if out is not None else "")
            )
    if not c[table.rows :].float().isnan().all():
        return "it wrote behind C"
    if scales is not None and scales.out is not None and not (scales.out[table.rows :] == 7).all():
        return "it wrote behind the scales of C"
    columns = -(-case.n // columns_of_tile(case.tile, case.type, case.out, case.activation in (SWIGLU, GEGLU)))
    of_chunk = -(-columns // case.chunks)
    expected = [max(0, min(of_chunk, columns - i * of_chunk)) * int(table.count) for i in range(case.chunks)]
    return "" if tiles.tolist() == expected else f"tiles of chunks: {tiles.tolist()} instead of {expected}"


def cases(forms: list[str], types: list[str]) -> Iterator[Case]:
    ragged = [0, 1, 127, 128, 129, 0, 700, 5, 0]
    fp8 = torch.float8_e4m3fn
    kinds = {
        "bf16": [{}, {"activation": SWIGLU}, {"activation": GEGLU}],
        "fp8": [
            *[{"type": fp8, "scales": scales, "activation": activation}
              for scales in ("none", "rows", "blocks") for activation in (NONE, SWIGLU)],
            *[{"type": fp8, "scales": scales, "activation": SWIGLU, "out": fp8} for scales in ("rows", "blocks")],
        ],
    }  # fmt: skip
    for counts in (ragged, list(range(40)), [0, 0, 0], [1], [0, 3000, 0], [130] * 40):
        for n, k in ((256, 64), (544, 272), (1536, 2048), (2080, 144)):
            for together in (1, 4, 100):
                for chunks in (1, 2):
                    for kind in (kind for name in types for kind in kinds[name]):
                        if chunks > -(-n // 256) or (kind and together == 4):
                            continue
                        for form in forms:
                            indexed = chunks == 2 if form == "few" else form == "rows"
                            tile = FEW[1 if "type" in kind else 2] if form == "few" else TILE
                            yield Case(counts, n, k, together, chunks, indexed, tile=tile, **kind)


def check(library: Library, forms: list[str], types: list[str]) -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    passed = failed = 0
    for case in cases(forms, types):
        problem = check_case(library, case)
        passed += not problem
        failed += bool(problem)
        if problem:
            print(f"FAILED {case}: {problem}", flush=True)
            if failed > 20:
                return 1
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(failed > 0)


def counts_of(rows: int, experts: int, zipf: bool) -> list[int]:
    shares = [1 / (i + 1) if zipf else 1.0 for i in range(experts)]
    ends = [round(rows * sum(shares[: i + 1]) / sum(shares)) for i in range(experts)]
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def drawn_counts(mean: int, experts: int) -> list[int]:
    """Rows of experts that are equally likely."""
    drawn = torch.randint(experts, (mean * experts,), generator=torch.Generator().manual_seed(mean))
    return drawn.bincount(minlength=experts).tolist()


class Timed:
    """A CUDA graph of some calls."""

    def __init__(self, run: Callable[[], object], calls: int) -> None:
        self.calls = calls
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for _ in range(calls):
                run()

    def us(self) -> float:
        self.begin.record()
        self.graph.replay()
        self.end.record()
        torch.cuda.synchronize()
        return self.begin.elapsed_time(self.end) * 1000 / self.calls


@dataclass
class Problem:
    """The experts of one product of a model, with rows for each of them."""

    model: str
    product: int
    label: str
    counts: list[int]
    n: int
    k: int


def rows_of(table: Table, counts: list[int], of_sorted: torch.Tensor, of_table: torch.Tensor) -> None:
    first = 0
    for start, count in zip(table.starts, counts, strict=True):
        of_table[start : start + count] = of_sorted[first : first + count]
        first += count


def bf16_forms(
    library: Library, problem: Problem, table: Table, b: torch.Tensor, forms: list[str], together: int
) -> dict:
    rows, k = sum(problem.counts), problem.k
    ends = torch.tensor(problem.counts, device="cuda").cumsum(0).to(torch.int32)
    sorted_a = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    a = torch.zeros(table.rows, k, device="cuda", dtype=torch.bfloat16)
    index = torch.full((table.rows,), -1, dtype=torch.int32, device="cuda")
    order = torch.randperm(rows, device="cuda").to(torch.int32)
    rows_of(table, problem.counts, sorted_a, a)
    rows_of(table, problem.counts, order, index)
    unsorted_a = torch.empty_like(sorted_a)
    unsorted_a[order.long()] = sorted_a
    c = torch.empty(table.rows, problem.n, device="cuda", dtype=torch.bfloat16)
    all_forms = {
        "sorted": lambda: library.call(table, a, b, c),
        "rows": lambda: library.call(table, unsorted_a, b, c, index),
    }
    made = {"grouped_mm": lambda: grouped_mm(sorted_a, b, ends)}
    made |= {form: (run, c, table) for form, run in all_forms.items() if form in forms}
    if "few" in forms:
        few = table_of(problem.counts, together, FEW[2])
        few_a = torch.zeros(few.rows, k, device="cuda", dtype=torch.bfloat16)
        rows_of(few, problem.counts, sorted_a, few_a)
        few_c = torch.empty(few.rows, problem.n, device="cuda", dtype=torch.bfloat16)
        made["few"] = (lambda: library.call(few, few_a, b, few_c), few_c, few)
    made |= others(problem, table, a, b, forms)
    return made


def others(problem: Problem, table: Table, a: torch.Tensor, b: torch.Tensor, forms: list[str],
           scales: tuple[torch.Tensor, torch.Tensor] | None = None) -> dict:  # fmt: skip
    """The forms of grouped_peers that were asked for and are there, each with a C of its own."""
    suffix, made = "" if scales is None else " blocks", {}
    for name in ("deep_gemm", "triton"):
        if name not in forms:
            continue
        c = torch.empty(table.rows, problem.n, device="cuda", dtype=torch.bfloat16)
        if name == "deep_gemm":
            groups = grouped_peers.groups_of_rows(table.starts, problem.counts, table.rows)
            call = grouped_peers.deep_gemm_call(a, b, c, groups, scales)
        else:
            call = grouped_peers.triton_call(a, b, c, table.panels, int(table.count), scales)
        if call is not None:
            made[name + suffix] = (call, c, table)
    return made


def fp8_forms(
    library: Library, problem: Problem, table: Table, b: torch.Tensor, forms: list[str], together: int
) -> dict:
    rows, k, fp8 = sum(problem.counts), problem.k, torch.float8_e4m3fn
    steps, groups = -(-k // BLOCK), len(problem.counts)
    ends = torch.tensor(problem.counts, device="cuda").cumsum(0).to(torch.int32)
    sorted_a = torch.randn(rows, k, device="cuda").to(fp8)
    # One number for all rows and columns of blocks and rows, so that all forms have the same results.
    of_columns = torch.full((groups, problem.n), 2.0, device="cuda")
    of_blocks = torch.full((groups, blocks_of_columns(problem.n, False), steps), 2.0, device="cuda")
    of_sorted = Scales(torch.full((rows,), 0.5, device="cuda"), of_columns, False)
    made = {"scaled_grouped_mm": lambda: scaled_grouped_mm(sorted_a, b, of_sorted, ends)}

    def add(suffix: str, of: Table) -> None:
        a = torch.zeros(of.rows, k, device="cuda").to(fp8)
        rows_of(of, problem.counts, sorted_a.view(torch.uint8), a.view(torch.uint8))
        of_rows = Scales(torch.full((of.rows,), 0.5, device="cuda"), of_columns, False)
        blocks = Scales(torch.full((of.rows, steps), 0.5, device="cuda"), of_blocks, True)
        c = torch.empty(of.rows, problem.n, device="cuda", dtype=torch.bfloat16)
        made["fp8 rows" + suffix] = (lambda: library.call(of, a, b, c, scales=of_rows), c, of)
        made["fp8 blocks" + suffix] = (lambda: library.call(of, a, b, c, scales=blocks), c, of)

    add("", table)
    if {"deep_gemm", "triton"} & set(forms):
        a = torch.zeros(table.rows, k, device="cuda").to(fp8)
        rows_of(table, problem.counts, sorted_a.view(torch.uint8), a.view(torch.uint8))
        of_a = torch.full((table.rows, steps), 0.5, device="cuda")
        made |= others(problem, table, a, b, forms, (of_a, of_blocks))
    if "few" in forms:
        add(", few", table_of(problem.counts, together, FEW[1]))
    return made


def bench_row(library: Library, problem: Problem, b: torch.Tensor, options: argparse.Namespace) -> dict:
    table = table_of(problem.counts, options.together)
    made = (fp8_forms if b.element_size() == 1 else bf16_forms)(library, problem, table, b, options.forms, options.together)
    base = next(iter(made))
    forms = {form: run if form == base else run[0] for form, run in made.items()}
    want = forms[base]().float()
    right = {}
    for form in list(forms)[1:]:
        _, c, of_form = made[form]
        c.fill_(float("nan"))
        forms[form]()
        got = torch.cat([c[start : start + count] for start, count in zip(of_form.starts, problem.counts, strict=True)])
        right[form] = bool(torch.allclose(got.float(), want, rtol=0.02, atol=0.02 * float(want.abs().max())))
    del want, got
    rows, n, k = sum(problem.counts), problem.n, problem.k
    touched = sum(count > 0 for count in problem.counts) * n * k * b.element_size()
    flop = 2.0 * rows * n * k
    calls = max(1, min(20, int(8000 / max(flop / 600e6, touched / 4.2e6))))
    timed = {form: Timed(run, calls) for form, run in forms.items()}
    us = {form: [] for form in forms}
    for i in range(options.rounds + 2):
        for form, graph in timed.items():
            time = graph.us()
            if i >= 2:
                us[form].append(time)
    row = {"model": problem.model, "product": problem.product, "routing": problem.label, "experts": len(problem.counts),
           "rows": rows, "n": n, "k": k, "panels": int(table.count), "bytes_of_weights": touched}  # fmt: skip
    for form, times in us.items():
        ratio = statistics.median(x / y for x, y in zip(times, us[base], strict=True))
        row[form] = {"us": statistics.median(times), "ratio": ratio, "right": right.get(form, True)}
    print(f"{problem.model:12} product {problem.product} {problem.label:18} {n:6}x{k:6}: "
          + ", ".join(f"{form} {row[form]['us']:8.1f} us {flop / row[form]['us'] / 1e6:4.0f} TFLOP/s "
                      f"{touched / row[form]['us'] / 1e3:4.0f} GB/s {row[form]['ratio']:.3f}"
                      f"{'' if row[form]['right'] else ' WRONG'}" for form in forms),
          flush=True)  # fmt: skip
    return row


def problems_of(model: str, product: int, options: argparse.Namespace) -> Iterator[Problem]:
    hidden, intermediate, experts, top = MODELS[model]
    n, k = (2 * intermediate, hidden) if product == 1 else (hidden, intermediate)
    here = experts // SHARED_BY
    for rows in options.few_rows:
        yield Problem(model, product, f"{rows} rows each", [rows] * here, n, k)
    for rows in options.mean_rows:
        yield Problem(model, product, f"{rows} rows on average", drawn_counts(rows, here), n, k)
    for tokens in options.tokens:
        routings = {
            "balanced": counts_of(tokens * top, here, False),
            "random": drawn_counts(tokens * top // here, here),
            "zipf:1": counts_of(tokens * top, here, True),
        }
        for routing, counts in routings.items():
            yield Problem(model, product, f"{tokens} tokens {routing}", counts, n, k)


def bench(library: Library, options: argparse.Namespace) -> list[dict]:
    rows = []
    for kind in options.types:
        of_kind = []
        for name in options.models.split(","):
            hidden, intermediate, experts, _ = MODELS[name]
            for product in (1, 2):
                n, k = (2 * intermediate, hidden) if product == 1 else (hidden, intermediate)
                b = torch.empty(experts // SHARED_BY, n, k, device="cuda", dtype=torch.bfloat16).normal_(0, k**-0.5)
                if kind == "fp8":
                    b = (b * 4).to(torch.float8_e4m3fn)
                for problem in problems_of(name, product, options):
                    of_kind.append(bench_row(library, problem, b, options))
                    torch.cuda.empty_cache()
                del b
        for form in [form for form, values in of_kind[0].items() if isinstance(values, dict)][1:]:
            ratios = [row[form]["ratio"] for row in of_kind]
            print(f"{form} over PyTorch's: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f}")
        rows += of_kind
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libgrouped_gemm.so of a build with CUDA")
    parser.add_argument("--check", action="store_true", help="compare integers, without times")
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--tokens", nargs="*", type=int, default=[1024, 4096, 8192], help="of all experts")
    parser.add_argument("--few-rows", nargs="*", type=int, default=[], help="rows of each expert")
    parser.add_argument("--mean-rows", nargs="*", type=int, default=[], help="rows of each expert on average, drawn")
    parser.add_argument("--rounds", type=int, default=9, help="replays of each graph")
    parser.add_argument("--sms", type=int, default=0, help="SMs of Tandem's GEMM; 0: all")
    parser.add_argument("--together", type=int, default=16, help="panels that are computed column by column")
    parser.add_argument("--out", help="file for the rows, in JSON")
    parser.add_argument("--forms", nargs="+", choices=("sorted", "rows", "few", "deep_gemm", "triton"), default=["sorted", "rows"],
                        help="of A and of tiles, and peers of grouped_peers.py")
    parser.add_argument("--types", nargs="+", choices=("bf16", "fp8"), default=["bf16", "fp8"], help="of A and B")
    options = parser.parse_args()
    library = Library(options.library, options.sms)
    if options.check:
        return check(library, options.forms, options.types)
    rows = bench(library, options)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"command": " ".join(sys.argv), "gpu": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)
    return int(not all(form.get("right", True) for row in rows for form in row.values() if isinstance(form, dict)))


if __name__ == "__main__":
    sys.exit(main())
