"""Grouped GEMM on one GPU beside PyTorch's, on the experts of three models; in CUDA graphs, call by call in turns.

    python3 bench/python/grouped_gemm.py --library build/gpu/lib/libgrouped_gemm.so --out FILE.json
    python3 bench/python/grouped_gemm.py --library build/gpu/lib/libgrouped_gemm.so --check

Experts are those of one of two GPUs, with the rows of all tokens of one GPU's size: tokens * top rows on average for
experts / 2 experts. `rows` gathers rows of A by an index first; the others have sorted rows. A ratio is the median over rounds
of the time over grouped_mm's in the same round. --check compares integers, so every element must be exact.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch

TILE = 128
SHARED_BY = 2  # GPUs that share the experts
# Hidden size, intermediate size, experts, choices of a token.
MODELS = {
    "DeepSeek-V3": (7168, 2048, 256, 8),
    "Mixtral": (4096, 14336, 8, 2),
    "Qwen3-30B": (2048, 768, 128, 8),
}


class Call(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("a", "b", "c", "panels", "panel_count", "a_rows", "gathered", "tiles_of_chunk")],
        *[(name, ctypes.c_int64) for name in ("m", "n", "k", "rows_of_a")],
        *[(name, ctypes.c_int) for name in ("groups", "most_panels", "column_chunks", "activation")],
    ]


@dataclass
class Table:
    """Panels of groups whose first rows are multiples of TILE."""

    starts: list[int]
    rows: int
    panels: torch.Tensor
    count: torch.Tensor


def table_of(counts: list[int], together: int) -> Table:
    starts, words, row = [], [], 0
    for group, count in enumerate(counts):
        starts.append(row)
        panels = -(-count // TILE)
        for i in range(panels):
            place = i % together
            of_run = min(together, panels - i + place)
            rows = min(TILE, count - i * TILE)
            words += [row + i * TILE, rows | group << 16, place | of_run << 16, 0]
        row += panels * TILE
    count = len(words) // 4
    panels = torch.tensor(words or [0] * 4, dtype=torch.int32, device="cuda")
    return Table(starts, max(row, TILE), panels, torch.tensor([count], dtype=torch.int32, device="cuda"))


class Library:
    def __init__(self, path: str) -> None:
        self.function = ctypes.CDLL(path).tandem_bench_grouped_gemm
        self.gathered: torch.Tensor | None = None

    def call(self, table: Table, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, index: torch.Tensor | None = None,
             chunks: int = 1, tiles: torch.Tensor | None = None) -> None:  # fmt: skip
        if index is not None and (self.gathered is None or self.gathered.numel() < c.shape[0] * a.shape[1]):
            self.gathered = torch.empty(c.shape[0] * a.shape[1], device="cuda", dtype=a.dtype)
        call = Call(
            a.data_ptr(), b.data_ptr(), c.data_ptr(), table.panels.data_ptr(), table.count.data_ptr(),
            index.data_ptr() if index is not None else None,
            self.gathered.data_ptr() if index is not None else None, tiles.data_ptr() if tiles is not None else None,
            c.shape[0], b.shape[1], b.shape[2], a.shape[0], b.shape[0], table.panels.numel() // 4, chunks, 0,
        )  # fmt: skip
        if self.function(ctypes.byref(call), 1, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)) != 0:
            raise RuntimeError("the grouped GEMM was refused")


def grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    function = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    return function(a, b.transpose(1, 2), offs=ends)


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-3, 4, shape, device="cuda").to(torch.bfloat16)


def check_case(library: Library, counts: list[int], n: int, k: int, together: int, chunks: int, indexed: bool) -> str:
    table = table_of(counts, together)
    b = integers(len(counts), n, k)
    a = integers(777 if indexed else table.rows, k)
    index = torch.randint(-1, a.shape[0], (table.rows,), device="cuda", dtype=torch.int32) if indexed else None
    c = torch.full((table.rows + 64, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    tiles = torch.zeros(chunks, device="cuda", dtype=torch.int64)
    library.call(table, a, b, c[: table.rows], index, chunks, tiles)
    torch.cuda.synchronize()
    sorted_a = a
    if index is not None:
        sorted_a = torch.where((index >= 0)[:, None], a[index.clamp(min=0).long()], torch.zeros_like(a[:1]))
    for group, (start, count) in enumerate(zip(table.starts, counts, strict=True)):
        want = (sorted_a[start : start + count].float() @ b[group].float().T).to(torch.bfloat16)
        wrong = (c[start : start + count] != want).nonzero()
        if len(wrong):
            row, column = wrong[0].tolist()
            return (
                f"group {group}: {len(wrong)} of {want.numel()} wrong, first row {row} column {column}: "
                f"{c[start + row, column]} instead of {want[row, column]}"
            )
    if not c[table.rows :].isnan().all():
        return "it wrote behind C"
    columns = -(-n // 256)
    of_chunk = -(-columns // chunks)
    expected = [max(0, min(of_chunk, columns - i * of_chunk)) * int(table.count) for i in range(chunks)]
    return "" if tiles.tolist() == expected else f"tiles of chunks: {tiles.tolist()} instead of {expected}"


def check(library: Library, forms: list[str]) -> int:
    torch.backends.cuda.matmul.allow_tf32 = False
    failed = 0
    ragged = [0, 1, 127, 128, 129, 0, 700, 5, 0]
    for counts in (ragged, [0, 0, 0], [1], [0, 3000, 0], [130] * 40):
        for n, k in ((256, 64), (520, 264), (1536, 2048), (2056, 136)):
            for together in (1, 4, 100):
                for chunks in (1, 2):
                    if chunks > -(-n // 256):
                        continue
                    for indexed in (form == "rows" for form in forms):
                        problem = check_case(library, counts, n, k, together, chunks, indexed)
                        if problem:
                            failed += 1
                            print(f"FAILED {counts} n={n} k={k} together={together} chunks={chunks} "
                                  f"indexed={indexed}: {problem}", flush=True)  # fmt: skip
                            if failed > 20:
                                return 1
    print("all right" if failed == 0 else f"{failed} wrong", flush=True)
    return int(failed > 0)


def counts_of(rows: int, experts: int, zipf: bool) -> list[int]:
    shares = [1 / (i + 1) if zipf else 1.0 for i in range(experts)]
    ends = [round(rows * sum(shares[: i + 1]) / sum(shares)) for i in range(experts)]
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


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


def bench_row(library: Library, name: str, product: int, tokens: int, zipf: bool, b: torch.Tensor,
              options: argparse.Namespace) -> dict:  # fmt: skip
    hidden, intermediate, experts, top = MODELS[name]
    n, k = (2 * intermediate, hidden) if product == 1 else (hidden, intermediate)
    counts = counts_of(tokens * top, experts // SHARED_BY, zipf)
    table = table_of(counts, options.together)
    ends = torch.tensor(counts, device="cuda").cumsum(0).to(torch.int32)
    sorted_a = torch.randn(tokens * top, k, device="cuda", dtype=torch.bfloat16)
    a = torch.zeros(table.rows, k, device="cuda", dtype=torch.bfloat16)
    index = torch.full((table.rows,), -1, dtype=torch.int32, device="cuda")
    order = torch.randperm(tokens * top, device="cuda").to(torch.int32)
    first = 0
    for start, count in zip(table.starts, counts, strict=True):
        a[start : start + count] = sorted_a[first : first + count]
        index[start : start + count] = order[first : first + count]
        first += count
    c = torch.empty(table.rows, n, device="cuda", dtype=torch.bfloat16)
    unsorted_a = torch.empty_like(sorted_a)
    unsorted_a[order.long()] = sorted_a
    all_forms = {
        "grouped_mm": lambda: grouped_mm(sorted_a, b, ends),
        "sorted": lambda: library.call(table, a, b, c),
        "rows": lambda: library.call(table, unsorted_a, b, c, index),
    }
    forms = {form: run for form, run in all_forms.items() if form in ("grouped_mm", *options.forms)}
    want = grouped_mm(sorted_a, b, ends)
    right = {}
    for form in options.forms:
        c.fill_(float("nan"))
        forms[form]()
        got = torch.cat([c[start : start + count] for start, count in zip(table.starts, counts, strict=True)])
        right[form] = bool(torch.allclose(got.float(), want.float(), rtol=0.02, atol=0.5))
    del want, got
    flop = 2.0 * tokens * top * n * k
    calls = max(1, min(20, int(8000 / max(flop / 600e6, b.numel() * 2 / 4.2e6))))
    timed = {form: Timed(run, calls) for form, run in forms.items()}
    us = {form: [] for form in forms}
    for i in range(options.rounds + 2):
        for form, graph in timed.items():
            time = graph.us()
            if i >= 2:
                us[form].append(time)
    row = {"model": name, "product": product, "tokens": tokens, "routing": "zipf:1" if zipf else "balanced",
           "experts": len(counts), "rows": tokens * top, "n": n, "k": k, "panels": int(table.count)}  # fmt: skip
    for form, times in us.items():
        ratio = statistics.median(x / y for x, y in zip(times, us["grouped_mm"], strict=True))
        row[form] = {"us": statistics.median(times), "ratio": ratio, "right": right.get(form, True)}
    print(f"{name:12} product {product} {tokens:5} tokens {row['routing']:8} {n:6}x{k:6}: "
          + ", ".join(f"{form} {row[form]['us']:8.1f} us {flop / row[form]['us'] / 1e6:4.0f} TFLOP/s "
                      f"{row[form]['ratio']:.3f}{'' if row[form]['right'] else ' WRONG'}" for form in forms),
          flush=True)  # fmt: skip
    return row


def bench(library: Library, options: argparse.Namespace) -> list[dict]:
    rows = []
    for name in options.models.split(","):
        hidden, intermediate, experts, _ = MODELS[name]
        for product in (1, 2):
            n, k = (2 * intermediate, hidden) if product == 1 else (hidden, intermediate)
            b = torch.empty(experts // SHARED_BY, n, k, device="cuda", dtype=torch.bfloat16).normal_(0, k**-0.5)
            for tokens in (1024, 4096, 8192):
                for zipf in (False, True):
                    rows.append(bench_row(library, name, product, tokens, zipf, b, options))
                    torch.cuda.empty_cache()
            del b
    for form in options.forms:
        ratios = [row[form]["ratio"] for row in rows]
        print(f"{form} over grouped_mm: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="libgrouped_gemm.so of a build with CUDA")
    parser.add_argument("--check", action="store_true", help="compare integers, without times")
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--rounds", type=int, default=9, help="replays of each graph")
    parser.add_argument("--together", type=int, default=16, help="panels that are computed column by column")
    parser.add_argument("--out", help="file for the rows, in JSON")
    parser.add_argument("--forms", nargs="+", choices=("sorted", "rows"), default=["sorted", "rows"], help="of A")
    options = parser.parse_args()
    library = Library(options.library)
    if options.check:
        return check(library, options.forms)
    rows = bench(library, options)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"command": " ".join(sys.argv), "gpu": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)
    return int(not all(row[form]["right"] for row in rows for form in options.forms))


if __name__ == "__main__":
    sys.exit(main())
