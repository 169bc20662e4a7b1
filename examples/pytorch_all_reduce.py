"""A torch process group's tensors, all-reduced by Tandem through its C API and checked against torch.distributed.

    TANDEM_LIBRARY=build/release/lib/libtandem_c.so python3 -m torch.distributed.run --nproc-per-node 2 \
        examples/pytorch_all_reduce.py [--quick]
"""
import ctypes
import os
import statistics
import sys

import torch
import torch.distributed as dist

# tandem.h: tandem_dtype, tandem_op.
DTYPES = {torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.int8: 6, torch.int32: 8, torch.int64: 10,
          torch.float64: 12}
TANDEM_UNSUPPORTED = 2
OPS = {dist.ReduceOp.SUM: 0, dist.ReduceOp.PRODUCT: 1, dist.ReduceOp.MIN: 2, dist.ReduceOp.MAX: 3}


class Tandem:
    """The part of the C API that this program uses; errors are exceptions."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.tandem_last_error.restype = ctypes.c_char_p
        self.world = ctypes.c_void_p()
        self.check(self.library.tandem_world_from_environment(ctypes.byref(self.world), None))

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"tandem: {self.library.tandem_last_error().decode()} (status {status})")

    def all_reduce(self, tensor, op=dist.ReduceOp.SUM):
        """In place, in torch's current stream."""
        assert tensor.is_contiguous()
        pointer = ctypes.c_void_p(tensor.data_ptr())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.library.tandem_all_reduce(self.world, pointer, pointer, ctypes.c_size_t(tensor.numel()),
                                                  DTYPES[tensor.dtype], OPS[op], stream))

    def empty(self, count, dtype):
        """A tensor in the symmetric heap, which is reduced without staging copies; lives as long as the world."""
        pointer = ctypes.c_void_p()
        size = count * dtype.itemsize
        self.check(self.library.tandem_alloc(self.world, ctypes.c_size_t(size), ctypes.byref(pointer)))

        class Memory:
            __cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (pointer.value, False),
                                        "version": 3}

        return torch.as_tensor(Memory(), device="cuda").view(dtype)

    def register(self, tensor):
        """Whether the tensor's memory can be reduced as it is: see tandem_register in tandem.h."""
        status = self.library.tandem_register(self.world, ctypes.c_void_p(tensor.data_ptr()),
                                              ctypes.c_size_t(tensor.numel() * tensor.element_size()))
        if status == TANDEM_UNSUPPORTED:
            return self.library.tandem_last_error().decode()
        self.check(status)
        return None

    def synchronize(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.library.tandem_synchronize(self.world, stream))

    def close(self):
        self.check(self.library.tandem_world_destroy(self.world))


def check(tandem, rank, quick):
    """Every type, operation and size; data whose result does not depend on the order of additions."""
    counts = (1003, 5_000_001) if quick else (1, 1003, 65536, 1 << 20, 5_000_001, 40_000_000)
    checked = 0
    generator = torch.Generator(device="cuda").manual_seed(rank)
    for dtype in DTYPES:
        for op in OPS:
            for count in counts:
                low, high = (1, 3) if op == dist.ReduceOp.PRODUCT else (-4, 5)
                mine = torch.randint(low, high, (count,), device="cuda", generator=generator).to(dtype)
                theirs = mine.clone()
                tandem.all_reduce(mine, op)
                dist.all_reduce(theirs, op)
                tandem.synchronize()
                if not torch.equal(mine, theirs):
                    wrong = (mine != theirs).sum().item()
                    raise RuntimeError(f"{dtype}, {op}, {count} elements: {wrong} differ from torch.distributed")
                checked += 1
    return checked


def median_us(work, calls=20, rounds=15):
    """Of one call, of the slowest rank, in CUDA graphs of `calls` calls; one function after the other, in turns."""
    graphs = []
    for one in work:
        one()
        torch.cuda.synchronize()
        dist.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(calls):
                one()
        graphs.append(graph)
    times = [[] for _ in work]
    for _ in range(rounds):
        for graph, found in zip(graphs, times):
            dist.barrier()
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) * 1000 / calls)
    medians = torch.tensor([statistics.median(found[2:]) for found in times], device="cuda")
    dist.all_reduce(medians, dist.ReduceOp.MAX)
    return medians.tolist()


def check_registered(tandem, rank):
    """A registered tensor is reduced by its owner's address. With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."""
    mine = torch.full((1 << 20,), rank + 1.0, device="cuda")
    problem = tandem.register(mine)
    if rank == 0:
        print(problem or "registration: done")
    tandem.all_reduce(mine)
    tandem.synchronize()
    n = dist.get_world_size()
    if not torch.equal(mine, torch.full_like(mine, n * (n + 1) / 2)):
        raise RuntimeError("a registered tensor was reduced wrongly")
    return mine


def compare(tandem, rank):
    """Prints times, of maxima: sums of sums would grow out of the type."""
    if rank == 0:
        print("bf16, us a call: bytes, tandem on its heap, tandem on torch's memory, torch.distributed")
    for size in (1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20):
        plain = torch.randn(size // 2, device="cuda").bfloat16()
        heap = tandem.empty(size // 2, torch.bfloat16)
        heap.copy_(plain)
        op = dist.ReduceOp.MAX
        times = median_us([lambda: tandem.all_reduce(heap, op), lambda: tandem.all_reduce(plain, op),
                           lambda: dist.all_reduce(plain, op)])
        if rank == 0:
            print(f"{size:9d} " + " ".join(f"{time:9.1f}" for time in times), flush=True)


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # neither side uses the switch's multicast
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    tandem = Tandem(os.environ.get("TANDEM_LIBRARY", "libtandem_c.so"))
    quick = "--quick" in sys.argv
    checked = check(tandem, rank, quick)
    if rank == 0:
        print(f"{checked} all-reduces on {dist.get_world_size()} PEs equal torch.distributed's", flush=True)
    registered = check_registered(tandem, rank)
    if not quick:
        compare(tandem, rank)
    tandem.close()
    del registered
    dist.destroy_process_group()


main()
