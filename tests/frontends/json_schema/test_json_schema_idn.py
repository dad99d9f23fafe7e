"""The format `idn-hostname`: tables, the package `idna` as the reference for labels, and the engine."""

from __future__ import annotations

import json
from functools import cache

import idna
import pytest
from hypothesis import example, given, settings, strategies as st

import constrain
from constrain import Style, Vocabulary
from constrain.base.errors import UnsupportedError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.strings.idn_hostname import build_labels, is_idn
from tests.text_acceptance import accepts_text

VALID = [
    "a", "example.com", "Example.COM", "bücher.example", "bücher。example", "例え.テスト", "실례.테스트", "שלום.א1",
    "l·l", "α͵β", "א׳ב", "・ぁ", "क्‍ष", "क्‌ष", "بي‌بي", "ab.שלום", "a" * 63 + ".com", "ü" * 59,
    ".".join(["a" * 63] * 3 + ["a" * 61]), "۰0",
]  # fmt: skip

INVALID = [
    "", ".", "a.", ".a", "a..b", "-a", "a-", "ü-", "-ü", "üü--a", "a b", "ü_", "Ü", "\u0300a", "a\u00b7l", "l\u00b7",
    "α͵S", "α͵", "A׳ב", "׳ב", "def・abc", "・", "ب٠۰", "क‍ष", "‍ष", "क्‌xx‌y", "0a.א", "0ا", "aא", "א0٠",
    "1.שלום", "a" * 64, "ü" * 60, ".".join(["a" * 63] * 3 + ["a" * 62]), "example\uff0e", "a/ü", "☃", "〱",
]  # fmt: skip


@pytest.mark.parametrize(("texts", "wanted"), [(VALID, True), (INVALID, False)])
def test_tables(texts: list[str], wanted: bool) -> None:
    assert [text for text in texts if is_idn(text) != wanted] == []


LETTERS = "abl0-üßςα͵א׳ב٠۰ब्‍‌ぁ・漢·ـ\u0300ي"


@settings(max_examples=400)
@given(st.text(st.sampled_from(LETTERS), min_size=1, max_size=6))
@example("بي\u200cبي")
def test_labels_agree_with_the_idna_package(label: str) -> None:
    try:
        idna.encode(label)
    except idna.IDNAError as error:
        if "Normalization" not in str(error):  # Which is not judged here.
            assert not is_idn(label), error
    else:
        assert is_idn(label)


def test_counted_labels_have_no_dead_ends() -> None:
    assert all(kind.extensible() for kind in build_labels())


@cache
def compiled() -> constrain.Constraint:
    return constrain.compile(Vocabulary.bytes(), schema={"type": "string", "format": "idn-hostname"}, style=Style.any())


def accepts_value(text: str) -> bool:
    return accepts_text(compiled(), json.dumps(text))


def test_the_engine_on_the_tables() -> None:
    assert all(map(accepts_value, VALID)) and not any(map(accepts_value, INVALID))


@settings(max_examples=60)
@given(st.lists(st.text(st.sampled_from(LETTERS), min_size=1, max_size=3), min_size=1, max_size=3).map(".".join))
def test_the_engine_takes_what_is_one(name: str) -> None:
    assert accepts_value(name) == is_idn(name)


def test_beside_other_keywords() -> None:
    listed = to_grammar({"format": "idn-hostname", "enum": ["ü", "-ü"]}, style=Style.any())
    assert listed
    for schema in ({"not": {"format": "idn-hostname"}}, {"format": "idn-hostname", "maxLength": 9}):
        with pytest.raises(UnsupportedError, match="its labels are counted"):
            to_grammar(schema, style=Style.any())
