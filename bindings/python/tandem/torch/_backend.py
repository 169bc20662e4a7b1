"""A c10d backend on CPUs: torch.distributed's calls run on a Tandem world.

    import tandem.torch
    dist.init_process_group("cpu:tandem")

Calls block until their result is there, and return completed work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from .. import errors
from .._torch_ids import share_id
from ..world import World
from . import _groups

_OPERATIONS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.PRODUCT: "prod",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.AVG: "avg",
}
# Booleans travel as bytes: of 0 and 1 the smallest and the largest are what "and" and "or" give.
_AS_BYTES = {dist.ReduceOp.BAND: "min", dist.ReduceOp.BOR: "max", dist.ReduceOp.SUM: "max"}


def _done(result: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _plain(x: torch.Tensor) -> torch.Tensor:
    """The tensor's memory in a type that worlds know, where only the bytes count."""
    if x.dtype in (torch.bool, torch.int16) or x.is_complex():
        return x.view(torch.uint8) if x.dim() > 0 else x.reshape(1).view(torch.uint8)
    return x


def _operation(op: Any, dtype: torch.dtype) -> str:
    kind = getattr(op, "op", op)
    name = (_AS_BYTES if dtype == torch.bool else _OPERATIONS).get(kind)
    if name is None or dtype == torch.int16 or dtype.is_complex:
        raise errors.Unsupported(f"op: {kind} of {dtype} given, which the backend tandem has not")
    return name


