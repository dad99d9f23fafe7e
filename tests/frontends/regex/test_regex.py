"""The regex front end: against `re` on random patterns, against ECMA-262 by hand, and what it refuses and where."""

from __future__ import annotations

import re
import unicodedata
import warnings

import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.dfa import LAST, Dfa
from constrain.base.errors import LimitError, RegexError, UnsatisfiableError, UnsupportedError
from constrain.frontends.regex import Dialect, Match, to_counted_dfa, to_dfa, to_grammar, to_node
from constrain.grammar.nodes import EMPTY, Chars, Choice, Literal, Node, Repeat, Sequence
from tests.grammar_strategies import compile_re, flag_sets, regexes, texts

TEXT = "".join(map(chr, [*range(0xD800), *range(0xE000, LAST)]))
"""All characters."""


def ecma(pattern: str, flags: str = "") -> Dfa:
    return to_dfa(pattern, dialect="ecma", flags=flags, match="search")


def characters(dfa: Dfa) -> str:
    """The characters that are texts of the language, in order."""
    table = dfa.table
    ends = [*table.bounds[1:], LAST]
    after = [table.rows[0][index] for index in table.classes]
    spans = [range(b, e) for b, e, state in zip(table.bounds, ends, after) if state >= 0 and table.accepting[state]]
    return "".join(map(chr, [point for span in spans for point in span]))


# ---- the Python dialect is `re` ---------------------------------------------------------------------------------


@settings(max_examples=120)
@given(regexes(), flag_sets(), st.lists(texts(), min_size=1, max_size=12))
def test_matches_agree_with_re(pattern: str, flags: str, samples: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = compile_re(pattern, flags)
    full, search = to_dfa(pattern, flags=flags), to_dfa(pattern, flags=flags, match="search")
    for text in [*samples, *full.enumerate(5), *search.enumerate(5)]:
        assert full.accepts(text) == bool(compiled.fullmatch(text)), text
        assert search.accepts(text) == bool(compiled.search(text)), text


@settings(max_examples=400)
@given(st.text("ab(){}[]*+?|^$\\-,1<:=!P#.x\n", max_size=9), st.sampled_from(["", "x", "i"]))
def test_any_text_is_a_pattern_for_both_or_for_neither(pattern: str, flags: str) -> None:
    """What `re` refuses is refused, and what it takes is taken and means the same, or is refused by name."""
    compiled = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = compile_re(pattern, flags)
        except re.error:
            pass
    try:
        dfa = to_dfa(pattern, flags=flags)
    except UnsupportedError:
        return
    except RegexError as error:
        assert compiled is None or "(?<" in pattern, error
        return
    if compiled is None:
        # Named groups as in ECMA-262, possessive quantifiers before 3.11 and the like are taken, on purpose.
        assert "(?<" in pattern or "+" in pattern or pattern.endswith("\\") or "\\z" in pattern
        return
    for text in ["", "a", "b", "ab", "ba", "\n", "a\n", "{", "}", "a{", "[]", "1", "a,1", *dfa.enumerate(5)]:
        assert dfa.accepts(text) == bool(compiled.fullmatch(text)), text


@pytest.mark.parametrize("flags", ["", "a"])
@pytest.mark.parametrize("letter", "dDsSwW")
def test_class_escapes_are_those_of_re(letter: str, flags: str) -> None:
    assert characters(to_dfa("\\" + letter, flags=flags)) == "".join(compile_re("\\" + letter, flags).findall(TEXT))


@pytest.mark.parametrize("flags", ["i", "ai"])
def test_equal_but_for_case_is_as_in_re(flags: str) -> None:
    """All characters that have a case, each against all of them."""
    cased = [c for c in TEXT if c.lower() != c or c.upper() != c or c.casefold() != c]
    joined = "".join(cased)
    for char in cased:
        expected = compile_re(re.escape(char), flags).findall(joined)
        assert characters(to_dfa(re.escape(char), flags=flags)) == "".join(expected)


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        ("(?x) a b # c\n [ #]", "", ["ab ", "ab#"], ["a b#", "ab"]),
        ("(?i)straße", "", ["STRAẞE", "straße"], ["STRASSE"]),
        ("[^a-z]", "i", ["1", "é"], ["Q", "\u017f", "\u212a"]),
        ("\\u0041\\U0001F600\\x41\\101\\0\\N{SNOWMAN}\\a", "", ["A😀AA\0☃\a"], []),
        ("[]a][^]a]", "", ["]b", "a[", "a\n"], ["b]", "]]"]),
        ("a{,2}b{2,}c{,}d{x}", "", ["bbd{x}", "aabbbccd{x}"], ["aaabbd{x}", "bd{x}"]),
        ("(?P<n>a)(?<m>b)(?#c)+", "", ["ab", "abb"], ["a"]),
        ("(?s:.)(?-s:.)", "s", ["\na"], ["a\n"]),
        ("\\p{Lu}\\P{Lu}", "", ["Éa"], ["aa", "AA"]),
        ("a$\\n", "", ["a\n"], ["a"]),
        ("(?:a|$)*\\Z", "", ["", "aa"], ["\n"]),
        ("a{2}+", "", ["aa"], ["a", "aaa"]),
    ],
)
def test_python_by_hand(pattern: str, flags: str, yes: list[str], no: list[str]) -> None:
    dfa = to_dfa(pattern, flags=flags)
    assert [text for text in yes if not dfa.accepts(text)] == []
    assert [text for text in no if dfa.accepts(text)] == []


