"""Tests of tandem.torch: each runs a program in several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def start(program: str, processes: int, folder: Path, *arguments: str) -> list[subprocess.Popen[str]]:
    """Starts a program of this folder in several processes that share a rendezvous file."""
    file = folder / "rendezvous"
    file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "RENDEZVOUS": f"file://{file}",
        "WORLD_SIZE": str(processes),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    return [
        subprocess.Popen(
            [sys.executable, str(HERE / program), *arguments],
            env={**environment, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Waits for processes. Returns exit code, output and errors of each."""
    try:
        texts = [one.communicate(timeout=1200) for one in processes]
    finally:
        for one in processes:
            one.kill()
    return [(one.returncode, out.strip(), err.strip()) for one, (out, err) in zip(processes, texts)]


def run(program: str, processes: int, folder: Path, *arguments: str) -> list[str]:
    """Runs a program, whose processes must all end with code 0. Returns their outputs.

    Lines that PyTorch 2.10 prints about its connections are left out.
    """
    done = finish(start(program, processes, folder, *arguments))
    for code, out, err in done:
        assert code == 0, f"{out}\n{err}"
    return ["".join(line for line in out.splitlines(True) if not line.startswith("[Gloo]")) for _, out, _ in done]
