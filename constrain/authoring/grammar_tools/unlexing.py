"""Unlex: produce a text that the lexer tokenises to given terminals.

Each lexeme is a walk of the scanner, from its start state for the current parser state, towards the required terminal.
Where it would merge with the lexeme before it, an ignored lexeme is inserted between them, if the grammar has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from ...lalr.lexeme_parser import END_OF_TEXT, Stack, feed_terminal, parse_text
from ...lalr.shortest_suffix import NEVER, ShortestSuffixes
from .written_grammar import WrittenGrammar

__all__ = ["Speller"]

PREFERRED = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Bytes that are preferred where any would do."""
TRIES = 6
"""Number of lexemes that are drawn before an ignored lexeme is inserted, or the attempt fails."""
CONTINUE = 0.6
"""Probability that a lexeme continues where it could end."""
SEPARATE = 0.5
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
        order = {byte: rank for rank, byte in enumerate(PREFERRED)}
        self.preference = [order.get(byte, 100 + byte) for byte in range(256)]

    def text(self, types: Sequence[int], rng: Random | None = None) -> bytes | None:
        """Return a text of these terminals, without $END; of the shortest lexemes if rng is None.

        Return None if no text was found that is tokenised to them, or if the grammar's own parser rejects it.
        """
        if self.parser is None:
            return b"".join(self.character(terminal, rng) for terminal in types)
        spelled_text = self._lexemes(types, rng)
        if spelled_text is None or not self.written.has_lexer:
            return spelled_text
        reading = parse_text(self.parser, spelled_text)
        layout = self.parser.layout
        hidden = self.parser.ignored | ({layout.indent, layout.dedent} if layout else set())
        read = [lexeme.terminal for lexeme in reading.lexemes if lexeme.terminal not in hidden]
        return spelled_text if reading.stopped is None and read == [t for t in types if t not in hidden] else None

    def spell_separately(self, types: Sequence[int]) -> bytes:
        """Return a text of these terminals, each spelled on its own.

        They are separated by an ignored lexeme if the grammar has one.
        """
        if self.parser is None:
            return b"".join(self.character(terminal, None) for terminal in types)
        start = int(self.parser.scan[self.parser.table.start])
        starts = [start, *np.unique(self.parser.scan[self.parser.scan >= 0]).tolist()]
        spellings = []
        for terminal in types:
            spelled = next((one for e in starts if e >= 0 and (one := self.shortest(e, terminal))), None)
            name = self.parser.table.terminals[terminal].encode()
            spellings.append(spelled[0] if spelled else b"<" + name + b">")
        return (self._find_separator(start) or (b"", -1))[0].join(spellings)

    def beside(self, a: int, b: int) -> bytes:
        """Return the shortest texts of two terminals, concatenated."""
        return self.spell_separately([a]) + self.spell_separately([b])

    # ---- characters ---------------------------------------------------------------------------------------------

    def character(self, terminal: int, rng: Random | None) -> bytes:
        """Return one of the characters of a GBNF terminal."""
        alphabet = self.written.alphabet
        if terminal >= len(alphabet):
            return self.written.tokens[terminal - len(alphabet)].encode()
        ranges = alphabet[terminal]
        if rng is None:
            liked = [byte for byte in PREFERRED if any(low <= byte <= high for low, high in ranges)]
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
        out, scanner_state, last, level = b"", -1, -1, 0
        for index, terminal in enumerate(types):
            state = int(parser.scan[stack[-1]])
            if layout is not None and terminal in (layout.indent, layout.dedent):
                spelled: Spelled | None = (b"", scanner_state)
            elif layout is not None and terminal == layout.newline:
                blocks = types[index + 1 :]
                change = 0
                while change < len(blocks) and blocks[change] in (layout.indent, layout.dedent):
                    level += 1 if blocks[change] == layout.indent else -1
                    change += 1
                spelled = self._scan_text(state, b"\n" + b" " * (INDENT * level), terminal)
            elif state < 0:
                spelled = None
            else:
                spelled = self._spell_separated(scanner_state, last, state, terminal, rng, out[-1:])
            if spelled is None:
                return None
            if spelled[0]:
                out, scanner_state, last = out + spelled[0], spelled[1], terminal
            after = feed_terminal(parser, stack, terminal)
            if after is None:
                if self.written.has_lexer:
                    return None
                after = stack
            stack = after
        return out

    def _spell_separated(
        self, scanner_state: int, last: int, state: int, terminal: int, rng: Random | None, end: bytes
    ) -> Spelled | None:
        """Return a lexeme that does not merge with the one before it, if necessary after an ignored lexeme."""
        spelled: Spelled | None = None
        joins = False
        for _ in range(1 if rng is None else TRIES):
            spelled = self.shortest(state, terminal) if rng is None else self.draw_lexeme(state, terminal, rng)
            if spelled is None:
                return None
            joins = self.ends_before(scanner_state, last, spelled[0])
            if joins:
                wordy = end.isalnum() and spelled[0][:1].isalnum()
                if not wordy and (rng is None or rng.random() >= (SEPARATE if end else 0)):
                    return spelled
                break
        assert spelled is not None
        blank = self._find_separator(state)
        if (
            blank is not None
            and self.ends_before(scanner_state, last, blank[0])
            and self.ends_before(blank[1], -2, spelled[0])
        ):
            return blank[0] + spelled[0], spelled[1]
        if joins:
            return spelled
        if rng is None:  # another lexeme than the shortest may not merge
            other = Random(0)
            for _ in range(TRIES):
                lexeme = self.draw_lexeme(state, terminal, other)
                if lexeme is not None and self.ends_before(scanner_state, last, lexeme[0]):
                    return lexeme
        return None

    def ends_before(self, scanner_state: int, last: int, text: bytes) -> bool:
        """Return whether a lexeme that left the scanner in `scanner_state` ends as terminal `last` (-2: any) before
        this text.
        """
        if scanner_state < 0:
            return True
        assert self.parser is not None
        scanner, state = self.parser.scanner, scanner_state
        terminal = int(scanner.accept_table[scanner.accept[state], text[0]])
        if terminal < 0 or (terminal != last and last != -2):
            return False
        for index, byte in enumerate(text):
            state = int(scanner.delta[state, byte])
            if state < 0:
                return True
            after = text[index + 1] if index + 1 < len(text) else END_OF_TEXT
            if scanner.accept_table[scanner.accept[state], after] >= 0:
                return False
        return False

    def _scan_text(self, state: int, text: bytes, terminal: int) -> Spelled | None:
        """Return this text, if the scanner recognises all of it as the terminal."""
        assert self.parser is not None
        for byte in text:
            state = int(self.parser.scanner.delta[state, byte]) if state >= 0 else -1
        ends = state >= 0 and (self.parser.scanner.accept_table[self.parser.scanner.accept[state]] == terminal).any()
        return (text, state) if ends else None

    def _find_separator(self, state: int) -> Spelled | None:
        """Return the best ignored lexeme: a blank, or the shortest one."""
        assert self.parser is not None
        for text in (b" ", b"\n"):
            for terminal in self.parser.ignored:
                if state >= 0 and (spelled := self._scan_text(state, text, terminal)):
                    return spelled
        candidates = [one for t in sorted(self.parser.ignored) if state >= 0 and (one := self.shortest(state, t))]
        return min(candidates, key=lambda one: len(one[0]), default=None)

    def shortest(self, start: int, terminal: int) -> Spelled | None:
        """Return the shortest lexeme of a terminal from a start state of the scanner; None if there is none."""
        key = start, terminal
        if key not in self._shortest:
            self._shortest[key] = self._shortest_from(start, terminal)
        return self._shortest[key]

    def _shortest_from(self, state: int, terminal: int) -> Spelled | None:
        assert self.parser is not None
        distance, delta, out = self.endings.lexemes[:, terminal], self.parser.scanner.delta, bytearray()
        if state < 0 or distance[state] >= NEVER:
            return None
        while distance[state]:
            nearer = np.flatnonzero((delta[state] >= 0) & (distance[delta[state]] == distance[state] - 1)).tolist()
            byte = min(nearer, key=self.preference.__getitem__)
            out.append(byte)
            state = int(delta[state, byte])
        return bytes(out), state

    def draw_lexeme(self, state: int, terminal: int, rng: Random) -> Spelled | None:
        """Return a random lexeme of a terminal."""
        assert self.parser is not None
        scanner, distance, out = self.parser.scanner, self.endings.lexemes[:, terminal], bytearray()
        if state < 0 or distance[state] >= NEVER:
            return None
        while True:
            grows = len(out) < 12 and rng.random() < CONTINUE
            row = scanner.delta[state]
            follow = np.flatnonzero((row >= 0) & (distance[row] < NEVER))
            if not distance[state] and (not grows or not len(follow)):
                return bytes(out), state
            if distance[state] and len(out) > 12:
                follow = follow[distance[row[follow]] < distance[state]]
            ascii_ = follow[(follow >= 32) & (follow < 127)]
            if len(ascii_) and rng.random() >= BEYOND_ASCII:
                follow = ascii_
            letters = follow[np.isin(follow, np.frombuffer(PREFERRED, np.uint8))]
            if len(letters) and rng.random() < 0.8:
                follow = letters
            byte = int(follow[rng.randrange(len(follow))])
            out.append(byte)
            state = int(row[byte])