# ---- ECMA-262 ---------------------------------------------------------------------------------------------------

SPACES = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"


def test_ecma_classes() -> None:
    full = {name: characters(to_dfa(name, dialect="ecma")) for name in ("\\d", "\\w", "\\s", ".")}
    assert full["\\d"] == "0123456789" and full["\\s"] == SPACES
    assert full["\\w"] == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    assert full["."] == "".join(c for c in TEXT if c not in "\n\r\u2028\u2029")
    for lower in "dws":
        inside, outside = (to_dfa(f"[\\{letter}]", dialect="ecma") for letter in (lower, lower.upper()))
        assert inside.union(outside) == to_dfa("[^]", dialect="ecma") and inside.intersect(outside).is_empty


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        ("^a$", "", ["a"], ["a\n", "ba", "a\r"]),
        ("^a$", "m", ["a", "b\na\nc", "a\u2028", "x\ra"], ["ba", "ab"]),
        ("a.b", "", ["xacbx"], ["a\nb", "a\rb", "a\u2028b", "a\u2029b"]),
        ("a.b", "s", ["a\nb", "a\u2029b"], ["ab"]),
        ("^.$", "", ["😀", "é"], ["", "ab"]),
        ("^[\\u{1F600}-\\u{1F64F}]$", "", ["😀"], ["a"]),
        ("^\\uD83D\\uDE00$", "", ["😀"], ["\ufffd"]),
        ("^[^\\uD800]$", "", ["a", "😀"], [""]),
        ('^\\-\\/\\_\\@\\"\\ $', "", ['-/_@" '], []),
        ("^a{b}]{$", "", ["a{b}]{"], ["ab"]),
        ("^x{,5}$", "", ["x{,5}"], ["xx", ""]),
        ("^[\\w-.]+$", "", ["a-.", "-"], [",", "/"]),
        ("^[\\d-a-z]$", "", ["-", "a", "z", "5"], ["b"]),
        ("^[a-\\d]$", "", ["-", "a", "5"], ["b"]),
        ("^[]$", "", [], ["", "]"]),
        ("^[^]$", "", ["\n", "]"], ["", "ab"]),
        ("^[\\b\\cJ\\0\\]]$", "", ["\b", "\n", "\0", "]"], ["b", "J"]),
        ("^k$", "i", ["K", "\u212a"], []),
        ("^[^s]$", "i", ["a"], ["S", "\u017f"]),
        ("^i$", "i", ["I"], ["İ", "ı"]),
        ("^\\w$", "i", ["\u017f", "\u212a"], ["é"]),
        ("^\\W$", "i", ["é"], ["\u017f", "\u212a"]),
        ("^\\p{Lu}$", "i", ["a", "A"], ["1"]),
        ("^\\p{L}\\p{Lowercase_Letter}\\p{gc=Nd}\\p{Any}\\P{ASCII}$", "", ["Éa٣!é"], ["éA1!é"]),
        ("^a|b$", "", ["ax", "xb", "a", "b"], ["xa", "bx"]),
        ("(^|,)x(,|$)", "", ["x", "a,x", "x,b", "a,x,b"], ["ax", "xb"]),
        ("^(a|b$)*$", "", ["", "aab", "b"], ["ba", "bb"]),
        ("^(?:^a)+$", "", ["a"], ["aa"]),
        ("a^b", "", [], ["ab", "a\nb"]),
        ("$^", "", [""], ["a"]),
        ("(?<year>\\d{4})-?", "", ["2024"], ["202"]),
        ("^(?:a*?b+?){2,3}?$", "", ["bb", "abab"], ["b"]),
        ("^(?i:a)b$", "", ["Ab", "ab"], ["AB"]),
        ("", "", ["", "a"], []),
        ("^$", "", [""], ["a", "\n"]),
        ("a||b", "", ["", "c"], []),
    ],
)
def test_ecma_by_hand(pattern: str, flags: str, yes: list[str], no: list[str]) -> None:
    dfa = ecma(pattern, flags)
    assert [text for text in yes if not dfa.accepts(text)] == []
    assert [text for text in no if dfa.accepts(text)] == []


