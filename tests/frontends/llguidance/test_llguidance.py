"""llguidance's Lark: against llguidance itself on random grammars and texts, and what is refused, with its place."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

import constrain
from bench.byte_peers import build_llguidance_tokenizer
from constrain import GrammarError, TokenRefused, UnsatisfiableError, UnsupportedError, Vocabulary

BYTES = Vocabulary.bytes()


@lru_cache
def tokenizer() -> Any:
    pytest.importorskip("llguidance")
    return build_llguidance_tokenizer()


class Peer:
    """llguidance's verdicts on texts of a grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        matcher = self.matcher()
        self.refusal = matcher.get_error() if matcher.is_error() else ""

    def matcher(self) -> Any:
        llguidance = pytest.importorskip("llguidance")
        return llguidance.LLMatcher(tokenizer(), llguidance.LLMatcher.grammar_from_lark(self.text), log_level=0)

    def takes(self, text: str) -> bool:
        matcher = self.matcher()
        for byte in text.encode():
            if matcher.is_stopped() or not matcher.try_consume_tokens([byte]):
                return False
        return bool(matcher.is_accepting())


class Ours:
    """Our verdicts. A grammar without a text takes none."""

    def __init__(self, text: str, **grammars: Any) -> None:
        form = constrain.lark(text, dialect="llguidance", grammars=grammars)
        try:
            self.constraint: constrain.Constraint | None = form.compile(BYTES)
        except UnsatisfiableError:
            self.constraint = None

    def takes(self, text: str) -> bool:
        if self.constraint is None:
            return False
        matcher = self.constraint.matcher()
        try:
            matcher.advance_bytes(text.encode())
        except TokenRefused:
            return False
        return matcher.is_complete


def assert_same(grammar: str, texts: list[str]) -> None:
    ours, theirs = Ours(grammar), Peer(grammar)
    assert not theirs.refusal, theirs.refusal
    found = {text: (ours.takes(text), theirs.takes(text)) for text in texts}
    assert not {text: both for text, both in found.items() if both[0] != both[1]}, grammar


# ---- random grammars

LEXEMES = st.sampled_from(
    ['"a"', '"b"', '"ab"', '"aba"', "/a+/", "/[ab]+/", "/ab*/", "/b?a/", "/a*/", "/[^a]/", "A", "B", "lazy", "suffixed"]
)
HEAD = """%llguidance {}
A: /[ab]/ /a*/ & ~"aa"
B: ("b" | "ab"){1,2}
lazy[lazy]: /[ab]*b/
suffixed[suffix="a"]: /b*/
"""


def bodies(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(" ".join),
        several.map(lambda parts: f"({' | '.join(parts)})"),
        st.builds(
            lambda part, count: f"({part}){count}", inner, st.sampled_from(["?", "*", "+", "{2}", "{1,3}", "{,2}"])
        ),
        inner.map(lambda part: f"[{part}]"),
    )


RULES = st.recursive(st.one_of(LEXEMES, st.sampled_from(["x", "start"])), bodies, max_leaves=6)
SHORT = ["".join(letters) for n in range(5) for letters in product("ab", repeat=n)]
TEXTS = [*SHORT, "aabab", "babab", "ababa", "bbbaa", "aaaaa", "abaaba", " a", "a b", "a ", "ab ba ", "b  a"]


ALTERNATIVES = st.lists(
    st.builds(
        lambda first, rest: " ".join([first, *rest]),
        st.sampled_from(["x", "start", '"a"', "/ab*/"]),
        st.lists(LEXEMES | st.just("x"), max_size=2),
    ),
    min_size=2,
    max_size=4,
).map(" | ".join)


@settings(max_examples=35, deadline=None, derandomize=True, database=None)
@given(RULES, RULES, st.sampled_from(["", '%ignore " "\n', "%ignore / +/\n"]))
def test_random_grammars_mean_what_they_mean_to_llguidance(start: str, other: str, ignored: str) -> None:
    assert_same_or_refused(f"{HEAD}{ignored}start: {start}\nx: {other}\n")


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(ALTERNATIVES, ALTERNATIVES, st.sampled_from(["", '%ignore " "\n']))
def test_alternatives_that_begin_with_one_rule_mean_what_they_mean_to_llguidance(
    start: str, other: str, ignored: str
) -> None:
    """Such as those of left recursion: what may follow the rule is the union of what may follow each call."""
    assert_same_or_refused(f"{HEAD}{ignored}start: {start}\nx: {other}\n")


