"""What a stranger sends as a schema: any document at all ends in an answer or a ConstrainError.

Depth and size are counted, never left to CPython's stack or to luck; numbers of any length cost linear time; URIs,
pointers and registries of any shape are read or refused by type.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import constrain
from constrain import Limits, Style, Vocabulary
from constrain.base.errors import ConstrainError, LimitError, SchemaError, SchemaWarning
from constrain.base.json_documents import (
    DECODER,
    LoadedDocument,
    bound_levels,
    check_levels,
    find_deeper,
    may_be_deeper,
    nests_deeper,
    parse_json,
    plain_document,
)
from constrain.base.work import work_budget
from constrain.frontends.json_schema import KEYWORDS, describe_keywords, to_grammar
from constrain.frontends.json_schema.core.json_values import to_constant
from constrain.frontends.json_schema.reports.schema_faults import find_faults
from tests.recogniser_oracle import accepts
from tests.schema_strategies import valid

pytestmark = pytest.mark.filterwarnings("ignore::constrain.base.errors.SchemaWarning")

BYTES = Vocabulary.bytes()


def deep(wrap: Callable[[Any], Any], levels: int, core: Any) -> Any:
    for _ in range(levels):
        core = wrap(core)
    return core


def called_deep(frames: int, function: Callable[[], Any]) -> Any:
    """Return the function's result, called with `frames` more frames on the stack."""
    return function() if frames == 0 else called_deep(frames - 1, function)


NESTED = st.recursive(
    st.text('[]{}"\\\\,:', max_size=4) | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\\\', max_size=3), inner, max_size=3),
)
"""Documents whose strings hold brackets, quotes and backslashes."""


@given(NESTED, st.integers(0, 8))
def test_a_document_that_is_not_deeper_is_seen_to_be_so(document: Any, levels: int) -> None:
    text = json.dumps(document)
    if not may_be_deeper(text, levels):
        assert find_deeper(text, levels) == -1


@given(NESTED.map(lambda value: {"a": value}), st.integers(0, 60))
def test_levels_of_a_text_are_bounded_and_those_of_a_loaded_document_exact(document: Any, levels: int) -> None:
    text = json.dumps(document)
    bound = bound_levels(text, levels)
    assert bound > levels or not nests_deeper(document, bound)
    assert LoadedDocument.of(text).nests_deeper(levels) == nests_deeper(document, levels)
    assert LoadedDocument.of(document).nests_deeper(levels) == nests_deeper(document, levels)


@given(st.text('[]{}"\\\\,:1 ', max_size=14) | NESTED.map(json.dumps), st.integers(1, 6))
def test_levels_are_reported_before_other_faults(text: str, levels: int) -> None:
    """Whether levels are checked before or after parsing: the same value, or the same class of error."""
    limits = Limits(nesting=levels)

    def parse_after_check() -> Any:
        check_levels(text, limits)
        try:
            return DECODER.decode(text)
        except ValueError:
            raise SchemaError("Not JSON.") from None

    def outcome(parse: Callable[[], Any]) -> Any:
        try:
            return parse()
        except ConstrainError as error:
            return type(error)

    assert outcome(lambda: parse_json(text, limits)) == outcome(parse_after_check)


# ---- nesting -------------------------------------------------------------------------------------------------------

WRAPS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "items": (lambda d: {"items": d}, 1),
    "items at least one": (lambda d: {"type": "array", "minItems": 1, "items": d}, 1),
    "not": (lambda d: {"not": {"not": d}}, 2),
    "allOf": (lambda d: {"allOf": [d]}, 2),
    "anyOf": (lambda d: {"anyOf": [d, {"type": "null"}]}, 2),
    "oneOf": (lambda d: {"oneOf": [d]}, 2),
    "required": (lambda d: {"type": "object", "properties": {"a": d}, "required": ["a"]}, 2),
    "if": (lambda d: {"if": d, "then": {"type": "string"}}, 1),
    "then": (lambda d: {"if": {"type": "integer"}, "then": d}, 1),
    "contains": (lambda d: {"type": "array", "contains": d}, 1),
    "unevaluated": (lambda d: {"allOf": [d], "unevaluatedProperties": False}, 2),
    "dependentSchemas": (lambda d: {"dependentSchemas": {"a": d}}, 2),
    "propertyNames": (lambda d: {"propertyNames": d}, 1),
    "default": (lambda d: {"default": d}, 1),
    "const of lists": (lambda d: {"const": [d]}, 2),
}


