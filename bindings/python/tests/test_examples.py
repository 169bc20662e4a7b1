"""The scripts of examples/python run as their users run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_world_of_two_processes(examples):
    tool = Path(sys.executable).with_name("tandem")
    command = [tool, "launch", "-n", "2", sys.executable, examples / "world.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 PEs: the sum is 1, and PE 1 wrote into the memory of PE 0" in done.stdout


def test_llama_predicts_its_step(examples):
    llama = examples.parent / "llama" / "llama.py"
    done = subprocess.run([sys.executable, llama, "--simulate", "h200x8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ms a step of 2 layers" in done.stdout
    done = subprocess.run([sys.executable, llama, "--simulate", "x"], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("--simulate: x given, allowed is one of ")


def test_llama_names_wrong_options(examples):
    llama = examples.parent / "llama" / "llama.py"
    for options, text in (
        (["--comm", "tandem,mpi"], "--comm: tandem,mpi given, allowed are gloo, nccl, symm_mem, tandem, each once"),
        (["--comm", "tandem,tandem"], "--comm: tandem,tandem given, allowed are"),
        (["--size", "9b"], "--size: 9b given, allowed are tiny, tiny-experts, 8b, 70b, mixtral, qwen3-30b, each once"),
        (["--size", "mixtral", "--simulate", "h200x8"], "--size: mixtral given, allowed with --simulate are sizes without"),
        (["--batch", "1,0"], "--batch: 1,0 given, allowed are numbers of 1 or more"),
        (["--prefill", "2k"], "--prefill: 2k given, allowed are numbers of 1 or more"),
        (["--tokens", "0"], "--tokens: 0 given, allowed is 1 or more"),
        (["--comm", "gloo", "--fuse"], "--fuse: given without a run of --comm tandem"),
        (["--comm", "gloo,nccl"], "--device: cpu given, allowed with --comm nccl is cuda"),
        (["--comm", "symm_mem", "--device", "cpu"], "--device: cpu given, allowed with --comm symm_mem is cuda"),
    ):
        done = subprocess.run([sys.executable, llama, *options], capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2) and text in done.stderr, done.stderr