def assert_same_or_refused(grammar: str) -> None:
    """Check that a grammar means what it means to llguidance, unless the lexemes that compete are not known."""
    theirs = Peer(grammar)
    assume(not theirs.refusal)
    try:
        ours = Ours(grammar)
    except (UnsupportedError, UnsatisfiableError) as error:
        if isinstance(error, UnsupportedError):
            assert error.position is not None and ("depends on" in error.cause or "match the same" in error.cause)
        else:
            assert not any(map(theirs.takes, TEXTS))
        return
    found = {text: (ours.takes(text), theirs.takes(text)) for text in TEXTS}
    assert not {text: both for text, both in found.items() if both[0] != both[1]}, grammar


# ---- cases

EXPRESSIONS = r"""start: e
e: t (("+"|"-") t)*
t: f (("*"|"/") f)*
f: N | "(" e ")" | NAME "(" [e ("," e)*] ")"
N: /[0-9]+(\.[0-9]+)?/
NAME: /[a-z][a-z0-9]*/
%ignore /[ \t]+/"""
STATEMENTS = r"""start: s+
s: "let" NAME "=" e ";" | "if" e "{" s* "}"
e: NAME | N | e "+" e | "not" e
NAME: /[a-z]+/
N: /[0-9]+/
%ignore /[ \n]+/"""
PROGRAM = r"""start: s+
s: "if" "(" e ")" block ("else" block)? | "while" "(" e ")" block | NAME "=" e ";" | "return" e ";" | block | e ";"
block: "{" s* "}"
e: t (("+" | "-") t)*
t: "(" e ")" | N | NAME "(" (e ("," e)*)? ")" | NAME | "[" e "]" | "(" e "," e ")"
NAME: /[a-z]+/
N: /[0-9]+/
%ignore / +/"""
TOOLS = """start: ( foo | bar )* end
end: TEXT
TEXT: /(.|\\n)*/
foo_head[lazy]: TEXT "<f"
foo: foo_head "=foo>" call "</f>"
call: %json {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}
bar_head[lazy]: TEXT "<f"
bar: bar_head "=bar>" /[0-9]+/ "</f>"
"""
CASES = [
    (EXPRESSIONS, ["1+2", "f(1, 2)*3", "f ( )", "1.5.", "(1", "1 2", "(1) ", " 1", "1.", "f1(2"]),
    (STATEMENTS, ["let x=1;", "letx=1;", "let x = not y + 2;", "if notx{}", "let let=1;", "let x=notx;",
                  "if x { let y=x; }"]),
    (PROGRAM, ["if(x){}", "if(x){}else{y;}", "else;", "else=1;", "if(x){}else=1;", "return=2;", "return x;", "returnx;",
               "while=(1,x);", "while(1,x){}", "f(if);", "f(a,[b])+(c);", "if (a) { b = 1 ; } c; ", "els(1);"]),
    (TOOLS, ["", "hi", "hi<f", 'a<f=foo>{"a":1}</f>b', "<f=bar>12</f>", "<f=bar></f>", '<f=foo>{"a":"x"}</f>', "a<g"]),
    ('start: ("a" | "abc") ("bd" | "d")', ["abd", "abcd", "ad", "abcbd"]),
    ('start: /[a-z]+/ "b"', ["ab", "b", "abb"]),
    ("start: /[a-z]+/ /[a-z0-9]+/", ["ab", "a1", "ab1c"]),
    ('start: /[éa]+/ "è"', ["éè", "aè", "è"]),
    ('start: "a" "b"?\n%ignore " "', ["a", "a ", "ab ", "a b"]),
    ('%llguidance {"allow_initial_skip": true}\nstart: "a"\n%ignore " "', [" a", "a "]),
    ('start: "A"i "b".."d" "\\u0041\\x41"~1..2', ["abAA", "AcAAAA", "aeAA", "abAAA"]),
    ('start: x y\nx[suffix=/[0-9]/]: /[a-z]*/\ny: "z"', ["a1z", "1z", "12z", "z"]),
    ('start: %regex {"substring_words": "foo bar. baz"}', ["foo", "bar. baz", "fo", "", " baz"]),
    ('start: %regex {"substring_chars": "foo"}', ["oo", "fo", "fooo", "f"]),
    ('start: %regex {"substring_chunks": ["ab", "c", "d"]}', ["ab", "abc", "cd", "abd", "a"]),
    ('start: "x" %lark {\n start: "a" "b"\n %ignore " "\n} "y"\n', ["xaby", "xa by", "x aby", "xab y"]),
    ('%import common.INT -> N\n%import common (WS, CNAME)\nstart: N WS CNAME', ["12 a", "12", "1  b_c"]),
    ("start: A\nA: /[a-z]+/ & ~/ab/ | ~\"a\"+ & /[ab]*/", ["ab", "abc", "aa", "a", "b", ""]),
    ("start: /[^a]/ /(?s:.)/ /./ /x y/x /A/i", ["é\nbxya", "bb\nxya", "b\nbxyA", "b\nbx ya"]),
    (r"start: /[[:digit:]x]+/ /[^[:alnum:]]/ /[[:punct:]]/", ["1x-]", "x11é[", "a-]", "x--", "xa-"]),
    ('start: X*\nX: /a*/\n%ignore " "', ["", " ", "a", " a", "a ", " a a "]),
    ('start: X\nX: /a*/\n%ignore " "', ["", " ", "a", " a", "a "]),
    ('start: (X | "c") "b"\nX: /a*/\n%ignore / +/', ["b", " b", "ab", " ab", "a b", "cb", " cb", "c b"]),
    ('start: "x" json "y"\njson: %json {"type": "integer"}\n%ignore " "', ["x1y", "x 1y", "x1 y", "x1y "]),
    ('start: "x" %lark {\nstart: "a" "b"\n%ignore "_"\n} "y"\n%ignore " "', ["xaby", "x aby", "xa_by", "xab y"]),
    ('start: %json {"type": "array", "items": {"type": "integer"}} "y"',
     ["[1 ,2]y", "[  1]y", "[\n\n1\t]y", " [1]y", "[1] y", "[ ]y"]),
    ('start: (a b)+ | c\na: "a"\nb: /b+/\nc: C\nC: /c+/ & ~"cc"', ["abbab", "c", "cc", "ccc", "aab"]),
    ('start: e\ne: N | e "+" e | "(" e ")"\nN: /[0-9]+/\n%ignore " "', ["1 + 2 ", "(1 ) ", "1 +", "( 1 + 2 ) + 3"]),
    ('start: x "b" "c" | x "bc" "d"\nx: "a"', ["abc", "abcd", "ab"]),
    ('start: x "b" /b?c/ | x /bb/ "d"\nx: "a"', ["abc", "abbc", "abbd"]),
    ('start: e\ne: "a" | e "b" | e "c" | e "bc" "d"', ["abc", "abcd", "acb", "ab"]),
    ('start: "c" [js]\njs: %json {"type": "boolean"}\n%ignore " "', ["c", "c ", "ctrue", "c true"]),
    ('start: "a" /b+/ "cx" | "a" /[bc]+/ "y"', ["abcx", "aby", "abcy", "acy", "abbcx", "abbcby"]),
    ('start: ("b"~1..2 | /\\S/ "1")?', ["bb", "b", "b1", "bb1", "11", "bbb", ""]),
    ('start: ("a" "b"?){0,3} ("a" "c"?){2} "d"', ["aad", "abaad", "aaacad", "ababababaad", "acabd", "aacaad", "ad"]),
    ('start: /c+/ (x "c" | /ab*/ | "é")\nx[suffix=/[aé]/]: /b*/', ["ca", "cab", "cac", "cba", "cbac", "cé", "céc"]),
    ('start: "c" (x "c" | /ab*/)\nx[suffix="a"]: /b*/', ["ca", "cab", "cac", "cba", "cbac"]),
    (r'start: /\x41\u{42}/ /[\/\]]/ /\d\w\s/', ["AB/1é ", "AB]٣a\u00a0", "AB\\1a "]),
    ('start: a // note\n# note\n?a: "x" -> y\n  | ( "z"\n  | "w" )', ["x", "z", "w"]),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "texts"), CASES)
