"""End tokens that a tokenizer or a model declares.

They are declared by the model's generation config, by its config, and by the tokenizer. A name such as `<|eot_id|>`
is not a declaration: the same vocabulary serves base models, which never write it, and chat models, which end with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..base.errors import VocabularyError, VocabularyWarning, shorten_text

__all__ = ["check_names", "ids_of", "tiktoken_ends"]

NAMES = (
    "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>", "<|eot|>", "</s>", "<eos>",
)  # fmt: skip
"""Names that chat models give to tokens that end a turn, used in warnings."""
TIKTOKEN = "<|endoftext|>"
"""The special token that tiktoken itself declares as the end of a text (`Encoding.eot_token`)."""


def check_names(ends: list[int], special: Mapping[str, int], name: str) -> list[int]:
    """Return `ends`, the declared end tokens of the tokenizer `name`.

    Emit a VocabularyWarning if another special token is named like an end token. Raise VocabularyError if none is
    declared.
    """
    others = [f"{key} ({special[key]})" for key in NAMES if key in special and special[key] not in ends]
    if not ends:
        raise VocabularyError(
            f"{name} declares no end token",
            hint="Name the tokens that end a text with eos_ids=[...]."
            + (f" By their names, these may: {', '.join(others)}." if others else ""),
        )
    if others:
        warnings.warn(
            f"{name} declares the end tokens {ends}; by their names, {', '.join(others)} may end a text, too. "
            "If the model ends its texts with them, give eos_ids=[...].",
            VocabularyWarning,
            stacklevel=2,
        )
    return ends


def tiktoken_ends(special: Mapping[str, int], name: str) -> list[int]:
    """Return the end token that tiktoken declares."""
    return check_names([special[TIKTOKEN]] if TIKTOKEN in special else [], special, name)


def ids_of(value: Any) -> list[int]:
    """Return the ids that `eos_token_id` holds: None, an id, or a list of them. Raise VocabularyError for others."""
    if value is None:
        return []
    ids = list(value) if isinstance(value, (list, tuple, set)) else [value]
    if not all(isinstance(index, int) and not isinstance(index, bool) for index in ids):
        raise VocabularyError(f"{shorten_text(repr(value))} is neither a token id nor a list of them")
    return ids
