"""A c10d backend: torch.distributed's calls run on Tandem worlds of CPUs and of GPUs.

    import tandem.torch
    dist.init_process_group("cpu:tandem,cuda:tandem")

Calls with tensors of GPUs are enqueued in the current stream. The first of them makes a world of GPUs, so all
processes of the group make it. Calls with tensors of CPUs block until their result is there.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist

from .. import _c, _structs, errors
from .._torch_ids import share_id
from ..world import World
from . import _groups
from ._work import Messages, TandemWork, enqueue_messages

_OPERATIONS = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.PRODUCT: "prod",
    dist.ReduceOp.MIN: "min",
    dist.ReduceOp.MAX: "max",
    dist.ReduceOp.AVG: "avg",
}
# Booleans travel as bytes: of 0 and 1 the smallest and the largest are what "and" and "or" give.
_AS_BYTES = {dist.ReduceOp.BAND: "min", dist.ReduceOp.BOR: "max", dist.ReduceOp.SUM: "max"}


def _type_name(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


def _plain(x: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor in a type that worlds know, where only the bytes count."""
    if _type_name(x) in _c.TYPES:
        return x
    return x.view(torch.uint8) if x.dim() > 0 else x.reshape(1).view(torch.uint8)


def _operation(opts: Any, dtype: torch.dtype) -> int:
    op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
    kind = getattr(op, "op", op)
    name = (_AS_BYTES if dtype == torch.bool else _OPERATIONS).get(kind)
    if name is None or (dtype != torch.bool and str(dtype).removeprefix("torch.") not in _c.TYPES):
        raise errors.Unsupported(f"op: {kind} of {dtype} given, which the backend tandem has not")
    return _c.OPERATIONS[name]


def _message(x: torch.Tensor, pe: int) -> _structs.Message:
    y = _plain(x)
    return _structs.Message(y.data_ptr(), y.numel(), _c.TYPES[_type_name(y)], pe)


def _require_alike(name: str, x: torch.Tensor, like: torch.Tensor, elements: int) -> None:
    """Raises where `x` has not `elements` elements of the type and on the device of `like`."""
    if x.device != like.device:
        raise errors.InvalidArgument(f"{name}: a tensor on {x.device} given, allowed is one on {like.device}")
    if x.dtype != like.dtype:
        raise errors.InvalidType(f"{name}: {_type_name(x)} given, allowed is {_type_name(like)}")
    if x.numel() != elements:
        raise errors.InvalidArgument(f"{name}: {x.numel()} elements given, allowed are {elements}")


