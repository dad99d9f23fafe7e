"""The oracle's characters, against Python's own decoders."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from constrain.automata.dfa import Dfa
from constrain.grammar.nodes import Chars, Grammar, JsonString
from tests.grammar_oracle import Reference
from tests.text_oracle import completions, decode, feed, names_from

ANY = Reference(Grammar(JsonString(Dfa.any_text()), {}))
UTF8 = Reference(Grammar(Chars(Dfa.any_text()), {}))
PIECES = st.sampled_from(
    [
        *(bytes([b]) for b in b'"\\/bfnrtu0189aAdDcCfFeE\x00\x1f\x7f '),
        b"\\u",
        b"\\ud83d",
        b"\\ude00",
        b"\\uDFFF",
        b"\\u00",
    ]
    + [
        "é".encode(),
        "😀".encode(),
        "😀".encode()[:2],
        b"\xc0",
        b"\xed\xa0",
        b"\xe2\x80\xa8",
        b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90",
    ]
)
TEXTS = st.lists(PIECES, max_size=7).map(b"".join)


def json_text(data: bytes) -> str | None:
    """Return the text of a complete JSON string, None if it is not one or contains a lone surrogate."""
    try:
        value = json.loads(data.decode())
    except ValueError:
        return None
    if not isinstance(value, str) or data[:1] != b'"' or data[-1:] != b'"':
        return None
    return None if any(0xD800 <= ord(char) < 0xE000 for char in value) else value


@given(TEXTS)
def test_json_strings_are_those_that_python_reads(data: bytes) -> None:
    text = b'"' + data + b'"'
    wanted = json_text(text)
    assert ANY.accepts(text) == (wanted is not None)
    if wanted is not None:
        assert decode(data) == (wanted, b"")
        assert all(ANY.viable(text[:end]) for end in range(len(text)))


@given(TEXTS)
def test_viable_unfinished_characters_have_a_completion(data: bytes) -> None:
    """`viable` of an unfinished character: some character of its completions continues from there."""
    read = decode(data)
    assert ANY.viable(b'"' + data) == (read is not None or json_text(b'"' + data) is not None)
    if read is None or not read[1]:
        return
    head, pending = read
    for low, high in completions("json", pending):
        for code in {low, high, (low + high) // 2}:
            unit = chr(code).encode("utf-16-be").hex()
            spellings = [
                chr(code).encode(),
                b"\\" + chr(code).encode(),
                "".join("\\u" + unit[i : i + 4] for i in range(0, len(unit), 4)).encode(),
                "".join("\\u" + unit[i : i + 4].upper() for i in range(0, len(unit), 4)).encode(),
            ]
            raw = data[: len(data) - len(pending)]
            same = [s for s in spellings if s[: len(pending)].lower() == pending.lower() and len(s) > len(pending)]
            short = {"\b": b"\\b", "\f": b"\\f", "\n": b"\\n", "\r": b"\\r", "\t": b"\\t"}.get(chr(code), b"")
            assert any(decode(raw + s) == (head + chr(code), b"") for s in [*same, short]), (pending, code)


@given(st.one_of(TEXTS, st.binary(max_size=6), st.text(max_size=3).map(str.encode)))
def test_utf8_is_what_python_decodes(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        assert not UTF8.accepts(data)
        unfinished = error.end == len(data) and "unexpected end" in error.reason
        assert UTF8.viable(data) == unfinished
    else:
        assert UTF8.accepts(data)


def test_every_character_is_spelled_and_counted_once() -> None:
    for code in (0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF):
        for encoding, data in (("utf8", chr(code).encode()), ("json", json.dumps(chr(code))[1:-1].encode())):
            text, pending = "", b""
            for byte in data:
                fed = feed(encoding, pending, byte)  # type: ignore[arg-type]
                assert fed is not None
                text, pending = text + fed[0], fed[1]
            assert (text, pending) == (chr(code), b"")


@given(st.integers(0, 4), st.integers(0, 4), st.text("ab\u00e9", max_size=5))
def test_lengths_count_characters(low: int, more: int, text: str) -> None:
    """Of `(ab|é)*`, with bounds on the number of characters."""
    dfa = Dfa.from_strings(["ab", "é"]).star()
    oracle = Reference(Grammar(Chars(dfa, "json", low, low + more), {}))
    inside = dfa.accepts(text) and low <= len(text) <= low + more
    assert oracle.accepts(text.encode()) == inside
    assert oracle.accepts(json.dumps(text)[1:-1].encode()) == inside
    reachable = [t for t in dfa.enumerate(200) if t.startswith(text) and low <= len(t) <= low + more]
    assert oracle.viable(text.encode()) == bool(reachable)


def test_names_from_gives_enough_and_all_of_a_finite_language() -> None:
    few = Dfa.from_strings(["a", "ab", "abc", "b"])
    assert list(names_from(few, "", b"", 9)) == ["a", "b", "ab", "abc"]
    assert list(names_from(few, "a", b"", 9)) == ["a", "ab", "abc"]
    assert list(names_from(few, "a", b"\\u006", 9)) == ["ab", "abc"]
    many = Dfa.from_ranges([(ord("a"), ord("z"))])
    assert len(list(names_from(many, "", b"", 5))) >= 5
