"""Tests of the installed package. Tests with data are skipped where numpy is not installed."""

from __future__ import annotations

import os
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


# How a program of `run_pes` begins.
JOIN = """
import os, sys
import tandem
def join(**options):
    options.setdefault("device", "host")
    return tandem.World.from_id(
        bytes.fromhex(os.environ["WORLD_ID"]), int(os.environ["PE"]), int(os.environ["PES"]), **options
    )
"""


def start_pes(code: str, pes: int) -> list[subprocess.Popen[str]]:
    """Starts a program, which joins a world by `join`, in a process for each PE."""
    import tandem

    environment = {**os.environ, "WORLD_ID": tandem.unique_id().hex(), "PES": str(pes)}
    return [
        subprocess.Popen(
            [sys.executable, "-c", JOIN + code],
            env={**environment, "PE": str(pe)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pe in range(pes)
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Waits for processes. Returns exit code, output and errors of each."""
    try:
        texts = [one.communicate(timeout=600) for one in processes]
    finally:
        for one in processes:
            one.kill()
    return [(one.returncode, out.strip(), err.strip()) for one, (out, err) in zip(processes, texts)]


def run_pes(code: str, pes: int) -> list[str]:
    """Runs a program on all PEs, which must all end with code 0. Returns their outputs."""
    done = finish(start_pes(code, pes))
    for code_of_exit, _, err in done:
        assert code_of_exit == 0, err
    return [out for _, out, _ in done]
