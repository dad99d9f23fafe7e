"""Regular expressions without parentheses, as an automaton: terms, escapes, classes and quantifiers of ECMA-262.

A state represents the end of the text so far and what has to be remembered of it: in a class the character that may
begin a range, in braces the first number. (As a pattern for `frontends.regex` this would be an alternative for each of
them; building the states directly takes a fraction of the time.)
"""

from __future__ import annotations

from typing import Union

from ....automata.dfa import SURROGATES, Dfa, Table
from ....base.work import memoize_work

__all__ = ["flat_regex_dfa"]

FlatState = tuple[Union[str, int], ...]
r"""Outside of classes:
    ("none",)            nothing that a quantifier may follow; also the start
    ("atom",)            an atom
    ("sign",)            a quantifier, which ? makes lazy
    ("open", atom)       {, after an atom or not; a literal character unless it begins a quantifier
    ("low", n)           {n after an atom; n is at most 100, which represents all greater numbers
    ("comma", n)         {n,
    ("high", d)          {n,m where m is less than n, unless another digit >= d follows; d == FINE: it is not less;
                         d == LATE: it has two digits, and is accepted if a third follows
    ("wrong", comma)     {n or {n, after nothing that can be repeated
Inside of a class, with the rank of a character (its code if ASCII, else BEYOND; SPECIAL, SET):
    ("fresh", begun)     where a dash is literal: at the start (begun == 0, where alone ^ may follow) or after a range
    ("item", rank)       a character or escape
    ("dash", rank)       a dash after it
Escapes, with their context ("" outside, "item", "dash"; then the rank before the dash):
    ("\", where, rank)   the backslash, and then
    ("hex", n, where)    n digits remain; ("u", where), ("brace", where), ("code", 1 or 10, digits so far, where)
    ("property", some, where), ("value", some, where)    some: whether there is a letter yet; ("p", where) before
    ("name", some, ""), ("k", "") before; ("c", where), ("0", where), ("number", "")
"""

BEYOND, SPECIAL, SET = 128, 129, 130
"""Ranks of non-ASCII characters, of an escape that denotes a character otherwise, and of an escape for a set."""

MOST, FINE, TEN, LATE = 100, -1, 10, 11
"""Numbers of quantifiers are distinguished below MOST."""

DIGITS = "0123456789"
HEX = DIGITS + "abcdefABCDEF"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
PUNCTUATION = "".join(chr(code) for code in range(0x80) if chr(code) not in LETTERS + DIGITS)

VARYING = {
    "item": [ord("-")],
    "low": [*map(ord, DIGITS + ",")],
    "comma": [*map(ord, DIGITS)],
    "high": [*map(ord, DIGITS + "}")],
}
"""Columns in which states of one kind differ; all other columns are the same for all of them."""


@memoize_work(64)
def flat_regex_dfa() -> Dfa:
    """Return the Dfa of flat text; see `regex_format` for the errors that are checked."""
    return Dfa.from_table(_FlatRegexMachine().table())


