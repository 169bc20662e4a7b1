"""Tensor-parallel linear layers.

Each process holds its part of torch.nn.Linear's weight. With sequence parallelism the activations outside of a pair of
layers are split along their first axis, else every process holds all of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .. import errors
from .._c import ACTIVATIONS
from .._library import shown, whole_option
from . import _groups, _matmul


class _ParallelLinear(torch.nn.Module):
    """A linear layer whose weight is split along `axis`."""

    axis: int

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        group: Any = None,
        sequence_parallel: bool = False,
        activation: str = "none",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """`activation` is none, relu, gelu or silu, applied after the bias."""
        super().__init__()
        if activation not in ACTIVATIONS:
            raise errors.InvalidArgument(
                f"activation: {shown(activation)} given, allowed is one of {', '.join(ACTIVATIONS)}"
            )
        self.group = _groups.resolve(group)
        self.pes, self.pe = _groups.size_of(self.group), _groups.rank_in(self.group)
        self.in_features, self.out_features = in_features, out_features
        self.sequence_parallel, self.activation = sequence_parallel, activation
        shape = [whole_option("out_features", out_features), whole_option("in_features", in_features)]
        if min(shape) < 1 or shape[self.axis] % self.pes != 0:
            name = ("out_features", "in_features")[self.axis]
            raise errors.InvalidArgument(
                f"{name}: {shape[self.axis]} given, allowed is a positive multiple of {self.pes} PEs"
            )
        shape[self.axis] //= self.pes
        self.weight = torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        length = shape[0] if self.axis == 0 else out_features
        self.bias = torch.nn.Parameter(torch.empty(length, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fills the parameters with values of torch.nn.Linear's distribution. A bias that all PEs hold is zeros."""
        bound = 1 / math.sqrt(self.in_features)
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is None:
            return
        if self.axis == 0:
            torch.nn.init.uniform_(self.bias, -bound, bound)
        else:
            torch.nn.init.zeros_(self.bias)

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, **options: Any) -> Any:
        """The parallel form of a layer that all processes hold. `options` are those of the constructor."""
        if not isinstance(linear, torch.nn.Linear):
            raise errors.InvalidType(f"linear: {shown(linear)} given, allowed is a torch.nn.Linear")
        weight = linear.weight
        made = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            device=weight.device,
            dtype=weight.dtype,
            **options,
        )
        made.load_state_dict(linear.state_dict())
        return made

    def _part(self, name: str, whole: torch.Tensor) -> torch.Tensor:
        """This PE's part of a parameter of torch.nn.Linear."""
        if name == "bias" and self.axis == 1:
            return whole
        return whole.chunk(self.pes, 0 if name == "bias" else self.axis)[self.pe].contiguous()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        whole = {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}
        for name, shape in whole.items():
            given = state_dict.get(prefix + name)
            if given is not None and tuple(given.shape) == shape:
                state_dict[prefix + name] = self._part(name, given)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def linear_state_dict(self) -> dict[str, torch.Tensor]:
        """The state dict of the torch.nn.Linear that the processes hold together. All processes call it."""
        weight = self.weight.detach()
        columns = weight if self.axis == 0 else weight.t().contiguous()
        whole = torch.ops.tandem.all_gather(columns, self.group)
        state = {"weight": whole if self.axis == 0 else whole.t().contiguous()}
        if self.bias is not None:
            bias = self.bias.detach()
            state["bias"] = torch.ops.tandem.all_gather(bias, self.group) if self.axis == 0 else bias.clone()
        return state

    def extra_repr(self) -> str:
        """The arguments that printing a model shows."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"pes={self.pes}, sequence_parallel={self.sequence_parallel}, activation={self.activation}"
        )


class ColumnParallelLinear(_ParallelLinear):
    """A linear layer that computes this PE's part of the output features.

    The input is this PE's part of the first axis with `sequence_parallel`, else the same on all PEs.
    """

    axis = 0

    def __init__(self, *arguments: Any, keep_gathered: bool = False, **options: Any) -> None:
        """`keep_gathered` keeps the input of all PEs for backward, which otherwise gathers it again."""
        super().__init__(*arguments, **options)
        if keep_gathered and not self.sequence_parallel:
            raise errors.InvalidArgument("keep_gathered: True given, allowed without sequence_parallel is False")
        self.keep_gathered = keep_gathered

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns this PE's columns of the result, for all rows."""
        weight = self.weight.t()
        if self.sequence_parallel:
            options = {"return_gathered": self.keep_gathered}
            result = _matmul.all_gather_matmul(x, weight, self.bias, self.activation, self.group, **options)
            return result[0] if self.keep_gathered else result
        return _matmul.replicated_matmul(x, weight, self.bias, self.activation, self.group)


class RowParallelLinear(_ParallelLinear):
    """A linear layer that takes this PE's part of the input features, as ColumnParallelLinear leaves it.

    The result is this PE's part of the first axis with `sequence_parallel`, else the same on all PEs.
    """

    axis = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the sum over all PEs, or this PE's part of its first axis."""
        multiply = _matmul.matmul_reduce_scatter if self.sequence_parallel else _matmul.matmul_all_reduce
        return multiply(x, self.weight.t(), self.bias, self.activation, self.group)
