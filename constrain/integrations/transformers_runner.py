"""A causal model of transformers as a `ModelRunner`: one batch over a `SlotCache`, and tree drafts in the same pass.

The rows of a step are divided into passes so that little is padded: a step of 31 rows that feed one token and one row
that feeds forty is two passes. Each pass works on a contiguous range of rows of the cache; a slot is a number that
stays, and its row may change between passes. Passes run in a thread of the runner, so that the caller computes masks
meanwhile (torch releases the interpreter lock); those of small models run in the thread that waits for them.

Texts that have ended may be kept in rows that no slot needs, for prompts that begin as they do (`cached_texts`). The
cache shrinks to what its texts need when it is larger than `CacheBounds` say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate, count
from math import isnan
from typing import Any

import numpy as np
import torch

from ..base.errors import ConstrainError
from ..decoding.model_runner import DEFAULT_BOUNDS, CacheBounds, LogprobRows, OpenedSlot, RowStep
from .attention_masks import AttentionKinds, list_positions, make_attention_masks
from .cached_texts import CachedText, KeptTexts, find_longest_prefix
from .context_length import count_positions
from .model_cache import SMALL, one_thread
from .slot_cache import SlotCache
from .transformers_versions import name_cache_argument

__all__ = ["TransformersRunner"]

PASS_TOKENS = {"cpu": 64, "cuda": 256}
"""About how many tokens cost as much as a forward pass costs besides its tokens."""


class TransformersRunner:
    """A `ModelRunner` for a causal model whose attention layers keep one key and value per token.

    Parameters
    ----------
    model : transformers model
        In evaluation mode.
    width : int
        The size of the vocabulary; further logits are padding, dropped after normalisation.
    kinds : AttentionKinds
        The attention layers of the model (`describe_attention`).
    bounds : CacheBounds
        What is kept of texts that have ended, and how large the cache may stay.

    Attributes
    ----------
    passes, tokens_fed : int
        Forward passes so far, and tokens fed to them, padding included.
    tokens_reused : int
        Tokens of prompts so far whose keys and values were in the cache.
    """

    def __init__(self, model: Any, width: int, kinds: AttentionKinds, bounds: CacheBounds = DEFAULT_BOUNDS) -> None:
        self.model, self.width, self.kinds, self.bounds = model, width, kinds, bounds
        weight = model.get_input_embeddings().weight
        self.device, self.dtype = weight.device, weight.dtype
        self.is_small = self.device.type == "cpu" and sum(part.numel() for part in model.parameters()) < SMALL
        self.threads: Callable[[], AbstractContextManager[None]] = one_thread if self.is_small else nullcontext
        self.limit = count_positions(model)
        self.cache_argument = name_cache_argument(model)
        self.keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.pass_tokens = PASS_TOKENS.get(self.device.type, 256)
        self.cache = SlotCache()
        self.slots: dict[int, CachedText] = {}
        self.kept = KeptTexts(bounds.texts)
        self.numbers = count()
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="constrain-model")
        self.passes = self.tokens_fed = self.tokens_reused = 0
        self.may_shrink = False

    # ---- slots ------------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        """Return a new slot that has the longest prefix of the prompt that is in the cache; the rest has to be fed."""
        prompt = list(prompt)
        source, reused = find_longest_prefix([*self.slots.values(), *self.kept.texts], prompt)
        row = self.find_free_row() if source is None else self.take_prefix(source, reused)
        number = next(self.numbers)
        self.slots[number] = CachedText(row, len(prompt), number, prompt[:reused])
        self.tokens_reused += reused
        return OpenedSlot(number, prompt[reused:], reused)

    def count_cached(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of a prompt `open` would find in the cache."""
        return find_longest_prefix([*self.slots.values(), *self.kept.texts], list(prompt))[1]

    def take_prefix(self, source: CachedText, length: int) -> int:
        """Return a row that begins with a prefix of a text in the cache. A kept text that is no longer than the prefix,
        or that is the only one whose row can be freed, gives its own.
        """
        self.kept.touch(source)
        if source in self.kept.texts and source.length == length:
            self.kept.texts.remove(source)
            return source.row
        row = self.find_free_row()
        if row != source.row:
            self.cache.copy_rows([source.row], [row], length)
        return row

    def find_free_row(self) -> int:
        """Return a row that neither a slot nor a kept text has, after dropping the oldest kept text if there are as
        many texts as there may be.
        """
        if len(self.slots) + len(self.kept.texts) >= self.bounds.rows:
            self.kept.drop_oldest()
        taken = {text.row for text in (*self.slots.values(), *self.kept.texts)}
        return next(row for row in count() if row not in taken)

    def commit(self, slot: int, kept: Sequence[int]) -> None:
        """Move the accepted draft tokens behind the text, and hide the others."""
        text = self.slots[slot]
        if any(node != place for place, node in enumerate(kept)):
            start = text.length + len(text.fed)
            with torch.inference_mode(), self.threads():
                self.cache.copy_positions(text.row, [start + node for node in kept], start)
        text.commit(kept)

    @torch.inference_mode()
    def share(self, slot: int) -> int:
        """Copy the row of a slot to that of a new one."""
        text = self.slots[slot]
        row = self.find_free_row()
        with self.threads():
            self.cache.copy_rows([text.row], [row], text.extent)
        number = next(self.numbers)
        self.slots[number] = replace(text, row=row, tokens=text.tokens.copy())
        return number

    def rewind(self, slot: int, kept: int = 0) -> None:
        """Hide everything after the prompt and the tokens that are kept."""
        self.slots[slot].rewind(kept)

    @torch.inference_mode()
    def release(self, slot: int) -> None:
        """Free the row of a slot, or keep its text."""
        text = self.slots.pop(slot)
        self.may_shrink = True
        if not text.is_finite:
            with self.threads():
                self.cache.clear_row(text.row)
        elif text.is_intact:
            text.commit(())
            self.kept.add(text)
        if not self.slots:
            try:
                self.shrink()
            except (RuntimeError, MemoryError):  # no memory to move texts that only might be of use
                self.clear()

    def shrink(self) -> None:
        """Drop kept texts and reduce the cache to what `CacheBounds` say. No step may be uncommitted."""
        self.may_shrink = False
        live = measure_texts(self.slots.values())
        while self.kept.texts and self.cache.count_bytes(*self.measure()) > max(
            self.bounds.bytes, self.cache.count_bytes(*live)
        ):
            self.kept.drop_oldest()
        needed = self.cache.count_bytes(*self.measure())
        allocated = self.cache.count_bytes(self.cache.height, self.cache.length)
        if allocated > self.bounds.bytes and (allocated > 2 * needed or not self.slots):
            self.arrange_rows([])
            self.cache.shrink(*self.measure())

    def measure(self) -> tuple[int, int]:
        """Return how many rows and positions all texts in the cache need."""
        return measure_texts((*self.slots.values(), *self.kept.texts))

    def count_positions_left(self, prompt: Sequence[int]) -> int | None:
        """Return how many tokens fit after a prompt, for models with learnt position embeddings; otherwise None."""
        return None if self.limit is None else self.limit - len(prompt) + 1

    def estimate_cost(self, widths: Sequence[int]) -> float:
        """Return the cost of a step whose rows have these numbers of tokens, in tokens."""
        groups = divide_widths(widths, self.pass_tokens)
        return sum(len(group) * max(widths[index] for index in group) + self.pass_tokens for group in groups)

    def restart(self) -> bool:
        """Start anew in a forked process. Return whether the model is on the CPU: CUDA cannot be used after a fork."""
        works: bool = self.device.type == "cpu"
        if works:
            self.worker = ThreadPoolExecutor(1, thread_name_prefix="constrain-model")
            self.clear()
        return works

    def close(self) -> None:
        """Wait for a running pass and free the cache."""
        self.worker.shutdown()
        self.clear()

    def clear(self) -> None:
        """Free the cache and all slots."""
        self.cache, self.kept = SlotCache(), KeptTexts(self.bounds.texts)
        self.slots.clear()

    # ---- steps ------------------------------------------------------------------------------------------------------

    def start(self, steps: Sequence[RowStep]) -> TransformersStep | DelayedStep:
        """Start the passes of a step in the thread of the runner; those of a small model run when they are waited for.

        They are mostly Python code, which cannot run beside the caller's: a thread would only cost its wake-ups.
        """
        if self.is_small:
            return DelayedStep(self, list(steps))
        return TransformersStep(self.worker.submit(self.run_step, list(steps)))

    @torch.inference_mode()
    def run_step(self, steps: list[RowStep]) -> list[LogprobRows]:
        """Run all passes of a step; return the rows of each RowStep."""
        found: list[LogprobRows] = [np.zeros((0, self.width), np.float32)] * len(steps)
        if self.may_shrink:
            self.shrink()
        if not all(self.slots[step.slot].is_intact for step in steps):
            raise ConstrainError(
                "the keys and values of a text were lost by an error in an earlier step", hint="Repeat the call."
            )
        with self.threads():
            groups = divide_widths([len(step.feed) + len(step.draft) for step in steps], self.pass_tokens)
            self.arrange_rows([[self.slots[steps[index].slot] for index in group] for group in groups])
            for group in groups:
                group.sort(key=lambda index: self.slots[steps[index].slot].row)
                for index, rows in zip(group, self.run_pass([steps[index] for index in group])):
                    found[index] = rows
        return found

    def arrange_rows(self, groups: Sequence[Sequence[CachedText]]) -> None:
        """Move texts so that each group has a range of rows, one group after the other, and all others come last.

        Texts that are in the range of their group stay where they are.
        """
        if len(groups) == 1 and {text.row for text in groups[0]} == set(range(len(groups[0]))):
            return
        listed = {id(text) for group in groups for text in group}
        others = [text for text in (*self.slots.values(), *self.kept.texts) if id(text) not in listed]
        moved: list[tuple[CachedText, int]] = []
        first = 0
        for group in [*groups, others]:
            rows = range(first, first + len(group))
            free = sorted(set(rows) - {text.row for text in group})
            moved += zip([text for text in group if text.row not in rows], free)
            first = rows.stop
        if moved:
            length = max(text.length for text, _ in moved)
            for text, _ in moved:
                text.is_intact = False
            self.cache.copy_rows([text.row for text, _ in moved], [row for _, row in moved], length)
            for text, row in moved:
                text.row, text.is_intact = row, True

    def run_pass(self, steps: Sequence[RowStep]) -> list[LogprobRows]:
        """Run one forward pass over rows that lie side by side; return the rows of each RowStep."""
        texts = [self.slots[step.slot] for step in steps]
        starts = [text.length for text in texts]
        width = max(len(step.feed) + len(step.draft) for step in steps)
        self.cache.place(texts[0].row, starts, width, self.device)
        depths = [[*range(len(step.feed)), *(len(step.feed) + d for d in step.draft.depths)] for step in steps]
        positions = list_positions(starts, depths, width, self.limit).to(self.device)
        if width == 1 and self.cache.common_start is not None and self.kinds.is_causal:
            masks = None  # the new token of each row attends to all that is visible
        else:
            parents = [list_parents(step) for step in steps]
            masks = make_attention_masks(self.kinds, starts, parents, positions, self.dtype)
        columns = [0] if width == 1 else list_columns(steps)
        logits = self.call_model(fill_tokens(steps, width).to(self.device), positions, masks, columns)
        for step, text in zip(steps, texts):
            text.fed, text.draft = step.feed, step.draft
        return self.split_logits(steps, texts, logits, columns)

    def call_model(self, tokens: torch.Tensor, positions: torch.Tensor, masks: Any, columns: list[int]) -> torch.Tensor:
        """Return logits [rows, len(columns), V] at some columns of a pass."""
        self.passes, self.tokens_fed = self.passes + 1, self.tokens_fed + tokens.numel()
        whole = len(columns) == tokens.shape[1]
        kept = {"logits_to_keep": torch.tensor(columns, device=self.device)} if self.keeps_logits and not whole else {}
        out = self.model(
            input_ids=tokens, attention_mask=masks, position_ids=positions, use_cache=True, return_dict=True,
            **{self.cache_argument: self.cache}, **kept,
        )  # fmt: skip
        logits: torch.Tensor = out.logits
        return logits if logits.shape[1] == len(columns) else logits[:, columns]

    def split_logits(
        self, steps: Sequence[RowStep], texts: Sequence[CachedText], logits: torch.Tensor, columns: list[int]
    ) -> list[LogprobRows]:
        """Return the log-probabilities of each RowStep."""
        if logits.shape[-1] < self.width:
            raise ConstrainError(
                f"the model produces {logits.shape[-1]} logits for a vocabulary of {self.width} tokens"
            )
        counts = [len(list_wanted(step)) for step in steps]
        if sum(counts) < logits.shape[0] * logits.shape[1]:
            place = {column: index for index, column in enumerate(columns)}
            chosen = [(row, place[column]) for row, step in enumerate(steps) for column in list_wanted(step)]
            rows, at = torch.tensor(chosen, dtype=torch.long, device=logits.device).reshape(-1, 2).unbind(1)
            logits = logits[rows, at]
        scores = logits.reshape(-1, logits.shape[-1]).float()
        asked = {step.rows for step in steps}
        logit_parts = self.split_rows(scores, counts) if "logits" in asked else None
        parts = self.split_rows(torch.log_softmax(scores, -1), counts) if "logprobs" in asked else None
        if parts is None or logit_parts is None:
            found = parts or logit_parts or self.split_rows(scores, counts)
        else:
            found = [one if step.rows == "logits" else part for step, one, part in zip(steps, logit_parts, parts)]
        for text, part in zip(texts, found):
            text.is_finite = text.is_finite and not any(map(isnan, part[:, 0].tolist()))
        return found

    def split_rows(self, scores: torch.Tensor, counts: Sequence[int]) -> list[LogprobRows]:
        """Return the rows of each step, given how many each has, without padding columns."""
        rows: LogprobRows = scores.cpu().numpy()[:, : self.width]
        ends = [*accumulate(counts)]
        return [rows[end - count : end] for count, end in zip(counts, ends)]


