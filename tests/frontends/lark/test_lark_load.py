"""Grammars are read as lark reads them, and where lark refuses one, we say where and what to do."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import GrammarError, LimitError
from constrain.frontends.lark.lark_loader import LoadedGrammar, load_grammar
from constrain.frontends.lark.rule_expansion import count_options
from constrain.lalr.lalr_tables import build_tables

SHIPPED = Path(lark.__file__).parent / "grammars"
FAULTS = [
    tuple(fault.split("\n-----\n"))
    for fault in (Path(__file__).parent / "lark_faults.txt").read_text("utf-8").split("=====\n")[1:]
]

CALCULATOR = r"""
%import common (WS, NUMBER)
%import common.CNAME -> NAME
?start: sum | NAME "=" sum -> assign
?sum: product | sum "+" product -> add | sum "-" product
!product: atom | product ("*" | "/") atom
atom.2: NUMBER | "-" atom | "(" sum ")" | list{atom, ","} | KEYWORD
list{item, separator}: "[" item (separator item)~0..3 "]"
KEYWORD.3: "let"i | "in" | /[A-Z]+/s | HEX
HEX: "0x" ("a".."f" | "0".."9")+
_END: /;+/
%declare _INDENT
block: _INDENT start
%ignore WS
%ignore /#[^\n]*/
%extend atom: STRING | block
%override NUMBER: /[0-9]+/
STRING: /"(\\.|[^"\\])*"/x
"""


def assert_as_lark(loaded: LoadedGrammar, theirs: lark.Lark) -> None:
    """Terminals, rules and what is ignored are those of a Lark object."""
    named = {terminal.name: terminal for terminal in loaded.terminals}
    assert [t.name for t in loaded.terminals if t.kind != "declared"] == [t.name for t in theirs.terminals]
    for terminal in theirs.terminals:
        ours = named[terminal.name]
        assert ours.regexp() == terminal.pattern.to_regexp() or len(ours.flags) > 1  # lark's order of flags is a set's
        assert (ours.text, set(ours.flags)) == (terminal.pattern.value, set(terminal.pattern.flags))
        assert (ours.kind == "text") == (terminal.pattern.type == "str")
        assert ours.priority == terminal.priority
        assert (ours.least, ours.most) == (terminal.pattern.min_width, terminal.pattern.max_width)
    assert {loaded.terminals[t].name for t in loaded.ignored} == set(theirs.ignore_tokens)
    rules = loaded.productions
    spelled = [
        (rules.nonterminals[n], [rules.terminals[s] if s >= 0 else rules.nonterminals[~s] for s in right], priority)
        for n, right, priority in zip(rules.left, rules.right, rules.priority)
    ]
    assert spelled == [(r.origin.name, [s.name for s in r.expansion], r.options.priority or 0) for r in theirs.rules]


def test_all_constructs_of_a_grammar() -> None:
    loaded = load_grammar(CALCULATOR)
    assert_as_lark(loaded, lark.Lark(CALCULATOR, parser="earley", lexer="basic"))
    assert [loaded.terminals[t].name for t in loaded.declared] == ["_INDENT"]
    assert loaded.imports[0][:2] == (None, "common.lark")
    inverted = load_grammar(CALCULATOR, priority="invert")
    assert_as_lark(inverted, lark.Lark(CALCULATOR, parser="earley", lexer="basic", priority="invert"))
    assert not any(terminal.priority for terminal in load_grammar(CALCULATOR, priority="ignore").terminals)


def test_lark_s_own_grammars() -> None:
    for name, start in (("python", "file_input"), ("lark", "start")):
        text = (SHIPPED / f"{name}.lark").read_text("utf-8")
        theirs = lark.Lark(text, parser="earley", lexer="basic", start=start)
        assert_as_lark(load_grammar(text, start=start), theirs)


def test_terminals_of_a_post_lexer_are_retained() -> None:
    text = 'start: "a"\nEND: "\\n"\n'
    assert [t.name for t in load_grammar(text).terminals] == ["A"]
    assert [t.name for t in load_grammar(text, keep=["END"]).terminals] == ["END", "A"]


def test_flags_hold_for_all_patterns() -> None:
    assert load_grammar("start: /a b/", flags="ix").flags == "ix"
    with pytest.raises(GrammarError, match="flag 'q' is none of"):
        load_grammar("start: /a b/", flags="q")


def test_source_positions() -> None:
    text = '// start: no\nstart: list{"+"} NUMBER\nlist{x}: x* "a b"\n%import common.NUMBER\n'
    loaded = load_grammar(text)
    at = {terminal.name: terminal.position for terminal in loaded.terminals}
    assert at == {"NUMBER": None, "PLUS": text.index('"+"'), "__ANON_0": text.index('"a b"')}
    for rule, left in enumerate(loaded.productions.left):
        name = loaded.productions.nonterminals[left]
        word = "start" if name == "start" else "list"
        assert loaded.position(rule) == text.index(f"\n{word}") + 1
    assert [loaded.productions.text(rule) for rule in range(3)] == [
        'start: list{PLUS} NUMBER', 'list{PLUS}: ("+")+ "a b"', 'list{PLUS}: "a b"',
    ]  # fmt: skip
    with pytest.raises(GrammarError) as caught:
        clash = load_grammar('start: a | b\na: "x"\nb: "x"\n')
        build_tables(clash.productions, lambda rule: (clash.text, clash.position(rule) or 0))
    assert '    a: "x"\n    b: "x"\n  at line 2, column 1\n' in str(caught.value)


def test_imports(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text('%import .deeper.LETTER\nWORD: LETTER+\npair: WORD "," WORD\n', "utf-8")
    (tmp_path / "deeper.lark").write_text('LETTER: "a".."z" | DIGIT\n%import common.DIGIT\n', "utf-8")
    text = "%import .words (pair, WORD)\nstart: pair | WORD\n"
    source = str(tmp_path / "main.lark")
    loaded = load_grammar(text, source=source, import_paths=[str(tmp_path)])
    assert_as_lark(loaded, lark.Lark(text, source_path=source, parser="lalr"))
    assert [asked for _, asked, _ in loaded.imports] == ["words.lark", "deeper.lark", "common.lark"]
    text = "%import words.pair\nstart: pair\n"
    assert_as_lark(load_grammar(text, import_paths=[str(tmp_path)]), lark.Lark(text, import_paths=[str(tmp_path)]))


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        (
            'WORD: "a"\nWORD: "b"\n',
            "terminal `WORD` is defined twice (in the imported {file})\n  at line 2, column 1",
        ),
        ("WORD: a'\n", "a string is enclosed in double quotes (in the imported {file})\n  at line 1, column 8"),
        ("WORD: /[a/\n", "this class is not closed (in the imported {file})\n  at line 1, column 8"),
        (
            "WORD: LETTER\n",
            "terminal `words__LETTER` is used but not defined (in the imported {file})\n  at line 1, column 7",
        ),
    ],
)
def test_an_error_in_an_imported_grammar_names_it(tmp_path: Path, imported: str, message: str) -> None:
    file = tmp_path / "words.lark"
    file.write_text(imported, "utf-8")
    with pytest.raises(GrammarError) as caught:
        load_grammar("%import .words.WORD\nstart: WORD\n", import_paths=[str(tmp_path)])
    assert str(caught.value).startswith(message.format(file=file))


@pytest.mark.parametrize(("grammar", "message"), FAULTS, ids=[message.split("\n")[0][:50] for _, message in FAULTS])
def test_faults(grammar: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        load_grammar(grammar)
    assert str(caught.value) == message.rstrip("\n")
    with pytest.raises(Exception):  # noqa: B017  (lark raises whatever happens)
        lark.Lark(grammar, parser="lalr")


@pytest.mark.parametrize(
    ("rule", "count"),
    [('"a"? ["b"] "c"*', 10), ('("a" | "b")~3', 8), ('("a" | "b")~0..2', 7), ('("a" "b"?)+', 5), ("x{y} -> z", 1)],
)
def test_options_are_counted(rule: str, count: int) -> None:
    grammar, _ = lark.load_grammar.load_grammar(f'start: {rule}\nx{{p}}: p\ny: "y"', "", [], False)
    trees = {name: tree for name, _, tree, _ in grammar.rule_defs}
    assert count_options(trees["start"]) == count
    written = [r for r in grammar.compile(["start"], set())[1] if r.origin.name not in ("y", "x{y}")]
    assert len(written) == count


@pytest.mark.parametrize(
    "rule", ['("a" | "b")~20', "x?" + " x?" * 39, '("a" | "b" | "c" | "d" | "e" | "f" | "g")~60..90']
)
def test_too_many_options_are_refused(rule: str) -> None:
    with pytest.raises(LimitError, match=r"rule `start` has .* options, more than 10000") as caught:
        load_grammar(f'x: "x"\nstart: {rule}\n')
    assert caught.value.position == len('x: "x"\n')


PIECES = [
    '"', "/", "|", "(", ")", "[", "{", "}", "~", "..", ".", "2", "A", "a", "_", "\n", " ", "\\", "->", "?", "*", "+",
    ":", ",", "//", "#",
    "%ignore ", "%extend ", "%override ", "%declare ", "%import ", "!", '"a"', "é", "/a*/", "0", "",
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A grammar with some pieces replaced by others."""
    text = draw(st.sampled_from([CALCULATOR, *(grammar for grammar, _ in FAULTS)]))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.integers(0, 3)) :]
    return text


@settings(max_examples=150)
@given(damaged())
def test_damaged_grammars_load_as_in_lark_or_raise_with_a_position(text: str) -> None:
    try:
        theirs = lark.Lark(text, parser="earley", lexer="basic", source_path="<grammar>")
    except Exception:  # assertions and look-up errors too
        with pytest.raises(GrammarError) as caught:
            load_grammar(text)
        assert caught.value.position is not None
        assert caught.value.hint
    else:
        assert_as_lark(load_grammar(text), theirs)
