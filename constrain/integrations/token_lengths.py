"""A lower bound of the number of tokens of a text, without tokenising it: no token stands for more than so many bytes.

It holds where a tokenizer loses no text: every byte has a token, nothing is removed between tokens, and no special
token takes the spaces around it. Only what is known to be so counts; for any other tokenizer the bound is 0.
"""

from __future__ import annotations

from typing import Any

from ..vocabulary.vocabulary import Vocabulary
from .token_files import SPACE
from .tokenizer_objects import flatten_component, read_component

__all__ = ["TokenLengths"]

SPLITTERS = frozenset(("ByteLevel", "Digits", "Metaspace", "Punctuation", "Split"))
"""Pre-tokenizers that remove nothing, unless their behaviour is to."""
SPACES_WRITTEN = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
COMPOSED = 4
"""Most characters that become one by NFC (Unicode Standard Annex 15, maximum expansion factor of NFD)."""


class TokenLengths:
    """The lengths of the tokens of a tokenizer: `most` bytes for a token, 0 if it is not known; whether it composes
    characters (NFC) before it tokenises a text.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary) -> None:
        fast = getattr(tokenizer, "backend_tokenizer", None)
        self.is_composing, self.most = False, 0
        if fast is None or vocabulary.missing_bytes or type(fast.model).__name__ != "BPE":
            return
        added = list(fast.get_added_tokens_decoder().values())
        before = list(flatten_component(read_component(fast.pre_tokenizer), "pretokenizers"))
        if not fast.model.byte_fallback and all(step["type"] != "ByteLevel" for step in before):
            return  # one unknown token may stand for a text of any length
        steps = list(flatten_component(read_component(fast.normalizer), "normalizers"))
        self.is_composing = any(step["type"] == "NFC" for step in steps)
        if (
            all(step["type"] in SPLITTERS and step.get("behavior") != "Removed" for step in before)
            and all(step["type"] in ("NFC", "Prepend") or step == SPACES_WRITTEN for step in steps)
            and not any(one.lstrip or one.rstrip for one in added)
        ):
            spelled = max((len(data) for data in vocabulary.tokens if data is not None), default=0)
            self.most = max(spelled, *(len(one.content.encode()) for one in added), 1)

    def count_least(self, text: str) -> int:
        """Return a number of tokens that a text has at least."""
        size = -(-len(text) // COMPOSED) if self.is_composing else len(text.encode())
        return -(-size // self.most) if self.most else 0