@dataclass(frozen=True, slots=True)
class TransformersStep:
    """A step of a TransformersRunner."""

    future: Future[list[LogprobRows]]

    def wait(self) -> list[LogprobRows]:
        """Return the rows of each RowStep."""
        return self.future.result()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the passes at most so long; return whether they have ended."""
        return self.future.done() or bool(wait([self.future], seconds).done)


@dataclass(frozen=True, slots=True)
class DelayedStep:
    """A step of a TransformersRunner that runs in the thread that waits for it."""

    runner: TransformersRunner
    steps: list[RowStep]

    def wait(self) -> list[LogprobRows]:
        """Run the passes and return the rows of each RowStep."""
        rows: list[LogprobRows] = self.runner.run_step(self.steps)
        return rows

    def ends_within(self, seconds: float) -> bool:
        """Return True: the passes run in `wait`."""
        return True


def measure_texts(texts: Iterable[CachedText]) -> tuple[int, int]:
    """Return how many rows and positions these texts need."""
    extents = [text.extent for text in texts]
    return len(extents), max(extents, default=0)


def divide_widths(widths: Sequence[int], pass_tokens: int) -> list[list[int]]:
    """Divide rows of these widths (numbers of tokens) into passes of similar ones. Return the indices of each pass.

    A pass of n rows costs n * (the width of its widest row) + pass_tokens. Rows are sorted by width and divided where
    that reduces the cost.
    """
    if len(set(widths)) == 1:
        return [list(range(len(widths)))]

    def divide(order: list[int]) -> list[list[int]]:
        whole = len(order) * widths[order[-1]]
        costs = [k * widths[order[k - 1]] + (len(order) - k) * widths[order[-1]] for k in range(1, len(order))]
        if not costs or min(costs) + pass_tokens >= whole:
            return [sorted(order)]
        k = costs.index(min(costs)) + 1
        return divide(order[:k]) + divide(order[k:])

    return divide(sorted(range(len(widths)), key=widths.__getitem__))


def list_parents(step: RowStep) -> list[int]:
    """Return the parent of each token of a step, -1 for the first; the fed tokens are a chain before the draft."""
    fed = len(step.feed)
    return [*range(-1, fed - 1), *(fed + parent for parent in step.draft.parents)]


def list_wanted(step: RowStep) -> range:
    """Return the columns whose rows a step asks for."""
    fed = len(step.feed)
    return range(fed - 1, fed + len(step.draft)) if step.rows != "none" else range(0)


def list_columns(steps: Sequence[RowStep]) -> list[int]:
    """Return the columns of a pass whose logits are needed, at least one."""
    return sorted({column for step in steps for column in list_wanted(step)}) or [0]


def fill_tokens(steps: Sequence[RowStep], width: int) -> torch.Tensor:
    """Return the tokens int64 [rows, width] of a pass; shorter rows repeat their last token."""
    rows = [[*step.feed, *step.draft.tokens] for step in steps]
    return torch.tensor([row + row[-1:] * (width - len(row)) for row in rows])
