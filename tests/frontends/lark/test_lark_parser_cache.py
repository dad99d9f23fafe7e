"""A parser from disk is the parser that was written, and is not taken once anything that it was made of has changed."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain.frontends.lark import Indentation, to_parser
from constrain.frontends.lark.lark_loader import load_grammar
from constrain.frontends.lark.parser_cache import MOST_FILES, CachedParser
from constrain.lalr.parser_code import Parser

GRAMMAR = """
%import .words (word, WORD)
%declare _INDENT _DEDENT
start: (word _NEWLINE | "(" word ")" block)+
block: _NEWLINE _INDENT start _DEDENT
_NEWLINE: /\\n[ ]*/
%ignore " "
"""
WORDS = 'WORD: "a".."z"+\nword: WORD "if" | "if" "é"\n'


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return bool(one == other)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "words.lark").write_text(WORDS, "utf-8")
    return tmp_path


def kept(place: Path, text: str = GRAMMAR) -> CachedParser:
    return CachedParser(place / "kept", [text, str(place), "start"], [str(place)])


def write(place: Path) -> Parser:
    parser = to_parser(
        GRAMMAR, import_paths=(str(place),), indentation=Indentation(opening=("LPAR",), closing=("RPAR",))
    )
    kept(place).store(parser, load_grammar(GRAMMAR, import_paths=[str(place)]).imports)
    return parser


def test_stored_parsers_are_fetched(place: Path) -> None:
    assert kept(place).fetch() is None
    parser = write(place)
    found = kept(place).fetch()
    assert found is not None
    assert same(found, parser)
    assert found.layout == parser.layout
    assert found.layout is not None
    assert kept(place, GRAMMAR + "\n").fetch() is None
    assert CachedParser(place / "kept", [GRAMMAR, str(place), "start"], ["elsewhere"]).fetch() is None


def test_a_changed_import_is_noticed(place: Path) -> None:
    write(place)
    (place / "words.lark").write_text(WORDS + "// another\n", "utf-8")
    assert kept(place).fetch() is None
    (place / "words.lark").unlink()
    assert kept(place).fetch() is None
    (place / "words.lark").write_text(WORDS, "utf-8")
    assert kept(place).fetch() is not None


def test_a_damaged_file_is_rebuilt(place: Path) -> None:
    write(place)
    path = kept(place).path
    whole = path.read_bytes()
    for damaged in (b"", whole[:50], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"{}\n", b"[]\n" + whole):
        path.write_bytes(damaged)
        assert kept(place).fetch() is None
    write(place)
    assert path.read_bytes() == whole


def test_the_cache_is_pruned_and_may_be_read_only(place: Path) -> None:
    parser = write(place)
    for number in range(MOST_FILES + 3):
        kept(place, str(number)).store(parser, [])
    assert len(list((place / "kept").glob("*"))) == MOST_FILES
    (place / "file").write_text("")
    CachedParser(place / "file", ["x"], []).store(parser, [])
