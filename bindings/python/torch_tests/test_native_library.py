"""The library of operators without Python: TANDEM_TORCH_LIBRARY names one that loads, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
import tandem

pytest.importorskip("torch")


def test_variable_that_names_no_library_is_an_error(monkeypatch, tmp_path):
    from tandem.torch import _native

    folder = Path(tandem.__file__).parent / "lib"
    (tmp_path / "text.so").write_text("no library")
    wrongs = ["/nowhere/libtandem_torch.so", "libtandem_torch.so", str(tmp_path), str(tmp_path / "text.so")]
    for wrong in [*wrongs, str(folder / "libtandem_sim.so")]:
        monkeypatch.setenv("TANDEM_TORCH_LIBRARY", wrong)
        with pytest.raises(tandem.InvalidArgument, match="TANDEM_TORCH_LIBRARY: .* given, allowed is"):
            _native._load()
    monkeypatch.setenv("TANDEM_TORCH_LIBRARY", "")
    assert _native._load() is None
