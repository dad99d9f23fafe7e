"""A `ModelRunner` for any `LanguageModel`: a slot is a list of tokens, and a step is a call of `next_logprobs`.

Models with a cache of their own, such as `integrations.model_cache.PromptedModel`, find the prefixes that they know in
it. The samples of one prompt use one model object, whose call they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from ..sampling.core.language_model import LanguageModel, rows_after
from ..speculation.draft_source import list_paths
from .model_runner import LogprobRows, OpenedSlot, RowStep

__all__ = ["LanguageModelRunner"]


@dataclass(slots=True)
class TextSlot:
    """A text after its prompt: the model, the tokens so far, and those of the last draft."""

    model: Any
    tokens: list[int] = field(default_factory=list)
    draft: Sequence[int] = ()


class LanguageModelRunner:
    """A `ModelRunner` for LanguageModels, which run in the thread that waits for a step.

    Parameters
    ----------
    after_prompt : callable
        Returns the LanguageModel after a prompt (token ids).
    size : int
        The size of the vocabulary.
    """

    def __init__(self, after_prompt: Callable[[Sequence[int]], LanguageModel], size: int) -> None:
        self.after_prompt, self.size = after_prompt, size
        self.slots: dict[int, TextSlot] = {}
        self.numbers = count()

    def open(self, prompt: Sequence[int]) -> OpenedSlot:
        """Return a new slot; nothing of the prompt has to be fed."""
        return OpenedSlot(self.add(TextSlot(self.after_prompt(prompt))), ())

    def count_cached(self, prompt: Sequence[int]) -> int:
        """Return 0: the models have caches of their own."""
        return 0

    def add(self, text: TextSlot) -> int:
        """Return the number of a new slot."""
        slot = next(self.numbers)
        self.slots[slot] = text
        return slot

    def start(self, steps: Sequence[RowStep]) -> LanguageModelStep:
        """Return a step whose model calls are made when it is waited for."""
        return LanguageModelStep(self, steps)

    def commit(self, slot: int, kept: Sequence[int]) -> None:
        """Append the accepted draft tokens."""
        text = self.slots[slot]
        text.tokens += [text.draft[node] for node in kept]
        text.draft = ()

    def share(self, slot: int) -> int:
        """Return a new slot with the same text and model."""
        text = self.slots[slot]
        return self.add(TextSlot(text.model, text.tokens.copy(), text.draft))

    def rewind(self, slot: int, kept: int = 0) -> None:
        """Remove all tokens but the first ones."""
        text = self.slots[slot]
        self.slots[slot] = TextSlot(text.model, text.tokens[:kept])

    def release(self, slot: int) -> None:
        """Forget the text."""
        del self.slots[slot]

    def count_positions_left(self, prompt: Sequence[int]) -> int | None:
        """Return the attribute `max_new_tokens` of the model, if it has one."""
        left: int | None = getattr(self.after_prompt(prompt), "max_new_tokens", None)
        return left

    def estimate_cost(self, widths: Sequence[int]) -> float:
        """Return 1: a step is one call of each model, however many rows it asks for."""
        return 1.0

    def restart(self) -> bool:
        """Forget all texts; return True."""
        self.slots.clear()
        return True

    def close(self) -> None:
        """Forget all texts."""
        self.slots.clear()


@dataclass(frozen=True, slots=True)
class LanguageModelStep:
    """A step of a LanguageModelRunner."""

    runner: LanguageModelRunner
    steps: Sequence[RowStep]

    def wait(self) -> list[LogprobRows]:
        """Call each model once, for all of its texts, and return the rows of each RowStep."""
        prefixes = [self.extend(step) for step in self.steps]
        by_model: dict[tuple[int, bool], list[int]] = {}
        for index, step in enumerate(self.steps):
            model = self.runner.slots[step.slot].model
            by_logits = step.rows == "logits" and hasattr(model, "next_logits")
            by_model.setdefault((id(model), by_logits), []).append(index)
        found: list[LogprobRows] = [np.zeros((0, self.runner.size))] * len(self.steps)
        for (_, by_logits), members in by_model.items():
            model = self.runner.slots[self.steps[members[0]].slot].model
            asked = [prefix for index in members for prefix in prefixes[index]]
            rows = model.next_logits(asked) if by_logits else rows_after(model, asked, self.runner.size)
            edges = np.cumsum([len(prefixes[index]) for index in members])[:-1]
            for index, part in zip(members, np.split(rows, edges)):
                found[index] = part
        return found

    def ends_within(self, seconds: float) -> bool:
        """Return True: the models run in `wait`."""
        return True

    def extend(self, step: RowStep) -> list[list[int]]:
        """Append the new tokens of a step; return the prefixes whose rows it asks for."""
        text, draft = self.runner.slots[step.slot], step.draft
        text.tokens += step.feed
        text.draft = draft.tokens
        if step.rows == "none":
            return []
        return list_paths(text.tokens, draft)