def test_cases_mean_what_they_mean_to_llguidance(grammar: str, texts: list[str]) -> None:
    assert_same(grammar, texts)


def test_numbers_of_schemas_are_those_that_were_written() -> None:
    """Those of llguidance are floats."""
    ours = Ours('start: %json {"const": 9007199254740993.5}')
    texts = ["9007199254740993.5", "9007199254740994", "9007199254740992"]
    assert [ours.takes(text) for text in texts] == [True, False, False]


def test_ignored_text_may_be_limited_to_one_match() -> None:
    ours = Ours('%llguidance {"skip_repetition": "once"}\nstart: "a" "b"+\n%ignore / {1,2}/')
    texts = ["ab", "a  b", "a   b", "ab  b  ", "ab   "]
    assert [ours.takes(text) for text in texts] == [True, True, False, True, False]


def test_the_first_line_selects_the_dialect() -> None:
    matcher = constrain.compile(BYTES, grammar='%llguidance {}\nstart: "a"{2}').matcher()
    matcher.advance_bytes(b"aa")
    assert matcher.is_complete


def test_references_are_the_given_grammars() -> None:
    ours = Ours('start: "x" @inner "y"', inner=constrain.json_schema({"enum": [1, "a"]}))
    assert [ours.takes(text) for text in ("x1y", 'x"a"y', "xy")] == [True, True, False]


