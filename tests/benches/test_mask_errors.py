"""The count of wrong masks, with engines that err in a known way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("jsonschema")

import constrain
from bench.corpus import ENDS, RANKS, SIZE, Case, Instance
from bench.engines import Refused
from bench.mask_errors import summary
from bench.mask_errors.cutting import Cutter
from bench.mask_errors.judge import Judge, translate_pattern
from bench.mask_errors.ordering import Order
from bench.mask_errors.spelling import respell_number, spell_canonically, spell_freely
from bench.mask_errors.values import DuplicateKey, Number, build_number, parse_exactly, parse_fraction
from bench.mask_errors.variants import Variants
from bench.mask_errors.walks import Findings, Plan, Walker
from bench.workers import Failure

TOKENS = [bytes((byte,)) for byte in range(256)] + [b'":', b'","', b"\xc3\xa9", b"\\u00", b"12", b'{"a', b"}}", b"ab"]
VOCABULARY = SimpleNamespace(tokens=TOKENS, encode=lambda text: list(text.encode()))

DEFAULT = constrain.compile(constrain.Vocabulary.from_tokens([*TOKENS, b"<end>"], [len(TOKENS)]), schema={})

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(-1e30, 1e30),
              st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


class Real:
    """constrain over those tokens, in `Style.any()`, numbered as Llama 3's ends are. spoil: changes every mask."""

    package = "constrain"

    def __init__(self, spoil: Callable[[np.ndarray[Any, Any], bytes], None] | None = None) -> None:
        padded: list[bytes | None] = [*TOKENS, *([None] * (SIZE - len(TOKENS)))]
        self.vocabulary = constrain.Vocabulary.from_tokens(padded, ENDS)
        self.words = np.zeros(SIZE // 32, np.int32)
        self.spoil = spoil

    def compile(self, text: str) -> None:
        if "refused" in text:
            raise Refused("no such keyword")
        self.constraint = constrain.compile(self.vocabulary, schema=text, style=constrain.Style.any())

    def start(self) -> None:
        self.matcher = self.constraint.matcher()

    def mask(self) -> None:
        self.matcher.mask(self.words)
        if self.spoil is not None:
            self.spoil(self.words, b"".join(TOKENS[token] for token in self.matcher.tokens))

    def advance(self, token: int) -> None:
        self.matcher.advance(token)

    def why_rejected(self, text: str, tokens: list[int]) -> str:
        return "other"


SCHEMA = json.dumps({
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer", "minimum": 0, "maximum": 50}},
    "required": ["a"],
})  # fmt: skip
CASE = Case("one", SCHEMA, (Instance('{"a": "x", "b": 12}', True), Instance('{"b": 1}', False)))


def findings(engine: Any, case: Case = CASE, masks: int = 600) -> Findings:
    """One schema by a walker."""
    walker = Walker("toy", engine, VOCABULARY)  # type: ignore[arg-type]
    return walker((case, Plan(masks, seconds=60, compiling=60, seed=1)))


def test_an_exact_engine_has_no_wrong_mask() -> None:
    found = findings(Real(), masks=1_500)
    wrong = {kind: found.counts[kind] for kind in summary.KINDS if found.counts[kind] and kind != "lone surrogate"}
    assert not wrong, found.kept
    assert found.counts["masks"] >= 1_500 and found.counts["texts"] > 5 and found.counts["finished"] > 5


def flip(token: int, where: Callable[[bytes], bool], to: int) -> Callable[[np.ndarray[Any, Any], bytes], None]:
    """Sets or clears a token's bit after some texts."""

    def spoil(words: np.ndarray[Any, Any], written: bytes) -> None:
        if where(written):
            bits = words.view(np.uint32)
            bit = np.uint32(1 << (token & 31))
            bits[token >> 5] = bits[token >> 5] | bit if to else bits[token >> 5] & ~bit

    return spoil


MULTI = TOKENS.index(b'{"a')


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("over", flip(MULTI, lambda written: not written, 0)),
        ("over", flip(ord("2"), lambda written: written.endswith(b"1"), 0)),
        ("under", flip(ENDS[0], lambda written: written.endswith(b'"b'), 1)),
        ("special token", flip(RANKS + 100, lambda written: written.endswith(b'"'), 1)),
        ("stuck", lambda words, written: words.fill(0) if written.endswith(b":") else None),
    ],
)
def test_each_fault_is_found(kind: str, spoil: Callable[[np.ndarray[Any, Any], bytes], None]) -> None:
    found = findings(Real(spoil))
    assert found.counts[kind] > 0
    one = next(finding for finding in found.kept if finding.kind == kind)
    assert one.rest


def test_refusals_and_crashes_are_not_errors_of_masks() -> None:
    assert findings(Real(), Case("no", '{"title": "refused"}', ())).refused == ("no such keyword", "no such keyword")

    def burst(words: np.ndarray[Any, Any], written: bytes) -> None:
        raise ZeroDivisionError(written)

    found = findings(Real(burst))
    assert found.counts["crash"] == 1 and "ZeroDivisionError" in found.kept[-1].rest


@given(st.text(max_size=40), st.randoms(use_true_random=False))
def test_random_tokenisations_spell_the_text(text: str, rng: random.Random) -> None:
    cutter, data = Cutter(TOKENS), text.encode("utf-8", "replace")
    ways = [cutter.list_tokens(data, place) for place in range(len(data))]
    assert b"".join(TOKENS[token] for token in cutter.draw_path(data, ways, rng)) == data
    for place, way in enumerate(ways):
        assert {token for token, _ in way} == {n for n, token in enumerate(TOKENS) if data[place:].startswith(token)}


