"""The tables are those that Lark makes, state by state; and what productions say of themselves."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import lark
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from lark.common import ParserConf
from lark.grammar import NonTerminal, Rule, RuleOptions, Terminal
from lark.load_grammar import load_grammar
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

from constrain.base.errors import GrammarError
from constrain.lalr.lalr_tables import END, Lalr, build_tables
from constrain.lalr.productions import Productions, propagate_sets

SHIPPED = Path(lark.__file__).parent / "grammars"

SMALL = {
    "empty": "start:",
    "one": 'start: "a"',
    "cyclic": 'start: start | "a"',
    "left": 'start: start "a" | "a"',
    "right": 'start: "a" start | "a"',
    "nullable": 'start: a b a\na: "x"?\nb: "y"*',
    "dangling": 'start: "if" start ["else" start] | "x"',
    "dead end": 'start: x "b"\nx: | "b" x',
    "unproductive": 'start: "a" | "b" start2\nstart2: "c" start2',
    "expressions": 'start: start "+" t | t\nt: t "*" f | f\nf: "(" start ")" | /[0-9]/',
    "lalr, not slr": 'start: l "=" r | r\nl: "*" r | "i"\nr: l',
    "wider than the paper": 'start: a "$"\na: "a" b | "x" | "y"\nb: a "d" | "a" c\nc: "z"',
    "priorities": 'start: a | b\na.2: "x"\nb: "x"',
    "repeated": 'start: "a"~2..60 "b"~3',
    "templates": 'start: list{"a"} | "(" list{b} ")"\nlist{x}: x ("," x)*\nb: "b"',
}


def rules_of(text: str, start: str = "start", keep: tuple[str, ...] = ()) -> list[Rule]:
    grammar, _ = load_grammar(text, "<test>", [], False)
    return list(grammar.compile([start], set(keep))[1])


def numbered(rules: list[Rule], start: str) -> Productions:
    symbols = [symbol for rule in rules for symbol in rule.expansion]
    terminals = list(dict.fromkeys(symbol.name for symbol in symbols if symbol.is_term))
    nonterminals = list(dict.fromkeys(rule.origin.name for rule in rules))
    return Productions(
        terminals=tuple(terminals),
        nonterminals=tuple(nonterminals),
        left=tuple(nonterminals.index(rule.origin.name) for rule in rules),
        right=tuple(
            tuple(terminals.index(s.name) if s.is_term else ~nonterminals.index(s.name) for s in rule.expansion)
            for rule in rules
        ),
        priority=tuple(rule.options.priority or 0 for rule in rules),
        start=nonterminals.index(start),
        display_names={},
    )


def analysed(rules: list[Rule], start: str) -> LALR_Analyzer:
    analyzer = LALR_Analyzer(ParserConf(rules, {}, [start]))
    analyzer.compute_lalr()
    return analyzer


def assert_same(table: Any, rules: list[Rule], start: str, ours: Lalr) -> None:
    """Walks both tables in step from the start states; every state of both is visited, and every action is the same."""
    places = {(rule.origin.name, tuple(rule.expansion)): number for number, rule in enumerate(rules)}
    columns = {name: ("action", t) for t, name in enumerate(ours.terminals)}
    columns |= {name: ("goto", n) for n, name in enumerate(ours.nonterminals)}
    end = table.end_states[start]
    paired = {table.start_states[start]: ours.start}
    todo = list(paired)
    for theirs in todo:  # grows while it is read
        mine = paired[theirs]
        expected: dict[tuple[str, int], int] = {}
        for name, (kind, argument) in table.states[theirs].items():
            which, column = columns[name]
            if kind is Shift:
                state = int(ours.action[mine, column]) - 1 if which == "action" else int(ours.goto[mine, column])
                if argument not in paired:
                    paired[argument] = state
                    todo.append(argument)
                expected[which, column] = paired[argument] + (which == "action")
            else:
                expected[which, column] = -1 - places[argument.origin.name, tuple(argument.expansion)]
        if theirs == end:
            expected[columns[END]] = mine + 1
        found = {("action", int(t)): int(ours.action[mine, t]) for t in np.flatnonzero(ours.action[mine])}
        found |= {("goto", int(n)): int(ours.goto[mine, n]) for n in np.flatnonzero(ours.goto[mine] >= 0)}
        assert found == expected
    assert len(paired) == len(table.states) == len(ours.action) == len(set(paired.values()))
    assert paired[end] == ours.end


def accepts(table: Lalr, types: list[int]) -> bool:
    """Whether the table accepts a string of terminals, as its docstring says that it does."""
    stack = [table.start]
    for terminal in [*types, len(table.terminals) - 1]:
        while (act := int(table.action[stack[-1], terminal])) < 0:
            rule = -act - 1
            del stack[len(stack) - int(table.length[rule]) :]
            stack.append(int(table.goto[stack[-1], table.left[rule]]))
        if not act:
            return False
        stack.append(act - 1)
    return stack[-1] == table.end


@pytest.mark.parametrize(("name", "start", "keep"), [("python", "file_input", ("_NEWLINE",)), ("lark", "start", ())])
def test_lark_s_own_grammars(name: str, start: str, keep: tuple[str, ...]) -> None:
    rules = rules_of((SHIPPED / f"{name}.lark").read_text("utf-8"), start, keep)
    assert_same(analysed(rules, start).parse_table, rules, start, build_tables(numbered(rules, start)))


@pytest.mark.parametrize("name", SMALL)
def test_small_grammars(name: str) -> None:
    rules = rules_of(SMALL[name])
    table = build_tables(numbered(rules, "start"))
    assert_same(analysed(rules, "start").parse_table, rules, "start", table)
    parser = lark.Lark(SMALL[name], parser="lalr")
    terminals = len(table.terminals) - 1
    for length in range(4 if terminals > 3 else 6):
        for types in itertools.product(range(terminals), repeat=length):
            interactive = parser.parse_interactive("")
            try:
                for terminal in types:
                    interactive.feed_token(lark.Token(table.terminals[terminal], ""))
                interactive.feed_eof()
            except lark.UnexpectedInput:
                assert not accepts(table, list(types))
            else:
                assert accepts(table, list(types))


@st.composite
def grammars(draw: st.DrawFn) -> list[Rule]:
    """Random rules over a small alphabet, some with priorities; most grammars have conflicts, nullable or dead
    symbols.
    """
    nonterminals = [NonTerminal(f"n{i}") for i in range(draw(st.integers(1, 6)))]
    terminals = [Terminal(f"T{i}") for i in range(draw(st.integers(1, 5)))]
    rules: dict[tuple[str, tuple[Any, ...]], Rule] = {}
    for nonterminal in nonterminals:
        options = RuleOptions(priority=draw(st.sampled_from([None, None, 1, 2])))
        for order in range(draw(st.integers(1, 3))):
            right = draw(st.lists(st.one_of(st.sampled_from(nonterminals), st.sampled_from(terminals)), max_size=4))
            rules.setdefault((nonterminal.name, tuple(right)), Rule(nonterminal, right, order, None, options))
    return list(rules.values())


def is_tangled(rules: list[Rule]) -> bool:
    """Whether nullable symbols follow each other in a circle. No parser of bounded look-ahead reads such a grammar, and
    Lark's look-aheads then depend on the order of a set of objects, that is on memory addresses."""
    analyzer = LALR_Analyzer(ParserConf(rules, {}, ["n0"]))
    analyzer.compute_lr0_states()
    analyzer.compute_reads_relations()
    reads = analyzer.reads

    def reached(node: Any) -> set[Any]:
        seen: set[Any] = set()
        todo = [node]
        while todo:
            new = set(reads.get(todo.pop(), ())) - seen
            seen |= new
            todo += new
        return seen

    circles = {node: reached(node) for node in list(reads) if reads[node]}
    return any(other != node and node in circles.get(other, ()) for node in circles for other in circles[node])


