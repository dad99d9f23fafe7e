"""The scanner against lark's own: the lexeme and the terminal that its lexers find at the beginning of any text."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, settings, strategies as st
from lark import Lark
from lark.common import LexerConf
from lark.indenter import PythonIndenter
from lark.lexer import BasicLexer, PatternRE, PatternStr, TerminalDef, TextSlice, Token

from constrain.base.errors import GrammarError, LimitError, UnsupportedError
from constrain.base.options import Limits
from constrain.frontends.lark.lark_loader import FLAGS, LoadedGrammar, LoadedTerminal, load_grammar
from constrain.frontends.lark.lexer_terminals import LexerTables, build_lexers
from constrain.frontends.lark.source_map import SourceMap
from constrain.lalr.scanner_tables import END_OF_TEXT, Scanner


def found_by_us(made: LexerTables, lexer: int, text: str) -> tuple[int, int] | None:
    """Terminal and bytes of the lexeme at the beginning of a text."""
    scanner = made.scanner
    state, best = int(made.starts[lexer]), None
    for place, byte in enumerate([*text.encode(), END_OF_TEXT]):
        if state < 0:
            break
        tag = scanner.accept_table[scanner.accept[state], byte]
        best = (int(tag), place) if tag >= 0 else best
        state = scanner.delta[state, byte] if byte != END_OF_TEXT else -1
    return best


def found_by_lark(lexer: BasicLexer, text: str) -> tuple[str, int, bool] | None:
    """Terminal, bytes, and whether the lexeme is ignored."""
    found = lexer.scanner.match(TextSlice(text, 0, len(text)), 0)
    if found is None:
        return None
    value, kind = found
    ignored = kind in lexer.ignore_types
    if kind in lexer.callback and not ignored:
        kind = lexer.callback[kind](Token(kind, value)).type
    return kind, len(value.encode()), ignored


def assert_same(made: LexerTables, number: int, loaded: LoadedGrammar, lexer: BasicLexer, text: str) -> None:
    ours, theirs = found_by_us(made, number, text), found_by_lark(lexer, text)
    if ours is None or theirs is None:
        assert ours is None and theirs is None, (text, ours, theirs)
        return
    tag, size = ours
    fed = tag >= len(loaded.terminals)
    terminal = made.fed[tag - len(loaded.terminals)] if fed else tag
    ignored = not fed and terminal in loaded.ignored
    assert (loaded.terminals[terminal].name, size, ignored) == theirs, (text, ours, theirs)


def loaded_of(definitions: list[TerminalDef], ignored: tuple[str, ...] = (), flags: str = "") -> LoadedGrammar:
    """What `load_grammar` makes of terminals that are given as lark has them."""
    terminals = tuple(
        LoadedTerminal(
            name=item.name,
            kind="text" if isinstance(item.pattern, PatternStr) else "pattern",
            text=item.pattern.value,
            flags="".join(sorted(item.pattern.flags)),
            priority=item.priority,
            least=item.pattern.min_width,
            most=item.pattern.max_width,
            written="",
            source_map=SourceMap(""),
        )
        for item in definitions
    )
    numbers = tuple(number for number, item in enumerate(definitions) if item.name in ignored)
    productions: Any = None
    return LoadedGrammar("", "", terminals, productions, numbers, flags, (), SourceMap(""))


def basic(definitions: list[TerminalDef], ignored: tuple[str, ...] = (), flags: str = "") -> BasicLexer:
    conf = LexerConf(definitions, re, ignored, g_regex_flags=sum(FLAGS[flag] for flag in flags))
    conf.skip_validation = True
    return BasicLexer(conf)


# ---- grammars as they are written ---------------------------------------------------------------------------------

GRAMMARS = {
    "backtracking": ('start: (A | B)+ "c"\nA: "a"\nB: /a*b/', "abc"),
    "minus": ('start: e\ne: "-" e | N | e "--" | e "-" e\nN: /[a-z]/\n%ignore " "', "a- "),
    "dots": ('start: INT ".." INT | FLOAT\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d*/', "1.²٣"),
    "fractions": ('start: (INT | FLOAT | "..")+\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d+/', "1.x"),
    "longer text first": ("start: (INT | FLOAT)+\nINT: /[0123456789]+/\nFLOAT: /\\d+\\.\\d+/", "15."),
    "reserved": ('start: "if" N | N "=" N\nN: /[a-z]+/\n%ignore " "', "if=x "),
    "reserved in any case": ('start: "select"i N\nN: /[a-z]+/\n%ignore " "', ["SELECT", "select", "a", "ſ", "K", " "]),
    "templates": ('start: t\nt: N | N "<" t ">" | t ">>" t\nN: /[a-z]/\n%ignore " "', "a<> "),
    "strings": ('start: S ("," S)*\nS: /"(\\\\.|[^"\\\\])*"/', '"\\,aé'),
    "comments": ("start: N+\nN: /[a-z]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore \" \"", "a/* \n"),
    "dotted": ('start: N ("." N)*\nN: /[a-z]+(\\.[0-9]+)?/', "a.1"),
    "newlines": ("start: (N _NL)+\nN: /[a-z]/\n_NL: /\\n+/\n%ignore /[ \\n]/", "a \n"),
    "calls": ('start: (F | N)+\nF: /[a-z]+(?=\\()/\nN: /[a-z]+|\\(/', "f(é"),
    "lazy": ("start: (A | B)+\nA: /a+?/\nB: /b|ab/", "ab"),
    "joined": ('start: A B | "c" AB\nA: "a"\nB: "b"\nAB: "ab"', "abc"),
    "not before": ("start: (A | B)+\nA: /a+(?!b)/\nB: /a*b/", "abc"),
    "written order": ("start: A B\nA: /a|ab/\nB: /c/", "abc"),
    "string choice": ('start: A B\nA: "a" | "ab"\nB: /c/', "abc"),
    "keyword that is ignored": ('start: T ("," T)*\nT: /[^,]+/\n%ignore " "', "a, é"),
    "priorities": ('start: (IF | N)+\nIF.2: "if"\nN: /[a-z]+/', "ifx"),
    "keywords of lower priority": ('start: (IF | N)+\nIF.-1: "if"\nN: /[a-z]+/', "ifx"),
    "not embedded because of a flag": ('start: ("ab"i | N)+\nN: /[a-z]+/', "abAB"),
    "ignored pattern with keywords": ('start: ("ab" | N)+\nN: /[0-9]+/\n%ignore /[a-z ]+/', "ab0 "),
    "end of line": ("start: (A | B)+\nA: /a+$/m\nB: /[ab\\n]/", "ab\n"),
    "end of text": ("start: (A | B)+\nA: /a+\\Z/\nB: /[ab]/", "ab"),
    "after a line end": ("start: (A | B)+\nA: /\\n^a/m\nB: /[ab\\n]/", "ab\n"),
    "word ends": ("start: (A | B)+\nA: /a+(?a:\\b)/\nB: /./", "ab é "),
    "words but": ("start: (A | B)+\nA: /(?!(?:ab|b)(?a:\\b))[ab]+/\nB: /[ab ]/", "ab é "),
    "words but, in any script": ("start: (A | B)+\nA: /(?!(?:ab|é)\\b)\\w+/\nB: /./s", "abé×²"),
    "no plain string": ("start: (A | B)+\nA: /\"(?!\"\").*?(?<!\\\\)(\\\\\\\\)*?\"/\nB: /./s", '"a\\\n'),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAMMARS)
def test_all_short_texts(name: str) -> None:
    grammar, alphabet = GRAMMARS[name]
    texts = [""]
    for length in range(7):
        texts += [text + char for text in texts if len(text) == length for char in alphabet]
        if len(texts) > 1000:
            break
    compare(Lark(grammar, parser="lalr"), load_grammar(grammar), (), texts, 1000)


def compare(lark: Lark, loaded: LoadedGrammar, always: tuple[str, ...], texts: list[str], most: int) -> LexerTables:
    """Compare all contextual lexers, each by some of the texts, and the basic one by all."""
    contextual = getattr(lark.parser.lexer, "lexer", lark.parser.lexer)
    numbers = {terminal.name: number for number, terminal in enumerate(loaded.terminals)}
    table = lark.parser.parser._parse_table.states
    accepts = [[numbers[name] for name in table[state] if name in numbers] for state in contextual.lexers]
    made = build_lexers(loaded, accepts, always=[numbers[name] for name in always])
    done = set()
    for number, lexer in enumerate(contextual.lexers.values()):
        if id(lexer) not in done:
            done.add(id(lexer))
            for text in texts if len(texts) <= most else random.Random(number).sample(texts, most):
                assert_same(made, number, loaded, lexer, text)
    root = build_lexers(loaded)
    for text in texts:
        assert_same(root, 0, loaded, contextual.root_lexer, text)
    return made


def test_lexers_of_python() -> None:
    """All of Python's lexers, on the pieces of its texts, complete and broken."""
    lark = Lark.open_from_package("lark", "python.lark", ["grammars"], start="file_input", parser="lalr",
                                  postlex=PythonIndenter())  # fmt: skip
    loaded = load_grammar(lark.source_grammar, start="file_input", keep=["_NEWLINE"])
    rng = random.Random(5)
    texts = ["".join(rng.choices(PIECES, k=rng.randint(1, 4))) for _ in range(3000)]
    made = compare(lark, loaded, ("_NEWLINE",), texts, 100)
    assert len(set(made.starts.tolist())) == 143  # Lists of the 229 lexers that differ once strings are embedded.
    assert len(made.scanner.delta) < 1200


