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
_leaving, _left = threading.Event(), threading.Event()


def watch(world: World) -> None:
    """Leaves `world` at the end of the interpreter if it is open then."""
    global _process
    if _process != os.getpid():  # in a fork the worlds so far are its parent's
        _process = os.getpid()
        _open.clear()
        # It starts now, because Python 3.12 starts no thread at the end.
        threading.Thread(target=_end_after_grace, name="tandem exit", daemon=True).start()
    _open.add(world)


def forget(world: World) -> None:
    """Counts `world` as left."""
    _open.discard(world)


@atexit.register
def _leave_all() -> None:
    if _process != os.getpid():
        return
    error = getattr(sys, "last_value", None)
    if error is not None:
        _abort_all(f"its Python program ended with {type(error).__name__}: {error}")
    _leaving.set()
    for world in list(_open):
        _leave(world)
    _left.set()


def _end_after_grace() -> None:
    _leaving.wait()
    if not _left.wait(GRACE_S):
        _abort_all(f"its Python program ended, and not all PEs left the world within {GRACE_S:g} s")


def _abort_all(why: str) -> None:
    for world in list(_open):
        with contextlib.suppress(errors.Error):
            world.abort(why)


def _leave(world: World) -> None:
    with contextlib.suppress(errors.Error):
        for plan in world._plans:
            plan.destroy()
        _c.call("world_destroy", world._handle)
    forget(world)
    world._handle = None
