"""Looking around: against `re`, against a matcher that backtracks over the tree, and in shapes that patterns have."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import LimitError, UnsatisfiableError
from constrain.frontends.json_schema.strings.schema_patterns import letters_dfa, pattern_dfa, read_pattern
from constrain.frontends.regex import Dialect, Match, parse_pattern, to_counted_dfa, to_dfa, to_node
from constrain.frontends.regex.charset import contains_point
from constrain.frontends.regex.regex_tree import Alternation, Anchor, Concatenation, Lookaround, OneOf, Repetition, Term
from constrain.grammar.nodes import Chars
from tests.grammar_strategies import compile_re

TEXTS = ["".join(word) for size in range(5) for word in product("ab -", repeat=size)]
LINES = ["".join(word) for size in range(4) for word in product("a\n\r ", repeat=size)]


# ---- the oracle: backtracking -----------------------------------------------------------------------------------


def matches(term: Term, text: str, match: Match) -> bool:
    """Whether the text matches, by trying all there is: what the tree means, plainly. Newlines are "\\n" only."""

    @cache
    def ends(item: int, start: int) -> frozenset[int]:
        """Where `terms[item]` may end if it begins there."""
        return frozenset(_ends(terms[item], start))

    def known(term: Term, start: int) -> frozenset[int]:
        numbers.setdefault(id(term), len(terms))
        if numbers[id(term)] == len(terms):
            terms.append(term)
        return ends(numbers[id(term)], start)

    def _ends(term: Term, start: int) -> Iterator[int]:
        if isinstance(term, OneOf):
            if start < len(text) and contains_point(term.charset, ord(text[start])):
                yield start + 1
        elif isinstance(term, Concatenation):
            places = {start}
            for part in term.parts:
                places = {end for place in places for end in known(part, place)}
            yield from places
        elif isinstance(term, Alternation):
            for option in term.options:
                yield from known(option, start)
        elif isinstance(term, Repetition):
            places, seen, count = {start}, set(), 0
            while places - seen or count < term.low:
                if count >= term.low:
                    seen |= places
                    yield from places
                if count == term.high:
                    return
                places = {end for place in places for end in known(term.term, place)}
                count += 1
        elif isinstance(term, Lookaround):
            if term.direction == "ahead":
                found = bool(known(term.term, start))
            else:
                found = any(start in known(term.term, place) for place in range(start + 1))
            if found != term.negated:
                yield start
        elif holds(term, start):
            yield start

    def holds(anchor: Anchor, place: int) -> bool:
        before, after = text[:place], text[place:]
        return {
            "begin": not before,
            "line_begin": not before or before[-1] == "\n",
            "end": not after,
            "line_end": not after or after[0] == "\n",
            "last_line_end": after in ("", "\n"),
        }[anchor.kind]

    terms: list[Term] = []
    numbers: dict[int, int] = {}
    starts = range(len(text) + 1) if match == "search" else [0]
    found = {end for start in starts for end in known(term, start)}
    return bool(found) if match == "search" else len(text) in found


# ---- random patterns --------------------------------------------------------------------------------------------

LEAVES = ["a", "b", ".", "[ab]", " ", "-", "\\w", "[^a]", "^", "$", "\\b", "\\B", "\\A", "\\Z"]
LOOKS = ["(?={})", "(?!{})"]
BEHIND = ["(?<={})", "(?<!{})"]
FIXED = ["a", "b", "ab", "^", "a\\b", "(?=a).", "(?:a|b)", "(?<!a)b", "a(?=b)", "a(?!b|$)", " (?<=(?!ab)..)", "\\B."]
"""What `re` takes behind: of one width."""


def patterns(variable: bool) -> st.SearchStrategy[str]:
    """Patterns with lookaround anywhere; with `variable` also lookbehind of any width, which `re` refuses."""

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        behind = inner if variable else st.sampled_from(FIXED)
        quantified = st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,4}"]))
        several = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            several.map("".join),
            several.map("|".join).map("(?:{})".format),
            quantified,
            st.builds(lambda look, text: look.format(text), st.sampled_from(LOOKS), inner),
            st.builds(lambda look, text: look.format(text), st.sampled_from(BEHIND), behind),
        )

    grown = st.recursive(st.sampled_from(LEAVES), extend, max_leaves=8)
    return grown | st.builds("^{}$".format, grown) | st.builds("^{}{}".format, st.sampled_from(LOOKS), grown)


@settings(max_examples=150)
@given(patterns(variable=False), st.sampled_from(["", "m"]))
def test_lookaround_matches_re(pattern: str, flags: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = compile_re(pattern, flags)
    full, search = to_dfa(pattern, flags=flags), to_dfa(pattern, flags=flags, match="search")
    for text in TEXTS + LINES:
        assert full.accepts(text) == bool(compiled.fullmatch(text)), text
        assert search.accepts(text) == bool(compiled.search(text)), text


@settings(max_examples=90)
@given(patterns(variable=True), st.sampled_from(["", "m"]), st.sampled_from(["python", "ecma"]))
def test_lookaround_matches_a_backtracking_matcher(pattern: str, flags: str, dialect: Dialect) -> None:
    pattern = pattern if dialect == "python" else pattern.replace("\\A", "^").replace("\\Z", "$")
    term = parse_pattern(pattern, dialect=dialect, flags=flags, nesting=99)
    texts = TEXTS if dialect == "ecma" else TEXTS[::2] + LINES
    for match in ("full", "search"):
        dfa = to_dfa(pattern, dialect=dialect, flags=flags, match=match)  # type: ignore[arg-type]
        for text in texts[:: 1 + len(pattern) // 8]:
            assert dfa.accepts(text) == matches(term, text, match), text  # type: ignore[arg-type]


def test_backtracking_is_re_where_both_can() -> None:
    for pattern in ("a*(?=b)", "(?:a|ab){2}", "^(?!.*a$)", "\\b[ab]+\\B", "(?<=a|b).$", "(?:^|-)a"):
        term = parse_pattern(pattern, dialect="python", flags="", nesting=99)
        for text in TEXTS:
            assert matches(term, text, "search") == bool(re.search(pattern, text))


# ---- shapes that patterns have ----------------------------------------------------------------------------------

ZOD_EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
FQDN = r"^(?!.*://)(?=.{1,255}$)((.{1,63}\.){1,127}(?![0-9]*$)[a-z0-9-]+\.?)$"


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (ZOD_EMAIL, ["a.b@c.de", "o'x@c.d.info"], [".a@c.de", "a..b@c.de", "a.@c.de", "a@c.d", "a@-c.de"]),
        (FQDN, ["a.b", "a..b", "x.1.a-1."], ["a", "a.1", "://.b", ".", "a" * 64 + ".b", "a." + "b" * 254]),
        (r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,20}$", ["aB3aaaaa"], ["aB3", "ab3aaaaa", "aB3" + "a" * 18]),
        (r"^((?!cat).)*$", ["", "ca", "cca"], ["cat", "xcaty"]),
        (r"^(?!^a\.|b\.).*", ["c.", "ab."], ["a.", "b.x"]),
        (r"((?:[^/]*/)*)(?=\.(yaml|yml))", ["x/.yaml", "a.yml"], ["yaml"]),
        (r"^https?://[a-z.]{1,9}\.[a-z)]{1,6}\b([-/]*)$", ["http://a.b", "http://a.b-", "http://a.)b/"], ["http://a.)"]),
        (r"\bcat\b", ["cat", "a cat.", "-cat"], ["cats", "tomcat", "cat_"]),
        (r"^(?:(?<=^|,)\w+,?)+$", ["a", "a,bc"], [",", "a,,b"]),
        (r"^\w+(?<!\.exe|_)$", ["a", "exe"], ["a_", "a.exe"]),
        (r"^.*(?<!\.exe)$", ["a", "exe", ".exe "], ["a.exe", ".exe"]),
        (r"^(?=.*(?<=a)b)[abc]+$", ["ab", "cabc"], ["ba", "acb"]),
        (r"^(?=[a-z]{3})(?!.{6})", ["abc", "abcDE"], ["ab", "abC", "abcdef"]),
        (r"^[^]*$(?<![^]{3})", ["", "a\n"], ["aaa", "aaaa"]),
        (r"(?=a)*b", ["b"], ["a"]),
    ],
)  # fmt: skip
def test_shapes_of_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    letters, low, high = to_counted_dfa(pattern, dialect="ecma", match="search")

    def accepts(text: str) -> bool:
        return letters.accepts(text) and low <= len(text) and (high is None or len(text) <= high)

    assert [text for text in yes if not accepts(text)] == []
    assert [text for text in no if accepts(text)] == []


@pytest.mark.parametrize(
    ("pattern", "plain", "low", "high"),
    [
        ("^(?=.{3,9}$)[a-z-]+$", "[a-z-]*", 3, 9),
        ("^(?=.{3,9}$)(?=[^]{5,}$)(?:a|-a)+$", "(?:a|-a)+", 5, 9),
        ("^(?=^.{3}$)[a-z]*$", "[a-z]*", 3, 3),
        ("^(?=.{3})(?!.{10})[a-z]*$", "[a-z]*", 3, 9),
        ("^(?!.{0,4}$)(?!.{10,}$)([a-z]-)*$", "(?:[a-z]-)*", 5, 9),
        ("^(?=.{1,9}$)(?!a)[a-z]{2,}$", "(?:[b-z][a-z]*)?", 2, 9),
        ("^(?=[a-y]{1,9}$)[a-z]-?$", "[a-y]", 1, 9),
        ("^(?=[a-y]{1,9})[a-z]{3}$", "[a-y][a-z]*", 3, 3),
        ("^(?=.{1,9}$)(?:a(?!b|$).){1,4}$", "(?:a(?!b|$).)+", 1, 9),
        ("^(?=.{1,10}$)(?:a(?!b|$).){1,4}$", "(?:a(?!b|$).){1,4}", 1, 10),
        ("^(?=.{1,9}$)[^]*$", ".*", 1, 9),
        ("(?=.{1,9}$)a", "[^]*(?=.{1,9}$)a[^]*", 0, None),
        ("^(?!.*$)a$", "[]", 0, None),
    ],
)
def test_length_is_counted_beside(pattern: str, plain: str, low: int, high: int | None) -> None:
    assert to_counted_dfa(pattern, dialect="ecma", match="search") == (to_dfa(plain, dialect="ecma"), low, high)


@settings(max_examples=50)
@given(st.data())
def test_counted_lengths_preserve_the_language(data: st.DataObject) -> None:
    """Conditions of length in front of any body mean what they mean to the backtracker."""
    counts = st.sampled_from(["{2}", "{1,3}", "{2,}", "{0,2}", "{3,}", "*", "+"])
    run = st.builds("(?{}{}{}{})".format, st.sampled_from("=!"), st.sampled_from([".", "[ab]", "[^]", "[^ ]"]), counts,
                    st.sampled_from(["", "$"]))  # fmt: skip
    body = st.sampled_from(["[ab]*", "(?:ab|a){1,2}", "(?:a.){0,2}", ".+", "(?:a(?!-)|b){1,3}", "-?"])
    ends = st.sampled_from(["$", "$", ""])
    pattern = "^" + data.draw(run) + data.draw(run | st.just("")) + data.draw(body) + data.draw(ends)
    letters, low, high = to_counted_dfa(pattern, dialect="ecma", match="search")
    dfa = letters.with_length(low, high)
    assert dfa == to_dfa(pattern, dialect="ecma", match="search")
    term = parse_pattern(pattern, dialect="ecma", flags="", nesting=99)
    for text in TEXTS:
        assert dfa.accepts(text) == matches(term, text, "search"), text


def test_the_one_blow_up_is_small() -> None:
    dfa, low, high = to_counted_dfa(FQDN, dialect="ecma", match="search", max_states=2_000)
    assert (low, high) == (1, 255)
    with pytest.raises(LimitError, match="max_states"):
        to_dfa(FQDN, dialect="ecma", match="search")
    pattern = read_pattern(FQDN)
    assert pattern.counted == (1, 255) and letters_dfa(FQDN, 2_000) == dfa
    assert pattern_dfa(ZOD_EMAIL, 50) == to_dfa(ZOD_EMAIL, dialect="ecma", match="search")


def test_repetitions_that_say_nothing_new_need_no_states() -> None:
    dfa = to_dfa("(?:.{1,20}b){1,5}", max_states=4_000)
    assert dfa.lengths() == (2, 105)
    term = parse_pattern("(?:.{1,20}b){1,5}", dialect="python", flags="", nesting=99)
    for text in ("b", "ab", "bb", "a" * 20 + "b", "a" * 21 + "b", "bab" * 7 + "aab", ("a" * 20 + "b") * 5, "ab" * 60):
        for end in ("", "b", "ab", "a" * 20 + "b"):
            assert dfa.accepts(text + end) == matches(term, text + end, "full"), text + end


def test_nodes_of_patterns_that_look_around() -> None:
    node = to_node("(?=.{1,255}$)(?!a)(?:[a-z]-?)+", dialect="ecma")
    assert node == Chars(to_dfa("[b-z]-?(?:[a-z]-?)*"), "utf8", 1, 255)
    # Of odd lengths there are none, so the least length is multiplied in.
    assert to_node("(?=.{3,9}$)(?!b)(?:ab)+", dialect="ecma") == Chars(to_dfa("(?:ab){2,}"), "utf8", 0, 9)
    for pattern in ("(?=a)b", "(?=.{3}$)(?!x)ab", "(?!.{2})(?=a)ab", "(?=.{2}$)(?=.{3}$).*"):
        with pytest.raises(UnsatisfiableError):
            to_node(pattern, dialect="ecma")


# ---- limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=(a|b)*a(a|b){40})",
        "(?:(?=.*a.{30}).)*b",
        ".*(?<=a(a|b){40})c",
        "(?:(?=.*a.{9}b)(?=.*b.{8}a).)*b",
        "(?:(?<!a.{18})b|c(?=.{19}d)|.)*d",
        "(?=a{100000})b",
        "(?:(?=a)b{1000}){1000}",
    ],
)  # fmt: skip
def test_lookaround_has_a_limit(pattern: str) -> None:
    with pytest.raises(LimitError, match="max_states") as caught:
        to_dfa(pattern, max_states=1_000)
    assert caught.value.source == pattern


def test_nesting_of_looks() -> None:
    for opening in ("(?=", "(?!", "(?<=", "(?<!"):
        assert to_dfa(opening * 20 + "a" + ")" * 20).lengths() in ((0, 0), (1, 0))
        with pytest.raises(LimitError, match="nested deeper"):
            to_dfa(opening * 100 + "a" + ")" * 100)
    with pytest.raises(LimitError, match="characters"):
        to_dfa("a" * 1_000_000)


# ---- references -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("(a|b|ab)\\1", ""),
        ("^([ab])([ -])[ab]\\2\\1$", ""),
        ("(?P<q>[ab])(?:(?!(?P=q)).)*(?P=q)", ""),
        ("(?:(a|b)-\\1 ?)+", ""),
        ("(a|)b(\\1|-)", ""),
        ("(a{1,2})(b?)\\2\\1", ""),
        ("([aA])\\1", "i"),
        ("((a|b) \\2)\\1", ""),
        ("(?=([ab]) \\1)..", ""),
    ],
)
def test_references_to_small_groups(pattern: str, flags: str) -> None:
    compiled = compile_re(pattern, flags)
    full, search = to_dfa(pattern, flags=flags), to_dfa(pattern, flags=flags, match="search")
    for text in ["".join(word) for size in range(6) for word in product("abA -", repeat=size)][::3]:
        assert full.accepts(text) == bool(compiled.fullmatch(text)), text
        assert search.accepts(text) == bool(compiled.search(text)), text