PIECES = [
    *"0189_.ejxJXobBrRuUfF \t\f\r\n\\#\"'()[]{}<>=!*/%&|^~@,:;-+é²_ªＡ", '"""', "'''", "\r\n", '""', "''", "\\\n",
    "...", "if", "in", "is", "not", "import", "match", "case", "async", "None", "0x1F", "1e5", "0_0", "1e-3j",
]  # fmt: skip


COMMON = """ESCAPED_STRING FLOAT NUMBER SIGNED_NUMBER CNAME NEWLINE WS WORD SH_COMMENT CPP_COMMENT C_COMMENT SQL_COMMENT
DECIMAL""".split()


@pytest.mark.parametrize("name", COMMON)
def test_common_terminals(name: str) -> None:
    grammar = f"start: ({name} | ANY)+\nANY: /[^a]/\n%import common.{name}"
    rng = random.Random(name)
    texts = ["".join(rng.choices('0.e+a_\n\r \\"/*#-é', k=rng.randint(0, 8))) for _ in range(500)]
    texts += [begin + text for begin in ('"', "/*", "--", "//", "#", "1.", "1e") for text in texts[:150]]
    compare(Lark(grammar, parser="lalr"), load_grammar(grammar), (), texts, 1000)


# ---- patterns at random -------------------------------------------------------------------------------------------

