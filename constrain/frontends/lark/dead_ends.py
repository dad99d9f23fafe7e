"""Whether a parser can come to a place from which no text can be finished, by its table or by its lexer.

Most grammars cannot, and to know that makes masks cheap: what the table accepts next is what may come next. Proofs are
tried in the order of their cost. Each is certain where it says that there is no dead end; where none succeeds, masks
ask the exact automaton of `lalr.coreachable_stacks`, stack by stack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...lalr.coreachable_stacks import CoReachableStacks, lexer_forbids
from ...lalr.epsilon_cycles import has_epsilon_cycle
from ...lalr.lalr_tables import Lalr
from ...lalr.lexeme_boundaries import LexemeBoundaries
from ...lalr.parser_code import DeadEnds
from ...lalr.productions import Productions
from ...lalr.scanner import Scanner

__all__ = ["find_dead_ends"]

MOST_ALIVE = 20_000
"""States of the automaton of live stacks up to which it is made in whole; Python's 6,000 take three seconds."""


def find_dead_ends(
    scanner: Scanner, table: Lalr, productions: Productions, scan: NDArray[np.int32], ignored: frozenset[int]
) -> DeadEnds:
    """Return what may lead into dead ends; arguments as of `Parser`. LimitError if that takes too much work."""
    # A lexeme that could go on, but not over what follows, forbids nothing: that is enough for most lexers.
    if not LexemeBoundaries(scanner, table, scan, ignored, most=0).is_free:
        boundaries = LexemeBoundaries(scanner, table, scan, ignored, most=None)
        if not boundaries.is_free and lexer_forbids(table, boundaries.merged[1], MOST_ALIVE):
            return "lexer"
    return find_table_dead_ends(table, productions)


def find_table_dead_ends(table: Lalr, productions: Productions) -> DeadEnds:
    """Return "table" if there may be dead stacks whatever the lexer does.

    Where reductions can go round, what a stack accepts cannot be told by trying reductions: that counts as well.
    """
    if has_epsilon_cycle(table, productions):
        return "table"
    productive = productions.productive()
    barren = any(~symbol not in productive for symbol in productions.reachable() if symbol < 0)
    if not table.conflicts and not barren:
        return ""
    tables = CoReachableStacks(table).tables(MOST_ALIVE)
    return "table" if tables is None or tables.has_dead_ends else ""