@pytest.mark.parametrize("name", WRAPS)
def test_nesting_is_one_count_whatever_nests(name: str) -> None:
    """256 levels work, also for a caller who has used 400 frames; 257 are refused by name."""
    wrap, levels = WRAPS[name]
    times = 255 // levels
    document = deep(wrap, times, {})
    assert called_deep(400, lambda: to_grammar(document))
    assert called_deep(400, lambda: to_grammar(json.dumps(document)))
    for form in (deep(wrap, times + 1, {}), json.dumps(deep(wrap, times + 1, {}))):
        with pytest.raises(LimitError, match=r"Limits\.nesting = 256 levels"):
            to_grammar(form)


@pytest.mark.parametrize("wrap", [lambda d: [d], lambda d: {"a": d}], ids=["lists", "objects"])
def test_constants_nest_as_deep(wrap: Callable[[Any], Any]) -> None:
    value = deep(wrap, 253, 1)
    schema = {"allOf": [{"const": value}, {"const": json.loads(json.dumps(value))}]}
    constraint = called_deep(400, lambda: constrain.compile(BYTES, schema=schema))
    matcher = constraint.matcher()
    matcher.advance_bytes(json.dumps(value).encode())
    assert matcher.is_complete
    with pytest.raises(LimitError):
        to_constant(deep(wrap, 2_000, 1), "")


@pytest.mark.parametrize("levels", [3_000, 100_000])
@pytest.mark.parametrize("name", ["items", "allOf", "required", "const of lists", "default"])
def test_a_hundred_thousand_levels_end_in_an_answer_or_a_limit(name: str, levels: int) -> None:
    document = deep(WRAPS[name][0], levels // WRAPS[name][1], {})
    with pytest.raises(LimitError):
        constrain.compile(BYTES, schema=document)
    try:
        constrain.compile(BYTES, schema=document, limits=Limits(nesting=10**6))
    except LimitError:
        pass
    with pytest.raises(LimitError):
        constrain.compile(BYTES, schema='{"items":' * levels)


@pytest.mark.parametrize(
    "link",
    [
        lambda to: {"$ref": to},
        lambda to: {"allOf": [{"$ref": to}]},
        lambda to: {"type": "array", "minItems": 1, "items": {"$ref": to}},
    ],
)
def test_a_chain_of_references_is_as_long_as_one_likes_up_to_a_limit(link: Callable[[str], Any]) -> None:
    def chain(n: int) -> Any:
        return {"$ref": "#/$defs/0", "$defs": {**{str(k): link(f"#/$defs/{k + 1}") for k in range(n)}, str(n): {}}}

    assert called_deep(400, lambda: to_grammar(chain(500)))
    with pytest.raises(LimitError):
        to_grammar(chain(5_000))


def test_thread_start_failure_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a container counts its processes, or address space is short."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(300)}
    with pytest.raises(LimitError, match="another thread"):
        to_grammar({"$defs": chain | {"d300": {"const": "no thread"}}, "$ref": "#/$defs/d0"})


def test_a_text_need_not_parse_to_be_too_deep_and_is_looked_at_once() -> None:
    for text in ('[{"a":' * 200, '["' + '\\"' * 100_000 + "[" * 300, "[" * 200 + '"' + "[" * 100_000):
        with pytest.raises((LimitError, SchemaError)):
            parse_json(text)
    assert parse_json('["' + "[" * 1_000 + '"]') == ["[" * 1_000]


# ---- Python objects ------------------------------------------------------------------------------------------------


def cyclic() -> Any:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (cyclic(), LimitError),
        (deep(lambda d: {"a": d, "b": d}, 60, {}), LimitError),
        ({1: 2}, SchemaError),
        ({"properties": {None: {}}}, SchemaError),
        ({"const": {3, 4}}, SchemaError),
        ({"const": np.int64(3)}, SchemaError),
        ({"enum": np.zeros(3)}, SchemaError),
        ({"const": b"a"}, SchemaError),
        ({"minimum": float("nan")}, SchemaError),
        ({"minimum": float("inf")}, SchemaError),
        ({"minLength": float("nan")}, SchemaError),
        ({"minLength": Decimal("nan")}, SchemaError),
        ({"minimum": Decimal("sNaN")}, SchemaError),
        ({"const": complex(1)}, SchemaError),
        ([1], SchemaError),
    ],
)
def test_python_objects_that_are_no_json(schema: Any, error: type[ConstrainError]) -> None:
    little = Limits(work=Limits().work // 60)
    compiled = partial(constrain.compile, BYTES, limits=little)
    for ask in (to_grammar, lambda s: compiled(schema=s), constrain.json_schema, describe_keywords, find_faults):
        with work_budget(little.work):
            try:
                found = ask(schema)
            except error:
                continue
        assert ask in (constrain.json_schema, find_faults), found  # which say some of it later, or list it


def test_tuples_and_subclasses_are_accepted() -> None:
    class Text(str):
        pass

    class Map(dict):  # type: ignore[type-arg]
        pass

    schema = Map({Text("enum"): (Text("a"), 1, (2,))})
    assert plain_document(schema) == {"enum": ["a", 1, [2]]}
    assert type(plain_document(schema)) is dict
    constraint = constrain.compile(BYTES, schema=schema)
    for text in (b'"a"', b"1", b"[2]"):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        assert matcher.is_complete


# ---- numbers -------------------------------------------------------------------------------------------------------

NUMBERS = [
    "1" * 100_000,
    "-" + "9" * 5_000,
    "0." + "1" * 100_000,
    "1" * 5_000 + ".5",
    "1e4096",
    "-1e99999",
    "1e9999999",
    "1e-99999",
    "1e9999999999999999999999",
    "-1e-9999999999999999999999",
    "1E+" + "9" * 5_000,
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:12])
@pytest.mark.parametrize(
    "keyword",
    [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "const",
        "minLength",
        "maxItems",
        "minProperties",
        "default",
    ],
)
def test_numbers_of_any_length_are_read_or_refused_by_name(keyword: str, number: str) -> None:
    text = f'{{"{keyword}": {number}}}'
    try:
        to_grammar(text)
    except LimitError as error:
        assert len(str(error)) < 1_000
    except SchemaError as error:
        assert keyword.startswith(("m", "max")) and len(str(error)) < 1_000  # not an integer, not above 0
    with pytest.raises((LimitError, SchemaError)):
        to_grammar(text.replace(keyword, "minimum"))


