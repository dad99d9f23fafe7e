"""Formats against their RFCs: tables of texts, the standard library, and the `jsonschema` package's checkers."""

from __future__ import annotations

import datetime
import ipaddress
import re
import uuid
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import example, given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.base.errors import UnsupportedError
from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.strings.formats import (
    FORMATS,
    RULE_FORMATS,
    format_dfa,
    format_lengths,
    times_within,
)
from constrain.frontends.json_schema.strings.ipv6 import splice_dfa
from constrain.frontends.regex import to_dfa
from tests.automata.table_oracle import canonicalize_table, find_distances
from tests.recogniser_oracle import accepts

REFUSED = {*RULE_FORMATS}

VALID = {
    "date": ["2020-02-29", "2000-02-29", "1999-12-31", "0001-01-01", "0400-02-29", "9999-12-31", "2024-04-30"],
    "time": ["08:30:06Z", "08:30:06z", "23:59:60Z", "15:59:60-08:00", "00:29:60.5+00:30",
             "23:59:60.5z", "23:59:60+00:00", "23:20:50.52Z", "12:34:56-00:00",
             "08:30:06.283185+23:59"],
    "date-time": ["1963-06-19T08:30:06.283185Z", "1990-12-31t15:59:50.123-08:00", "1998-12-31T23:59:60Z",
                  "2020-02-29T00:00:00+14:00", "1985-04-12T00:59:59.999999999999999Z"],
    "duration": ["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT1M", "PT36H", "P2W", "P1Y2M3DT4H5M6S", "PT1M2S", "P01D"],
    "email": ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', '"a\\"@b"@example.com',
              "joe@[127.0.0.1]", "joe@[IPv6:::1]", "a@b", "a+b@x-y.example"],
    "idn-email": ["joe@example.com", "실례@실례.테스트", '"δοκιμή"@example.com'],
    "hostname": ["www.example.com", "hostname", "1host", "a--b.com", "xn--9n2bp8q", "a" * 63 + ".com", "0", "A.b.C"],
    "ipv4": ["192.168.0.1", "0.0.0.0", "255.255.255.255", "10.20.30.40"],
    "ipv6": ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:d6::42", "::ffff:192.168.0.1", "1:2:3:4:5:6:1.2.3.4",
             "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "ABCD:ef01::", "1:2:3:4:5::1.2.3.4"],
    "uri": ["http://foo.bar/?baz=qux#quux", "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
            "tel:+1-816-555-1212",
            "ldap://[2001:db8::7]/c=GB?objectClass?one", "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com", "a:",
            "file:///etc/hosts", "http://[v1.fe:x]", "mailto:John.Doe@example.com", "http://a:/",
            "http://999.999.9.9/"],
    "uri-reference": ["", "abc", "/abc", "//", "?query=1", "#fragment", "./this:that", "http://foo.bar/", "../a?b#c"],
    "iri": ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a/?q=\U000f0000", "http://[2001:db8::1]", "urn:é",
            "http://a/\U00010300"],
    "iri-reference": ["âππ", "#ƒrägmênt", "//ƒøø.ßår/", ""],
    "uri-template": ["", "http://example.com/dictionary/{term:1}/{term}", "{+var}", "{?x,y*}", "{a.b}", "{%41}", "a'b"],
    "uuid": ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"],
    "json-pointer": ["", "/", "/foo/bar~0/baz~1/%a", "/a~1b", "/ ", "/\n", "//"],
    "relative-json-pointer": ["0", "1/foo", "0#", "120/a~0", "0//", "0-1#", "2+1/a"],
}  # fmt: skip

