"""A tensor-parallel layer of PyTorch with gradients, by processes on this computer.

usage: torchrun --nproc-per-node 2 torch_linear.py

`tandem launch -n 2 python torch_linear.py` starts it, too. It runs on CPUs; on GPUs the tensors are made there.
"""

import tandem.torch as tt
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()

# listing: linear
torch.manual_seed(0)  # the same on all ranks
whole_x, whole_weight = torch.randn(ranks * 8, 64), torch.randn(ranks * 32, 64)
x = whole_x.chunk(ranks)[rank].clone().requires_grad_()  # this rank's rows
weight = whole_weight.chunk(ranks)[rank].clone().requires_grad_()  # and columns, as torch.nn.Linear has them

y = tt.all_gather_matmul(x, weight.t())  # all rows, this rank's columns
y.square().mean().backward()  # reduces and scatters the gradient of x
largest = tt.all_reduce(y.detach().abs().max(), "max")
# end of listing

expected = whole_x @ whole_weight.chunk(ranks)[rank].t()
torch.testing.assert_close(y.detach(), expected, rtol=1e-4, atol=1e-4)
assert x.grad is not None and weight.grad is not None
if rank == 0:
    print(f"{ranks} ranks: the product is right, its largest value is {largest.item():.2f}")
dist.destroy_process_group()
