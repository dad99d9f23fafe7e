"""A causal model of transformers as a `ModelRunner`: one batch over a `SlotCache`, and tree drafts in the same pass.

The rows of a step are divided into passes so that little is padded: a step of 31 rows that feed one token and one row
that feeds forty is two passes. Each pass works on a contiguous range of rows of the cache; a slot is a number that
stays, and its row may change between passes. Passes run in a thread of the runner, so that the caller computes masks
meanwhile (torch releases the interpreter lock).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch

from ..base.errors import ConstrainError
from ..decoding.model_runner import LogprobRows, OpenedSlot, RowStep
from .attention_masks import AttentionKinds, list_positions, make_attention_masks
from .context_length import count_positions
from .model_cache import SMALL, one_thread
from .slot_cache import SlotCache

__all__ = ["TransformersRunner"]

PASS_TOKENS = {"cpu": 64, "cuda": 256}
"""About how many tokens cost as much as a forward pass costs besides its tokens."""


@dataclass(slots=True)
class CachedText:
    """What the cache holds of a slot.

    row: its row. length: committed tokens. prompt: how many of them belong to the prompt. fed: tokens of the last step,
    without its draft. drafted: tokens of its draft. is_finite: whether all its rows were.
    """

    row: int
    prompt: int
    length: int = 0
    fed: int = 0
    drafted: int = 0
    is_finite: bool = True


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

    Attributes
    ----------
    passes, tokens_fed : int
        Forward passes so far, and tokens fed to them, padding included.
    """

    def __init__(self, model: Any, width: int, kinds: AttentionKinds) -> None:
        self.model, self.width, self.kinds = model, width, kinds
        weight = model.get_input_embeddings().weight
        self.device, self.dtype = weight.device, weight.dtype
        small = self.device.type == "cpu" and sum(part.numel() for part in model.parameters()) < SMALL
        self.threads: Callable[[], AbstractContextManager[None]] = one_thread if small else nullcontext
        self.limit = count_positions(model)
        self.keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.pass_tokens = PASS_TOKENS.get(self.device.type, 256)
        self.cache = SlotCache()
        self.slots: dict[int, CachedText] = {}
        self.numbers = count()
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="constrain-model")
        self.passes = self.tokens_fed = 0

    # ---- slots ------------------------------------------------------------------------------------------------------

    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        """Return a new slot; the whole prompt has to be fed."""
        return OpenedSlot(self.add(CachedText(self.find_free_row(), len(prompt))), prompt)

    def add(self, text: CachedText) -> int:
        """Return the number of a new slot."""
        slot = next(self.numbers)
        self.slots[slot] = text
        return slot

    def find_free_row(self) -> int:
        """Return the first row of the cache that no slot has."""
        taken = {text.row for text in self.slots.values()}
        return next(row for row in count() if row not in taken)

    @torch.inference_mode()
    def commit(self, slot: int, kept: Sequence[int]) -> None:
        """Move the accepted draft tokens behind the text, and hide the others."""
        text = self.slots[slot]
        start = text.length + text.fed
        if list(kept) != list(range(len(kept))):
            self.cache.copy_positions(text.row, [start + node for node in kept], start)
        text.length, text.fed, text.drafted = start + len(kept), 0, 0

    @torch.inference_mode()
    def share(self, slot: int) -> int:
        """Copy the row of a slot to that of a new one."""
        text = self.slots[slot]
        row = self.find_free_row()
        self.cache.copy_rows([text.row], [row], text.length + text.fed + text.drafted)
        return self.add(CachedText(row, text.prompt, text.length, text.fed, text.drafted, text.is_finite))

    def rewind(self, slot: int) -> None:
        """Hide everything after the prompt."""
        text = self.slots[slot]
        text.length, text.fed, text.drafted = text.prompt, 0, 0

    @torch.inference_mode()
    def release(self, slot: int) -> None:
        """Free the row of a slot."""
        text = self.slots.pop(slot)
        if not text.is_finite:
            self.cache.clear_row(text.row)

    def count_positions_left(self, prompt: Sequence[int]) -> int | None:
        """Return how many tokens fit after a prompt, for models with learnt position embeddings; otherwise None."""
        return None if self.limit is None else self.limit - len(prompt) + 1

    def close(self) -> None:
        """Wait for a running pass and free the cache."""
        self.worker.shutdown()
        self.cache = SlotCache()
        self.slots.clear()

    # ---- steps ------------------------------------------------------------------------------------------------------

    def start(self, steps: Sequence[RowStep]) -> TransformersStep:
        """Start the passes of a step in the thread of the runner."""
        return TransformersStep(self.worker.submit(self.run_step, list(steps)))

    @torch.inference_mode()
    def run_step(self, steps: list[RowStep]) -> list[LogprobRows]:
        """Run all passes of a step; return the rows of each RowStep."""
        found: list[LogprobRows] = [np.zeros((0, self.width), np.float32)] * len(steps)
        with self.threads():
            groups = divide_steps(steps, self.pass_tokens)
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
        listed = {id(text) for group in groups for text in group}
        others = [text for text in self.slots.values() if id(text) not in listed]
        moved: list[tuple[CachedText, int]] = []
        first = 0
        for group in [*groups, others]:
            rows = range(first, first + len(group))
            free = sorted(set(rows) - {text.row for text in group})
            moved += zip([text for text in group if text.row not in rows], free)
            first = rows.stop
        if moved:
            length = max(text.length for text, _ in moved)
            self.cache.copy_rows([text.row for text, _ in moved], [row for _, row in moved], length)
            for text, row in moved:
                text.row = row

    def run_pass(self, steps: Sequence[RowStep]) -> list[LogprobRows]:
        """Run one forward pass over rows that lie side by side; return the rows of each RowStep."""
        texts = [self.slots[step.slot] for step in steps]
        starts = [text.length for text in texts]
        parents = [list_parents(step) for step in steps]
        width = max(map(len, parents))
        self.cache.place(texts[0].row, starts, width, self.device)
        depths = [[*range(len(step.feed)), *(len(step.feed) + d for d in step.draft.depths)] for step in steps]
        positions = list_positions(starts, depths, width)
        if self.limit is not None:  # of tokens that only fill a row
            positions.clamp_(max=self.limit - 1)
        positions = positions.to(self.device)
        masks = make_attention_masks(self.kinds, starts, parents, positions, self.dtype)
        columns = list_columns(steps)
        logits = self.call_model(fill_tokens(steps, width).to(self.device), positions, masks, columns)
        for step, text in zip(steps, texts):
            text.fed, text.drafted = len(step.feed), len(step.draft)
        return self.split_logits(steps, texts, logits, columns)

    def call_model(self, tokens: torch.Tensor, positions: torch.Tensor, masks: Any, columns: list[int]) -> torch.Tensor:
        """Return logits [rows, len(columns), V] at some columns of a pass."""
        self.passes, self.tokens_fed = self.passes + 1, self.tokens_fed + tokens.numel()
        whole = len(columns) == tokens.shape[1]
        kept = {"logits_to_keep": torch.tensor(columns, device=self.device)} if self.keeps_logits and not whole else {}
        out = self.model(
            input_ids=tokens, attention_mask=masks, position_ids=positions, past_key_values=self.cache, use_cache=True,
            return_dict=True, **kept,
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
        place = {column: index for index, column in enumerate(columns)}
        chosen = [(row, place[column]) for row, step in enumerate(steps) for column in list_wanted(step)]
        if len(chosen) < logits.shape[0] * logits.shape[1]:
            rows, at = torch.tensor(chosen, dtype=torch.long, device=logits.device).reshape(-1, 2).unbind(1)
            logits = logits[rows, at]
        scores = logits.reshape(-1, logits.shape[-1]).float()
        counts = [len(list_wanted(step)) for step in steps]
        parts = self.split_rows(scores, counts)
        if any(step.rows == "logprobs" for step in steps):
            normalised = self.split_rows(torch.log_softmax(scores, -1), counts)
            parts = [part if step.rows == "logits" else one for step, part, one in zip(steps, parts, normalised)]
        for text, part in zip(texts, parts):
            text.is_finite = text.is_finite and not np.isnan(part[:, 0]).any()
        return parts

    def split_rows(self, scores: torch.Tensor, counts: Sequence[int]) -> list[LogprobRows]:
        """Return the rows of each step, given how many each has, without padding columns."""
        rows: LogprobRows = scores.cpu().numpy()[:, : self.width]
        return np.split(rows, np.cumsum(counts)[:-1])


@dataclass(frozen=True, slots=True)
class TransformersStep:
    """A step of a TransformersRunner."""

    future: Future[list[LogprobRows]]

    def wait(self) -> list[LogprobRows]:
        """Return the rows of each RowStep."""
        return self.future.result()


def divide_steps(steps: Sequence[RowStep], pass_tokens: int) -> list[list[int]]:
    """Divide steps into passes of similar widths. Return the indices of each pass.

    A pass of n rows costs n * (the width of its widest row) + pass_tokens. Rows are sorted by width and divided where
    that reduces the cost.
    """
    widths = [len(step.feed) + len(step.draft) for step in steps]
    if len(set(widths)) == 1:
        return [list(range(len(steps)))]

    def divide(order: list[int]) -> list[list[int]]:
        whole = len(order) * widths[order[-1]]
        costs = [k * widths[order[k - 1]] + (len(order) - k) * widths[order[-1]] for k in range(1, len(order))]
        if not costs or min(costs) + pass_tokens >= whole:
            return [sorted(order)]
        k = costs.index(min(costs)) + 1
        return divide(order[:k]) + divide(order[k:])

    return divide(sorted(range(len(steps)), key=widths.__getitem__))


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