class TandemGroup(dist.ProcessGroup):
    """A process group on a world of CPU PEs."""

    def __init__(self, store: Any, rank: int, size: int, timeout_s: float) -> None:
        super().__init__(rank, size)
        self._name = ""
        unique, pe, pes = share_id(store, rank, size)
        self.world = World.from_id(unique, pe, pes, device="host", join_timeout_s=timeout_s, **_groups.HOST_OPTIONS)

    def getBackendName(self) -> str:
        """The name that c10d shows."""
        return "tandem"

    def getGroupName(self) -> str:
        """The name by which functional collectives find the group."""
        return self._name

    def setGroupName(self, name: str) -> None:
        """Takes the name."""
        self._name = name

    @property
    def group_name(self) -> str:
        """The same name."""
        return self._name

    # Reductions.

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces each tensor in place."""
        for x in tensors:
            self._in_place(x, lambda y, x=x: self.world.all_reduce(y, self._op(opts, x), out=y))
        return _done(list(tensors))

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces several tensors in place."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """Reduces each tensor in place on the root."""
        for x in tensors:
            y = _plain(x.detach().contiguous())
            result = self.world.reduce(y, self._op(opts, x), root=opts.rootRank)
            if result is not None:
                x.detach().copy_(result.view(x.dtype).reshape(x.shape))
        return _done(list(tensors))

    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        x = given.detach().contiguous().reshape(-1)
        self._in_place(
            output, lambda y: y.copy_(self.world.reduce_scatter(_plain(x), self._op(opts, given)).reshape(y.shape))
        )
        return _done([output])

    def reduce_scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any = None) -> Any:
        """Reduces a list of tensors; this process gets the one of its rank."""
        for output, parts in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, torch.stack([one.detach() for one in parts]), opts)
        return _done(list(outputs))

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Reduces and scatters several tensors."""
        for output, given in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, given, opts)
        return _done(list(outputs))

    # Copies.

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """Copies the root's tensors to all processes."""
        for x in tensors:
            self._in_place(x, lambda y: self.world.broadcast(y, root=opts.rootRank, out=y))
        return _done(list(tensors))

    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        x = _plain(given.detach().contiguous().reshape(-1))
        self._in_place(output, lambda y: y.copy_(self.world.all_gather(x).reshape(y.shape)))
        return _done([output])

    def allgather(self, outputs: Any, inputs: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """Gathers a tensor of each process into a list."""
        for parts, given in zip(outputs, inputs, strict=True):
            gathered = given.new_empty((self.size(), *given.shape))
            self._allgather_base(gathered, given, opts)
            for part, got in zip(parts, gathered, strict=True):
                part.detach().copy_(got)
        return _done(list(outputs))

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Gathers several tensors."""
        for output, given in zip(outputs, inputs, strict=True):
            self._allgather_base(output, given, opts)
        return _done(list(outputs))

    def gather(self, outputs: Any, inputs: Sequence[torch.Tensor], opts: Any) -> Any:
        """Gathers a tensor of each process into the root's list."""
        given = inputs[0].detach().contiguous()
        result = self.world.gather(_plain(given.reshape(-1)), root=opts.rootRank)
        if result is not None:
            for part, got in zip(outputs[0], result.view(given.dtype).reshape(self.size(), *given.shape), strict=True):
                part.detach().copy_(got)
        return _done(list(outputs))

    def scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any) -> Any:
        """Sends the root's list of tensors, one to each process."""
        parts = inputs[0] if self.rank() == opts.rootRank else None
        x = None if parts is None else torch.stack([_plain(one.detach().contiguous()) for one in parts])
        self._in_place(
            outputs[0],
            lambda y: self.world.scatter(None if x is None else x.reshape(-1), root=opts.rootRank, out=y.reshape(-1)),
        )
        return _done(list(outputs))

    def alltoall_base(
        self, output: torch.Tensor, given: torch.Tensor, out_splits: Any, in_splits: Any, opts: Any = None
    ) -> Any:
        """Exchanges parts of the first axis, of equal or of given sizes."""
        pes = self.size()
        x = given.detach().contiguous()
        out = output.detach() if output.is_contiguous() else torch.empty_like(output).contiguous()
        outgoing = x.split(list(in_splits)) if in_splits else x.chunk(pes) if x.numel() > 0 else [x] * pes
        incoming = out.split(list(out_splits)) if out_splits else out.chunk(pes) if out.numel() > 0 else [out] * pes
        self._exchange(incoming, outgoing)
        if not output.is_contiguous():
            output.detach().copy_(out)
        return _done([output])

    def alltoall(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """Exchanges lists of tensors, one for each process."""
        made = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in outputs]
        self._exchange(made, [one.detach().contiguous() for one in inputs])
        for output, got in zip(outputs, made, strict=True):
            output.detach().copy_(got)
        return _done(list(outputs))

    def _exchange(self, incoming: Sequence[torch.Tensor], outgoing: Sequence[torch.Tensor]) -> None:
        me = self.rank()
        incoming[me].copy_(outgoing[me])
        others = [pe for pe in range(self.size()) if pe != me]
        self.world.send_recv(
            [(_plain(outgoing[pe]), pe) for pe in others if outgoing[pe].numel() > 0],
            [(_plain(incoming[pe]), pe) for pe in others if incoming[pe].numel() > 0],
        )

    # Messages.

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        """Sends tensors to a process. Tags are ignored: messages match in order."""
        for x in tensors:
            self.world.send(_plain(x.detach().contiguous()), peer)
        return _done(list(tensors))

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        """Receives tensors from a process."""
        for x in tensors:
            self._in_place(x, lambda y: self.world.recv(y, peer))
        return _done(list(tensors))

    def barrier(self, opts: Any = None) -> Any:
        """Blocks until all processes have called it."""
        self.world.barrier()
        return _done(None)

    # Newer versions of PyTorch call them by these names.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def abort(self) -> None:
        """Ends the world on all processes."""
        self.world.abort("abort of the process group")

    def shutdown(self) -> None:
        """Leaves the world."""
        self.world.close()

    def _op(self, opts: Any, x: torch.Tensor) -> str:
        return _operation(dist.ReduceOp.SUM if opts is None else opts.reduceOp, x.dtype)

    def _in_place(self, x: torch.Tensor, work: Any) -> None:
        """Calls `work` with contiguous memory that becomes the contents of `x`."""
        own = x.detach()
        y = own if own.is_contiguous() else own.contiguous()
        work(_plain(y))
        if y is not own:
            own.copy_(y)


def _create(options: Any, _: Any) -> TandemGroup:
    timeout = options.timeout
    return TandemGroup(
        options.store, options.group_rank, options.group_size, getattr(timeout, "total_seconds", lambda: 600.0)()
    )


def register_backend() -> None:
    """Makes "tandem" a backend of torch.distributed for CPU tensors. Importing tandem.torch calls it."""
    if "tandem" not in dist.Backend.backend_list:
        dist.Backend.register_backend("tandem", _create, extended_api=True, devices=["cpu"])


register_backend()
