"""Runs the ways of communication in turns, step by step, on the same weights and words, and compares them."""

from __future__ import annotations

import statistics

import torch
from model import Cache, Llama
from steps import Step
from ways import ALONE, ways

TOLERANCE = {torch.float32: 1e-4, torch.float16: 8e-3, torch.bfloat16: 0.06}
"""Allowed errors of scores, relative to the largest."""


class Comparison:
    """A model of one size, and all ways."""

    def __init__(self, arguments, size, device, clock):
        self.arguments, self.clock, self.size = arguments, clock, size
        on_cpus = torch.float16 if size.experts > 0 else torch.float32  # rows of experts have 16 bits
        self.type = torch.bfloat16 if device.type == "cuda" else on_cpus
        self.model = Llama(size, device, self.type)
        self.device, self.ways = device, ways(arguments.comm, arguments.fuse)
        self.first = next(iter(self.ways))

    def words(self, number, count):
        """The prompt of a sequence."""
        return (torch.arange(count, device=self.device) * 7 + 13 * number) % self.size.words

    def error(self, scores, wanted):
        """The largest difference of scores, relative to the largest score."""
        error = (scores.float() - wanted.float()).abs().max() / wanted.float().abs().max()
        return self.clock.largest(float(error.nan_to_num(float("inf"))))

    def row(self, kind, rows, tokens, times, error):
        """A row of results. A first step does not count."""
        counted = {name: one[1:] or one for name, one in times.items()}
        us = {name: statistics.median(one) for name, one in counted.items()}
        spread = {name: [round(f(one), 1) for f in (statistics.median, min, max)] for name, one in counted.items()}
        row = {"step": kind, "rows": rows, "layers": self.size.layers, "us": us, "spread": spread, "error": error}
        row["tolerance"] = TOLERANCE[self.type]
        row["tokens_per_s"] = {name: tokens / one * 1e6 for name, one in us.items() if name != ALONE}
        row["communication"] = {name: 1 - us[ALONE] / one for name, one in us.items() if name != ALONE}
        return row

    def decodes(self):
        """A row for each number of sequences. Each step takes the words that the first way has chosen."""
        prompt, tokens, batches = self.arguments.prompt, self.arguments.tokens, self.arguments.batch
        caches = {name: Cache(self.size, max(batches), prompt + tokens, self.model.embed) for name in self.ways}

        def capture(batch, name):
            cache = caches[name].part(0, batch)
            cache.position.zero_()  # which runs before a capture advance
            words = torch.zeros(batch, dtype=torch.int64, device=self.device)
            return Step(lambda words: self.model.decode(words, cache, self.ways[name]), words)

        # Before the prompts, as servers do it: plans of Tandem are then made for as many rows as a step has.
        steps = {batch: {name: capture(batch, name) for name in self.ways} for batch in sorted(batches)}
        begin = []
        for number in range(max(batches)):
            for name, way in self.ways.items():
                scores = self.model.prefill(self.words(number, prompt), caches[name].part(number, number + 1), way)
                if name == self.first:
                    begin.append(scores.argmax(-1))
        for batch in batches:
            yield self.decode(batch, torch.cat(begin[:batch]), steps[batch], caches)

    def decode(self, batch, words, steps, caches):
        """Tokens of so many sequences after their prompts."""
        for cache in caches.values():
            cache.position.fill_(self.arguments.prompt)
        times, error = {name: [] for name in steps}, {name: 0.0 for name in steps if name != ALONE}
        same, taken = dict.fromkeys(error, 0), [words]
        for _ in range(self.arguments.tokens):
            for name, step in steps.items():
                step.words.copy_(taken[-1])
                times[name].append(self.clock.us(step))
            taken.append(steps[self.first].best.clone())
            for name in error:
                error[name] = max(error[name], self.error(steps[name].scores, steps[self.first].scores))
                same[name] += int((steps[name].best == taken[-1]).sum())
        row = self.row("decode", batch, batch, times, error)
        row |= {"prompt": self.arguments.prompt, "same_tokens": same, "tokens": batch * self.arguments.tokens}
        row["taken"] = [int(one[0]) for one in taken]
        return row | {"error_of_cache": self.errors_of_cache(taken, steps)}

    def errors_of_cache(self, taken, steps):
        """How far the last scores are from those of one prefill of all words, which needs neither cache nor graph."""
        words = torch.cat([self.words(0, self.arguments.prompt), *(one[:1] for one in taken[:-1])])
        cache = Cache(self.size, 1, len(words), self.model.embed)
        named = {name: self.model.prefill(words, cache, way) for name, way in self.ways.items() if name != ALONE}
        return {name: self.error(steps[name].scores[:1], wanted) for name, wanted in named.items()}

    def prefill(self, rows):
        """One sequence of so many words."""
        cache, words = Cache(self.size, 1, rows, self.model.embed), self.words(0, rows)
        steps = {
            name: Step(lambda words, way=way: self.model.prefill(words, cache, way), words)
            for name, way in self.ways.items()
        }
        times = {name: [] for name in steps}
        for _ in range(self.arguments.rounds + 1):
            for name, step in steps.items():
                times[name].append(self.clock.us(step))
        wanted = steps[self.first]
        error = {name: self.error(step.scores, wanted.scores) for name, step in steps.items() if name != ALONE}
        same = {name: int((steps[name].best == wanted.best).sum()) for name in error}
        row = self.row("prefill", rows, rows, times, error)
        return row | {"same_tokens": same, "tokens": 1, "taken": [int(wanted.best[0])]}