@settings(max_examples=120)
@given(grammars())
def test_random_grammars(rules: list[Rule]) -> None:
    try:
        ours = build_tables(numbered(rules, "n0"))
    except GrammarError:
        ours = None
    try:
        analyzer = analysed(rules, "n0")
    except lark.GrammarError:
        analyzer = None
    try:
        assert (ours is None) == (analyzer is None)
        if ours is not None and analyzer is not None:
            assert_same(analyzer.parse_table, rules, "n0", ours)
    except AssertionError:
        assume(not is_tangled(rules))
        raise


def test_conflicts_are_named() -> None:
    table = build_tables(numbered(rules_of(SMALL["dangling"]), "start"))
    assert table.conflicts == ("before ELSE the rule `start: IF start` is never reduced: shifting it has precedence",)
    table = build_tables(numbered(rules_of(SMALL["priorities"]), "start"))
    assert table.conflicts == (
        "before the end of the text the rule `b: X` is never reduced: `a: X` has a higher priority",
    )
    assert build_tables(numbered(rules_of(SMALL["expressions"]), "start")).conflicts == ()


def test_reduce_reduce_conflicts_are_refused() -> None:
    productions = numbered(
        rules_of('start: a "y" | b "y" | a "z" | b "z" | c | d\na: "x"\nb: "x"\nc: "w"\nd: "w"'), "start"
    )
    with pytest.raises(GrammarError) as caught:
        build_tables(productions)
    assert str(caught.value) == (
        "reduce/reduce conflict: before Y, Z, one token of lookahead does not decide which of 2 rules ends:\n"
        "    a: X\n"
        "    b: X\n"
        "  as for 1 other pair of rules\n"
        "  Join the rules, or give one of them a priority: `name.2: ...` goes first."
    )
    with pytest.raises(GrammarError, match="before the end of the text"):
        build_tables(numbered(rules_of('start: a | b\na: "x"\nb: "x"'), "start"))