def test_the_shortest_multiple_of_a_long_number_is_searched_for_within_the_limit() -> None:
    constraint = constrain.compile(
        BYTES, schema='{"multipleOf": 123456789012345678901234567890e3000}', style=constrain.Style.any(),
        limits=constrain.Limits(work=200_000),
    )  # fmt: skip
    matcher = constraint.matcher()
    assert matcher.shortest_completion() == b"0"
    matcher.advance_bytes(b"1")
    with pytest.raises(LimitError, match="shortest rest of a number"):
        matcher.shortest_completion()


@pytest.mark.parametrize("number", ["0e9999999999999999999999", "-0.00E-9999999999999999999999", "0e5", "-0"])
def test_zero_is_zero_with_any_exponent(number: str) -> None:
    assert accepts(to_grammar(f'{{"const": {number}}}'), "0")


@pytest.mark.parametrize("value", [10**4_300, -(10**6_000), 10**100_000], ids=["4,300", "6,000", "100,000"])
def test_long_integers_of_python_are_refused_by_name(value: int) -> None:
    for schema in ({"const": value}, {"minimum": value}, {"multipleOf": value}, {"enum": [value]}):
        with pytest.raises(LimitError, match="digits"):
            constrain.compile(BYTES, schema=schema)
    with pytest.raises(ConstrainError):
        constrain.compile(BYTES, schema={"minLength": value})
    with pytest.raises(SchemaError):
        constrain.compile(BYTES, schema={"pattern": value})


def test_numbers_at_the_limit_work() -> None:
    most = "9" * 4_096
    assert accepts(to_grammar(f'{{"const": {most}}}'), most)
    with pytest.raises(LimitError):
        to_grammar(f'{{"const": {most}9}}')


@pytest.mark.parametrize(
    "text",
    [
        "3e003000",
        "0.31777E0003001",
        pytest.param("3500" + "0" * 2_997, marks=pytest.mark.slow),
        "3" + "0" * 3_000 + ".25",
    ],
)
def test_numbers_that_need_more_digits_than_python_writes(text: str) -> None:
    """Members between the bounds have up to 6,001 digits, of which a text may leave out zeros at the end."""
    schema = '{"multipleOf": 1e-3000, "minimum": 3e3000, "maximum": 4e3000}'
    matcher = constrain.compile(BYTES, schema=schema, style=Style.any()).matcher()
    for byte in text.encode():
        assert matcher.allows(byte)
        matcher.advance(byte)
    assert matcher.is_complete


