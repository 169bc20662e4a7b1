"""Tandem in the tensor parallelism of transformers: products that end a pair of layers run as matmul_all_reduce."""

from __future__ import annotations

from typing import Any

import torch

from .. import errors
from . import _groups

STYLE = "rowwise"
"""The style of transformers' plans that Tandem takes over."""


def _style() -> Any:
    """The class of the style, which derives from the one of transformers."""
    try:
        from torch.distributed.tensor import DTensor, Replicate, Shard
        from transformers.distributed.tensor_parallel import RowwiseParallel
    except ImportError as error:
        raise errors.MissingPackage(
            "transformers 5 is not installed, and enable_transformers_tp needs it: pip install transformers"
        ) from error

    class Rowwise(RowwiseParallel):  # type: ignore[misc]
        """A linear layer with a part of the input features, whose product and sum over all ranks are one operator.

        Training, and layers that Tandem has no operator for, keep the form of transformers.
        """

        def _takes(self, module: Any, x: Any, size: int) -> bool:
            return (
                type(module) is torch.nn.Linear
                and not torch.is_grad_enabled()
                and isinstance(module.weight, DTensor)
                and isinstance(x, torch.Tensor)
                and not isinstance(x, DTensor)
                and module.in_features % size == 0
                and self.input_layouts == Shard(-1)
                and self.output_layouts == Replicate()
            )

        def install_forward(self, module: Any, mesh: Any) -> Any:
            super().install_forward(module, mesh)
            former = module.forward
            group = _groups.resolve(mesh.get_group() if mesh.ndim == 1 else mesh.get_group("tp"))
            size = _groups.size_of(group)

            def forward(*arguments: Any, **options: Any) -> Any:
                if len(arguments) != 1 or options or not self._takes(module, arguments[0], size):
                    return former(*arguments, **options)
                weight, bias = module.weight.to_local(), module.bias
                bias = bias.to_local() if isinstance(bias, DTensor) else bias
                return torch.ops.tandem.matmul_all_reduce(arguments[0], weight.t(), bias, "none", group)

            module.forward = forward
            return module

    return Rowwise


def enable_transformers_tp() -> None:
    """Lets models of transformers that are loaded from now on with a `tp_plan` run row-parallel layers on Tandem.

    It takes over the style "rowwise" of all plans, until the process ends, for inference on CPUs and GPUs.
    """
    style = _style()
    from transformers.distributed.tensor_parallel import ALL_PARALLEL_STYLES

    if type(ALL_PARALLEL_STYLES[STYLE]).__module__ == __name__:
        return
    former = ALL_PARALLEL_STYLES[STYLE]
    ALL_PARALLEL_STYLES.register(STYLE, style(input_layouts=former.input_layouts, output_layouts=former.output_layouts))
