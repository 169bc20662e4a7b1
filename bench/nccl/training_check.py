#!/usr/bin/env python3
"""Runs PyTorch programs with one process for each rank, and notes what they compute.

Start it twice, with NCCL and with Tandem, and compare:

  python3 bench/nccl/training_check.py --out nccl.json
  tandem launch -n 1 --nccl python3 bench/nccl/training_check.py --out tandem.json --expected nccl.json

Parts: calls of torch.distributed with results worked out here; DDP and FSDP training, whose losses it notes; tokens of a
small Llama with tp_plan="auto" and random weights. With --expected these have to be the same. `--device cpu` uses Gloo.
"""
import argparse
import faulthandler
import json
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # the parent of the ranks must not start CUDA
for variable in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(variable, None)  # a launcher's own

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


class Checks:
    """Counts of one rank, and what it noted."""

    def __init__(self, device, rank, ranks, stacks_after):
        self.device, self.rank, self.ranks, self.stacks_after = device, rank, ranks, stacks_after
        self.passed, self.failed, self.noted, self.begin = 0, [], {}, time.perf_counter()

    def say(self, text):
        """With --stacks-after prints a timed line; stacks follow if the next line comes late."""
        if self.stacks_after:
            print(f"{time.perf_counter() - self.begin:7.2f} s, rank {self.rank}: {text}", flush=True)
            faulthandler.dump_traceback_later(self.stacks_after)

    def check(self, name, right):
        self.say(name)
        if right:
            self.passed += 1
        else:
            self.failed.append(name)
            print(f"FAILED rank {self.rank}: {name}", flush=True)

    def values(self, rank, dtype=torch.float, count=1037):
        return (torch.arange(count, device=self.device) % 5 + 1 + rank).to(dtype)


def check_reductions(c):
    dtypes = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.half, torch.bfloat16, torch.float, torch.double]
    all_values = lambda dtype: torch.stack([c.values(rank, dtype) for rank in range(c.ranks)])
    for dtype in dtypes:
        for op, wanted in ((dist.ReduceOp.SUM, lambda v: v.sum(0)), (dist.ReduceOp.MIN, lambda v: v.amin(0)),
                           (dist.ReduceOp.MAX, lambda v: v.amax(0)), (dist.ReduceOp.PRODUCT, lambda v: v.prod(0))):
            data = c.values(c.rank, dtype)
            dist.all_reduce(data, op=op)
            c.check(f"all_reduce {op} {dtype}", torch.equal(data, wanted(all_values(dtype)).to(dtype)))
    data = c.values(c.rank)
    dist.reduce(data, 0)
    c.check("reduce", c.rank != 0 or torch.equal(data, all_values(torch.float).sum(0)))
    if c.device.type == "cuda":
        data = c.values(c.rank)
        dist.all_reduce(data, op=dist._make_nccl_premul_sum(3.0))  # pylint: disable=protected-access
        c.check("premul_sum", torch.equal(data, 3 * all_values(torch.float).sum(0)))
        data = c.values(c.rank)
        dist.all_reduce(data, op=dist.ReduceOp.AVG)
        c.check("avg", torch.equal(data, all_values(torch.float).sum(0) / c.ranks))


def check_moves(c):
    mine, right, left = c.values(c.rank), (c.rank + 1) % c.ranks, (c.rank - 1) % c.ranks
    everyone = [c.values(rank) for rank in range(c.ranks)]
    out = [torch.zeros_like(mine) for _ in range(c.ranks)]
    dist.all_gather(out, mine)
    c.check("all_gather", all(torch.equal(a, b) for a, b in zip(out, everyone)))
    whole = torch.zeros(c.ranks * mine.numel(), device=c.device)
    dist.all_gather_into_tensor(whole, mine)
    c.check("all_gather_into_tensor", torch.equal(whole, torch.cat(everyone)))
    part = torch.zeros_like(mine)
    dist.reduce_scatter_tensor(part, whole)
    c.check("reduce_scatter_tensor", torch.equal(part, c.ranks * mine))
    mixed = torch.zeros_like(whole)
    dist.all_to_all_single(mixed, torch.cat([mine + peer for peer in range(c.ranks)]))
    c.check("all_to_all_single", torch.equal(mixed, torch.cat([value + c.rank for value in everyone])))
    sizes = [peer + c.rank + 1 for peer in range(c.ranks)]
    uneven = torch.zeros(sum(sizes), device=c.device)
    dist.all_to_all_single(uneven, torch.cat([mine[:size] for size in sizes]), sizes, sizes)
    c.check("uneven all_to_all", torch.equal(uneven, torch.cat([v[:size] for v, size in zip(everyone, sizes)])))
    data = mine.clone()
    dist.broadcast(data, c.ranks - 1)
    c.check("broadcast", torch.equal(data, everyone[-1]))
    dist.gather(mine, out if c.rank == 0 else None)
    dist.scatter(part, everyone if c.rank == 0 else None)
    c.check("scatter", torch.equal(part, mine))
    got = torch.zeros_like(mine)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, got, left)]):
        work.wait()
    c.check("batch_isend_irecv", torch.equal(got, everyone[left]))
    if c.rank == 0:
        dist.send(mine, 1)
    elif c.rank == 1:
        dist.recv(got, 0)
        c.check("recv", torch.equal(got, everyone[0]))
    objects = [None] * c.ranks
    dist.all_gather_object(objects, {"rank": c.rank})
    c.check("all_gather_object", objects == [{"rank": rank} for rank in range(c.ranks)])