def test_surrogates_are_in_no_language() -> None:
    for pattern in ("[^a]", ".", "\\ud800", "[\\ud800-\\udfff]", "\\P{L}", "\\W", "\\p{Cs}", "\ud800"):
        for dialect in ("python", "ecma"):
            dfa = to_dfa(pattern, dialect=dialect, flags="s")
            assert not dfa.accepts("\ud800") and not dfa.accepts("\udfff")


def test_general_categories_are_those_of_unicodedata() -> None:
    members: dict[str, list[str]] = {}
    for char in TEXT:
        members.setdefault(unicodedata.category(char), []).append(char)
    for name, chars in members.items():
        assert characters(ecma(f"^\\p{{{name}}}$")) == "".join(chars)
    letters = sorted(members["Lu"] + members["Ll"] + members["Lt"])
    assert characters(ecma("^\\p{LC}$")) == "".join(letters)
    assert characters(ecma("^\\P{Letter}$")) == "".join(c for c in TEXT if not unicodedata.category(c).startswith("L"))
    assert characters(ecma("^\\p{Assigned}$")) == "".join(c for c in TEXT if unicodedata.category(c) != "Cn")


def test_properties() -> None:
    ascii_only = {chr(point) for point in range(128)}
    letters = {"Alphabetic", "ID_Start", "IDC", "XIDS", "XID_Continue"}
    known = {
        "Script=Latin": "aZ\u00aa\u212b\u2160\uff21", "sc=Grek": "\u03b1\u1f00\u2126", "Cyrillic": "\u0436",
        "Script=Han": "\u6f22\u3005\U00020000", "sc=Hira": "\u3042\U0001f200", "Katakana": "\u30a2\uff71",
        "Hangul": "\uac00\u1100", "sc=Arab": "\u0627", "Hebrew": "\u05d0", "Thai": "\u0e01", "Deva": "\u0905",
        "Alphabetic": "aZ\u00e9\u2160\u24b6\u0345", "Lowercase": "a\u00aa\u2170", "Uppercase": "A\u2160\u24b6",
        "White_Space": " \t\x85\u3000", "Emoji": "\U0001f600#", "ASCII_Hex_Digit": "fF9",
    }  # fmt: skip
    known |= {
        "ID_Start": "aé漢", "IDC": "a1é_", "XIDS": "aé", "XID_Continue": "a1_", "Hex": "fF９", "RI": "🇩",
        "Emoji_Presentation": "😀⌚", "ExtPict": "😀©", "EBase": "☝", "EMod": "🏽", "EComp": "#🇩", "VS": "\ufe0f",
        "Join_Control": "\u200d",
    }  # fmt: skip
    for name, inside in known.items():
        dfa = to_dfa(f"\\p{{{name}}}", dialect="ecma")
        assert [char for char in inside if not dfa.accepts(char)] == [], name
        assert not dfa.accepts("\u4e8c" if "Han" not in name and name not in letters else "!"), name
        assert not dfa.accepts("%")
    assert set(characters(ecma("^\\p{Latin}$"))) & ascii_only == {char for char in ascii_only if char.isalpha()}