SETS = ["a", "b", "c", "[ab]", "[^a]", ".", "é", r"\w", "[b-é]", r"\W"]
QUANTIFIERS = [many + lazy for many in ("*", "+", "?", "{1,2}", "{2}", "{0,2}", "{1,}", "{2,}") for lazy in ("", "?")]
PLACES = [r"(?a:\b)", r"(?a:\B)", "(?m:$)", r"\Z", "(?m:^)", "(?=[^a])", "(?!é)", "(?!ba|b)", "(?!(?=a)[ab])"]


def patterns(looks: bool) -> st.SearchStrategy[str]:
    """Patterns of `re` with choices, repetitions greedy and lazy, and looks around if wanted."""

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        options = [
            st.tuples(inner, inner).map("".join),
            st.lists(inner | st.just(""), min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(inner, st.sampled_from(QUANTIFIERS), st.sampled_from(["", "?"])).map(
                lambda t: "({}){}{}".format(*t)
            ),
        ]
        if looks:
            marks = st.sampled_from(["?=", "?!", "?<=", "?<!"])
            options.append(st.tuples(inner, marks, inner).map(lambda t: "{}({}{})".format(*t)))
            options.append(st.tuples(inner, st.sampled_from(PLACES)).map("".join))
        return st.one_of(options)

    return st.recursive(st.sampled_from(SETS), larger, max_leaves=8)


@st.composite
def definitions(draw: st.DrawFn, *, looks: bool) -> list[TerminalDef]:
    """Up to four terminals that are never empty."""
    result = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)):
            flags = draw(st.sampled_from([(), (), ("i",), ("s",)]))
            pattern = PatternRE(draw(patterns(looks)), flags)
        else:
            text = draw(st.text("abcé", min_size=1, max_size=3))
            pattern = PatternStr(text, draw(st.sampled_from([(), ("i",)])))
        try:
            re.compile(pattern.to_regexp())
        except re.error:  # Look-behinds of several widths.
            continue
        if pattern.min_width:
            result.append(TerminalDef(f"T{number}", pattern, draw(st.sampled_from([0, 0, 0, 1]))))
    assume(result)
    return result


