"""Decide whether a parser can reach a configuration from which no text can be completed, by its table or its lexer.

Most grammars have no such dead ends, and then masks are cheap: the terminals that the table accepts next are exactly
those that may come next. Proofs are tried in order of cost. Each is sound if it reports no dead end; if none succeeds,
masks query the exact automaton of `lalr.coreachable_stacks`, stack by stack.
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
from ...lalr.scanner_tables import Scanner

__all__ = ["find_dead_ends"]

MOST_STACK_STATES = 20_000
"""Most states for which the automaton of co-reachable stacks is built completely; Python's 6,000 take three seconds."""


def find_dead_ends(
    scanner: Scanner, table: Lalr, productions: Productions, scan: NDArray[np.int32], ignored: frozenset[int]
) -> DeadEnds:
    """Return the possible cause of dead ends; parameters are those of `Parser`.

    Raises
    ------
    LimitError
        If the analysis takes too much work.
    """
    # First without obligations, on an upper bound of the restrictions: this suffices for most lexers.
    if not LexemeBoundaries(scanner, table, scan, ignored, max_obligations=0).is_free:
        boundaries = LexemeBoundaries(scanner, table, scan, ignored, max_obligations=None)
        if not boundaries.is_free and lexer_forbids(table, boundaries.merged[1], MOST_STACK_STATES):
            return "lexer"
    return find_table_dead_ends(table, productions, ignored)


def find_table_dead_ends(table: Lalr, productions: Productions, ignored: frozenset[int]) -> DeadEnds:
    """Return "table" if there may be dead stacks independently of the lexer, else "".

    Epsilon cycles count as well: with them, trying reductions does not decide what a stack accepts. `table` has no
    actions on `ignored` terminals, so a rule that uses one cannot be completed, like one with an unproductive symbol.
    """
    if has_epsilon_cycle(table, productions):
        return "table"
    productive = productions.productive()
    is_completed = all(~s in productive if s < 0 else s not in ignored for s in productions.reachable())
    if not table.conflicts and is_completed:
        return ""
    tables = CoReachableStacks(table).tables(MOST_STACK_STATES)
    return "table" if tables is None or tables.has_dead_ends else ""
