"""A plugin for vLLM: row-parallel layers run their product and its sum over all ranks as matmul_all_reduce.

vLLM calls `register` in each of its processes, by the entry point "tandem" of "vllm.general_plugins". It takes effect
where VLLM_PLUGINS names it, because a package that is installed for other uses should change no engine.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from . import _groups

NAME = "tandem"
"""The plugin as VLLM_PLUGINS names it."""
LAYER = "RowParallelLinear"
"""The layer of vLLM that it replaces."""
_TYPES = (torch.bfloat16, torch.float16)


def _layer() -> Any:
    """The class of the layer, which derives from that of vLLM."""
    from vllm.distributed.parallel_state import get_tp_group  # type: ignore[import-not-found]
    from vllm.model_executor.layers import linear  # type: ignore[import-not-found]

    class TandemRowParallelLinear(linear.RowParallelLinear):  # type: ignore[misc]
        """A layer with a part of the input features, whose product and sum over all ranks are one operator.

        Layers that Tandem has no operator for keep the form of vLLM: quantised ones, and those that sum nothing.
        """

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.tandem_group = ""
            if (
                self.tp_size > 1
                and self.reduce_results
                and self.input_is_parallel
                and type(self.quant_method) is linear.UnquantizedLinearMethod
                and self.weight.dtype in _TYPES
            ):
                self.tandem_group = _groups.resolve(get_tp_group().device_group)

        def forward(self, input_: torch.Tensor) -> Any:
            if not self.tandem_group or input_.dtype != self.weight.dtype:
                return super().forward(input_)
            # Every rank has the same bias, which the operator adds once.
            bias = None if self.skip_bias_add else self.bias
            output = torch.ops.tandem.matmul_all_reduce(input_, self.weight.t(), bias, "none", self.tandem_group)
            if not self.return_bias:
                return output
            return output, self.bias if self.skip_bias_add else None

    return TandemRowParallelLinear


def register() -> None:
    """Replaces vLLM's row-parallel layers, if VLLM_PLUGINS names the plugin and no other one has replaced them."""
    if NAME not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return
    from vllm.model_executor.custom_op import PluggableLayer, op_registry_oot  # type: ignore[import-not-found]

    if LAYER not in op_registry_oot:
        PluggableLayer.register_oot(_layer(), name=LAYER)
