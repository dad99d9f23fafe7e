"""Probes of every format of the specification (2020-12 validation, section 7.3), and of spellings of JSON."""

from __future__ import annotations

from typing import Any

from .probes import Text

__all__ = ["FORMATS", "SPELLINGS"]

DOCUMENTS: dict[str, tuple[list[str], list[str]]] = {
    "date": (["2024-02-29", "1999-12-31"], ["2023-02-29", "2024-13-01", "2024-1-1", ""]),
    "date-time": (
        ["2024-02-29T12:00:00Z", "1985-04-12T23:20:50.52+01:00", "1990-12-31t23:59:59z"],
        ["2023-02-29T12:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T12:00:00", "2024-01-01"],
    ),
    "time": (["12:00:00Z", "23:59:59.5-08:00"], ["24:00:00Z", "12:00:00", "12:60:00Z"]),
    "duration": (["P1D", "P3Y6M4DT12H30M5S", "PT0S", "P4W"], ["P", "PT", "P1S", "1D", "P1Y1W"]),
    "email": (["a@example.com", "a.b+c@x.org"], ["a", "a.example.com"]),
    "idn-email": (["δοκιμή@παράδειγμα.gr", "a@example.com"], ["δοκιμή", ""]),
    "hostname": (["example.com", "a-b.c", "xn--4gbwdl.xn--wgbh1c"], ["-a.com", "a_b.com", "a" * 64]),
    "idn-hostname": (["例え.テスト", "example.com"], ["〮한국.kr", "a..b"]),
    "ipv4": (["127.0.0.1", "255.255.255.255"], ["256.0.0.1", "1.2.3", "1.2.3.4.5"]),
    "ipv6": (["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"], ["12345::", "1::2::3", ":1"]),
    "uri": (["https://example.com/a?b#c", "urn:isbn:0451450523"], ["//example.com", "a b", "http://a/<b>"]),
    "uri-reference": (["https://example.com/a", "../a?b", "#c", ""], ["a b", "\\\\server", "#a<b"]),
    "iri": (["https://ƒøø.com/ß", "http://example.com"], ["/abc", "http://a b"]),
    "iri-reference": (["//ƒøø.com/ß", "#ß", ""], ["\\\\server", "#ß\\a"]),
    "uri-template": (["http://example.com/{term:1}/{term}", "{+path}/here", "a"], ["http://a/{b", "{a b}"]),
    "uuid": (
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"],
        [
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638g",
        ],
    ),
    "json-pointer": (["", "/a/b~0c~1d", "/"], ["a", "/a~", "/~2"]),
    "relative-json-pointer": (["1", "0/a/b", "2#"], ["/a", "-1/a", ""]),
    "regex": (["^a+(b|c)$", "", "[a-z]{2}"], ["(", "[a", "*a"]),
}

FORMATS: list[tuple[str, str, Any, list[Any], list[Any]]] = [
    *(
        ("format", name, {"type": "string", "format": name}, valid, invalid)
        for name, (valid, invalid) in DOCUMENTS.items()
    ),
    (
        "format", "with pattern and maxLength",
        {"type": "string", "format": "uri", "pattern": "^https://", "maxLength": 20},
        ["https://a.example/b"], ["http://a.example/b", "https://a.example/bcdef"],
    ),
    ("format", "unknown ones assert nothing", {"type": "string", "format": "colour-name"}, ["a", ""], [1]),
]  # fmt: skip
"""Rows (keyword, other keywords, schema, valid documents, invalid documents), as in `probes`."""

PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
STRING: dict[str, Any] = {"type": "string"}

SPELLINGS: list[tuple[str, str, Any, list[Any], list[Any]]] = [
    ("properties", "keys in any order", PAIR, [Text('{"b":1,"a":2}'), Text('{"a":1,"b":2}')], []),
    ("properties", "no key twice", PAIR, [Text('{"a":1,"b":2}')], [Text('{"a":1,"b":2,"a":1}')]),
    ("properties", "keys with escapes", PAIR, [Text(r'{"\u0061":1,"b":2}')], [Text(r'{"\u0061":"x","b":2}')]),
    (
        "properties", "no declared key twice by an escape", PAIR,
        [Text('{"a":1,"b":2}')], [Text(r'{"a":1,"b":2,"\u0061":1}')],
    ),
    ("properties", "white space", PAIR, [Text('{ "a" :\n\t1 ,\r\n  "b":2 }')], [Text('{"a":1;"b":2}')]),
    ("type", "escapes in strings", STRING, [Text(r'"\u00e9\/\b\ud83d\ude00"')], [Text(r'"\x41"'), Text(r'"\u12"')]),
    ("type", "control characters in strings", STRING, ["\x7f\u0085"], [Text('"a\tb"'), Text('"a\nb"')]),
    ("type", "numbers with exponents", {"type": "number"}, [Text("1e5"), Text("-0.5E-3")],
     [Text("01"), Text(".5"), Text("+1"), Text("1.")]),
    ("enum", "constants with escapes", {"enum": ["é"]}, [Text(r'"\u00e9"'), Text('"é"')], [Text(r'"\u00e8"')]),
]  # fmt: skip