INVALID = {
    "date": ["2021-02-29", "1900-02-29", "2100-02-29", "0100-02-29", "2020-02-30", "2020-04-31", "2020-13-01",
             "2020-00-01",
             "2020-01-00", "2020-1-1", "20200101", "2020-01-01Z", "1963-06-1৪", "+2020-01-01", "2020-01-01\n", ""],
    "time": ["24:00:00Z", "00:60:00Z", "00:00:61Z", "22:59:60Z", "23:58:60Z", "23:59:60+01:00", "12:00:00", "8:3:6Z",
             "01:02:03+24:00", "01:02:03+00:60", "01:02:03Z+00:30", "08:30:06 PST", "01:01:01,1Z", "01:01:01.Z",
             "1২:00:00Z"],
    "date-time": ["1998-12-31T23:58:60Z", "1990-02-31T15:59:59Z", "1990-12-31T15:59:59-24:00", "2013-350T01:01:01",
                  "1985-04-12T23:20:50+01", "2016-12-31T24:59:60+01:00", "1985-04-12 23:20:50Z", "1963-06-19T08:30:06",
                  "2021-02-29T00:00:00Z", "1985-04-12T23:20:50Z\n"],
    "duration": ["P", "PT", "P1YT", "PT1D", "P2D1Y", "P1D2H", "P1Y2W", "P1Y2D", "PT1H2S", "PT0.5S", "-P1D", "P২Y",
                 "P1"],
    "email": ["2962", ".a@example.com", "a.@example.com", "a..b@example.com", "a@b=c.com", "a@[127.0.0.300]", "@a",
              "a@",
              "a b@example.com", "a@b.org, c@d.org", '"a"b"@c', "a@-b.c", "a@b-.c", "a@[::1]", "é@a"],
    "idn-email": ["2962", "user＠example.com"],
    "hostname": ["", ".", ".example", "example.", "-host", "host-", "host_name", "a" * 64, "example．com", "a..b",
                 "example.com\n", "\u212aelvin.example.com"],
    "ipv4": ["256.0.0.1", "127.0", "01.2.3.4", "1.2.3.4.5", "0x7f.0.0.1", "1২7.0.0.1", "1.2.3.4/24", "1..2.3",
             "1.2.3.4\n"],
    "ipv6": ["12345::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::d6::42", ":2:3:4:5:6:7:8", "1:2:3:4:5:6:7:", "1:::8",
             "1::2:192.168.256.1", "fe80::a%eth1", "fe80::/64", "127.0.0.1", "1:2:3:4:5:6:7:1.2.3.4", "[::1]",
             "::ffff:192.168.0.01", "1:2:3:4:5:6:7::8:9", "1.2.3.4::", "::1.2.3.4:1"],
    "uri": ["//foo.bar/", "/abc", "abc", "\\\\WINDOWS\\fileshare", "http:// shouldfail.com", "bar,baz:foo", "1http://a",
            "https://[@example.org/test.txt", "https://example.org/é", "http://a/%6G", "http://a/%", "http://a:b/",
            "http:/[::1]", "http://[::ffff:01.2.3.4]", "http://a/{}", ":a", "http://a#b#c"],
    "uri-reference": ["\\\\WINDOWS", "#frag\\ment", "/é", "1:b", "/%zz", "//a@b@c/", "/[::1]", 'a"b'],
    "iri": ["/abc", "âππ", "http://2001:db8:85a3::7334", "http://a/\ue000", "http://a/\n", "http://a/\ufdd0"],
    "iri-reference": ["#ƒräg\\mênt", "\\\\WINDOWS\\filßåré", "/\U0001ffff"],
    "uri-template": ["{", "foo}bar", "{}", "{a,,b}", "{v:0}", "{v:10000}", "{v:01}", "{a..b}", "a b", "{var=def}",
                     "%zz"],
    "uuid": ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380", "{" + "0" * 36 + "}",
             "2eb8aa08-aa98-11ea-b4aa-73b441d16380-", "2eb8aa0-8aa98-11e-ab4aa7-3b441d16380"],
    "json-pointer": ["a", "#/a", "/foo/bar~", "/~2", "/~~", "a/a"],
    "relative-json-pointer": ["", "/foo", "-1/foo", "+1", "01", "0##", "1#/foo", "0/~2", "\u0661/foo", "1\n"],
}  # fmt: skip


def dfa_of(name: str) -> Dfa:
    dfa = format_dfa(name)
    assert dfa is not None
    return dfa


@pytest.mark.parametrize("name", sorted(VALID))
def test_tables(name: str) -> None:
    dfa = dfa_of(name)
    assert [text for text in VALID[name] if not dfa.accepts(text)] == []
    assert [text for text in INVALID[name] if dfa.accepts(text)] == []


def test_every_format_has_a_table_or_is_refused() -> None:
    assert set(FORMATS) == set(VALID) | REFUSED == set(INVALID) | REFUSED
    assert format_dfa("int32") is None and format_dfa("no-such-format") is None
    for name in RULE_FORMATS:
        with pytest.raises(UnsupportedError, match="cannot be combined with other conditions"):
            format_dfa(name)


