"""The options of a plan for experts, and the arrays of its routings."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import torch

from .. import _c, _structs, errors
from .._library import shown
from .._plan import ExpertsPlan
from . import _groups

TYPES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Problem:
    """The options of a plan, in the order of the operators' arguments."""

    experts: int
    top_k: int
    hidden: int
    max_tokens: int
    dtype: torch.dtype
    wire: str
    layout: str
    align: int
    most_rows: int
    tp_size: int
    group: str

    def __post_init__(self) -> None:
        for name in ("experts", "hidden", "max_tokens", "align", "most_rows", "tp_size"):
            least = 1 if name == "tp_size" else 0
            if not least <= getattr(self, name) < 2**31:
                raise errors.InvalidArgument(f"{name}: {getattr(self, name)} given, allowed is {least} to {2**31 - 1}")

    def arguments(self) -> tuple[Any, ...]:
        """The options as arguments of an operator."""
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def fields(self) -> dict[str, Any]:
        """The fields of tandem_experts_problem."""
        return {
            "max_tokens": self.max_tokens,
            "hidden": self.hidden,
            "experts": self.experts,
            "top_k": self.top_k,
            "type": _c.TYPES[str(self.dtype).removeprefix("torch.")],
            "wire": _c.EXPERT_WIRES[self.wire],
            "layout": _c.EXPERT_LAYOUTS[self.layout],
            "align": self.align,
            "most_rows": self.most_rows,
            "tp_size": self.tp_size,
        }

    def pes(self) -> int:
        return _groups.size_of(self.group)

    def experts_here(self) -> int:
        """The number of experts of each process, of options that a plan has."""
        return self.experts // (self.pes() // self.tp_size)

    def first_expert(self) -> int:
        """The first expert of this process."""
        return _groups.rank_in(self.group) // self.tp_size * self.experts_here()

    def sizes(self) -> _structs.ExpertsSizes:
        """The sizes of the plan's buffers. Raises InvalidArgument for options that no plan has."""
        return _sizes(self, self.pes())

    def plan(self, device_type: str) -> ExpertsPlan:
        """The plan, which the group's processes make together."""
        found = _groups.world_for(self.group, device_type)
        if self not in found.plans:
            found.plans[self] = ExpertsPlan(found.world, **self.fields())
        return found.plans[self]


@functools.lru_cache(1024)
def _sizes(problem: Problem, pes: int) -> _structs.ExpertsSizes:
    made = _structs.ExpertsSizes()
    _c.call("experts_sizes_of", ctypes.byref(_structs.ExpertsProblem(**problem.fields())), pes, ctypes.byref(made))
    return made


def problem_of(arguments: tuple[Any, ...]) -> Problem:
    """The problem of an operator's last arguments, whose names are checked."""
    made = Problem(*arguments)
    for name, allowed in (("wire", _c.EXPERT_WIRES), ("layout", _c.EXPERT_LAYOUTS)):
        if getattr(made, name) not in allowed:
            raise errors.InvalidArgument(
                f"{name}: {shown(getattr(made, name))} given, allowed is one of {', '.join(allowed)}"
            )
    if made.dtype not in TYPES:
        raise errors.InvalidType(f"dtype: {made.dtype} given, allowed are torch.bfloat16 and torch.float16")
    return made


class Arrays:
    """Views of the arrays in a routing."""

    def __init__(self, memory: torch.Tensor, problem: Problem) -> None:
        self.memory, self.problem, self.sizes = memory, problem, problem.sizes()
        self.pes = problem.pes()

    def at(self, begin: int, count: int) -> torch.Tensor:
        """`count` words from byte `begin` on."""
        return self.memory.narrow(0, begin // 4, count)

    def _of_choices(self, begin: int, stride: int) -> torch.Tensor:
        """An array of the choices of all PEs: PEs x tokens x choices of a token."""
        p = self.problem
        words = self.at(begin, self.pes * stride).view(self.pes, stride)
        return words[:, : p.max_tokens * p.top_k].view(self.pes, p.max_tokens, p.top_k)

    def ids(self) -> torch.Tensor:
        """The experts of all choices, or -1."""
        return self._of_choices(self.sizes.ids_at, self.sizes.id_stride)

    def weights(self) -> torch.Tensor:
        """The weights of all choices."""
        return self._of_choices(self.sizes.weights_at, self.sizes.choice_stride).view(torch.float32)

    def rows(self) -> torch.Tensor:
        """The row of each choice, or the number of rows for a choice without a row here."""
        ids, here, first = self.ids(), self.problem.experts_here(), self.problem.first_expert()
        places = self._of_choices(self.sizes.places_at, self.sizes.choice_stride)
        tokens = self.at(self.sizes.tokens_at, self.pes).view(-1, 1, 1)
        numbers = torch.arange(self.problem.max_tokens, device=places.device).view(1, -1, 1)
        # Other places and ids are not defined.
        is_here = (numbers < tokens) & (ids >= first) & (ids < first + here) & (places >= 0)
        return torch.where(is_here, places, self.sizes.rows).to(torch.int64)

    def by_row(self, values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Moves a value of each choice to its row. A row without a choice gets zero."""
        made = values.new_zeros(self.sizes.rows + 1)
        made.scatter_(0, rows.reshape(-1), values.reshape(-1))
        return made[: self.sizes.rows]

    def first_rows(self) -> torch.Tensor:
        """The row of each token's first choice here, for all PEs' tokens, or the number of rows."""
        rows, none = self.rows(), self.sizes.rows
        return torch.where((rows < none).cumsum(-1) == 1, rows, none).amin(-1).reshape(-1)

    def placed(self, values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Rows of experts that hold `values` at `rows`, and zeros elsewhere."""
        made = values.new_zeros((self.sizes.rows + 1, values.shape[1]))
        made.index_copy_(0, rows, values)
        return made[: self.sizes.rows]

    def with_ones(self) -> torch.Tensor:
        """A copy of the routing whose weights are all 1."""
        made = self.memory.clone()
        count = self.pes * self.sizes.choice_stride
        made.narrow(0, self.sizes.weights_at // 4, count).view(torch.float32).fill_(1.0)
        return made
