"""Judge whether a text is valid, twice: by jsonschema as it is, and by jsonschema with exact numbers and patterns.

The plain verdict is that of the labels of MaskBench: the validator class of the dialect (default: 2020-12), with
formats asserted. Numbers are floats (so `multipleOf` 0.01 rejects 4.35) and patterns are Python's (`\\d` matches a
Bengali digit, `$` also matches before a final line feed). For the exact verdict numbers of text and schema are
rationals and patterns are translated to the semantics of ECMA 262. Relative JSON pointers differ, too: jsonschema
rejects a number with a 0 before another digit, such as 101. It accepts any text with an @ as an `email`, which has
ASCII characters only. Where the two verdicts differ, an error is counted as in doubt.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from .values import decode_json

__all__ = ["Judge", "Verdict", "build_judge", "translate_pattern"]

WHITE = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""ECMA 262's `\\s`: its white space and line terminators (12.2, 12.3)."""
RELATIVE_POINTER = re.compile(r"(0|[1-9][0-9]*)([+-](0|[1-9][0-9]*))?(#|(/([^~/]|~[01])*)*)")
"""draft-bhutton-relative-json-pointer-00, section 3."""
FEWEST = 4_000
"""Number of digits beyond which Python does not parse an int; such a text is not judged."""


class Verdict(NamedTuple):
    """plain, exact: whether the text is valid, None if jsonschema raises an exception. why: the error, or ""."""

    plain: bool | None
    exact: bool | None
    why: str = ""

    @property
    def valid(self) -> bool:
        """Whether both verdicts are valid."""
        return bool(self.plain and self.exact)

    @property
    def invalid(self) -> bool:
        """Whether the exact verdict is invalid."""
        return self.exact is False

    @property
    def differ(self) -> bool:
        """Whether the verdict depends on floats or on Python's patterns."""
        return self.plain is not None and self.exact is not None and self.plain != self.exact


@lru_cache(maxsize=1)
def make_exact_checker() -> Any:
    """Return the format checker of 2020-12 with relative JSON pointers by their own grammar, and addresses in ASCII."""
    from jsonschema import Draft202012Validator, FormatChecker

    exact = FormatChecker(())
    exact.checkers = dict(Draft202012Validator.FORMAT_CHECKER.checkers)
    exact.checks("relative-json-pointer")(is_relative_pointer)
    exact.checks("email")(is_address)
    return exact


def is_relative_pointer(value: object) -> bool:
    """Return whether a value is not a string, or a relative JSON pointer."""
    return not isinstance(value, str) or RELATIVE_POINTER.fullmatch(value) is not None


def is_address(value: object) -> bool:
    """Return whether a value is not a string, or may be an address of RFC 5321, all of whose characters are ASCII."""
    return not isinstance(value, str) or ("@" in value and value.isascii())


class Judge:
    """A judge of the texts of one schema. Raises ImportError without jsonschema."""

    def __init__(self, schema: str) -> None:
        from jsonschema import Draft202012Validator, validators
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        plain = json.loads(schema)
        dialect = validators.validator_for(plain, default=Draft202012Validator)
        checker = Draft202012Validator.FORMAT_CHECKER
        own = dialect.TYPE_CHECKER
        if own.is_type(1.0, "integer"):
            own = own.redefine("integer", is_whole)
        exact = validators.extend(dialect, type_checker=own)
        # With an explicit registry no schema is fetched.
        self.plain = dialect(plain, format_checker=checker, registry=REGISTRY)
        self.exact = exact(
            make_exact(decode_json(schema, exact=True)), format_checker=make_exact_checker(), registry=REGISTRY
        )

    def __call__(self, text: str) -> Verdict:
        """Return the verdict on one text."""
        answers: list[bool | None] = []
        why = ""
        for validator, exact in ((self.plain, False), (self.exact, True)):
            try:
                value = decode_json(text, exact=exact)
            except ValueError as error:
                if "Exceeds the limit" in str(error):
                    return Verdict(None, None, str(error))
                return Verdict(False, False, f"not JSON: {error}")
            except RecursionError:
                return Verdict(None, None, "nested too deeply for json")
            try:
                wrong = next(validator.iter_errors(value), None)
                answers.append(wrong is None)
                if wrong is not None:
                    why = f"{wrong.validator}, at {wrong.json_path}, by {'/'.join(map(str, wrong.schema_path))}"
            except Exception as error:  # an unknown reference, a pattern that Python does not take, recursion
                answers.append(None)
                why = why or f"{type(error).__name__}: {str(error)[:100]}"
        return Verdict(answers[0], answers[1], why)


def build_judge(schema: str) -> Judge | None:
    """Return the judge of a schema's texts, or None if jsonschema cannot read the schema."""
    try:
        return Judge(schema)
    except Exception:
        return None


def is_whole(checker: Any, value: Any) -> bool:
    """Return whether a value is an integer; since draft 6 this includes 1.0."""
    return not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1)
    )


def make_exact(schema: Any) -> Any:
    """Return the schema with translated patterns, and without `$schema`, which would select jsonschema's own class."""
    if isinstance(schema, list):
        return [make_exact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key == "$schema" and isinstance(value, str):
            continue
        if key == "pattern" and isinstance(value, str):
            value = translate_pattern(value)
        elif key == "patternProperties" and isinstance(value, dict):
            value = {translate_pattern(pattern): make_exact(child) for pattern, child in value.items()}
        elif key not in ("enum", "const", "default", "examples"):
            value = make_exact(value)
        out[key] = value
    return out


@lru_cache(maxsize=4096)
def translate_pattern(pattern: str) -> str:
    """Translate a pattern of ECMA 262 for Python's `re`, as far as `$ . \\d \\w \\s \\b` are concerned."""
    out, position, inside = [], 0, False
    while position < len(pattern):
        two = pattern[position : position + 2]
        if two[0] == "\\" and len(two) == 2:
            position += 2
            if two in ("\\s", "\\S"):
                negated = two == "\\S"
                out.append(two if inside and negated else WHITE if inside else f"[{'^' * negated}{WHITE}]")
            else:
                out.append(two[1] if two == "\\/" else two)
            continue
        position += 1
        if inside:
            inside = two[0] != "]"
            out.append("\\[" if two[0] == "[" else two[0])
        elif two[0] == "[":
            inside = True
            out.append("[")
        else:
            out.append({"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}.get(two[0], two[0]))
    return f"(?a:{''.join(out)})"  # ASCII: digits, words and word boundaries
