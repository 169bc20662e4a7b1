"""The scripts of examples/python run as their users run them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numpy")


@pytest.mark.parametrize(
    ("name", "said"),
    [("all_reduce", "bound by"), ("compare_algorithms", "the library chooses"), ("find_a_race", "missing:")],
)
def test_example(name, said, examples, tmp_path):
    files = [tmp_path / "x.html"] if name != "compare_algorithms" else []
    done = subprocess.run(
        [sys.executable, examples / f"{name}.py", *files], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    for file in files:
        assert "<html" in file.read_text()
