"""User options: how JSON is spelled (`Style`) and the budgets of compiling and matching (`Limits`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from .errors import ArgumentError, check_choice, check_count
from .keyword_names import explain_class_keywords

__all__ = ["Limits", "Style"]


class _Hashed:
    """Keeps the hash of options, which are a part of many cache keys. It is no field, and so is not saved."""

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            number = hash(tuple([getattr(self, one.name) for one in fields(self)]))  # type: ignore[arg-type]
            object.__setattr__(self, "_hash", number)
            return number


@explain_class_keywords
@dataclass(frozen=True, slots=True)
class Style(_Hashed):
    """How JSON values are spelled where JSON leaves a choice. The defaults suit language models.

    Parameters
    ----------
    whitespace : {"flexible", "compact", "any"} or int
        "flexible": what common JSON writers produce, compact or indented, with a bound so that whitespace cannot run
        away: nothing or one space after a colon; nothing, one space, or one line break and up to 64 spaces or 64 tabs
        after a comma and inside brackets, but no line break in an empty array or object; nothing before a comma or
        colon and around the root. "compact": no whitespace. "any": all whitespace of RFC 8259, without a bound. An int
        from 0 to 64: a new line for each member, indented by that many spaces per level, and `": "` after a key.
    key_order : {"schema", "any"}
        "schema": members in the order of `properties`; optional ones may be omitted, undeclared ones come last. "any":
        every order. Duplicate keys are refused in both.
    escapes : {"canonical", "any"}
        How keys and constants are spelled. "canonical": as `json.dumps(ensure_ascii=False)` does. "any": with any
        escapes. The content of a free string may always use any escape.
    numbers : {"plain", "any"}
        "plain": integers without fraction or exponent, and numbers with bounds other than 0 without exponent. "any":
        every spelling, such as `1.0` and `1e2` for an integer.
    digits : int or None
        Most consecutive digits in the integer part and in the fraction of a number, unless its schema requires more.
        None for no limit.
    formats : {"assert", "annotate"}
        "assert": `format` is enforced. "annotate": it is ignored.

    Raises
    ------
    ArgumentError
        If a value is not one of the options.
    TypeError
        If a value has the wrong type.
    """

    __hash__ = _Hashed.__hash__

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
        """Return the style that allows everything that RFC 8259 and the schema allow.

        Exactness is defined with respect to this style.

        Returns
        -------
        Style
        """
        return cls(whitespace="any", key_order="any", escapes="any", numbers="any", digits=None)


@explain_class_keywords
@dataclass(frozen=True, slots=True)
class Limits(_Hashed):
    """Budgets of compiling and matching. All are counted, none is a time; exceeding one raises LimitError.

    Parameters
    ----------
    dfa_states : int
        Most states of one DFA.
    nesting : int
        Deepest nesting of a schema, regular expression or grammar: levels of brackets in a text, or of lists and
        objects in a document.
    cases : int
        Most cases of a product of unions in a schema.
    state_cache_bytes : int
        Most bytes of one thread's state cache of a Constraint. A larger cache is evicted and rebuilt.
    work : int
        Most units of work (see `constrain.base.work`; one takes about a microsecond) of all constructions of one
        compile together.

    Raises
    ------
    TypeError
        If a value is not an integer.
    ArgumentError
        If a value is less than 1.
    """

    __hash__ = _Hashed.__hash__

    dfa_states: int = 20_000
    nesting: int = 256
    cases: int = 2_048
    state_cache_bytes: int = 256 << 20
    work: int = 4_000_000

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, check_count(f"Limits({one.name}=...)", getattr(self, one.name), 1))