# ---- messages ------------------------------------------------------------------------------------------------------

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": LONG},
        {"$ref": LONG},
        {"$ref": "#/" + LONG},
        {"$ref": "#" + LONG},
        {"properties": {LONG: 1}},
        {"pattern": LONG + "("},
        {"required": LONG},
        {"minLength": LONG},
        {"$schema": 1, "$id": LONG},
        {LONG: 1, "type": 1},
        {"minLength": [[LONG]] * 10},
        {"type": [[[LONG]]]},
        {"multipleOf": -(10**5000)},
        {"$id": "http://[" + LONG},
    ],
    ids=range(14),
)
def test_messages_echo_little(schema: Any) -> None:
    with pytest.raises(ConstrainError) as caught:
        to_grammar(schema)
    assert len(str(caught.value)) < 3_000
    assert LONG[:300] not in str(caught.value)


# ---- junk ----------------------------------------------------------------------------------------------------------

NAMES = sorted(
    {row.name for row in KEYWORDS}
    | {
        "$defs",
        "definitions",
        "$id",
        "id",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
        "nullable",
        "maxlenght",
        "",
        "~",
        "a/b",
        "\ud800",
    }
)
REFERENCES = [
    "#",
    "#/",
    "#/$defs/a",
    "#/allOf/0",
    "#/allOf/" + "1" * 5_000,
    "#/allOf/\u0661",
    "#a",
    "a",
    "b#c",
    "http://[",
    "//[::x]/#",
    "//[",
    "urn:x",
    "#%",
    "#/%zz",
    "http://json-schema.org/draft-07/schema#",
    "file:///a",
    "?",
    "..",
    "\ud800",
    "\0",
    "#/~2",
]
SCHEMAS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://[",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "x",
    "",
]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, 2, -1, 0.5, 10**30]),
    st.text(max_size=5),
    st.sampled_from(
        [*REFERENCES, *SCHEMAS, "string", "array", "object", "integer", "date", "regex", "^(a|b)*$", "(?=a)"]
    ),
    st.decimals(),
)
junk = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=25,
)
documents = st.dictionaries(st.sampled_from(NAMES), junk, max_size=6)
SMALL = Limits(dfa_states=2_000, cases=32, work=300_000)
JUNK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@JUNK
@given(documents, st.dictionaries(st.sampled_from(REFERENCES), junk, max_size=2), st.sampled_from(REFERENCES))
def test_any_document_ends_in_an_answer_or_an_error_of_ours(schema: Any, registry: Any, base_uri: str) -> None:
    for ask in (
        lambda: (
            constrain.compile(BYTES, schema=schema, registry=registry, base_uri=base_uri, limits=SMALL).matcher().mask()
        ),
        lambda: constrain.json_schema(schema, registry=registry, base_uri=base_uri).grammar(SMALL),
        lambda: describe_keywords(schema, registry=registry, limits=SMALL),
        lambda: find_faults(schema, registry=registry, limits=SMALL),
    ):
        try:
            with work_budget(SMALL.work):
                ask()
        except ConstrainError as error:
            assert len(str(error)) < 8_000


@JUNK
@given(st.text(alphabet='{}[]",:\\u0123456789eE+-.truefalsn \n\ud800', max_size=60))
def test_any_text_ends_in_an_answer_or_an_error_of_ours(text: str) -> None:
    for ask in (to_grammar, constrain.json_schema):
        try:
            ask(text)
        except ConstrainError:
            pass


def mutations(seed: int) -> Iterator[Any]:
    """A schema with every keyword, with values swapped between keywords."""
    whole: dict[str, Any] = {
        "type": ["object", "array"],
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"minimum": 1}},
        "required": ["a"],
        "items": {"enum": [1, [2]]},
        "prefixItems": [{}],
        "uniqueItems": True,
        "minItems": 1,
        "contains": {"const": 1},
        "patternProperties": {"^b": {"format": "date"}},
        "additionalProperties": False,
        "dependentRequired": {"a": ["b"]},
        "anyOf": [{"multipleOf": 0.5}, {"not": {}}],
        "if": {"maxLength": 3},
        "then": {"pattern": "a+"},
        "unevaluatedItems": False,
    }
    draw = random.Random(seed)
    for _ in range(40):
        made = dict(whole)
        for _ in range(draw.randint(1, 4)):
            one, other = draw.sample(list(whole), 2)
            made[one] = draw.choice([whole[other], [whole[one]], {"a": whole[one]}, None, [], {}, "", -1, True])
        yield made


