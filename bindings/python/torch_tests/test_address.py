"""The address at which processes of a torch job meet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")


def test_rendezvous_is_on_the_route_to_the_store(monkeypatch):
    from tandem._torch_ids import own_address

    store = SimpleNamespace(underlying_store=SimpleNamespace(host="127.0.0.2"))
    for name in ("MASTER_ADDR", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert own_address(store) == "127.0.0.1"
    assert own_address(SimpleNamespace()) is None  # a file store, and no address in the environment
    monkeypatch.setenv("MASTER_ADDR", "no.such.host.invalid")
    assert own_address(SimpleNamespace()) is None
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert own_address(SimpleNamespace()) == "127.0.0.1"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert own_address(SimpleNamespace()) is None  # all processes are on one host
