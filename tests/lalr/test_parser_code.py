"""The block of a parser has the reductions of its table: compared with a definition row by row."""

from __future__ import annotations

from pathlib import Path

import lark
import numpy as np
import pytest

from constrain.frontends.lark import to_parser
from constrain.kernels import layout as at
from constrain.lalr.parser_code import Parser

SHIPPED = Path(lark.__file__).parent / "grammars"
GRAMMARS = {
    "no reductions": 'start: "a"',
    "expressions": 'start: start "+" t | t\nt: t "*" f | f\nf: "(" start ")" | /[0-9]+/',
    "many terminals": "start: " + " | ".join(f'"k{k}" x' for k in range(70)) + '\nx: "y"*',
    "nullable": 'start: a b a\na: "x"?\nb: "y"*',
}


def find_reductions(parser: Parser) -> tuple[list[int], list[list[int]]]:
    """Return the offsets of states and the entries: the rule, then its lookaheads as words of bits."""
    offsets, entries = [0], list[list[int]]()
    for row in parser.table.action.tolist():
        for negative in sorted({action for action in row if action < 0}):
            lookaheads = [terminal for terminal, action in enumerate(row) if action == negative]
            entries.append([-negative - 1, *parser.set_of(lookaheads).tolist()])
        offsets.append(len(entries))
    return offsets, entries


@pytest.mark.parametrize("name", [*GRAMMARS, "lark.lark", "python.lark"])
@pytest.mark.parametrize("base", [1, 1000])
def test_reductions_are_those_of_the_table(name: str, base: int) -> None:
    text = GRAMMARS.get(name) or (SHIPPED / name).read_text("utf-8")
    parser = to_parser(text, start="file_input" if name == "python.lark" else "start")
    block = parser.block(base, 0)
    offsets, entries = find_reductions(parser)
    first_offset, first_rule = block[at.P_REDUCES] - base, block[at.P_RULES] - base
    assert block[first_offset : first_offset + len(offsets)].tolist() == offsets
    found = block[first_rule : first_rule + len(entries) * (1 + parser.words)]
    assert np.array_equal(found, np.array(entries, np.int32).ravel())
