"""The stack of a position, compared with that of Lark's own parser, and with rules that are known to be open."""

from __future__ import annotations

import pytest
from lark import Lark

import constrain
from constrain import grammars
from constrain.engine.constraint import Constraint
from constrain.engine.position_stack import describe_stack
from constrain.vocabulary.vocabulary import Vocabulary


def compiled(form: constrain.Form | str) -> Constraint:
    return constrain.compile(Vocabulary.bytes(), grammar=form)


def rules_after(constraint: Constraint, text: str) -> tuple[str, ...]:
    matcher = constraint.matcher()
    matcher.advance_bytes(text.encode())
    return describe_stack(matcher).rules


@pytest.mark.parametrize("name", ["arithmetic", "json", "cron"])
def test_symbols_are_those_of_larks_parser(name: str) -> None:
    """The stack while a token is being read is that of Lark before it."""
    ready = grammars.read(name)
    constraint = compiled(name)
    parser = Lark(ready.text, parser="lalr", lexer=ready.lexer, propagate_positions=True)
    compared = 0
    for text in ready.accepts:
        steps = parser.parse_interactive(text)
        for token in steps.iter_parse():  # yields a token before the parser reads it
            depth = len(steps.parser_state.value_stack)
            matcher = constraint.matcher()
            matcher.advance_bytes(text[: token.start_pos + 1].encode())
            stack = describe_stack(matcher)
            if stack.readings == 1:
                compared += 1
                assert len(stack.symbols) == depth, text[: token.start_pos + 1]
    assert compared > 20


def test_open_rules_of_gbnf() -> None:
    constraint = compiled(
        constrain.gbnf(
            'root ::= sum\nsum ::= term ("+" term)*\nterm ::= number | "(" sum ")"\nnumber ::= [0-9]+ "." [0-9]+'
        )
    )
    assert rules_after(constraint, "1.") == ("sum", "term")
    assert rules_after(constraint, "1.5+(2.") == ("sum", "term", "sum", "term")
    assert rules_after(constraint, "((3.") == ("sum", "term") * 3


def test_rules_without_names_and_ends() -> None:
    constraint = compiled(constrain.regex("a+b"))
    matcher = constraint.matcher()
    matcher.advance_bytes(b"aab")
    assert describe_stack(matcher).rules == ()
    matcher.advance(constraint.vocabulary.eos_ids[0])
    assert describe_stack(matcher).readings == 0


def test_left_recursion_and_depth_end() -> None:
    constraint = compiled(constrain.lark('start: e\ne: e "+" t | t\nt: "(" e ")" | /[0-9]+/', parser="earley"))
    matcher = constraint.matcher()
    matcher.advance_bytes(b"(" * 500 + b"1+1+1")
    assert describe_stack(matcher).readings >= 1
