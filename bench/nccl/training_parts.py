"""The parts of training_check.py that ranks run: calls of torch.distributed, training, and tokens of a small Llama."""
import faulthandler
import os
import time

import torch
import torch.distributed as dist


class Checks:
    """Counts of one rank, and what it noted."""

    def __init__(self, device, place, stacks_after):
        self.device, self.place, self.stacks_after = device, place, stacks_after
        self.rank, self.ranks = place.rank, place.ranks
        self.passed, self.failed, self.noted, self.begin = 0, [], {}, time.perf_counter()

    def say(self, text):
        """Notes where this rank is. With --stacks-after prints it; stacks follow if the next line comes late."""
        self.place.note(text)
        if self.stacks_after:
            print(f"{time.perf_counter() - self.begin:7.2f} s, rank {self.rank}: {text}", flush=True)
            faulthandler.dump_traceback_later(self.stacks_after)

    def check(self, name, right):
        self.say(f"after {name}")
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
    mine = c.values(c.rank)
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
    objects = [None] * c.ranks
    dist.all_gather_object(objects, {"rank": c.rank})
    c.check("all_gather_object", objects == [{"rank": rank} for rank in range(c.ranks)])


def check_messages(c):
    if c.ranks == 1:
        print("left out with one rank: batch_isend_irecv, recv", flush=True)
        return
    mine, right, left = c.values(c.rank), (c.rank + 1) % c.ranks, (c.rank - 1) % c.ranks
    got = torch.zeros_like(mine)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, got, left)]):
        work.wait()
    c.check("batch_isend_irecv", torch.equal(got, c.values(left)))
    if c.rank == 0:
        dist.send(mine, 1)
    elif c.rank == 1:
        dist.recv(got, 0)
        c.check("recv", torch.equal(got, c.values(0)))


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
    check_messages(c)
    check_groups_and_graphs(c)
    dist.barrier()


def small_model(c):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    return torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())]).to(c.device)


def data_of(c, rank):
    torch.manual_seed(2 + rank)
    return torch.randn(64, 256, device=c.device)


def steps(model, data):
    """Returns, by step, the losses of all `data` in ten steps of a model."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(10):
        optimizer.zero_grad()
        parts = [(model(one) - one).square().mean() for one in data]
        torch.stack(parts).mean().backward()
        optimizer.step()
        losses.append([part.item() for part in parts])
    return losses


def trained(c, name, wrap):
    """Notes the losses of this rank, and compares them with those of one process that has the data of all ranks."""
    alone = steps(small_model(c), [data_of(c, rank) for rank in range(c.ranks)])
    c.noted[name] = [loss for (loss,) in steps(wrap(small_model(c)), [data_of(c, c.rank)])]
    wanted = torch.tensor([losses[c.rank] for losses in alone])
    c.check(f"{name}: losses of one process", torch.allclose(torch.tensor(c.noted[name]), wanted, rtol=1e-3))


def ddp(c):
    trained(c, "ddp", torch.nn.parallel.DistributedDataParallel)


def fsdp(c):
    from torch.distributed.fsdp import fully_shard

    def wrap(model):
        for layer in model:
            if list(layer.parameters()):
                fully_shard(layer)
        return fully_shard(model)

    trained(c, "fsdp", wrap)


def save_model(folder):
    import transformers
    torch.manual_seed(3)
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=8,
                                      num_key_value_heads=4, vocab_size=1000, max_position_embeddings=256)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def generate(c):
    from transformers import AutoModelForCausalLM

    def tokens_of(model):
        prompt = torch.arange(1, 33, device=c.device).reshape(1, 32)
        tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False,
                                pad_token_id=0)
        return tokens[0].tolist()

    c.noted["tokens"] = tokens_of(AutoModelForCausalLM.from_pretrained(c.folder, tp_plan="auto", dtype=torch.float32))
    alone = tokens_of(AutoModelForCausalLM.from_pretrained(c.folder, dtype=torch.float32).to(c.device))
    c.check("generate: tokens of one process", c.noted["tokens"] == alone)


PARTS = {"calls": calls, "ddp": ddp, "fsdp": fsdp, "generate": generate}