@contextlib.contextmanager
def _contiguous(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Contiguous memory that becomes the contents of `x`."""
    own = x.detach()
    y = own if own.is_contiguous() else own.contiguous()
    yield y
    if y is not own:
        own.copy_(y)


def _in_order(call: Any) -> Any:
    """`call`, before which messages begin that were asked for earlier. Their data may be its input."""

    @functools.wraps(call)
    def begun(self: TandemGroup, *arguments: Any, **options: Any) -> Any:
        self._start_messages()
        return call(self, *arguments, **options)

    return begun


class TandemGroup(dist.ProcessGroup):
    """A process group on a world of CPU PEs, and on one of GPUs once a call has a tensor there."""

    def __init__(self, store: Any, rank: int, size: int, timeout_s: float) -> None:
        super().__init__(rank, size)
        self._name = ""
        self._timeout_s = timeout_s
        self._device: torch.device | None = None
        self._pending: dict[str, Messages] = {}
        self._lock = threading.RLock()
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

    def _get_backend(self, device: Any) -> TandemGroup:
        """The backend of a device, which torch asks for before several messages at once."""
        return self

    # Reductions.

    @_in_order
    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces each tensor in place."""
        for x in tensors:
            with _contiguous(x) as y:
                self._call("all_reduce", y, y, _plain(y).numel(), _operation(opts, x.dtype))
        return self._done(tensors)

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """All-reduces several tensors in place."""
        return self.allreduce(tensors, opts)

    @_in_order
    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """Reduces each tensor in place on the root."""
        for x in tensors:
            given = x.detach().contiguous()
            is_root = self.rank() == opts.rootRank
            out = torch.empty_like(given) if is_root else given
            self._call("reduce", given, out, _plain(given).numel(), _operation(opts, x.dtype), opts.rootRank)
            if is_root:
                x.detach().copy_(out)
        return self._done(tensors)

    @_in_order
    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        _require_alike("input", given, output, self.size() * output.numel())
        x = given.detach().contiguous()
        with _contiguous(output) as y:
            self._call("reduce_scatter", x, y, _plain(y).numel(), _operation(opts, x.dtype))
        return self._done([output])

    @_in_order
    def reduce_scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any = None) -> Any:
        """Reduces a list of tensors; this process gets the one of its rank."""
        for output, parts in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, torch.stack([one.detach() for one in parts]), opts)
        return self._done(outputs)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Reduces and scatters several tensors."""
        for output, given in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, given, opts)
        return self._done(outputs)

    # Copies.

    @_in_order
    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """Copies the root's tensors to all processes."""
        for x in tensors:
            with _contiguous(x) as y:
                self._call("broadcast", y, y, _plain(y).numel(), opts.rootRank)
        return self._done(tensors)

    @_in_order
    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        _require_alike("output", output, given, self.size() * given.numel())
        x = given.detach().contiguous()
        with _contiguous(output) as y:
            self._call("all_gather", x, y, _plain(x).numel())
        return self._done([output])

    @_in_order
    def allgather(self, outputs: Any, inputs: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """Gathers a tensor of each process into a list."""
        for parts, given in zip(outputs, inputs, strict=True):
            gathered = given.new_empty((self.size(), *given.shape))
            self._allgather_base(gathered, given, opts)
            for part, got in zip(parts, gathered, strict=True):
                part.detach().copy_(got)
        return self._done([one for parts in outputs for one in parts])

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Gathers several tensors."""
        for output, given in zip(outputs, inputs, strict=True):
            self._allgather_base(output, given, opts)
        return self._done(outputs)

    @_in_order
    def gather(self, outputs: Any, inputs: Sequence[torch.Tensor], opts: Any) -> Any:
        """Gathers a tensor of each process into the root's list."""
        given = inputs[0].detach().contiguous()
        is_root = self.rank() == opts.rootRank
        out = given.new_empty((self.size(), *given.shape)) if is_root else given
        self._call("gather", given, out, _plain(given).numel(), opts.rootRank)
        if is_root:
            for part, got in zip(outputs[0], out, strict=True):
                part.detach().copy_(got)
        return self._done([one for parts in outputs for one in parts] if is_root else inputs)

    @_in_order
    def scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any) -> Any:
        """Sends the root's list of tensors, one to each process."""
        with _contiguous(outputs[0]) as y:
            x = y
            if self.rank() == opts.rootRank:
                x = torch.stack([one.detach() for one in inputs[0]])
                _require_alike("scatter_list", x, y, self.size() * y.numel())
            self._call("scatter", x, y, _plain(y).numel(), opts.rootRank)
        return self._done(outputs)

    @_in_order
    def alltoall_base(
        self, output: torch.Tensor, given: torch.Tensor, out_splits: Any, in_splits: Any, opts: Any = None
    ) -> Any:
        """Exchanges parts of the first axis, of equal or of given sizes."""
        pes = self.size()
        x = given.detach().contiguous()
        outgoing = x.split(list(in_splits)) if in_splits else x.chunk(pes) if x.numel() > 0 else [x] * pes
        with _contiguous(output) as out:
            incoming = out.split(list(out_splits)) if out_splits else out.chunk(pes) if out.numel() > 0 else [out] * pes
            self._exchange(incoming, outgoing)
        return self._done([output])

    @_in_order
    def alltoall(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """Exchanges lists of tensors, one for each process."""
        made = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in outputs]
        self._exchange(made, [one.detach().contiguous() for one in inputs])
        for output, got in zip(outputs, made, strict=True):
            output.detach().copy_(got)
        return self._done(outputs)

    def _exchange(self, incoming: Sequence[torch.Tensor], outgoing: Sequence[torch.Tensor]) -> None:
        me, device = self.rank(), outgoing[0].device
        for one in (*incoming, *outgoing):
            if one.device != device:
                raise errors.InvalidArgument(f"output: a tensor on {one.device} given, allowed is one on {device}")
        if len(incoming) != self.size() or len(outgoing) != self.size():
            raise errors.InvalidArgument(
                f"input: {len(outgoing)} and output: {len(incoming)} parts given, allowed is one for each of"
                f" {self.size()} processes"
            )
        incoming[me].copy_(outgoing[me])
        others = [pe for pe in range(self.size()) if pe != me]
        world = self._world_of(outgoing[0])
        enqueue_messages(
            world,
            [_message(outgoing[pe], pe) for pe in others if outgoing[pe].numel() > 0],
            [_message(incoming[pe], pe) for pe in others if incoming[pe].numel() > 0],
            _groups.stream_of(outgoing[0]),
        )

    # Messages.

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        """Sends tensors to a process. Tags are ignored: messages match in order."""
        if not all(x.is_contiguous() for x in tensors):
            self._start_messages()  # whose data may be copied here
        return self._add([x.detach().contiguous() for x in tensors], tensors, peer, True)

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        """Receives tensors from a process."""
        made = [x.detach() if x.is_contiguous() else torch.empty_like(x.detach()).contiguous() for x in tensors]
        return self._add(made, tensors, peer, False)

    def _add(self, made: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], peer: int, is_send: bool) -> Any:
        for y, x in zip(made, tensors, strict=True):
            is_copy = not is_send and y.data_ptr() != x.data_ptr()
            messages = self._messages_for(y)
            after = (lambda x=x, y=y: x.detach().copy_(y)) if is_copy else None
            while not messages.add(y, _message(y, peer), is_send, after):
                messages = self._messages_for(y)
        return TandemWork(messages.world, tensors, made[0].device, messages)

    def _messages_for(self, x: torch.Tensor) -> Messages:
        with self._lock:
            found = self._pending.get(x.device.type)
            if found is None or found.is_started:
                found = self._pending[x.device.type] = Messages(self._world_of(x), x.device)
            return found

    def _start_messages(self) -> None:
        """Starts messages that wait, which keeps the order of calls."""
        if not self._pending:
            return
        with self._lock:
            found = list(self._pending.values())
            self._pending.clear()
        for one in found:
            if not one.is_started:
                one.start()

    @_in_order
    def barrier(self, opts: Any = None) -> Any:
        """Blocks until all processes have called it, and until this process's current stream is empty."""
        gpus = self._gpus()
        if gpus is not None:
            gpus.synchronize(torch.cuda.current_stream(self._device))
        self.world.barrier()
        return TandemWork(self.world, [], torch.device("cpu"))

    # Newer versions of PyTorch call them by these names.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def abort(self) -> None:
        """Ends the worlds on all processes."""
        for world in (self._gpus(), self.world):
            if world is not None:
                world.abort("abort of the process group")

    def shutdown(self) -> None:
        """Leaves the worlds."""
        try:
            self._start_messages()
        finally:
            try:
                if self._device is not None:
                    _groups.close(self._name, "cuda")
            finally:
                self.world.close()

    # How calls reach a world.

    def _gpus(self) -> World | None:
        """The world of GPUs, if there is one."""
        found = None if self._device is None else _groups.existing(self._name, "cuda")
        return None if found is None else found.world

    def _world_of(self, x: torch.Tensor) -> World:
        """The world for a tensor. The group shares that of GPUs with the operators of tandem.torch."""
        if not x.is_cuda:
            if x.device.type != "cpu":
                raise errors.InvalidType(f"x: a tensor on {x.device} given, allowed are cpu and cuda")
            return self.world
        if self._device is not None and x.device != self._device:
            raise errors.InvalidArgument(f"x: a tensor on {x.device} given, allowed is {self._device} as before")
        found = self._gpus()
        if found is None:
            with torch.cuda.device(x.device):
                found = _groups.world_for(self._name, "cuda", join_timeout_s=self._timeout_s).world
            self._device = x.device
        return found

    def _call(self, name: str, x: torch.Tensor, out: torch.Tensor, count: int, *last: int) -> None:
        world = self._world_of(x)
        x, out = _plain(x), _plain(out)
        code = _c.TYPES[_type_name(x)]
        world._enqueue(name, x.data_ptr(), out.data_ptr(), count, code, *last, _groups.stream_of(x))

    def _done(self, tensors: Sequence[torch.Tensor]) -> TandemWork:
        """The work of calls that were enqueued for these tensors."""
        device = tensors[0].device if len(tensors) > 0 else torch.device("cpu")
        return TandemWork(self.world if device.type == "cpu" else self._world_of(tensors[0]), tensors, device)


def _create(options: Any, _: Any) -> TandemGroup:
    timeout = options.timeout
    return TandemGroup(
        options.store, options.group_rank, options.group_size, getattr(timeout, "total_seconds", lambda: 600.0)()
    )


def register_backend() -> None:
    """Makes "tandem" a backend of torch.distributed for tensors of CPUs and GPUs. Importing tandem.torch calls it."""
    if "tandem" not in dist.Backend.backend_list:
        dist.Backend.register_backend("tandem", _create, extended_api=True, devices=["cpu", "cuda"])


register_backend()
