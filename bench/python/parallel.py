"""Three ways of tensor parallelism: NCCL, PyTorch's symmetric memory, Tandem. Weights are k x n."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.distributed as dist
from processes import Processes


class Nccl:
    """A product and a collective, one after the other; with Gloo on CPUs. Weights are k x n."""

    def __init__(self, processes: Processes) -> None:
        self.size, self.group = processes.size, processes.group

    def gather(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The product of the rows of all processes, and these rows."""
        whole = x.new_empty(self.size * x.shape[0], x.shape[1])
        dist.all_gather_into_tensor(whole, x)
        return whole @ weight, whole

    def scatter(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """This process's rows of the sum of products."""
        product = x @ weight
        part = product.new_empty(x.shape[0] // self.size, weight.shape[1])
        dist.reduce_scatter_tensor(part, product)
        return part

    def reduce(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The sum of products."""
        product = x @ weight
        dist.all_reduce(product)
        return product


class SymmMem(Nccl):
    """PyTorch's fused operators, which its async tensor parallelism uses, and its all-reduces in symmetric memory."""

    ONE_SHOT_BYTES = 512 << 10  # more are reduced by two shots

    def __init__(self, processes: Processes) -> None:
        super().__init__(processes)
        self.buffers: dict[tuple[int, int], torch.Tensor] = {}

    def gather(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole, products = torch.ops.symm_mem.fused_all_gather_matmul(x, [weight], 0, self.group, return_A=True)
        return products[0], whole

    def scatter(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weight, "sum", 0, self.group)

    def reduce(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The sum of products, which the next such call may overwrite."""
        import torch.distributed._symmetric_memory as symm_mem

        shape = x.shape[0], weight.shape[1]
        if shape not in self.buffers:
            self.buffers[shape] = symm_mem.empty(*shape, device=x.device, dtype=x.dtype)
            symm_mem.rendezvous(self.buffers[shape], self.group)
        product = torch.matmul(x, weight, out=self.buffers[shape])
        if product.numel() * product.element_size() <= self.ONE_SHOT_BYTES:
            return torch.ops.symm_mem.one_shot_all_reduce(product, "sum", self.group)
        return torch.ops.symm_mem.two_shot_all_reduce_(product, "sum", self.group)


class Tandem(Nccl):
    """The operators of tandem.torch."""

    def gather(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return tt.all_gather_matmul(x, weight, return_gathered=True)

    def scatter(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return tt.matmul_reduce_scatter(x, weight)

    def reduce(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return tt.matmul_all_reduce(x, weight)


def ways(processes: Processes) -> dict[str, Nccl]:
    """All of them; CPUs have no symmetric memory of PyTorch."""
    made: dict[str, Nccl] = {"nccl": Nccl(processes), "tandem": Tandem(processes)}
    return made | {"symm_mem": SymmMem(processes)} if processes.on_gpus else made
