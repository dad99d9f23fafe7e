"""Parser of regular expressions in both dialects.

"python" is the syntax of `re` on str. "ecma" is that of ECMA-262 in Unicode mode, as lenient as patterns in JSON
Schemas require: `\\-`, `\\/`, a lone `{`, `}` or `]`, and `[\\w-.]` are literal as in its Annex B. Nothing is ignored:
a syntax error is a RegexError with its position, and a feature that cannot be compiled to an automaton is an
UnsupportedError.

Open groups are kept on a stack, so nesting does not use recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby

from ...base.errors import LimitError, RegexError, UnsupportedError
from ...base.work import spend_work
from .backreferences import BackReference, CaptureGroup, expand_references
from .character_classes import EscapeParser
from .charset import ALL, CharSet, charset_of, complement_charset, unite_charsets
from .regex_tree import (
    EMPTY,
    Alternation,
    Anchor,
    AnchorKind,
    Concatenation,
    Direction,
    Lookaround,
    OneOf,
    Repetition,
    Term,
    repeat_term,
)
from .unicode_properties import Dialect, Folding, class_escape, close_over_case

__all__ = ["parse_pattern"]

LOOKS: dict[str, tuple[Direction, bool]] = {
    "=": ("ahead", False), "!": ("ahead", True), "<=": ("behind", False), "<!": ("behind", True),
}  # fmt: skip
"""Map from what follows `(?` to the direction of a lookaround and whether it is negated."""

REFUSED = {">": "an atomic group", "(": "a conditional group"}

MOST_CHARACTERS = 250_000
"""Longest pattern that is parsed, which takes half a second: ten times the most states of an automaton."""
MOST_DIGITS = 18
"""Most digits of a quantifier's bound, without leading zeros: larger than any automaton can count."""
SPECIAL = frozenset("|()*+?{^$.[\\")
ECMA_TERMINATORS = unite_charsets(map(charset_of, (0x0A, 0x0D, 0x2028, 0x2029)))


def parse_pattern(pattern: str, *, dialect: Dialect, flags: str, nesting: int, ordered: bool = False) -> Term:
    """Return the tree of a pattern.

    Parameters
    ----------
    pattern : str
        The regular expression.
    dialect : {"python", "ecma"}
        Its syntax and semantics.
    flags : str
        Letters as in an inline group: a, i, m, s, u, x; of "ecma" i, m, s, u.
    nesting : int
        Most levels of groups.
    ordered : bool
        Whether the tree preserves the preference of a backtracking matcher among matches; backreferences are then
        refused.

    Returns
    -------
    Term

    Raises
    ------
    RegexError, UnsupportedError, LimitError
        With a position in the pattern.
    """
    known = "aimsux" if dialect == "python" else "imsu"
    for flag in flags:
        if flag not in known:
            raise RegexError(f"flag {flag!r} is none of {', '.join(known)}", hint="These are the flags of its dialect.")
    if len(pattern) > MOST_CHARACTERS:
        raise LimitError(
            f"the pattern has {len(pattern)} characters, more than {MOST_CHARACTERS}",
            source=pattern, position=0, hint="Choices between many texts are an enum, which has no such limit.",
        )  # fmt: skip
    spend_work(len(pattern), "a pattern")
    return _Parser(pattern, dialect, frozenset(flags) - {"u"}, nesting, ordered).run()


@dataclass(slots=True)
class _Group:
    """An open group.

    position: its offset. flags: those to restore at its end. look: direction and negation of a lookaround. number: of a
    capture group, else 0. options: its finished alternatives. parts: those of the current alternative, each a term and
    whether a quantifier may follow it: "" (yes), "anchor" or "repeat" (no, and why).
    """

    position: int
    flags: frozenset[str]
    look: tuple[Direction, bool] | None = None
    number: int = 0
    options: list[Term] = field(default_factory=list)
    parts: list[tuple[Term, str]] = field(default_factory=list)

    def close_option(self) -> None:
        terms = [term for term, _ in self.parts if term is not EMPTY]
        self.options.append(terms[0] if len(terms) == 1 else Concatenation(tuple(terms)) if terms else EMPTY)
        self.parts = []

    def term(self) -> Term:
        """Return the term of the finished group; alternatives of one character each are merged into one set."""
        if len(self.options) == 1:
            return self.options[0]
        merged: list[Term] = []
        for is_single, options in groupby(self.options, key=lambda option: isinstance(option, OneOf)):
            if is_single:
                merged.append(OneOf(unite_charsets(option.charset for option in options if isinstance(option, OneOf))))
            else:
                merged.extend(options)
        return merged[0] if len(merged) == 1 else Alternation(tuple(merged))