SPECIALS = Vocabulary.from_tokens(
    [*(bytes((value,)) for value in range(256)), None, None, None, None],
    (256,),
    special={"<t>": 257, "</t>": 258, "<c>": 259},
)


@pytest.mark.parametrize(
    ("grammar", "tokens", "verdict"),
    [
        ('start: <t> /(.|\\n)*/ </t> "x"', (257, b"ab</t>", 258, b"x"), "complete"),
        ('start: <t> /(.|\\n)*/ </t> "x"', (257, 259), "refused"),
        ('start: <[257-258]> "x"', (258, b"x"), "complete"),
        ('start: <[^257]> "x"', (258, b"x"), "complete"),
        ('start: <[^257]> "x"', (257,), "refused"),
        ("start: <[*]>", (259,), "complete"),
        ("start: <[257,259]>", (258,), "refused"),
    ],
)
def test_special_tokens(grammar: str, tokens: tuple[int | bytes, ...], verdict: str) -> None:
    matcher = constrain.lark(grammar, dialect="llguidance").compile(SPECIALS).matcher()
    found = "complete"
    for token in (one for part in tokens for one in (part if isinstance(part, bytes) else (part,))):
        if not matcher.allows(token):
            found = "refused"
            break
        matcher.advance(token)
    assert found == verdict and (found == "refused" or matcher.is_complete)


# ---- refusals


