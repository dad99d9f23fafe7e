"""Formats: for each `format` of the JSON Schema specification, the Dfa of the texts that have it.

Each is a regular expression composed of the rules of its RFC, under the RFC's own names, so that the two can be
compared. Where a pattern is not enough, or an RFC leaves something open:

    date-time, time   a leap second occurs only at 23:59 UTC, with any offset: `leap_seconds`.
    date, date-time   RFC 3339 has a year 0000, which datetime libraries, and validators that use them, reject: it is
                      not generated ("plain"), but still belongs to the format when complemented ("any").
    hostname          at most 253 characters in all: `format_lengths` gives this beside the Dfa (as part of it: 27,657
                      states). Labels `xn--..` are checked as letters and digits (RFC 1123), not decoded.
    idn-email         non-ASCII characters in a domain are not checked against IDNA.
    idn-hostname      also written by rules, labels and dots; `idn_hostname` says which parts of IDNA are checked.
    regex             not a regular language, since parentheses nest: written by rules (`RULE_FORMATS`), and combined
                      with other conditions, or their complement, as a context-free language (`nested_regex_format`).

A name that the specification does not define asserts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from ....automata.dfa import Dfa
from ....base.errors import UnsupportedError
from ....base.work import memoize_work
from ....grammar.nodes import Node, Rule
from ...regex import to_dfa
from .idn_hostname import idn_node, is_idn
from .ipv6 import ipv6_dfa, splice_dfa
from .leap_seconds import times_with_leap_seconds
from .regex_format import is_regex, regex_node, regex_within

__all__ = [
    "RULE_FORMATS",
    "FORMATS",
    "LEAPING",
    "LEAP_STATES",
    "format_dfa",
    "format_in",
    "format_lengths",
    "times_within",
]

Spelling = Literal["plain", "any"]

# ---- dates and times: RFC 3339, section 5.6; durations: its appendix A -------------------------------------------

LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
"""Divisible by 4, and not by 100 unless by 400 (appendix C)."""

MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
FULL_DATE = f"(?:[0-9]{{4}}-{MONTH_DAY}|{LEAP_YEAR}-02-29)"

HOUR, MINUTE, SECFRAC = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]", r"(?:\.[0-9]+)?"
TIME_OFFSET = f"(?:[Zz]|[+-]{HOUR}:{MINUTE})"
TIME_REST = f"[0-5][0-9]{SECFRAC}{TIME_OFFSET}"
FULL_TIME = f"(?:{HOUR}:{MINUTE}:{TIME_REST}|23:59:60{SECFRAC}[Zz])"
"""With leap seconds in UTC only; `leap_seconds` adds the others."""

DUR_MINUTE = "[0-9]+M(?:[0-9]+S)?"
DUR_TIME = f"T(?:[0-9]+H(?:{DUR_MINUTE})?|{DUR_MINUTE}|[0-9]+S)"
DUR_MONTH = "[0-9]+M(?:[0-9]+D)?"
DUR_DATE = f"(?:[0-9]+D|{DUR_MONTH}|[0-9]+Y(?:{DUR_MONTH})?)(?:{DUR_TIME})?"
DURATION = f"P(?:{DUR_DATE}|{DUR_TIME}|[0-9]+W)"

# ---- addresses: RFC 2673 section 3.2 with RFC 3986 section 3.2.2 -------------------------------------------------

DEC_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{DEC_OCTET}(?:\.{DEC_OCTET}){{3}}"
H16 = "[0-9A-Fa-f]{1,4}"
LS32 = f"(?:{H16}:{H16}|{IPV4})"
IPV6 = (
    "(?:"
    + f"(?:{H16}:){{6}}{LS32}"
    + f"|::(?:{H16}:){{5}}{LS32}"
    + "".join(
        f"|(?:(?:{H16}:){{0,{before}}}{H16})?::(?:{H16}:){{{after}}}{LS32}"
        for before, after in enumerate((4, 3, 2, 1, 0))
    )
    + f"|(?:(?:{H16}:){{0,5}}{H16})?::{H16}"
    + f"|(?:(?:{H16}:){{0,6}}{H16})?::"
    + ")"
)

# ---- names: RFC 1123 section 2.1; mailboxes: RFC 5321 section 4.1.2, RFC 6531 section 3.3 ------------------------

LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOSTNAME = rf"{LABEL}(?:\.{LABEL})*"


def mailbox_pattern(beyond: str) -> str:
    """Return the pattern of a mailbox. beyond: the non-ASCII characters that may occur wherever a letter may."""
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~\-{beyond}]+"
    quoted = rf'"(?:[ !#-\[\]-~{beyond}]|\\[ -~])*"'
    letter = f"[A-Za-z0-9{beyond}]"
    sub_domain = f"{letter}(?:-*{letter})*"
    domain = rf"(?:{sub_domain}(?:\.{sub_domain})*|\[(?:{IPV4}|[Ii][Pp][Vv]6:{IPV6})\])"
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@{domain}"


# ---- identifiers: RFC 3986 appendix A; RFC 3987 section 2.2; templates: RFC 6570 section 2 -----------------------

PCT = "%[0-9A-Fa-f]{2}"


def join_ranges(*ranges: tuple[int, int]) -> str:
    """Return the inside of a character class."""
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


UCSCHAR = join_ranges(
    (0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF),
    *((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 14)), (0xE1000, 0xEFFFD),
)  # fmt: skip
IPRIVATE = join_ranges((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


def uri_pattern(rule: Literal["absolute", "reference"], beyond: str = "", private: str = "") -> str:
    """Return the pattern of a URI or of a reference to one.

    beyond: ucschar for an IRI; private: further characters of its query.
    """
    plain = rf"A-Za-z0-9\-._~!$&'()*+,;={beyond}"
    pchar = f"(?:[{plain}:@]|{PCT})"
    no_colon = f"(?:[{plain}@]|{PCT})"
    ip_literal = rf"\[(?:{IPV6}|[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]"
    authority = f"(?:(?:[{plain}:]|{PCT})*@)?(?:{ip_literal}|(?:[{plain}]|{PCT})*)(?::[0-9]*)?"
    abempty = f"(?:/{pchar}*)*"
    absolute = f"/(?:{pchar}+{abempty})?"
    hier = f"(?://{authority}{abempty}|{absolute}|{pchar}+{abempty})?"
    tail = rf"(?:\?(?:[{plain}:@/?{private}]|{PCT})*)?(?:#(?:[{plain}:@/?]|{PCT})*)?"
    uri = rf"[A-Za-z][A-Za-z0-9+.\-]*:{hier}"
    if rule == "absolute":
        return uri + tail
    relative = f"(?://{authority}{abempty}|{absolute}|{no_colon}+{abempty})?"
    return f"(?:{uri}|{relative}){tail}"


LITERALS = rf"(?:[!#$&-;=?-\[\]_a-z~{UCSCHAR}{IPRIVATE}]|{PCT})"
"""With the apostrophe, according to erratum 6937."""

VARCHAR = f"(?:[A-Za-z0-9_]|{PCT})"
VARSPEC = rf"{VARCHAR}(?:\.?{VARCHAR})*(?:\*|:[1-9][0-9]{{0,3}})?"
URI_TEMPLATE = rf"(?:{LITERALS}|\{{[+#./;?&=,!@|]?{VARSPEC}(?:,{VARSPEC})*\}})*"

# ---- others: RFC 4122 section 3; RFC 6901 section 3; draft-bhutton-relative-json-pointer section 3 -------------

UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
JSON_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
INDEX = "(?:0|[1-9][0-9]*)"
RELATIVE_JSON_POINTER = rf"{INDEX}(?:[+-]{INDEX})?(?:#|{JSON_POINTER})"

BEYOND_ASCII = join_ranges((0x80, 0xD7FF), (0xE000, 0x10FFFF))

FORMATS: Mapping[str, str | None] = MappingProxyType({
    "date": FULL_DATE,
    "date-time": f"{FULL_DATE}[Tt]{FULL_TIME}",
    "duration": DURATION,
    "email": mailbox_pattern(""),
    "hostname": HOSTNAME,
    "idn-email": mailbox_pattern(BEYOND_ASCII),
    "idn-hostname": None,
    "ipv4": IPV4,
    "ipv6": IPV6,
    "iri": uri_pattern("absolute", UCSCHAR, IPRIVATE),
    "iri-reference": uri_pattern("reference", UCSCHAR, IPRIVATE),
    "json-pointer": JSON_POINTER,
    "regex": None,
    "relative-json-pointer": RELATIVE_JSON_POINTER,
    "time": FULL_TIME,
    "uri": uri_pattern("absolute"),
    "uri-reference": uri_pattern("reference"),
    "uri-template": URI_TEMPLATE,
    "uuid": UUID,
})  # fmt: skip
"""Every format of the specification (2020-12 validation, section 7.3) with its pattern; None: refused."""

BEFORE_2020 = " before 2020-12"
EARLIER: Mapping[str, str] = MappingProxyType(
    {
        # Index manipulation came with draft-bhutton-relative-json-pointer-00, to which 2020-12 refers.
        "relative-json-pointer": rf"{INDEX}(?:#|{JSON_POINTER})",
    }
)
"""Formats that were narrower before 2020-12, with their patterns then."""

NOT_COMBINED: Mapping[str, str] = MappingProxyType({
    "idn-hostname": "its labels are counted, so it cannot be combined with a length, a pattern, `not`, or a key.",
    "regex": "parentheses nest to any depth, so there is no automaton of several such sets of names.",
})  # fmt: skip
"""Why a format cannot be combined with other conditions."""


class FormatRules(NamedTuple):
    """A format that is not a regular language.

    node: its texts of at least 0 or 1 characters, inside a JSON string, given the rule of all its texts. accepts:
    whether a text has the format. within: the Dfa of its texts that another Dfa accepts, with a limit of states; None
    unless they are known to be a regular language.
    """

    node: Callable[[Rule, int], Node]
    accepts: Callable[[str], bool]
    within: Callable[[Dfa, int], Dfa | None]


RULE_FORMATS: Mapping[str, FormatRules] = MappingProxyType({
    "idn-hostname": FormatRules(lambda rule, low: idn_node(), is_idn, lambda other, max_states: None),
    "regex": FormatRules(regex_node, is_regex, regex_within),
})  # fmt: skip


def format_in(name: str, draft: int) -> str:
    """Return the name that `format_dfa` uses for the format of a draft."""
    return name + BEFORE_2020 if draft < 2020 and name in EARLIER else name


def format_dfa(name: str, *, spelling: Spelling = "plain") -> Dfa | None:
    """Return the Dfa of the texts that have the format, except for a bound on their length (`format_lengths`).

    Return None if the specification does not define the format, so that it asserts nothing. spelling: see `date` in the
    module docstring; the complement of a format needs "any". Raises UnsupportedError for a format that is not regular.
    """
    if name not in FORMATS and name.removesuffix(BEFORE_2020) not in EARLIER:
        return None
    return _format_dfa(name, spelling if name in ("date", "date-time") else "plain")


def format_lengths(name: str) -> tuple[int, int | None]:
    """Return the least and most characters (None: no bound) that must be counted beside the Dfa."""
    return 0, 253 if name == "hostname" else None


LEAPING = ("date-time", "time")
"""Formats with leap seconds, of 11,000 states: limits of automata built with them are raised by LEAP_STATES."""

LEAP_STATES = 50_000


def times_within(name: str, other: Dfa, max_states: int) -> Dfa:
    """Return the Dfa of the texts of one of LEAPING that another Dfa accepts.

    Most other automata accept no leap second with an offset; then an automaton of a hundred states suffices.
    """
    plain, leaping = _times(name)
    if leaping.intersect(other, max_states=max_states).is_empty:
        return plain.intersect(other, max_states=max_states)
    return _format_dfa(name, "plain").intersect(other, max_states=max_states + LEAP_STATES)


@memoize_work(64)
def _times(name: str) -> tuple[Dfa, Dfa]:
    """Return the texts without leap seconds except those ending in Z, and the texts that hold all leap seconds with
    another offset.
    """
    if name == "time":
        return to_dfa(FULL_TIME), to_dfa(f"{HOUR}:{MINUTE}:60{SECFRAC}[+-]{HOUR}:{MINUTE}")
    date = _format_dfa("date", "plain").concatenate(to_dfa("[Tt]"))
    plain, leaping = _times("time")
    return date.concatenate(plain), date.concatenate(leaping)


MARK = "\0"
"""Placeholder of an IPv6 address while a pattern is built; a format that contains an address must not contain it."""


def build_format(pattern: str) -> Dfa:
    """Return the Dfa of a pattern, with a fast path for patterns that contain IPV6."""
    if IPV6 not in pattern:
        return to_dfa(pattern)
    address = ipv6_dfa(_format_dfa("ipv4", "plain"))
    return address if pattern == IPV6 else splice_dfa(to_dfa(pattern.replace(IPV6, MARK)), MARK, address)


@memoize_work(64)
def _format_dfa(name: str, spelling: Spelling) -> Dfa:
    pattern = FORMATS[name] if name in FORMATS else EARLIER[name.removesuffix(BEFORE_2020)]
    if pattern is None:
        raise UnsupportedError(f"The format {name!r} cannot be combined with other conditions: {NOT_COMBINED[name]}")
    if name == "time":
        return times_with_leap_seconds(to_dfa(""), to_dfa(TIME_REST))
    if name in ("date", "date-time"):
        date = to_dfa(FULL_DATE)
        if spelling == "plain":
            date = date.subtract(to_dfa("0000-.*"))
        if name == "date":
            return date
        return times_with_leap_seconds(date.concatenate(to_dfa("[Tt]")), to_dfa(TIME_REST))
    return build_format(pattern)