class _Parser:
    def __init__(self, pattern: str, dialect: Dialect, flags: frozenset[str], nesting: int, ordered: bool) -> None:
        self.source = pattern
        self.ordered = ordered
        self.dialect = dialect
        self.flags = flags
        self.nesting = nesting
        self.position = 0
        self.stack = [_Group(0, flags)]
        self.groups = 0
        self.names: dict[str, int] = {}
        self.references: list[BackReference] = []
        self.escapes = EscapeParser(pattern, dialect)
        self.referring = re.search(r"\\[1-9k]|\(\?P=", pattern) is not None

    # ---- small tools --------------------------------------------------------------------------------------------

    def wrong(self, cause: str, position: int, hint: str = "") -> RegexError:
        return RegexError(cause, source=self.source, position=position, hint=hint)

    def refused(self, what: str, position: int, hint: str = "") -> UnsupportedError:
        return UnsupportedError(
            f"{what} is not supported",
            source=self.source,
            position=position,
            hint=hint or "Rewrite the pattern without it: it cannot be enforced here and is not ignored.",
        )

    def take(self, text: str) -> bool:
        """Skip `text` if it is next; return whether it was."""
        if self.source.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def digits(self) -> str:
        start = self.position
        while self.source[self.position : self.position + 1] in tuple("0123456789"):
            self.position += 1
        return self.source[start : self.position]

    def folding(self) -> Folding:
        if "i" not in self.flags:
            return "none"
        return "ecma" if self.dialect == "ecma" else "ascii" if "a" in self.flags else "python"

    def add(self, term: Term, kind: str = "") -> None:
        self.stack[-1].parts.append((term, kind))

    def add_set(self, charset: CharSet) -> None:
        self.add(OneOf(charset))

    # ---- the loop -----------------------------------------------------------------------------------------------

    def run(self) -> Term:
        source, size = self.source, len(self.source)
        while self.position < size:
            start, char = self.position, source[self.position]
            self.position += 1
            if char not in SPECIAL and not self.flags:
                self.stack[-1].parts.append((OneOf(charset_of(ord(char))), ""))
            elif "x" in self.flags and (char in " \t\n\r\v\f" or char == "#"):
                if char == "#":
                    end = source.find("\n", start)
                    self.position = end + 1 if end >= 0 else size
            elif char == "|":
                self.stack[-1].close_option()
            elif char == "(":
                self.open(start)
            elif char == ")":
                self.close(start)
            elif char in "*+?{":
                self.quantifier(start, char)
            elif char == "^":
                self.add(Anchor("line_begin" if "m" in self.flags else "begin"), "anchor")
            elif char == "$":
                plain: AnchorKind = "end" if self.dialect == "ecma" else "last_line_end"
                self.add(Anchor("line_end" if "m" in self.flags else plain), "anchor")
            elif char == ".":
                self.add_set(self.dot())
            elif char == "[":
                charset, self.position = self.escapes.bracket(self.position, "a" in self.flags, self.folding())
                self.add_set(charset)
            elif char == "\\":
                self.escape(start)
            else:
                self.add_set(close_over_case(charset_of(ord(char)), self.folding()))
        if len(self.stack) > 1:
            raise self.wrong(
                "this group is not closed", self.stack[-1].position, "Add ), or write \\( for the character."
            )
        self.stack[0].close_option()
        tree = self.stack[0].term()
        for reference in self.references:
            if reference.number > self.groups:
                raise self.wrong(f"there is no group {reference.number} to refer to", reference.position)
        result = expand_references(tree) if self.references else tree
        if isinstance(result, BackReference):
            hint = "It may refer to a group just in front, not repeated, of few texts: else write these out."
            raise self.refused("a backreference", result.position, hint)
        return result

    def dot(self) -> CharSet:
        if "s" in self.flags:
            return ALL
        return complement_charset(ECMA_TERMINATORS if self.dialect == "ecma" else charset_of(0x0A))

    def escape(self, start: int) -> None:
        """Parse an escape outside of brackets, after its backslash."""
        char = self.source[self.position : self.position + 1]
        if char in ("b", "B") and char:
            self.position += 1
            word = class_escape("w", self.dialect, "a" if "a" in self.flags else "")
            if self.dialect == "ecma":
                word = close_over_case(word, self.folding())
            edge = word_boundary(OneOf(word)) if char == "b" else no_word_boundary(OneOf(word), self.dialect)
            self.add(edge, "anchor")
            return
        if char == "k" and self.dialect == "ecma":
            self.position += 1
            self.refer_by_name(start, self.take("<"), ">")
            return
        if self.dialect == "python" and char in ("A", "Z", "z") and char:
            self.position += 1
            self.add(Anchor("begin" if char == "A" else "end"), "anchor")
            return
        reference, end = self.escapes.reference(self.position)
        if reference:
            self.position = end
            self.refer(start, reference)
            return
        charset, self.position, literal = self.escapes.escape(self.position, "a" in self.flags, self.folding())
        # Classes such as \d need no further case folding, see `EscapeParser.escape`.
        self.add_set(close_over_case(charset, self.folding()) if literal else charset)

    def refer(self, start: int, number: int) -> None:
        """Add a backreference, which is expanded at the end of the pattern."""
        if self.ordered:
            raise self.refused("a backreference", start, "Write out the texts that it may refer to: a.*a|b.*b.")
        self.references.append(BackReference((), number, start, self.folding()))
        self.add(self.references[-1])

    def refer_by_name(self, start: int, opened: bool, closing: str) -> None:
        """Parse the name of a backreference, after its opening delimiter."""
        end = self.source.find(closing, self.position)
        name = self.source[self.position : max(end, self.position)]
        if opened and name and f"(?<{name}>" in self.source[end:]:
            raise self.refused("a backreference to a later group", start)
        if not opened or name not in self.names:
            raise self.wrong(f"there is no group {name!r} before it to refer to", start)
        self.position = end + 1
        self.refer(start, self.names[name])

    # ---- groups -------------------------------------------------------------------------------------------------

    def open(self, start: int) -> None:
        before, groups = self.flags, self.groups
        look = None
        if self.take("?"):
            look = next((LOOKS[mark] for mark in LOOKS if self.take(mark)), None)
            if look is None and not self.extension(start):
                return
        else:
            self.groups += 1
        if len(self.stack) > self.nesting:
            raise LimitError(
                f"groups are nested deeper than {self.nesting} (Limits.nesting)", source=self.source, position=start
            )
        self.stack.append(_Group(start, before, look, self.groups if self.groups > groups else 0))

    def close(self, start: int) -> None:
        if len(self.stack) == 1:
            raise self.wrong("there is no group to close", start, "Write \\) for the character.")
        group = self.stack.pop()
        group.close_option()
        self.flags = group.flags
        if group.look is None:
            self.add(CaptureGroup((group.term(),), group.number) if group.number and self.referring else group.term())
        else:  # ECMA-262 allows quantifiers after lookaheads only (section B.1.2), `re` also after lookbehinds.
            fixed = self.dialect == "ecma" and group.look[0] == "behind"
            self.add(Lookaround(group.term(), *group.look), "anchor" if fixed else "")

    def extension(self, start: int) -> bool:
        """Parse what follows `(?`; return whether a group was opened."""
        if self.take(":"):
            return True
        if self.take("#"):
            end = self.source.find(")", self.position)
            if end < 0 or self.dialect == "ecma":
                raise self.wrong("this comment is not closed" if end < 0 else "ECMA-262 has no comments", start)
            self.position = end + 1
            return False
        if self.take("P="):
            self.refer_by_name(start, True, ")")
            return False
        for mark, what in REFUSED.items():
            if self.take(mark):
                raise self.refused(what, start)
        if self.take("P<") or self.take("<"):
            self.name(start)
            self.groups += 1
            return True
        return self.set_flags(start)

    def name(self, start: int) -> None:
        first = self.position
        end = self.source.find(">", first)
        name = self.source[first : max(end, first)]
        if not name.replace("$", "_").isidentifier() or (self.dialect == "python" and not name.isidentifier()):
            raise self.wrong("a group needs a name of letters, digits and _ between < and >", first)
        if name in self.names and self.dialect == "python":
            raise self.wrong(f"the group name {name} is taken", first)
        # ECMA-262 allows the same name in several alternatives.
        self.names[name] = 0 if name in self.names else self.groups + 1
        self.position = end + 1

    def set_flags(self, start: int) -> bool:
        """Parse flags after `(?`: `(?i)` for the rest of the pattern, or `(?i-s:...)`, which opens a group."""
        known = "aiLmsux" if self.dialect == "python" else "ims"
        sets: list[set[str]] = [set(), set()]
        side = 0
        while self.position < len(self.source):
            char = self.source[self.position]
            if char in known:
                if char == "L":
                    raise self.wrong("flag L is for bytes", self.position)
                sets[side].add(char)
            elif char == "-" and side == 0:
                side = 1
            else:
                break
            self.position += 1
        on, off = sets
        closing = self.source[self.position : self.position + 1]
        if closing not in (":", ")") or not on | off or on & off or (side and not off) or {"a", "u"} & off:
            raise self.wrong(
                "this kind of group is unknown", start, "Groups are (...), (?:...), (?<name>...), (?i:...)."
            )
        self.position += 1
        if closing == ")":
            if side or len(self.stack) > 1 or self.stack[0].options or self.stack[0].parts:
                raise self.wrong("flags for all of the pattern must be at its start", start, "Use (?i:...) for a part.")
            self.flags |= on - {"u"}
            self.stack[0].flags = self.flags
            return False
        self.flags = (self.flags | on) - off - ({"a"} if "u" in on else set()) - {"u"}
        return True

    # ---- quantifiers --------------------------------------------------------------------------------------------

    def quantifier(self, start: int, char: str) -> None:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char) if char != "{" else self.braces()
        if bounds is None:
            self.position = start + 1
            self.add_set(charset_of(ord("{")))
            return
        low, high = bounds
        if high is not None and high < low:
            raise self.wrong(f"repetition of at least {low} and at most {high} times", start)
        parts = self.stack[-1].parts
        term, kind = parts[-1] if parts else (EMPTY, "anchor")
        if kind:
            what = "there is nothing to repeat" if kind == "anchor" else "this is repeated already"
            raise self.wrong(what, start, f"Write \\{char} for the character.")
        lazy = self.take("?")  # Laziness does not change the language.
        if not lazy and self.dialect == "python" and self.take("+") and not (low == high and isinstance(term, OneOf)):
            raise self.refused("a possessive quantifier", start)
        result = repeat_term(term, low, high)
        if self.ordered and isinstance(result, Repetition):  # Merging nested repetitions would lose the order.
            result = Repetition(term, low, high, lazy)
        parts[-1] = (result, "repeat")

    def braces(self) -> tuple[int, int | None] | None:
        """Parse what follows `{`; return its bounds, or None if the brace is literal."""
        low = self.digits()
        comma = self.take(",")
        high = self.digits() if comma else low
        if not self.take("}") or not (low or (comma and self.dialect == "python")):
            return None
        return self.bound(low or "0"), self.bound(high) if high else None

    def bound(self, digits: str) -> int:
        """Return a bound of a quantifier; raise LimitError if it has more than `MOST_DIGITS` digits."""
        digits = digits.lstrip("0") or "0"
        if len(digits) > MOST_DIGITS:
            raise LimitError(
                f"a quantifier has a bound of {len(digits)} digits, more than {MOST_DIGITS}",
                source=self.source, position=self.position - 1, hint="Repeat less often, or without a bound.",
            )  # fmt: skip
        return int(digits)


def word_boundary(word: OneOf) -> Term:
    """Return the term of `\\b`: a word character on exactly one side."""
    first = Concatenation((Lookaround(word, "behind", True), Lookaround(word, "ahead", False)))
    last = Concatenation((Lookaround(word, "behind", False), Lookaround(word, "ahead", True)))
    return Alternation((first, last))


def no_word_boundary(word: OneOf, dialect: Dialect) -> Term:
    """Return the term of `\\B`: a word character on both sides or on neither."""
    both = Concatenation((Lookaround(word, "behind", False), Lookaround(word, "ahead", False)))
    neither = [Lookaround(word, "behind", True), Lookaround(word, "ahead", True)]
    if dialect == "ecma" or re.search("\\B", ""):
        return Alternation((both, Concatenation(tuple(neither))))
    # Before Python 3.14, \B of `re` does not match in the empty text.
    character = OneOf(ALL)
    text = Alternation((Lookaround(character, "behind", False), Lookaround(character, "ahead", False)))
    return Alternation((both, Concatenation((*neither, text))))
