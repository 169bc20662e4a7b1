"""Compiler passes on the graphs of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tandem.torch as tt
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd


def compiled(function: Callable[..., Any], fuse: Any, arguments: tuple[Any, ...]) -> tuple[Any, int, str]:
    """The results of a function behind a pass, the number of its replacements, and the graph that it left."""
    fused: list[tuple[int, str]] = []

    def compiler(module: Any, _: Any) -> Any:
        fused.append((fuse(module), str(module.graph)))
        return make_boxed_func(module.forward)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compiler, inference_compiler=compiler)
    got = torch.compile(function, backend=backend, fullgraph=True)(*arguments)
    ((count, text),) = fused
    return got, count, text


def left_by_inductor(function: Callable[..., Any], arguments: tuple[Any, ...]) -> set[str]:
    """The functions that Inductor calls behind the passes."""
    graphs: list[Any] = []
    options = {"post_grad_custom_pre_pass": tt.inductor_pass(), "post_grad_custom_post_pass": graphs.append}
    torch._dynamo.reset()
    torch.compile(function, options=options, fullgraph=True)(*arguments)
    return {str(node.target) for node in graphs[0].nodes if node.op == "call_function"}
