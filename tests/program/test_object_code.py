"""The code of objects: white space is generated as the linker generates any node."""

from __future__ import annotations

import pytest

from constrain import Style
from constrain.frontends.json_schema.core.whitespace import spacing_at
from constrain.grammar.nodes import EMPTY, Choice, Grammar, Literal, Node, Sequence
from constrain.kernels import layout as at
from constrain.program.linker import RuleLinker
from constrain.program.object_code import _space_code
from constrain.program.program import Program

STYLES = [Style(), Style.any(), Style(whitespace="compact"), Style(whitespace=2)]


@pytest.mark.parametrize("style", STYLES, ids=repr)
@pytest.mark.parametrize("depth", [0, 3])
def test_white_space_has_the_code_of_its_node(style: Style, depth: int) -> None:
    layout = spacing_at(style, depth).layout
    for node in (layout.open, layout.close, layout.comma, layout.colon, layout.empty):
        program = Program(Grammar(EMPTY, {}))
        linker = RuleLinker(program)
        linker.visit(node)
        assert linker.words == _space_code(node, program)
        assert not linker.relocations


@pytest.mark.parametrize("node", [Choice((Literal(b","), Literal(b";"))), Sequence((Literal(b" "), Choice(())))])
def test_whitespace_nodes_with_addresses_are_compiled_to_calls(node: Node) -> None:
    program = Program(Grammar(EMPTY, {}))
    assert _space_code(node, program)[-2:] == [at.CALL, program.cells()[-1]]
