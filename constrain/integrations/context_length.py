"""The context of a transformers model: how many positions it has for prompt and text together.

    learnt position embeddings (GPT-2, OPT, BART)      the size of the table; a position beyond it does not exist
    rotary embeddings (Llama, Qwen, Gemma ...)         config.max_position_embeddings, beyond which it was not trained
    relative biases, ALiBi, recurrent models           no limit

Scaled rotary embeddings: a factor of `rope_parameters` that extends the context counts, unless it is included already
(llama3, longrope). A sliding window limits what a position attends to, and not how many positions there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import LimitError

__all__ = ["check_least_length", "check_prompt_length", "count_positions", "is_beyond_context"]

INCLUDED = {"default", "llama3", "longrope", "su", "mrope", "proportional"}
"""Types of rotary embeddings whose factor max_position_embeddings includes."""


def count_positions(model: Any) -> int | None:
    """Return the number of positions of a transformers model, or None if there is no limit."""
    config = model.config.get_text_config(decoder=True)
    positions = getattr(config, "max_position_embeddings", None)
    for name, part in model.named_modules():
        last = name.rpartition(".")[2]
        if hasattr(part, "num_embeddings") and (last == "wpe" or "position" in last):
            return int(positions or part.num_embeddings)
    if getattr(config, "alibi", False) or getattr(model, "_is_stateful", False):
        return None
    if not isinstance(positions, int) or positions < 1:
        return None
    return scale_positions(positions, getattr(config, "rope_parameters", None) or {})


def scale_positions(positions: int, parameters: Mapping[str, Any]) -> int:
    """Return the number of positions after the scaling that `rope_parameters` describe, for all layers or by type."""
    by_type = [part for part in parameters.values() if isinstance(part, Mapping)]
    return max(scale_by(positions, part) for part in by_type or [parameters])


def scale_by(positions: int, parameters: Mapping[str, Any]) -> int:
    """Return the number of positions after one scaling."""
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    factor = parameters.get("factor") or 1.0
    if kind in INCLUDED or not isinstance(factor, (int, float)):
        return positions
    if kind == "yarn":
        return max(positions, int((parameters.get("original_max_position_embeddings") or positions) * factor))
    return int(positions * max(factor, 1.0))


def is_beyond_context(model: Any, count: int) -> bool:
    """Return whether a prompt of `count` tokens leaves no position for a text."""
    positions = count_positions(model)
    return positions is not None and count > positions


def check_prompt_length(model: Any, count: int, name: str) -> None:
    """Raise LimitError if a prompt of `count` tokens leaves no position for a text. `name` is the model's."""
    if is_beyond_context(model, count):
        error = LimitError(
            f"the prompt has {count:,} tokens; {name} has {describe_positions(model)}",
            hint='Shorten the prompt. A prompt that shows the constraint does not if show_constraint="{prompt}".',
        )
        error.is_of_context = True
        raise error


def check_least_length(model: Any, size: int, least: int) -> None:
    """Raise LimitError if a prompt of `size` characters, which are at least so many tokens, is too long in any case."""
    if is_beyond_context(model, least):
        error = LimitError(
            f"the prompt has {size:,} characters, which are at least {least:,} tokens; the model has "
            f"{describe_positions(model)}",
            hint="Shorten the prompt.",
        )
        error.is_of_context = True
        raise error


def describe_positions(model: Any) -> str:
    """Return the number of positions of a model that has a limit, in words."""
    return f"{count_positions(model):,} positions, for prompt and text together"
