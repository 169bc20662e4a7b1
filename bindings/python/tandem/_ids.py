"""Ids by which processes become a world."""

from __future__ import annotations

import ctypes

from . import _c
from ._library import text_option


def unique_id(address: str | None = None) -> bytes:
    """Opens a rendezvous in this process and returns its id.

    The id holds a secret: pass it to the other processes of the world by a private means. `address` is this host's
    address as the other processes reach it; the default is 127.0.0.1.
    """
    made = ctypes.create_string_buffer(_c.UNIQUE_ID_BYTES)
    given = None if address is None else text_option("address", address).encode()
    _c.call("unique_id_create", made, given)
    return made.raw
