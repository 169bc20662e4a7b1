"""The passes as one for Inductor."""

from __future__ import annotations

from typing import Any

from torch.fx import Graph

from . import _fuse, _fuse_gather, _graphs, _patterns


def inductor_pass() -> Any:
    """The passes for torch.compile(..., options={"post_grad_custom_pre_pass": tandem.torch.inductor_pass()})."""
    from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

    class FuseNorms(CustomGraphPass):
        """Runs the passes, and lets Inductor cache their result."""

        def __call__(self, graph: Graph) -> None:
            _fuse.fuse_all_reduce_norm(graph)
            _fuse_gather.fuse_norm_all_gather_matmul(graph)

        def uuid(self) -> bytes:
            return get_hash_for_files((__file__, *(one.__file__ for one in (_fuse, _fuse_gather, _graphs, _patterns))))

    return FuseNorms()
