"""From the arguments of calls to the options of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._library import numbers_option, shown, text_option, whole_option
from .errors import InvalidType

_WHOLE = {"nodes", "pes", "pes_per_node", "seed", "root", "blocks", "m", "splits", "shots", "communication_sms"}


def options_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, each in the type that the library takes. Raises InvalidType."""
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        if name in _WHOLE:
            options[name] = whole_option(name, value)
        elif name == "scales":
            options[name] = numbers_option(name, value)
        elif name == "tile":
            options[name] = _tile(value)
        else:
            options[name] = text_option("op" if name == "reduction" else name, value)
    return options


def _tile(value: object) -> str:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise InvalidType(f"tile: {shown(value)} given, allowed is a pair of whole numbers, such as (128, 256)")
    return "x".join(str(whole_option("tile", one)) for one in value)


def size_option(name: str, value: object) -> str:
    """65536 or "64K" as the library takes it."""
    return value if isinstance(value, str) else str(whole_option(name, value))


def default_machine(pes: int | None) -> str:
    """The machine of a call that names none."""
    return "h200x8" if pes is not None and pes > 4 else "h200x4"
