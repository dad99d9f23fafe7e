"""Find terminals that a lexer never produces, and pairs of terminals that are adjacent in no text.

Both are read from the scanner: a terminal that no state accepts is never produced; and `B` can directly
follow `A` if some text of B, or of an ignored terminal, makes the scanner end a text of A where A ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ConstrainError
from ...base.options import Limits
from ...frontends import regex
from ...frontends.lark.lark_loader import LoadedGrammar
from ...grammar.grammar_dfa import to_dfa
from ...lalr.lexeme_parser import scan_lexeme
from ...lalr.parser_code import Parser
from ...lalr.productions import Productions

__all__ = ["Shadow", "find_adjacent", "find_inseparable", "find_shadowed"]

MOST_PAIRS = 20_000
"""Maximum number of pairs of scanner states that are explored for one pair of terminals, before it counts as
separable."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """A terminal that is never produced.

    text: its shortest text, if known. by: the terminal as which `text`, or its prefix of `length` bytes, is recognised;
    None if it is not recognised.
    """

    terminal: int
    text: str | None
    by: int | None
    length: int


def find_shadowed(loaded: LoadedGrammar, parser: Parser) -> list[Shadow]:
    """Return the terminals that the scanner never produces."""
    scanner = parser.scanner
    given = set(np.unique(scanner.accept_table[np.unique(scanner.accept)]).tolist())
    # a terminal that is ignored and also found as a keyword has a number of its own
    given |= {loaded.productions.terminals.index(name) for t, name in enumerate(parser.table.terminals[:-1])
              if t in given and t >= len(loaded.terminals)}  # fmt: skip
    rows = parser.table.action != 0
    out = []
    for t, terminal in enumerate(loaded.terminals):
        if t in given or terminal.kind == "declared":
            continue
        states = np.flatnonzero(rows[:, t]) if t not in parser.ignored else np.arange(len(rows))
        starts = [int(parser.scan[q]) for q in states.tolist() if parser.scan[q] >= 0]
        text = _find_shortest(terminal.text if terminal.kind == "text" else None, terminal.regexp(), loaded.flags)
        by, length = _recognise_prefix(parser, starts[0], text.encode()) if starts and text is not None else (None, 0)
        out.append(Shadow(t, text, by, length))
    return out


def _find_shortest(text: str | None, pattern: str, flags: str) -> str | None:
    """Return a shortest text of a terminal considered alone, None if it cannot be determined."""

    if text is not None:
        return text
    try:
        prefix = f"(?{flags})" if flags else ""
        return to_dfa(regex.to_grammar(prefix + pattern), "a terminal", Limits()).shortest()
    except ConstrainError:
        return None


def _recognise_prefix(parser: Parser, state: int, text: bytes) -> tuple[int | None, int]:
    """Return the terminal as which the lexer recognises a text or its longest prefix, and the length of that prefix."""

    lexeme = scan_lexeme(parser, state, text, 0)
    return (None, 0) if lexeme is None else (lexeme[1], lexeme[0])


# ---- side by side ------------------------------------------------------------------------------------------------


def find_adjacent(productions: Productions) -> set[tuple[int, int]]:
    """Return the pairs of terminals that are adjacent in some sentence."""
    nullable = {~n for n in productions.nullable()}
    productive = {~n for n in productions.productive()}
    first = _collect_edges(productions, nullable, 1)
    last = _collect_edges(productions, nullable, -1)
    pairs: set[tuple[int, int]] = set()
    for right in productions.right:
        if any(symbol < 0 and symbol not in productive for symbol in right):
            continue
        for i, a in enumerate(right):
            for b in right[i + 1 :]:
                pairs |= {(x, y) for x in _edge_terminals(a, last) for y in _edge_terminals(b, first)}
                if b not in nullable:
                    break
    return pairs


def _edge_terminals(symbol: int, sets: list[set[int]]) -> set[int]:
    return {symbol} if symbol >= 0 else sets[~symbol]


def _collect_edges(productions: Productions, nullable: set[int], step: int) -> list[set[int]]:
    """Return the terminals with which sentences of each nonterminal begin (step 1) or end (step -1)."""
    sets: list[set[int]] = [set() for _ in productions.nonterminals]
    changed = True
    while changed:
        changed = False
        for left, right in zip(productions.left, productions.right):
            for symbol in right[::step]:
                more = _edge_terminals(symbol, sets) - sets[left]
                if more:
                    sets[left] |= more
                    changed = True
                if symbol not in nullable:
                    break
    return sets


def find_inseparable(parser: Parser) -> list[tuple[int, int, bool]]:
    """Return (A, B, whether A may lead into a dead end) for terminals that are adjacent in some sentence and in no
    text.

    A dead end is a state of the table after A in which this holds for all terminals that could come next.
    """
    scanner, action = parser.scanner, parser.table.action
    pairs = find_adjacent(parser.productions)
    hidden = {parser.layout.indent, parser.layout.dedent, parser.layout.newline} if parser.layout else set()
    ends = _list_end_bytes(parser)
    shifts: dict[int, set[int]] = {}
    for state, terminal in np.argwhere(action > 0).tolist():
        shifts.setdefault(terminal, set()).add(int(action[state, terminal]) - 1)
    firsts: dict[tuple[int, int], NDArray[np.bool_]] = {}

    def first(e: int, terminal: int) -> NDArray[np.bool_]:
        """Return, as a mask over bytes, the bytes with which a terminal begins from a start state."""
        if (e, terminal) not in firsts:
            row = scanner.delta[e]
            bits = scanner.possible[row, terminal // 64] >> np.uint64(terminal % 64) & np.uint64(1)
            firsts[e, terminal] = (row >= 0) & (bits != 0)
        return firsts[e, terminal]

    out = []
    for a, b in sorted(pairs):
        if {a, b} & (hidden | parser.ignored) or a not in ends:
            continue
        starts = {int(parser.scan[s]) for s in shifts.get(a, ()) if action[s, b]} - {-1}
        scanner_starts = [e for e in starts if (scanner.possible[e, b // 64] >> np.uint64(b % 64)) & np.uint64(1)]
        if not scanner_starts:
            continue
        separable = any(
            (first(e, z)[end_bytes]).any()
            for e in scanner_starts
            for end_bytes in ends[a]
            for z in (b, *sorted(parser.ignored))
        )
        if not separable and not any(
            _separates(parser, a, b, d, e) for d in _accepting_states(parser, a) for e in scanner_starts
        ):
            out.append((a, b))
    apart: dict[int, set[int]] = {}
    for a, b in out:
        apart.setdefault(a, set()).add(b)
    dead = {
        a: [following for s in shifts[a] if (following := set(np.flatnonzero(action[s]).tolist())) <= apart[a]]
        for a in apart
    }
    return [(a, b, any(b in following for following in dead[a])) for a, b in out]


def _accepting_states(parser: Parser, terminal: int) -> list[int]:
    """Return the states that may accept a terminal."""
    rows = (parser.scanner.accept_table == terminal).any(1)
    states: list[int] = np.flatnonzero(rows[parser.scanner.accept]).tolist()
    return states


def _list_end_bytes(parser: Parser) -> dict[int, list[NDArray[np.bool_]]]:
    """Return, for each terminal, the sets of next bytes before which it ends because no longer match is possible."""
    scanner, out = parser.scanner, {}
    for terminal in np.unique(scanner.accept_table).tolist():
        if terminal >= 0:
            sets = {
                ((scanner.delta[d] < 0) & (scanner.accept_table[scanner.accept[d], :256] == terminal)).tobytes()
                for d in _accepting_states(parser, terminal)
            }
            out[terminal] = [np.frombuffer(one, np.bool_) for one in sorted(sets)]
    return out


def _separates(parser: Parser, a: int, b: int, d: int, e: int) -> bool:
    """Return whether some text of b ends a text of a without a longer match.

    d: the state of the scanner after the text of a. e: the start state for b.
    """
    scanner = parser.scanner
    delta, accept_table, accept = scanner.delta, scanner.accept_table, scanner.accept
    bit, word = np.uint64(b % 64), b // 64
    todo = [(d, e, True)]
    seen = {(d, e)}
    while todo:
        state_a, state_b, is_first = todo.pop()
        for byte in np.flatnonzero(delta[state_b] >= 0).tolist():
            terminal = int(accept_table[accept[state_a], byte])
            if (terminal != a) if is_first else terminal >= 0:
                continue
            after, then = int(delta[state_a, byte]), int(delta[state_b, byte])
            if not scanner.possible[then, word] >> bit & np.uint64(1):
                continue
            if after < 0:
                return True
            if (after, then) not in seen:
                seen.add((after, then))
                todo.append((after, then, False))
                if len(seen) > MOST_PAIRS:
                    return True
        # b may be complete here, depending on the next byte: then d must not accept either
        if not is_first and (accept_table[accept[state_b]] == b).any() and (accept_table[accept[state_a]] < 0).any():
            return True
    return False
