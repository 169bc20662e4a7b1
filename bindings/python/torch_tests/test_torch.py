"""tandem.torch with processes on CPUs, beside gloo and float64 references."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tandem
from conftest import finish, run, start

pytest.importorskip("torch")


@pytest.mark.parametrize("processes", [2, 3])
def test_values_and_gradients(processes, tmp_path):
    programs = ("values", "products", "norm", "norm_gather", "layers", "experts", "scaled", "deep_ep", "vllm")
    for text in run("program_several.py", processes, tmp_path, *(f"program_{name}.py" for name in programs)):
        assert text.splitlines() == ["all equal"] * len(programs)


def test_the_example_of_a_layer():
    script = Path(__file__).resolve().parents[3] / "examples/python/torch_linear.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 ranks: the product is right" in done.stdout


def test_async_tp_of_pytorch_ends_in_our_operators(tmp_path):
    for text in run("program_async_tp.py", 2, tmp_path):
        assert text.endswith("all equal")


def test_compiler_and_opcheck(tmp_path):
    for text in run("program_compile.py", 2, tmp_path):
        assert text.endswith("all compiled")


def test_plans_of_a_layer_share_memory(tmp_path):
    for text in run("program_plan_memory.py", 2, tmp_path):
        assert text.endswith("all equal")


@pytest.mark.parametrize("processes", [2, 3])
def test_training_ends_at_the_same_loss(processes, tmp_path):
    for text in run("program_training.py", processes, tmp_path):
        assert text.endswith("same losses")


def test_models_of_transformers_generate_the_same_tokens(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    for text in run("program_transformers.py", 2, tmp_path, str(tmp_path / "model")):
        assert text.endswith("same tokens")


@pytest.mark.parametrize("processes", [2, 3])
def test_backend_beside_gloo(processes, tmp_path):
    for text in run("program_backend.py", processes, tmp_path):
        assert text.endswith("all equal")


def test_pytorch_calls_the_nccl_that_was_loaded_first():
    library = Path(os.environ["TANDEM_BUILD"]) / "lib" / "tandem" / "nccl" / "libnccl.so.2"
    if not library.exists():
        pytest.skip("the library with NCCL's interface is not built")
    code = """
import sys, tandem
for wrong in ("/nowhere", sys.argv[2], 3, ""):
    try:
        tandem.preload_nccl(wrong)
    except tandem.Error as error:
        assert "path" in str(error), error
    else:
        raise AssertionError(wrong)
tandem.preload_nccl(sys.argv[1])
import torch
try:
    tandem.preload_nccl(sys.argv[1])
except tandem.InvalidArgument as error:
    assert "import torch" in str(error)
has_nccl = hasattr(torch._C, "_nccl_unique_id")
print(torch.cuda.nccl.unique_id()[:6] if has_nccl else "no NCCL")
"""
    other = Path(tandem.__file__).parent / "lib" / "libtandem_sim.so"
    done = subprocess.run([sys.executable, "-c", code, library, other], capture_output=True, text=True, check=False)
    assert done.stdout.strip() in ("b'tandem'", "no NCCL"), done.stderr


def test_wrong_calls(tmp_path):
    for text in run("program_wrong_calls.py", 2, tmp_path):
        assert int(text.split()[0]) >= 200
        assert text.endswith("wrong calls")


@pytest.mark.parametrize("backend", ["gloo", "cpu:tandem"])
def test_killed_process_is_named_by_all_others(backend, tmp_path):
    done = finish(start("program_killed.py", 3, tmp_path, backend))
    assert done[1][0] == -9
    for code, out, err in (done[0], done[2]):
        assert code == 0, err
        assert "PE 1 is gone" in out


def test_exit_with_open_groups_never_hangs(tmp_path):
    rounds = 34  # three processes end in each, so more than 100 times
    for text in run("program_exits.py", 3, tmp_path, str(rounds)):
        assert text == f"{rounds} ends"


@pytest.mark.parametrize("size", ["tiny", "tiny-experts"])
def test_llama_gives_the_same_tokens(size, tmp_path):
    program = "../../../examples/llama/llama.py"
    file = tmp_path / "rows.json"
    common = ["--size", size, "--rendezvous", f"file://{tmp_path / 'rendezvous'}", "--out", str(file)]
    taken = []
    for processes, comm, ways in (
        (2, ["gloo,tandem", "--fuse"], ["gloo", "tandem", "tandem --fuse"]),
        (3, ["gloo,tandem", "--fuse"], ["gloo", "tandem", "tandem --fuse"]),
        (1, ["tandem"], ["tandem"]),
    ):
        # A score that is not that of a prefill of all words, or not that of the first way, ends with exit code 1.
        text = run(program, processes, tmp_path, "--comm", *comm, "--batch", "3,1", "--prefill", "9,258", *common)[0]
        rows = json.loads(file.read_text())["rows"]
        steps = [("decode", 3), ("decode", 1), ("prefill", 9), ("prefill", 258)]  # the last one divides its rows
        assert [(row["step"], row["rows"]) for row in rows] == steps
        for row in rows:
            assert row["same_tokens"] == dict.fromkeys(ways, row["tokens"])
            assert all(share < 1 for share in row["communication"].values())
        assert all(f"{way}: " in text for way in ways)
        taken.append([row["taken"] for row in rows])
    assert taken[0] == taken[1] == taken[2] and taken[0][0] == taken[0][1]
    assert len(set(taken[0][0])) > 16