TEXTS = st.lists(st.text("aabbcé \nA×", max_size=8), min_size=20, max_size=20)


@settings(max_examples=35, deadline=None)
@given(definitions(looks=False), TEXTS, st.data())
def test_random_terminals(terminals: list[TerminalDef], texts: list[str], data: st.DataObject) -> None:
    ignored = tuple(data.draw(st.sets(st.sampled_from([item.name for item in terminals]), max_size=2)))
    loaded, lexer = loaded_of(terminals, ignored), basic(terminals, ignored)
    made = build_lexers(loaded)
    for text in texts:
        assert_same(made, 0, loaded, lexer, text)
    assert_possible(made.scanner)


@settings(max_examples=60, deadline=None)
@given(definitions(looks=True), TEXTS)
def test_random_terminals_that_look_around(terminals: list[TerminalDef], texts: list[str]) -> None:
    loaded, lexer = loaded_of(terminals), basic(terminals)
    try:
        made = build_lexers(loaded)
    except UnsupportedError as error:
        event(error.cause.split(": ")[1])
        assert any("(?" in item.pattern.value or "\\" in item.pattern.value for item in terminals)
        return
    for text in texts:
        assert_same(made, 0, loaded, lexer, text)


def assert_possible(scanner: Scanner) -> None:
    """`possible` is the set of terminals that the reachable states accept."""
    bits = np.where(
        scanner.accept_table >= 0, np.uint64(1) << np.maximum(scanner.accept_table, 0).astype(np.uint64), np.uint64(0)
    )
    found = np.bitwise_or.reduce(bits, axis=1)[scanner.accept]
    while True:
        following = np.where(scanner.delta >= 0, found[scanner.delta], np.uint64(0))
        more = found | np.bitwise_or.reduce(following, axis=1)
        if (more == found).all():
            break
        found = more
    assert (scanner.possible == found[:, None]).all() and found.all()


# ---- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        (r"(a|b)\1", "a backreference"),
        (r"(?P<q>a|b)c(?P=q)", "a backreference"),
        ("(a)?(?(1)b|c)", "a conditional group"),
        ("(?>a|ab)c", "an atomic group"),
        ("a++b", "a possessive quantifier"),
        ("(?<=a)b", "an anchor or lookbehind depends on the text before it"),
        ("^a", "an anchor or lookbehind depends on the text before it"),
        (r"\bab", "an anchor or lookbehind depends on the text before it"),
        ("a(?!bc)", "a lookahead depends on more than the next byte"),
        (r"a(?!\w)", "a lookahead depends on more than the next byte"),
        (r"a+\b", "a lookahead depends on more than the next byte"),
        ("a$", "a lookahead depends on more than the next byte"),
        ("ab(?<=a(?=b)b)", "a lookbehind for texts of several lengths, or with assertions"),
    ],
)
def test_refused_with_name_and_position(pattern: str, cause: str) -> None:
    grammar = f"start: (B | NAME)+\nB: /b/\nNAME: /{pattern}/"
    with pytest.raises(UnsupportedError) as caught:
        build_lexers(load_grammar(grammar))
    assert caught.value.cause.startswith(f"terminal NAME: {cause}")
    assert caught.value.source == grammar and caught.value.position == grammar.index("NAME:")
    assert caught.value.hint


def test_flags_within_a_pattern() -> None:
    with pytest.raises(GrammarError, match="terminal A: a pattern cannot contain flags"):
        build_lexers(load_grammar("start: A\nA: /(?i)a/"))


def test_too_many_states() -> None:
    grammar = "start: A\nA: /[ab]*a[ab]{12}/"
    with pytest.raises(LimitError, match="more than 100 states"):
        build_lexers(load_grammar(grammar), limits=Limits(dfa_states=100))
    with pytest.raises(LimitError, match=r"terminal A: .* more than 20000 characters"):
        build_lexers(load_grammar("start: A\nA: /(a{300}){300}/"))
