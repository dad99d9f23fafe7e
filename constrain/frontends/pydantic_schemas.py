"""What Pydantic's JSON Schemas lack, so that a mask allows what Pydantic accepts.

Objects are closed, sets have no `uniqueItems` unless repeated items could leave too few, a Decimal is a number, times
have no leap seconds, discriminators are required, keys of dicts are of their type, and a class is no value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from ..base.errors import UnsupportedError
from .key_schemas import build_key_schema
from .schema_bounds import add_digits
from .type_inspection import check_json_values, is_json, unhashable_items

__all__ = ["SECONDS", "make_generator"]

Schema = dict[str, Any]

SECONDS = ":[0-5][0-9]:[0-5]"
"""Pattern of times without a leap second, which RFC 3339 allows and no Python type holds."""


def allow_repeats(schema: Schema) -> Schema:
    """Return the schema of a set without `uniqueItems`, unless it has a least number of items above 1."""
    if schema.get("minItems", 0) < 2:
        schema.pop("uniqueItems", None)
    return schema


def make_generator() -> Any:
    """Return the class of the generator, a subclass of Pydantic's, which is imported only here."""
    from pydantic.json_schema import GenerateJsonSchema

    def closed(name: str) -> Callable[[Any, Any], Schema]:
        def method(self: Any, schema: Any) -> Schema:
            made: Schema = getattr(super(Generator, self), name)(schema)
            if "properties" in made and "$ref" not in made:
                made.setdefault("additionalProperties", False)
            return made

        return method

    class Generator(GenerateJsonSchema):
        """See `make_generator`."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.named: dict[str, Any] = {}  # core schemas that others refer to

        def definitions_schema(self, schema: Any) -> Schema:
            self.named.update((named["ref"], named) for named in schema["definitions"])
            return super().definitions_schema(schema)

        def set_schema(self, schema: Any) -> Schema:
            check_items(schema, self.named)
            return allow_repeats(super().set_schema(schema))

        def frozenset_schema(self, schema: Any) -> Schema:
            check_items(schema, self.named)
            return allow_repeats(super().frozenset_schema(schema))

        def enum_schema(self, schema: Any) -> Schema:
            cls = schema["cls"]
            if cls._missing_.__func__ is vars(Enum)["_missing_"].__func__:  # its own may read any value
                check_json_values(cls.__name__, (member.value for member in schema["members"]), is_compared)
            return super().enum_schema(schema)

        def literal_schema(self, schema: Any) -> Schema:
            values = (value.value if isinstance(value, Enum) else value for value in schema["expected"])
            check_json_values("a Literal", values, is_compared)
            return super().literal_schema(schema)

        def decimal_schema(self, schema: Any) -> Schema:
            made = super().decimal_schema(schema)
            numbers = [option for option in made.get("anyOf", ()) if option.get("type") == "number"]
            if not numbers:
                return made
            return add_digits(numbers[0], schema.get("max_digits"), schema.get("decimal_places"))

        def dict_schema(self, schema: Any) -> Schema:
            made = super().dict_schema(schema)
            keys = schema.get("keys_schema")
            if keys is None:
                return made
            check_keys(keys)
            names = build_key_schema(self.generate_inner(keys), cast(Any, self.get_schema_from_definitions))
            for keyword in ("patternProperties", "propertyNames", "additionalProperties"):
                made.pop(keyword, None)
            if names and names != {"type": "string"}:
                made["propertyNames"] = names
            if "values_schema" in schema:
                made["additionalProperties"] = self.generate_inner(schema["values_schema"])
            return made

        def tagged_union_schema(self, schema: Any) -> Schema:
            made = super().tagged_union_schema(schema)
            tag = made.get("discriminator", {}).get("propertyName")
            if tag is not None:  # Pydantic reads the tag before it knows its default.
                made["oneOf"] = [require_tag(branch, tag) for branch in made["oneOf"]]
            return made

        def datetime_schema(self, schema: Any) -> Schema:
            return write_time(super().datetime_schema(schema), schema.get("tz_constraint"))

        def time_schema(self, schema: Any) -> Schema:
            return write_time(super().time_schema(schema), schema.get("tz_constraint"))

        def is_subclass_schema(self, schema: Any) -> Schema:  # Pydantic's allows any value and then refuses each.
            cls = schema["cls"]
            return self.handle_invalid_for_json_schema(schema, f"a subclass of {getattr(cls, '__name__', cls)}")

        model_schema: Any = closed("model_schema")
        dataclass_schema: Any = closed("dataclass_schema")
        typed_dict_schema: Any = closed("typed_dict_schema")

    return Generator


def require_tag(branch: Schema, tag: str) -> Schema:
    """Return a branch of a discriminated union that requires the key which tells it from others."""
    if "oneOf" in branch:  # a union within the union, whose own branches have the key
        return {**branch, "oneOf": [require_tag(inner, tag) for inner in branch["oneOf"]]}
    return {**branch, "required": [*branch.get("required", ()), *({tag} - {*branch.get("required", ())})]}


def write_time(schema: Schema, offset: str | int | None) -> Schema:
    """Return the schema of a time without leap seconds; without an offset if it must be "naive"."""
    from .json_schema.strings.formats import FULL_DATE, HOUR, MINUTE, SECFRAC

    if schema.get("type") != "string":
        return schema
    if offset != "naive":
        return {**schema, "pattern": SECONDS}
    date = f"{FULL_DATE}T" if schema.get("format") == "date-time" else ""  # The formats have an offset.
    return {"type": "string", "pattern": f"^{date}{HOUR}:{MINUTE}:[0-5][0-9]{SECFRAC}$"}


def is_compared(value: Any) -> bool:
    """Return whether Pydantic finds a value of an Enum or Literal in JSON, where it has neither tuples nor Decimals."""
    return is_json(value) and not isinstance(value, (tuple, Decimal))


def check_items(schema: Any, named: dict[str, Any]) -> None:
    """Raise UnsupportedError for a set whose items can never be hashed.

    named: the core schemas that a `definition-ref` may refer to.
    """
    items = schema.get("items_schema", {"type": "any"})
    if items["type"] == "definition-ref":
        items = named.get(items["schema_ref"], items)
    if items["type"] in ("list", "set", "dict", "typed-dict"):
        raise unhashable_items(items["type"])
    if items["type"] in ("model", "dataclass") and items["cls"].__hash__ is None:
        raise unhashable_items(items["cls"].__name__)


def check_keys(schema: Any) -> None:
    """Raise UnsupportedError for keys that Pydantic does not read from JSON.

    It compares a key, which is a string, with the values of a Literal, and of an Enum that is no subclass of a number.
    """
    values: list[Any] = []
    if schema["type"] == "literal":
        values = [value for value in schema["expected"] if not isinstance(value, (str, bool))]
    elif schema["type"] == "enum" and "sub_type" not in schema:
        values = [member.value for member in schema["members"] if not isinstance(member.value, str)]
    if values:
        raise UnsupportedError(
            f"Pydantic reads no key of a dict as {values[0]!r}", hint="Take texts, int or an IntEnum for the keys."
        )
