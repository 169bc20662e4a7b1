"""A tiny model of transformers generates the same tokens whole, with its own tensor parallelism, and on Tandem."""

from __future__ import annotations

import sys

import tandem.torch as tt
import torch
import torch.distributed as dist
from common import join
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.distributed import DistributedConfig

rank, size = join()
LAYERS = 2


class Calls(TorchDispatchMode):
    """Counts the calls of operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.names.append(str(function))
        return function(*arguments, **(options or {}))


torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=True,
        initializer_range=0.5,
        eos_token_id=None,
    )
)
for one in model.modules():
    if isinstance(one, torch.nn.Linear) and one.bias is not None:
        torch.nn.init.normal_(one.bias)
if rank == 0:
    model.save_pretrained(sys.argv[1])
dist.barrier()
prompt = torch.arange(12).view(2, 6)


def tokens(one):
    return one.generate(prompt, max_new_tokens=24, do_sample=False, pad_token_id=0).tolist()


def parallel():
    return LlamaForCausalLM.from_pretrained(sys.argv[1], distributed_config=DistributedConfig(tp_size=size))


wanted = tokens(model)
assert len({one for row in wanted for one in row[6:]}) > 10
assert tokens(parallel()) == wanted
tt.enable_transformers_tp()
tt.enable_transformers_tp()  # once is enough
ours = parallel()
assert tokens(ours) == wanted
calls = Calls()
with calls, torch.no_grad():
    ours(prompt)
assert calls.names.count("tandem.matmul_all_reduce.default") == 2 * LAYERS, calls.names
assert torch.allclose(ours(prompt).logits, model(prompt).logits, atol=1e-3)  # with gradients: transformers' own form
tt.shutdown()
print("same tokens")
