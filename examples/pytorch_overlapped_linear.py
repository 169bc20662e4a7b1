"""Tensor-parallel linear layers of torch processes by Tandem's overlapped operators, through its C API, with bias and
activation: plans for the largest batch, runs of any smaller one, in CUDA graphs, checked against torch.distributed and
matmul.

    TANDEM_LIBRARY=build/release/lib/libtandem_c.so python3 -m torch.distributed.run --nproc-per-node 2 \
        examples/pytorch_overlapped_linear.py
"""
import ctypes
import os

import torch
import torch.distributed as dist

# tandem.h: tandem_operator, tandem_dtype, tandem_activation, tandem_status.
ALL_GATHER_GEMM, GEMM_REDUCE_SCATTER, GEMM_ALL_REDUCE = range(3)
BF16, E4M3 = 3, 4
NO_ACTIVATION, RELU, GELU, SILU = range(4)
INVALID_ARGUMENT = 1
ACTIVATIONS = [lambda x: x, torch.nn.functional.relu, torch.nn.functional.gelu, torch.nn.functional.silu]


class Problem(ctypes.Structure):
    _fields_ = [("m", ctypes.c_size_t), ("n", ctypes.c_size_t), ("k", ctypes.c_size_t), ("type", ctypes.c_int),
                ("ns", ctypes.POINTER(ctypes.c_size_t)), ("num_b", ctypes.c_size_t), ("out_type", ctypes.c_int),
                ("b_layout", ctypes.c_int), ("activation", ctypes.c_int), ("a_scale_per_row", ctypes.c_int),
                ("b_scale_per_column", ctypes.c_int), ("norm", ctypes.c_int), ("epsilon", ctypes.c_double),
                ("residual", ctypes.c_int), ("norm_bias", ctypes.c_int), ("sum", ctypes.c_int),
                ("quantisation", ctypes.c_int), ("scale", ctypes.c_double), ("shares_memory", ctypes.c_int),
                ("block_scales", ctypes.c_int), ("fast_accumulation", ctypes.c_int)]


class Run(ctypes.Structure):
    _fields_ = [("m", ctypes.c_size_t), ("a", ctypes.c_void_p), ("b", ctypes.POINTER(ctypes.c_void_p)),
                ("c", ctypes.POINTER(ctypes.c_void_p)), ("bias", ctypes.POINTER(ctypes.c_void_p)),
                ("a_scale", ctypes.c_void_p), ("b_scale", ctypes.POINTER(ctypes.c_void_p)),
                ("c_scale", ctypes.POINTER(ctypes.c_void_p)),
                ("gathered", ctypes.c_void_p), ("residual", ctypes.c_void_p), ("norm_weight", ctypes.c_void_p),
                ("norm_bias", ctypes.c_void_p), ("sum", ctypes.c_void_p), ("scales", ctypes.c_void_p)]


def pointers(tensors):
    return (ctypes.c_void_p * len(tensors))(*[x.data_ptr() for x in tensors])


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

    def plan(self, op, m, ns, k, **options):
        plan = ctypes.c_void_p()
        problem = Problem(m, sum(ns), k, BF16, (ctypes.c_size_t * len(ns))(*ns) if len(ns) > 1 else None, len(ns))
        for name, value in options.items():
            setattr(problem, name, value)
        self.check(self.library.tandem_plan_create(ctypes.byref(plan), self.world, op, ctypes.byref(problem)))
        return plan

    def run(self, plan, m, a, b, c, bias):
        """b, c and bias: lists of tensors; in torch's current stream."""
        run = Run(m=m, a=a.data_ptr(), b=pointers(b), c=pointers(c), bias=pointers(bias))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.library.tandem_plan_run_with(plan, ctypes.byref(run), stream))

    def synchronize(self):
        """The whole GPU, and raises what has gone wrong in the world, such as a wait that gave up."""
        torch.cuda.synchronize()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.library.tandem_synchronize(self.world, stream))

    def refuses(self, op, m, ns, k, **options):
        """Whether such a plan is an invalid argument, and the text says so of one of the options."""
        try:
            self.plan(op, m, ns, k, **options)
        except RuntimeError as error:
            return f"(status {INVALID_ARGUMENT})" in str(error) and any(name in str(error) for name in options)
        return False

    def close(self, plans):
        for plan in plans:
            self.check(self.library.tandem_plan_destroy(plan))
        self.check(self.library.tandem_world_destroy(self.world))


def random(rows, columns):
    return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)


