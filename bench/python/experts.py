"""Layers with experts on several GPUs beside NCCL with PyTorch's permutations, and their products beside grouped_mm.

    TANDEM_LIBRARY=build/gpu/lib/libtandem_c.so tandem launch -n 2 python3 bench/python/experts.py --out FILE.json
    tandem launch -n 2 python3 bench/python/experts.py --device cpu     tiny sizes without graphs, as a test of it

Forms of one row alternate, in CUDA graphs whose calls follow each other. A time is the median of the rounds, of the
slowest process. Two calls before the first event bring the processes together.

Times of `dispatch` include the routing, of NCCL's form too. NCCL's form gathers all rows and takes those of its experts;
the number of these rows is known beforehand, which favours it. `all_to_all` moves the bytes of as many rows, and is
the floor of both. `grouped_mm` multiplies rows that are gathered and sorted before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import tandem.torch as tt
import torch
import torch.distributed as dist
from tandem import _c
from tandem._plan import ExpertGemmsPlan, ExpertsPlan

MODELS = {  # hidden size, intermediate size, experts, choices of a token
    "deepseek-v3": (7168, 2048, 256, 8),
    "qwen3-30b": (2048, 768, 128, 8),
    "mixtral": (4096, 14336, 8, 2),
    "tiny": (256, 128, 8, 2),
}
BLOCK, TILE = 128, 128
TRANSPORTS = {"rule": 0, "packets": 1, "chunks": 2, "fused": 3}
Forms = dict[str, Callable[[], object]]


@dataclass
class Layer:
    """The tensors of one model and one number of tokens on this process."""

    hidden: int
    experts: int
    top: int
    tokens: int
    ids: torch.Tensor
    weights: torch.Tensor
    x: torch.Tensor


class Bench:
    """This process, its device and its world."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.rank, self.size = options, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device, self.on_gpus = options.device, options.device == "cuda"
        if self.on_gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.on_gpus else "gloo")
        self.say("process group")
        sizes = {"heap_bytes": options.heap_gigabytes << 30} if self.on_gpus else {}
        self.world = tt.world_of(device=self.device, **sizes)
        self.say("world")
        self.rows: list[dict] = []

    def say(self, text: str) -> None:
        if self.rank == 0:
            print(f"[{time.perf_counter() - BEGIN:5.1f} s] {text}", flush=True)

    def stream(self) -> int | None:
        return torch.cuda.current_stream().cuda_stream if self.on_gpus else None

    def synchronize(self) -> None:
        if self.on_gpus:
            torch.cuda.synchronize()

    def wait(self, text: str) -> None:
        """Waits for the device, and raises the failure of another process, too."""
        self.world.synchronize(torch.cuda.current_stream() if self.on_gpus else None)
        self.say(text)

    def layer(self, model: str, tokens: int, routing: str) -> Layer:
        hidden, _, experts, top = MODELS[model]
        generator = torch.Generator().manual_seed(1000 * tokens + self.rank)
        choices = experts // self.size if routing == "one" else experts
        ids = torch.rand(tokens, choices, generator=generator).topk(min(top, choices)).indices.int()
        weights = torch.rand(tokens, ids.shape[1], generator=generator)
        x = torch.randn(tokens, hidden, generator=generator).bfloat16()
        return Layer(hidden, experts, ids.shape[1], tokens, *(one.to(self.device) for one in (ids, weights, x)))

    def gathered(self, x: torch.Tensor) -> torch.Tensor:
        out = x.new_empty(self.size * x.shape[0], *x.shape[1:])
        dist.all_gather_into_tensor(out, x)
        return out

    def timed(self, forms: Forms, calls: int) -> dict[str, list[float]]:
        """The microseconds of a call in each round."""
        runs = {name: Timed(self, call, calls) for name, call in forms.items()}
        us: dict[str, list[float]] = {name: [] for name in forms}
        for round_ in range(-1, self.options.rounds):
            for name, run in runs.items():
                dist.barrier(self.meeting)
                one = run.us()
                if round_ >= 0:
                    us[name].append(one)
        return us

    def add(self, op: str, model: str, layer: Layer, forms: Forms, right: dict[str, bool], **extras: object) -> None:
        calls = self.options.calls if layer.tokens <= 512 else max(2, self.options.calls // 4)
        medians: list[dict | None] = [None] * self.size
        us = self.timed(forms, calls)
        dist.all_gather_object(medians, ({name: statistics.median(all_) for name, all_ in us.items()}, right), group=self.meeting)
        row = {"op": op, "model": model, "tokens": layer.tokens, "hidden": layer.hidden, "experts": layer.experts,
               "top_k": layer.top, "pes": self.size, "calls": calls, "graph": self.on_gpus, **extras,
               "us": {name: round(max(one[0][name] for one in medians), 2) for name in forms},
               "spread_us": {name: [round(min(all_), 2), round(max(all_), 2)] for name, all_ in us.items()},
               "right": {name: all(one[1][name] for one in medians) for name in right}}  # fmt: skip
        self.rows.append(row)
        wrong = [name for name, is_right in row["right"].items() if not is_right]
        extra = " ".join(str(value) for value in extras.values())
        self.say(f"{op:14} {model:12} {layer.tokens:5} {extra:12} "
                 + ", ".join(f"{name} {value:.2f}" for name, value in row["us"].items())
                 + (f"  WRONG: {wrong}" if wrong else ""))  # fmt: skip
        if self.options.out and self.rank == 0:
            with open(self.options.out + ".part", "w", encoding="utf-8") as file:
                json.dump(self.result(), file, indent=1)
            os.replace(self.options.out + ".part", self.options.out)

    def result(self) -> dict:
        name = torch.cuda.get_device_name() if self.on_gpus else "CPUs"
        return {"machine": f"{name} x{self.size}", "date": time.strftime("%Y-%m-%d"), "torch": torch.__version__,
                "command": f"bench/python/experts.py {' '.join(self.options.words)}", "predicted": False,
                "rows": self.rows}  # fmt: skip


class Timed:
    """Calls between two events, in a graph where there are GPUs."""

    def __init__(self, bench: Bench, call: Callable[[], object], calls: int) -> None:
        self.bench, self.call, self.calls = bench, call, calls
        call()
        bench.synchronize()
        if not bench.on_gpus:
            return
        self.begin, self.end = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            for _ in range(2):
                call()
            self.begin.record()
            for _ in range(calls):
                call()
            self.end.record()
        torch.cuda.synchronize()

    def us(self) -> float:
        if self.bench.on_gpus:
            self.graph.replay()
            torch.cuda.synchronize()
            return self.begin.elapsed_time(self.end) * 1000 / self.calls
        begin = time.perf_counter()
        self.call()
        return (time.perf_counter() - begin) * 1e6


class Experts:
    """A plan of Tandem for a layer, with buffers, and the rows of NCCL's form."""

    def __init__(self, bench: Bench, layer: Layer, wire: str = "type", align: int = 1, transport: str = "rule", tp_size: int = 1) -> None:
        self.bench, self.layer, self.wire, self.tp_size = bench, layer, wire, tp_size
        ids, x = layer.ids, layer.x
        self.problem = tt._experts.problem_for(ids, layer.weights, experts=layer.experts, hidden=layer.hidden, align=align,
                                               wire=wire, tp_size=tp_size)  # fmt: skip
        fields = self.problem.fields() | {"transport": TRANSPORTS[transport]}
        self.plan = ExpertsPlan(bench.world, **fields)
        sizes = self.problem.sizes()
        self.routing = ids.new_zeros(sizes.routing_bytes // 4)
        fp8 = wire == "quantised"
        self.rows = x.new_zeros((sizes.dispatched_rows, layer.hidden), dtype=torch.float8_e4m3fn if fp8 else x.dtype)
        self.scales = x.new_zeros((sizes.dispatched_rows, -(-layer.hidden // BLOCK)), dtype=torch.float32) if fp8 else None
        self.out = torch.empty_like(x)
        self.choices = tt._experts.choices_of(ids, layer.weights, self.routing)
        self.moved = {"tokens": layer.tokens, "x": x.data_ptr(), "x_scales": None, "routing": self.routing.data_ptr(),
                      "out": self.rows.data_ptr(), "out_scales": self.scales.data_ptr() if fp8 else None}  # fmt: skip
        self.reference()

    def reference(self) -> None:
        """The rows of this process in the order of the routing, by gathers of everything."""
        bench, layer = self.bench, self.layer
        self.all_ids, self.all_x, self.all_weights = (bench.gathered(one) for one in (layer.ids, layer.x, layer.weights))
        self.here = layer.experts // (bench.size // self.tp_size)
        self.first = bench.rank // self.tp_size * self.here
        flat = self.all_ids.view(-1)
        self.is_here = (flat >= self.first) & (flat < self.first + self.here)
        self.count = int(self.is_here.sum())
        self.counts = torch.bincount(flat[self.is_here] - self.first, minlength=self.here)

    def route(self) -> None:
        self.plan.route(self.bench.stream(), **self.choices)

    def route_and_dispatch(self) -> None:
        self.plan.route_and_dispatch(self.bench.stream(), self.choices, self.moved)

    def dispatch(self) -> None:
        self.plan.dispatch(self.bench.stream(), **self.moved)

    def combine(self, y: torch.Tensor) -> None:
        self.plan.combine(self.bench.stream(), tokens=self.layer.tokens, y=y.data_ptr(), routing=self.routing.data_ptr(),
                          add=None, out=self.out.data_ptr())  # fmt: skip

    def used(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the rows that experts use, and the tokens of all processes that they are of."""
        arrays = tt._routing.Arrays(self.routing, self.problem)
        slots = arrays.at(arrays.sizes.slots_at, arrays.sizes.rows)
        end = int(arrays.at(arrays.sizes.starts_at, self.here + 1)[-1])
        rows = (slots[:end] >= 0).nonzero().view(-1)
        return rows, slots[rows].long()

    def dispatched_right(self) -> bool:
        self.bench.synchronize()
        arrays = tt._routing.Arrays(self.routing, self.problem)
        counts = arrays.at(arrays.sizes.counts_at, self.here)
        rows, slots = self.used()
        if not torch.equal(counts.long(), self.counts.long()) or len(rows) != self.count:
            return False
        want = self.all_x[slots].float()
        got = self.rows[rows].float()
        if self.scales is None:
            return torch.equal(got, want)
        got *= self.scales[rows].repeat_interleave(BLOCK, 1)[:, : got.shape[1]]
        return bool(((got - want).abs() <= 0.07 * want.abs() + 0.01).all())

    def combined_right(self, y: torch.Tensor) -> bool:
        """Whether the sums are those of `y`, within their rounding."""
        self.bench.synchronize()
        arrays = tt._routing.Arrays(self.routing, self.problem)
        rows = arrays.rows().view(-1, self.layer.top)
        padded = torch.cat((y, y.new_zeros(1, y.shape[1])))
        sums = torch.zeros(rows.shape[0], y.shape[1], device=y.device)
        for k in range(self.layer.top):
            sums += padded[rows[:, k]].float() * self.all_weights[:, k : k + 1]
        dist.all_reduce(sums)
        own = sums[self.bench.rank * self.layer.tokens :][: self.layer.tokens]
        return bool(torch.allclose(self.out.float(), own, rtol=0.02, atol=0.05))

    # The form of NCCL and PyTorch.

    def nccl_dispatch(self) -> Callable[[], torch.Tensor]:
        bench, layer = self.bench, self.layer

        def gathered_rows() -> torch.Tensor:
            if self.wire == "type":
                return bench.gathered(layer.x)
            blocks = layer.x.view(layer.tokens, -1, BLOCK)
            scales = blocks.abs().amax(2, keepdim=True).float() / 448
            quantised = (blocks / scales).to(torch.float8_e4m3fn)
            self.all_scales = bench.gathered(scales)
            return bench.gathered(quantised.view(torch.uint8)).view(-1, layer.hidden)

        def run() -> torch.Tensor:
            rows, ids = gathered_rows(), bench.gathered(layer.ids).view(-1)
            bench.gathered(layer.weights)
            key = torch.where((ids >= self.first) & (ids < self.first + self.here), ids, layer.experts)
            order = key.sort(stable=True).indices[: self.count]
            return rows.index_select(0, order // layer.top)

        return run

    def nccl_combine(self, y: torch.Tensor) -> Callable[[], torch.Tensor]:
        bench, layer = self.bench, self.layer
        key = torch.where(self.is_here, self.all_ids.view(-1), layer.experts)
        order = key.sort(stable=True).indices[: self.count]
        tokens, weights = order // layer.top, self.all_weights.view(-1)[order].unsqueeze(1).to(y.dtype)
        out = torch.empty_like(layer.x)

        def run() -> torch.Tensor:
            sums = y.new_zeros(bench.size * layer.tokens, layer.hidden)
            sums.index_add_(0, tokens, y[: self.count] * weights)
            dist.reduce_scatter_tensor(out, sums)
            return out

        return run


def all_to_all(bench: Bench, layer: Layer, element: float) -> Callable[[], object]:
    """Moves as many bytes to each process as all rows of a process have."""
    share = max(16, int(layer.tokens * layer.hidden * element) // 16 * 16)
    x = torch.zeros(bench.size * share // 4, device=bench.device)
    out = torch.empty_like(x)
    return lambda: bench.world.all_to_all(x, out=out, stream=torch.cuda.current_stream() if bench.on_gpus else None)


def moves(bench: Bench, model: str, tokens: int, routing: str, tp_size: int = 1) -> None:
    layer = bench.layer(model, tokens, routing)
    peers = bench.options.peers
    few = tokens <= 128
    shown = {"routing": routing} | ({"tp_size": tp_size} if tp_size > 1 else {})
    transport = bench.options.transport if few else "rule"
    made = Experts(bench, layer, transport=transport, tp_size=tp_size)
    forms: Forms = {"tandem": made.route_and_dispatch, "route": made.route, "dispatch": made.dispatch}
    if few and bench.options.fused:
        forms["fused"] = Experts(bench, layer, transport="fused", tp_size=tp_size).route_and_dispatch
    if peers:
        forms |= {"all_to_all": all_to_all(bench, layer, 2), "nccl": made.nccl_dispatch()}
    made.route_and_dispatch()
    right = {"tandem": made.dispatched_right()}
    bench.add("dispatch", model, layer, forms, right, dtype="bf16", **shown)
    y = torch.randn_like(made.rows)
    made.combine(y)
    right = {"tandem": made.combined_right(y)}
    forms = {"tandem": lambda: made.combine(y)} | ({"nccl": made.nccl_combine(y)} if peers else {})
    bench.add("combine", model, layer, forms, right, dtype="bf16", **shown)
    if model != "deepseek-v3":
        return
    made = Experts(bench, layer, "quantised", transport=transport, tp_size=tp_size)
    forms = {"tandem": made.route_and_dispatch, "dispatch": made.dispatch}
    if peers:
        forms |= {"all_to_all": all_to_all(bench, layer, 1 + 4 / BLOCK), "nccl": made.nccl_dispatch()}
    made.route_and_dispatch()
    bench.add("dispatch", model, layer, forms, {"tandem": made.dispatched_right()}, dtype="fp8", **shown)


class Products:
    """Tandem's plan of both products in one form."""

    def __init__(self, bench: Bench, made: Experts, intermediate: int, form: str, sms: int = 0) -> None:
        layer, self.bench, self.made = made.layer, bench, made
        self.plan = ExpertGemmsPlan(
            bench.world, max_tokens=layer.tokens, hidden=layer.hidden, intermediate=intermediate, experts=layer.experts,
            tp_size=made.tp_size, top_k=layer.top, type=made.problem.fields()["type"], activation=_c.GATED["swiglu"],
            dispatch_gemm=_c.EXPERT_FORMS["sequential" if made.scales is not None else form],
            gemm_combine=_c.EXPERT_FORMS[form], communication_sms=sms,
            **({"wire": 1} if made.scales is not None else {}))  # fmt: skip

    def dispatch(self, w: torch.Tensor, h: torch.Tensor, w_scales: torch.Tensor | None = None,
                 h_scales: torch.Tensor | None = None) -> None:  # fmt: skip
        made = self.made
        scales = {"b_scales": w_scales.data_ptr(), "row_scales": made.scales.data_ptr(),
                  "out_scales": h_scales.data_ptr()} if w_scales is not None else {}  # fmt: skip
        self.plan.dispatch(self.bench.stream(), tokens=made.layer.tokens, x=made.layer.x.data_ptr(),
                           routing=made.routing.data_ptr(), b=w.data_ptr(), rows=made.rows.data_ptr(), out=h.data_ptr(),
                           **scales)  # fmt: skip

    def combine(self, w: torch.Tensor, h: torch.Tensor, y: torch.Tensor, w_scales: torch.Tensor | None = None,
                h_scales: torch.Tensor | None = None) -> None:  # fmt: skip
        made = self.made
        scales = {"a_scales": h_scales.data_ptr(), "b_scales": w_scales.data_ptr()} if w_scales is not None else {}
        self.plan.combine(self.bench.stream(), tokens=made.layer.tokens, a=h.data_ptr(), routing=made.routing.data_ptr(),
                          b=w.data_ptr(), y=y.data_ptr(), add=None, out=made.out.data_ptr(), **scales)  # fmt: skip


def grouped_mm(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    function = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    return function(a, b.transpose(1, 2), offs=ends)


def swiglu_of(products: torch.Tensor) -> torch.Tensor:
    gates, ups = products.unflatten(1, (-1, 2, 8)).unbind(2)
    return (torch.nn.functional.silu(gates.float()) * ups.float()).flatten(1)


def products(bench: Bench, model: str, tokens: int, routing: str, tp_size: int = 1) -> None:
    layer = bench.layer(model, tokens, routing)
    intermediate, peers = MODELS[model][1] // tp_size, bench.options.peers
    shown = {"routing": routing} | ({"tp_size": tp_size} if tp_size > 1 else {})
    made = Experts(bench, layer, align=TILE, tp_size=tp_size)
    made.route()
    bench.wait(f"{model}: route")
    new = lambda *shape: torch.randn(*shape, device=bench.device, dtype=torch.bfloat16).mul_(shape[-1] ** -0.5)  # noqa: E731
    w1, w2 = new(made.here, 2 * intermediate, layer.hidden), new(made.here, layer.hidden, intermediate)
    h = layer.x.new_zeros(made.rows.shape[0], intermediate)
    y = torch.zeros_like(made.rows)
    ways = {form: Products(bench, made, intermediate, form) for form in bench.options.forms}
    ways |= {f"overlapped {sms}": Products(bench, made, intermediate, "overlapped", sms) for sms in bench.options.sms}
    bench.wait(f"{model}: plans")
    forms: Forms = {name: lambda way=way: way.dispatch(w1, h) for name, way in ways.items()}
    right = {}
    ends = made.counts.cumsum(0).to(torch.int32)
    for name, form in forms.items():
        h.zero_()
        form()
        bench.wait(f"{model}: dispatch_gemm {name}")
        rows, slots = made.used()
        want = swiglu_of(torch._grouped_mm(made.all_x[slots], w1.transpose(1, 2), offs=ends)) if peers else None
        right[name] = want is None or bool(torch.allclose(h[rows].float(), want, rtol=0.05, atol=0.03 * float(want.std())))
    rows, slots = made.used()
    sorted_x, sorted_h = made.all_x[slots].contiguous(), h[rows].contiguous()
    if peers:
        gather = made.nccl_dispatch()
        forms |= {"grouped_mm": lambda: grouped_mm(sorted_x, w1, ends), "nccl+grouped_mm": lambda: grouped_mm(gather(), w1, ends)}
    forms |= {"route": made.route}
    bench.add("dispatch_gemm", model, layer, forms, right, dtype="bf16", **shown)
    forms = {name: lambda way=way: way.combine(w2, h, y) for name, way in ways.items()}
    right = {}
    for name, form in forms.items():
        made.out.zero_()
        form()
        bench.wait(f"{model}: gemm_combine {name}")
        right[name] = made.combined_right(y)
    if peers:
        of_sums = made.nccl_combine(torch.randn(made.count, layer.hidden, device=bench.device).bfloat16())
        forms |= {"grouped_mm": lambda: grouped_mm(sorted_h, w2, ends),
                  "grouped_mm+nccl": lambda: (grouped_mm(sorted_h, w2, ends), of_sums())}  # fmt: skip
    bench.add("gemm_combine", model, layer, forms, right, dtype="bf16", **shown)
    for way in ways.values():
        way.plan.close()
    if bench.on_gpus:
        del w1, w2, h, y, sorted_x, sorted_h, made
        torch.cuda.empty_cache()


def fp8_products(bench: Bench, model: str, tokens: int) -> None:
    """Products of fp8 with scales of blocks, beside those of PyTorch with scales of rows and columns."""
    layer, intermediate, fp8 = bench.layer(model, tokens, "random"), MODELS[model][1], torch.float8_e4m3fn
    made = Experts(bench, layer, "quantised", align=TILE)
    made.route()
    bench.wait(f"{model}: route")
    rows, hidden, scale = made.rows.shape[0], layer.hidden, 2.0**-6
    blocks = lambda count: -(-count // BLOCK)  # noqa: E731
    new = lambda *shape: torch.randn(*shape, device=bench.device, dtype=torch.bfloat16).to(fp8)  # noqa: E731
    of_blocks = lambda *shape: torch.full(shape, scale, device=bench.device)  # noqa: E731
    w1, w2 = new(made.here, 2 * intermediate, hidden), new(made.here, hidden, intermediate)
    w1_scales = of_blocks(made.here, 2 * blocks(intermediate), blocks(hidden))
    w2_scales = of_blocks(made.here, blocks(hidden), blocks(intermediate))
    h, h_scales = made.rows.new_zeros(rows, intermediate), of_blocks(rows, blocks(intermediate))
    y = layer.x.new_zeros(rows, hidden)
    ways = {form: Products(bench, made, intermediate, form) for form in bench.options.forms}
    ends = made.counts.cumsum(0).to(torch.int32)
    one = next(iter(ways.values()))
    first = lambda: one.dispatch(w1, h, w1_scales, h_scales)  # noqa: E731
    first()
    bench.wait(f"{model}: dispatch_gemm fp8")
    used, _ = made.used()
    sorted_x, of_rows = made.rows.view(torch.uint8)[used].view(fp8), torch.ones(made.count, device=bench.device)
    real_x = sorted_x.bfloat16() * made.scales[used].repeat_interleave(BLOCK, 1)[:, :hidden].bfloat16()
    want = swiglu_of(grouped_mm(real_x, w1.bfloat16() * scale, ends))
    got = h.view(torch.uint8)[used].view(fp8).float() * h_scales[used].repeat_interleave(BLOCK, 1)[:, :intermediate]
    right = {"tandem": bool(torch.allclose(got, want, rtol=0.1, atol=0.05 * float(want.std())))}
    del real_x, want, got
    of_columns = lambda count: torch.ones(made.here, count, device=bench.device)  # noqa: E731
    scaled = lambda a, w: torch._scaled_grouped_mm(  # noqa: E731
        a, w.transpose(1, 2), of_rows, of_columns(w.shape[1]), offs=ends, out_dtype=torch.bfloat16)  # fmt: skip
    forms: Forms = {"tandem": first, "scaled_grouped_mm": lambda: scaled(sorted_x, w1), "route": made.route}
    bench.add("dispatch_gemm", model, layer, forms, right, dtype="fp8", routing="random")
    sorted_h = h.view(torch.uint8)[used].view(fp8).contiguous()
    forms = {form: lambda way=way: way.combine(w2, h, y, w2_scales, h_scales) for form, way in ways.items()}
    right = {}
    for name, form in forms.items():
        made.out.zero_()
        form()
        right[name] = made.combined_right(y)
    forms["scaled_grouped_mm"] = lambda: scaled(sorted_h, w2)
    bench.add("gemm_combine", model, layer, forms, right, dtype="fp8", routing="random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where the tensors are")
    parser.add_argument("--models", default="deepseek-v3,qwen3-30b,mixtral", help="names, separated by commas")
    parser.add_argument("--tokens", nargs="*", type=int, default=[1, 8, 32, 128, 4096], help="of a process")
    parser.add_argument("--skewed", nargs="*", type=int, default=[], help="tokens that all choose experts of process 0")
    parser.add_argument("--divided", nargs="*", type=int, default=[], help="tokens, where each process has columns of all experts")
    parser.add_argument("--divided-products", nargs="*", type=int, default=[], help="likewise of rows with products")
    parser.add_argument("--products", nargs="*", type=int, default=[4096], help="tokens of rows with products")
    parser.add_argument("--sms", nargs="*", type=int, default=[], help="SMs for the rows in further overlapped forms")
    parser.add_argument("--forms", nargs="*", default=["sequential", "overlapped"], help="of products")
    parser.add_argument("--fp8", nargs="*", type=int, default=[], help="tokens of rows with fp8 products")
    parser.add_argument("--fused", action="store_true", help="time the transport fused, too")
    parser.add_argument("--transport", choices=TRANSPORTS, default="rule", help="of rows without products, up to 128 tokens")
    parser.add_argument("--calls", type=int, default=20, help="of a graph; a quarter beyond 512 tokens")
    parser.add_argument("--rounds", type=int, default=15, help="replays of each graph")
    parser.add_argument("--heap-gigabytes", type=int, default=6, help="symmetric memory that a world begins with")
    parser.add_argument("--out", help="a JSON file for the results")
    options = parser.parse_args()
    options.words = [word for word in os.sys.argv[1:] if word != options.out and word != "--out"]
    bench = Bench(options)
    bench.meeting = dist.new_group(backend="gloo")
    options.peers = bench.on_gpus
    models = options.models.split(",") if bench.on_gpus else ["tiny"]
    with torch.no_grad():
        for model in models:
            for tokens in options.tokens:
                moves(bench, model, tokens, "random")
            for tokens in options.skewed:
                moves(bench, model, tokens, "one")
            for tokens in options.divided:
                moves(bench, model, tokens, "random", bench.size)
        for model in models:
            for tokens in options.products:
                products(bench, model, tokens, "random")
            for tokens in options.divided_products:
                products(bench, model, tokens, "random", bench.size)
            for tokens in options.fp8:
                fp8_products(bench, model, tokens)
    bench.synchronize()
    tt.shutdown()
    dist.destroy_process_group()


BEGIN = time.perf_counter()
main()