@pytest.mark.parametrize("seed", range(10))
def test_values_of_one_keyword_at_another(seed: int) -> None:
    for schema in mutations(seed):
        try:
            constrain.compile(BYTES, schema=schema, limits=SMALL).matcher().mask()
        except ConstrainError:
            pass


ODD: tuple[Any, ...] = (None, True, 0, -1, 1.5, "x", "", [], [{}], [[]], {}, {"a": []}, {"a": {}}, [None], {"$ref": []})
OTHER_NAMES = (
    "$id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$vocabulary",
    "id",
    "title",
    "nullable",
    "extends",
    "unknown",
)


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_any_value_of_any_keyword(draft: str) -> None:
    """Alone and beneath another keyword: where a value has the wrong shape, no part of the reader relies on it."""
    for name in sorted({row.name for row in KEYWORDS}.union(OTHER_NAMES)):
        for value in ODD:
            for schema in ({name: value}, {"properties": {"a": {name: value}}}):
                try:
                    constrain.compile(BYTES, schema={"$schema": draft, **schema}, limits=SMALL)
                except ConstrainError:
                    pass


def test_wrong_types_of_registry_and_base_are_reported() -> None:
    for registry, base_uri in (({5: {}}, ""), ([1], ""), ({None: {}}, ""), ({}, 5), ({}, b"x")):
        for ask in (constrain.compile, lambda v, **given: constrain.json_schema(**given)):
            with pytest.raises(TypeError, match=r"registry|base_uri"):
                ask(BYTES, schema={}, registry=registry, base_uri=base_uri)
    for registry in ({"a": 5}, {"a": "["}, {"http://[": {}}):
        with pytest.raises(SchemaError):
            constrain.compile(BYTES, schema={"$ref": "b"}, registry=registry)


def test_warnings_of_a_document_are_bounded() -> None:
    schema = {"properties": {f"p{k}": {f"typ{'e' * (k % 2)}x": "string", "format": f"f{k}"} for k in range(3_000)}}
    with pytest.warns(SchemaWarning) as caught:
        constrain.compile(BYTES, schema=schema)
    assert len(caught) < 30


def recursive_alternatives(count: int, keys: int) -> dict[str, Any]:
    """Alternatives of which one refers to the root, beside their complement: their product needs its own emptiness."""

    def branch(i: int) -> dict[str, Any]:
        properties = {f"k{i}{j}": {"type": "string"} for j in range(keys)}
        inner = {"properties": properties, "required": [f"k{i}0"], "additionalProperties": False}
        more = {"$ref": "#"} if i == count // 2 else False
        return {"type": "object", "properties": {f"f{i}": inner}, "required": [f"f{i}"], "additionalProperties": more}

    view = {"type": "object", "properties": {"z": {"type": "number"}}, "required": ["z"]}
    other = {"type": "object", "properties": {"label": {"minLength": 3}, "view": view}, "required": ["label", "view"]}
    one, two = {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}
    return {
        "$defs": {"one": {"anyOf": [branch(i) for i in range(count)]}, "two": other},
        "allOf": [{"anyOf": [one, two]}, {"anyOf": [one, {"not": one}]}],
    }


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("keys", [1, 3])
def test_simplifying_a_shape_does_not_unfold_it_again(count: int, keys: int) -> None:
    schema = recursive_alternatives(count, keys)
    inner = {f"f{count // 2}": {f"k{count // 2}0": "x"}}
    values = (inner, {**inner, "more": inner}, {**inner, "more": 1}, {"label": "abc", "view": {"z": 1}}, {}, 1)
    for style in (Style.any(), Style()):
        constraint = constrain.compile(BYTES, schema=schema, style=style, limits=Limits(work=1_000_000))
        for value in values:
            matcher = constraint.matcher()
            try:
                matcher.advance_bytes(json.dumps(value).encode())
            except constrain.TokenRefused:
                assert not valid(schema, value)
            else:
                assert matcher.is_complete == valid(schema, value)