def check_groups_and_graphs(c):
    groups = [dist.new_group(list(range(c.ranks))) for _ in range(2)]
    for turn in range(100):
        for group in groups:
            data = c.values(c.rank)
            dist.all_reduce(data, group=group)
        if turn % 20 == 0:
            c.check("groups", torch.equal(data, sum(c.values(rank) for rank in range(c.ranks))))
    if c.device.type != "cuda":
        return
    data, graph = c.values(c.rank), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(data)
    for turn in range(3):
        data.copy_(c.values(c.rank) + turn)
        graph.replay()
        torch.cuda.synchronize()
        c.check("graph", torch.equal(data, sum(c.values(rank) + turn for rank in range(c.ranks))))


def calls(c):
    check_reductions(c)
    check_moves(c)
    check_groups_and_graphs(c)
    dist.barrier()


def trained(c, wrap):
    """Returns the losses of ten steps of a small model."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = wrap(torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())]).to(c.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(2 + c.rank)
    data, losses = torch.randn(64, 256, device=c.device), []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def ddp(c):
    c.noted["ddp"] = trained(c, torch.nn.parallel.DistributedDataParallel)


def fsdp(c):
    from torch.distributed.fsdp import fully_shard

    def wrap(model):
        for layer in model:
            if list(layer.parameters()):
                fully_shard(layer)
        return fully_shard(model)

    c.noted["fsdp"] = trained(c, wrap)


def save_model(folder):
    import transformers
    torch.manual_seed(3)
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=8,
                                      num_key_value_heads=4, vocab_size=1000, max_position_embeddings=256)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def generate(c):
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(c.folder, tp_plan="auto", dtype=torch.float32)
    prompt = torch.arange(1, 33, device=c.device).reshape(1, 32)
    tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False, pad_token_id=0)
    c.noted["tokens"] = tokens[0].tolist()


PARTS = {"calls": calls, "ddp": ddp, "fsdp": fsdp, "generate": generate}


def run_rank(options, folder, rank):
    """The life of one rank; writes what it found to a file of its own."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(options.port))
    device = torch.device(options.device, rank) if options.device == "cuda" else torch.device("cpu")
    if options.device == "cuda":
        torch.cuda.set_device(device)
    c = Checks(device, rank, options.ranks, options.stacks_after)
    c.folder = os.path.join(folder, "model")
    c.say("the process group begins")
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=options.ranks)
    for name in options.parts.split(","):
        c.say(f"{name} begins")
        try:
            PARTS[name](c)
        except Exception as error:  # pylint: disable=broad-except
            c.check(f"{name}: {type(error).__name__}: {error}", False)
        if rank == 0:
            print(f"{name}: {c.passed} right, {len(c.failed)} wrong, after {time.perf_counter() - c.begin:.2f} s", flush=True)
        found = {"passed": c.passed, "failed": c.failed, **c.noted}
        pathlib.Path(folder, f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    c.say("the process group ends")
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


def answered_by():
    """Who answers calls of NCCL: a mapped library that the loader finds by this name, and its version."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return sorted({line.split()[-1] for line in maps.splitlines() if "nccl" in line.rsplit("/", 1)[-1]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file for what was computed")
    parser.add_argument("--expected", help="such a file, with the values that must be the same")
    parser.add_argument("--ranks", type=int, default=2, help="processes")
    parser.add_argument("--port", type=int, default=29677, help="port of the process group that transformers makes")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run, with commas between them")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="where tensors are")
    parser.add_argument("--after", help="a file; when it exists, the ranks start, and imports are done before")
    parser.add_argument("--stacks-after", type=float, default=0, metavar="SECONDS",
                        help="print each check with its time, and all stacks of a rank after so long without one")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)  # this process is one of the ranks
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options, options.folder, options.rank)
        return 0
    folder = tempfile.mkdtemp(prefix="training_check_")
    import torch._dynamo  # noqa: F401  imported once, before the ranks
    import torch.distributed.fsdp  # noqa: F401
    if "generate" in options.parts:
        import transformers.models.llama.modeling_llama  # noqa: F401
        save_model(os.path.join(folder, "model"))
    print("imported; mapped:", *answered_by(), flush=True)
    while options.after and not os.path.exists(options.after):
        time.sleep(0.02)
    children = []
    for rank in range(options.ranks):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            if torch.cuda._is_in_bad_fork():  # an import has started CUDA; pylint: disable=protected-access
                print(f"rank {rank} starts anew, since an import has started CUDA", flush=True)
                os.execv(sys.executable, [sys.executable, *sys.argv, "--rank", str(rank), "--folder", folder])
            try:
                run_rank(options, folder, rank)
                code = 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(pathlib.Path(folder).glob("rank*.json"))]
    pathlib.Path(options.out).write_text(json.dumps(found, indent=1), encoding="utf-8")
    wrong = [f"exit codes {codes}"] if any(codes) else []
    wrong += [failure for rank in found for failure in rank["failed"]]
    if options.expected:
        expected = json.loads(pathlib.Path(options.expected).read_text(encoding="utf-8"))
        for name in ("ddp", "fsdp", "tokens"):
            same = [one.get(name) for one in found] == [one.get(name) for one in expected]
            print(f"{name}: {'the same as' if same else 'other values than'} expected", flush=True)
            wrong += [] if same else [f"{name} differs"]
    print(f"{sum(rank['passed'] for rank in found)} right; wrong: {wrong or 'nothing'}")
    return 1 if wrong or len(found) < options.ranks else 0


if __name__ == "__main__":
    sys.exit(main())
