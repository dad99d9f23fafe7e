"""Gaps of any text: by the lattice, by the product grammar, and both against brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

import jsonschema
import lark
import numpy as np
import pytest

import constrain
from constrain.base.errors import ArgumentError, LimitError, UnsupportedError
from constrain.infilling import Gap, infill_check, infill_form
from constrain.infilling.gaps import read_spans
from constrain.infilling.text_intersection import find_text
from constrain.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary.bytes()
BALANCED = r"""
root ::= "(" root ")" root | ""
"""


def is_balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += 1 if char == "(" else -1
        if depth < 0:
            return False
    return depth == 0 and set(text) <= set("()")


def spans_of(pattern: str) -> list[object]:
    """`*` is a gap of any text, other characters are known."""
    return [Gap() if char == "*" else char for char in pattern]


def fits(pattern: str, text: str) -> bool:
    """Whether `*` can be replaced so that the pattern becomes the text."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(fits(pattern[1:], text[k:]) for k in range(len(text) + 1))
    return bool(text) and text[0] == pattern[0] and fits(pattern[1:], text[1:])


def test_gaps_in_nested_brackets_are_decided_by_the_product_grammar() -> None:
    """Over all patterns of at most four parts. A pattern with k brackets has a completion of at most 2 k, if any."""
    constraint = constrain.compile(BYTES, grammar=constrain.gbnf(BALANCED))
    texts = ["".join(one) for n in range(0, 9, 2) for one in product("()", repeat=n) if is_balanced("".join(one))]
    for n in range(5):
        for parts in product("()*", repeat=n):
            pattern = "".join(parts).replace("**", "*")
            expected = any(fits(pattern, text) for text in texts)
            answer = infill_check(spans_of(pattern), constraint)
            direct = find_text(read_spans(spans_of(pattern), BYTES), constraint)
            assert answer.is_exact and answer.is_possible == expected == (direct is not None), pattern
            for witness in (answer.witness, direct) if expected else ():
                assert witness is not None and is_balanced(witness.decode()) and fits(pattern, witness.decode())


def test_gaps_that_no_lattice_decides() -> None:
    """The states inside a gap are infinitely many here, and no completion exists."""
    constraint = constrain.compile(BYTES, grammar=constrain.gbnf(BALANCED))
    assert infill_check([Gap(), ")", Gap(form=constrain.regex(r"\)*"))], constraint)
    assert not infill_check(["(", Gap(), "x", Gap()], constraint)
    assert not infill_check([Gap(form=constrain.regex(r"\(+"))], constraint)
    assert infill_check([Gap(form=constrain.regex(r"\(+")), Gap(4)], constraint)


def test_json_schema_with_text_gaps() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 70}, "b": {"enum": ["x", "yy"]}},
        "required": ["a"], "additionalProperties": False,
    }  # fmt: skip
    constraint = constrain.compile(BYTES, schema=schema, style=constrain.Style(whitespace="compact"))
    for spans, expected in (
        (['{"a":', Gap(), '"yy"', Gap()], True),
        (['{"a":', Gap(high=1), '"yy"', Gap()], False),
        (['{"a":7', Gap(1, 1), Gap()], True),
        (['{"a":7', Gap(1, 1), "}"], True),  # 70
        (['{"a":8', Gap(1, 1), "}"], False),
        (['{"b"', Gap()], False),
        ([Gap(), '"c"', Gap()], False),
        ([Gap(3, 3), '"', Gap(form=constrain.regex(":[0-9]")), "}"], True),
    ):
        answer = infill_check(spans, constraint)  # type: ignore[arg-type]
        assert answer.is_possible == expected and answer.is_exact, spans
        if answer.witness is not None:
            jsonschema.validate(json.loads(answer.witness), schema)


def enumerate_texts(alphabet: str, most: int, accepts: Callable[[str], bool]) -> list[str]:
    return [text for n in range(most + 1) for one in product(alphabet, repeat=n) if accepts(text := "".join(one))]


def unique(text: str) -> bool:
    try:
        items = json.loads(text)
    except ValueError:
        return False
    return isinstance(items, list) and set(map(type, items)) <= {int} and len(set(items)) == len(items) <= 3


GRAMMAR = 'start: A B | AB\nA: "a"\nB: "b"\nAB: "ab"\n%ignore " "'


def is_parsed(text: str) -> bool:
    try:
        lark.Lark(GRAMMAR, parser="lalr").parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