@pytest.mark.parametrize(
    ("grammar", "place"),
    [
        ("start: a", (1, 8)), ("x: \"a\"", (1, 1)), ('start: "a', (1, 8)), ("start: A\nA: A", (2, 4)),
        ("start: A\nA: b\nb: \"x\"", (2, 4)), ('start: "a"\nstart: "b"', (2, 1)), ("start: (\"a\"", (2, 0)),
        ('start: "a"{2,1}', (1, 11)), ("start: /a/q", (1, 8)), ("start: /(/", (1, 8)), ('start[foo]: "a"', (1, 7)),
        ("start: %json {", (1, 15)), ("start: %json 5", (1, 8)), ("start: %json {\"type\": 1}", (1, 8)),
        ('start: %regex {"x": 1}', (1, 8)), ('%llguidance {"x": 1}\nstart: "a"', (1, 1)), ("start: @x", (1, 8)),
        ("%import common.X\nstart: X", (1, 16)), ("start: <[a]>", (1, 8)), ("start: <[²]>", (1, 8)),
        ("start: %lark { x: ", (1, 14)),
        ("start[lazy, suffix=\"a\"]: /b/", None), ("start: ;", (1, 8)),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_at_its_place(grammar: str, place: tuple[int, int] | None) -> None:
    with pytest.raises((GrammarError, constrain.SchemaError, constrain.RegexError)) as caught:
        Ours(grammar)
    error = caught.value
    assert error.source is not None and error.position is not None
    if place is not None and place[1]:
        line = error.source.count("\n", 0, error.position) + 1
        assert (line, error.position - (error.source.rfind("\n", 0, error.position) + 1) + 1) == place


@pytest.mark.parametrize(
    ("grammar", "named"),
    [
        ('start[max_tokens=3]: /a*/', "max_tokens"), ('start[temperature=0.5]: "a"', "temperature"),
        ('start.2: "a"', "a priority"),
        ('start: x{"a"}\nx{y}: y', "a template"), ("start: a::1\na::_: \"x\"", "a parametric rule"),
        ('start: "a"\n%declare X', "%declare"), ("%import python.NAME\nstart: NAME", "%import python"),
        ("start: /[a&&b]/", "&&"), ('%llguidance {"allow_invalid_utf8": true}\nstart: "a"', "allow_invalid_utf8"),
        ('start: %json {"type": "integer"} "5"', "continue"), ('start: /.*/ | %json {"type": "object"}', "alike"),
        ('start: x "c" | "d" x "bc"\nx: "a" /b+/?', "depends on the rules"),
    ],
)  # fmt: skip
def test_unenforced_constructs_raise_with_their_name(grammar: str, named: str) -> None:
    with pytest.raises(UnsupportedError, match="(?s)" + named.replace("&", r"\&")) as caught:
        Ours(grammar)
    assert caught.value.position is not None and caught.value.hint


def test_other_options_are_refused() -> None:
    for options in ({"start": "x"}, {"lexer": "basic"}, {"parser": "earley"}, {"import_paths": ["."]}):
        with pytest.raises(constrain.ArgumentError):
            constrain.lark('start: "a"', dialect="llguidance", **options)


@pytest.mark.parametrize(
    "grammar",
    [
        "start: " + "(" * 5000 + '"a"' + ")" * 5000,
        "start: " + "%lark { start: " * 300 + '"a"' + "\n}" * 300,
        "start: T0\n" + "".join(f"T{k}: T{k + 1}\n" for k in range(3000)) + 'T3000: "a"\n',
        'start: A\nA: "a"{99999999}',
    ],
    ids=["groups", "grammars", "terminals", "repetition"],
)
def test_deep_and_large_grammars_are_refused_by_a_limit(grammar: str) -> None:
    with pytest.raises(constrain.LimitError):
        Ours(grammar)


def test_a_long_chain_of_rules_compiles() -> None:
    rules = "".join(f"r{k}: r{k + 1}\n" for k in range(1500))
    assert Ours(f'start: r0\n{rules}r1500: "a"\n').takes("a")


@pytest.mark.parametrize(
    "start",
    ["(" * 30 + "x" + "){2,3}" * 30, " | ".join(f'(x "{chr(97 + k)}"){{2,50}}' for k in range(20))],
    ids=["nested", "side by side"],
)
def test_counted_repetitions_with_too_many_readings_are_refused(start: str) -> None:
    with pytest.raises(constrain.LimitError, match=r"readings|sets of lexemes"):
        Ours(f'start: {start}\nx: "z"\n')


NAMES = "".join(f'y{k}: (NAME | "k{k}" NAME)* "{sign}"?\n' for k, sign in enumerate("+-*/%^&|!"))
MANY = {
    "one position": "start: " + " | ".join(f'/[ab]*a[ab]{{{k}}}/ "{k}"' for k in range(40)) + "\n",
    "rules and callers": "start: " + " ".join(f"/[a-{chr(98 + k % 24)}]+/?" for k in range(100)) + "\n",
    "names and keywords": "start: x*\nx: " + " | ".join(f'"k{k}" y{k % 9}' for k in range(150)) + "\n" + NAMES
    + 'NAME: /[a-z0-9]+/\n%ignore " "\n',
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("grammar", MANY.values(), ids=MANY)
def test_many_lexemes_that_match_the_same_text_are_refused_by_a_limit(grammar: str) -> None:
    with pytest.raises(constrain.LimitError):
        Ours(grammar)
