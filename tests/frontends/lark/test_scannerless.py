"""Lark grammars without a lexer, against lark's Earley parser with its dynamic lexers, on all short texts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import lark
import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.base.errors import GrammarError, UnsatisfiableError, UnsupportedError
from constrain.frontends.lark.lark_loader import load_grammar
from constrain.frontends.lark.scannerless_grammar import Dynamic, to_scannerless_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import Literal
from tests.grammar_oracle import Reference
from tests.recogniser_oracle import accepts as recognised

MODES: tuple[Dynamic, ...] = ("dynamic", "dynamic_complete")


def accepts(text: str, mode: str) -> Callable[[str], bool]:
    """Whether lark accepts. Its 1.3.1 raises RuntimeError where a start was carried over an ignored piece and another
    parse ends there as well: those are accepted, as its repository does now."""
    parser = lark.Lark(text, parser="earley", lexer=mode)

    def answer(one: str) -> bool:
        try:
            parser.parse(one)
        except RuntimeError:
            return True
        except (lark.exceptions.UnexpectedInput, lark.exceptions.ParseError):
            return False
        return True

    return answer


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(word) for length in range(longest + 1) for word in product(alphabet, repeat=length)]


GRAMMARS: dict[str, tuple[str, str, int]] = {
    "munch": ('start: (A | B)+ "c"\nA: "a"\nB: /a*b/', "abc", 6),
    "minus": ('start: e\ne: "-" e | N | e "--" | e "-" e\nN: /[ab]/\n%ignore " "', "a- ", 6),
    "floats": ('start: INT | FLOAT | (INT|FLOAT) ".." (INT|FLOAT)\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d*/', "1.", 7),
    "floats+": ('start: INT | FLOAT | (INT|FLOAT) ".." (INT|FLOAT)\nINT: /\\d+/\nFLOAT: /\\d+\\.\\d+/', "1.", 7),
    "digits": ("start: INT | FLOAT\nINT: /[0123456789]+/\nFLOAT: /\\d+\\.\\d+/", "1.", 6),
    "keyword": ('start: "if" N | N "=" N\nN: /[a-z]+/\n%ignore " "', "if= ", 6),
    "select": ('start: "ab"i N\nN: /[a-zA-Z]+/\n%ignore " "', "abB ", 6),
    "shift": ('start: t\nt: N | N "<" t ">" | t ">>" t\nN: /[ab]/\n%ignore " "', "a<> ", 6),
    "strings": ('start: S ("," S)*\nS: /"(\\\\.|[^"\\\\])*"/', '"\\,a', 6),
    "comments": ('start: N+\nN: /[ab]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore " "', "a/* ", 6),
    "dots": ('start: N ("." N)*\nN: /[a-z]+(\\.[0-9]+)?/', "a.1", 7),
    "lines": ("start: (N _NL)+\nN: /[ab]/\n_NL: /\\n[ ]*/\n%ignore /[ \\n]/", "a \n", 6),
    "lazy": ("start: A+ B\nA: /a+?/\nB: /b|ab/", "ab", 7),
    "either": ('start: A B | "c" AB\nA: "a"\nB: "b"\nAB: "ab"', "abc", 5),
    "empty": ('start: x "b"\nx: | "b" x', "b", 6),
    "brackets": ('start: "(" a ")" | "[" a "]"\na: N\nN: "n"', "()[]n", 4),
    "regular": ("start: A B\nA: /a+/\nB: /ab/", "ab", 6),
    "written order": ("start: A B\nA: /a|ab/\nB: /c/", "abc", 5),
    "ahead": ("start: A B | B\nA: /a+(?!b)/\nB: /a*b/", "ab", 6),
    "blank": ('start: (A | B)+\nA: "a"\nB: " b"\n%ignore /[ ]+/', "ab ", 6),
    "nullable": ('start: "a"*\n%ignore " "', "a ", 6),
    "remarks": ('start: "a"+\n%ignore " "\n%ignore /#[^\\n]*/\n%ignore "\\n"', "a #\n", 6),
    "ended remarks": ('start: "a"+\n%ignore " "\n%ignore /#[^\\n]*\\n/\n%ignore "\\n"', "a #\n", 6),
    "wide": ("start: (N E)+\nN: /[é-ö]+/\nE: /[^a-ö]|😀x/", "éa😀x", 5),
    "unused": ('start: "a" b\nb: c | "b"\nc: "x" c', "abx", 5),
    "templates": ('start: _sep{A, ","}\n_sep{x, y}: x (y x)*\nA: "a"~2..3', "a,", 7),
}
REFUSED = {  # Where lark takes the longest match only, and shorter ones would be more texts.
    *{(name, "dynamic") for name in ("dots", "lines", "regular")},
    *{(name, mode) for name in ("ahead", "blank", "remarks") for mode in MODES},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GRAMMARS)
def test_all_short_texts(name: str, mode: Dynamic) -> None:
    text, alphabet, longest = GRAMMARS[name]
    if (name, mode) in REFUSED:
        with pytest.raises(UnsupportedError) as caught:
            to_scannerless_grammar(load_grammar(text), mode)
        assert "terminal" in caught.value.cause and caught.value.position is not None and caught.value.hint
        return
    grammar, larks = to_scannerless_grammar(load_grammar(text), mode), accepts(text, mode)
    hits = 0
    for one in texts(alphabet, longest):
        wanted = larks(one)
        hits += wanted
        assert recognised(grammar, one) == wanted, one
    assert hits


patterns = st.sampled_from(['"a"', '"b"', '"ab"', "/a+/", "/a|b/", "/b?a/", "/(ab)+/", "/a+?b/", '"a"~1..2'])
symbols = st.sampled_from(["A", "B", "C", "x", "x?", "B*", "(A | x)", "start", "C+"])
bodies = st.lists(st.lists(symbols, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=2).map(" | ".join)


@settings(max_examples=35)
@given(
    st.tuples(patterns, patterns, patterns), bodies, bodies, st.sampled_from(["", '\n%ignore " "', "\n%ignore /b b/"])
)
def test_random_grammars(terminals: tuple[str, str, str], start: str, x: str, more: str) -> None:
    lines = [f"start: {start} | A", f"x: {x} | B", *(f"{name}: {pattern}" for name, pattern in zip("ABC", terminals))]
    text = "\n".join(lines) + more
    for mode in MODES:
        try:
            grammar = to_scannerless_grammar(load_grammar(text), mode)
        except UnsupportedError:
            continue
        except GrammarError:
            with pytest.raises(lark.exceptions.LarkError):
                accepts(text, mode)
            continue
        larks, oracle = accepts(text, mode), Reference(grammar)
        for one in texts("ab", 5) + ["a b", "ab b", " a", "b b", "a "]:
            assert oracle.accepts(one.encode()) == larks(one), (text, mode, one)


def test_declared_terminals_denote_nodes() -> None:
    text = 'start: "x" BODY ";"\n%declare BODY\n%ignore " "'
    made = to_scannerless_grammar(load_grammar(text), "dynamic", {"BODY": (Literal(b"{ }"), to_dfa("[{]"))})
    assert recognised(made, "x  { };") and not recognised(made, "x{};")
    with pytest.raises(UnsupportedError, match="BODY is declared"):
        to_scannerless_grammar(load_grammar(text), "dynamic")
    with pytest.raises(UnsupportedError, match="longest match only, and a following BODY"):
        to_scannerless_grammar(
            load_grammar(text.replace('" "', "/ +/")), "dynamic", {"BODY": (Literal(b" x"), Dfa.from_strings([" "]))}
        )


def test_no_text() -> None:
    with pytest.raises(UnsatisfiableError, match="derives no text"):
        to_scannerless_grammar(load_grammar('start: "a" start'), "dynamic_complete")
