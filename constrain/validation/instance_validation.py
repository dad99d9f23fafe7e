"""Validation of instances: `validate` takes a schema and a value or a JSON text, and returns all violations.

schema --parser--> nodes --+
value or text --> items ---+--> verdicts of (node, item) --> findings --> violations with pointers, lines and columns

The parser is the one that compiles schemas, so a keyword means here what a mask enforces. Values are judged, not
spellings: what a `Style` narrows is not a violation. Patterns and formats are decided by automata in linear time, and
all work is counted (`Limits.work`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from ..base.errors import ArgumentError, SchemaError, check_choice, check_type, describe_value
from ..base.json_documents import References, load_document, nests_deeper, plain_document
from ..base.keyword_names import explain_keywords
from ..base.options import Limits, Style
from ..base.work import confine_budgets, work_budget
from ..forms.source_readers import as_schema, find_schema_warnings, warn_of_schema
from ..frontends.json_schema.core.fresh_stack import run_on_fresh_stack, run_with_stack
from ..frontends.json_schema.reading.keywords import keywords_of_draft, list_annotations
from ..frontends.json_schema.reading.schema_parser import UnsharedSchemaParser
from .instance_judge import InstanceJudge
from .instance_text import InstanceText, InvalidText
from .instance_tree import InstanceItem, build_tree
from .violation_report import ItemViolation, find_violations
from .violations import Violation

__all__ = ["InstanceValidator", "validate"]

DEEP = 24
"""Levels of a schema or an instance beyond which it is judged on a fresh stack."""
ABSENT: Any = object()
T = TypeVar("T")


class InstanceValidator:
    """A schema, parsed once, for any number of instances. The arguments and errors are those of `validate`."""

    def __init__(
        self,
        schema: Any,
        *,
        registry: Mapping[str, Any] | None = None,
        base_uri: str = "",
        formats: Literal["assert", "annotate"] = "assert",
        limits: Limits = Limits(),
    ) -> None:
        check_choice("formats", formats, ("assert", "annotate"))
        check_type("limits", limits, Limits, "give a constrain.Limits, such as Limits(work=10_000_000)")
        self.limits = limits
        self.references = References(registry, base_uri)
        self.document = load_document(as_schema(schema), limits)
        self._is_deep = nests_deeper(self.document, DEEP)
        self._parser = self._read_schema(Style(formats=formats))

    @confine_budgets
    def _read_schema(self, style: Style) -> UnsharedSchemaParser:
        """Return the parser of the schema, which has read all of it."""
        with work_budget(self.limits.work):
            return self._run(self._is_deep, UnsharedSchemaParser, self.document, self.references, style, self.limits)

    @confine_budgets
    def check_value(self, value: Any) -> tuple[Violation, ...]:
        """Return the violations of a Python value."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"instance is {describe_value(value)}: give JSON text as text=")
        try:
            plain = plain_document(value, self.limits)
        except SchemaError as error:
            wanted = "give plain values, such as model.model_dump(mode='json'), or JSON text as text="
            place = f"instance{error.pointer and ' at ' + error.pointer}"
            raise TypeError(f"{place} is not a JSON value: {error.cause} {wanted}") from None
        with work_budget(self.limits.work):
            items = build_tree(plain)
            return tuple(violation for violation, _ in self._judge(items, nests_deeper(plain, DEEP)))

    @confine_budgets
    def check_text(self, text: str | bytes) -> tuple[Violation, ...]:
        """Return the violations of a JSON text, with lines and columns."""
        with work_budget(self.limits.work):
            try:
                instance = InstanceText(text, self.limits)
            except InvalidText as error:
                return error.violations
            root = instance.items[0]
            return tuple(instance.place(*one) for one in self._judge(instance.items, nests_deeper(root.value, DEEP)))

    def _judge(self, items: list[InstanceItem], is_deep: bool) -> list[ItemViolation]:
        judge = InstanceJudge(self._parser.nodes, self.limits)
        return self._run(self._is_deep or is_deep, find_violations, judge, self._parser.root, items[0])

    def _run(self, is_deep: bool, function: Callable[..., T], *arguments: Any) -> T:
        return (run_on_fresh_stack if is_deep else run_with_stack)(function, *arguments)


