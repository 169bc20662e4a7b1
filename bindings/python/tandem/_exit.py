"""The end of the interpreter: it leaves worlds that are open, and never hangs there."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from . import _c, errors

if TYPE_CHECKING:
    from .world import World

GRACE_S = 10.0
"""How long the end of the interpreter waits for other PEs that still run."""

_open: set[World] = set()
_process = 0


def watch(world: World) -> None:
    """Leaves `world` at the end of the interpreter if it is open then."""
    global _process
    if not _open:
        _process = os.getpid()
    _open.add(world)


def forget(world: World) -> None:
    """Counts `world` as left."""
    _open.discard(world)


@atexit.register
def _leave_all() -> None:
    if _process != os.getpid():  # a fork, whose worlds are its parent's
        return
    for world in list(_open):
        handle, world._handle = world._handle, None
        if handle is not None:
            _leave(world, handle)


def _leave(world: World, handle: int) -> None:
    error = getattr(sys, "last_value", None)
    if error is not None:
        _abort(handle, f"its Python program ended with {type(error).__name__}: {error}")
    leaver = threading.Thread(target=_destroy, args=(world, handle), daemon=True)
    leaver.start()
    leaver.join(GRACE_S)
    if leaver.is_alive():
        _abort(handle, f"its Python program ended, and not all PEs left the world within {GRACE_S:g} s")
        leaver.join(GRACE_S)


def _abort(handle: int, why: str) -> None:
    with contextlib.suppress(errors.Error):
        _c.call("world_abort", handle, why.replace("\0", " ").encode(errors="replace"))


def _destroy(world: World, handle: int) -> None:
    with contextlib.suppress(errors.Error):
        for plan in world._plans:
            _c.call("plan_destroy", plan._handle)
        _c.call("world_destroy", handle)
