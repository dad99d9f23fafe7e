"""The choices that a user has: how JSON is spelled (`Style`) and how much may be spent (`Limits`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from .errors import ArgumentError, check_choice, check_count

__all__ = ["Limits", "Style"]


@dataclass(frozen=True, slots=True)
class Style:
    """How a value is spelled, where JSON leaves it open. The defaults suit language models.

    whitespace: "flexible": what JSON writers produce, compact or readable, so that it cannot run away: after a
        colon nothing or one space; after a comma and inside brackets nothing, one space, or one line break and
        up to 64 spaces or 64 tabs; before a comma or colon and around the root nothing. "compact": none; "any":
        all that RFC 8259 allows, without a bound; an int: a new line for each member, indented by that many
        spaces a level, `": "` after a key.
    key_order: "schema": the order of `properties`, optional ones may be left out, undeclared ones come last;
        "any": every order. Duplicate keys are refused in both.
    escapes: how keys and constants are spelled. "canonical": as `json.dumps(ensure_ascii=False)` does;
        "any": with any escapes. The text of a free string may always use any escape.
    numbers: "plain": integers without fraction or exponent, numbers with bounds other than 0 without
        exponent; "any": every spelling, such as `1.0` and `1e2` for an integer.
    digits: most digits in a row, in the integer part and in the fraction, of a number whose schema does
        not itself demand more. None: no cap.
    formats: "assert": `format` is enforced; "annotate": it is not.
    """

    whitespace: Literal["flexible", "compact", "any"] | int = "flexible"
    key_order: Literal["schema", "any"] = "schema"
    escapes: Literal["canonical", "any"] = "canonical"
    numbers: Literal["plain", "any"] = "plain"
    digits: int | None = 40
    formats: Literal["assert", "annotate"] = "assert"

    def __post_init__(self) -> None:
        options: dict[str, tuple[str, ...]] = {
            "key_order": ("schema", "any"),
            "escapes": ("canonical", "any"),
            "numbers": ("plain", "any"),
            "formats": ("assert", "annotate"),
        }
        if isinstance(self.whitespace, bool) or not (type(self.whitespace) is int and 0 <= self.whitespace <= 64):
            options["whitespace"] = ("flexible", "compact", "any")
        if "whitespace" in options and isinstance(self.whitespace, int):
            raise ArgumentError(f"Style(whitespace={self.whitespace!r}): 0 to 64, or 'flexible', 'compact', 'any'")
        for name, values in options.items():
            check_choice(f"Style({name}=...)", getattr(self, name), values)
        if self.digits is not None:
            object.__setattr__(self, "digits", check_count("Style(digits=...)", self.digits, 1))

    @classmethod
    def any(cls) -> Style:
        """Everything that RFC 8259 and the schema allow: the style in which exactness is judged."""
        return cls(whitespace="any", key_order="any", escapes="any", numbers="any", digits=None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets, each counted, none timed; what exceeds one is refused by name with `LimitError`.

    dfa_states: most states of one regular piece. nesting: deepest nesting of a schema, regex or grammar source: levels
    of brackets in the text, of lists and objects in a document, the same count everywhere. cases: most cases that a
    product of unions in a schema may have. state_cache_bytes: most memory of one thread's sets and memos for one
    Constraint, beyond which they are forgotten and made anew. work: most units of work (see `constrain.base.work`; one
    is about a microsecond) that all constructions of one compile may need together.
    """

    dfa_states: int = 20_000
    nesting: int = 256
    cases: int = 2_048
    state_cache_bytes: int = 256 << 20
    work: int = 4_000_000

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, check_count(f"Limits({one.name}=...)", getattr(self, one.name), 1))
