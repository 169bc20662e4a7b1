"""Ids of worlds for the processes of a torch process group, through its store. Importing it imports torch."""

from __future__ import annotations

import os
import socket
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from . import errors
from ._ids import unique_id
from ._library import shown


def resolve(group: Any) -> str:
    """The name of a process group, as operators take it."""
    if isinstance(group, str):
        return group
    if group is None:
        if not dist.is_initialized():
            raise errors.InvalidArgument(
                "group: None given, allowed without a default process group is a group or its name"
            )
        group = dist.group.WORLD
    if not isinstance(group, dist.ProcessGroup):
        raise errors.InvalidType(f"group: {shown(group)} given, allowed is a process group, its name, or None")
    return str(group.group_name)


def find(name: str) -> Any:
    """The process group called `name`."""
    try:
        return c10d._resolve_process_group(name)  # type: ignore[arg-type, attr-defined]
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        raise errors.InvalidArgument(
            f"group: {shown(name)} given, allowed is the name of a process group of this process"
        ) from error


def exchange_id(group: Any, store: Any = None) -> tuple[bytes, int, int]:
    """An id that the processes of a group share, through its store, with the rank and the size."""
    pg = find(resolve(group))
    return share_id(store or c10d._get_process_group_store(pg), pg.rank(), pg.size())


def share_id(store: Any, rank: int, size: int) -> tuple[bytes, int, int]:
    """The same with a store of the group alone."""
    # Every process counts the worlds of this store alike, so that each world has a key of its own.
    arrival = int(store.add(f"tandem/arrivals/{rank}", 1))
    key = f"tandem/world/{arrival}"
    if rank == 0:
        made = unique_id(own_address(store))
        store.set(key, made.hex())
        return made, rank, size
    return bytes.fromhex(bytes(store.get(key)).decode()), rank, size


def own_address(store: Any) -> str | None:
    """This host's address as the other hosts of a job reach it. None: the job is on one host, or has no address."""
    local, all_processes = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if local is not None and local == all_processes:
        return None
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    server = getattr(store, "host", None) or os.environ.get("MASTER_ADDR")
    if not server:
        return None
    try:  # A datagram socket has the address of the route to its peer, and sends nothing.
        family, kind, _, _, peer = socket.getaddrinfo(server, 1, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as route:
            route.connect(peer)
            return str(route.getsockname()[0])
    except OSError:
        return None
