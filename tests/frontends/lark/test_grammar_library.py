"""The library of grammars: each is read by Lark without conflicts, accepts its examples, and agrees with a reference.

The judge is whatever knows the language independently: `json`, `ast`, `sqlite3`, ... It reads the texts that the
grammar must accept, and sentences drawn at random from the grammar's rules.
"""

from __future__ import annotations

import ast
import csv
import email.headerregistry
import io
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit
from xml.parsers import expat

import pytest
from lark.exceptions import LarkError

import constrain
from constrain import Vocabulary, grammars
from constrain.base.errors import ConstrainError
from constrain.grammars import Ready
from tests.sentence_factory import Maker, Spell, build_parser, spelling
from tests.text_acceptance import accepts_text

BYTES = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_ids=[256])
REFUSALS = (LarkError, AssertionError, IndexError)
"""Lark's own errors, and the two ways in which its Indenter refuses."""


@pytest.mark.parametrize("name", grammars.names())
def test_examples(name: str) -> None:
    ready = grammars.read(name)
    lark, _ = build_parser(ready)
    assert len(ready.accepts) >= 3 and len(ready.rejects) >= 3
    for text in ready.accepts:
        lark.parse(text)
    for text in ready.rejects:
        try:
            lark.parse(text)
        except REFUSALS:
            continue
        pytest.fail(f"{name} accepts {text!r}")


@pytest.mark.parametrize("name", grammars.names())
def test_no_conflicts_and_nothing_unproductive(name: str) -> None:
    ready = grammars.read(name)
    _, messages = build_parser(ready)
    assert not [message for message in messages if "onflict" in message]
    assert not Maker(ready).unproductive()


def test_conflicts_are_seen() -> None:
    _, messages = build_parser(Ready("x", 'start: s\ns: "i" s | "i" s "e" s | "x"', "contextual", False, (), ()))
    assert [message for message in messages if "onflict" in message]


@pytest.mark.parametrize("name", grammars.names())
def test_our_automaton_agrees_with_the_examples(name: str) -> None:
    ready = grammars.read(name)
    constraint = constrain.compile(BYTES, grammar=name)
    assert [text for text in ready.accepts if not accepts_text(constraint, text)] == []
    assert [text for text in ready.rejects if accepts_text(constraint, text)] == []


@pytest.mark.parametrize("name", grammars.names())
def test_sentences_can_be_drawn(name: str) -> None:
    assert Maker(grammars.read(name)).draw(random.Random(0), 20)


# ---- Judges: each raises, if the text is none of its language


def jsonl(text: str) -> None:
    for line in text.rstrip(" \t").removesuffix("\n").split("\n"):
        json.loads(line)


def read_csv(text: str) -> None:
    list(csv.reader(io.StringIO(text, newline=""), strict=True))


def toml(text: str) -> None:
    tomllib = pytest.importorskip("tomllib")  # since Python 3.11
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if not re.search(r"Cannot (overwrite|declare|mutate|redefine)|Duplicate|already", str(error)):
            raise


def xml(text: str) -> None:
    expat.ParserCreate().Parse(text.encode("utf-8"), True)


