"""Masks of names, of members that must differ and of parsed texts, against taking each token byte by byte."""

from __future__ import annotations

import random
from typing import Any

import pytest

from constrain import LimitError, Style, Vocabulary, compile, compile_grammar
from constrain.automata.dfa import Dfa
from constrain.frontends.lark import to_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Layout,
    Literal,
    NameClass,
    Node,
    Object,
    Sequence,
    Strings,
)
from constrain.kernels import layout as at
from constrain.kernels.masks import MOST_ROWS
from tests.token_mask_oracle import compare_token_masks

FEW_NAMES = {"type": "object", "patternProperties": {"^(a|é|ab|abc|😀|b/|a\\\\)$": {"type": "null"}},
             "additionalProperties": False}  # fmt: skip
SCHEMAS: dict[str, tuple[Any, list[str]]] = {
    "few names": (FEW_NAMES | {"minProperties": 4}, [
        '{"a":null,"\\u00e9":null,"\\ud83d\\ude00":null,"ab":null,"abc":null}',
        '{"abc":null,"\\u0061b":null,"b\\/":null,"a":null}',
        '{"a\\\\":null,"a\\u0062c":null,"\\u0062/":null,"ab":null}',
    ]),
    "names of two characters": (
        {"type": "object", "propertyNames": {"pattern": "^[ab\"]{2}$"}, "additionalProperties": {"type": "null"},
         "minProperties": 4},
        [
            '{"ab":null,"ba":null,"aa":null,"bb":null}',
            '{"b\\"":null,"\\"b":null,"ab":null,"ba":null}',
            '{"\\"a":null,"a\\"":null,"\\u0022b":null,"b\\u0061":null}',
        ],
    ),
    "undeclared names": (
        {"type": "object", "properties": {"name": {"type": "null"}, "né": {"type": "null"}},
         "additionalProperties": {"type": "integer"}},
        ['{"name":null,"nam":1,"n":2,"names":3,"ne":4,"nä":5}', '{"n\\u0061m":1,"nam\\u00e9":2,"x":3,"né":null}',
         '{"a\\"b":1,"a\\\\":2,"a\\nb":3}'],
    ),
    "names with a quote": (
        {"type": "object", "propertyNames": {"pattern": "^[ab]+\"[ab]*$"}, "additionalProperties": {"type": "null"}},
        ['{"a\\"b":null,"b\\"a":null,"a\\"a":null}', '{"b\\"":null,"b\\"b":null,"b\\u0022a":null,"bb\\"":null}'],
    ),
    "names and a count": (
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "propertyNames": {"maxLength": 3},
         "minProperties": 2, "maxProperties": 3},
        ['{"a":1,"ab":2,"abc":3}', '{"x":{},"a\\u0062":1,"é":[]}'],
    ),
    "different texts": (
        {"type": "array", "items": {"enum": ["a", "ab", "abc", "b", "a b", "é"]}, "uniqueItems": True, "minItems": 5},
        ['["ab","a","abc","b","é"]', '["a b","a","b","ab","abc"]'],
    ),
    "different numbers": (
        {"type": "array", "items": {"type": "integer", "minimum": -2, "maximum": 12}, "uniqueItems": True},
        ["[1,12,11,10,-1,2]", "[12,1,-2,-1,0]"],
    ),
    "different lists": (
        {"type": "array", "uniqueItems": True,
         "items": {"type": "array", "items": {"enum": [1, 11, "x"]}, "maxItems": 2}},
        ['[[1],[11],[1,1],["x",11],[]]', "[[],[11,11],[11,1],[11]]"],
    ),
    "different objects": (
        {"type": "array", "uniqueItems": True,
         "items": {"type": "object", "properties": {"a": {"enum": [1, 12]}, "b": {"type": "boolean"}},
                   "additionalProperties": False}},
        ['[{"a":1},{"a":12},{"a":1,"b":true},{}]', '[{},{"b":true},{"b":false},{"a":12,"b":true}]'],
    ),
    "different strings": (
        {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True},
        ['["","a","ab","\\u0062"]', '["\\u00e9","é\\"","x"]'],
    ),
}  # fmt: skip


def vocabulary_of(texts: list[str], extra: tuple[str, ...] = ()) -> Vocabulary:
    """Single bytes, and pieces of texts, also pieces that do not occur there."""
    rng, pieces = random.Random(texts[0]), set[bytes]()
    for text in map(str.encode, texts):
        pieces |= {text[k : k + size] for k in range(len(text)) for size in range(2, 9)}
    parts = ['"', '":', '",', "\\u", "\\", "0061", "00e9", "a", "b", "ab", "é", "1", "2", ",", "]", "}", '","', "],["]
    pieces |= {"".join(rng.choices(parts, k=rng.randint(2, 5))).encode() for _ in range(200)}
    pieces |= set(map(str.encode, extra))
    listed: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *sorted(pieces)]
    rng.shuffle(listed)
    return Vocabulary.from_tokens([*listed, None], (len(listed),))


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("escapes", ["canonical", "any"])
def test_schemas(name: str, escapes: str) -> None:
    schema, texts = SCHEMAS[name]
    vocabulary = vocabulary_of(texts, ('"b"', '"a":', '"b":', '""', '"",'))
    style = Style(whitespace="compact") if escapes == "canonical" else Style.any()
    constraint = compile(vocabulary, schema=schema, style=style)
    oracle = compile(Vocabulary.bytes(), schema=schema, style=style)
    for text in texts:
        compare_token_masks(constraint, oracle, text.encode(), vocabulary)


