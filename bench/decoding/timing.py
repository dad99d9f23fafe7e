"""Time generation with our Engine, and with transformers' `model.generate` and a peer, after the same prompts.

Every run generates an exact number of tokens, or ends where the constraint ends. Runs that are compared alternate, so
that a change in the speed of the machine affects both.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

__all__ = [
    "Run",
    "compute_rate",
    "generate_free",
    "generate_ours",
    "generate_theirs",
    "compute_median_ratio",
    "open_free_engine",
]


class Run(NamedTuple):
    """One generated text. tokens: their number, with the end token. seconds: of the call. ids: without the end token.
    passes, model_seconds: forward passes and their time, of our Engine only.
    """

    tokens: int
    seconds: float
    ids: tuple[int, ...] = ()
    passes: int = 0
    model_seconds: float = 0.0


def generate_ours(engine: Any, prompt: Any, *, max_tokens: int, seed: int, **options: Any) -> Run:
    """Run one call of `Engine.generate` for one text."""
    start = perf_counter()
    made = engine.generate(prompt, max_tokens=max_tokens, seed=seed, **options)
    seconds = perf_counter() - start
    stats = made.stats
    return Run(stats.tokens, seconds, tuple(made.tokens), stats.model_calls, stats.model_us_total / 1e6)


def open_free_engine(loaded: Any) -> Any:
    """Return an Engine on the same model whose end token is a special token that the model does not generate, so that
    an unconstrained text has exactly max_tokens tokens.
    """
    import constrain

    vocabulary = loaded.vocabulary
    unwritten = next(token for token in vocabulary.special.values() if token not in vocabulary.eos_ids)
    ends = constrain.Vocabulary.from_tokens(vocabulary.tokens, [unwritten], special=vocabulary.special)
    return constrain.Engine(loaded.model, ends)


def generate_free(engine: Any, prompt: Any, *, tokens: int, seed: int) -> Run:
    """Generate a text of exactly `tokens` tokens without a constraint. engine: of `open_free_engine`."""
    run = generate_ours(engine, prompt, max_tokens=tokens, seed=seed, draft="none")
    if run.tokens != tokens:
        raise ValueError(f"the unconstrained text has {run.tokens} tokens, not {tokens}")
    return run


def generate_theirs(loaded: Any, ids: Sequence[int], *, max_tokens: int, seed: int, processor: Any = None) -> Run:
    """Sample a text at temperature 1 with transformers' `model.generate`; without a processor, of
    exactly max_tokens tokens.
    """
    import torch

    torch.manual_seed(seed)
    ends = list(loaded.vocabulary.eos_ids)
    inputs = torch.tensor([list(ids)], device=loaded.model.device)
    options: dict[str, Any] = {"max_new_tokens": max_tokens, "do_sample": True, "top_k": 0, "pad_token_id": ends[0]}
    if processor is None:
        options |= {"min_new_tokens": max_tokens}
    else:
        options |= {"logits_processor": [processor]}
    start = perf_counter()
    out = loaded.model.generate(inputs, attention_mask=torch.ones_like(inputs), eos_token_id=ends, **options)
    seconds = perf_counter() - start
    written = tuple(out[0, len(ids) :].tolist())
    kept = tuple(token for token in written if token not in ends)
    return Run(len(written), seconds, kept)


def compute_rate(runs: Sequence[Run]) -> float:
    """Return tokens per second over all runs."""
    return sum(run.tokens for run in runs) / sum(run.seconds for run in runs)


def compute_median_ratio(ours: Sequence[Run], base: Sequence[Run]) -> float:
    """Return the median over pairs of runs of the ratio of their tokens per second."""
    from statistics import median

    return median((a.tokens / a.seconds) / (b.tokens / b.seconds) for a, b in zip(ours, base))
