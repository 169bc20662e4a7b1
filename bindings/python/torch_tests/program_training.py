"""A transformer of two layers trains for 200 steps, split over processes and whole: the losses are the same."""

from __future__ import annotations

import tandem.torch as tt
import torch
import torch.nn.functional as F
from common import join

rank, size = join()
WIDTH, HEADS, TOKENS, WORDS, STEPS = 16 * size, 2 * size, 8 * size, 32, 200


class Block(torch.nn.Module):
    """Attention and a feed-forward part. `column` and `row` make their layers; this PE has `heads` heads."""

    def __init__(self, column, row, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (column(WIDTH, WIDTH) for _ in range(3))
        self.project = row(WIDTH, WIDTH)
        self.up, self.down = column(WIDTH, 4 * WIDTH), row(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.before(x)
        heads = [
            layer(y).unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3) for layer in (self.query, self.key, self.value)
        ]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True).permute(2, 0, 1, 3).flatten(2)
        x = x + self.project(attended)
        return x + self.down(F.gelu(self.up(self.between(x))))


class Model(torch.nn.Module):
    """Words in, words out: tokens are the first axis, and with sequence parallelism each PE has a part of them."""

    def __init__(self, column=torch.nn.Linear, row=torch.nn.Linear, parts=1, sequence_parallel=False):
        super().__init__()
        self.sequence_parallel = sequence_parallel
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block(column, row, HEADS // parts) for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        if self.sequence_parallel:
            words = words.chunk(size)[rank]
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(model, own, reduced):
    """Losses of all steps. `own` takes this PE's tokens, and `reduced` sums what PEs have parts of."""
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    losses = []
    shared = [p for name, p in model.named_parameters() if not any(n in name for n in PARALLEL)]
    for _ in range(STEPS):
        words = torch.randint(WORDS, (TOKENS, 2)).cumsum(0) % WORDS
        words = (words[:1] + 3 * torch.arange(TOKENS)[:, None]) % WORDS
        loss = F.cross_entropy(model(words).flatten(0, 1), own((words + 3) % WORDS).flatten(), reduction="sum")
        optimizer.zero_grad()
        loss = loss / words.numel()
        loss.backward()
        for p in shared:
            p.grad = reduced(p.grad)
        optimizer.step()
        losses.append(float(reduced(loss.detach())))
    return losses


PARALLEL = ("query", "key", "value", "project", "up", "down")
torch.manual_seed(3)
whole = Model().double()
for sequence_parallel in (True, False):

    def column(*sizes, sequence_parallel=sequence_parallel):
        return tt.ColumnParallelLinear(*sizes, sequence_parallel=sequence_parallel)

    def row(*sizes, sequence_parallel=sequence_parallel):
        return tt.RowParallelLinear(*sizes, sequence_parallel=sequence_parallel)

    model = Model(column, row, size, sequence_parallel)
    model.load_state_dict(whole.state_dict())
    if sequence_parallel:
        losses = train(model, lambda x: x.chunk(size)[rank], tt.all_reduce)
    else:
        losses = train(model, lambda x: x, lambda x: x)
    reference = Model()
    reference.load_state_dict(whole.state_dict())
    wanted = train(reference, lambda x: x, lambda x: x)
    assert wanted[-1] < 0.1 * wanted[0], wanted[-1]
    worst = max(abs(a - b) / wanted[0] for a, b in zip(losses, wanted))
    assert worst < 1e-4, worst
tt.shutdown()
print("same losses")