def shard_rows(m):
    """This rank's rows of m: equal parts, the last may be shorter."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    step = -(-m // ranks)
    return max(0, min(m - rank * step, step))


def wanted(op, a, b, bias, activation, m):
    """What torch makes of the same matrices, in f32."""
    return [ACTIVATIONS[activation](x + y.float()) for x, y in zip(sums(op, a, b, m), bias)]


def sums(op, a, b, m):
    if op == ALL_GATHER_GEMM:
        ranks = dist.get_world_size()
        step = -(-m // ranks)
        padded = torch.zeros(step, a.shape[1], device="cuda", dtype=a.dtype)
        padded[: a.shape[0]] = a
        gathered = torch.empty(step * ranks, a.shape[1], device="cuda", dtype=a.dtype)
        dist.all_gather_into_tensor(gathered, padded)
        return [gathered[:m].float() @ x.float().t() for x in b]
    product = a.float() @ b[0].float().t()
    dist.all_reduce(product)
    if op == GEMM_ALL_REDUCE:
        return [product]
    first = dist.get_rank() * -(-m // dist.get_world_size())
    return [product[first : first + shard_rows(m)]]


def is_right(got, want):
    if want.numel() == 0:
        return True
    return bool((got.float() - want).abs().max() <= 0.02 * want.abs().max())


def check(tandem, op, plan, m, ns, k, activation):
    """A run, then replays of a graph of it with other data; how many results are wrong."""
    ranks = dist.get_world_size()
    gather = op == ALL_GATHER_GEMM
    a = random(shard_rows(m) if gather else m, k if gather else k // ranks)
    b = [random(n // ranks if gather else n, a.shape[1]) for n in ns]
    c = [torch.empty(shard_rows(m) if op == GEMM_REDUCE_SCATTER else m, x.shape[0], device="cuda", dtype=x.dtype)
         for x in b]
    bias = [random(1, x.shape[0])[0] * a.shape[1] ** 0.5 for x in b]
    if not gather:  # of the sum: the first PE's is added
        dist.broadcast(bias[0], 0)

    def wrong_ones():
        return sum(not is_right(x, y) for x, y in zip(c, wanted(op, a, b, bias, activation, m)))

    tandem.run(plan, m, a, b, c, bias)
    tandem.synchronize()
    wrong = wrong_ones()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        tandem.run(plan, m, a, b, c, bias)
    for _ in range(3):
        a.normal_()
        for x in c:
            x.fill_(float("nan"))
        graph.replay()
        tandem.synchronize()
        wrong += wrong_ones()
    return wrong


def main():
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=torch.device("cuda", device))
    torch.manual_seed(dist.get_rank())
    tandem = Tandem(os.environ["TANDEM_LIBRARY"])
    most = 2048

    def of_all(length):  # at least so long, and each rank's part a multiple of 8, so that rows begin at 16 bytes
        step = 8 * dist.get_world_size()
        return -(-length // step) * step

    k = of_all(4096)
    wrong = runs = 0
    plans = []
    for op, ns, activation in ((ALL_GATHER_GEMM, [4096, 1024, 1024], NO_ACTIVATION), (ALL_GATHER_GEMM, [8192], GELU),
                               (GEMM_REDUCE_SCATTER, [4096], NO_ACTIVATION), (GEMM_REDUCE_SCATTER, [4096], RELU),
                               (GEMM_ALL_REDUCE, [4096], NO_ACTIVATION), (GEMM_ALL_REDUCE, [8192], SILU)):
        ns = [of_all(n) for n in ns]
        plans.append(tandem.plan(op, most, ns, k, activation=activation))
        for m in (most, 1, 777, 16, 1500):
            wrong += check(tandem, op, plans[-1], m, ns, k, activation)
            runs += 4
    for op, options in ((ALL_GATHER_GEMM, {"activation": 4}), (ALL_GATHER_GEMM, {"b_layout": 2}),
                        (ALL_GATHER_GEMM, {"a_scale_per_row": 1}), (ALL_GATHER_GEMM, {"b_scale_per_column": 2}),
                        (GEMM_REDUCE_SCATTER, {"type": E4M3, "out_type": E4M3}),
                        (ALL_GATHER_GEMM, {"type": E4M3, "b_layout": 1})):
        wrong += not tandem.refuses(op, most, [k], k, **options)
    total = torch.tensor([wrong], device="cuda")
    dist.all_reduce(total)
    tandem.close(plans)
    if dist.get_rank() == 0:
        print(f"{runs} runs on each of {dist.get_world_size()} PEs, {int(total)} results wrong")
    dist.destroy_process_group()
    return 1 if int(total) else 0


if __name__ == "__main__":
    raise SystemExit(main())
