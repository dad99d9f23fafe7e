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

from constrain.automata.scanner import END_OF_TEXT, Scanner
from constrain.errors import ConstrainError, GrammarError, LimitError, UnsupportedError
from constrain.frontends.lark.load import FLAGS, Loaded, Terminal, load
from constrain.frontends.lark.terminals import Lexers, lexers
from constrain.style import Limits


def found_by_us(made: Lexers, lexer: int, text: str) -> tuple[int, int] | None:
    """Terminal and bytes of the lexeme at the beginning of a text."""
    scanner = made.scanner
    state, best = int(made.starts[lexer]), None
    for place, byte in enumerate([*text.encode(), END_OF_TEXT]):
        if state < 0:
            break
        tag = scanner.verdicts[scanner.accept[state], byte]
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


def assert_same(made: Lexers, number: int, loaded: Loaded, lexer: BasicLexer, text: str) -> None:
    ours, theirs = found_by_us(made, number, text), found_by_lark(lexer, text)
    if ours is None or theirs is None:
        assert ours is None and theirs is None, (text, ours, theirs)
        return
    tag, size = ours
    fed = tag >= len(loaded.terminals)
    terminal = made.fed[tag - len(loaded.terminals)] if fed else tag
    ignored = not fed and terminal in loaded.ignored
    assert (loaded.terminals[terminal].name, size, ignored) == theirs, (text, ours, theirs)


def loaded_of(definitions: list[TerminalDef], ignored: tuple[str, ...] = (), flags: str = "") -> Loaded:
    """What `load` makes of terminals that are given as lark has them."""
    terminals = tuple(
        Terminal(
            name=item.name,
            kind="text" if isinstance(item.pattern, PatternStr) else "pattern",
            text=item.pattern.value,
            flags="".join(sorted(item.pattern.flags)),
            priority=item.priority,
            least=item.pattern.min_width,
            most=item.pattern.max_width,
            position=None,
        )
        for item in definitions
    )
    numbers = tuple(number for number, item in enumerate(definitions) if item.name in ignored)
    productions: Any = None
    return Loaded("", "", terminals, productions, numbers, flags, (), ())


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
    "no plain string": ("start: (A | B)+\nA: /\"(?!\"\").*?(?<!\\\\)(\\\\\\\\)*?\"/\nB: /./s", '"a\\\n'),
}  # fmt: skip


@pytest.fixture(scope="module")
def python() -> Lark:
    return Lark.open_from_package("lark", "python.lark", ["grammars"], start="file_input", parser="lalr",
                                  postlex=PythonIndenter())  # fmt: skip


def compare(lark: Lark, loaded: Loaded, always: tuple[str, ...], texts: list[str], most: int) -> int:
    """Compare all contextual lexers, and how many texts of each list; the number of comparisons."""
    contextual = getattr(lark.parser.lexer, "lexer", lark.parser.lexer)
    numbers = {terminal.name: number for number, terminal in enumerate(loaded.terminals)}
    table = lark.parser.parser._parse_table.states
    accepts = [[numbers[name] for name in table[state] if name in numbers] for state in contextual.lexers]
    made = lexers(loaded, accepts, always=[numbers[name] for name in always])
    done = set()
    count = 0
    for number, lexer in enumerate(contextual.lexers.values()):
        if id(lexer) not in done:
            done.add(id(lexer))
            for text in texts if len(texts) <= most else random.Random(number).sample(texts, most):
                assert_same(made, number, loaded, lexer, text)
                count += 1
    root = lexers(loaded)
    for text in texts:
        assert_same(root, 0, loaded, contextual.root_lexer, text)
    return count + len(texts)


@pytest.mark.parametrize("name", GRAMMARS)
def test_all_short_texts(name: str) -> None:
    grammar, alphabet = GRAMMARS[name]
    lark = Lark(grammar, parser="lalr") if name not in ("minus", "templates") else Lark(grammar, parser="lalr")
    loaded = load(grammar)
    texts = [""]
    for length in range(7):
        more = [text + char for text in texts if len(text) == length for char in alphabet]
        texts += more
        if len(texts) > 1500:
            break
    compare(lark, loaded, (), texts, 2000)
