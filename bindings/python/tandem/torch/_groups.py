"""Worlds of torch process groups: one for each group and kind of device, made by its first use."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import errors
from .._library import shown
from .._plan import Plan
from .._torch_ids import exchange_id
from .._torch_ids import find as find
from .._torch_ids import resolve as resolve
from ..world import World

# A world that a group's operators make begins small, because its heap grows. Hosts have less memory than GPUs.
HOST_OPTIONS = {"heap_bytes": 16 << 20, "staging_bytes": 16 << 20}
_KINDS = {"cpu": "host", "cuda": "gpu"}


@dataclass
class GroupWorld:
    """The world of a group, and what its operators keep: plans, and tensors that never change."""

    group: Any
    world: World
    plans: dict[Any, Any] = field(default_factory=dict)
    constants: dict[Any, torch.Tensor] = field(default_factory=dict)
    native: int | None = None
    """Plans that operators run without Python (_native.py)."""


# The same stream without an object for it, where torch has this call.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_lock = threading.Lock()
_worlds: dict[tuple[str, str], GroupWorld] = {}


def size_of(name: str) -> int:
    """The number of processes of a group. It needs no world, so that compilers may ask."""
    return int(find(name).size())


def rank_in(name: str) -> int:
    """This process's number in a group."""
    return int(find(name).rank())


def existing(name: str, device_type: str) -> GroupWorld | None:
    """The world of the group `name` for tensors of a device, if it was made and is open."""
    found = _worlds.get((name, device_type))
    return found if found is not None and found.group is find(name) and found.world._handle is not None else None


def world_for(name: str, device_type: str, **options: Any) -> GroupWorld:
    """The world of the group `name` for tensors of a device. The group's processes make it together."""
    if device_type not in _KINDS:
        raise errors.InvalidType(f"x: a tensor on {device_type} given, allowed are cpu and cuda")
    pg = find(name)
    if (found := existing(name, device_type)) is not None:
        return found
    with _lock:
        found = _worlds.get((name, device_type))
        if found is None or found.group is not pg or found.world._handle is None:
            if device_type == "cpu":
                options = {**HOST_OPTIONS, **options}
            made = World.from_torch(name, device=_KINDS[device_type], **options)
            found = _worlds[name, device_type] = GroupWorld(pg, made)
        return found


def world_of(group: Any = None, device: str = "cpu", **options: Any) -> World:
    """The world that operators on this group and kind of device use. The group's processes call it together.

    `options` are those of `World.from_environment`. They count only where this call makes the world.
    """
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        kind = None
    if kind not in _KINDS:
        known = isinstance(device, (str, torch.device))
        raise (errors.InvalidArgument if known else errors.InvalidType)(
            f"device: {shown(device)} given, allowed are cpu and cuda"
        )
    return world_for(resolve(group), kind, **options).world


def close(name: str, device_type: str) -> None:
    """Closes the world of a group for tensors of a device, if there is one. Its processes call it together."""
    with _lock:
        found = _worlds.pop((name, device_type), None)
    if found is not None:
        found.world.close()


def shutdown() -> None:
    """Closes the worlds of all groups. All processes call it, before they destroy their process groups."""
    with _lock:
        found = list(_worlds.values())
        _worlds.clear()
    for one in found:
        one.world.close()


def stream_of(x: torch.Tensor) -> int | None:
    """torch's current stream where `x` is."""
    if not x.is_cuda:
        return None
    if _raw_stream is None:
        return int(torch.cuda.current_stream(x.device).cuda_stream)
    return int(_raw_stream(x.get_device()))


def note_run(plan: Plan, x: torch.Tensor) -> None:
    """Notes whether a run with `x` is captured."""
    if x.is_cuda and not plan.is_captured:
        with torch.cuda.device(x.device):
            plan.is_captured = torch.cuda.is_current_stream_capturing()


def retire(plan: Plan, x: torch.Tensor) -> None:
    """Closes a plan that another one replaces, when its runs are over. One that a graph holds stays."""
    if plan.is_captured:
        return
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
    plan.close()


def check_tensor(name: str, x: Any, allowed: tuple[torch.dtype, ...]) -> None:
    """Raises InvalidType for anything but a tensor of one of the types."""
    if not isinstance(x, torch.Tensor):
        raise errors.InvalidType(f"{name}: {shown(x)} given, allowed is a tensor")
    if x.dtype not in allowed:
        names = ", ".join(str(one).removeprefix("torch.") for one in allowed)
        raise errors.InvalidType(f"{name}: {str(x.dtype).removeprefix('torch.')} given, allowed are {names}")


def check_like(name: str, x: torch.Tensor, first: torch.Tensor, called: str = "x") -> None:
    """Raises for a tensor of another type, or on another device, than the argument `called`."""
    if x.dtype != first.dtype:
        given, allowed = (str(one.dtype).removeprefix("torch.") for one in (x, first))
        raise errors.InvalidType(f"{name}: {given} given, allowed is {allowed}, as {called}")
    check_like_device(name, x, first, called)


def check_like_device(name: str, x: torch.Tensor, first: torch.Tensor, called: str = "x") -> None:
    """Raises for a tensor on another device than the argument `called`."""
    if x.device != first.device:
        raise errors.InvalidArgument(f"{name}: a tensor on {x.device} given, allowed is {first.device}, as {called}")
