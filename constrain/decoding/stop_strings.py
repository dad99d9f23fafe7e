"""Stop strings: end a text at the first occurrence of a string, if the constraint accepts the text before it.

An occurrence is found in the bytes of the text, wherever the borders of tokens are: it may begin within one token and
end within another, and what follows it in its last token is discarded. The text is cut where the occurrence starts.

The constraint decides. If it does not accept the text before an occurrence, the occurrence is ordinary text (a `"` in
JSON, say) and generation continues. So a text that is cut satisfies the constraint as every other, and a stop string
that the constraint does not allow to be written has no effect. Without a constraint every text is accepted.

The rule reads bytes one after the other, so it does not depend on tokens: of several occurrences the one that ends
first counts, and of those that end together the longest whose preceding text is accepted.

`StopFinder` searches a growing text and knows nothing of constraints; `StopTracker` follows the tokens of one text with
its Matcher, and releases for streaming what can no longer become part of a stop string.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.errors import ArgumentError, TokenRefused, describe_value

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["StopFinder", "StopMatch", "StopTracker", "as_stop_strings"]

MOST_STOPS = 1024
"""Maximum number of stop strings of a request: each is searched after each token."""


@dataclass(frozen=True, slots=True)
class StopMatch:
    """An occurrence that ends a text. stop: the string. start: where it starts: the length of the text, in bytes."""

    stop: str
    start: int


def as_stop_strings(stop: object) -> tuple[str, ...]:
    """Return the argument `stop`, a string or several or None, as a tuple of distinct strings.

    Raises
    ------
    TypeError
        If it is neither.
    ArgumentError
        If a string is empty or has half of a surrogate pair, or there are more than MOST_STOPS.
    """
    if stop is None:
        return ()
    listed = [stop] if isinstance(stop, str) else stop
    if not isinstance(listed, (list, tuple, set, frozenset)) or not all(isinstance(one, str) for one in listed):
        raise TypeError(f"stop is {describe_value(stop)}: give a text or a list of texts")
    stops = tuple(dict.fromkeys(listed))
    if len(stops) > MOST_STOPS:
        raise ArgumentError(f"stop has {len(stops)} strings: at most {MOST_STOPS} are searched")
    for text in stops:
        if not text:
            raise ArgumentError("stop has an empty string, which occurs everywhere")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"stop has {text!r}, with half of a surrogate pair, which no text contains") from None
    return stops


class StopFinder:
    """Search of stop strings in a text that grows. size: its length so far, in bytes."""

    def __init__(self, stops: Iterable[str]) -> None:
        self.stops = [(stop, stop.encode()) for stop in stops]
        self.firsts = {data[0] for _, data in self.stops}
        self.longest = max((len(data) for _, data in self.stops), default=0)
        self.tail, self.size = b"", 0

    def feed(self, data: bytes, accepts: Callable[[int], bool]) -> StopMatch | None:
        """Append bytes and return the first occurrence that ends in them and may end the text.

        accepts: called with the start of an occurrence; whether the text before it is accepted. Linear in the data for
        each stop string.
        """
        window, offset, known = self.tail + data, self.size - len(self.tail), len(self.tail)
        self.size += len(data)
        self.tail = window[max(0, len(window) - self.longest + 1) :]
        found = []
        for stop, pattern in self.stops:
            start = window.find(pattern, max(0, known - len(pattern) + 1))
            while start >= 0:
                found.append((offset + start + len(pattern), offset + start, stop))
                start = window.find(pattern, start + 1)
        return next((StopMatch(stop, start) for _, start, stop in sorted(found) if accepts(start)), None)

    def count_pending(self, accepts: Callable[[int], bool]) -> int:
        """Return how many bytes at the end of the text may be the beginning of an occurrence that ends it."""
        for length in range(len(self.tail), 0, -1):
            if self.tail[-length] not in self.firsts:
                continue
            suffix = self.tail[-length:]
            if any(data.startswith(suffix) for _, data in self.stops) and accepts(self.size - length):
                return length
        return 0


class StopTracker:
    """Stop strings in the text of one request, token by token.

    Parameters
    ----------
    stops : tuple of str
        As `as_stop_strings` returns them.
    vocabulary : Vocabulary
        Special tokens are part of the text by their names, as in `Generation.text`.
    begin : int
        Number of bytes at the start that are not part of the text: no stop string begins there.

    Attributes
    ----------
    match : StopMatch or None
        The occurrence that ended the text.
    """

    def __init__(self, stops: tuple[str, ...], vocabulary: Vocabulary, begin: int = 0) -> None:
        self.vocabulary, self.finder = vocabulary, StopFinder(stops)
        self.match: StopMatch | None = None
        self.text = bytearray()
        self.ends: list[int] = []  # the length of the text after each token
        self.begin = self.released = begin

    def advance(self, token: int, matcher: Matcher | None) -> bool:
        """Append a token. Return whether the text ends in it: `match` is then the occurrence.

        matcher: the position after the token, each of the tokens being one advance; None without a constraint. It is
        not changed.
        """
        data = self.vocabulary.transcript((token,))
        self.text += data
        self.ends.append(len(self.text))
        self.match = self.finder.feed(data, lambda position: self.accepts(position, matcher))
        return self.match is not None

    def accepts(self, position: int, matcher: Matcher | None) -> bool:
        """Return whether the constraint accepts the first `position` bytes of the text."""
        if position < self.begin or matcher is None:
            return position >= self.begin
        whole = bisect_right(self.ends, position)
        trial = matcher.fork()
        trial.rollback(len(self.ends) - whole)
        part = bytes(self.text[self.ends[whole - 1] if whole else 0 : position])
        try:
            trial.advance_bytes(part)
        except TokenRefused:  # within the name of a special token
            return False
        return trial.is_complete

    def release(self, matcher: Matcher | None) -> bytes:
        """Return the next bytes of the text for streaming: those that no longer can be part of a stop string."""
        if self.match is not None:
            return self.release_rest()
        pending = self.finder.count_pending(lambda position: self.accepts(position, matcher))
        return self._release_to(len(self.text) - pending)

    def release_rest(self) -> bytes:
        """Return the bytes of the text that were not released, once it has ended."""
        return self._release_to(len(self.text) if self.match is None else self.match.start)

    def _release_to(self, position: int) -> bytes:
        start, self.released = self.released, max(self.released, position)
        return bytes(self.text[start : self.released])

    def cut(self, data: bytes) -> bytes:
        """Return the bytes of the text, cut at the stop string if one ended it."""
        return data if self.match is None else data[: self.match.start]
