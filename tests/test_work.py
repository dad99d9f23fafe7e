"""How much work masks are, counted and not timed: it may not become more, and where it becomes less that is recorded.

Of each case (a constraint, a text) three things are counted along the text, mask and advance token by token: closures
made, sets made, trie nodes visited; on the first walk in a new arena, and on the second, when all is known. A number
above `work_ratchet.json` fails, and so does one below it, until the file is written anew with

    python -m tests.test_work
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import Constraint, Style, Vocabulary
from constrain.kernels import layout as at
from constrain.store import programs, recent
from constrain.store.files import VARIABLE

RATCHET = Path(__file__).parent / "work_ratchet.json"
RENEW = "python -m tests.test_work"
COUNTED = {"closures": at.CLOSURES, "sets": at.N_SETS, "trie nodes": at.VISITED}
SIZE, LONGEST = 2_000, 8
PROSE = "The quick brown fox jumps over the lazy dog, and nobody knows why; it likes to. Ärger? Nein: 東京 \U0001f600"
PERSON = {"name": "Ada Lovelace", "born": "1815-12-10", "height": 165, "tags": ["en", "fr"], "address": {"city": "Ely"}}

Counts = dict[str, dict[str, int]]
"""Of a case: {"first walk": {"closures": …}, "second walk": …}."""


@lru_cache(maxsize=1)
def tokens() -> tuple[bytes, ...]:
    """The 256 bytes, then the pieces of some JSON that save most, as merges of a tokenizer would; always the same."""
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
    """A new one each time, so that no case finds what another has prepared."""
    return Vocabulary.from_tokens([*tokens(), None], (SIZE,))


def cut(text: bytes) -> list[int]:
    """The longest token first, again and again."""
    ids = {token: number for number, token in enumerate(tokens())}
    out: list[int] = []
    while text:
        length = next(n for n in range(LONGEST, 0, -1) if text[:n] in ids)
        out.append(ids[text[:length]])
        text = text[length:]
    return out


def schema(value: Any, style: Style | None = None) -> Callable[[], Constraint]:
    return lambda: constrain.compile(vocabulary(), schema=value, style=style or Style.any())


def others(**options: Any) -> Callable[[], Constraint]:
    return lambda: constrain.compile(vocabulary(), **options)


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


@contextmanager
def by_itself() -> Iterator[None]:
    """Nothing is found that was made before, on disk or in this process."""
    before = recent.most, programs.most, os.environ.get(VARIABLE)
    recent.most = programs.most = 0
    os.environ[VARIABLE] = "off"
    try:
        yield
    finally:
        recent.most, programs.most, was = before
        os.environ.pop(VARIABLE)
        os.environ.update({} if was is None else {VARIABLE: was})


@by_itself()
def counts(make: Callable[[], Constraint], value: Any) -> Counts:
    """What both walks along the text cost."""
    text = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    constraint = make()
    out: Counts = {}
    for walk in ("first walk", "second walk"):
        matcher = constraint.matcher()
        head = constraint.arena().arrays[at.HEAD]
        before = {name: 0 if walk == "first walk" else int(head[place]) for name, place in COUNTED.items()}
        for token in cut(text):
            mask = matcher.mask()
            assert np.int32(mask[token >> 5]) >> (token & 31) & 1, (text, matcher)
            matcher.advance(token)
        matcher.mask()
        assert matcher.is_complete
        head = constraint.arena().arrays[at.HEAD]
        out[walk] = {name: int(head[place]) - before[name] for name, place in COUNTED.items()}
    return out


def compare(name: str, recorded: Mapping[str, Mapping[str, int]], found: Counts) -> tuple[list[str], list[str]]:
    """(what grew, what shrank), in words."""
    grew, shrank = [], []
    for walk, numbers in found.items():
        for what, number in numbers.items():
            before = recorded.get(walk, {}).get(what, 0)
            line = f"{name}, {walk}: {before:,} -> {number:,} {what}"
            if number != before:
                (grew if number > before else shrank).append(line)
    return grew, shrank


@pytest.mark.parametrize("name", CASES)
def test_masks_are_no_more_work(name: str) -> None:
    grew, shrank = compare(name, json.loads(RATCHET.read_text("utf-8")).get(name, {}), counts(*CASES[name]))
    assert not grew, "\n".join(["More work than recorded (if that is how it must be: " + RENEW + "):", *grew, *shrank])
    assert not shrank, "\n".join(["Less work than recorded, well done; keep it so with " + RENEW + ":", *shrank])


def test_the_ratchet_has_these_cases_alone() -> None:
    assert list(json.loads(RATCHET.read_text("utf-8"))) == list(CASES)


def test_counts_depend_on_the_case_alone() -> None:
    name = "an object, free key order"
    assert counts(*CASES[name]) == counts(*CASES[name])


def test_what_grew_and_shrank_is_told() -> None:
    recorded = {"first walk": {"closures": 10, "sets": 20}}
    found = {"first walk": {"closures": 11, "sets": 20}, "second walk": {"closures": 0}}
    assert compare("a", recorded, found) == (["a, first walk: 10 -> 11 closures"], [])
    assert compare("a", recorded, {"first walk": {"closures": 10, "sets": 7}})[1] == ["a, first walk: 20 -> 7 sets"]


if __name__ == "__main__":
    found = {name: counts(*case) for name, case in CASES.items()}
    known = json.loads(RATCHET.read_text("utf-8")) if RATCHET.exists() else {}
    for name, numbers in found.items():
        for lines in compare(name, known.get(name, {}), numbers):
            print(*lines, sep="\n", end="\n" if lines else "")
    RATCHET.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