def derived(rules: list[Rule], length: int) -> dict[str, set[tuple[str, ...]]]:
    """What each nonterminal turns into, up to a length: the obvious fixpoint."""
    texts: dict[str, set[tuple[str, ...]]] = {rule.origin.name: set() for rule in rules}
    while True:
        before = sum(map(len, texts.values()))
        for rule in rules:
            made: set[tuple[str, ...]] = {()}
            for symbol in rule.expansion:
                options = {(symbol.name,)} if symbol.is_term else texts[symbol.name]
                made = {one + other for one in made for other in options if len(one) + len(other) <= length}
            texts[rule.origin.name] |= made
        if sum(map(len, texts.values())) == before:
            return texts


@settings(max_examples=60)
@given(grammars())
def test_nullable_and_productive(rules: list[Rule]) -> None:
    productions = numbered(rules, "n0")
    texts = derived(rules, 3)
    names = productions.nonterminals
    assert {names[n] for n in productions.nullable()} == {name for name, made in texts.items() if () in made}
    alive: set[str] = set()
    while True:
        more = {r.origin.name for r in rules if all(s.is_term or s.name in alive for s in r.expansion)}
        if more == alive:
            break
        alive = more
    assert {names[n] for n in productions.productive()} == alive


def test_reachable_and_words() -> None:
    productions = Productions(("A", "B"), ("s", "t", "u"), (0, 1, 2), ((~1, 0), (), (1, ~2)), (0, 0, 0), 0, {0: '"a"'})
    assert productions.reachable() == {~0, ~1, 0}
    assert productions.productive() == {0, 1}
    assert [productions.text(rule) for rule in range(3)] == ['s: t "a"', "t: (nothing)", "u: B u"]


@given(
    st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n))
)
def test_spread(edges: list[list[int]]) -> None:
    sets = [1 << node for node in range(len(edges))]
    propagate_sets(edges, sets)
    for node in range(len(edges)):
        reached, todo = {node}, [node]
        while todo:
            new = set(edges[todo.pop()]) - reached
            reached |= new
            todo += new
        assert sets[node] == sum(1 << other for other in reached)


def test_a_chain_of_any_length_needs_no_recursion() -> None:
    count = 20_000
    edges = [[node + 1] for node in range(count)] + [[]]
    sets = [0] * count + [1]
    propagate_sets(edges, sets)
    assert sets == [1] * (count + 1)
