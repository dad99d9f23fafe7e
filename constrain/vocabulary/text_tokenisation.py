"""Find tokens that spell given bytes: those of the tokenizer, or the fewest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..base.errors import VocabularyError

__all__ = ["Encode", "encode_continuation", "find_fewest_tokens"]

Encode: TypeAlias = Callable[[str], "list[int]"]
"""A function from a text to token ids."""
SENTINELS = ("\n", "a", "0", ".")
"""Texts prepended to another to find its tokens in the middle of a text.

In any tokenizer one of them is separated from what follows.
"""


def encode_continuation(
    data: bytes, encode: Encode, tokens: Sequence[bytes | None], spell: Callable[[list[int]], bytes]
) -> list[int] | None:
    """Return the tokens that a tokenizer chooses for `data` in the middle of a text.

    Parameters
    ----------
    data : bytes
        The bytes to spell.
    encode : callable
        The tokenizer, which may add a space at the start of a text.
    tokens : sequence of bytes or None
        The bytes of each token.
    spell : callable
        Returns the bytes of a list of token ids.

    Returns
    -------
    list of int or None
        None if `data` is not UTF-8, or what the tokenizer chooses cannot be separated from the text before it.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    for sentinel in ("", *SENTINELS) if text else ():
        ids = _remove_head(encode(sentinel + text), sentinel.encode(), tokens)
        if spell(ids) == data:
            return ids
    return None


def _remove_head(ids: list[int], head: bytes, tokens: Sequence[bytes | None]) -> list[int]:
    """Return the tokens after those that spell `head`, which may have a space before it.

    Return an empty list if no token boundary follows `head`.
    """
    if not head:
        return ids
    spelled = b""
    for count, index in enumerate(ids, 1):
        spelled += tokens[index] or b""
        if spelled in (head, b" " + head):
            return ids[count:]
        if len(spelled) > len(head):
            break
    return []


def find_fewest_tokens(data: bytes, ids: Mapping[bytes, int], lengths: Sequence[int]) -> list[int]:
    """Return the fewest tokens that spell `data`; among equals, those with the longest first token.

    `ids` is the id of each token by its bytes, `lengths` the lengths of these bytes, ascending. Uses dynamic
    programming from the end, in time proportional to len(data) * len(lengths). Raise VocabularyError if no tokens spell
    `data`.
    """
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # by suffix length: count, -length of the first, its id
    unreachable = (len(data) + 1, 0, -1)
    for start in range(len(data) - 1, -1, -1):
        shortest = unreachable
        for length in lengths:
            if start + length > len(data):
                break
            index = ids.get(data[start : start + length])
            if index is not None:
                shortest = min(shortest, (best[len(data) - start - length][0] + 1, -length, index))
        best.append(shortest)
    if best[-1][0] > len(data):
        raise VocabularyError(f"no tokens of this vocabulary spell {show_bytes(data)}")
    out, start = [], 0
    while start < len(data):
        _, length, index = best[len(data) - start]
        out.append(index)
        start -= length
    return out


def show_bytes(data: bytes) -> str:
    """Return an abbreviated repr of bytes, for messages."""
    return f"{data[:48]!r}{'...' if len(data) > 48 else ''}"