CASES = {
    "unique items and counts": (
        {"schema": {"type": "array", "items": {"enum": [1, 2, 11, 12]}, "uniqueItems": True, "maxItems": 3},
         "style": constrain.Style(whitespace="compact")},
        "12[],", 8, lambda text: unique(text) and set(json.loads(text)) <= {1, 2, 11, 12} and " " not in text,
    ),
    "a Lark grammar with a lexer": (
        {"grammar": constrain.lark(GRAMMAR)},
        "ab ", 5, is_parsed,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_other_constraints_agree_with_brute_force(name: str) -> None:
    """Patterns of known characters and unknown single bytes: decision and masks are those of all texts."""
    source, alphabet, most, accepts = CASES[name]
    constraint = constrain.compile(BYTES, **source)  # type: ignore[arg-type]
    texts = enumerate_texts(alphabet, most, accepts)
    rng = np.random.default_rng(5)
    some = [texts[int(k)] for k in rng.integers(0, len(texts), 60)]
    for text in [*some, *["".join(rng.choice(list(alphabet), 5)) for _ in range(20)]]:
        known = [char if rng.random() < 0.5 else None for char in text]
        same = [one for one in texts if len(one) == len(text) and all(k in (None, c) for k, c in zip(known, one))]
        hole = Gap(1, 1, "tokens", end_tokens="refused")
        answer = infill_check([hole if one is None else one for one in known], constraint)
        assert answer.is_possible == bool(same) and answer.is_exact
        holes = [index for index, char in enumerate(known) if char is None]
        for index, mask in zip(holes, answer.masks):
            bits = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert {chr(one) for one in bits.tolist()} == {one[index] for one in same}


def test_text_gaps_beside_token_gaps() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"(", b")", None], (5,))
    constraint = constrain.compile(vocabulary, regex=r"\((ab|ba)*\)b?")
    answer = infill_check(["(", Gap(2, 2), Gap.tokens(1), ")", Gap.tokens(1)], constraint)
    assert answer.witness is not None and answer.witness.startswith(b"(") and answer.masks.tolist() == [[4], [2 + 32]]
    assert not infill_check(["(", Gap(2, 2), Gap.tokens(1), Gap.tokens(1), ")", Gap(1)], constraint).masks[1][0] & 8


def test_forms_of_spans() -> None:
    form = infill_form(["a", Gap(2, 3), "c"], constrain.regex("[a-c]*"))
    matcher = form.compile(BYTES).matcher()
    matcher.advance_bytes(b"abb")
    assert matcher.next_bytes() == set(b"abc")
    matcher.advance_bytes(b"bc")
    assert matcher.is_finished
    with pytest.raises(UnsupportedError, match="number of tokens"):
        infill_form([Gap.tokens(2)])
    with pytest.raises(ArgumentError, match="number of its positions"):
        Gap(unit="tokens")
    with pytest.raises(ArgumentError, match="counts ascend"):
        Gap(3, 2)


def test_too_many_states_are_refused_by_name() -> None:
    constraint = constrain.compile(BYTES, schema={})
    with pytest.raises(LimitError, match="most_states = 50"):
        infill_check([Gap.tokens(8), "]"], constraint, most_states=50)
    answer = infill_check([Gap.tokens(8), "]"], constraint, most_states=50, beyond="narrow")
    assert answer.is_possible and not answer.is_exact
    json.loads(answer.witness or b"")
    with pytest.raises(ArgumentError, match="the vocabulary has 257"):
        infill_check([300], constraint)
    with pytest.raises(TypeError, match=r"a span is 1\.5"):
        infill_check([1.5], constraint)  # type: ignore[list-item]


def test_known_text_may_split_characters() -> None:
    constraint = constrain.compile(BYTES, regex="(é|è)+x")
    assert infill_check([b"\xc3", Gap(), b"\xa9x"], constraint).is_possible
    assert list(infill_check([b"\xc3", None, b"x"], constraint).masks.nonzero()[1]) == [0xA8 // 32]
    assert not infill_check([b"\xc3", Gap(form="x"), b"x"], constraint)


def test_a_full_state_cache_is_an_error_of_its_own() -> None:
    limits = constrain.Limits(state_cache_bytes=8 << 20)
    constraint = constrain.compile(BYTES, schema={"type": "object"}, limits=limits)
    with pytest.raises(LimitError):
        infill_check([Gap.tokens(30)], constraint, most_states=1_000_000)
    assert infill_check(['{"a":', Gap.tokens(1), "}"], constraint).is_possible


def test_known_tokens_beside_text_gaps() -> None:
    constraint = constrain.compile(BYTES, grammar=constrain.gbnf(BALANCED))
    assert infill_check([[40, 40], Gap(), 41], constraint).is_possible
    assert not infill_check([[40, 40], Gap(form=constrain.regex(r"\(*")), [41]], constraint).is_possible
