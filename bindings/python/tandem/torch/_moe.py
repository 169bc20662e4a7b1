"""A layer of experts that the processes of a group share."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from .. import errors
from .._library import shown, whole_option
from . import _expert_gemms, _experts, _gates, _groups
from ._route_and_dispatch import route_and_dispatch

_ALIGN = 8  # rows of 16 bytes or more, as grouped products need them in backward


class ParallelExperts(torch.nn.Module):
    """Gated feed-forward experts, of which each process holds an equal part.

    With `tp_size` = s, groups of s processes hold the same experts, and each process has an s-th of their columns. The
    experts are tensor-parallel if s is the number of processes.

    An expert computes (silu(x @ gate) * (x @ up)) @ down. A state dict has `gate_up_proj` (experts, 2 * intermediate,
    hidden) and `down_proj` (experts, hidden, intermediate), as Mixtral, Qwen3 and DeepSeek-V3 have them in
    transformers. Each process holds its part: fewer experts, and with `tp_size` fewer rows of gates, of ups, and fewer
    columns of `down_proj`.

    The rows of the parameter `gate_up_proj` are those of `interleave_gates`, so that the first product has the
    activation in its epilogue. `load_state_dict` and `state_dict` convert them. A program that reads or writes the
    parameter itself, or its gradient, uses `separate_gates` and `interleave_gates`.
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
        recompute: bool = False,
        device: Any = None,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        """`max_tokens` is the most tokens of a process. By default all processes have the same number of tokens.

        With `fused` the products are dispatch_gemm and gemm_combine, whose GEMM needs Hopper on GPUs. Otherwise they
        are those of torch, between dispatch and combine.

        In training the sums before the activation are kept for backward. With `recompute` they are not, so they take
        no memory, and backward multiplies again. The results of both differ by the rounding of these sums.
        """
        super().__init__()
        self.group = _groups.resolve(group)
        self.pes, self.pe = _groups.size_of(self.group), _groups.rank_in(self.group)
        self.hidden, self.intermediate = whole_option("hidden", hidden), whole_option("intermediate", intermediate)
        self.experts, self.fused, self.recompute = whole_option("experts", experts), fused, recompute
        if recompute and not fused:
            raise errors.InvalidArgument("recompute: True given, allowed without fused is False")
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
                given = self._part_of(name, given)
            if name == "gate_up_proj" and given is not None and given.shape == self.gate_up_proj.shape:
                given = _gates.interleave_gates(*given.chunk(2, 1))
            if given is not None:
                state_dict[prefix + name] = given
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        name = prefix + "gate_up_proj"
        destination[name] = torch.cat(_gates.separate_gates(destination[name]), 1)

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
            h = self._first_products(x, routing)
            return _expert_gemms.gemm_combine(h, routing, self.down_proj, add)
        rows, routing = route_and_dispatch(x, ids, weights, align=_ALIGN, group=self.group, **options)
        ends = routing.starts[1:]
        h = _gates.swiglu(F.grouped_mm(rows, self.gate_up_proj.transpose(1, 2), offs=ends))
        y = F.grouped_mm(h, self.down_proj.transpose(1, 2), offs=ends)
        return _experts.combine(y, routing, add)

    def _first_products(self, x: torch.Tensor, routing: _experts.Routing) -> torch.Tensor:
        needs_sums = torch.is_grad_enabled() and (x.requires_grad or self.gate_up_proj.requires_grad)
        if needs_sums and not self.recompute:
            return _gates.swiglu(_expert_gemms.dispatch_gemm(x, routing, self.gate_up_proj))
        return _expert_gemms.dispatch_gemm(x, routing, self.gate_up_proj, activation="swiglu")

    def extra_repr(self) -> str:
        """The arguments that printing a model shows."""
        sizes = f"hidden={self.hidden}, intermediate={self.intermediate}, experts={self.experts}"
        return f"{sizes}, pes={self.pes}, tp_size={self.tp_size}"
