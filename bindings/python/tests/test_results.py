"""Times, critical paths, timelines and tables: those of the tool, and the same with and without data."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import tandem
from conftest import ROOT
from tandem import simulate

TOOL = Path(tandem.__file__).parent / "bin" / "tandem"


def tool(*words):
    return json.loads(subprocess.run([TOOL, *words, "--json", "-"], capture_output=True, check=True).stdout)


def test_time_is_that_of_the_tool():
    for op, words, options in [
        ("all_reduce", ["--bytes", "64K", "--machine", "h200x8"], {"bytes": "64K", "machine": "h200x8"}),
        ("all_to_all", ["--bytes", "1M", "--pes", "3", "--seed", "5"], {"bytes": 1 << 20, "pes": 3, "seed": 5}),
        ("reduce", ["--bytes", "8K", "--root", "1", "--dtype", "bf16"], {"bytes": 8192, "root": 1, "dtype": "bf16"}),
        (
            "all_gather",
            ["--bytes", "1M", "--machine", "h100x8-rail", "--nodes", "2", "--algo", "ring", "--blocks", "4"],
            {"bytes": "1M", "machine": "h100x8-rail", "nodes": 2, "algorithm": "ring", "blocks": 4},
        ),
    ]:
        want, r = tool("run", op, *words, "--phantom"), getattr(simulate, op)(**options)
        for key in ("time_us", "trace_hash", "algorithm", "bytes", "dtype", "pes", "seed", "machine"):
            assert getattr(r, key) == want[key], (op, key)


def test_operator_is_that_of_the_tool():
    shape = {"m": 512, "n": 1024, "k": 768}
    for op in ("all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"):
        want = tool("run", op, "--shape", "512x1024x768", "--phantom", "--transport", "sm", "--splits", "2")
        r = getattr(simulate, op)(**shape, transport="sm", splits=2)
        for key in ("time_us", "trace_hash", "algorithm", "sequential_us", "ideal_us", "overlap_percent", "beyond_fit"):
            assert getattr(r, key) == want[key], (op, key)
    want = tool("run", "gemm_all_reduce", "--model", "llama3-8b:o", "--m", "64", "--phantom", "--shots", "1")
    assert simulate.gemm_all_reduce(64, model="llama3-8b:o", shots=1).time_us == want["time_us"]


def test_times_with_data_are_those_without():
    numpy = pytest.importorskip("numpy")
    for op in ("all_reduce", "all_gather", "broadcast"):
        real = getattr(simulate, op)([numpy.ones(3000, "f4")] * 4)
        phantom = getattr(simulate, op)(bytes=real.bytes, pes=4)
        assert real.time_us == phantom.time_us
    real = simulate.gemm_all_reduce(a=numpy.ones((64, 32), "f4"), b=numpy.ones((48, 32), "f4"), pes=4)
    phantom = simulate.gemm_all_reduce(64, 48, 32, dtype="f32", pes=4)
    assert (real.time_us, real.sequential_us) == (phantom.time_us, phantom.sequential_us)


def test_critical_path_adds_up():
    r = simulate.all_reduce(bytes="16M", pes=8)
    assert sum(share.us for share in r.critical_path) == pytest.approx(r.time_us, rel=1e-6)
    assert r.bound_by == r.critical_path[0].name
    assert [share.us for share in r.critical_path] == sorted((share.us for share in r.critical_path), reverse=True)
    assert "link" in r.bound_by
    assert r.bus_gbps == pytest.approx(r.bytes * 1e-3 / r.time_us * 2 * 7 / 8)


def test_timeline_files(tmp_path):
    timeline = simulate.all_reduce(bytes=4096, pes=2).timeline
    assert "<html" in timeline.save(tmp_path / "x.html").read_text()
    assert "<svg" in timeline.save(str(tmp_path / "x.svg")).read_text()
    assert json.loads(timeline.save(tmp_path / "x.json").read_text())["traceEvents"]
    for path in (tmp_path / "x.png", tmp_path / "no" / "x.html"):
        with pytest.raises(tandem.InvalidArgument):
            timeline.save(path)
    with pytest.raises(tandem.InvalidType):
        timeline.save(3)


def test_timeline_is_a_cell():
    cell = simulate.all_gather_gemm(256, 256, 256, pes=2).timeline._repr_html_()
    assert cell.startswith('<iframe srcdoc="&lt;!')
    assert "sequential" in cell
    assert cell.count('"') == 4  # the page's own quotes are escaped


def test_sweep():
    table = simulate.sweep(
        "all_reduce", bytes=["64K", "1M"], algorithm=["ring", "one_shot"], machine="h100x8-rail", nodes=2
    )
    assert [(row["bytes"], row["algorithm"]) for row in table if row["error"] is None] == [
        (65536, "ring"),
        (1 << 20, "ring"),
    ]
    assert [row["time_us"] for row in table if row["error"]] == [None, None]
    assert "one node" in table[1]["error"] or "loads and stores" in table[1]["error"]
    lines = str(table).splitlines()
    assert len(lines) == 5
    assert table._repr_html_().count("<tr>") == 5
    by_rows = simulate.sweep("gemm_all_reduce", m=[1, 64], model="llama3-8b:o", pes=4)
    assert [row["m"] for row in by_rows] == [1, 64]
    assert all(row["speedup"] > 0 for row in by_rows)


def test_sweep_refuses():
    for error, op, options in [
        (tandem.InvalidArgument, "all_reduc", {"bytes": [1]}),
        (tandem.InvalidArgument, "all_reduce", {"arrays": [[1], [2]]}),
        (tandem.InvalidArgument, "all_reduce", {"bytes": ["1Q"]}),
        (tandem.InvalidType, "all_reduce", {"bytes": [1], "nonsense": 3}),
        (tandem.InvalidType, "all_reduce", {"bytes": [1.5]}),
    ]:
        with pytest.raises(error):
            simulate.sweep(op, **options)


def test_table_with_pandas():
    pandas = pytest.importorskip("pandas")
    frame = simulate.sweep("all_reduce", bytes=[1024, 4096], pes=2).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["bytes"]) == [1024, 4096]


def test_plot():
    class Axes:
        """Takes what matplotlib's axes take."""

        def __init__(self):
            self.lines = []

        def plot(self, x, y, marker, label):
            self.lines.append((x, y, label))

        def set(self, **names):
            self.names = names

        def legend(self):
            pass

    axes = Axes()
    table = simulate.sweep("all_reduce", bytes=[4096, 1024], algorithm=["ring", "tree"], pes=2)
    assert table.plot(ax=axes) is axes
    assert [(line[0], line[2]) for line in axes.lines] == [([1024, 4096], "ring"), ([1024, 4096], "tree")]
    assert axes.names["ylabel"] == "time_us, predicted"
    with pytest.raises(tandem.InvalidArgument):
        table.plot(x="nothing", ax=axes)


