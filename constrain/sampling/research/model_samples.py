"""Texts of a model to learn another one from: sampled in batches, with or without a constraint, with what it refused.

With a constraint, texts are drawn by masking, so they are where the constraint needs a good model even if it is
unlikely. What masking hides is kept beside them: for each token of a text, a token that the model would have written
though it is not allowed, and the mass 1 - z of all of these, where z is the mass that the mask leaves. A model that is
fitted to both knows how readily texts leave the constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, check_type, describe_value
from ...base.extensions import find_extension
from ..core.language_model import LanguageModel, rows_after
from ..core.masked_sampling import Proposal, allowed_tokens, pick_token
from ..core.results import log_sum
from ..core.sampler_arguments import check_constraint, check_counts, check_masks

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["ModelSamples", "RowReader", "sample_model"]

NONE = -1
RowReader = Callable[[list[int], NDArray[np.floating[Any]]], None]
"""Called with the tokens before each position, and the model's row there (float [V], natural logs)."""


@dataclass(frozen=True)
class ModelSamples:
    """Texts of a model.

    size: of the vocabulary. texts: tokens, an end token last in those that ended in time. For each token of a text:
    refused, the token that was refused, or -1; leaks, the mass of all that were; positions, the number of the state of
    the constraint before it, in the order in which they came up, 0 without a constraint.
    """

    size: int
    texts: list[list[int]] = field(default_factory=list)
    refused: list[list[int]] = field(default_factory=list)
    leaks: list[list[float]] = field(default_factory=list)
    positions: list[list[int]] = field(default_factory=list)


def sample_model(
    model: Any,
    constraint: Constraint | None = None,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    tokenizer: Any = None,
    prompts: Sequence[Any] = (None,),
    temperature: float = 1.0,
    batch: int = 32,
    read_row: RowReader | None = None,
) -> ModelSamples:
    """Sample texts of a model.

    Parameters
    ----------
    model : "demo", folder, hub id, transformers model or LanguageModel
        Everything that `generate` takes as a model of this process. It runs on its own device.
    constraint : Constraint, optional
        What the texts must satisfy. It must be of the model's vocabulary.
    n : int
        Number of texts of each prompt.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Maximum number of tokens of a text; a text that has not ended by then is cut there.
    tokenizer : optional
        The tokenizer of a transformers model, if it was not given by its name. A LanguageModel needs its Vocabulary
        here unless there is a constraint.
    prompts : sequence
        Texts (used unchanged), lists of chat messages or of token ids; None for no prompt, which is all that a
        LanguageModel takes.
    temperature : float
        Divides the log-probabilities that texts are drawn by. What is read of the rows is the model's own.
    batch : int
        Number of texts that are written in step, one call of the model for each of their tokens.
    read_row : callable, optional
        Is called with every row of the model, see RowReader.

    Returns
    -------
    ModelSamples
    """
    check_counts(1, n=n, max_tokens=max_tokens, batch=batch)
    check_type("rng", rng, np.random.Generator, "give numpy.random.default_rng(seed)")
    if constraint is not None:
        check_constraint(constraint)
        check_masks(constraint, "distil")
    if not isinstance(prompts, Sequence):
        raise TypeError(f"prompts is {describe_value(prompts)}: give a list; [None] stands for no prompt")
    if isinstance(prompts, (str, bytes)) or not len(prompts):
        raise ArgumentError("prompts must be a list with at least one prompt", hint="[None] stands for no prompt.")
    if tokenizer is None and constraint is not None and isinstance(model, LanguageModel):
        tokenizer = constraint.vocabulary
    proposal, samples, numbers = Proposal(temperature=temperature), None, dict[tuple[int, int], int]()
    for lm, vocabulary in find_extension("open_models")(model, tokenizer, prompts):
        if constraint is not None and constraint.vocabulary.size != vocabulary.size:
            raise ArgumentError(
                f"the constraint is of a vocabulary of {constraint.vocabulary.size} tokens, the model's has "
                f"{vocabulary.size}"
            )
        samples = samples or ModelSamples(vocabulary.size)
        for at in range(0, n, batch):
            count = min(batch, n - at)
            group = [_Text(vocabulary, None if constraint is None else constraint.matcher()) for _ in range(count)]
            _write_group(lm, group, max_tokens, proposal, rng, read_row)
            for text in group:
                samples.texts.append(text.tokens)
                samples.refused.append(text.refused)
                samples.leaks.append(text.leaks)
                samples.positions.append([numbers.setdefault(state, len(numbers)) for state in text.states])
    assert samples is not None
    return samples


def _write_group(
    lm: LanguageModel, group: list[_Text], max_tokens: int, proposal: Proposal, rng: np.random.Generator,
    read_row: RowReader | None,
) -> None:  # fmt: skip
    """Write texts in step, one token each per call of the model."""
    live = group
    for _ in range(max_tokens):
        rows = rows_after(lm, [text.tokens for text in live], live[0].size)
        for text, row in zip(live, rows):
            if read_row is not None:
                read_row(text.tokens, row[: text.size])
            text.extend(row[: text.size], proposal, rng)
        live = [text for text in live if not text.ended]
        if not live:
            return


class _Text:
    """One text while it is written."""

    def __init__(self, vocabulary: Any, matcher: Matcher | None) -> None:
        self.size, self.ends, self.matcher, self.ended = vocabulary.size, vocabulary.eos_ids, matcher, False
        self.tokens, self.refused, self.leaks = list[int](), list[int](), list[float]()
        self.states = list[tuple[int, int]]()

    def extend(self, row: NDArray[np.floating[Any]], proposal: Proposal, rng: np.random.Generator) -> None:
        """Draw a token by the model's row (float [V]). All end tokens are written as the first of them."""
        allowed = np.arange(self.size) if self.matcher is None else allowed_tokens(self.matcher.mask())
        if not len(allowed):  # a constraint that the vocabulary cannot spell
            self.ended = True
            return
        refused, leak = self._draw_refused(row, allowed, rng)
        token = pick_token(row, allowed, rng, proposal, self.ends).token
        self.ended = token in self.ends
        self.states.append((0, 0) if self.matcher is None else self.matcher.state)
        self.tokens.append(self.ends[0] if self.ended else token)
        self.refused.append(refused)
        self.leaks.append(leak)
        if not self.ended and self.matcher is not None:
            self.matcher.advance(token)

    def _draw_refused(
        self, row: NDArray[np.floating[Any]], allowed: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[int, float]:
        """Draw one of the tokens that are not allowed; return it and the mass of all, NONE and 0 if they have none."""
        outside = row.astype(np.float64)
        mass = log_sum(outside[allowed])
        outside[allowed] = -np.inf
        total = log_sum(outside)
        if total == -np.inf:
            return NONE, 0.0
        weights = np.exp(outside - total).cumsum()
        token = min(int(np.searchsorted(weights, rng.random() * weights[-1], side="right")), self.size - 1)
        return self.ends[0] if token in self.ends else token, float(np.exp(total - np.logaddexp(total, mass)))
