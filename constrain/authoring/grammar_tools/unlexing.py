"""Unlex: produce a text that the lexer tokenises to given terminals.

Each lexeme is a walk of the scanner, from its start state for the current parser state, towards the required terminal.
Where it would merge with the lexeme before it, an ignored lexeme is inserted between them, if the grammar has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from ...lalr.shortest_suffix import NEVER, ShortestSuffixes
from .lexeme_parser import END_OF_TEXT, Stack, feed_terminal, parse_text
from .written_grammar import WrittenGrammar

__all__ = ["Speller"]

LIKED = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Bytes that are preferred where any would do."""
TRIES = 6
"""Number of lexemes that are drawn before an ignored lexeme is inserted, or the attempt fails."""
GOES_ON = 0.6
"""Probability that a lexeme continues where it could end."""
SET_APART = 0.5
"""Probability of an ignored lexeme between two lexemes that need none."""
BEYOND_ASCII = 0.02
"""Probability of a byte above 127 where others are possible."""
INDENT = 4
"""Number of columns by which a block is indented."""

Spelled = tuple[bytes, int]
"""A lexeme and the scanner's state after it."""


class Speller:
    """Spells strings of terminals of a grammar; terminals of GBNF are characters, and spell themselves."""

    def __init__(self, written: WrittenGrammar) -> None:
        self.written = written
        self.parser = written.parser
        self.endings: ShortestSuffixes = written.endings
        self._shortest: dict[tuple[int, int], Spelled | None] = {}
        order = {byte: place for place, byte in enumerate(LIKED)}
        self.liking = [order.get(byte, 100 + byte) for byte in range(256)]

    def text(self, types: Sequence[int], rng: Random | None = None) -> bytes | None:
        """Return a text of these terminals, without $END; of the shortest lexemes if rng is None.

        Return None if no text was found that is tokenised to them, or if the grammar's own parser rejects it.
        """
        if self.parser is None:
            return b"".join(self.character(terminal, rng) for terminal in types)
        made = self._lexemes(types, rng)
        if made is None or not self.written.has_lexer:
            return made
        reading = parse_text(self.parser, made)
        layout = self.parser.layout
        hidden = self.parser.ignored | ({layout.indent, layout.dedent} if layout else set())
        read = [found.terminal for found in reading.lexemes if found.terminal not in hidden]
        return made if reading.stopped is None and read == [t for t in types if t not in hidden] else None

    def loose(self, types: Sequence[int]) -> bytes:
        """Return a text of these terminals, each spelled on its own.

        They are separated by an ignored lexeme if the grammar has one.
        """
        if self.parser is None:
            return b"".join(self.character(terminal, None) for terminal in types)
        start = int(self.parser.scan[self.parser.table.start])
        starts = [start, *np.unique(self.parser.scan[self.parser.scan >= 0]).tolist()]
        found = []
        for terminal in types:
            spelled = next((one for e in starts if e >= 0 and (one := self.shortest(e, terminal))), None)
            name = self.parser.table.terminals[terminal].encode()
            found.append(spelled[0] if spelled else b"<" + name + b">")
        return (self._blank(start) or (b"", -1))[0].join(found)

    def beside(self, a: int, b: int) -> bytes:
        """Return the shortest texts of two terminals, concatenated."""
        return self.loose([a]) + self.loose([b])

    # ---- characters ---------------------------------------------------------------------------------------------

    def character(self, terminal: int, rng: Random | None) -> bytes:
        """Return one of the characters of a GBNF terminal."""
        alphabet = self.written.alphabet
        if terminal >= len(alphabet):
            return self.written.tokens[terminal - len(alphabet)].encode()
        ranges = alphabet[terminal]
        if rng is None:
            liked = [byte for byte in LIKED if any(low <= byte <= high for low, high in ranges)]
            code = liked[0] if liked else next((low for low, high in ranges if low >= 32), ranges[0][0])
        else:
            printable = [(max(low, 32), min(high, 126)) for low, high in ranges if low <= 126 and high >= 32]
            low, high = rng.choice(printable if printable and rng.random() > BEYOND_ASCII else ranges)
            code = rng.randint(low, high)
        return chr(code).encode("utf-8", "replace")

    # ---- lexemes ------------------------------------------------------------------------------------------------

    def _lexemes(self, types: Sequence[int], rng: Random | None) -> bytes | None:
        parser = self.parser
        assert parser is not None
        layout = parser.layout
        stack: Stack = (parser.table.start,)
        out, behind, last, level = b"", -1, -1, 0
        for place, terminal in enumerate(types):
            state = int(parser.scan[stack[-1]])
            if layout is not None and terminal in (layout.indent, layout.dedent):
                made: Spelled | None = (b"", behind)
            elif layout is not None and terminal == layout.newline:
                blocks = types[place + 1 :]
                change = 0
                while change < len(blocks) and blocks[change] in (layout.indent, layout.dedent):
                    level += 1 if blocks[change] == layout.indent else -1
                    change += 1
                made = self._walked(state, b"\n" + b" " * (INDENT * level), terminal)
            elif state < 0:
                made = None
            else:
                made = self._apart(behind, last, state, terminal, rng, out[-1:])
            if made is None:
                return None
            if made[0]:
                out, behind, last = out + made[0], made[1], terminal
            after = feed_terminal(parser, stack, terminal)
            if after is None:
                if self.written.has_lexer:
                    return None
                after = stack
            stack = after
        return out

    def _apart(
        self, behind: int, last: int, state: int, terminal: int, rng: Random | None, end: bytes
    ) -> Spelled | None:
        """Return a lexeme that does not merge with the one before it, if necessary after an ignored lexeme."""
        made: Spelled | None = None
        joins = False
        for _ in range(1 if rng is None else TRIES):
            made = self.shortest(state, terminal) if rng is None else self.drawn(state, terminal, rng)
            if made is None:
                return None
            joins = self.splits(behind, last, made[0])
            if joins:
                wordy = end.isalnum() and made[0][:1].isalnum()
                if not wordy and (rng is None or rng.random() >= (SET_APART if end else 0)):
                    return made
                break
        assert made is not None
        blank = self._blank(state)
        if blank is not None and self.splits(behind, last, blank[0]) and self.splits(blank[1], -2, made[0]):
            return blank[0] + made[0], made[1]
        if joins:
            return made
        if rng is None:  # another lexeme than the shortest may not merge
            other = Random(0)
            for _ in range(TRIES):
                drawn = self.drawn(state, terminal, other)
                if drawn is not None and self.splits(behind, last, drawn[0]):
                    return drawn
        return None

    def splits(self, behind: int, last: int, text: bytes) -> bool:
        """Return whether a lexeme in scanner state `behind` ends as terminal `last` (-2: any) before this text."""
        if behind < 0:
            return True
        assert self.parser is not None
        scanner, state = self.parser.scanner, behind
        verdict = int(scanner.verdicts[scanner.accept[state], text[0]])
        if verdict < 0 or (verdict != last and last != -2):
            return False
        for place, byte in enumerate(text):
            state = int(scanner.delta[state, byte])
            if state < 0:
                return True
            after = text[place + 1] if place + 1 < len(text) else END_OF_TEXT
            if scanner.verdicts[scanner.accept[state], after] >= 0:
                return False
        return False

    def _walked(self, state: int, text: bytes, terminal: int) -> Spelled | None:
        """Return this text, if the scanner recognises all of it as the terminal."""
        assert self.parser is not None
        for byte in text:
            state = int(self.parser.scanner.delta[state, byte]) if state >= 0 else -1
        ends = state >= 0 and (self.parser.scanner.verdicts[self.parser.scanner.accept[state]] == terminal).any()
        return (text, state) if ends else None

    def _blank(self, state: int) -> Spelled | None:
        """Return the best ignored lexeme: a blank, or the shortest one."""
        assert self.parser is not None
        for text in (b" ", b"\n"):
            for terminal in self.parser.ignored:
                if state >= 0 and (found := self._walked(state, text, terminal)):
                    return found
        found_all = [one for t in sorted(self.parser.ignored) if state >= 0 and (one := self.shortest(state, t))]
        return min(found_all, key=lambda one: len(one[0]), default=None)

    def shortest(self, start: int, terminal: int) -> Spelled | None:
        """Return the shortest lexeme of a terminal from a start state of the scanner; None if there is none."""
        key = start, terminal
        if key not in self._shortest:
            self._shortest[key] = self._shortest_from(start, terminal)
        return self._shortest[key]

    def _shortest_from(self, state: int, terminal: int) -> Spelled | None:
        assert self.parser is not None
        due, delta, out = self.endings.lexemes[:, terminal], self.parser.scanner.delta, bytearray()
        if state < 0 or due[state] >= NEVER:
            return None
        while due[state]:
            nearer = np.flatnonzero((delta[state] >= 0) & (due[delta[state]] == due[state] - 1)).tolist()
            byte = min(nearer, key=self.liking.__getitem__)
            out.append(byte)
            state = int(delta[state, byte])
        return bytes(out), state

    def drawn(self, state: int, terminal: int, rng: Random) -> Spelled | None:
        """Return a random lexeme of a terminal."""
        assert self.parser is not None
        scanner, due, out = self.parser.scanner, self.endings.lexemes[:, terminal], bytearray()
        if state < 0 or due[state] >= NEVER:
            return None
        while True:
            grows = len(out) < 12 and rng.random() < GOES_ON
            row = scanner.delta[state]
            follow = np.flatnonzero((row >= 0) & (due[row] < NEVER))
            if not due[state] and (not grows or not len(follow)):
                return bytes(out), state
            if due[state] and len(out) > 12:
                follow = follow[due[row[follow]] < due[state]]
            ascii_ = follow[(follow >= 32) & (follow < 127)]
            if len(ascii_) and rng.random() >= BEYOND_ASCII:
                follow = ascii_
            letters = follow[np.isin(follow, np.frombuffer(LIKED, np.uint8))]
            if len(letters) and rng.random() < 0.8:
                follow = letters
            byte = int(follow[rng.randrange(len(follow))])
            out.append(byte)
            state = int(row[byte])