# ---- parsed texts beside and inside other things --------------------------------------------------------------------

BACK = to_grammar('start: (A | B | C)+\nA: "a"\nB: /a*b/\nC: /b+c?(dddd)?/').start
ITEMS = to_grammar('start: NAME ("," NAME)*\nNAME: /[a-z]+/\n%ignore " "').start
WORD = Chars(to_dfa("[a-z]*"))
NODES: dict[str, tuple[Node, list[str]]] = {
    "parsed, then more": (Sequence((Literal(b"<"), ITEMS, Literal(b">"))), ["<a, bc,d>", "<ab>"]),
    "two lexemes, then more": (Sequence((BACK, Literal(b"a!"))), ["aabaaa!", "bbcdddda!"]),
    "two lexemes": (BACK, ["aaabaa", "bbcddddbc", "aab"]),
    "a parsed text or another": (Choice((Sequence((BACK, Literal(b"."))), ITEMS)), ["aab,c", "aab.", "ab"]),
    "a parsed text or any word": (Choice((BACK, Sequence((WORD, Literal(b"!"))))), ["aab!", "abc", "aaaab"]),
    "a string or a word": (
        Choice((JsonString(to_dfa("a.*")), Sequence((Literal(b'"'), WORD, Literal(b'";'))))), ['"abc"', '"ab";'],
    ),
    "words and texts": (
        Choice((Sequence((WORD, Literal(b"1"))), Strings((b"abc", b"abd2", b"b")), Chars(to_dfa("[a-d]+é?")))),
        ["abc1", "abd2", "abcdé"],
    ),
}  # fmt: skip


TIGHT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
NAMES = Dfa.from_strings(["a", "ab", "abc", "abd", "b", "é", "éa", '"', '"a', "\\", "😀", "\n"])


def few_but(*excluded: str, language: Dfa = NAMES) -> Node:
    """An object with member names from a small set, without the excluded ones."""
    return Object((), (NameClass(language, Literal(b"1")),), TIGHT, 0, 5, excluded=excluded)


NODES |= {
    "few names but one": (few_but("ab"), ['{"a":1,"abc":1,"b":1}', '{"abd":1,"\\u0061":1,"\\"a":1}']),
    "few names but some": (few_but("a", "abc", "é", '"'), ['{"ab":1,"abd":1,"\\"a":1}', '{"\\u00e9a":1,"b":1,"éa']),
    "few names but the last": (few_but("b", "😀"), ['{"\\n":1,"\\\\":1,"é":1}', '{"abc":1,"ab":1,"a":1,"abd":1}']),
    "few or many names": (
        few_but("b", "bc", language=Dfa.from_strings(["q", "qr"]).union(to_dfa("b.*"))),
        ['{"q":1,"bb":1,"bcd":1}', '{"qr":1,"\\u0062x":1,"q":1}', '{"b\\u0063d":1,"bx":1}'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_nodes(name: str) -> None:
    node, texts = NODES[name]
    vocabulary = vocabulary_of(texts, ("aab", "ab", "ba", "aaa", "bcdddd", "a,b", "b>", "a>", "c,d", "b.", "a!", "ba!"))
    grammar = Grammar(node, {})
    constraint, oracle = compile_grammar(grammar, vocabulary), compile_grammar(grammar, Vocabulary.bytes())
    for text in texts:
        compare_token_masks(constraint, oracle, text.encode(), vocabulary)


# ---- work -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [MOST_ROWS, MOST_ROWS + 1])
def test_a_mask_is_made_of_a_bounded_number_of_rows(count: int) -> None:
    """Distinct ones: a leaf that occurs several times counts once."""
    leaves = [Chars(to_dfa(f"[a-z]{{{number + 1}}}")) for number in range(count)]
    options = [Sequence((leaf, Literal(b"%d" % place))) for leaf in leaves for place in range(2)]
    matcher = compile_grammar(Grammar(Choice(tuple(options)), {}), Vocabulary.bytes()).matcher()
    if count <= MOST_ROWS:
        assert set(matcher.next_bytes()) == set(range(97, 123))
        assert (matcher.mask() == compile_grammar(Grammar(WORD_OF_ONE, {}), Vocabulary.bytes()).matcher().mask()).all()
    else:
        with pytest.raises(LimitError):
            matcher.mask()


WORD_OF_ONE = Chars(to_dfa("[a-z]+x"))


def test_only_texts_without_a_row_are_walked() -> None:
    """Beside a leaf with a row, the walk visits the nodes along the other texts."""
    vocabulary = vocabulary_of(["abcdef", "bcdefg", "zyxwvu"])
    node = Choice((Sequence((WORD, Literal(b"!"))), Literal(b"0123456")))
    matcher = compile_grammar(Grammar(node, {}), vocabulary).matcher()
    matcher.mask()  # makes what is lacking, and begins anew then
    head, sets = matcher._state_cache.arrays[at.HEAD], matcher._state_cache.arrays[at.SETS]
    sets[matcher._position[1] * at.SET_W + at.SET_MASK] = -1
    before = int(head[at.VISITED])
    matcher.fork().mask()
    assert 0 < int(head[at.VISITED]) - before <= 12