def test_a_hostname_has_a_length_beside_its_dfa() -> None:
    assert format_lengths("hostname") == (0, 253)
    assert all(format_lengths(name) == (0, None) for name in ("date", "email"))


@pytest.mark.parametrize("name", sorted(VALID))
def test_shortest_text_and_python_agree(name: str) -> None:
    """The pattern means the same to Python's `re`, on texts of the automaton and near them."""
    dfa, pattern = dfa_of(name), re.compile(FORMATS[name] or "")
    for text in [*dfa.enumerate(40), *VALID[name], *INVALID[name]]:
        for near in {text, text[1:], text[:-1], text + text[-1:], text.upper(), text + "\n", text.replace("1", "9")}:
            if ":60" not in near:  # A pattern does not hold the leap seconds with an offset.
                assert dfa.accepts(near) == bool(pattern.fullmatch(near)), (name, near)


@pytest.mark.parametrize("name", ["ipv6", "email", "idn-email", "uri", "uri-reference", "iri", "iri-reference"])
def test_addresses_are_built_as_their_patterns_say(name: str) -> None:
    assert dfa_of(name) == to_dfa(FORMATS[name] or "")


def test_splice() -> None:
    one = splice_dfa(to_dfa("a(?:0[xy]|b)|z0?"), "0", to_dfa("[1-3]+"))
    assert one == to_dfa("a(?:[1-3]+[xy]|b)|z(?:[1-3]+)?")
    with pytest.raises(ValueError, match="begins or ends"):
        splice_dfa(to_dfa("0a"), "0", to_dfa("a+"))


def test_leap_seconds_are_at_2359_utc_only() -> None:
    time = dfa_of("time")
    for minute in range(0, 1440, 7):
        for sign, offset in (("+", 1), ("-", -1)):
            for shift in {0, 1, 60, 90, 480, 1380, 1439, (minute + 1) % 1440, 1439 - minute}:
                text = f"{minute // 60:02}:{minute % 60:02}:60.25{sign}{shift // 60:02}:{shift % 60:02}"
                assert time.accepts(text) == ((minute - offset * shift) % 1440 == 1439), text


def test_leap_seconds_of_a_date() -> None:
    dfa = dfa_of("date-time")
    assert dfa.accepts("1998-12-31T15:59:60.123-08:00") and not dfa.accepts("1998-12-31T15:59:60.123-07:00")
    every = format_dfa("date-time", spelling="any")
    assert every is not None and every.accepts("0000-01-01T00:00:00Z") and not dfa.accepts("0000-01-01T00:00:00Z")
    assert dfa.subtract(every, max_states=30_000).is_empty


@pytest.mark.parametrize("name", ["time", "date-time"])
def test_block_construction_gives_the_canonical_automaton(name: str) -> None:
    dfa = dfa_of(name)
    assert canonicalize_table(dfa.table) == dfa.table._replace(rows=[tuple(row) for row in dfa.table.rows])
    assert dfa.distances().tolist() == find_distances(dfa.table)


@pytest.mark.parametrize("other", [".*Z", ".*[+-]0[0-9]:.*", "1.*|.*:60.*", "[^:]*"])
def test_times_beside_another_language(other: str) -> None:
    met = times_within("time", to_dfa(other), 20_000)
    assert met == dfa_of("time").intersect(to_dfa(other), max_states=60_000)


# ---- against the standard library --------------------------------------------------------------------------------


def test_every_day_of_some_years() -> None:
    dfa = dfa_of("date")
    for year in (1, 4, 100, 400, 1899, 1900, 2000, 2023, 2024, 9999):
        for month in range(14):
            for day in range(33):
                text = f"{year:04}-{month:02}-{day:02}"
                try:
                    datetime.date(year, month, day)
                except ValueError:
                    assert not dfa.accepts(text), text
                else:
                    assert dfa.accepts(text), text


@given(st.datetimes(timezones=st.timezones()))
def test_datetimes(moment: datetime.datetime) -> None:
    offset = moment.utcoffset()
    if offset is not None and offset.seconds % 60 == 0:
        assert dfa_of("date-time").accepts(moment.isoformat())
        assert dfa_of("date").accepts(moment.date().isoformat())
        assert dfa_of("time").accepts(moment.timetz().isoformat()) == (moment.timetz().utcoffset() is not None)
    assert not dfa_of("date-time").accepts(moment.replace(tzinfo=None).isoformat())


