"""Tests of the installed package. Those with data are skipped where numpy is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run_python(code: str) -> str:
    """Runs code in an interpreter of its own and returns its output; it must end with code 0."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples" / "python"
