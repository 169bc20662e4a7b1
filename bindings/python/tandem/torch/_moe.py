"""A layer of experts that the processes of a group share."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .. import errors
from .._library import shown, whole_option
from . import _expert_gemms, _experts, _groups
from ._route_and_dispatch import route_and_dispatch

_ALIGN = 8  # rows of 16 bytes or more, as grouped products need them in backward


class ParallelExperts(torch.nn.Module):
    """Gated feed-forward experts, of which each process holds an equal part.

    An expert computes (silu(x @ gate) * (x @ up)) @ down. The parameters are `gate_up_proj` (experts, 2 * intermediate,
    hidden) and `down_proj` (experts, hidden, intermediate), as Mixtral, Qwen3 and DeepSeek-V3 have them in
    transformers. Each process holds the parameters of its experts.
    """

    def __init__(
        self,
        hidden: int,
        intermediate: int,
        experts: int,
        *,
        group: Any = None,
        max_tokens: int | None = None,
        fused: bool = True,
        device: Any = None,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        """`max_tokens` is the most tokens of a process. By default all processes have the same number of tokens.

        With `fused` the products are dispatch_gemm and gemm_combine, whose GEMM needs Hopper on GPUs. Otherwise they
        are those of torch, between dispatch and combine.
        """
        super().__init__()
        self.group = _groups.resolve(group)
        self.pes, self.pe = _groups.size_of(self.group), _groups.rank_in(self.group)
        self.hidden, self.intermediate = whole_option("hidden", hidden), whole_option("intermediate", intermediate)
        self.experts, self.fused = whole_option("experts", experts), fused
        self.max_tokens = None if max_tokens is None else whole_option("max_tokens", max_tokens)
        for name, value in (("hidden", self.hidden), ("intermediate", self.intermediate)):
            if value < 1 or value % _ALIGN != 0:
                raise errors.InvalidArgument(f"{name}: {value} given, allowed is a positive multiple of {_ALIGN}")
        if self.experts < 1 or self.experts % self.pes != 0:
            raise errors.InvalidArgument(
                f"experts: {self.experts} given, allowed is a positive multiple of {self.pes} PEs"
            )
        if dtype not in (torch.bfloat16, torch.float16):
            raise errors.InvalidType(f"dtype: {shown(dtype)} given, allowed are torch.bfloat16 and torch.float16")
        here, options = self.experts // self.pes, {"device": device, "dtype": dtype}
        self.gate_up_proj = torch.nn.Parameter(torch.empty(here, 2 * self.intermediate, self.hidden, **options))
        self.down_proj = torch.nn.Parameter(torch.empty(here, self.hidden, self.intermediate, **options))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills the parameters with values of torch.nn.Linear's distribution."""
        for weight in (self.gate_up_proj, self.down_proj):
            bound = 1 / math.sqrt(weight.shape[-1])
            torch.nn.init.uniform_(weight, -bound, bound)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        for name in ("gate_up_proj", "down_proj"):
            given = state_dict.get(prefix + name)
            if given is not None and given.shape[0] == self.experts:
                state_dict[prefix + name] = given.chunk(self.pes)[self.pe]
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def forward(
        self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, add: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The weighted sum of what the chosen experts make of each token, plus `add`, such as a shared expert's result.

        `x` and `add` are tokens x hidden. `ids` and `weights` are tokens x choices: experts or -1, and float32.
        """
        if x.shape[-1] != self.hidden:
            raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed is tokens x {self.hidden}")
        options: dict[str, Any] = {"experts": self.experts, "max_tokens": self.max_tokens}
        if self.fused:
            options["align"] = _expert_gemms.TILE
            routing = _experts.route(ids, weights, hidden=self.hidden, dtype=x.dtype, group=self.group, **options)
            gate, up = _expert_gemms.dispatch_gemm(x, routing, self.gate_up_proj).chunk(2, -1)
            return _expert_gemms.gemm_combine(F.silu(gate) * up, routing, self.down_proj, add)
        rows, routing = route_and_dispatch(x, ids, weights, align=_ALIGN, group=self.group, **options)
        ends = routing.starts[1:]
        gate, up = F.grouped_mm(rows, self.gate_up_proj.transpose(1, 2), offs=ends).chunk(2, -1)
        y = F.grouped_mm(F.silu(gate) * up, self.down_proj.transpose(1, 2), offs=ends)
        return _experts.combine(y, routing, add)

    def extra_repr(self) -> str:
        """The arguments that printing a model shows."""
        return f"hidden={self.hidden}, intermediate={self.intermediate}, experts={self.experts}, pes={self.pes}"
