"""Validate an instance with the `jsonschema` package, if installed, and explain why it disagrees with constrain."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from ..authoring.explanations import first_refusal
from ..base.errors import ConstrainError
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import compile
from ..frontends.json_schema.strings.schema_patterns import pattern_dfa
from ..vocabulary.vocabulary import Vocabulary
from .common_arguments import SchemaOptions

__all__ = ["NOT_INSTALLED", "CrossCheck", "validate_independently", "explain_difference"]

NOT_INSTALLED = 'jsonschema is not installed: pip install "constrain-lm[validate]"'
"""The message of a CrossCheck if there is no second validator, which is no fault."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The verdict of jsonschema on an instance. "none": no verdict, for the reason in `message`."""

    verdict: Literal["valid", "invalid", "none"]
    message: str = ""
    keyword: str = ""


def validate_independently(
    schema: str, instance: bytes, options: SchemaOptions = SchemaOptions(), *, parse: Callable[[str], Any] = json.loads
) -> CrossCheck:
    """Validate an instance with jsonschema, with the registry and formats of the options.

    Nothing is fetched. parse: the JSON parser.
    """
    try:
        import jsonschema
    except ImportError:
        return CrossCheck("none", NOT_INSTALLED)
    try:
        value = parse(instance.decode("utf-8"))
    except ValueError as error:
        return CrossCheck("invalid", f"not JSON: {error}")
    except RecursionError:
        return CrossCheck("none", "the instance is nested too deeply for Python's json module")
    try:
        worst = jsonschema.exceptions.best_match(validator_of(schema, options, parse).iter_errors(value))
    except jsonschema.SchemaError as error:
        return CrossCheck("none", f"jsonschema rejects the schema: {error.message}")
    except RecursionError:
        return CrossCheck("none", "the schema or instance is nested too deeply for jsonschema")
    except Exception as error:  # a third-party package may raise anything on a schema that it cannot handle
        return CrossCheck("none", f"jsonschema failed: {type(error).__name__}: {error}")
    if worst is None:
        return CrossCheck("valid")
    return CrossCheck("invalid", f"{worst.json_path}: {worst.message}", str(worst.validator))


@lru_cache(maxsize=4)
def validator_of(schema: str, options: SchemaOptions, parse: Callable[[str], Any]) -> Any:
    """Return the validator of a schema, for the dialect that it declares. Exceptions of jsonschema are propagated."""
    import jsonschema
    import referencing.jsonschema
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    document = parse(schema)
    if options.base_uri and isinstance(document, dict) and not {"$id", "id", "$ref"} & document.keys():
        document = {"$id": options.base_uri, "id": options.base_uri, **document}
    dialect = jsonschema.validators.validator_for(document, default=jsonschema.Draft202012Validator)
    dialect.check_schema(document)
    specification = referencing.jsonschema.specification_with(dialect.ID_OF(dialect.META_SCHEMA))
    documents = (
        (uri, specification.detect(content), content) for uri, text in options.documents for content in [parse(text)]
    )
    registry = REGISTRY.with_resources((uri, spec.create_resource(content)) for uri, spec, content in documents)
    checker = dialect.FORMAT_CHECKER if options.style.formats == "assert" else None
    return limit_patterns(dialect)(document, format_checker=checker, registry=registry)


