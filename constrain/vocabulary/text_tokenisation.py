"""Find tokens that spell given bytes: those of the tokenizer, or the fewest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ..base.errors import VocabularyError

__all__ = ["Encode", "RecentSpellings", "encode_continuation", "find_fewest_tokens", "list_lengths_by_head"]

Encode: TypeAlias = Callable[[str], "list[int]"]
"""A function from a text to token ids."""
SENTINELS = ("\n", "a", "0", ".")
"""Texts prepended to another to find its tokens in the middle of a text.

In any tokenizer one of them is separated from what follows.
"""

MOST_SPELLINGS = 4096
"""Most texts whose tokens are kept."""
LONGEST_SPELLING = 256
"""Most bytes of such a text."""


class RecentSpellings(dict[bytes, tuple[int, ...]]):
    """The tokens of short texts that were tokenised lately.

    A constraint forces the same texts whenever it is used, and a call of a tokenizer costs a hundred microseconds. All
    are forgotten when there are too many: one operation of a dict at a time, so that threads need no lock.
    """

    def keep(self, data: bytes, tokens: list[int]) -> None:
        """Keep the tokens of a text, if it is short."""
        if len(data) <= LONGEST_SPELLING:
            if len(self) >= MOST_SPELLINGS:
                self.clear()
            self[data] = tuple(tokens)


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


def list_lengths_by_head(texts: Iterable[bytes]) -> dict[bytes, tuple[int, ...]]:
    """Return the lengths of the texts that begin with each pair of bytes, ascending."""
    found: dict[bytes, set[int]] = {}
    for text in texts:
        if len(text) > 1:
            found.setdefault(text[:2], set()).add(len(text))
    return {head: tuple(sorted(lengths)) for head, lengths in found.items()}


def find_fewest_tokens(data: bytes, ids: Mapping[bytes, int], lengths: Mapping[bytes, Sequence[int]]) -> list[int]:
    """Return the fewest tokens that spell `data`; among equals, those with the longest first token.

    `ids` is the id of each token by its bytes, `lengths` what `list_lengths_by_head` returns for these bytes. Uses
    dynamic programming from the end. Raise VocabularyError if no tokens spell `data`.
    """
    end = len(data)
    counts, firsts = [0] * (end + 1), [1] * end  # of the suffix at each place: its fewest tokens, length of the first
    for start in range(end - 1, -1, -1):
        least, first = end + 1, 1
        if data[start : start + 1] in ids:
            least = counts[start + 1] + 1
        for length in lengths.get(data[start : start + 2], ()):
            after = start + length
            if after > end:
                break
            if counts[after] < least and data[start:after] in ids:
                least, first = counts[after] + 1, length
        counts[start], firsts[start] = least, first
    if counts[0] > end:
        raise VocabularyError(f"no tokens of this vocabulary spell {show_bytes(data)}")
    out, start = [], 0
    while start < end:
        out.append(ids[data[start : start + firsts[start]]])
        start += firsts[start]
    return out


def show_bytes(data: bytes) -> str:
    """Return an abbreviated repr of bytes, for messages."""
    return f"{data[:48]!r}{'...' if len(data) > 48 else ''}"