# ---- what is wrong, what is refused, and where ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "dialect", "position", "cause"),
    [
        ("a(b", "python", 1, "group is not closed"),
        ("ab)c", "python", 2, "no group to close"),
        ("a[bc", "ecma", 1, "class is not closed"),
        ("a[]", "python", 1, "class is not closed"),
        ("*a", "ecma", 0, "nothing to repeat"),
        ("a|*", "python", 2, "nothing to repeat"),
        ("^*", "ecma", 1, "nothing to repeat"),
        ("a**", "python", 2, "repeated already"),
        ("a++", "ecma", 2, "repeated already"),
        ("a{3,2}", "python", 1, "at least 3 and at most 2"),
        ("{2}", "ecma", 0, "nothing to repeat"),
        ("ab\\", "python", 2, "backslash at the end"),
        ("\\x4", "ecma", 0, "hexadecimal"),
        ("a\\u12", "python", 1, "hexadecimal"),
        ("\\u{110000}", "ecma", 0, "code point"),
        ("\\U00110000", "python", 0, "no such code point"),
        ("a\\q", "python", 1, "\\q is unknown"),
        ("a\\Z", "ecma", 1, "\\Z is unknown"),
        ("\\01", "ecma", 0, "digits after a backslash"),
        ("[\\8]", "python", 1, "octal"),
        ("\\N{NO SUCH THING}", "python", 0, "name of a character"),
        ("[b-a]", "ecma", 1, "ends before it starts"),
        ("[\\w-a]", "python", 1, "from one character to another"),
        ("a\\p{Nope}", "ecma", 1, "'Nope'"),
        ("\\pL", "ecma", 0, "in braces"),
        ("(a)\\2", "ecma", 3, "no group 2"),
        ("a(?i)", "python", 1, "at its start"),
        ("(?y:a)", "python", 0, "unknown"),
        ("(?i-i:a)", "python", 0, "unknown"),
        ("(?P<1>a)", "python", 4, "name"),
        ("(?P<n>a)(?P<n>b)", "python", 12, "taken"),
        ("(?#a", "python", 0, "comment"),
        ("x(?#a)", "ecma", 1, "no comments"),
    ],
)
def test_errors_say_where(pattern: str, dialect: Dialect, position: int, cause: str) -> None:
    with pytest.raises(RegexError) as caught:
        to_dfa(pattern, dialect=dialect)
    assert caught.value.source == pattern and caught.value.position == position
    assert cause in caught.value.cause
    assert "^" in str(caught.value).splitlines()[3]