@lru_cache(maxsize=16)
def limit_patterns(dialect: Any) -> Any:
    """Return the same dialect with keywords that match patterns by `match_pattern`.

    So no pattern takes exponential time.
    """
    import jsonschema
    from jsonschema.exceptions import ValidationError

    def pattern(validator: Any, expression: str, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not match_pattern(expression, value):
            yield ValidationError(f"{value!r} does not match {expression!r}")

    def pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            for expression, inner in patterns.items():
                for name in value:
                    if match_pattern(expression, name):
                        yield from validator.descend(value[name], inner, path=name, schema_path=expression)

    def additional_properties(validator: Any, inner: Any, value: Any, schema: Any) -> Iterator[Any]:
        if not validator.is_type(value, "object"):
            return
        patterns, named = schema.get("patternProperties", {}), schema.get("properties", {})
        extra = [name for name in value if name not in named and not any(match_pattern(one, name) for one in patterns)]
        if validator.is_type(inner, "object"):
            for name in extra:
                yield from validator.descend(value[name], inner, path=name)
        elif not inner and extra:
            yield ValidationError(f"Additional properties are not allowed ({', '.join(map(repr, extra[:3]))})")

    def unevaluated_properties(validator: Any, inner: Any, value: Any, schema: Any) -> Iterator[Any]:
        if '"patternProperties"' in json.dumps(validator.schema, default=str):
            raise NotImplementedError("unevaluatedProperties together with patterns, which may take exponential time")
        yield from dialect.VALIDATORS["unevaluatedProperties"](validator, inner, value, schema)

    replacements = {
        "pattern": pattern, "patternProperties": pattern_properties, "additionalProperties": additional_properties,
        "unevaluatedProperties": unevaluated_properties,
    }  # fmt: skip
    supported = {name: keyword for name, keyword in replacements.items() if name in dialect.VALIDATORS}
    return jsonschema.validators.extend(dialect, supported)


MOST_OPTIONS = 10
"""Maximum number of optional parts in a pattern that is passed to Python's `re`, which may try each of their
subsets."""


def match_pattern(expression: str, text: str) -> bool:
    """Return whether a pattern is found in a text.

    Python's `re` is used if the pattern has no repetition and few optional parts, else constrain's automaton.
    """

    if not any(char in expression for char in "*+{") and expression.count("?") <= MOST_OPTIONS:
        return re.search(expression, text) is not None
    return pattern_dfa(expression, Limits().dfa_states).accepts(text)


def explain_difference(schema: str, instance: bytes, options: SchemaOptions, ours: bool, theirs: CrossCheck) -> str:
    """Return why the two verdicts differ: the first known reason that applies, or that none does."""
    style = options.style
    if not ours:
        widest = replace(Style.any(), formats=style.formats)
        if style != widest and accepts_in_style(schema, instance, options, widest):
            return "the value is valid, but its spelling is not allowed by the options: see --any"
        reason = describe_json_deviation(instance)
        if reason:
            return reason
    if validate_independently(schema, instance, options, parse=parse_exact).verdict == ("valid" if ours else "invalid"):
        return "jsonschema computes with binary floating point; with exact numbers it agrees"
    loose = replace(style, formats="annotate")
    if theirs.keyword == "format" or (
        '"format"' in schema and not ours and accepts_in_style(schema, instance, options, loose)
    ):
        return "the two interpret a `format` differently: constrain follows its RFC"
    if theirs.keyword in ("pattern", "patternProperties") or '"pattern' in schema:
        return "constrain reads patterns as ECMA 262, jsonschema as Python's re"
    return "the reason is unknown: one of the two is wrong; please report it with both files"


def accepts_in_style(schema: str, instance: bytes, options: SchemaOptions, style: Style) -> bool:
    """Return constrain's verdict in another style; False if there is none."""

    try:
        return (
            first_refusal(compile(Vocabulary.bytes(), schema=schema, style=style, registry=options.registry), instance)
            is None
        )
    except ConstrainError:
        return False


def describe_json_deviation(instance: bytes) -> str:
    """Return a description of what Python's json module accepts in an instance against RFC 8259.

    This covers what the RFC forbids or advises against; "" if the instance has none of it.
    """
    reasons: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in members]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            reasons.append(f"the key {twice!r} is repeated; jsonschema sees only the last")
        return dict(members)

    def constant(name: str) -> float:
        reasons.append(f"{name} is not JSON (RFC 8259, section 6); Python's json module accepts it")
        return 0.0

    try:
        value = json.loads(instance.decode(), object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        reasons.append("an escape spells half of a surrogate pair, which is not a character")
    except (ValueError, RecursionError):
        return ""
    return reasons[0] if reasons else ""


def parse_exact(text: str) -> Any:
    """Parse JSON with exact numbers."""

    def number(digits: str) -> Any:
        value = Decimal(digits)
        is_integer = abs(value.adjusted()) < 1000 and value == value.to_integral_value()
        return int(value) if is_integer else value

    return json.loads(text, parse_float=number)
