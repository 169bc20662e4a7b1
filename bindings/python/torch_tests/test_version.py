"""PyTorch's modules and libraries of two versions in one process are refused."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

SAID = """
try:
    import tandem.torch
except tandem.Failure as error:
    print(error)
else:
    print("imported")
"""


def said(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code + SAID, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_modules_of_another_version_are_refused():
    from tandem.torch import _version

    if _version._version_of(_version._loaded()[0]) is None:
        pytest.skip("this PyTorch does not give the version of its library")
    text = said("import tandem, torch; torch.__version__ = '2.4.1+cpu'")
    own = re.match(r"[\d.]+\d", torch.__version__)[0]
    assert text.startswith(f"torch: modules of version 2.4.1 given, allowed is {own}, as /"), text
    assert said("import tandem, torch; torch.__version__ = torch.__version__ + '.dev'") == "imported"


def test_two_libraries_are_refused(tmp_path):
    other = tmp_path / "libtorch_cpu.so"
    other.write_bytes(bytes(4096))
    code = "import mmap, sys, tandem; file = open(sys.argv[1], 'r+b'); mapped = mmap.mmap(file.fileno(), 0)"
    text = said(code, str(other))
    assert str(other) in text and "given in one process, allowed is one of them" in text, text