@given(st.ip_addresses())
def test_addresses(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert dfa_of("ipv4").accepts(str(address)) == (address.version == 4)
    assert dfa_of("ipv6").accepts(str(address)) == (address.version == 6)
    if address.version == 6:
        assert dfa_of("ipv6").accepts(address.exploded.upper())
        assert dfa_of("uri").accepts(f"http://[{address}]:80/")


@settings(max_examples=120)
@given(
    st.text(alphabet="0129af:.", max_size=24)
    | st.from_regex(r"\A[0-9a-f]{0,5}(:{1,3}[0-9a-f]{0,5}){1,9}(\.[0-9]{1,3}){0,4}\Z")
)
@example("1:2:3:4:5:6:7::")
def test_addresses_agree_with_ipaddress(text: str) -> None:
    for name, parse in (("ipv4", ipaddress.IPv4Address), ("ipv6", ipaddress.IPv6Address)):
        try:
            parse(text)
        except ValueError:
            assert not dfa_of(name).accepts(text)
        else:
            assert dfa_of(name).accepts(text)


@given(st.uuids())
def test_uuids(value: uuid.UUID) -> None:
    assert dfa_of("uuid").accepts(str(value)) and dfa_of("uuid").accepts(str(value).upper())
    assert dfa_of("uri").accepts(value.urn) and not dfa_of("uuid").accepts(value.urn)


@given(st.text(), st.text(), st.text())
def test_quoted_text_makes_uris(path: str, query: str, fragment: str) -> None:
    path, query, fragment = (quote(part, errors="replace", safe="/") for part in (path, query, fragment))
    uri = f"https://example.com/{path}?{query}#{fragment}"
    assert dfa_of("uri").accepts(uri) and dfa_of("iri").accepts(uri) and dfa_of("uri-reference").accepts(uri)
    assert dfa_of("uri-reference").accepts(uri.removeprefix("https:"))
    assert not dfa_of("uri").accepts(uri.removeprefix("https:"))
    assert urlsplit(uri).fragment == fragment


def test_a_uri_is_a_reference_and_an_iri() -> None:
    for first, second in (("uri", "uri-reference"), ("uri", "iri"), ("iri", "iri-reference"), ("uri-reference",
    "iri-reference"),
                          ("email", "idn-email"), ("json-pointer", "iri-reference")):  # fmt: skip
        rest = dfa_of(first).subtract(dfa_of(second))
        assert rest.is_empty == (first != "json-pointer"), (first, second)


# ---- against the labels of the benchmark: the `jsonschema` package with its format extras -------------------------


@pytest.mark.parametrize("name", sorted(set(VALID) - {"uri-template"}))
def test_jsonschema_accepts_generated_texts(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    if name not in checker.checkers:
        pytest.skip(f"jsonschema[format] is not installed: no checker of {name}")
    # What the RFCs have and the package does not: the year 0, leap seconds in a time alone, moves in an array.
    beyond = {"date": "^0000-", "date-time": "^0000-|:60", "time": ":60", "relative-json-pointer": "[+-]"}.get(name)
    for text in [*dfa_of(name).enumerate(60), *VALID[name]]:
        assert checker.conforms(text, name) or (beyond and re.search(beyond, text)), (name, text)


@pytest.mark.parametrize(("schema", "taken"), [
    ("http://json-schema.org/draft-07/schema#", False), ("https://json-schema.org/draft/2019-09/schema", False),
    ("https://json-schema.org/draft/2020-12/schema", True),
])  # fmt: skip
def test_index_manipulation_came_with_2020_12(schema: str, taken: bool) -> None:
    """Earlier drafts refer to draft-handrews-relative-json-pointer, which has none."""
    grammar = to_grammar({"$schema": schema, "format": "relative-json-pointer"}, style=Style(formats="assert"))
    assert accepts(grammar, '"0+1/a"') == accepts(grammar, '"2-1#"') == taken
    assert accepts(grammar, '"1/a"') and accepts(grammar, '"0#"') and not accepts(grammar, '"/a"')
