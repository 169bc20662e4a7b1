"""The package without numpy: what it imports, and what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tandem
from conftest import run_python

# Makes `import numpy` fail as if it were not installed.
NO_NUMPY = "import sys; sys.modules['numpy'] = None; import tandem; "


def test_import_takes_nothing_heavy():
    loaded = run_python("import sys, tandem; print(*sys.modules)").split()
    heavy = {
        "numpy",
        "torch",
        "pandas",
        "matplotlib",
        "ml_dtypes",
        "subprocess",
        "tempfile",
        "json",
        "importlib.metadata",
    }
    assert heavy & set(loaded) <= heavy & set(run_python("import sys; print(*sys.modules)").split())


def test_import_loads_no_library():
    assert run_python("import tandem; print('libtandem' in open('/proc/self/maps').read())") == "False"


def test_version_is_that_of_the_tool():
    tool = Path(tandem.__file__).parent / "bin" / "tandem"
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    assert tandem.__version__ in said


def test_console_script_is_the_tool():
    script = Path(sys.executable).parent / "tandem"
    said = subprocess.run([script, "run", "all_reduce", "--nonsense"], capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "--nonsense" in said.stderr


def test_times_need_no_numpy():
    assert run_python(NO_NUMPY + "print(tandem.simulate.all_reduce(bytes=1024, pes=4).predicted)") == "True"


def test_arrays_without_numpy_name_it():
    code = NO_NUMPY + (
        "\ntry: tandem.simulate.all_reduce([[1.0], [2.0]])"
        "\nexcept tandem.MissingPackage as error: print(isinstance(error, ImportError), error)"
    )
    assert run_python(code) == "True numpy is not installed, and arrays need it: pip install numpy"


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_pandas()"), ("matplotlib", "plot()")])
def test_other_packages_are_named(package: str, call: str):
    code = (
        f"import sys; sys.modules['{package}'] = None; import tandem"
        "\ntable = tandem.simulate.sweep('all_reduce', bytes=[1024], pes=2)"
        f"\ntry: table.{call}"
        "\nexcept tandem.MissingPackage as error: print(error)"
    )
    assert f"pip install {package}" in run_python(code)


def test_broken_installation_is_an_error(tmp_path: Path):
    code = (
        "import pathlib, tandem, tandem._library as library"
        f"\nlibrary.FOLDER = pathlib.Path({str(tmp_path)!r})"
        "\ntry: tandem.machines()"
        "\nexcept tandem.Failure as error: print(error)"
    )
    assert "does not load" in run_python(code)


def test_library_of_another_interface_is_refused():
    code = (
        "import tandem, tandem._library as library"
        "\nlibrary.INTERFACE = 0"
        "\ntry: tandem.machines()"
        "\nexcept tandem.Failure as error: print(error)"
    )
    assert "has interface 1, this package needs 0" in run_python(code)


def test_worlds_take_the_gpu_part_where_the_package_has_one(tmp_path, monkeypatch):
    from tandem import _c

    monkeypatch.delenv("TANDEM_LIBRARY", raising=False)
    assert Path(_c.path()).parent == Path(tandem.__file__).parent / "lib"
    monkeypatch.setattr(_c, "FOLDER", tmp_path)
    assert _c.path() == str(tmp_path / "lib" / "libtandem_sim.so")
    with pytest.raises(tandem.InvalidArgument, match="path: None given without TANDEM_LIBRARY and without"):
        tandem.preload_nccl()
    (tmp_path / "lib" / "tandem" / "nccl").mkdir(parents=True)
    (tmp_path / "lib" / "libtandem_c.so").touch()
    (tmp_path / "lib" / "tandem" / "nccl" / "libnccl.so.2").touch()
    assert _c.path() == str(tmp_path / "lib" / "libtandem_c.so")
    with pytest.raises(tandem.Failure, match="libnccl.so.2 given, which does not load"):
        tandem.preload_nccl()
    monkeypatch.setenv("TANDEM_LIBRARY", "/elsewhere/libtandem_c.so")
    assert _c.path() == "/elsewhere/libtandem_c.so"


def test_lists():
    names = [machine.name for machine in tandem.machines()]
    assert {"h200x4", "h200x8", "h100x8-rail"} <= set(names)
    assert [one.name for one in tandem.algorithms("scatter")] == ["direct"]
    assert set(tandem.algorithms()) >= {"all_reduce", "exchange", "all_gather_gemm", "gemm_all_reduce"}
    assert tandem.layers()[0] == ("llama3-8b:qkv", "query, key and value projections in one", 6144, 4096)