@pytest.mark.parametrize(
    ("pattern", "dialect", "position", "name"),
    [
        ("(a*)\\1", "python", 4, "backreference"),
        ("(a)+\\1", "python", 4, "backreference"),
        ("(?:(a)|b)\\1", "ecma", 9, "backreference"),
        ("(.)\\1", "ecma", 3, "backreference"),
        ("(\\d\\d\\d)\\1", "ecma", 8, "backreference"),
        ("(a\\b)\\1", "ecma", 5, "backreference"),
        ("\\1(a)", "ecma", 0, "backreference"),
        ("(?<n>a*)\\k<n>", "ecma", 8, "backreference"),
        ("(?P<n>a*)(?P=n)", "python", 9, "backreference"),
        ("(?>a*)a", "python", 0, "atomic"),
        ("a*+a", "python", 1, "possessive"),
        ("(a)?(?(1)b|c)", "python", 4, "conditional"),
        ("a\\p{Dash}", "ecma", 1, "\\p{Dash}"),
        ("a\\P{scx=Greek}", "ecma", 1, "scx=Greek"),
    ],
)
def test_unsupported_syntax_is_refused_by_name(pattern: str, dialect: Dialect, position: int, name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_dfa(pattern, dialect=dialect, match="search")
    assert caught.value.source == pattern and caught.value.position == position and name in caught.value.cause


def test_unknown_flags_are_refused() -> None:
    for flags, dialect in (("q", "python"), ("x", "ecma"), ("L", "python")):
        with pytest.raises(RegexError, match="flag"):
            to_dfa("a", flags=flags, dialect=dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    [
        "a{100000}",
        "(?:a{1,1000}){1,1000}",
        "(a|b)*a(a|b){40}",
        "((((a{99}){99}){99}){99}){99}",
        "a" * 30_000,
    ],
)
def test_large_patterns_have_a_limit(pattern: str) -> None:
    with pytest.raises(LimitError, match="max_states"):
        to_dfa(pattern, max_states=2_000)


def test_nesting_costs_no_recursion() -> None:
    with pytest.raises(LimitError, match="nest"):
        to_dfa("(" * 100_000 + ")" * 100_000)
    deep = "(?:a" * 100 + ")*" * 100
    assert to_dfa(deep).accepts("a" * 300) and to_node(deep) is not None
    assert to_dfa("(" * 250 + "a" + ")" * 250) == to_dfa("a")


# ---- nodes ------------------------------------------------------------------------------------------------------


def ends(node: Node, text: str, starts: set[int]) -> set[int]:
    """Where in the text the node may end if it begins at one of the starts: what the nodes mean, plainly."""
    if isinstance(node, Literal):
        assert node == EMPTY
        return starts
    if isinstance(node, Chars):
        found = set()
        for start in starts:
            for end in range(start, len(text) + 1):
                long_enough = node.low <= end - start and (node.high is None or end - start <= node.high)
                if long_enough and node.dfa.accepts(text[start:end]):
                    found.add(end)
        return found
    if isinstance(node, Sequence):
        for part in node.parts:
            starts = ends(part, text, starts)
        return starts
    if isinstance(node, Choice):
        return set().union(*(ends(option, text, starts) for option in node.options))
    assert isinstance(node, Repeat)
    found = set(starts) if node.low == 0 else set()
    for count in range(1, (node.low + len(text) + 1 if node.high is None else node.high) + 1):
        starts = ends(node.node, text, starts)
        found |= starts if count >= node.low else set()
        if not starts or (count > node.low + len(text)):
            break
    return found


@settings(max_examples=200)
@given(regexes(), st.lists(texts(), min_size=1, max_size=8), st.sampled_from(["full", "search"]))
def test_nodes_mean_the_pattern(pattern: str, samples: list[str], match: Match) -> None:
    dfa = to_dfa(pattern, match=match)
    if dfa.is_empty:
        with pytest.raises(UnsatisfiableError):
            to_node(pattern, match=match)
        return
    node = to_node(pattern, match=match)
    for text in [*samples, *dfa.enumerate(5)]:
        assert (len(text) in ends(node, text, {0})) == dfa.accepts(text)


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        ("(a|b{1,1000}c){0,500}x?", "(a|b+c)*x?"),
        ("(?:(?:a?){300}b?){2,400}", "[ab]*"),
        ("(?:a{1,300}|)(?:b|c{2,600})", "a*(?:b|cc+)"),
        ("(?:ab?){400,}|c", "c"),
        ("(a|b)*a(a|b){20}", "[ab]*a[ab]{20}"),
        ("(?:[ab]{300}){0}", ""),
        ("(?:a|(?:b{0,500}){3}c)*", "(?:a|b*c)*"),
        ("[^\\s\\S]{2,500}|a", "a"),
        ("(?:(?:a{200}){0,2}b){2}", "bb"),
    ],
)
@settings(max_examples=25)
@given(st.lists(st.text("abcx", max_size=9), min_size=1, max_size=6))
def test_large_repetitions_are_counted(pattern: str, plain: str, samples: list[str]) -> None:
    """Against a pattern that is the same for short texts: `re` would take for ever."""
    node = to_node(pattern)
    for text in [*samples, "a" * 21, "b" * 7 + "a" * 20, "", "ccbx"]:
        assert (len(text) in ends(node, text, {0})) == bool(re.fullmatch(plain, text)), text


def size(node: Node) -> int:
    """States of all automata in the node."""
    if isinstance(node, Chars):
        return len(node.dfa.accepting)
    if isinstance(node, (Sequence, Choice)):
        return sum(map(size, node.parts if isinstance(node, Sequence) else node.options))
    return size(node.node) if isinstance(node, Repeat) else 0


def test_counting_is_never_unrolled() -> None:
    one = to_node("^[a-z]{1,100000}$", dialect="ecma", match="search", encoding="json")
    assert one == Chars(to_dfa("[a-z]*"), "json", 1, 100_000) and size(one) == 1
    assert size(to_node("([a-z]{1,60000}\\.){1,70000}[a-z]{2,500000}")) < 10
    grammar = to_grammar("(?:a{1000}b){1000}")
    assert not grammar.rules and size(grammar.start) < 10 and hash(grammar.start)


def test_counted_form() -> None:
    letters = to_dfa("[a-z]*")
    assert to_counted_dfa("^[a-z]{2,255}$", dialect="ecma", match="search") == (letters, 2, 255)
    assert to_counted_dfa("([a-z]{3,})") == (letters, 3, None)
    assert to_counted_dfa("^[a-z]{3}$") == (letters, 3, 3)
    assert to_counted_dfa("(?:[a-z]?){300}") == (letters, 0, 300) and to_counted_dfa("(?:(?:[a-z]+)*){2}") == (
        letters,
        0,
        None,
    )
    assert to_counted_dfa("[a-z]{2}-") == (to_dfa("[a-z]{2}-"), 0, None)
    assert to_counted_dfa("^[a-z]{2}$", match="search") == (to_dfa("[a-z]{2}\\n?"), 0, None)