class _FlatRegexMachine:
    """Builds the Table. Columns: one for each ASCII character, one for all others, and a dead one for surrogates."""

    def __init__(self) -> None:
        first: FlatState = ("none",)
        self.numbers = {first: 0}
        self.order = [first]
        self.models: dict[str, list[int]] = {}

    def table(self) -> Table:
        rows = [self.row(state) for state in self.order]
        bounds, classes = [*range(0x81), *SURROGATES], [*range(0x81), 0x81, 0x80]
        return Table(bounds, classes, rows, [self.is_accepting(state) for state in self.order])

    def number(self, state: FlatState | None) -> int:
        if state is None:
            return -1
        number = self.numbers.get(state)
        if number is None:
            number = self.numbers[state] = len(self.order)
            self.order.append(state)
        return number

    def row(self, state: FlatState) -> list[int]:
        """Return the states after each column. States of one kind differ in few columns, so their rows are copied."""
        kind = str(state[0])
        if kind == "dash":
            return self.after_dash(int(state[1]))
        model = self.models.get(kind)
        if model is None or kind not in VARYING:
            row = [self.number(self.after(state, column)) for column in range(BEYOND + 1)] + [-1]
            self.models[kind] = row
            return row
        row = model.copy()
        for column in VARYING[kind]:
            row[column] = self.number(self.after(state, column))
        return row

    def after_dash(self, rank: int) -> list[int]:
        """Return the states after each column from ("dash", rank)."""
        range_end = self.number(("fresh", 1))
        row = [range_end if self.range(rank, column) else -1 for column in (0, BEYOND)]
        row = [row[0] if rank >= BEYOND else -1] * min(rank, BEYOND) + [range_end] * (BEYOND - rank) + [row[1], -1]
        row[ord("]")], row[ord("\\")] = self.number(("atom",)), self.number(("\\", "dash", rank))
        return row

    def is_accepting(self, state: FlatState) -> bool:
        kind = state[0]
        if kind in ("none", "atom", "sign", "open", "low", "comma", "high", "wrong"):
            return True
        return kind in ("0", "number") and state[1] == ""

    def after(self, state: FlatState, column: int) -> FlatState | None:
        """Return the state after a character of a column."""
        kind, char = state[0], chr(column) if column < 0x80 else ""
        if kind in ("none", "atom", "sign"):
            return self.outside(str(kind), char)
        if kind in ("open", "low", "comma", "high", "wrong"):
            return self.braces(state, char)
        if kind in ("fresh", "item", "dash"):
            return self.inside(state, column, char)
        return self.escape(state, column, char)

    # ---- outside of classes ----------------------------------------------------------------------------------

    def outside(self, kind: str, char: str) -> FlatState | None:
        if char == "{":
            return ("open", int(kind == "atom"))
        if char and char in "*+?":
            if kind == "sign":
                return ("none",) if char == "?" else None
            return ("sign",) if kind == "atom" else None
        if char and char in "^$|":
            return ("none",)
        if char == "\\":
            return ("\\", "", 0)
        if char == "[":
            return ("fresh", 0)
        return None if char and char in "()" else ("atom",)

    def braces(self, state: FlatState, char: str) -> FlatState | None:
        """Return the state inside braces, which are a quantifier or else literal characters."""
        kind, value = state[0], int(state[1])
        digit = DIGITS.find(char) if char else -1
        if kind == "open":
            if digit >= 0:
                return ("low", digit) if value else ("wrong", 0)
        elif kind == "wrong":
            if digit >= 0:
                return state
            if char == "}":
                return None
            if char == "," and not value:
                return ("wrong", 1)
        elif char == "}":
            return None if kind == "high" and value != FINE else ("sign",)
        elif kind == "low":
            if digit >= 0:
                return ("low", min(MOST, 10 * value + digit))
            if char == ",":
                return ("comma", value)
        elif digit >= 0:
            if kind == "comma":
                return _high(value, digit)
            return ("high", FINE if digit >= value or value == LATE else LATE)
        return self.outside("atom", char)

    # ---- inside of a class -----------------------------------------------------------------------------------

    def inside(self, state: FlatState, column: int, char: str) -> FlatState | None:
        kind, rank = state[0], int(state[1])
        if char == "]":
            return ("atom",)
        if char == "\\":
            return ("\\", "dash", rank) if kind == "dash" else ("\\", "item", 0)
        if kind == "dash":
            return self.range(rank, min(column, BEYOND))
        if kind == "fresh" and not rank and char == "^":
            return ("fresh", 1)
        return ("dash", rank) if kind == "item" and char == "-" else ("item", min(column, BEYOND))

    def range(self, low: int, high: int) -> FlatState | None:
        """Return the state after a range, or None if it is none."""
        if SET in (low, high):
            return None
        return ("fresh", 1) if low == SPECIAL or high == SPECIAL or low <= high else None

    # ---- escapes ---------------------------------------------------------------------------------------------

    def after_escape(self, where: str, rank: int, low: int = SPECIAL) -> FlatState | None:
        """Return the state after an escape for a character or a set of them."""
        if where == "":
            return ("atom",)
        return ("item", rank) if where == "item" else self.range(low, rank)

    def escape(self, state: FlatState, column: int, char: str) -> FlatState | None:
        kind, where = state[0], str(state[-1])
        if kind == "\\":
            return self.escaped(str(state[1]), int(state[2]), column, char)
        if kind == "hex":
            left = int(state[1])
            if not char or char not in HEX:
                return None
            return ("hex", left - 1, where) if left > 1 else self.after_escape(where, SPECIAL)
        if kind == "u":
            if char == "{":
                return ("brace", where)
            return ("hex", 3, where) if char and char in HEX else None
        if kind in ("brace", "code"):
            return self.code_point(state, where, char)
        if kind == "c":
            return self.after_escape(where, SPECIAL) if char and char in LETTERS else None
        if kind in ("0", "number"):
            if char and char in DIGITS:
                return ("number", "") if kind == "number" else None
            # The escape has ended: this character follows an atom or item.
            return self.after(self.after_escape(where, SPECIAL) or ("none",), column)
        if kind in ("p", "property", "value"):
            return self.property(state, where, char)
        return self.group_name(state, char)

    def escaped(self, where: str, low: int, column: int, char: str) -> FlatState | None:
        """Return the state after the character that follows a backslash."""
        if char in ("b", "B") and where == "":
            return ("none",)
        if char and char in "dDsSwW":
            return self.after_escape(where, SET, low)
        if low == SET and where == "dash":
            return None
        if char and (char in "fnrtv" or (char == "b" and where)):
            return self.after_escape(where, SPECIAL)
        if char and char in "xu":
            return ("hex", 2, where) if char == "x" else ("u", where)
        if char and char in "pP":
            return None if where == "dash" else ("p", where)
        if char in ("c", "0"):
            return (char, where)
        if char == "k" and where == "":
            return ("k", where)
        if char and char in DIGITS and where == "":
            return ("number", where)
        if char and char not in PUNCTUATION:
            return None
        return self.after_escape(where, min(column, BEYOND), low)

    def code_point(self, state: FlatState, where: str, char: str) -> FlatState | None:
        """Return the state inside u{...}: at most 10FFFF, after any zeros."""
        if state[0] == "code" and char == "}":
            return self.after_escape(where, SPECIAL)
        if not char or char not in HEX:
            return None
        begins, digits = ("", 0) if state[0] == "brace" else (str(state[1]), int(state[2]))
        if digits == 0 and char == "0":
            return ("code", "", 0, where)
        begins = begins + char if begins + char in ("1", "10") or (begins == "10") else "more"
        begins = begins[:2] if begins != "more" else begins
        return ("code", begins, digits + 1, where) if digits < 5 or (digits == 5 and begins == "10") else None

    def property(self, state: FlatState, where: str, char: str) -> FlatState | None:
        """Return the state inside p{Name} or p{Name=Value}."""
        if state[0] == "p":
            return ("property", 0, where) if char == "{" else None
        if char and (char in LETTERS or char == "_"):
            return (state[0], 1, where)
        if state[1] and char == "}":
            return self.after_escape(where, SET)
        return ("value", 0, where) if state[1] and char == "=" and state[0] == "property" else None

    def group_name(self, state: FlatState, char: str) -> FlatState | None:
        """Return the state inside k<name>."""
        if state[0] == "k":
            return ("name", 0, "") if char == "<" else None
        if char == ">":
            return ("atom",) if state[1] else None
        begins = not char or char in LETTERS or char in "_$"
        return ("name", 1, "") if begins or (state[1] and char in DIGITS) else None


def _high(low: int, digit: int) -> FlatState:
    """Return the state after the first digit of the second number."""
    return ("high", FINE if digit >= low else max(0, min(TEN, low - 10 * digit)))
