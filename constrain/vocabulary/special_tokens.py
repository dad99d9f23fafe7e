"""TokenSymbols: translate the grammar nodes that name special tokens into bytes.

A special token has a *name* in bytes that never occur in UTF-8 (see `token_names`). A `Vocabulary` uses it in its
`blob`, so that the trie, the rows and the kernels need no other representation. A UTF-8 leaf refuses these bytes, and
no text contains a name.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from ..automata.dfa import Dfa
from ..base.cached_property import cached_property
from ..base.errors import UnsatisfiableError, UnsupportedError, VocabularyError
from ..grammar.nodes import Chars, Free, Literal, Mark, Node, Sequence, Strings, Token
from ..grammar.visitor import NodeVisitor
from .token_names import DIGITS, FIRST, NAME
from .vocabulary import Vocabulary

__all__ = ["TokenSymbols"]

MOST_STATES = 20_000


class TokenSymbols(NodeVisitor[Node]):
    """The special tokens of one vocabulary, as symbols of a grammar."""

    node_classes = (Token, Mark, Free)

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __call__(self, node: Token | Mark | Free) -> Node:
        """Return a node that names tokens as a node over bytes.

        Raise VocabularyError if the vocabulary lacks a token, UnsupportedError if the token is an end token or
        ordinary.
        """
        return self.visit(node)

    def visit_mark(self, node: Mark) -> Node:
        return Literal(self.mark(node.text))

    def visit_free(self, node: Free) -> Node:
        vocabulary = self.vocabulary
        ends = {name for name, index in vocabulary.special.items() if index in vocabulary.eos_ids}
        without, excluded = (
            tuple(self.mark(text) for text in texts if ends.isdisjoint(self.split(text)[1::2]))
            for texts in (node.without, node.excluded)
        )
        refused = tuple(
            vocabulary.names[index]
            for name, index in vocabulary.special.items()
            if name not in ends and any(text in name and text != name for text in node.without)
        )
        until = None if node.until is None else self.mark(node.until)
        return free_text_node(without, until, node.high, excluded, refused)

    def visit_token(self, node: Token) -> Node:
        ids = {self.number(name) for name in node.names}
        if node.negated:
            return self.others(ids)
        options = tuple(sorted(self.vocabulary.names[index] for index in ids))
        return Literal(options[0]) if len(options) == 1 else Strings(options)

    def mark(self, text: str) -> bytes:
        """Return a text in bytes, in which special tokens are their names."""
        special, names = self.vocabulary.special, self.vocabulary.names
        parts = self.split(text)
        return b"".join(
            names[self.special(special[part], part)] if place % 2 else part.encode() for place, part in enumerate(parts)
        )

    def split(self, text: str) -> list[str]:
        """Return the parts of a text: every second one is the name of a special token, the longest at each place."""
        special, parts, start, at = self.vocabulary.special, list[str](), 0, 0
        first, lengths = self._name_shapes
        while at < len(text):
            names = (text[at : at + length] for length in lengths) if text[at] in first else ()
            name = next((name for name in names if name in special), None)
            if name is None:
                at += 1
                continue
            parts += (text[start:at], name)
            at += len(name)
            start = at
        return [*parts, text[start:]]

    @cached_property
    def _name_shapes(self) -> tuple[set[str], list[int]]:
        """The first characters of the names of special tokens, and their lengths, the greatest first."""
        names = [name for name in self.vocabulary.special if name]
        return {name[0] for name in names}, sorted(set(map(len, names)), reverse=True)

    def number(self, name: str | int) -> int:
        """Return the id of a special token, given by name or id."""
        vocabulary = self.vocabulary
        if isinstance(name, str):
            index = vocabulary.special.get(name)
            if index is None:
                close = get_close_matches(name, vocabulary.special, 1)
                raise VocabularyError(
                    f"the vocabulary has no special token {name!r}",
                    hint=f"Did you mean {close[0]!r}?" if close else "Ordinary text is written as a literal.",
                )
            return self.special(index, name)
        if not 0 <= name < vocabulary.size:
            raise VocabularyError(f"there is no token {name}: the vocabulary has {vocabulary.size}")
        return self.special(name, f"[{name}]")

    def special(self, index: int, label: str) -> int:
        """Return the id if it is a special token that may occur within a text. `label` names the token in messages.

        Raise UnsupportedError for an end token or an ordinary token.
        """
        vocabulary = self.vocabulary
        if index in vocabulary.eos_ids:
            raise UnsupportedError(
                f"token {label} ends a text, so it cannot occur within one",
                hint="Leave it out: an end token is allowed wherever the text may end. Or name other eos_ids=.",
            )
        if index not in vocabulary.names:
            raise UnsupportedError(
                f"token {label} is an ordinary one, {vocabulary.tokens[index]!r}: text has no prescribed tokens",
                hint="Write its text as a literal.",
            )
        return index

    def others(self, ids: set[int]) -> Node:
        """Return a node for any byte, and any special token except these: `!<a>*` is every text without `<a>`."""
        allowed = sorted(name for index, name in self.vocabulary.names.items() if index not in ids)
        units = Dfa.from_ranges([(0, FIRST - 1)])
        names = Dfa.from_strings([name.decode("latin-1") for name in allowed])
        return Chars(units.union(names, max_states=MOST_STATES), "bytes")


@lru_cache(64)
def free_text_node(
    without: tuple[bytes, ...], until: bytes | None, high: int | None, excluded: tuple[bytes, ...],
    refused: tuple[bytes, ...],
) -> Node:  # fmt: skip
    """Return a node of units (bytes and names) that contain none of `without`, nor the names `refused`.

    If `until` is given, the units end with the first `until`, and with none of `excluded`, which are among `without`.
    `high` is the most units before `until`.
    """
    units = Dfa.from_ranges([(0, FIRST - 1)])
    digits = Dfa.from_ranges([(digit, digit) for digit in DIGITS])
    name = Dfa.from_strings([chr(FIRST)]).concatenate(digits.repeat(NAME - 1, NAME - 1))
    if refused:
        name = name.subtract(Dfa.from_strings([one.decode("latin-1") for one in refused]), max_states=MOST_STATES)
    whatever = units.union(name).star()
    clean = whatever
    for mark in without:
        clean = clean.subtract(whatever.concatenate(exact_bytes(mark)).concatenate(whatever), max_states=MOST_STATES)
    if until is None:
        return Chars(clean, "bytes", 0, high)
    longer = [mark for mark in excluded if mark != until and mark.endswith(until)]
    if not longer and (until[0] == FIRST or high is not None) and not any(meets(mark, until) for mark in without):
        # No mark can end within `until`, but at its end: two leaves, the first of which can be counted.
        return Sequence((Chars(clean, "bytes", 0, high), Literal(until)))
    one = Dfa.from_ranges([(0, FIRST)])
    ended = whatever.concatenate(exact_bytes(until))
    for mark in without:
        earlier = whatever.concatenate(exact_bytes(mark))
        if mark not in longer:
            earlier = earlier.concatenate(one).concatenate(one.star())
        ended = ended.subtract(earlier, max_states=MOST_STATES)
    if high is not None:
        ended = ended.with_length(0, high + len(until), max_states=MOST_STATES)
    if ended.is_empty:
        raise UnsatisfiableError(
            f"free text cannot end with {until!r}: another mark comes before it", hint="Leave the longer mark out."
        )
    return Chars(ended, "bytes")


def exact_bytes(data: bytes) -> Dfa:
    """Return the Dfa of these bytes, each as one character."""
    return Dfa.from_strings([data.decode("latin-1")])


def meets(mark: bytes, until: bytes) -> bool:
    """Return whether a mark may end within `until`, having begun before or in it, but for `until` itself."""
    return (mark != until and mark in until) or any(until.startswith(mark[k:]) for k in range(1, len(mark)))
