"""Compare masks with a matcher over bytes, which is advanced by the bytes of each token."""

from __future__ import annotations

import numpy as np

from constrain import Constraint, TokenRefused, Vocabulary
from constrain.engine.matcher import Matcher

__all__ = ["compare_token_masks", "list_accepted_tokens", "list_tokens"]


def list_accepted_tokens(matcher: Matcher, tokens: list[tuple[bytes, int]]) -> set[int]:
    """Return the tokens whose bytes a matcher over single bytes accepts. tokens: sorted by bytes."""
    found, path, refused = set[int](), b"", b""
    for token, number in tokens:
        if refused and token.startswith(refused):
            continue
        refused = b""
        common = next((k for k, (a, b) in enumerate(zip(path, token)) if a != b), min(len(path), len(token)))
        matcher.rollback(len(path) - common)
        path = token[:common]
        for byte in token[common:]:
            if not matcher.allows(byte):
                refused = path + bytes([byte])
                break
            matcher.advance(byte)
            path += bytes([byte])
        else:
            found.add(number)
    matcher.rollback(len(path))
    return found


def list_tokens(mask: np.ndarray) -> set[int]:
    """Return the tokens of a mask, int32 [words]."""
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def compare_token_masks(constraint: Constraint, oracle: Constraint, text: bytes, vocabulary: Vocabulary) -> None:
    """Compare the masks before each byte of a text, up to the first byte that is refused."""
    matcher, slow = constraint.matcher(), oracle.matcher()
    tokens = sorted((token, number) for number, token in enumerate(vocabulary.tokens) if token)
    end = set(vocabulary.eos_ids)
    for place in range(len(text) + 1):
        assert matcher.is_complete == slow.is_complete
        found, wanted = (
            list_tokens(matcher.mask()),
            list_accepted_tokens(slow, tokens) | (end if slow.is_complete else set()),
        )
        assert found == wanted, (text[:place], [vocabulary.tokens[k] for k in found ^ wanted][:5])
        if place == len(text):
            return
        try:
            slow.advance_bytes(text[place : place + 1])
        except TokenRefused:
            return
        matcher.advance_bytes(text[place : place + 1])