def check_places(schema: Any, instance: Any) -> None:
    """Raise ArgumentError if a schema without any keyword is given with an instance that looks like a schema."""
    if not isinstance(schema, dict) or not isinstance(instance, dict) or not schema:
        return
    known = list_annotations().union(*(keywords_of_draft(draft) for draft in (4, 2020)))
    telling = {"$schema", "$ref", "type", "properties", "anyOf", "oneOf", "allOf", "enum"}
    if known.isdisjoint(schema) and not telling.isdisjoint(instance):
        raise ArgumentError(
            "schema has no keyword of JSON Schema, and instance has: they are in each other's place",
            hint="Give constrain.validate(schema, instance).",
        )


@explain_keywords
def validate(
    schema: Any,
    instance: Any = ABSENT,
    *,
    text: str | bytes | None = None,
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    formats: Literal["assert", "annotate"] = "assert",
    limits: Limits = Limits(),
) -> tuple[Violation, ...]:
    """Return all violations of a JSON Schema by an instance; the instance is valid if there are none.

    The instance is either a Python value (`instance`) or a JSON text (`text`): a str given as `instance` is a JSON
    string, whatever it contains. Numbers are exact, so 0.3 is a multiple of 0.1; a float stands for its shortest
    decimal. The verdict is that of a Constraint with `Style.any()` on the JSON text of the value, but for dates in the
    year 0000 under `not`: libraries disagree on them, so a Constraint writes them neither as a date nor as no date.

    Parameters
    ----------
    schema : dict, bool, str or type
        A JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12 as a Python value, JSON text or Path of a file with it, or a
        Python type that has a JSON Schema.
    instance : object, optional
        A Python value of dicts, lists, tuples, texts, numbers (also Decimal), booleans and None.
    text : str or bytes, optional
        A JSON text, in UTF-8 if bytes. Violations have lines and columns in it.
    registry : Mapping of str to Any, optional
        Documents by URI, for references that leave the schema. Nothing is ever fetched.
    base_uri : str
        URI that relative references are resolved against.
    formats : {"assert", "annotate"}
        Whether `format` is asserted.
    limits : Limits
        Budgets: `work` for parsing the schema, and again for judging the instance; `nesting`; `dfa_states` for each
        pattern.

    Returns
    -------
    tuple of Violation
        Ordered by where they are in the instance. A text that is not JSON, is not UTF-8 or repeats a key has only
        violations without a keyword, which say so.

    Raises
    ------
    SchemaError, UnsupportedError
        If the schema is malformed, or a reference or pattern in it cannot be followed.
    LimitError
        If a budget of `limits` is exceeded.
    ArgumentError
        If `instance` contains NaN, infinity or half of a surrogate pair, or is given in the place of the schema.
    TypeError
        If an argument has the wrong type, `instance` contains what JSON has not, or not exactly one of `instance` and
        `text` is given.

    Warns
    -----
    SchemaWarning
        For parts of the schema that assert nothing but were probably meant to.

    Examples
    --------
    >>> schema = {"properties": {"age": {"type": "integer", "maximum": 120}}, "required": ["name"]}
    >>> for violation in constrain.validate(schema, {"age": 200}):
    ...     print(violation)
    "name" is required
    /age: 200 is above maximum 120
    """
    if (instance is ABSENT) == (text is None):
        got = "neither" if text is None else "both"
        raise TypeError(f"give instance (a Python value) or text= (a JSON text); got {got}")
    check_places(schema, instance)
    validator = InstanceValidator(schema, registry=registry, base_uri=base_uri, formats=formats, limits=limits)
    warn_of_schema(find_schema_warnings(validator.document, validator.references, Style(formats=formats), limits))
    return validator.check_value(instance) if text is None else validator.check_text(text)