def test_check_is_clean():
    r = tandem.check("all_gather", algorithm="ring", pes=3, schedules=5)
    assert r.clean
    assert (r.runs, r.findings) == (5 * r.configurations, [])


def test_check_finds(tmp_path):
    mutant = next(one for one in tandem.mutants("send_recv", algorithm="ring", pes=2) if "wait dropped" in one.broken)
    r = tandem.check("send_recv", algorithm="ring", pes=2, broken=mutant.broken)
    assert not r.clean
    finding = r.findings[0]
    assert finding.kind
    assert finding.sites[0].file.endswith((".h", ".cpp"))
    assert finding.replay.startswith("tandem check send_recv --case send_recv.ring.")
    again = finding.run_again()
    assert (finding.kind, finding.sites) in [(one.kind, one.sites) for one in again.findings]
    assert "<html" in finding.timeline.save(tmp_path / "x.html").read_text()
    with pytest.raises(tandem.InvalidArgument):
        finding.timeline.save(tmp_path / "x.svg")


def test_check_refuses():
    for error, arguments in [
        (tandem.InvalidArgument, {"op": "nothing"}),
        (tandem.InvalidArgument, {"op": "--mutants"}),
        (tandem.InvalidType, {"op": None}),
        (tandem.InvalidArgument, {"op": "barrier", "algorithm": "nothing"}),
        (tandem.InvalidArgument, {"op": "barrier", "pes": 99}),
        (tandem.InvalidArgument, {"op": "barrier", "pes": []}),
        (tandem.InvalidType, {"op": "barrier", "pes": "2"}),
        (tandem.InvalidArgument, {"op": "barrier", "schedules": 0}),
        (tandem.InvalidType, {"op": "barrier", "schedules": 1.5}),
        (tandem.InvalidArgument, {"op": "barrier", "strategy": "x"}),
        (tandem.InvalidArgument, {"op": "barrier", "seed": -1}),
        (tandem.InvalidArgument, {"op": "barrier", "broken": "x"}),
        (tandem.InvalidArgument, {"op": "barrier", "case": "x"}),
        (tandem.InvalidArgument, {"op": "barrier", "timeout_s": 0}),
        (tandem.InvalidType, {"op": "barrier", "timeout_s": "1"}),
    ]:
        with pytest.raises(error) as caught:
            tandem.check(**arguments)
        assert next(iter(arguments if len(arguments) == 1 else [list(arguments)[-1]])) in str(caught.value)


def test_errors_of_the_tool_keep_commands():
    with pytest.raises(tandem.InvalidArgument) as caught:
        tandem.check("send_recv", algorithm="ring", pes=2, broken="x")
    assert str(caught.value).startswith("broken: 'x' given")
    assert "`tandem check OP --mutants --list`" in str(caught.value)


def test_check_is_ended_in_time():
    with pytest.raises(TimeoutError):
        tandem.check("all", schedules=100000, timeout_s=0.5)


def test_machine_of_a_file(tmp_path):
    model = json.loads((ROOT / "machines" / "h200x4.json").read_text())
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**model, "name": "mine"}))
    mine = simulate.all_reduce(bytes="1M", machine=file, algorithm="ring")
    assert (mine.machine, mine.pes) == ("mine", 4)
    assert mine.time_us == simulate.all_reduce(bytes="1M", machine="h200x4", algorithm="ring").time_us
    with pytest.raises(tandem.InvalidArgument, match=r"bad\.json"):
        (tmp_path / "bad.json").write_text("{")
        simulate.all_reduce(bytes="1M", machine=tmp_path / "bad.json")
