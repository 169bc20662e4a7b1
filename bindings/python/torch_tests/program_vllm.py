"""The plugin for vLLM, with stand-ins for the classes and functions of vLLM that it touches."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import types

import tandem.torch as tt
import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import DEVICE, check_close, gathered, join
from torch.utils._python_dispatch import TorchDispatchMode

rank, size = join()
DEEP, WIDE = 16 * size, 24
replaced: dict[str, type] = {}


class PluggableLayer(torch.nn.Module):
    """Making a layer makes the one that has replaced it, as in vLLM."""

    def __new__(cls, *arguments, **options):
        return super().__new__(replaced.get(cls.__name__, cls))

    @staticmethod
    def register_oot(layer, name):
        assert name not in replaced
        replaced[name] = layer


class UnquantizedLinearMethod:
    def apply(self, layer, x, bias):
        return F.linear(x, layer.weight, bias)


class Quantised(UnquantizedLinearMethod):
    pass


class RowParallelLinear(PluggableLayer):
    """The attributes and the result of vLLM's layer, for inputs that are parallel."""

    def __init__(self, dtype, method=UnquantizedLinearMethod, skip_bias_add=False, return_bias=True, reduces=True):
        super().__init__()
        self.tp_rank, self.tp_size, self.quant_method = rank, size, method()
        self.input_is_parallel, self.reduce_results = True, reduces
        self.skip_bias_add, self.return_bias = skip_bias_add, return_bias
        torch.manual_seed(rank)
        self.weight = torch.nn.Parameter((torch.randn(WIDE, DEEP // size) / 4).to(dtype))
        self.bias = torch.nn.Parameter(torch.arange(WIDE, device=DEVICE).to(dtype))

    def forward(self, input_):
        output = self.quant_method.apply(self, input_, None)
        if self.reduce_results:
            dist.all_reduce(output)
        output = output if self.skip_bias_add else output + self.bias
        return (output, self.bias if self.skip_bias_add else None) if self.return_bias else output


def module(name, **contents):
    sys.modules[name] = made = types.ModuleType(name)
    vars(made).update(contents)


for name in ("vllm", "vllm.distributed", "vllm.model_executor"):
    module(name)
module("vllm.distributed.parallel_state", get_tp_group=lambda: types.SimpleNamespace(device_group=dist.group.WORLD))
module("vllm.model_executor.custom_op", PluggableLayer=PluggableLayer, op_registry_oot=replaced)
linear = {"RowParallelLinear": RowParallelLinear, "UnquantizedLinearMethod": UnquantizedLinearMethod}
module("vllm.model_executor.layers.linear", **linear)
module("vllm.model_executor.layers", linear=sys.modules["vllm.model_executor.layers.linear"])

(entry,) = importlib.metadata.entry_points(group="vllm.general_plugins", name="tandem")
register = entry.load()
os.environ["VLLM_PLUGINS"] = "other"
register()
assert not replaced
os.environ["VLLM_PLUGINS"] = "other,tandem"
register()
register()  # the second one finds the first one's
assert list(replaced) == ["RowParallelLinear"]


class Operators(TorchDispatchMode):
    """Notes the operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, _, arguments=(), options=None):
        self.names.append(function.name())
        return function(*arguments, **(options or {}))


for options, is_ours in (
    ({"dtype": torch.bfloat16}, True),
    ({"dtype": torch.float16, "skip_bias_add": True}, True),
    ({"dtype": torch.bfloat16, "return_bias": False}, True),
    ({"dtype": torch.bfloat16, "method": Quantised}, False),
    ({"dtype": torch.float32}, False),
    ({"dtype": torch.bfloat16, "reduces": False}, False),
):
    layer, x = RowParallelLinear(**options), torch.randn(5, DEEP // size).to(options["dtype"])
    with torch.no_grad():
        with Operators() as operators:
            got = layer(x)
        wanted = F.linear(x.double(), layer.weight.double())
        if layer.reduce_results:
            wanted = sum(gathered(wanted))
        wanted = wanted if layer.skip_bias_add else wanted + layer.bias.double()
        is_fused = "tandem::matmul_all_reduce" in operators.names
        assert is_fused == (size > 1 and is_ours), (options, operators.names)
        if layer.return_bias:
            got, bias = got
            assert bias is (layer.bias if layer.skip_bias_add else None)
        check_close(options, got, wanted)
        if is_ours:
            compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)(x)
            assert torch.equal(compiled[0] if layer.return_bias else compiled, got)
tt.shutdown()
print("all equal")
