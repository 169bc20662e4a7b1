"""Worlds of CPU PEs, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tandem
from conftest import JOIN, finish, run_pes, run_python, start_pes

pytest.importorskip("numpy")

NUMPY = "import numpy as np\nw = join()\nn, me = w.pes, w.pe\n"


@pytest.mark.parametrize("pes", [1, 2, 3])
def test_collectives_of_arrays(pes):
    run_pes(
        NUMPY
        + """
for dtype in ("float32", "float16", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64"):
    x = (np.arange(2 * n * 3).reshape(2 * n, 3) % 5 + me).astype(dtype)
    every = [(np.arange(2 * n * 3).reshape(2 * n, 3) % 5 + pe).astype(dtype) for pe in range(n)]
    assert (w.all_reduce(x) == sum(every)).all() and w.all_reduce(x).dtype == dtype
    assert (w.all_reduce(x, "max") == every[-1]).all()
    assert (w.reduce_scatter(x) == sum(every)[2 * me : 2 * me + 2]).all()
    assert (w.all_gather(x) == np.concatenate(every)).all()
    assert (w.all_to_all(x) == np.concatenate([one[2 * me : 2 * me + 2] for one in every])).all()
    for root in range(n):
        assert (w.broadcast(x, root=root) == every[root]).all()
        total, joined = w.reduce(x, root=root), w.gather(x, root=root)
        assert (total is None) == (joined is None) == (me != root)
        if me == root:
            assert (total == sum(every)).all() and (joined == np.concatenate(every)).all()
        part = np.empty((2, 3), dtype)
        assert w.scatter(x if me == root else None, root=root, out=part) is part
        assert (part == every[root][2 * me : 2 * me + 2]).all()
    y = x.copy()
    assert w.all_reduce(y, out=y) is y and (y == sum(every)).all()
assert w.all_gather(np.float32(me)).tolist() == list(range(n))
assert w.all_reduce(np.empty((0, 3))).shape == (0, 3)
w.close()
w.close()
""",
        pes,
    )


def test_messages_and_buffers_without_numpy():
    run_pes(
        """
import array
w = join()
n, me = w.pes, w.pe
got = bytearray(3)
w.send_recv([(bytes([me] * 3), (me + 1) % n)], [(got, (me - 1) % n)])
assert got == bytes([(me - 1) % n] * 3)
if me == 0:
    w.send(array.array("d", [1, 2]), 1)
if me == 1:
    numbers = array.array("d", [0, 0])
    assert w.recv(numbers, 0) is numbers and list(numbers) == [1, 2]
total = array.array("i", [0])
w.all_reduce(array.array("i", [me + 1]), out=total)
assert total[0] == n * (n + 1) // 2
assert "numpy" not in sys.modules
w.close()
""",
        3,
    )


def test_symmetric_memory():
    run_pes(
        NUMPY
        + """
data, words = w.zeros((4, 2)), w.signals(2)
after = (me + 1) % n
data.put(np.full(2, me + 1, "f4"), after, offset=6)
words.signal(7, after, index=1)
words.wait(7, index=1)
before = (me - 1) % n
assert data.local.numpy()[3].tolist() == [before + 1.0] * 2
w.barrier()
for pe in range(n):
    assert data.get_buffer(pe).numpy()[3, 0] == (pe - 1) % n + 1
    assert words.get_buffer(pe).numpy().tolist() == [0, 7]
w.barrier()
data.get_buffer(after).numpy()[0, 0] = 10 + me
w.barrier()
assert data.local.numpy()[0, 0] == 10 + before
if hasattr(np, "from_dlpack") and np.__version__ >= "2":
    view = np.from_dlpack(data.local)
    view[1, 1] = 5
    assert data.local.numpy()[1, 1] == 5
    del view
total = w.all_reduce(data.local, out=data.local)
assert total.numpy()[0, 0] == 10 * n + sum(range(n))
del total
data.free()
data.free()
view = words.local.numpy()
for close in (words.free, w.close):
    try:
        close()
    except tandem.InvalidArgument as error:
        assert "1 views of its memory are in use" in str(error)
    else:
        raise AssertionError("memory that an array views was freed")
del view
w.close()
try:
    words.local
except tandem.InvalidArgument as error:
    assert "world that is open" in str(error)
else:
    raise AssertionError("memory of a closed world has a view")
""",
        2,
    )


@pytest.mark.parametrize("pes", [1, 2, 3])
def test_registered_memory(pes):
    run_pes(
        NUMPY
        + """
import mmap, os, tandem
size = 4 * mmap.PAGESIZE
file = os.memfd_create("of the program", os.MFD_ALLOW_SEALING)
os.ftruncate(file, size)
memory = mmap.mmap(file, size)
x = np.frombuffer(memory, "float32").reshape(4, -1)
data = w.register(x)
assert data.shape == x.shape and data.dtype == "float32"
x[:] = me + 1
assert w.all_reduce(x, out=x) is x and (x == n * (n + 1) / 2).all()
w.barrier()
data.put(np.full(5, me, "f4"), (me + 1) % n, offset=2)
w.barrier()
assert (x[0, 2:7] == (me - 1) % n).all() and (x[0, 7:] == n * (n + 1) / 2).all()
view = data.get_buffer((me + 1) % n).numpy()
assert (view[0, 2:7] == me).all()
w.barrier()
try:
    data.free()
except tandem.InvalidArgument as error:
    assert "1 views of its memory are in use" in str(error)
else:
    raise AssertionError
del view
data.free()
data.free()
try:
    data.local
except tandem.InvalidArgument as error:
    assert "memory: freed memory given" in str(error)
else:
    raise AssertionError
assert w.all_reduce(x, out=x) is x  # as other memory
for wrong, kind in ((np.ones(4, "f4"), tandem.Unsupported), (np.ones(4)[::2], tandem.InvalidArgument), (3, TypeError)):
    try:
        w.register(wrong)
    except kind as error:
        assert str(error)
    else:
        raise AssertionError(wrong)
w.close()
""",
        pes,
    )


def test_split():
    run_pes(
        NUMPY
        + """
part = w.split(me % 2, key=-me)
mine = list(range(me % 2, n, 2))[::-1]
assert part.pes == len(mine) and mine[part.pe] == me
assert part.all_reduce(np.ones(1)) == len(mine)
assert (w.split(-1 if me == 0 else 0) is None) == (me == 0)
part.close()
w.close()
""",
        3,
    )


def test_other_threads_end_a_blocked_call():
    texts = run_pes(
        NUMPY
        + """
import threading
if me == 0:
    threading.Timer(0.2, w.abort, ["no more"]).start()
    try:
        w.recv(np.empty(4), 1)
    except tandem.Failure as error:
        print(error)
else:
    while w.error() is None:
        pass
    print(w.error())
w.close()
""",
        2,
    )
    assert all("PE 0: aborted: no more" in text for text in texts)


def test_killed_pe_is_named_by_all_others():
    texts = finish(
        start_pes(
            NUMPY
            + """
import signal
w.barrier()
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        w.all_reduce(np.ones(1000))
except tandem.Failure as error:
    print(error)
""",
            3,
        )
    )
    assert texts[1][0] == -9
    for code, out, err in (texts[0], texts[2]):
        assert code == 0, err
        assert "PE 1 is gone" in out


ENDS = {
    "closed": "w.close()",
    "left open": "",
    "an exception on one PE": "assert me != 1, 'PE 1 has had enough'\nw.all_reduce(b'1', out=bytearray(1))",
    "sys.exit within a block": "with w:\n    sys.exit(3 if me == 1 else 0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_exit_never_hangs(end):
    program = "w = join()\nme = w.pe\nw.all_reduce(b'1', out=bytearray(1))\n" + ENDS[end]
    for _ in range(9):  # with all ends, more than 100 processes
        for _, out, err in finish(start_pes(program, 3)):
            assert out == ""
            assert "Fatal" not in err
            if end in ("closed", "left open"):
                assert err == ""


def test_peers_that_stay_end_when_one_has_waited_for_them():
    program = """
from tandem import _exit
_exit.GRACE_S = 0.5
w = join()
if w.pe == 0:
    try:
        w.recv(bytearray(1), 1)
    except tandem.Failure as error:
        print(error)
"""
    done = finish(start_pes(program, 2))
    assert [code for code, _, _ in done] == [0, 0]
    assert "not all PEs left the world within 0.5 s" in done[0][1]


@pytest.mark.parametrize(("end", "code"), [("sys.exit(0)", 0), ("raise RuntimeError('in the child')", 1)])
def test_forked_child_leaves_no_world_of_its_parent(end: str, code: int):
    run_pes(
        f"""
w = join()
child = os.fork()
if child == 0:
    {end}
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == {code}
total = bytearray(1)
w.all_reduce(bytes([1]), out=total)
assert total[0] == w.pes
w.close()
""",
        2,
    )


def test_exception_on_one_pe_ends_the_others():
    done = finish(start_pes(NUMPY + "assert me != 1, 'enough'\nw.recv(np.ones(4), 1)", 3))
    assert [code for code, _, _ in done] == [1, 1, 1]
    for _, _, err in (done[0], done[2]):
        assert "PE 1" in err.splitlines()[-1]
        assert "AssertionError: enough" in err.splitlines()[-1]


def test_launcher_gives_the_place(tmp_path: Path):
    tool = Path(tandem.__file__).parent / "bin" / "tandem"
    code = "import tandem; w = tandem.World.from_environment(device='host'); print(w); w.close()"
    done = subprocess.run(
        [tool, "launch", "-n", "2", sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "PE 0 of 2 on host" in done.stdout
    assert "PE 1 of 2 on host" in done.stdout


def test_world_of_one_process():
    code = (
        JOIN + "w = tandem.World.from_id(tandem.unique_id(), 0, 1, device='host'); print(w.all_gather([]) if 0 else w)"
    )
    assert run_python(code) == "<tandem.World: PE 0 of 1 on host>"
