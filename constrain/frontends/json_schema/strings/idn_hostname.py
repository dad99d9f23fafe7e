"""The format `idn-hostname`: names with U-labels, by IDNA2008 (RFC 5890 to 5893), as a rule of labels and dots.

A non-ASCII label consists of permitted characters (RFC 5892, from the tables of the package `idna`), satisfies the
contextual rules of its appendix A, all of which are regular, and has no mark or hyphen where none is allowed. If one
label is written from right to left, RFC 5893 constrains every label of the name: so there are three kinds of names.

Not checked: normalisation (NFC) of composed characters; the Punycode of labels `xn--..`; and of the limit of 63 octets
in Punycode only `xn--` and at least one octet for each character are counted. The limit of 253 characters of a name is
checked if all of it is ASCII.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ....automata.dfa import Dfa
from ....base.work import memoize_work
from ....grammar.nodes import Chars, Choice, Node, Repeat, Sequence
from ...regex import to_dfa

__all__ = ["idn_node", "is_idn"]

MOST_NAME, MOST_LABEL, MOST_WIDE = 253, 63, 59
"""Most characters of a name, of a label, and of a non-ASCII label, whose `xn--` counts too (RFC 1034 section 3.1)."""

DOTS = "[.\u3002\uff0e\uff61]"
"""Full stops that separate labels (RFC 3490 section 3.1)."""

LDH = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
KERAIA, GERESH, KATAKANA_DOT = 0x375, (0x5F3, 0x5F4), 0x30FB
JOINER, NON_JOINER = 0x200D, 0x200C
LEFT_TO_RIGHT = ("L", "EN", "ES", "CS", "ET", "ON", "BN", "NSM")
RIGHT_TO_LEFT = ("R", "AL", "AN", "EN", "ES", "CS", "ET", "ON", "BN", "NSM")


class LabelKinds(NamedTuple):
    """Labels without a limit of length.

    ascii: letters, digits and hyphens. left: other labels without right-to-left characters. lined: those of both that
    may occur beside a right-to-left label. right: right-to-left labels.
    """

    ascii: Dfa
    left: Dfa
    lined_ascii: Dfa
    lined: Dfa
    right: Dfa


def idn_node() -> Node:
    """Return the node of such a name inside a JSON string."""
    kinds = build_labels()
    dot = Chars(to_dfa(DOTS), "json")
    plain, lined_plain = (Chars(dfa, "json", 1, MOST_LABEL) for dfa in (kinds.ascii, kinds.lined_ascii))
    left, lined, right = (Chars(dfa, "json", 1, MOST_WIDE) for dfa in (kinds.left, kinds.lined, kinds.right))
    return Choice((
        Chars(ascii_name_dfa(), "json", 1, MOST_NAME),
        _name(left, (plain, left), dot),
        _name(right, (lined_plain, lined, right), dot),
    ))  # fmt: skip


def _name(one: Node, others: tuple[Node, ...], dot: Node) -> Node:
    """Return the node of a name with at least one label of a kind."""
    other = Choice(others)
    return Sequence((Repeat(Sequence((other, dot))), one, Repeat(Sequence((dot, other)))))


def is_idn(text: str) -> bool:
    """Return whether the text is such a name."""
    if text.isascii() or ascii_name_dfa().accepts(text):
        return len(text) <= MOST_NAME and ascii_name_dfa().accepts(text)
    kinds = build_labels()
    parts = split_labels(text)
    fits = [len(part) <= (MOST_LABEL if part.isascii() else MOST_WIDE) for part in parts]
    is_bidirectional = any(kinds.right.accepts(part) for part in parts)
    kinds_allowed = (kinds.lined_ascii, kinds.lined, kinds.right) if is_bidirectional else (kinds.ascii, kinds.left)
    return all(fits) and all(any(kind.accepts(part) for kind in kinds_allowed) for part in parts)


def split_labels(text: str) -> list[str]:
    """Return the labels of a name."""
    for dot in DOTS[2:-1]:
        text = text.replace(dot, ".")
    return text.split(".")


@memoize_work(64)
def ascii_name_dfa() -> Dfa:
    """Return the Dfa of names whose labels are ASCII, with any of the dots."""
    label = to_dfa(LDH).with_length(1, MOST_LABEL)
    return label.concatenate(to_dfa(DOTS).concatenate(label).star())


@memoize_work(64)
def build_labels() -> LabelKinds:
    """Return all kinds of labels."""
    plain, wide = to_dfa(LDH), _contextual()
    bidirectional = _containing(_bidi("R", "AL", "AN"))
    lined = wide.intersect(_set(_bidi(*LEFT_TO_RIGHT)).star()).intersect(_beginning("L")).intersect(_ending("L", "EN"))
    right = wide.intersect(_set(_bidi(*RIGHT_TO_LEFT)).star()).intersect(_beginning("R", "AL"))
    right = right.intersect(_ending("R", "AL", "EN", "AN"))
    right = right.subtract(_containing(_bidi("EN")).intersect(_containing(_bidi("AN"))))
    return LabelKinds(plain, wide.subtract(bidirectional), plain.intersect(to_dfa("[A-Za-z].*")), lined, right)


def _contextual() -> Dfa:
    """Return the non-ASCII labels of RFC 5891 section 4.2.3, without the rules about direction."""
    points = _permitted()
    marks = [point for point in points if unicodedata.category(chr(point))[0] == "M"]
    out = _set(points).star().intersect(_containing(point for point in points if point >= 0x80))
    out = out.subtract(_set(marks).concatenate(_any_text())).subtract(to_dfa("-.*|.*-|..--.*"))
    for allowed in _contextual_rules():
        out = out.intersect(allowed)
    return out


def _contextual_rules() -> Iterator[Dfa]:
    """Return the texts that each contextual rule of RFC 5892, appendix A, allows, over all characters."""
    scripts = _table("scripts")
    greek, hebrew = _set(_ranged(scripts["Greek"])), _set(_ranged(scripts["Hebrew"]))
    kana = {point for name in ("Hiragana", "Katakana", "Han") for point in _ranged(scripts[name])}
    viramas = [point for point in _permitted() if unicodedata.combining(chr(point)) == 9]
    anything, joiner, non_joiner = _any_text(), _set([JOINER]), _set([NON_JOINER])
    # A.2: after a virama.
    yield _forbid_prefix(_ends(viramas).complement().concatenate(joiner))
    # A.1: after a virama, or between two letters that join across it.
    joins = {kind: _set(_joining(kind)) for kind in "LRDT"}
    before = anything.concatenate(joins["L"].union(joins["D"])).concatenate(joins["T"].star())
    after = joins["T"].star().concatenate(joins["R"].union(joins["D"])).concatenate(anything)
    alone = _ends(viramas).complement()
    yield _forbid_prefix(alone.subtract(before).concatenate(non_joiner))
    yield alone.concatenate(non_joiner).concatenate(after.complement()).complement()
    # A.3: between two l.
    yield to_dfa("(?:[^l\u00b7]|l(?:\u00b7l)*)*")
    # A.4: before a Greek letter. A.5, A.6: after a Hebrew one.
    yield anything.concatenate(_set([KERAIA])).concatenate(greek.concatenate(anything).complement()).complement()
    yield _forbid_prefix(anything.concatenate(hebrew).complement().concatenate(_set(GERESH)))
    # A.7: in a label that has Japanese or Chinese letters.
    yield _containing([KATAKANA_DOT]).complement().union(_containing(kana))
    # A.8, A.9: digits of one kind.
    yield _containing(range(0x660, 0x66A)).intersect(_containing(range(0x6F0, 0x6FA))).complement()


def _any_text() -> Dfa:
    return Dfa.any_text()


def _set(points: Iterable[int]) -> Dfa:
    """Return one of these characters."""
    codes = np.unique(np.fromiter(points, np.int64))
    if not codes.size:
        return Dfa.empty()
    gaps = np.flatnonzero(np.diff(codes) > 1)
    firsts, lasts = codes[np.r_[0, gaps + 1]], codes[np.r_[gaps, codes.size - 1]]
    return Dfa.from_ranges(zip(firsts.tolist(), lasts.tolist()))


def _containing(points: Iterable[int]) -> Dfa:
    """Return the texts that contain one of these characters."""
    return _any_text().concatenate(_set(points)).concatenate(_any_text())


def _ends(points: Iterable[int]) -> Dfa:
    """Return the texts that end with one of these characters."""
    return _any_text().concatenate(_set(points))


def _forbid_prefix(wrong: Dfa) -> Dfa:
    """Return the texts that do not begin with a wrong one."""
    return wrong.concatenate(_any_text()).complement()


def _beginning(*classes: str) -> Dfa:
    return _set(_bidi(*classes)).concatenate(_any_text())


def _ending(*classes: str) -> Dfa:
    """Return the texts whose last character, not counting marks, has one of these bidirectional classes."""
    return _ends(_bidi(*classes)).concatenate(_set(_bidi("NSM")).star())


# ---- the characters ----------------------------------------------------------------------------------------------


def _table(name: str) -> dict[Any, Any]:
    """Return a table of `idna`."""
    from idna import idnadata

    table: dict[Any, Any] = getattr(idnadata, name)
    return table


def _ranged(coded: Iterable[int]) -> Iterator[int]:
    """Return the code points of ranges as `idna` encodes them: first and end in one integer."""
    for pair in coded:
        yield from range(pair >> 32, pair & 0xFFFFFFFF)


@memoize_work(64)
def _permitted() -> tuple[int, ...]:
    """Return the code points PVALID, CONTEXTJ and CONTEXTO."""
    classes = _table("codepoint_classes")
    return tuple(sorted(point for name in ("PVALID", "CONTEXTJ", "CONTEXTO") for point in _ranged(classes[name])))


@memoize_work(64)
def _directions() -> dict[str, list[int]]:
    """Return the permitted characters by bidirectional class; "L" for those that this Python's Unicode data lack."""
    out: dict[str, list[int]] = {}
    for point in _permitted():
        out.setdefault(unicodedata.bidirectional(chr(point)) or "L", []).append(point)
    return out


def _bidi(*classes: str) -> list[int]:
    return [point for name in classes for point in _directions().get(name, ())]


def _joining(kind: str) -> list[int]:
    """Return the permitted characters of a joining type. Older tables list it by the code of each character."""
    types: dict[Any, Any] = _table("joining_types")
    if kind in types:
        return sorted(set(_ranged(types[kind])).intersection(_permitted()))
    return [point for point in _permitted() if types.get(point) == ord(kind)]