def python(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            if "illegal target for annotation" not in str(error):  # as the head of the grammar says
                raise


SEMANTIC = re.compile(
    "no such (column|table|function)|number of bindings|same number of (terms|result columns)|has [0-9]+ columns|"
    "values for [0-9]+ columns|sub-select returns|duplicate WITH table|ambiguous column|misuse of|circular reference"
)
"""What SQLite says of names, numbers of columns and the places of aggregates: no affair of a grammar."""


def read_yaml(text: str) -> None:
    pytest.importorskip("yaml").safe_load(text)


def html(text: str) -> None:
    html5lib = pytest.importorskip("html5lib")
    reader = html5lib.HTMLParser()
    reader.parse(text)
    assert {code for _, code, _ in reader.errors} <= {"duplicate-attribute"}, reader.errors


def sql(text: str) -> None:
    base = sqlite3.connect(":memory:")
    for table in "abcd":
        base.execute(f"create table {table} (a, b, c, d)")
    try:
        base.execute(f"explain {text}")
    except sqlite3.Error as error:
        if "syntax error" in str(error) or not SEMANTIC.search(str(error)):
            raise


def regex(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        re.compile(text)


def iso8601(text: str) -> None:
    if (
        sys.version_info >= (3, 11)
        and re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", text)
        and text[:4] != "0000"
    ):
        datetime.fromisoformat(text)


def url(text: str) -> None:
    parts = urlsplit(text)
    assert parts.scheme and (parts.port is None or parts.port < 65536)


def mail(text: str) -> None:
    email.headerregistry.Address(addr_spec=text)


JUDGES: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "jsonl": jsonl,
    "csv": read_csv,
    "html": html,
    "toml": toml,
    "sql": sql,
    "regex": regex,
    "iso8601": iso8601,
    "url": url,
    "yaml": read_yaml,
    "email": mail,
}
SPELL: dict[str, dict[str, Spell]] = {"sql": {"NAME": spelling("a", "b", "c", "d")}}


@pytest.mark.parametrize("name", JUDGES)
def test_the_reference_parser_accepts_generated_texts(name: str) -> None:
    ready = grammars.read(name)
    for text in (*ready.accepts, *Maker(ready, SPELL.get(name, {})).draw(random.Random(5), 60)):
        JUDGES[name](text)


def test_expat_accepts_generated_xml() -> None:
    ready = grammars.read("xml")
    for text in ready.accepts:
        xml(text)
    # One name for all tags, and attributes that differ: what no grammar without given names can say.
    for text in Maker(ready, {"NAME": spelling("n"), "DOCTYPE": spelling("<!DOCTYPE n>")}).draw(random.Random(3), 60):
        parts = re.split(r"(?<=[ \t\r\n])n(?=[ \t\r\n]*=)", text)
        xml("".join(f"{part}a{place}" for place, part in enumerate(parts))[: -len(f"a{len(parts) - 1}")])


MEANING_OF_C = re.compile(
    "error: (?!expected).*(conflicting type|undeclared|redeclar|redefinition|wrong kind of tag|used but not defined|"
    "declared void|array of voids|void value|invalid use of (void|undefined)|invalid operands|cannot convert|"
    "invalid type argument|not a structure|neither array|incomplete( element)? type|storage size|size missing|"
    "non-integer type|has invalid type|not an integer|is negative|exceeds its type|flexible array member|invalid init|"
    "array init|field name not in|incompatible types|not within)"
)
"""What gcc says of types, of values, and of what is declared: no affair of a grammar."""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc judges C")
def test_gcc_accepts_generated_c(tmp_path: Path) -> None:
    ready = grammars.read("c")
    known = {"INCLUDE": spelling("#include <stddef.h>\n"), "TYPE": spelling("a_t", "b_t")}
    drawn = Maker(ready, known, depth=16).draw(random.Random(5), 60, tries=100)
    # Words that were drawn side by side may be one name: a type that nobody declares, which gcc cannot read on from.
    drawn = [text for text in drawn if set(re.findall(r"[a-zA-Z]\w*_t\b", text)) <= {"a_t", "b_t"}]
    assert len(drawn) > 40
    (tmp_path / "list.h").write_text("")
    for number, text in enumerate((*ready.accepts, *drawn)):
        (tmp_path / f"{number}.c").write_text(f"#include <stddef.h>\ntypedef int a_t, b_t;\n{text}", newline="")
    command = ["gcc", "-std=gnu99", "-fsyntax-only", "-w", "-fno-diagnostics-show-caret", "-fmax-errors=0"]
    environment = os.environ | {"LC_ALL": "C"}
    files = sorted(file.name for file in tmp_path.glob("*.c"))
    found = subprocess.run(
        [*command, *files], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    errors = [line for line in found.stderr.splitlines() if "error: " in line and not MEANING_OF_C.search(line)]
    assert errors == []


READ_SCRIPTS = """
const vm = require("vm"), texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const said = text => { try { new vm.Script(text); return ""; } catch (error) { return error.message; } };
console.log(JSON.stringify(texts.map(said)));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node judges JavaScript")
@pytest.mark.parametrize("before", ["", '"use strict";\n'])
def test_node_accepts_generated_javascript(before: str) -> None:
    ready = grammars.read("javascript")
    drawn = Maker(ready, depth=16).draw(random.Random(5), 60)
    texts = json.dumps([before + text for text in (*ready.accepts, *drawn)])
    answer = subprocess.run(["node", "-e", READ_SCRIPTS], input=texts, capture_output=True, text=True, check=True)
    faults = [fault for fault in json.loads(answer.stdout) if fault]
    names = re.compile("has already been declared|Duplicate parameter name")  # as the head of the grammar says
    assert [fault for fault in faults if not names.search(fault)] == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the grammar is that of Python 3.12")
def test_ast_accepts_generated_python() -> None:
    ready = grammars.read("python")
    for text in (*ready.accepts, *Maker(ready, depth=14).draw(random.Random(3), 60, tries=400)):
        python(text)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConstrainError, match="json"):
        grammars.text("cobol")
