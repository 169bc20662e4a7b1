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

    With `tp_size` = s, groups of s processes hold the same experts, and each process has an s-th of their columns. The
    experts are tensor-parallel if s is the number of processes.

    An expert computes (silu(x @ gate) * (x @ up)) @ down. The parameters are `gate_up_proj` (experts, 2 * intermediate,
    hidden) and `down_proj` (experts, hidden, intermediate), as Mixtral, Qwen3 and DeepSeek-V3 have them in
    transformers. Each process holds its part: fewer experts, and with `tp_size` fewer rows of gates, of ups, and fewer
    columns of `down_proj`.
    """

    def __init__(
        self,
        hidden: int,
        intermediate: int,
        experts: int,
        *,
        tp_size: int = 1,
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
        self.tp_size = whole_option("tp_size", tp_size)
        self.max_tokens = None if max_tokens is None else whole_option("max_tokens", max_tokens)
        self._check_sizes()
        if dtype not in (torch.bfloat16, torch.float16):
            raise errors.InvalidType(f"dtype: {shown(dtype)} given, allowed are torch.bfloat16 and torch.float16")
        here, columns = self.experts // (self.pes // self.tp_size), self.intermediate // self.tp_size
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.gate_up_proj = torch.nn.Parameter(torch.empty(here, 2 * columns, self.hidden, **options))
        self.down_proj = torch.nn.Parameter(torch.empty(here, self.hidden, columns, **options))
        self.reset_parameters()

    def _check_sizes(self) -> None:
        if self.tp_size < 1 or self.pes % self.tp_size != 0:
            raise errors.InvalidArgument(f"tp_size: {self.tp_size} given, allowed is a divisor of {self.pes} PEs")
        for name, value, step in (
            ("hidden", self.hidden, _ALIGN),
            ("intermediate", self.intermediate, _ALIGN * self.tp_size),
        ):
            if value < 1 or value % step != 0:
                raise errors.InvalidArgument(f"{name}: {value} given, allowed is a positive multiple of {step}")
        parts = self.pes // self.tp_size
        if self.experts < 1 or self.experts % parts != 0:
            raise errors.InvalidArgument(f"experts: {self.experts} given, allowed is a positive multiple of {parts}")

    def reset_parameters(self) -> None:
        """Fills the parameters with values of torch.nn.Linear's distribution."""
        for weight, columns in ((self.gate_up_proj, self.hidden), (self.down_proj, self.intermediate)):
            bound = 1 / math.sqrt(columns)
            torch.nn.init.uniform_(weight, -bound, bound)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        for name, shape in (
            ("gate_up_proj", (self.experts, 2 * self.intermediate, self.hidden)),
            ("down_proj", (self.experts, self.hidden, self.intermediate)),
        ):
            given = state_dict.get(prefix + name)
            if given is not None and tuple(given.shape) == shape:
                state_dict[prefix + name] = self._part_of(name, given)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def _part_of(self, name: str, whole: torch.Tensor) -> torch.Tensor:
        """This process's part of the parameters of all experts."""
        of_group = whole.chunk(self.pes // self.tp_size)[self.pe // self.tp_size]
        part = self.pe % self.tp_size
        if name == "down_proj":
            return of_group.chunk(self.tp_size, 2)[part]
        return of_group.unflatten(1, (2, -1)).chunk(self.tp_size, 2)[part].flatten(1, 2)

    def forward(
        self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, add: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The weighted sum of what the chosen experts make of each token, plus `add`, such as a shared expert's result.

        `x` and `add` are tokens x hidden. `ids` and `weights` are tokens x choices: experts or -1, and float32.
        """
        if x.shape[-1] != self.hidden:
            raise errors.InvalidArgument(f"x: shape {tuple(x.shape)} given, allowed is tokens x {self.hidden}")
        options: dict[str, Any] = {"experts": self.experts, "max_tokens": self.max_tokens, "tp_size": self.tp_size}
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
        sizes = f"hidden={self.hidden}, intermediate={self.intermediate}, experts={self.experts}"
        return f"{sizes}, pes={self.pes}, tp_size={self.tp_size}"
