"""Check that a Vocabulary and a model match: as many tokens as logits, with the bytes that the tokenizer gives them.

Real models have as many logits as their tokenizer has tokens, or more: padded to a multiple of 64 to 1,024 (Qwen2.5:
151,665 tokens, 152,064 logits; Phi-2: 50,295 and 51,200; gpt-oss: 200,019 and 201,088). Up to `most_padding` surplus
logits are accepted. Fewer logits than tokens are accepted only if nothing but special tokens lacks one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import VocabularyError
from .tokenizer_objects import name_tokenizer, token_bytes

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["check_logits", "check_padding", "check_tokenizer", "most_padding"]

PADDING = 2048
"""Most surplus logits of a large vocabulary."""
LEAST_PADDING = 256
"""Number of surplus logits that is accepted for any vocabulary."""
SAMPLE = 512
"""Number of token ids, evenly spread, whose bytes are compared."""
HINT = "Make the Vocabulary from the tokenizer of this model, or give size= if its logits are padded so far."


def most_padding(tokens: int) -> int:
    """Return how many logits beyond `tokens` count as padding: a sixteenth, at least 256 and at most 2,048."""
    return min(PADDING, max(LEAST_PADDING, tokens // 16))


def check_padding(tokens: int, width: int, name: str, model: str = "the model") -> None:
    """Raise VocabularyError if `width` logits are too many for the tokens of the vocabulary `name`."""
    if width - tokens > most_padding(tokens):
        raise VocabularyError(
            f"{model} produces {width:,} logits, and {name} has {tokens:,} tokens: more than padding explains",
            hint=HINT,
        )


def check_logits(vocabulary: Vocabulary, width: int, model: str = "the model") -> None:
    """Raise VocabularyError if the Vocabulary cannot be that of a model with `width` logits.

    Tokens without a logit are allowed if they are special and not end tokens.
    """
    tokens = vocabulary.tokens
    if width < len(tokens) and (any(token is not None for token in tokens[width:]) or vocabulary.eos_ids[-1] >= width):
        raise VocabularyError(
            f"{model} produces {width:,} logits, the vocabulary {vocabulary.name} has {len(tokens):,} tokens", hint=HINT
        )
    check_padding(len(tokens), width, f"the vocabulary {vocabulary.name}", model)


def check_tokenizer(vocabulary: Vocabulary, tokenizer: Any) -> None:
    """Raise VocabularyError unless a sample of the Vocabulary's tokens has the bytes that the tokenizer gives them."""

    step = max(1, vocabulary.size // SAMPLE)
    ids = [index for index in range(0, vocabulary.size, step) if vocabulary.tokens[index] is not None]
    for index, byte_string in zip(ids, token_bytes(tokenizer, ids)):
        if byte_string != vocabulary.tokens[index]:
            raise VocabularyError(
                f"token {index} is {show_token(vocabulary.tokens[index])} in the vocabulary {vocabulary.name}, and "
                f"{show_token(byte_string)} in the tokenizer {name_tokenizer(tokenizer)}",
                hint="Make the Vocabulary from the tokenizer of this model.",
            )


def show_token(token: bytes | None) -> str:
    """Return a token for a message."""
    return "no text" if token is None else repr(token[:40])