@given(json_values, st.randoms(use_true_random=False))
def test_every_spelling_is_of_the_same_value(value: Any, rng: random.Random) -> None:
    made = parse_exactly(json.dumps(value))
    for text in (spell_freely(made, rng), spell_canonically(made, rng)):
        if text is not None:
            assert exactly(parse_exactly(text)) == exactly(made)


def exactly(value: Any) -> Any:
    """A value whose numbers are Fractions."""
    if isinstance(value, list):
        return [exactly(item) for item in value]
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    return (value.value, "number") if isinstance(value, Number) else value


@given(json_values, st.randoms(use_true_random=False))
def test_the_default_style_has_every_canonical_spelling(value: Any, rng: random.Random) -> None:
    text = spell_canonically(parse_exactly(json.dumps(value)), rng)
    matcher = DEFAULT.matcher()
    matcher.advance_bytes((text or "null").encode())
    assert matcher.is_complete


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5), st.randoms(use_true_random=False))
def test_respelled_numbers_are_equal(value: Any, rng: random.Random) -> None:
    number = build_number(Fraction(value))
    assert respell_number(number, rng).value == number.value == Fraction(value)
    json.loads(respell_number(number, rng).text)


def test_large_exponents_are_reduced_and_stay_distinct() -> None:
    assert parse_fraction("1e99999999") > 10**19_999
    assert 0 < parse_fraction("1e-99999999") < Fraction(1, 10**19_999)
    assert parse_fraction("1e99999998") != parse_fraction("1e99999999")
    assert parse_fraction("-2.50E+0002") == -250


def test_validity_checkers() -> None:
    cents = Judge('{"multipleOf": 0.01}')
    assert cents("4.35") == (False, True, "multipleOf, at $, by multipleOf") and cents("4.35").differ
    assert cents("4.355").invalid and cents("7").valid
    digits = Judge('{"pattern": "^\\\\d+$"}')
    assert digits('"12"').valid and digits('"1\u0661"').differ and digits('"1\\n"').differ and digits('"x"').invalid
    assert Judge('{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}')("1.0").invalid
    assert Judge('{"type": "integer"}')("1.0").valid and Judge('{"type": "integer"}')("1e2").valid
    assert Judge('{"format": "date"}')('"2021-02-30"').invalid
    assert Judge('{"format": "email"}')('"a@b.c"').valid and Judge('{"format": "email"}')('"é@b.c"').differ
    assert Judge("{}")("01").invalid and Judge("{}")("NaN").invalid and Judge("{}")('"\\ud800"').valid
    assert Judge('{"$ref": "http://nowhere.invalid/x"}')("1").plain is None


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        ("^a.b$", ["a b", "a\x85b"], ["a\nb", "axb\n", "a\u2028b"]),
        (r"^\d\w\s[\s\d]$", ["1a 1", "1_\ufeff\u00a0"], ["١a 1", "1é 1"]),
        (r"[$.]\/", ["$/", "./"], ["a/"]),
        (r"^[[\]]$", ["[", "]"], ["[]"]),
    ],
)
def test_translated_patterns_match_as_in_ecma_262(pattern: str, texts: list[str], others: list[str]) -> None:
    import re

    assert all(re.search(translate_pattern(pattern), text) for text in texts)
    assert not any(re.search(translate_pattern(pattern), text) for text in others)


def test_variants_are_valid_and_various() -> None:
    judge = Judge(SCHEMA)
    source = Variants(SCHEMA, [CASE.tests[0].text], judge, random.Random(1))
    texts = {text for _ in range(80) if (text := source.draw(narrow=False)) is not None}
    assert len(texts) > 30 and all(judge(text).valid for text in texts)
    values = [parse_exactly(text) for text in texts]
    assert any("b" not in value for value in values) and any(set(value) - {"a", "b"} for value in values)
    assert any(text.find('"b"') < text.find('"a"') for text in texts if '"b"' in text)
    assert Variants(SCHEMA, [], judge, random.Random(1)).draw(narrow=True) is None


def test_order_follows_the_schema() -> None:
    schema = {
        "$defs": {"inner": {"properties": {"y": True, "x": True}}},
        "properties": {"b": {"items": {"$ref": "#/$defs/inner"}}, "a": {"$ref": "#/$defs/inner"}},
        "allOf": [{"properties": {"c": True}}],
        "patternProperties": {"^p": {"$ref": "#/$defs/inner"}},
    }
    inner = {"x": None, "y": None}
    value = {"z": None, "p": inner, "c": None, "a": inner, "b": [inner]}
    ordered: Any = Order(schema)(value)  # type: ignore[arg-type]
    assert list(ordered) == ["b", "a", "c", "z", "p"]
    assert [list(ordered["b"][0]), list(ordered["a"]), list(ordered["p"])] == [["y", "x"]] * 3


def test_the_summary_counts_per_million() -> None:
    good, bad = findings(Real()), findings(Real(flip(ENDS[0], lambda written: True, 1)))
    (row,) = summary.summarise_findings(
        {"toy": [good, bad, Failure("timeout", "x"), Findings("r", ("kind", "reason"))]}
    )
    assert row["refused"] == 1 and row["failures"] == {"timeout": 1} and row["schemas"] == 4
    assert row["under per million"] == bad.counts["under"] / row["masks"] * 1e6 > 0
    assert summary.list_findings([CASE, CASE], [good, bad], "under")


def test_duplicate_keys_are_found() -> None:
    with pytest.raises(DuplicateKey):
        parse_exactly('{"a": 1, "\\u0061": 2}')
