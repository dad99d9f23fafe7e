"""Describe a position of a Matcher by the rules that are open there: the return stack, or the stack of an LALR parser.

    expression -> term -> factor          rules of a grammar without a lexer, the outermost first
    object "," STRING ":"                 what an LALR parser has read and not yet reduced

A set of configurations may hold several readings of a text. One of them is described, and their number is given. Rules
without a name of their own (those that a front end generates) are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..grammar.nodes import Rule
from ..kernels import layout as at, program_layout as code_at

if TYPE_CHECKING:
    from ..lalr.parser_code import Parser
    from .matcher import Matcher

__all__ = ["PositionStack", "describe_stack"]

MOST_DEPTH = 256
"""Maximum number of stack nodes and parser states that are followed."""

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PositionStack:
    """One reading of the text so far.

    Attributes
    ----------
    rules : tuple of str
        Names of the open rules, the outermost first.
    symbols : tuple of str
        For a grammar with a lexer: the symbols on the parser's stack, the oldest first.
    readings : int
        Number of configurations of the position.
    """

    rules: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    readings: int = 0


def describe_stack(matcher: Matcher) -> PositionStack:
    """Return the PositionStack of a matcher; an empty one after an end token or where no rule has a name."""
    number = matcher.state[1]
    if number < 0:
        return PositionStack()
    arrays = matcher._state_cache.arrays
    record = arrays[at.SETS][number * at.SET_W :]
    first, count = int(record[at.SET_FIRST]), int(record[at.SET_COUNT])
    if not count:
        return PositionStack()
    config = arrays[at.CONFIGS][first * at.CONFIG_W : (first + 1) * at.CONFIG_W]
    program = matcher.constraint.program
    pc = int(config[at.CONFIG_PC])
    names = RuleNames(program)
    rules = [names.find(pc), *(names.find(caller) for caller in follow_callers(arrays, int(config[at.CONFIG_NODE])))]
    symbols: tuple[str, ...] = ()
    if program.code[pc] == code_at.PARSE:
        parser = program.parsers.get(int(program.code[pc + code_at.ARG_PARSER]))
        symbols = () if parser is None else list_symbols(parser, arrays, int(config[at.CONFIG_STATE]))
    return PositionStack(tuple(name for name in reversed(rules) if name), symbols, count)


class RuleNames:
    """Finds the rule whose code contains an address. Rules are linked one after the other, each as one piece of code.

    program : Program
    """

    def __init__(self, program: object) -> None:
        targets: dict[int, object] = getattr(program, "_targets", {})
        words, links = program.words, program.links  # type: ignore[attr-defined]
        entries = sorted((int(words[cell]), cell) for cell in links)
        self.starts = [entry for entry, _ in entries]
        self.nodes = [targets.get(cell) for _, cell in entries]

    def find(self, pc: int) -> str:
        """Return the name of the rule at an address; "" if it has none."""
        place = bisect_right(self.starts, pc) - 1
        node = self.nodes[place] if place >= 0 else None
        return node.name if isinstance(node, Rule) and isinstance(node.name, str) else ""


def follow_callers(arrays: dict[int, Ints], node: int) -> list[int]:
    """Return the addresses to which the open rules return, the innermost first, along the first edge of each node.

    A cycle of nodes (left recursion) is followed once.
    """
    nodes, edges = arrays[at.NODES], arrays[at.EDGES]
    callers: list[int] = []
    seen: set[int] = set()
    while node not in seen and len(seen) < MOST_DEPTH:
        seen.add(node)
        first, count = (int(nodes[node * at.NODE_W + field]) for field in (at.NODE_FIRST, at.NODE_EDGES))
        if not count:
            break
        edge = edges[first * at.EDGE_W : (first + 1) * at.EDGE_W]
        if edge[at.EDGE_PC] != at.RETURN:  # an edge to a chain of shared edges
            callers.append(int(edge[at.EDGE_PC]))
        node = int(edge[at.EDGE_BELOW])
    return callers


def list_symbols(parser: Parser, arrays: dict[int, Ints], place: int) -> tuple[str, ...]:
    """Return the symbols on the stack of the reading whose lexeme in the making is the longest.

    place: offset of the list of lexemes in LISTS.
    """
    lists, pairs = arrays[at.LISTS], arrays[at.PAIRS]
    if place < 0 or not lists[place + at.LIST_COUNT]:
        return ()
    pair = int(lists[place + at.LIST_FIRST + at.LEXEME_STACK])
    states: list[int] = []
    while len(states) < MOST_DEPTH:
        below = int(pairs[pair * at.PAIR_W + at.PAIR_BELOW])
        if below < 0:  # the bottom, whose value is not a state
            break
        states.append(int(pairs[pair * at.PAIR_W + at.PAIR_VALUE]))
        pair = below
    found = find_symbols(parser)
    return tuple(found[state] for state in reversed(states) if state in found)


def find_symbols(parser: Parser) -> dict[int, str]:
    """Return the symbol that leads to each state of an LALR table but the first; it is the same on all ways there."""
    table, productions = parser.table, parser.productions
    terminals = len(productions.terminals)
    shifts = find_columns(table.action[:, :terminals] - 1, 0)
    found = {state: productions.name(terminal) for state, terminal in shifts.items()}
    return found | {state: productions.name(~left) for state, left in find_columns(table.goto, 0).items()}


def find_columns(table: Ints, least: int) -> dict[int, int]:
    """Return a column in which each entry of a table (int32 [rows, columns]) from `least` on occurs."""
    rows, columns = np.nonzero(table >= least)
    entries, first = np.unique(table[rows, columns], return_index=True)
    return dict(zip(entries.tolist(), columns[first].tolist()))
