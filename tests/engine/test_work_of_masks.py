"""The work of masks is counted, not timed: it may not become more, and where it becomes less that is recorded.

For each case, a constraint and a text, the counts are: for the compile and the first mask, units of `Limits.work`, leaf
states and rows; for a walk along the text, mask and advance token by token, closures, sets, and trie nodes visited, on
the first walk with a new state cache and on the second, when all is known. A number above `work_ratchet.json` fails,
and so does one below it, until the file is written anew with

    python -m tests.engine.test_work_of_masks

`python -m bench instructions` counts instructions, under valgrind.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain.base.options import Style
from constrain.base.work import UNLIMITED, work_budget
from constrain.cache.cache_folder import VARIABLE
from constrain.compilation.compile_caches import programs, recent
from constrain.compilation.constraint_compiler import compile
from constrain.engine.constraint import Constraint
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table_cache import find_mask_table
from constrain.vocabulary.vocabulary import Vocabulary

RATCHET = Path(__file__).parent.parent / "work_ratchet.json"
RENEW = "python -m tests.engine.test_work_of_masks"
COUNTED = {"closures": at.CLOSURES, "sets": at.N_SETS, "trie nodes": at.VISITED}
TABLE = {"leaf states": at.N_LEAVES, "rows": at.N_ROWS}
SIZE, LONGEST = 2_000, 8
PROSE = "The quick brown fox jumps over the lazy dog, and nobody knows why; it likes to. Ärger? Nein: 東京 \U0001f600"
PERSON = {"name": "Ada Lovelace", "born": "1815-12-10", "height": 165, "tags": ["en", "fr"], "address": {"city": "Ely"}}

Counts = dict[str, dict[str, int]]
"""Of a case: {"first mask": {"units of work": 12, ...}, "first walk": ..., "second walk": ...}."""


@lru_cache(maxsize=1)
def tokens() -> tuple[bytes, ...]:
    """Return the 256 bytes, and the pieces of some JSON that save most, as merges of a tokenizer would."""
    words = ["name", "value", "items", "number", "list", "true", "false", "null", "city", "date", "tags", "height"]
    values = [{word: [number, number / 4, word * 2, None, other == word]} for number, word in enumerate(words)
              for other in words[:3]]  # fmt: skip
    lines = [PROSE, *(json.dumps(value, indent=number % 3 or None) for number, value in enumerate(values))]
    text = "".join(lines).encode()
    pieces = Counter(text[i : i + n] for n in range(2, LONGEST + 1) for i in range(len(text) - n + 1))
    found = sorted(pieces, key=lambda piece: (-pieces[piece] * (len(piece) - 1), piece))
    digits = [str(number).encode() for number in range(10, 1_000)]
    made = [bytes([value]) for value in range(256)] + digits
    return tuple(dict.fromkeys(made + found))[:SIZE]


def vocabulary() -> Vocabulary:
    """Return a new one each time, so that no case finds what another has prepared."""
    return Vocabulary.from_tokens([*tokens(), None], (SIZE,))


def cut(text: bytes) -> list[int]:
    """Return the longest token at each place."""
    ids = {token: number for number, token in enumerate(tokens())}
    out: list[int] = []
    while text:
        length = next(n for n in range(LONGEST, 0, -1) if text[:n] in ids)
        out.append(ids[text[:length]])
        text = text[length:]
    return out


def schema(value: Any, style: Style | None = None) -> Callable[[], Constraint]:
    return lambda: compile(vocabulary(), schema=value, style=style or Style.any())


def others(**options: Any) -> Callable[[], Constraint]:
    return lambda: compile(vocabulary(), **options)


WORDS = [f"{one}{two} {number}" for number in range(5) for one in ("ba", "ke", "lo", "mi") for two in ("na", "tu")]
OBJECT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "born": {"type": "string", "format": "date"},
        "height": {"type": "integer", "minimum": 0, "maximum": 300},
        "tags": {"type": "array", "items": {"enum": ["de", "en", "fr"]}, "maxItems": 5},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "required": ["name", "born"],
    "additionalProperties": False,
}
TREE = {"type": "object", "properties": {"v": {"type": "number"}, "kids": {"type": "array", "items": {"$ref": "#"}}}}
EITHER = {"anyOf": [{"properties": {"kind": {"const": kind}, kind: {"type": "integer"}}, "required": ["kind", kind],
                     "additionalProperties": False} for kind in ("circle", "square", "line")]}  # fmt: skip
EXPRESSION = """
start: sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER | NAME | "-" atom | "(" sum ")"
%import common.NUMBER
%import common.CNAME -> NAME
%import common.WS
%ignore WS
"""
CASES: dict[str, tuple[Callable[[], Constraint], Any]] = {
    "a free string": (schema({"type": "string"}), PROSE),
    "a string with a greatest length": (schema({"type": "string", "maxLength": 500}), PROSE),
    "numbers": (schema({"type": "array", "items": {"type": "number"}}), [n / 7 for n in range(12)]),
    "integers in bounds": (schema({"items": {"type": "integer", "minimum": -5, "maximum": 1234}}), [-5, 0, 77, 1234]),
    "multiples": (schema({"items": {"type": "number", "multipleOf": 0.997}}), [0, 997, 1.994, 99.7]),
    "an object, free key order": (schema(OBJECT), PERSON),
    "an object, keys in order": (schema(OBJECT, Style()), PERSON),
    "any JSON": (schema({}), PERSON),
    "a list of values": (schema({"type": "array", "items": {"enum": WORDS}}), WORDS[::3]),
    "a pattern": (schema({"items": {"pattern": "^[A-Z]{2}[0-9]{2}-[a-f0-9]{8}$"}}), ["DE07-00c0ffee", "AB12-deadbeef"]),
    "optional keys": (
        schema({"properties": {word: {"type": "boolean"} for word in WORDS}, "additionalProperties": False}),
        dict.fromkeys(WORDS[::-2], True),
    ),
    "a tree": (schema(TREE), {"v": 1, "kids": [{"kids": []}, {"v": 2.5, "kids": [{"v": 3, "kids": [{}]}]}]}),
    "one of several objects": (schema(EITHER), {"kind": "square", "square": 12}),
    "members that differ": (schema({"items": {"type": "string"}, "uniqueItems": True}), ["name", "names", "value", ""]),
    "a regular expression": (others(regex=r"(\d{1,3}\.){3}\d{1,3}( [a-z]+)*"), b"127.0.0.1 is home and nobody knows"),
    "a grammar": (others(grammar=EXPRESSION), b"(1 + value) * -name / (12.5 - number * (list - 3))"),
}  # fmt: skip


def count_work(make: Callable[[], Constraint], value: Any) -> Counts:
    """Return the counts of a case."""
    text = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    make()  # what a process does once, such as reading the patterns of built-in formats, is not counted
    with work_budget(UNLIMITED) as budget:
        constraint = make()
        constraint.matcher().mask()
        out: Counts = {"first mask": {"units of work": budget.spent}}
    table = find_mask_table(constraint.vocabulary)
    out["first mask"] |= {name: int(table.arrays[at.TABLE][place]) for name, place in TABLE.items()}
    constraint = make()  # with another vocabulary: the first walk finds nothing
    for walk in ("first walk", "second walk"):
        matcher = constraint.matcher()
        head = constraint.state_cache().arrays[at.HEAD]
        before = {name: 0 if walk == "first walk" else int(head[place]) for name, place in COUNTED.items()}
        for token in cut(text):
            mask = matcher.mask()
            assert np.int32(mask[token >> 5]) >> (token & 31) & 1, (text, matcher)
            matcher.advance(token)
        matcher.mask()
        assert matcher.is_complete
        head = constraint.state_cache().arrays[at.HEAD]
        out[walk] = {name: int(head[place]) - before[name] for name, place in COUNTED.items()}
    return out


def compare_counts(name: str, recorded: Mapping[str, Mapping[str, int]], found: Counts) -> tuple[list[str], list[str]]:
    """Return what grew, and what shrank, in words."""
    grew, shrank = [], []
    for walk, numbers in found.items():
        for what, number in numbers.items():
            before = recorded.get(walk, {}).get(what, 0)
            if number != before:
                line = f"{name}, {walk}: {before:,} -> {number:,} {what}"
                (grew if number > before else shrank).append(line)
    return grew, shrank


@pytest.fixture(autouse=True)
def _without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")


@pytest.mark.parametrize("name", CASES)
def test_masks_are_no_more_work(name: str) -> None:
    recorded = json.loads(RATCHET.read_text("utf-8")).get(name, {})
    grew, shrank = compare_counts(name, recorded, count_work(*CASES[name]))
    assert not grew, "\n".join(["More work than recorded (if that is intended: " + RENEW + "):", *grew, *shrank])
    assert not shrank, "\n".join(["Less work than recorded; record it with " + RENEW + ":", *shrank])


def test_the_ratchet_has_these_cases_alone() -> None:
    assert list(json.loads(RATCHET.read_text("utf-8"))) == list(CASES)


def test_counts_depend_on_the_case_alone() -> None:
    name = "an object, free key order"
    assert count_work(*CASES[name]) == count_work(*CASES[name])


def test_increased_and_decreased_counts_are_reported() -> None:
    recorded = {"first walk": {"closures": 10, "sets": 20}}
    found = {"first walk": {"closures": 11, "sets": 20}, "second walk": {"closures": 0}}
    assert compare_counts("a", recorded, found) == (["a, first walk: 10 -> 11 closures"], [])
    shrank = compare_counts("a", recorded, {"first walk": {"closures": 10, "sets": 7}})[1]
    assert shrank == ["a, first walk: 20 -> 7 sets"]


if __name__ == "__main__":
    recent.most = programs.most = 0
    os.environ[VARIABLE] = "off"
    found = {name: count_work(*case) for name, case in CASES.items()}
    known = json.loads(RATCHET.read_text("utf-8")) if RATCHET.exists() else {}
    for name, numbers in found.items():
        for lines in compare_counts(name, known.get(name, {}), numbers):
            print(*lines, sep="\n", end="\n" if lines else "")
    RATCHET.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
