"""The structures of the C API in Python are those of include/tandem.h."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from tandem import _structs

HEADER = Path(__file__).resolve().parents[3] / "include" / "tandem.h"
POINTERS = (ctypes.c_void_p, ctypes.c_char_p)


def declared():
    """The fields of each structure of the header: pairs of name and kind."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", HEADER.read_text(), flags=re.DOTALL)
    for body, name in re.findall(r"typedef struct \{([^}]*)\}\s*(\w+);", text):
        fields = [one.strip() for one in body.split(";") if one.strip()]
        yield name, [(re.search(r"(\w+)$", one)[1], kind_of(one)) for one in fields]


def kind_of(declaration):
    if "*" in declaration:
        return "pointer"
    first = declaration.split()[0]
    return first if first in ("size_t", "double") else "int"  # enumerations are ints


def kind_of_type(one):
    if one in POINTERS or issubclass(one, ctypes._Pointer):
        return "pointer"
    return {ctypes.c_size_t: "size_t", ctypes.c_double: "double", ctypes.c_int: "int"}[one]


IN_PYTHON = {
    one.__doc__.rstrip("."): [(name.rstrip("_"), kind_of_type(kind)) for name, kind in one._fields_]
    for one in vars(_structs).values()
    if isinstance(one, type) and issubclass(one, ctypes.Structure)
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_structures_begin_with_the_fields_of_the_header(name):
    fields = dict(declared())[name]
    assert IN_PYTHON[name] == fields
